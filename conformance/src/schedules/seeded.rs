//! Runs from seeds, for the binary `schedules`.

use std::panic::{self, AssertUnwindSafe};

use super::Failure;

/// Attempts to make a failing run smaller.
const SHRINKS_MAX: usize = 600;

/// What is checked of a run.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// How many of a hundred runs check it.
    pub share: u64,
    check: fn(&[u8], &[u8]) -> Result<(), Failure>,
}

impl Kind {
    /// Checks it of one run.
    ///
    /// # Errors
    /// What did not hold.
    pub fn check(&self, plan: &[u8], schedule: &[u8]) -> Result<(), Failure> {
        (self.check)(plan, schedule)
    }
}

/// All of them. Those that run several worlds for one schedule have smaller shares.
pub const KINDS: [Kind; 5] = [
    Kind {
        name: "border_holds",
        share: 76,
        check: super::border_holds,
    },
    Kind {
        name: "border_holds_under_odd_clocks",
        share: 14,
        check: super::border_holds_under_odd_clocks,
    },
    Kind {
        name: "same_inputs_same_actions",
        share: 4,
        check: super::same_inputs_same_actions,
    },
    Kind {
        name: "cuts_make_no_difference",
        share: 3,
        check: super::cuts_make_no_difference,
    },
    Kind {
        name: "no_peer_harms_another",
        share: 3,
        check: super::no_peer_harms_another,
    },
];

/// A seed whose run failed, made as small as was found.
#[derive(Clone, Debug)]
pub struct Failing {
    /// What was checked.
    pub kind: &'static str,
    /// The bytes that decide about configuration, servers and application.
    pub plan: Vec<u8>,
    /// The bytes of the schedule, the cuts or the neighbour.
    pub schedule: Vec<u8>,
    /// What did not hold.
    pub failure: Failure,
}

/// What the run of this seed checks.
#[must_use]
pub fn kind_of(seed: u64) -> Kind {
    let mut place = Numbers(seed).next() % 100;
    for kind in KINDS {
        if place < kind.share {
            return kind;
        }
        place -= kind.share;
    }
    KINDS[0]
}

/// The plan and the schedule of this seed.
#[must_use]
pub fn inputs(seed: u64) -> (Vec<u8>, Vec<u8>) {
    let mut numbers = Numbers(seed);
    numbers.next();
    let plan = numbers.bytes(480);
    let schedule = numbers.bytes(480);
    (plan, schedule)
}

/// Runs the schedule of this seed.
///
/// # Errors
/// The failure, with smaller inputs than those of the seed where some fail in the same way.
pub fn run(seed: u64) -> Result<(), Box<Failing>> {
    let kind = kind_of(seed);
    let (plan, schedule) = inputs(seed);
    let Err(failure) = checked(kind, &plan, &schedule) else {
        return Ok(());
    };
    Err(Box::new(shrunk(kind, [plan, schedule], failure)))
}

/// A panic is a failure too.
fn checked(kind: Kind, plan: &[u8], schedule: &[u8]) -> Result<(), Failure> {
    let run = AssertUnwindSafe(|| (kind.check)(plan, schedule));
    panic::catch_unwind(run).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Err(Failure {
            what: "Panic".into(),
            detail: text.unwrap_or("without a text").into(),
            transcript: String::new(),
        })
    })
}

/// Cuts the inputs off and sets parts of them to zero, the tamest decision, as long as the same rule is
/// broken.
fn shrunk(kind: Kind, mut inputs: [Vec<u8>; 2], mut failure: Failure) -> Failing {
    let mut attempts = 0;
    let mut size = inputs[0].len().max(inputs[1].len());
    while size > 0 && attempts < SHRINKS_MAX {
        for which in 0..2 {
            let mut at = inputs[which].len();
            while at > 0 && attempts < SHRINKS_MAX {
                let from = at.saturating_sub(size);
                let mut smaller = inputs.clone();
                if at == smaller[which].len() {
                    smaller[which].truncate(from);
                } else {
                    smaller[which][from..at].fill(0);
                }
                at = from;
                if smaller == inputs {
                    continue;
                }
                attempts += 1;
                match checked(kind, &smaller[0], &smaller[1]) {
                    Err(again) if again.what == failure.what => {
                        (inputs, failure) = (smaller, again);
                    }
                    _ => {}
                }
            }
        }
        size /= 2;
    }
    let [plan, schedule] = inputs;
    Failing {
        kind: kind.name,
        plan,
        schedule,
        failure,
    }
}

/// SplitMix64: any seed is as good as another, also consecutive ones.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Fewer than so many bytes.
    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let count = self.next() % most;
        (0..count).map(|_| (self.next() >> 56) as u8).collect()
    }
}
