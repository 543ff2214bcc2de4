//! Peer of bench/next in Rust: croner. Prints `peer figure rate`.
//!
//! Usage: next-rust SECONDS      (of each figure)

use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::America::New_York;
use chrono_tz::Tz;
use croner::Cron;
use std::str::FromStr;
use std::time::Instant;

fn rate(figure: &str, seconds: f64, mut call: impl FnMut(usize)) {
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed().as_secs_f64() < seconds {
        for _ in 0..64 {
            call(count);
            count += 1;
        }
    }
    println!("croner-rust {} {:.0}", figure, count as f64 / begin.elapsed().as_secs_f64());
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let low = Utc.with_ymd_and_hms(2020, 1, 1, 0, 0, 0).unwrap().timestamp();
    let high = Utc.with_ymd_and_hms(2040, 1, 1, 0, 0, 0).unwrap().timestamp();
    let mut state: u64 = 20261130;
    let instants: Vec<DateTime<Tz>> = (0..4096)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let t = low + (state % (high - low) as u64) as i64;
            New_York.timestamp_opt(t, 0).unwrap()
        })
        .collect();
    let cron = Cron::from_str("30 9 * * 1-5").unwrap();
    rate("weekday_new_york", seconds, |i| {
        std::hint::black_box(cron.find_next_occurrence(&instants[i % 4096], false).unwrap());
    });
    let texts = ["30 9 * * 1-5", "*/15 8-18 * * MON-FRI", "0 0 1 */3 *"];
    rate("parse", seconds, |i| {
        std::hint::black_box(Cron::from_str(texts[i % 3]).unwrap());
    });
}
