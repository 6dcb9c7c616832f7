//! Generated configurations, servers and runs: plain functions over a [`Choice`].
//!
//! A decision of 0 is always the tame one, so a dry source gives a well-behaved server, and shrinking
//! the bytes shrinks towards it.

use mcp_fake_server::{LegacyVersion, Script};
use mcp_proto::config::StdoutNoise;
use mcp_proto::negotiation::EraSetting;
use mcp_proto::wire::Json;
use mcp_proto::{Config, Duration, Identity, Operation, OperationId, Options, PeerConfig, Request};
use serde_json::{Value, json};

use crate::world::{Choice, Fault, Splits, World, millis, pick};

/// Longest line of generated peers: small, so that limits are reached.
pub const LINE_BYTES: usize = 4 << 10;

/// Lines that no client should have to see, in answer to a request whose id is `$ID`: every kind of
/// [`Violation`](mcp_proto::Violation), and what is odd but allowed.
pub const HOSTILE_LINES: [&str; 64] = [
    r#"[{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}]"#,
    r#"[]"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{},"result":{"content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"id":$ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"name":"echo"},{"name":"echo"}],"content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"title":"x"}]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":null,"content":null}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":null}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"method":"x","result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"s"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text"}]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":["x"]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":"string"}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"x","message":1}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"temperature":21}}"#,
    r#"{"jsonrpc":"2.0","id":$ID}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":[]}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"value":NaN}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"cut"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"\ud83d"}],"resultType":"complete"}}"#,
    r#""just a string""#,
    r#"42"#,
    r#"null"#,
    r#"{"jsonrpc":"2.0","id":"srv","method":"sampling/createMessage","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":-1,"method":"roots/list"}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"streaming","content":[]}}"#,
    r#"{"id":$ID,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#,
    r#"{"jsonrpc":2.0,"id":$ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
    r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}"#,
    r#"{"jsonrpc":"2.0","id":true,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID.0,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID_STR,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":424242,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID0,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"header"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"message":"capability","data":{"requiredCapabilities":{"sampling":{}}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"version","data":{"supported":["2026-07-28"],"requested":"x"}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"version","data":{"supported":["2024-11-05"]}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"version","data":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":0,"message":"invalid during session initialization"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":[]}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$PTOKEN,"progress":$N}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$N,"progress":$N,"total":0}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$PTOKEN,"progress":"half"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"unasked"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/unheard/of","params":7}"#,
    "\u{1b}[32m[info]\u{1b}[39m starting \u{1f680}",
    r#"{"level":"info","msg":"a log record in JSON"}"#,
    "   \t ",
];

/// A hostile line with its line feed (or without), its placeholders filled with small numbers.
pub fn hostile_text(choice: &mut dyn Choice) -> String {
    let line = *pick(choice, &HOSTILE_LINES);
    let number = choice.choose(9).to_string();
    let line = ["$ID_STR", "$ID", "$PTOKEN", "$N"]
        .into_iter()
        .fold(line.to_owned(), |line, name| line.replace(name, &number));
    if choice.one_in(8) { line } else { line + "\n" }
}

/// Answers that are right for a method, by era.
const GOOD_LINES: [(&str, &str); 6] = [
    ("server/discover", "«GOOD_DISCOVER»"),
    ("server/discover", "«METHOD_NOT_FOUND»"),
    ("initialize", "«GOOD_INIT»"),
    ("tools/call", "«OK_RESULT»"),
    ("tools/call", "«OK_RESULT_LEGACY»"),
    (
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"nextCursor":"c$N"}}"#,
    ),
];

const METHODS: [&str; 6] = [
    "tools/call",
    "tools/list",
    "server/discover",
    "initialize",
    "subscriptions/listen",
    "resources/list",
];

/// One thing that leaves a server.
fn emission(choice: &mut dyn Choice, method: &str) -> Value {
    let good: Vec<&str> = GOOD_LINES
        .into_iter()
        .filter_map(|(of, line)| (of == method).then_some(line))
        .collect();
    match choice.choose(16) {
        0..=4 if !good.is_empty() => json!(pick(choice, &good)),
        0..=10 => json!(pick(choice, &HOSTILE_LINES)),
        // Longer than the limit, whole or never ended.
        11 if choice.one_in(2) => json!({"repeat_line": {"text": "x", "count": 300}}),
        11 => json!("x".repeat(LINE_BYTES + 1)),
        12 => json!({"repeat": {"text": "{\"jsonrpc\":\"2.0\",\"id\":$ID,", "count": 300}}),
        // Split UTF-8 and no UTF-8 at all.
        13 => json!({"raw_b64": *pick(choice, &["//4gbG9nIIAK", "8J+a", "gAo=", "Cg=="])}),
        14 => json!({"stderr_bytes": 20_000}),
        _ => json!({"exit": choice.choose(3)}),
    }
}

fn emissions(choice: &mut dyn Choice, method: &str) -> Vec<Value> {
    let count = 1 + choice.choose(3);
    (0..count).map(|_| emission(choice, method)).collect()
}

