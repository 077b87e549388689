//! What all Rust peers share: who did how much, and the line in which it is reported.
//!
//! A line is `workload,param,ns_per_op,operations per thread`, for instance
//! `spawn_join,mt,331.20,512003/487997`; nothing after the last comma when threads do not matter.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const MOST_THREADS: usize = 128;

#[repr(align(64))]
struct Tally(AtomicU64);

#[allow(clippy::declare_interior_mutable_const)]
const NOTHING: Tally = Tally(AtomicU64::new(0));
static TALLIES: [Tally; MOST_THREADS] = [NOTHING; MOST_THREADS];
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The calling thread has done one operation. Called on both sides of a comparison, from a function
/// of its own, so that it costs both the same.
#[inline(never)]
pub fn count() {
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(THREADS.fetch_add(1, Ordering::Relaxed) % MOST_THREADS);
        }
        let tally = &TALLIES[mine.get()].0;
        tally.store(tally.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    });
}

/// Makes the compiler believe that the value is looked at. (The standard one is newer than Debian's
/// compiler.)
#[inline(always)]
#[allow(dead_code)]
pub fn black_box<T>(value: T) -> T {
    // SAFETY: no instruction.
    unsafe { std::arch::asm!("/* {0} */", in(reg) &value, options(nostack, preserves_flags)) };
    value
}

pub fn forget_counts() {
    for tally in &TALLIES {
        tally.0.store(0, Ordering::Relaxed);
    }
}

pub fn report(workload: &str, param: &str, operations: u64, took: Duration) {
    let mut counts: Vec<u64> = TALLIES.iter().map(|t| t.0.load(Ordering::Relaxed)).filter(|n| *n > 0).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    let ns = took.as_nanos() as f64 / operations as f64;
    println!("{workload},{param},{ns:.2},{}", counts.join("/"));
}
