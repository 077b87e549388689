//! Workloads that are about waiting for one another: bench/sync.

use crate::measure::{black_box, count};
use crate::{measured, Outcome};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore};
use tokio::task::{yield_now, JoinHandle};

pub const NAMES: &[(&str, &str)] = &[
    ("ping_pong_oneshot", "mt"),
    ("ping_pong_oneshot", "ct"),
    ("notify_pingpong", "mt"),
    ("notify_pingpong", "ct"),
    ("mpsc_bounded_spsc", "mt"),
    ("mpsc_bounded_spsc", "ct"),
    ("mpsc_bounded_mpsc", "mt"),
    ("mpsc_bounded_cap1", "mt"),
    ("mpsc_bounded_cap1", "ct"),
    ("mpsc_unbounded_spsc", "mt"),
    ("mpsc_unbounded_spsc", "ct"),
    ("mpsc_unbounded_mpsc", "mt"),
    ("mutex_uncontended", "ct"),
    ("mutex_contended", "mt"),
    ("mutex_contended_yield", "mt"),
    ("mutex_contended_yield", "ct"),
    ("rwlock_read_uncontended", "ct"),
    ("rwlock_mixed", "mt"),
    ("rwlock_mixed_yield", "mt"),
    ("semaphore_uncontended", "ct"),
    ("semaphore_contended", "mt"),
    ("semaphore_contended_yield", "mt"),
    ("broadcast", "mt"),
    ("watch", "mt"),
    ("oneshot_create_send_recv", "ct"),
    ("once_cell_hot", "ct"),
    ("barrier", "mt"),
    ("barrier", "ct"),
    ("notify_waiters_1000", "mt"),
    ("notify_waiters_1000", "ct"),
    ("watch_1000", "mt"),
    ("watch_1000", "ct"),
];

pub fn run(workload: &str, param: &str) -> Outcome {
    let outcome = match (workload, param) {
        ("ping_pong_oneshot", kind) => measured(kind, 200_000, ping_pong_oneshot),
        ("notify_pingpong", kind) => measured(kind, 200_000, notify_pingpong),
        ("mpsc_bounded_spsc", kind) => measured(kind, 1_000_000, |n| bounded(1, 1024, n)),
        ("mpsc_bounded_mpsc", kind) => measured(kind, 1_000_000, |n| bounded(4, 1024, n)),
        ("mpsc_bounded_cap1", kind) => measured(kind, 300_000, |n| bounded(1, 1, n)),
        ("mpsc_unbounded_spsc", kind) => measured(kind, 1_000_000, |n| unbounded(1, n)),
        ("mpsc_unbounded_mpsc", kind) => measured(kind, 1_000_000, |n| unbounded(4, n)),
        ("mutex_uncontended", kind) => measured(kind, 2_000_000, mutex_uncontended),
        ("mutex_contended", kind) => measured(kind, 400_000, |n| mutex_contended(n, false)),
        ("mutex_contended_yield", kind) => measured(kind, 200_000, |n| mutex_contended(n, true)),
        ("rwlock_read_uncontended", kind) => measured(kind, 2_000_000, rwlock_read_uncontended),
        ("rwlock_mixed", kind) => measured(kind, 400_000, |n| rwlock_mixed(n, false)),
        ("rwlock_mixed_yield", kind) => measured(kind, 200_000, |n| rwlock_mixed(n, true)),
        ("semaphore_uncontended", kind) => measured(kind, 2_000_000, semaphore_uncontended),
        ("semaphore_contended", kind) => measured(kind, 400_000, |n| semaphore_contended(n, false)),
        ("semaphore_contended_yield", kind) => {
            measured(kind, 200_000, |n| semaphore_contended(n, true))
        }
        ("broadcast", kind) => measured(kind, 204_800, one_to_four),
        ("watch", kind) => measured(kind, 400_000, watched_by_four),
        ("oneshot_create_send_recv", kind) => measured(kind, 2_000_000, oneshot_in_one_task),
        ("once_cell_hot", kind) => measured(kind, 20_000_000, once_cell_hot),
        ("barrier", kind) => measured(kind, 40_000, barrier),
        ("notify_waiters_1000", kind) => measured(kind, 200_000, notify_a_thousand),
        ("watch_1000", kind) => measured(kind, 200_000, watched_by_a_thousand),
        _ => return None,
    };
    Some(outcome)
}

