//! Whole runs of the World from bytes, and what has to hold of them.
//!
//! The same functions serve the property tests (which shrink the bytes), the fuzz target (which mutates
//! them) and the binary `schedules` (which derives them from a seed, a hundred thousand times).

mod seeded;

use std::fmt;

use mcp_proto::peer::Counters;
use mcp_proto::{Config, Duration, Identity, News, Operation, PeerConfig};

pub use seeded::{Failing, KINDS, Kind, inputs, kind_of, run};

use crate::fake_server::Script;
use crate::strategies::{self, perform};
use crate::world::{Bytes, Choice as _, Fault, Splits, World, millis};

/// The peers of a generated world.
pub const NAMES: [&str; 2] = ["a", "b"];
/// Long enough for every deadline of generated peers, one after the other.
pub const LONG: Duration = Duration::from_secs(60);

/// What did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The rule, or the property.
    pub what: String,
    /// How it was broken.
    pub detail: String,
    /// What happened until then, one line each.
    pub transcript: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, detail, .. } = self;
        write!(f, "{what}: {detail}\n{}", self.transcript)
    }
}

fn fail(world: &World, what: &str, detail: impl Into<String>) -> Failure {
    Failure {
        what: what.into(),
        detail: detail.into(),
        transcript: world.transcript(),
    }
}

fn verdict(world: &mut World) -> Result<(), Failure> {
    world.verdict().map_err(|breach| Failure {
        what: format!("{:?}", breach.rule),
        detail: breach.detail.clone(),
        transcript: breach.transcript.clone(),
    })
}

/// Two peers, whatever servers, an application that does anything, and a schedule that decides.
fn generated(plan: &[u8], schedule: &[u8], adapt: impl FnOnce(World) -> World) -> World {
    let mut plan = Bytes::new(plan);
    let world = strategies::world(&mut plan, &NAMES, Bytes::new(Vec::from(schedule)));
    let mut world = adapt(world);
    world.connect();
    let steps = strategies::steps(&mut plan, &NAMES);
    perform(&mut world, &steps);
    world
}

/// Lets everything come to its end: whatever was accepted ends by its deadlines, and close ends all.
fn finish(world: &mut World) -> Result<(), Failure> {
    world.run_for(LONG);
    verdict(world)?;
    let running = world.running();
    if !running.is_empty() {
        return Err(fail(world, "EndsOnce", format!("{running:?} still run")));
    }
    world.close();
    verdict(world)?;
    if !world.client.is_closed() {
        return Err(fail(world, "ClosedLast", "never closed"));
    }
    match world.client.poll_timeout() {
        None => Ok(()),
        Some(due) => Err(fail(world, "Timer", format!("closed, and due at {due}"))),
    }
}

/// P1, P3, P4, P6, P7 (R1, R5, R14, R15, R40, R41, R42, R60, R81, R90, R100): the border holds, every
/// accepted operation ends exactly once and by its deadlines, closing always ends.
///
/// # Errors
/// What did not hold.
pub fn border_holds(plan: &[u8], schedule: &[u8]) -> Result<(), Failure> {
    let mut world = generated(plan, schedule, |world| world);
    finish(&mut world)
}

/// P10 (R1, R41): a clock that stands still, goes backwards or jumps by a year breaks nothing.
///
/// # Errors
/// What did not hold.
pub fn border_holds_under_odd_clocks(plan: &[u8], schedule: &[u8]) -> Result<(), Failure> {
    let mut world = generated(plan, schedule, World::with_odd_clock);
    // Time is no measure here.
    let mut turns = 0;
    while !world.running().is_empty() && turns < 20_000 && world.turn() {
        turns += 1;
    }
    finish(&mut world)
}

/// P8 (R7): the same inputs give the same actions, byte by byte.
///
/// # Errors
/// What did not hold.
pub fn same_inputs_same_actions(plan: &[u8], schedule: &[u8]) -> Result<(), Failure> {
    let run = || {
        let mut world = generated(plan, schedule, World::with_fingerprint);
        world.run_for(LONG);
        world.close();
        verdict(&mut world)?;
        Ok((world.fingerprint(), world))
    };
    let ((first, _), (second, world)) = (run()?, run()?);
    if first == second {
        return Ok(());
    }
    Err(fail(&world, "Deterministic", "the second run differs"))
}

/// What an application sees of one peer when everything arrives as soon as it can.
#[derive(Debug, PartialEq)]
struct Seen {
    news: Vec<News>,
    report: String,
    counters: Counters,
    written: String,
}

fn seen(plan: &[u8], cut: impl FnOnce(World) -> World) -> Result<(Seen, World), Failure> {
    let mut plan = Bytes::new(plan);
    let peers = vec![strategies::peer(&mut plan, "a")];
    let scripts = vec![("a".to_owned(), strategies::script(&mut plan))];
    let identity = strategies::identity(&mut plan);
    let (config, file) = strategies::config(&mut plan, peers);
    let world = file.put_in(World::new(config, identity, scripts));
    let mut world = cut(world.with_stamps().with_untrusted_servers());
    world.connect();
    let steps = strategies::steps(&mut plan, &["a"]);
    perform(&mut world, &steps);
    world.run_for(LONG);
    world.close();
    verdict(&mut world)?;
    let mut counters = world.client.diagnoses().remove(0).counters;
    // What arrives on a link that is given up is not counted.
    counters.bytes_received = 0;
    let seen = Seen {
        news: world.take_news(),
        report: world.client.report().to_string(),
        counters,
        written: world.sent_to("a"),
    };
    Ok((seen, world))
}

