//! Generated applications: what is asked of the client, and what befalls its servers meanwhile.

use mcp_proto::continuation::StreamTextPolicy;
use mcp_proto::streaming::{StreamFrom, Streaming};
use mcp_proto::types::{InputMethod, InputRequired, InputResponse, InputResponses};
use mcp_proto::wire::Json;
use mcp_proto::{Duration, Operation, OperationId, Options, Request, StreamChunk};

use super::money;
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
    /// Says what came of a question, by its number or of the one so many before it.
    Reply(u32, u32, Option<Reaction>),
    /// Take up what an earlier operation has ended with, counted in the same way, with such an answer.
    Resume(u32, Reaction),
    /// Say these things about the source that was wished for so many before the last, or about an earlier
    /// attempt of the same.
    Feed(u32, Vec<Said>),
    /// Decide whether a request may be sent again: the question so many before the last.
    Decide(u32, bool),
    /// Accept the quarantined tools of this peer: all, or one by its place among them.
    Accept(String, Option<u32>),
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

/// What an application says about a source of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// How many attempts before the wished one it is about.
    back: u32,
    /// Before it so many things happen.
    turns: u32,
    what: About,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    Opened,
    Piece(StreamChunk),
    Ended,
    Failed,
}

impl Said {
    fn choose(choice: &mut dyn Choice) -> Self {
        let chunk = |text: &str| StreamChunk {
            text: text.into(),
            ..StreamChunk::default()
        };
        let what = match choice.choose(12) {
            0..=3 => About::Piece(chunk(pick::<&str>(choice, &["piece ", "", "ä", "x"]))),
            4 | 5 => About::Piece(StreamChunk {
                checkpoint_token: Some((*pick(choice, &["t1", "t2", ""])).into()),
                ..chunk("kept ")
            }),
            6 => About::Piece(StreamChunk {
                is_final: true,
                ..chunk("last")
            }),
            7 => About::Piece(StreamChunk {
                dropped: true,
                checkpoint_token: choice.one_in(2).then(|| "t3".into()),
                ..chunk("lost")
            }),
            8 => About::Opened,
            9 => About::Ended,
            10 => About::Failed,
            // Not twice: it would be too long.
            _ => About::Piece(chunk(&"x".repeat(super::LINE_BYTES * 2 / 3))),
        };
        Self {
            back: u32::from(choice.one_in(8)),
            turns: choice.choose(4),
            what,
        }
    }

    fn some(choice: &mut dyn Choice) -> Vec<Self> {
        let count = 1 + choice.choose(4);
        (0..count).map(|_| Self::choose(choice)).collect()
    }
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
    let mut steps = Vec::new();
    for _ in 0..count {
        let step = step(choice, peers);
        let follows = match &step {
            Step::Submit(operation) => follow_up(choice, operation),
            _ => None,
        };
        steps.push(step);
        if let Some(follows) = follows {
            steps.push(Step::Turns(10 + choice.choose(60)));
            steps.push(follows);
        }
    }
    steps
}

/// What comes of an operation that the application takes part in, once it has begun.
fn follow_up(choice: &mut dyn Choice, operation: &Operation) -> Option<Step> {
    let options = &operation.options;
    let from = options.stream.map(|stream| stream.from);
    let decline = Reaction::Decline;
    match (from, choice.choose(6)) {
        (Some(StreamFrom::Application), 0..5) => Some(Step::Feed(0, Said::some(choice))),
        (Some(_), 1) => Some(Step::Cancel(0)),
        (Some(_), 2) if options.interactive => Some(Step::Finish(0)),
        (_, 3 | 4) if options.interactive => Some(Step::Answer(0, decline)),
        (_, 5) if options.ask_retry => Some(Step::Decide(0, true)),
        _ => None,
    }
}

fn step(choice: &mut dyn Choice, peers: &[&str]) -> Step {
    match choice.choose(32) {
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
        20 | 21 => Step::Answer(choice.choose(3), Reaction::choose(choice)),
        22 => {
            let (back, before) = (choice.choose(3), u32::from(choice.one_in(3)));
            let says = !choice.one_in(4);
            Step::Reply(back, before, says.then(|| Reaction::choose(choice)))
        }
        23 => Step::Resume(choice.choose(3), Reaction::choose(choice)),
        28 | 29 => Step::Feed(choice.choose(2), Said::some(choice)),
        30 => Step::Decide(choice.choose(2), !choice.one_in(3)),
        31 => {
            let one = choice.one_in(2);
            let one = one.then(|| choice.choose(4));
            Step::Accept((*pick(choice, peers)).into(), one)
        }
        _ => Step::Submit(Box::new(call(choice, peers))),
    }
}