async fn join_all<T>(handles: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::with_capacity(handles.len());
    for handle in handles {
        results.push(handle.await.unwrap());
    }
    results
}

/// Eight tasks that each do their share of `n` operations.
async fn eight_tasks<F, T>(n: u64, body: F) -> Duration
where
    F: Fn(u64) -> T,
    T: Future<Output = ()> + Send + 'static,
{
    let begin = Instant::now();
    join_all((0..8).map(|_| tokio::spawn(body(n / 8))).collect()).await;
    begin.elapsed()
}

// --- messages ---

/// For each round two channels are made and a task is spawned that answers.
async fn ping_pong_oneshot(n: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..n {
        let (ask, asked) = oneshot::channel::<()>();
        let (answer, answered) = oneshot::channel::<()>();
        tokio::spawn(async move {
            asked.await.unwrap();
            count();
            answer.send(()).unwrap();
        });
        ask.send(()).unwrap();
        answered.await.unwrap();
        count();
    }
    begin.elapsed()
}

async fn notify_pingpong(n: u64) -> Duration {
    let ping = Arc::new(Notify::new());
    let pong = Arc::new(Notify::new());
    let (his_ping, his_pong) = (ping.clone(), pong.clone());
    let begin = Instant::now();
    let server = tokio::spawn(async move {
        for _ in 0..n {
            his_ping.notified().await;
            count();
            his_pong.notify_one();
        }
    });
    let client = tokio::spawn(async move {
        for _ in 0..n {
            ping.notify_one();
            pong.notified().await;
            count();
        }
    });
    client.await.unwrap();
    server.await.unwrap();
    begin.elapsed()
}

async fn bounded(producers: u64, capacity: usize, n: u64) -> Duration {
    let (sender, mut receiver) = mpsc::channel::<u64>(capacity);
    let each = n / producers;
    let begin = Instant::now();
    let consumer = tokio::spawn(async move {
        let (mut sum, mut received) = (0_u64, 0_u64);
        while let Some(value) = receiver.recv().await {
            sum = sum.wrapping_add(value);
            received += 1;
            count();
        }
        black_box(sum);
        received
    });
    for _ in 0..producers {
        let sender = sender.clone();
        tokio::spawn(async move {
            for i in 0..each {
                sender.send(i).await.unwrap();
                count();
            }
        });
    }
    drop(sender);
    assert_eq!(consumer.await.unwrap(), each * producers);
    begin.elapsed()
}

async fn unbounded(producers: u64, n: u64) -> Duration {
    let (sender, mut receiver) = mpsc::unbounded_channel::<u64>();
    let each = n / producers;
    let begin = Instant::now();
    let consumer = tokio::spawn(async move {
        let (mut sum, mut received) = (0_u64, 0_u64);
        while let Some(value) = receiver.recv().await {
            sum = sum.wrapping_add(value);
            received += 1;
            count();
        }
        black_box(sum);
        received
    });
    for _ in 0..producers {
        let sender = sender.clone();
        tokio::spawn(async move {
            for i in 0..each {
                sender.send(i).unwrap();
                count();
            }
        });
    }
    drop(sender);
    assert_eq!(consumer.await.unwrap(), each * producers);
    begin.elapsed()
}

async fn oneshot_in_one_task(n: u64) -> Duration {
    let mut sum = 0_u64;
    let begin = Instant::now();
    for i in 0..n {
        let (sender, receiver) = oneshot::channel::<u64>();
        sender.send(i).unwrap();
        sum = sum.wrapping_add(receiver.await.unwrap());
    }
    black_box(sum);
    begin.elapsed()
}

