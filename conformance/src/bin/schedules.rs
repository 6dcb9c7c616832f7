//! Runs generated schedules in the World, each from a seed, and says which one breaks what.
//!
//! `schedules --count 100000` runs the seeds from 0 on; `schedules --seed 4711` runs that one again.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use conformance::schedules::{self, Failing, KINDS};

const USAGE: &str = "usage: schedules [--count N] [--seed FIRST] [--threads N]

  --count N      how many seeds to run; 100000 unless --seed is given, which stands for one
  --seed FIRST   the first seed; 0 without it
  --threads N    how many run at once; as many as there are processors";

struct Args {
    first: u64,
    count: u64,
    threads: usize,
}

fn args() -> Option<Args> {
    let (mut first, mut count, mut threads) = (None, None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = words.next()?.parse::<u64>().ok()?;
        match word.as_str() {
            "--count" => count = Some(number),
            "--seed" => first = Some(number),
            "--threads" => threads = usize::try_from(number).ok(),
            _ => return None,
        }
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let usual = if first.is_some() { 1 } else { 100_000 };
    Some(Args {
        count: count.unwrap_or(usual),
        first: first.unwrap_or(0),
        threads: threads.unwrap_or(processors).max(1),
    })
}

/// The failing seed that is the first of them, of those that were run before anybody noticed.
type Found = Option<(u64, Box<Failing>)>;

fn search(args: &Args) -> Found {
    let next = AtomicU64::new(args.first);
    let end = args.first.saturating_add(args.count);
    let found: Mutex<Found> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    if let Err(failing) = schedules::run(seed) {
                        next.store(end, Ordering::Relaxed);
                        let mut found = found.lock().unwrap_or_else(|lock| lock.into_inner());
                        if found.as_ref().is_none_or(|(earlier, _)| seed < *earlier) {
                            *found = Some((seed, failing));
                        }
                        return;
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(|lock| lock.into_inner())
}

fn main() -> ExitCode {
    let Some(args) = args() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // What panics is reported as a failure of its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let began = Instant::now();
    let found = search(&args);
    let seconds = began.elapsed().as_secs_f64();
    if let Some((seed, failing)) = found {
        let Failing { kind, failure, .. } = &*failing;
        println!("{failure}");
        println!("plan {:?}\nschedule {:?}", failing.plan, failing.schedule);
        println!(
            "schedules: seed {seed} breaks {} ({kind}), made smaller above",
            failure.what
        );
        println!(
            "schedules: again with: cargo run --profile checked -p conformance --bin schedules -- --seed {seed}"
        );
        return ExitCode::FAILURE;
    }
    let shares = KINDS.map(|kind| format!("{} {} %", kind.name, kind.share));
    println!("{}", shares.join(", "));
    println!(
        "schedules: {} schedules from seed {} hold, in {seconds:.0} s ({:.0} a second)",
        args.count,
        args.first,
        args.count as f64 / seconds.max(0.001)
    );
    ExitCode::SUCCESS
}
