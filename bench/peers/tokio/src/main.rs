//! Tokio's side of the workloads in bench/exec and bench/sync: the same operations in the same
//! order, by tasks of the same number.
//!
//!   tokio_peer <workload> <param>      one line, see measure.rs
//!   tokio_peer list                    all pairs of names
//!
//! `mt` is a runtime of two workers, `ct` the current thread. A workload runs once with a tenth of
//! its operations, to warm up, and then for the record, each time on a new runtime.

#[path = "../../measure.rs"]
mod measure;
mod running;
mod waiting;

use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

pub fn runtime(kind: &str) -> Runtime {
    let mut builder = match kind {
        "ct" => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if kind != "ct" {
        builder.worker_threads(2);
    }
    builder.enable_time().build().expect("a runtime")
}

/// How long `body(operations)` says that it took, as a task of the runtime.
pub fn measured<F, T>(kind: &str, operations: u64, body: F) -> (u64, Duration)
where
    F: Fn(u64) -> T,
    T: Future<Output = Duration> + Send + 'static,
{
    let once = |n: u64| {
        let task = body(n);
        runtime(kind).block_on(async { tokio::spawn(task).await.expect("no panic") })
    };
    once(operations / 10);
    measure::forget_counts();
    (operations, once(operations))
}

type Outcome = Option<(u64, Duration)>;

fn run(workload: &str, param: &str) -> Outcome {
    running::run(workload, param).or_else(|| waiting::run(workload, param))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [list] if list == "list" => {
            for (workload, param) in running::NAMES.iter().chain(waiting::NAMES) {
                println!("{workload} {param}");
            }
        }
        [workload, param] => match run(workload, param) {
            Some((operations, took)) => measure::report(workload, param, operations, took),
            None => {
                eprintln!("tokio_peer: no workload '{workload} {param}'; `list` names them");
                std::process::exit(1);
            }
        },
        _ => {
            eprintln!("usage: tokio_peer <workload> <param> | list");
            std::process::exit(2);
        }
    }
}
