//! The Rust side of bench/exec/pool_bench.cpp: empty jobs from one thread that is none of the
//! pool's, until the last has run.
//!
//!   rust_pools_peer <crossbeam|mutex_receive|rayon> <workers>      one line, see measure.rs
//!
//! A pool is warmed up with a tenth of the jobs.

#[path = "../../measure.rs"]
mod measure;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

const JOBS: u64 = 500_000;

type Job = Box<dyn FnOnce() + Send>;

static LEFT: AtomicU64 = AtomicU64::new(0);

/// What every job does: counts itself down; the last one wakes the submitter.
fn job(submitter: &Thread) {
    measure::count();
    if LEFT.fetch_sub(1, Ordering::AcqRel) == 1 {
        submitter.unpark();
    }
}

fn drive(jobs: u64, mut submit: impl FnMut()) -> Duration {
    LEFT.store(jobs, Ordering::SeqCst);
    let begin = Instant::now();
    for _ in 0..jobs {
        submit();
    }
    while LEFT.load(Ordering::Acquire) != 0 {
        thread::park();
    }
    begin.elapsed()
}

fn measured(mut submit: impl FnMut()) -> Duration {
    drive(JOBS / 10, &mut submit);
    measure::forget_counts();
    drive(JOBS, submit)
}

/// The submitter, for jobs to wake.
fn leaked_submitter() -> &'static Thread {
    Box::leak(Box::new(thread::current()))
}

fn workers(number: usize, receive: impl Fn() -> Option<Job> + Send + Clone + 'static) -> Vec<JoinHandle<()>> {
    (0..number)
        .map(|_| {
            let receive = receive.clone();
            thread::spawn(move || {
                while let Some(job) = receive() {
                    job();
                }
            })
        })
        .collect()
}

fn crossbeam(number: usize) -> Duration {
    let submitter = leaked_submitter();
    let (sender, receiver) = crossbeam_channel::unbounded::<Job>();
    let threads = workers(number, move || receiver.recv().ok());
    let took = measured(|| sender.send(Box::new(move || job(submitter))).unwrap());
    drop(sender);
    threads.into_iter().for_each(|t| t.join().unwrap());
    took
}

/// A channel with one receiving end, which workers share by putting a mutex around it: one of them
/// waits for a job with the mutex in its hands.
fn mutex_receive(number: usize) -> Duration {
    let submitter = leaked_submitter();
    let (sender, receiver) = mpsc::channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    let threads = workers(number, move || receiver.lock().unwrap().recv().ok());
    let took = measured(|| sender.send(Box::new(move || job(submitter))).unwrap());
    drop(sender);
    threads.into_iter().for_each(|t| t.join().unwrap());
    took
}

fn rayon(number: usize) -> Duration {
    let submitter = leaked_submitter();
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(number).build().unwrap();
    measured(|| pool.spawn(move || job(submitter)))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = arguments.get(1).and_then(|n| n.parse().ok()).filter(|n| *n > 0);
    let (name, number) = match (arguments.first(), number) {
        (Some(name), Some(number)) => (name.as_str(), number),
        _ => {
            eprintln!("usage: rust_pools_peer <crossbeam|mutex_receive|rayon> <workers>");
            std::process::exit(2);
        }
    };
    let took = match name {
        "crossbeam" => crossbeam(number),
        "mutex_receive" => mutex_receive(number),
        "rayon" => rayon(number),
        _ => {
            eprintln!("rust_pools_peer: no pool '{name}'");
            std::process::exit(1);
        }
    };
    measure::report(name, &number.to_string(), JOBS, took);
}
