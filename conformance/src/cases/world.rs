//! Cases in the [World](crate::world): no process, no thread, no time that passes.

use std::collections::BTreeMap;

use mcp_proto::{Duration, Instant, News, OperationId, Report, Request};
use serde_json::{Value, json};

use super::case::Case;
use super::facts::{self, Played};
use super::step::{Doing, Task};
use super::{Front, config, identity};
use crate::world::{Choice, Splits, World};

/// So many reads are cut into single bytes; what comes then arrives as it was written.
const SINGLE_BYTES: u32 = 20_000;

/// The core in the simulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct InWorld {
    byte_by_byte: bool,
}

impl InWorld {
    /// The servers' output arrives as it was written.
    #[must_use]
    pub const fn as_written() -> Self {
        Self {
            byte_by_byte: false,
        }
    }

    /// It arrives a byte at a time (the first 20,000 of them), which must not make any difference.
    #[must_use]
    pub const fn byte_by_byte() -> Self {
        Self { byte_by_byte: true }
    }
}

impl Front for InWorld {
    fn name(&self) -> String {
        let how = if self.byte_by_byte {
            ", byte by byte"
        } else {
            ""
        };
        format!("the core in the World{how}")
    }

    fn play(&self, case: &Case) -> Result<Played, String> {
        let config = config(case, |peer| json!({"command": peer.name}))?;
        let scripts = case.peers.iter().map(|peer| {
            let script = peer.script(|_| {})?;
            Ok((peer.name.clone(), script))
        });
        let scripts = scripts.collect::<Result<Vec<_>, String>>()?;
        let mut world = World::new(config, identity(), scripts);
        if self.byte_by_byte {
            world = world.with_splits(Splits::Chosen);
            world = world.with_cuts(SingleBytes(SINGLE_BYTES));
        }
        world.connect();
        Ok(Play::new(world, case).run(case))
    }
}

/// Cuts a byte off as often as it says.
struct SingleBytes(u32);

impl Choice for SingleBytes {
    fn choose(&mut self, n: u32) -> u32 {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                n.saturating_sub(1)
            }
            None => 0,
        }
    }
}

/// What the application does at some time.
#[derive(Clone, Copy)]
enum Timer {
    Cancel(OperationId),
    Finish(OperationId),
}

struct Play {
    world: World,
    played: Played,
    timers: Vec<(Instant, Timer)>,
    /// The steps of the operations that were accepted.
    step_of: BTreeMap<OperationId, usize>,
    /// Those in the background that have not been waited for.
    background: Vec<(OperationId, usize, bool)>,
    snapshot_taken: bool,
}

impl Play {
    fn new(world: World, case: &Case) -> Self {
        let played = Played {
            steps: vec![Value::Null; case.client.len()],
            ..Played::default()
        };
        Self {
            world,
            played,
            timers: Vec::new(),
            step_of: BTreeMap::new(),
            background: Vec::new(),
            snapshot_taken: false,
        }
    }

    fn run(mut self, case: &Case) -> Played {
        for (index, step) in case.client.iter().enumerate() {
            let began = self.world.now();
            let fact = match &step.task {
                Task::Close => {
                    self.take_snapshot();
                    self.world.close();
                    self.wait_for_background();
                    Some(json!({"outcome": "complete"}))
                }
                Task::Report => self.settle(),
                Task::Sleep(span) => {
                    self.sleep(*span);
                    Some(json!({"outcome": "complete"}))
                }
                Task::Operation(doing) => self.operate(index, doing),
            };
            let took = self.world.now().since(began).as_millis();
            if let Some(mut fact) = fact {
                fact["tookMs"] = json!(u64::try_from(took).unwrap_or(u64::MAX));
                self.played.steps[index] = fact;
            }
        }
        self.wait_for_background();
        self.take_snapshot();
        self.end(case)
    }

    fn settle(&mut self) -> Option<Value> {
        let id = self.world.submit(mcp_proto::Operation::settle()).ok()?;
        self.wait(id)?;
        let report: Report = self.world.client.report();
        Some(facts::value(&report.to_json()))
    }