/// P2 (R100): however the server's output is cut, the application sees the same, and the server too.
///
/// # Errors
/// What did not hold.
pub fn cuts_make_no_difference(plan: &[u8], cuts: &[u8]) -> Result<(), Failure> {
    let (whole, _) = seen(plan, |world| world)?;
    let bytewise = seen(plan, |world| world.with_splits(Splits::OneByte))?;
    let chosen = seen(plan, |world| world.with_cuts(Bytes::new(Vec::from(cuts))))?;
    for (how, (cut, world)) in [("byte by byte", bytewise), ("cut", chosen)] {
        if cut != whole {
            let detail = format!("{how} {cut:#?}\nas it was written {whole:#?}");
            return Err(fail(&world, "Cuts", detail));
        }
    }
    Ok(())
}

/// The neighbour `a` of peer `b`: how it is configured, what it runs, and what befalls it.
struct Neighbour<'a> {
    peer: Option<&'a PeerConfig>,
    first: bool,
    script: Option<Script>,
    endless: bool,
    faults: &'a [u8],
}

/// Calls to peer `b` alone, while `a` is whatever it is. Gives what `b` and its callers see.
fn beside(plan: &[u8], b: &PeerConfig, neighbour: &Neighbour<'_>) -> Result<Beside, Failure> {
    let mut plan = Bytes::new(plan);
    let mut faults = Bytes::new(neighbour.faults);
    let mut scripts = vec![("b".to_owned(), strategies::script(&mut plan))];
    scripts.extend(neighbour.script.clone().map(|script| ("a".into(), script)));
    let mut peers = vec![b.clone()];
    let at = usize::from(!neighbour.first);
    if let Some(peer) = neighbour.peer {
        peers.insert(at, peer.clone());
    }
    let world = World::new(Config::new(peers), Identity::default(), scripts);
    let mut world = world.with_untrusted_servers();
    if neighbour.endless {
        world = world.with_endless_start("a");
    }
    world.connect();
    if plan.one_in(2) {
        let _ = world.submit(Operation::listen(None).on("a"));
    }
    let mut outcomes = String::new();
    for _ in 0..1 + plan.choose(4) {
        let submitted = world.submit(strategies::call(&mut plan, &[]).on("b"));
        // The other one is busy as well, comes and goes, or is not there at all. What is asked of it is the
        // same in any case: calls are counted, and their span ids derive from that.
        let _ = world.submit(strategies::operation(&mut plan, &["a"]).on("a"));
        if let Some(fault) = fault(faults.choose(8)) {
            world.inject("a", fault);
        }
        let ended = submitted.map(|id| world.run_until_ended(id));
        outcomes += &format!("{ended:?}\n");
        if plan.one_in(3) {
            world.run_for(millis(u64::from(plan.choose(5_000))));
        }
    }
    world.run_for(LONG);
    let transcript = world.transcript_of("b");
    verdict(&mut world)?;
    world.close();
    verdict(&mut world)?;
    Ok(Beside {
        transcript,
        outcomes,
        sent: world.sent_to("b"),
        world,
    })
}

fn fault(which: u32) -> Option<Fault> {
    Some(match which {
        1 => Fault::Kill,
        2 => Fault::CloseOutput,
        3 => Fault::ExitOnly,
        4 => Fault::StopReading,
        5 => Fault::CloseInput,
        6 => Fault::StderrFlood(50_000),
        _ => return None,
    })
}

struct Beside {
    transcript: String,
    outcomes: String,
    sent: String,
    world: World,
}

/// P9 (R2): what happens between the client and one peer is the same, byte by byte, with a hostile, a
/// hanging, a dead, a silent or an absent neighbour, whatever befalls that one.
///
/// # Errors
/// What did not hold.
///
/// # Panics
/// Never: the scripts in it are valid.
pub fn no_peer_harms_another(plan: &[u8], hostile: &[u8]) -> Result<(), Failure> {
    let b = strategies::peer(&mut Bytes::new(plan), "b");
    let mut choice = Bytes::new(hostile);
    let a = strategies::peer(&mut choice, "a");
    let bad = strategies::script(&mut choice);
    let script = |text: &str| Script::from_json(text).expect("a valid script");
    let silent = script(r#"{"steps":[{"on":"server/discover"},{"hang":true}]}"#);
    let dead = script(r#"{"steps":[{"exit":1}]}"#);
    let mut alone = Neighbour {
        peer: None,
        first: true,
        script: None,
        endless: false,
        faults: &[],
    };
    let expected = beside(plan, &b, &alone)?;
    let kinds = [
        ("hostile", Some(bad), false),
        ("silent", Some(silent), false),
        ("dead", Some(dead), false),
        ("missing", None, false),
        ("never started", None, true),
    ];
    for (how, script, endless) in kinds {
        alone.first = !alone.first;
        let neighbour = Neighbour {
            peer: Some(&a),
            first: alone.first,
            script,
            endless,
            faults: hostile,
        };
        let got = beside(plan, &b, &neighbour)?;
        for (what, seen, alone) in [
            ("transcript", &got.transcript, &expected.transcript),
            ("input", &got.sent, &expected.sent),
            ("outcomes", &got.outcomes, &expected.outcomes),
        ] {
            if seen != alone {
                let detail = format!("{how} neighbour, {what}:\n{seen}\nalone:\n{alone}");
                return Err(fail(&got.world, "Neighbours", detail));
            }
        }
    }
    Ok(())
}
