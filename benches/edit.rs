//! How long the pure edit takes on the largest file it accepts: `cargo bench`.
//!
//! Prints the median and the best of several rounds, in microseconds. A benchmark, never a test.

#![allow(clippy::expect_used, reason = "a benchmark that cannot go on has failed")]

use std::hint::black_box;
use std::time::Instant;

use editgate::tool::edit_file::replace::{Intent, replace};

const ROUNDS: usize = 101;

fn main() {
    let mut file: Vec<u8> =
        (0..20_000).flat_map(|n| format!("{n:06} a line of a file that is large\r\n").into_bytes()).collect();
    file.truncate(1 << 20);
    println!("{:<12} {:>10} {:>10}", "edit", "median us", "best us");
    for (name, line, find) in [
        ("by line", Some(13_337), None),
        ("by find", None, Some("013336 a line")),
        ("moved", Some(1), Some("013336 a line")),
        ("two lines", None, Some("013336 a line of a file that is large\n013337")),
    ] {
        let mut times: Vec<u128> = (0..ROUNDS)
            .map(|_| {
                let started = Instant::now();
                let edited =
                    replace("f", black_box(&file), Intent { content: "another line", line, find }).expect("an edit");
                black_box(edited);
                started.elapsed().as_micros()
            })
            .collect();
        times.sort_unstable();
        println!("{name:<12} {:>10} {:>10}", times[ROUNDS / 2], times[0]);
    }
}