    fn operate(&mut self, index: usize, doing: &Doing) -> Option<Value> {
        let id = match self.world.submit(doing.operation.clone()) {
            Ok(id) => id,
            Err(error) => return Some(facts::refused(&error, doing.is_call())),
        };
        self.step_of.insert(id, index);
        let now = self.world.now();
        if let Some(after) = doing.cancel_after {
            self.timers.push((now + after, Timer::Cancel(id)));
        }
        if let Some(after) = doing.listen_for {
            self.timers.push((now + after, Timer::Finish(id)));
        }
        let listens = doing.operation.request == Request::Listen;
        if doing.background {
            self.background.push((id, index, doing.is_call()));
            return None;
        }
        let ended = self.wait(id)?;
        let mut fact = facts::outcome(&ended, doing.is_call());
        if listens {
            fact["events"] = self.events(id);
        }
        Some(fact)
    }

    fn events(&mut self, id: OperationId) -> Value {
        let all = self.world.client.take_notifications(id);
        all.into_iter().map(|one| one.method).collect()
    }

    /// Waits for the end of an operation, and does meanwhile what is to be done at some time.
    fn wait(&mut self, id: OperationId) -> Option<mcp_proto::Ended> {
        loop {
            let Some(next) = self.timers.iter().map(|(at, _)| *at).min() else {
                return self.world.run_until_ended(id);
            };
            let span = next.since(self.world.now());
            if let Some(ended) = self.world.run_until_ended_within(id, span) {
                return Some(ended);
            }
            self.fire();
        }
    }

    fn sleep(&mut self, span: Duration) {
        let end = self.world.now() + span;
        while self.world.now() < end {
            let next = self.timers.iter().map(|(at, _)| *at).min();
            let next = next.map_or(end, |next| next.min(end));
            self.world.run_for(next.since(self.world.now()));
            self.fire();
        }
    }

    fn fire(&mut self) {
        let now = self.world.now();
        let (due, later) = std::mem::take(&mut self.timers)
            .into_iter()
            .partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.timers = later;
        for (_, timer) in due {
            match timer {
                Timer::Cancel(id) if self.world.running().contains(&id) => self.world.cancel(id),
                Timer::Finish(id) => self.world.finish(id),
                Timer::Cancel(_) => {}
            }
        }
    }

    fn wait_for_background(&mut self) {
        for (id, index, is_call) in std::mem::take(&mut self.background) {
            if let Some(ended) = self.wait(id) {
                let mut fact = facts::outcome(&ended, is_call);
                fact["events"] = self.events(id);
                self.played.steps[index] = fact;
            }
        }
    }

    /// The report and what else is known, before the client is closed.
    fn take_snapshot(&mut self) {
        if std::mem::replace(&mut self.snapshot_taken, true) {
            return;
        }
        self.played.report = facts::value(&self.world.client.report().to_json());
        for diagnosis in self.world.client.diagnoses() {
            let details = facts::details(&diagnosis);
            self.played.details.insert(diagnosis.report.name, details);
        }
    }

    fn end(mut self, case: &Case) -> Played {
        self.world.close();
        if !self.world.client.is_closed() {
            self.played.complaints.push("it never closed".into());
        }
        for news in self.world.take_news() {
            if let News::Progress {
                operation,
                progress,
            } = news
                && let Some(index) = self.step_of.get(&operation)
                && let Some(Value::Object(fact)) = self.played.steps.get_mut(*index)
                && let Value::Array(all) = fact.entry("progress").or_insert_with(|| json!([]))
            {
                all.push(json!(progress.progress));
            }
        }
        for peer in &case.peers {
            let sent = self.world.sent_to(&peer.name);
            let lines = sent.lines().map(str::to_owned).collect();
            self.played.sent.insert(peer.name.clone(), lines);
        }
        if let Err(breach) = self.world.verdict() {
            self.played.complaints.push(breach.to_string());
        }
        self.played
    }
}