/// One sender, four receivers, a ring of 1024. Nobody falls behind: a receiver gives a permit
/// back after each 512 messages, and the sender takes one of each receiver before it sends 512.
async fn one_to_four(n: u64) -> Duration {
    const RECEIVERS: u32 = 4;
    const BATCH: u64 = 512;
    let (sender, first) = broadcast::channel::<u64>(1024);
    let room = Arc::new(Semaphore::new(RECEIVERS as usize));
    let receivers: Vec<_> = std::iter::once(first)
        .chain((1..RECEIVERS).map(|_| sender.subscribe()))
        .map(|mut receiver| {
            let room = room.clone();
            tokio::spawn(async move {
                let (mut received, mut sum) = (0_u64, 0_u64);
                while let Ok(value) = receiver.recv().await {
                    sum = sum.wrapping_add(value);
                    received += 1;
                    count();
                    if received % BATCH == 0 {
                        room.add_permits(1);
                    }
                }
                black_box(sum);
                received
            })
        })
        .collect();
    let begin = Instant::now();
    let batches = n / BATCH;
    let sending = tokio::spawn(async move {
        for batch in 0..batches {
            room.acquire_many(RECEIVERS).await.unwrap().forget();
            for i in 0..BATCH {
                sender.send(batch * BATCH + i).unwrap();
                count();
            }
        }
    });
    sending.await.unwrap();
    for received in join_all(receivers).await {
        assert_eq!(received, batches * BATCH);
    }
    begin.elapsed()
}

/// The time to send, while four look at what they can catch.
async fn watched_by_four(n: u64) -> Duration {
    let (sender, receiver) = watch::channel(0_u64);
    let watchers: Vec<_> = (0..4)
        .map(|_| {
            let mut receiver = receiver.clone();
            tokio::spawn(async move {
                let mut sum = 0_u64;
                while receiver.changed().await.is_ok() {
                    sum = sum.wrapping_add(*receiver.borrow_and_update());
                    count();
                }
                black_box(sum);
            })
        })
        .collect();
    drop(receiver);
    for _ in 0..100 {
        yield_now().await; // so that they are waiting
    }
    let took = tokio::spawn(async move {
        let begin = Instant::now();
        for i in 1..=n {
            sender.send(i).unwrap();
            count();
        }
        begin.elapsed()
    })
    .await
    .unwrap();
    join_all(watchers).await;
    took
}

// --- locks ---

async fn mutex_uncontended(n: u64) -> Duration {
    let mutex = Mutex::new(0_u64);
    let begin = Instant::now();
    for _ in 0..n {
        *mutex.lock().await += 1;
    }
    let took = begin.elapsed();
    assert_eq!(mutex.into_inner(), n);
    took
}

async fn mutex_contended(n: u64, with_yield: bool) -> Duration {
    let mutex = Arc::new(Mutex::new(0_u64));
    eight_tasks(n, |each| {
        let mutex = mutex.clone();
        async move {
            for _ in 0..each {
                let mut value = mutex.lock().await;
                *value += 1;
                count();
                if with_yield {
                    yield_now().await;
                }
            }
        }
    })
    .await
}

async fn rwlock_read_uncontended(n: u64) -> Duration {
    let lock = RwLock::new(7_u64);
    let mut sum = 0_u64;
    let begin = Instant::now();
    for _ in 0..n {
        sum = sum.wrapping_add(*lock.read().await);
    }
    black_box(sum);
    begin.elapsed()
}

/// Every tenth operation of a task writes.
async fn rwlock_mixed(n: u64, with_yield: bool) -> Duration {
    let lock = Arc::new(RwLock::new(0_u64));
    eight_tasks(n, |each| {
        let lock = lock.clone();
        async move {
            let mut sum = 0_u64;
            for i in 0..each {
                if i % 10 == 0 {
                    let mut value = lock.write().await;
                    *value += 1;
                    count();
                    if with_yield {
                        yield_now().await;
                    }
                } else {
                    let value = lock.read().await;
                    sum = sum.wrapping_add(*value);
                    count();
                    if with_yield {
                        yield_now().await;
                    }
                }
            }
            black_box(sum);
        }
    })
    .await
}

