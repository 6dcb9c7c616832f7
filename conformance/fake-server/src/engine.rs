//! The step machine: where the script stands, what it remembers, what it asserts.
//!
//! The machine is always either finished or stopped at a step that needs time or a client
//! message. A client message goes, in this order, to the step the script stands at, to an
//! `on_each` of its method, and else to the built-in behaviour. While the script stands at a
//! step that needs time, a message that the next waiting step would take is kept for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::message::{self, Kind};
use crate::script::{Emission, Matched, Matcher, Render, Script, Step};
use crate::{Era, Output, Sink};

/// State of one run of one list of steps.
#[derive(Debug)]
pub(crate) struct Engine {
    steps: Arc<[Step]>,
    position: usize,
    /// When the step at `position` has waited long enough.
    deadline: Option<Duration>,
    /// How often the loop at `position` has run.
    rounds: u64,
    prelude: Option<Prelude>,
    kept: VecDeque<Value>,
    each: Vec<Each>,
    forbidden: Vec<String>,
    ordered: Vec<(String, String)>,
    seen: BTreeSet<String>,
    last: Matched,
    named: BTreeMap<String, Matched>,
    subscription_id: Value,
    /// `$N` of steps that are neither a loop nor an `on_each`.
    counted: u64,
    hung: bool,
    ignores_eof: bool,
}

/// The handshake the built-in behaviour does before the first step runs.
#[derive(Clone, Copy, Debug)]
enum Prelude {
    Discover,
    Initialize,
    Either,
}

#[derive(Debug)]
struct Each {
    matcher: Matcher,
    emit: Vec<Emission>,
    count: u64,
}

