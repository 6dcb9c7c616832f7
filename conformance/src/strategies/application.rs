//! Generated applications: what is asked of the client, and what befalls its servers meanwhile.

use mcp_proto::types::{InputMethod, InputRequired, InputResponse, InputResponses};
use mcp_proto::wire::Json;
use mcp_proto::{Duration, Operation, OperationId, Options, Request};

use crate::world::{Choice, Fault, World, millis, pick};

/// One step of the application, or something that befalls a server.
#[derive(Clone, Debug)]
pub enum Step {
    /// Submit this.
    Submit(Box<Operation>),
    /// Cancel the operation that was accepted so many before the last.
    Cancel(u32),
    /// End a listening operation, counted in the same way.
    Finish(u32),
    /// Take the notifications of an operation, counted in the same way.
    Take(u32),
    /// Answer in this way what the application is asked about an operation, counted in the same way among
    /// those that ask, or else among all.
    Answer(u32, Reaction),
    /// Take up what an earlier operation has ended with, counted in the same way, with such an answer.
    Resume(u32, Reaction),
    /// Something happens to the process of this peer.
    Inject(String, Fault),
    /// Let so many things happen.
    Turns(u32),
    /// Let this long pass.
    Wait(Duration),
    /// Tell the client something about a dead link.
    Stale([u8; 3]),
    /// Close the client in the midst of it.
    Close,
}

/// How an application answers what it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// With what was asked for, if the question is a usual one.
    Accept,
    /// With no to every question.
    Decline,
    /// With nothing.
    Silence,
    /// With something that nobody asked for.
    Nonsense,
}

impl Reaction {
    fn choose(choice: &mut dyn Choice) -> Self {
        *pick(
            choice,
            &[
                Self::Accept,
                Self::Accept,
                Self::Decline,
                Self::Silence,
                Self::Nonsense,
            ],
        )
    }

    /// The answers to these questions.
    fn responses(self, input: Option<&InputRequired>) -> InputResponses {
        let asked = input.map_or(&[][..], |input| &input.requests);
        let all = |response: &dyn Fn(InputMethod) -> InputResponse| {
            asked.iter().fold(InputResponses::new(), |all, asked| {
                all.with(asked.key.clone(), response(asked.method))
            })
        };
        match self {
            Self::Accept => all(&|method| match method {
                InputMethod::Elicitation => InputResponse::raw(
                    serde_json::json!({"action": "accept", "content": {"name": "x"}}).into(),
                ),
                InputMethod::Sampling => InputResponse::sampled_text("model", "text", None),
                _ => InputResponse::roots(&[]),
            }),
            Self::Decline => all(&|_| InputResponse::decline()),
            Self::Silence => InputResponses::new(),
            Self::Nonsense => InputResponses::new().with("nobody", InputResponse::cancel()),
        }
    }
}

/// What an application does with these peers.
pub fn steps(choice: &mut dyn Choice, peers: &[&str]) -> Vec<Step> {
    let count = choice.choose(24);
    (0..count).map(|_| step(choice, peers)).collect()
}

fn step(choice: &mut dyn Choice, peers: &[&str]) -> Step {
    match choice.choose(28) {
        0..=3 => Step::Turns(1 + choice.choose(12)),
        4..=9 => Step::Submit(Box::new(operation(choice, peers))),
        // Many at once: more than some bounds.
        10 => Step::Submit(Box::new(call(choice, peers))),
        11 => Step::Cancel(choice.choose(4)),
        12 => Step::Finish(choice.choose(4)),
        13 => Step::Take(choice.choose(4)),
        14 => {
            let fault = match choice.choose(6) {
                0 => Fault::StderrFlood(100_000),
                1 => Fault::Kill,
                2 => Fault::CloseOutput,
                3 => Fault::ExitOnly,
                4 => Fault::CloseInput,
                _ => Fault::StopReading,
            };
            Step::Inject((*pick(choice, peers)).into(), fault)
        }
        15 => Step::Wait(millis(u64::from(choice.choose(20_000)))),
        16..=18 => Step::Stale([0; 3].map(|_| choice.choose(256) as u8)),
        19 if choice.one_in(4) => Step::Close,
        20..=22 => Step::Answer(choice.choose(3), Reaction::choose(choice)),
        23 => Step::Resume(choice.choose(3), Reaction::choose(choice)),
        _ => Step::Submit(Box::new(call(choice, peers))),
    }
}