async fn semaphore_uncontended(n: u64) -> Duration {
    let semaphore = Semaphore::new(1);
    let begin = Instant::now();
    for _ in 0..n {
        black_box(&semaphore.acquire().await.unwrap());
    }
    begin.elapsed()
}

/// Two permits for eight tasks.
async fn semaphore_contended(n: u64, with_yield: bool) -> Duration {
    let semaphore = Arc::new(Semaphore::new(2));
    eight_tasks(n, |each| {
        let semaphore = semaphore.clone();
        async move {
            for _ in 0..each {
                let permit = semaphore.acquire().await.unwrap();
                black_box(&permit);
                count();
                if with_yield {
                    yield_now().await;
                }
            }
        }
    })
    .await
}

// --- the rest ---

async fn once_cell_hot(n: u64) -> Duration {
    let cell: OnceCell<u64> = OnceCell::new();
    cell.get_or_init(|| async { 42 }).await;
    let begin = Instant::now();
    for _ in 0..n {
        black_box(*black_box(&cell).get_or_init(|| async { 42 }).await);
    }
    begin.elapsed()
}

/// Per generation.
async fn barrier(n: u64) -> Duration {
    const TASKS: usize = 8;
    let barrier = Arc::new(Barrier::new(TASKS));
    let begin = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let barrier = barrier.clone();
            tokio::spawn(async move {
                let mut led = 0_u64;
                for _ in 0..n {
                    led += u64::from(barrier.wait().await.is_leader());
                    count();
                }
                led
            })
        })
        .collect();
    assert_eq!(join_all(tasks).await.iter().sum::<u64>(), n);
    begin.elapsed()
}

/// A thousand tasks wait for one notify; per task that is woken. The next round begins when all
/// of them wait again, for the other one of two: in this version a task that comes back while
/// the others are still being woken is woken twice.
async fn notify_a_thousand(n: u64) -> Duration {
    const WAITERS: u64 = 1000;
    let bells = Arc::new([Notify::new(), Notify::new()]);
    let arrived = Arc::new(AtomicU64::new(0));
    let all_there = Arc::new(Notify::new());
    let rounds = n / WAITERS;
    let waiters: Vec<_> = (0..WAITERS)
        .map(|_| {
            let (bells, arrived, all_there) = (bells.clone(), arrived.clone(), all_there.clone());
            tokio::spawn(async move {
                for round in 0..rounds {
                    let rung = bells[(round % 2) as usize].notified();
                    tokio::pin!(rung);
                    rung.as_mut().enable();
                    if arrived.fetch_add(1, Ordering::AcqRel) + 1 == WAITERS {
                        all_there.notify_one();
                    }
                    rung.await;
                    count();
                }
            })
        })
        .collect();
    let begin = Instant::now();
    for round in 0..rounds {
        all_there.notified().await;
        arrived.store(0, Ordering::Release);
        bells[(round % 2) as usize].notify_waiters();
    }
    join_all(waiters).await;
    begin.elapsed()
}

/// The same with a value that is watched.
async fn watched_by_a_thousand(n: u64) -> Duration {
    const WATCHERS: u64 = 1000;
    let (sender, receiver) = watch::channel(0_u64);
    let seen = Arc::new(AtomicU64::new(0));
    let all_saw_it = Arc::new(Notify::new());
    let rounds = n / WATCHERS;
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|_| {
            let mut receiver = receiver.clone();
            let (seen, all_saw_it) = (seen.clone(), all_saw_it.clone());
            tokio::spawn(async move {
                while receiver.changed().await.is_ok() {
                    black_box(*receiver.borrow_and_update());
                    count();
                    if seen.fetch_add(1, Ordering::AcqRel) + 1 == WATCHERS {
                        all_saw_it.notify_one();
                    }
                }
            })
        })
        .collect();
    drop(receiver);
    let begin = Instant::now();
    for round in 1..=rounds {
        seen.store(0, Ordering::Release);
        sender.send(round).unwrap();
        all_saw_it.notified().await;
    }
    let took = begin.elapsed();
    drop(sender);
    join_all(watchers).await;
    took
}
