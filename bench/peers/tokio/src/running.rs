//! Workloads that are about running: bench/exec/runtime_bench.cpp.

use crate::measure::{self, count};
use crate::{measured, Outcome};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::task::yield_now;

pub const NAMES: &[(&str, &str)] = &[
    ("spawn_join", "mt"),
    ("spawn_join", "ct"),
    ("spawn_external", "mt"),
    ("yield", "mt"),
    ("yield", "ct"),
    ("timer_insert_cancel", "mt"),
    ("timer_insert_cancel", "ct"),
    ("timer_fire", "mt"),
    ("timer_fire", "ct"),
    ("skynet", "mt"),
];

pub fn run(workload: &str, param: &str) -> Outcome {
    let outcome = match (workload, param) {
        ("spawn_join", kind) => measured(kind, 300_000, spawn_join),
        ("spawn_external", "mt") => spawn_external(300_000),
        ("yield", kind) => measured(kind, 2_000_000, yields),
        ("timer_insert_cancel", kind) => measured(kind, 500_000, timer_insert_cancel),
        ("timer_fire", kind) => measured(kind, 100_000, timer_fire),
        ("skynet", "mt") => measured("mt", 1_000_000, skynet),
        _ => return None,
    };
    Some(outcome)
}

/// A thousand empty tasks are spawned, then joined in their order; and again.
async fn spawn_join(n: u64) -> Duration {
    const TOGETHER: u64 = 1000;
    let begin = Instant::now();
    for _ in 0..n / TOGETHER {
        let handles: Vec<_> = (0..TOGETHER).map(|_| tokio::spawn(async { count() })).collect();
        for handle in handles {
            handle.await.unwrap();
        }
    }
    begin.elapsed()
}

/// What a thread outside waits for: all tasks have counted down.
struct Countdown {
    left: AtomicU64,
    waiter: Thread,
}

/// Tasks are spawned by a thread that is none of the runtime's, and nobody joins them.
fn spawn_external(operations: u64) -> (u64, Duration) {
    let once = |n: u64| {
        let runtime = crate::runtime("mt");
        let countdown = Arc::new(Countdown { left: AtomicU64::new(n), waiter: std::thread::current() });
        let begin = Instant::now();
        for _ in 0..n {
            let countdown = Arc::clone(&countdown);
            runtime.spawn(async move {
                count();
                if countdown.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    countdown.waiter.unpark();
                }
            });
        }
        while countdown.left.load(Ordering::Acquire) != 0 {
            std::thread::park();
        }
        begin.elapsed()
    };
    once(operations / 10);
    measure::forget_counts();
    (operations, once(operations))
}

/// A thousand tasks give way in turns.
async fn yields(n: u64) -> Duration {
    const TASKS: u64 = 1000;
    let begin = Instant::now();
    let handles: Vec<_> = (0..TASKS)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..n / TASKS {
                    count();
                    yield_now().await;
                }
            })
        })
        .collect();
    for handle in handles {
        handle.await.unwrap();
    }
    begin.elapsed()
}

/// Polls something once, which is not ready then.
struct Begun<'a, F>(Pin<&'a mut F>);

impl<F: Future> Future for Begun<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        assert!(self.0.as_mut().poll(context).is_pending());
        Poll::Ready(())
    }
}

/// A sleep of a minute is begun and given up.
async fn timer_insert_cancel(n: u64) -> Duration {
    let begin = Instant::now();
    for _ in 0..n {
        let sleep = tokio::time::sleep(Duration::from_secs(60));
        tokio::pin!(sleep);
        Begun(sleep).await;
    }
    begin.elapsed()
}

/// All sleep until one moment, 100 ms ahead; what the last one is late by, and what it took to get
/// there, is shared out.
async fn timer_fire(n: u64) -> Duration {
    const AHEAD: Duration = Duration::from_millis(100);
    let begin = Instant::now();
    let due = tokio::time::Instant::from_std(begin + AHEAD);
    let handles: Vec<_> = (0..n)
        .map(|_| {
            tokio::spawn(async move {
                tokio::time::sleep_until(due).await;
                count();
            })
        })
        .collect();
    for handle in handles {
        handle.await.unwrap();
    }
    begin.elapsed().saturating_sub(AHEAD)
}

/// A tree of tasks, each with ten children, down to single leaves whose numbers are added up.
async fn skynet(n: u64) -> Duration {
    let begin = Instant::now();
    let sum = subtree(0, n).await;
    let took = begin.elapsed();
    assert_eq!(sum, n * (n - 1) / 2);
    took
}

fn subtree(first: u64, size: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if size == 1 {
            count();
            return first;
        }
        let part = size / 10;
        let children: Vec<_> =
            (0..10).map(|i| tokio::spawn(subtree(first + i * part, part))).collect();
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    })
}