/// A tool call, mostly of a tool that exists.
pub fn call(choice: &mut dyn Choice, peers: &[&str]) -> Operation {
    let (tool, arguments) = match choice.choose(16) {
        0 | 1 => ("echo", r#"{"text":"x"}"#.to_owned()),
        2 => ("slow", format!(r#"{{"ms":{}}}"#, choice.choose(12_000))),
        3 => ("progress", r#"{"steps":5,"everyMs":900}"#.into()),
        4 => ("echo", format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000))),
        5 => ("touch_list", "{}".into()),
        6 | 7 => ("ask", "{}".into()),
        8 => ("touch_resource", r#"{"uri":"fake://text/readme"}"#.into()),
        9 => ("missing", "{}".into()),
        10 => ("sums", "{}".into()),
        11 => ("vague", "{}".into()),
        _ => ("talk", "{}".into()),
    };
    let operation = Operation::call(tool, Json::parse(&arguments).ok());
    let mut operation = addressed(choice, operation, peers);
    let options = &mut operation.options;
    let streams = if tool == "talk" {
        choice.choose(3) < 2
    } else {
        choice.one_in(8)
    };
    options.stream = streams.then(|| streaming(choice));
    options.ask_retry = choice.one_in(3);
    options.validate_output = choice.one_in(3);
    options.cost = money::own_price(choice);
    operation
}

fn streaming(choice: &mut dyn Choice) -> Streaming {
    let text = [StreamTextPolicy::Checkpointed, StreamTextPolicy::Append];
    let from = [StreamFrom::Peer, StreamFrom::Peer, StreamFrom::Application];
    Streaming {
        text: *pick(choice, &text),
        from: *pick(choice, &from),
    }
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
            Step::Reply(back, before, reaction) => {
                let asked = world.asked().rev().nth(*back as usize);
                let asked = asked.map(|(operation, input)| (operation, Some(input)));
                if let Some((operation, input)) = asked.or_else(|| Some((nth(back)?, None))) {
                    let responses = reaction.map(|reaction| reaction.responses(input));
                    world.reply(operation, *before, responses.as_ref());
                }
            }
            Step::Resume(back, reaction) => {
                let mut earlier = world.continuations().iter().rev();
                if let Some(continuation) = earlier.nth(*back as usize).cloned() {
                    let responses = reaction.responses(Some(continuation.input()));
                    accepted.extend(world.submit(Operation::resume(continuation, responses)));
                }
            }
            Step::Feed(back, said) => feed(world, *back, said),
            Step::Decide(back, retry) => {
                let question = world.retry_questions().iter().rev().nth(*back as usize);
                if let Some((operation, question)) = question.copied() {
                    world.decide(operation, question, *retry);
                }
            }
            Step::Accept(peer, one) => accept(world, peer, *one),
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

/// Says these things about a source, if there was any.
fn feed(world: &mut World, back: u32, said: &[Said]) {
    for Said {
        back: earlier,
        turns,
        what,
    } in said
    {
        let _ = (0..*turns).all(|_| world.turn());
        let wished = world.sources().iter().rev().nth(back as usize);
        let Some((operation, source)) = wished.copied() else {
            return;
        };
        let source = source.saturating_sub(*earlier);
        match what {
            About::Opened => world.source_opened(operation, source),
            About::Piece(chunk) => world.chunk(operation, source, chunk.clone()),
            About::Ended => world.source_ended(operation, source),
            About::Failed => world.source_failed(operation, source, "connection reset"),
        }
    }
}

/// Accepts what a person would have looked at before.
fn accept(world: &mut World, peer: &str, one: Option<u32>) {
    let Some(at) = one else {
        return drop(world.accept_tools(peer, None));
    };
    let tools = world.client.quarantined_tools();
    let mut names = tools.iter().filter(|tool| tool.peer == peer);
    if let Some(tool) = names.nth(at as usize) {
        let _ = world.accept_tools(peer, Some(&[tool.tool.name()]));
    }
}
