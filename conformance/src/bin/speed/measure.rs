//! Rounds, turns and medians.

use std::time::{Duration, Instant};

use crate::report::{Row, Target};

/// Does the work so many times and says how long that took.
pub(crate) type Contender<'a> = Box<dyn FnMut(u64) -> Duration + 'a>;

/// Measures the row of this name.
pub(crate) type Measure = fn(&Plan, &'static str) -> Row;

/// Fewest rounds of a full run, however long one takes.
const ROUNDS_MIN: usize = 9;

/// How thorough to be.
///
/// Turns are short and many, not long and few: on a machine that is not quiet most of them are not
/// interrupted, so that the median is that of an undisturbed one.
#[derive(Clone)]
pub(crate) struct Plan {
    rounds_min: usize,
    row: Duration,
    turn: Duration,
    only_ours: bool,
    wanted: Option<String>,
}

impl Plan {
    /// `wanted` is a part of the names of the rows to measure; `None` means all of them.
    pub(crate) fn new(quick: bool, only_ours: bool, wanted: Option<String>) -> Self {
        let (rounds_min, row_ms) = if quick { (1, 0) } else { (ROUNDS_MIN, 2_000) };
        Self {
            rounds_min,
            row: Duration::from_millis(row_ms),
            turn: Duration::from_millis(1),
            only_ours,
            wanted,
        }
    }

    /// The same with longer turns, for work that takes a while to get going.
    pub(crate) fn with_turn(&self, turn: Duration) -> Self {
        Self {
            turn,
            ..self.clone()
        }
    }

    /// Whether a row is to be measured.
    pub(crate) fn wants(&self, work: &str) -> bool {
        self.wanted.as_ref().is_none_or(|part| work.contains(part))
    }

    /// Measures one row: after a warm-up that also finds out how often the work fits into a turn, the
    /// contenders take turns, each round beginning with another one.
    pub(crate) fn row<'a>(
        &self,
        work: &'static str,
        target: Target,
        ours: Contender<'a>,
        rmcp: Option<Contender<'a>>,
        floor: Option<Contender<'a>>,
    ) -> Row {
        let (rmcp, floor) = if self.only_ours {
            (None, None)
        } else {
            (rmcp, floor)
        };
        let (has_rmcp, has_floor) = (rmcp.is_some(), floor.is_some());
        let mut contenders: Vec<Contender<'a>> =
            [Some(ours), rmcp, floor].into_iter().flatten().collect();
        let counts: Vec<u64> = contenders
            .iter_mut()
            .map(|contender| self.warm_up(contender))
            .collect();
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
        let begun = Instant::now();
        let mut round = 0;
        while round < self.rounds_min || begun.elapsed() < self.row {
            for turn in 0..contenders.len() {
                let index = (round + turn) % contenders.len();
                let count = counts[index];
                let elapsed = contenders[index](count);
                times[index].push(elapsed.as_secs_f64() * 1e6 / count as f64);
            }
            round += 1;
        }
        let mut medians = times.into_iter().map(median);
        Row {
            work,
            target,
            ours: medians.next().unwrap_or(f64::NAN),
            rmcp: has_rmcp.then(|| medians.next()).flatten(),
            floor: has_floor.then(|| medians.next()).flatten(),
        }
    }

    /// Doubles the number of repetitions until they fill half a turn; gives the number that fills one.
    fn warm_up(&self, contender: &mut Contender<'_>) -> u64 {
        let begun = Instant::now();
        let mut count = 1;
        loop {
            let elapsed = contender(count);
            if elapsed * 2 >= self.turn || begun.elapsed() >= self.turn * 20 {
                let per_turn = self.turn.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
                return ((count as f64 * per_turn) as u64).max(1);
            }
            count *= 2;
        }
    }
}

/// A contender whose work needs no preparation.
pub(crate) fn repeat<'a>(mut work: impl FnMut() + 'a) -> Contender<'a> {
    Box::new(move |count| {
        let begun = Instant::now();
        for _ in 0..count {
            work();
        }
        begun.elapsed()
    })
}

/// A contender that prepares each repetition outside of the clock.
pub(crate) fn prepared<'a, T>(
    mut prepare: impl FnMut() -> T + 'a,
    mut work: impl FnMut(&mut T) + 'a,
) -> Contender<'a> {
    Box::new(move |count| {
        let mut total = Duration::ZERO;
        for _ in 0..count {
            let mut input = prepare();
            let begun = Instant::now();
            work(&mut input);
            total += begun.elapsed();
        }
        total
    })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