impl Engine {
    pub(crate) fn new(script: &Script) -> Self {
        let prelude = match script.era {
            _ if script.steps.is_empty() || script.handshake_is_scripted() => None,
            Era::Modern => Some(Prelude::Discover),
            Era::Legacy(_) => Some(Prelude::Initialize),
            Era::Dual => Some(Prelude::Either),
        };
        Self {
            steps: Arc::clone(&script.steps),
            position: 0,
            deadline: None,
            rounds: 0,
            prelude,
            kept: VecDeque::new(),
            each: Vec::new(),
            forbidden: Vec::new(),
            ordered: Vec::new(),
            seen: BTreeSet::new(),
            last: Matched::default(),
            named: BTreeMap::new(),
            subscription_id: Value::Null,
            counted: 0,
            hung: false,
            ignores_eof: false,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    pub(crate) fn hung(&self) -> bool {
        self.hung
    }

    pub(crate) fn ignores_eof(&self) -> bool {
        self.ignores_eof || self.hung
    }

    /// Takes note of a message before anything handles it. Call [`Engine::run`] next: the note
    /// may have ended the prelude or a silence the script asserted.
    pub(crate) fn note(&mut self, message: &Value, sink: &mut Sink) {
        if let Some(prelude) = self.prelude
            && !prelude.covers(message)
        {
            self.prelude = None;
        }
        if let Kind::Request {
            id,
            method: "subscriptions/listen",
        } = Kind::of(message)
        {
            self.subscription_id = id.clone();
        }
        if self.prelude.is_none()
            && let Some(Step::AssertNoInput(_)) = self.steps.get(self.position)
        {
            let what = message::method(message).unwrap_or("a response");
            sink.fail(format!(
                "steps[{}]: the client sent {what} where it had to be silent",
                self.position
            ));
            self.advance();
        }
    }

    /// Checks a message against the assertions in force, and offers it to the script. What comes
    /// back is for the built-in behaviour. Call [`Engine::run`] next.
    #[must_use]
    pub(crate) fn offer(&mut self, message: Value, sink: &mut Sink) -> Option<Value> {
        self.check(&message, sink);
        if self.hung {
            return None;
        }
        if let Some(prelude) = self.prelude {
            if prelude.ends_with(&message) {
                self.prelude = None;
            }
            return Some(message);
        }
        let current = self.steps.get(self.position);
        let waits = current.is_some_and(Step::waits_for_client);
        if waits && current.is_some_and(|step| step.takes(&message)) {
            self.kept.push_back(message);
            return None;
        }
        if let Some(message) = self.answer_each(message, sink) {
            let next = self.steps.iter().skip(self.position);
            let mut next = next.skip_while(|step| !step.waits_for_client());
            if !waits && next.next().is_some_and(|step| step.takes(&message)) {
                self.kept.push_back(message);
                return None;
            }
            return Some(message);
        }
        None
    }

    /// Runs steps until one has to wait. A message that comes back is for the built-in behaviour;
    /// call again until none does.
    #[must_use]
    pub(crate) fn run(&mut self, now: Duration, sink: &mut Sink) -> Option<Value> {
        if self.prelude.is_some() {
            return None;
        }
        let steps = Arc::clone(&self.steps);
        while !self.hung && !sink.exited() {
            let Some(step) = steps.get(self.position) else {
                let message = self.kept.pop_front()?;
                match self.answer_each(message, sink) {
                    Some(message) => return Some(message),
                    None => continue,
                }
            };
            let ended = match step {
                Step::On { name, within, .. } => match self.take(step, sink) {
                    Taken::Match(message) => {
                        self.remember(&message, name.as_deref());
                        true
                    }
                    Taken::Other(message) => return Some(message),
                    Taken::Nothing => within.is_some_and(|within| self.waited(within, now)),
                },
                Step::OnResponse(_) => match self.take(step, sink) {
                    Taken::Match(_) => true,
                    Taken::Other(message) => return Some(message),
                    Taken::Nothing => false,
                },
                Step::ExpectNext {
                    method,
                    else_exit,
                    name,
                } => match self.kept.pop_front() {
                    None => false,
                    Some(message) if message::method(&message) == Some(method) => {
                        self.remember(&message, name.as_deref());
                        true
                    }
                    Some(message) => {
                        self.unexpected(method, &message, *else_exit, sink);
                        self.advance();
                        match self.answer_each(message, sink) {
                            Some(message) => return Some(message),
                            None => continue,
                        }
                    }
                },
                Step::AssertNoInput(wait) | Step::Sleep(wait) => self.waited(*wait, now),
                Step::Loop { every, emit, count } => self.rounds(*every, emit, *count, now, sink),
                instant => {
                    self.perform(instant, sink);
                    true
                }
            };
            if !ended {
                return None;
            }
            self.advance();
        }
        None
    }

    /// A step that takes no time.
    fn perform(&mut self, step: &Step, sink: &mut Sink) {
        match step {
            Step::CloseStdin => sink.stop_reading(Output::CloseStdin),
            Step::CloseStdout => sink.push(Output::CloseStdout),
            Step::StopReading => sink.stop_reading(Output::StopReading),
            Step::IgnoreSigterm => sink.push(Output::IgnoreSigterm),
            Step::IgnoreStdinEof => self.ignores_eof = true,
            Step::SpawnChild(kind) => sink.push(Output::SpawnChild { kind: *kind }),
            Step::Hang => self.hung = true,
            Step::Emit(emission) => {
                if emission.uses_counter() {
                    self.counted += 1;
                }
                self.emit(emission, &self.last, self.counted, sink);
            }
            Step::IfSeen { name, emit } => {
                if self.named.contains_key(name) {
                    if emit.iter().any(Emission::uses_counter) {
                        self.counted += 1;
                    }
                    self.emit_all(emit, self.counted, sink);
                }
            }
            Step::OnEach { matcher, emit } => self.each.push(Each {
                matcher: matcher.clone(),
                emit: emit.clone(),
                count: 0,
            }),
            Step::Forbid(method) => self.forbidden.push(method.clone()),
            Step::ForbidBefore(first, second) => {
                if self.seen.contains(first) && !self.seen.contains(second) {
                    sink.fail(too_early(first, second));
                }
                self.ordered.push((first.clone(), second.clone()));
            }
            // Those that wait are `run`'s own.
            Step::AssertNoInput(_)
            | Step::ExpectNext { .. }
            | Step::Loop { .. }
            | Step::On { .. }
            | Step::OnResponse(_)
            | Step::Sleep(_) => {}
        }
    }

    fn advance(&mut self) {
        self.position += 1;
        self.deadline = None;
        self.rounds = 0;
    }

    /// Whether the current step, begun at the first call, has lasted this long.
    fn waited(&mut self, wait: Duration, now: Duration) -> bool {
        *self
            .deadline
            .get_or_insert_with(|| now.saturating_add(wait))
            <= now
    }

    fn rounds(
        &mut self,
        every: Duration,
        emit: &[Emission],
        count: Option<u64>,
        now: Duration,
        sink: &mut Sink,
    ) -> bool {
        while count.is_none_or(|count| self.rounds < count) {
            let due = *self.deadline.get_or_insert(now);
            if due > now || sink.exited() {
                return false;
            }
            self.rounds += 1;
            self.emit_all(emit, self.rounds, sink);
            self.deadline = Some(due.saturating_add(every));
        }
        true
    }

    /// The first kept message that the step takes; those before it are not the script's any more.
    fn take(&mut self, step: &Step, sink: &mut Sink) -> Taken {
        while let Some(message) = self.kept.pop_front() {
            if step.takes(&message) {
                return Taken::Match(message);
            }
            if let Some(message) = self.answer_each(message, sink) {
                return Taken::Other(message);
            }
        }
        Taken::Nothing
    }

    fn remember(&mut self, message: &Value, name: Option<&str>) {
        let matched = Matched::new(message);
        if let Some(name) = name {
            self.named.insert(name.to_owned(), matched.clone());
        }
        // `$ID` is the last *request*, whatever notifications were waited for since.
        if message.get("id").is_some() {
            self.last = matched;
        }
    }

    /// Answers a message that has an `on_each`; gives back one that has none.
    fn answer_each(&mut self, message: Value, sink: &mut Sink) -> Option<Value> {
        let index = self
            .each
            .iter()
            .rposition(|each| each.matcher.matches(&message));
        let Some(each) = index.and_then(|index| self.each.get_mut(index)) else {
            return Some(message);
        };
        each.count += 1;
        let (count, emit) = (each.count, each.emit.clone());
        // Its `$ID` is its own: the steps may still owe an answer to the request they matched.
        let matched = Matched::new(&message);
        for emission in &emit {
            self.emit(emission, &matched, count, sink);
        }
        None
    }

    fn check(&mut self, message: &Value, sink: &mut Sink) {
        let Some(method) = message::method(message) else {
            return;
        };
        if self.forbidden.iter().any(|forbidden| forbidden == method) {
            sink.fail(format!("the client sent {method}, which is forbidden"));
        }
        for (first, second) in &self.ordered {
            if first == method && !self.seen.contains(second) {
                sink.fail(too_early(first, second));
            }
        }
        self.seen.insert(method.to_owned());
    }

    fn unexpected(&self, expected: &str, message: &Value, else_exit: Option<i32>, sink: &mut Sink) {
        let what = message::method(message).unwrap_or("a response");
        sink.fail(format!(
            "steps[{}]: expected {expected} next, the client sent {what}",
            self.position
        ));
        if let Some(code) = else_exit {
            sink.push(Output::Exit(code));
        }
    }

    fn emit_all(&self, emissions: &[Emission], n: u64, sink: &mut Sink) {
        for emission in emissions {
            self.emit(emission, &self.last, n, sink);
        }
    }

    fn emit(&self, emission: &Emission, last: &Matched, n: u64, sink: &mut Sink) {
        let with = Render {
            last,
            named: &self.named,
            subscription_id: &self.subscription_id,
            n,
        };
        sink.push(match emission {
            Emission::Exit(code) => Output::Exit(*code),
            Emission::Kill => Output::Kill,
            Emission::StderrBytes(bytes) => Output::Stderr(bytes.clone()),
            Emission::StderrText(text) => Output::Stderr(text.render(with).into_bytes()),
            Emission::StdoutBytes(bytes) => Output::Stdout(bytes.clone()),
            Emission::StdoutText { text, line, times } => {
                let mut text = text.render(with);
                if *line {
                    text.push('\n');
                }
                Output::Stdout(text.repeat(*times).into_bytes())
            }
        });
    }
}

enum Taken {
    Match(Value),
    Nothing,
    Other(Value),
}

impl Prelude {
    /// Whether the message belongs to the handshake, so that the script has not begun.
    fn covers(self, message: &Value) -> bool {
        match message::method(message) {
            Some("server/discover") => true,
            Some("initialize" | "ping") => !matches!(self, Self::Discover),
            _ => false,
        }
    }

    fn ends_with(self, message: &Value) -> bool {
        match message::method(message) {
            Some("server/discover") => !matches!(self, Self::Initialize),
            Some("initialize") => true,
            _ => false,
        }
    }
}

fn too_early(first: &str, second: &str) -> String {
    format!("the client sent {first} before {second}")
}