/// A tool call, mostly of a tool that exists.
pub fn call(choice: &mut dyn Choice, peers: &[&str]) -> Operation {
    let (tool, arguments) = match choice.choose(10) {
        0 | 1 => ("echo", r#"{"text":"x"}"#.to_owned()),
        2 => ("slow", format!(r#"{{"ms":{}}}"#, choice.choose(12_000))),
        3 => ("progress", r#"{"steps":5,"everyMs":900}"#.into()),
        4 => ("echo", format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000))),
        5 => ("touch_list", "{}".into()),
        6 | 7 => ("ask", "{}".into()),
        8 => ("touch_resource", r#"{"uri":"fake://text/readme"}"#.into()),
        _ => ("missing", "{}".into()),
    };
    let operation = Operation::call(tool, Json::parse(&arguments).ok());
    addressed(choice, operation, peers)
}

/// Any operation.
pub fn operation(choice: &mut dyn Choice, peers: &[&str]) -> Operation {
    let json = |text: &str| Json::parse(text).ok();
    let request = match choice.choose(14) {
        0..=3 => return call(choice, peers),
        4 => Request::ListTools,
        5 => Request::ListResources,
        6 => Request::ListResourceTemplates,
        7 => Request::ListPrompts,
        8 => Request::ReadResource {
            uri: "fake://text/readme".into(),
        },
        9 => Request::GetPrompt {
            name: "greeting".into(),
            arguments: json(r#"{"name":"x"}"#),
        },
        10 if !peers.is_empty() => {
            let reference = serde_json::json!({"type": "ref/prompt", "name": "greeting"});
            let peer = *pick(choice, peers);
            return Operation::complete(peer, reference.into(), "name", "x").with(options(choice));
        }
        10..=12 => Request::Listen,
        _ => Request::Settle,
    };
    addressed(choice, Operation::new(request), peers)
}

fn options(choice: &mut dyn Choice) -> Options {
    let mut brief = |most: u32| {
        let brief = choice.one_in(4);
        brief.then(|| millis(1 + u64::from(choice.choose(most))))
    };
    Options {
        idle_timeout: brief(3_000),
        absolute_timeout: brief(3_000),
        total_timeout: brief(3_000),
        progress: choice.one_in(2),
        interactive: choice.one_in(2),
        idempotency_key: choice.one_in(4).then(|| "key-1".into()),
        ..Options::default()
    }
}

fn addressed(choice: &mut dyn Choice, operation: Operation, peers: &[&str]) -> Operation {
    let operation = operation.with(options(choice));
    if choice.one_in(4) || peers.is_empty() {
        operation
    } else {
        let peer = *pick(choice, peers);
        operation.on(peer)
    }
}

/// Does these steps in a world, and stops when a rule is broken.
pub fn perform(world: &mut World, steps: &[Step]) {
    let mut accepted: Vec<OperationId> = Vec::new();
    for step in steps {
        let nth = |back: &u32| accepted.iter().rev().nth(*back as usize).copied();
        match step {
            Step::Submit(operation) => accepted.extend(world.submit((**operation).clone())),
            Step::Cancel(back) => {
                if let Some(operation) = nth(back) {
                    world.cancel(operation);
                }
            }
            Step::Finish(back) => {
                if let Some(operation) = nth(back) {
                    world.finish(operation);
                }
            }
            Step::Take(back) => {
                if let Some(operation) = nth(back) {
                    world.client.take_notifications(operation);
                }
            }
            Step::Answer(back, reaction) => {
                let asked = world.asked().rev().nth(*back as usize);
                let asked = asked.map(|(operation, input)| (operation, Some(input)));
                let answered = asked.or_else(|| Some((nth(back)?, None)));
                if let Some((operation, input)) = answered {
                    let responses = reaction.responses(input);
                    let _ = world.answer(operation, &responses);
                }
            }
            Step::Resume(back, reaction) => {
                let mut earlier = world.continuations().iter().rev();
                if let Some(continuation) = earlier.nth(*back as usize).cloned() {
                    let responses = reaction.responses(Some(continuation.input()));
                    accepted.extend(world.submit(Operation::resume(continuation, responses)));
                }
            }
            Step::Inject(peer, fault) => world.inject(peer, *fault),
            Step::Turns(count) => {
                let _ = (0..*count).all(|_| world.turn());
            }
            Step::Wait(span) => world.run_for(*span),
            Step::Stale(bytes) => world.inject_stale(&mut crate::world::Bytes::new(bytes)),
            Step::Close => world.close(),
        }
    }
}