/// A server: well-behaved in one of the eras, or misbehaving in any number of ways.
///
/// # Panics
/// Never: what is generated is a valid script.
pub fn script(choice: &mut dyn Choice) -> Script {
    let legacy = *pick(choice, &LegacyVersion::ALL);
    let era = choice.choose(6);
    if choice.choose(4) == 0 {
        return match era {
            0..=2 => Script::modern(),
            3 | 4 => Script::legacy(legacy),
            _ => Script::dual(),
        };
    }
    let mut steps = Vec::new();
    for method in METHODS {
        if choice.one_in(4) {
            steps.push(json!({"on_each": method, "emit": emissions(choice, method)}));
        }
    }
    for _ in 0..choice.choose(4) {
        steps.push(process_step(choice));
    }
    // One answer that comes late.
    if choice.one_in(3) {
        let method = *pick(choice, &METHODS);
        steps.push(json!({"on": method, "as": "late"}));
        steps.push(json!({"sleep_ms": choice.choose(8_000)}));
        steps.extend(emissions(choice, method));
    }
    let respawn: Vec<Value> = steps.iter().skip(steps.len() / 2).cloned().collect();
    let era = ["modern", "modern", "modern", "legacy", "dual", "probe"][era as usize];
    let mut script = json!({"era": era, "steps": steps, "options": {"page_size": 1, "tools": ["slow", "progress", "ask"]}});
    if choice.one_in(2) {
        script["respawn"] = json!(respawn);
    }
    Script::from_json(&script.to_string())
        .unwrap_or_else(|error| panic!("generated script: {error}\n{script}"))
}

fn process_step(choice: &mut dyn Choice) -> Value {
    match choice.choose(10) {
        0 => json!({"ignore_stdin_eof": true}),
        1 => json!({"ignore_sigterm": true}),
        2 => json!({"spawn_child": *pick(choice, &["holds_pipes", "own_session"])}),
        3 => json!({"sleep_ms": choice.choose(3_000)}),
        4 => json!({"stop_reading": true}),
        5 => json!({"close_stdin_read": true}),
        6 => json!({"hang": true}),
        7 => {
            json!({"loop": {"every_ms": 1 + choice.choose(500), "count": 20, "emit": emission(choice, "")}})
        }
        8 => json!({"optional_on": "tools/call", "within_ms": choice.choose(5_000)}),
        _ => emission(choice, ""),
    }
}

/// A peer with small limits and short deadlines.
pub fn peer(choice: &mut dyn Choice, name: &str) -> PeerConfig {
    let mut peer = PeerConfig::stdio(name, name, Vec::<String>::new());
    peer.limits.line_bytes = LINE_BYTES;
    peer.limits.pages = 5;
    peer.limits.items = 20;
    peer.limits.notifications = 4;
    peer.limits.in_flight = 1 + choice.choose(16) as usize;
    peer.probe_timeout = millis(3_000);
    peer.timeout = millis(4_000);
    peer.absolute_timeout = millis(9_000);
    peer.allow_legacy = !choice.one_in(3);
    peer.era = *pick(
        choice,
        &[
            EraSetting::Auto,
            EraSetting::Auto,
            EraSetting::Modern,
            EraSetting::Legacy,
        ],
    );
    peer.stdout_noise = *pick(
        choice,
        &[
            StdoutNoise::Auto,
            StdoutNoise::Tolerate,
            StdoutNoise::Degrade,
        ],
    );
    peer.validate_capabilities = !choice.one_in(4);
    peer.refuse_degraded = choice.one_in(4);
    peer
}

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

/// What an application does with these peers.
pub fn steps(choice: &mut dyn Choice, peers: &[&str]) -> Vec<Step> {
    let count = choice.choose(24);
    (0..count).map(|_| step(choice, peers)).collect()
}

fn step(choice: &mut dyn Choice, peers: &[&str]) -> Step {
    match choice.choose(24) {
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
        _ => Step::Submit(Box::new(call(choice, peers))),
    }
}

/// A tool call, mostly of a tool that exists.
pub fn call(choice: &mut dyn Choice, peers: &[&str]) -> Operation {
    let (tool, arguments) = match choice.choose(8) {
        0 | 1 => ("echo", r#"{"text":"x"}"#.to_owned()),
        2 => ("slow", format!(r#"{{"ms":{}}}"#, choice.choose(12_000))),
        3 => ("progress", r#"{"steps":5,"everyMs":900}"#.into()),
        4 => ("echo", format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000))),
        5 => ("touch_list", "{}".into()),
        6 => ("ask", "{}".into()),
        _ => ("missing", "{}".into()),
    };
    let operation = Operation::call(tool, Json::parse(&arguments).ok());
    addressed(choice, operation, peers)
}

/// Any operation.
pub fn operation(choice: &mut dyn Choice, peers: &[&str]) -> Operation {
    let request = match choice.choose(10) {
        0..=3 => return call(choice, peers),
        4 => Request::ListTools,
        5 => Request::ListResources,
        6 => Request::ReadResource {
            uri: "fake://text/readme".into(),
        },
        7 => Request::GetPrompt {
            name: "greeting".into(),
            arguments: None,
        },
        8 => Request::Listen,
        _ => Request::Settle,
    };
    addressed(choice, Operation::new(request), peers)
}

fn addressed(choice: &mut dyn Choice, operation: Operation, peers: &[&str]) -> Operation {
    let operation = operation.with(Options {
        progress: choice.one_in(2),
        idle_timeout: choice
            .one_in(4)
            .then(|| millis(1 + u64::from(choice.choose(3_000)))),
        ..Options::default()
    });
    if choice.one_in(4) || peers.is_empty() {
        operation
    } else {
        let peer = *pick(choice, peers);
        operation.on(peer)
    }
}

/// A world of generated peers and servers, in which a schedule decides.
pub fn world(choice: &mut dyn Choice, names: &[&str], schedule: impl Choice + 'static) -> World {
    let peers = names.iter().map(|name| peer(choice, name)).collect();
    let scripts = names
        .iter()
        .map(|name| ((*name).to_owned(), script(choice)))
        .collect();
    let mut world = World::new(Config::new(peers), Identity::default(), scripts)
        .with_schedule(schedule)
        .with_splits(Splits::Chosen)
        .with_untrusted_servers()
        .with_stamps();
    for name in names {
        if choice.one_in(32) {
            world = world.with_endless_start(name);
        }
        if choice.one_in(32) {
            world = world.with_spawn_failure(name);
        }
    }
    world
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
