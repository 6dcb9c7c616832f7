//! The rows with I/O: whole calls through the drivers, over an in-memory pipe and over a child process.

use std::hint::black_box;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_proto::{Config, PeerConfig};
use rmcp::model::{CallToolRequestParams, JsonObject};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::runtime::Runtime;

use crate::floor::Loop;
use crate::measure::{Contender, Measure, Plan, repeat};
use crate::payload;
use crate::report::{Row, Target};
use crate::server::Server;

/// Calls in flight at once, in the rows that have more than one.
const MANY: usize = 64;
/// Long enough for many calls of each of many callers.
const TURN: Duration = Duration::from_millis(5);
/// Room in an in-memory pipe: as much as in a pipe of Linux.
const PIPE_BYTES: usize = 64 << 10;

/// Measures them.
pub(crate) fn measure(plan: &Plan) -> Vec<Row> {
    let plan = plan.with_turn(TURN);
    let rows: [(&str, Measure); 5] = [
        ("memory_seq", |plan, work| memory(plan, work, 1, 3.0)),
        ("memory_64", |plan, work| memory(plan, work, MANY, 4.0)),
        ("stdio_seq_tokio", |plan, work| stdio(plan, work, 1, 1.25)),
        ("stdio_seq_blocking", stdio_blocking),
        ("stdio_64", |plan, work| stdio(plan, work, MANY, 1.5)),
    ];
    rows.into_iter()
        .filter(|(work, _)| plan.wants(work))
        .map(|(work, row)| row(&plan, work))
        .collect()
}

/// Client and server as tasks of one thread.
fn memory(plan: &Plan, work: &'static str, in_flight: usize, factor: f64) -> Row {
    let runtime = runtime();
    let ours = runtime.block_on(Ours::over_stream());
    let ours = calls(runtime, ours, in_flight);
    let runtime = self::runtime();
    let rmcp = runtime.block_on(Theirs::over_stream());
    let rmcp = calls(runtime, rmcp, in_flight);
    let runtime = self::runtime();
    let (reader, writer) = tokio::io::split(runtime.block_on(async { serve_stream() }));
    let floor = turns(runtime, Loop::new(reader, writer, in_flight), in_flight);
    plan.row(
        work,
        Target::OverRmcp(factor),
        ours,
        Some(rmcp),
        Some(floor),
    )
}

/// Client on one thread, server in a process of its own.
fn stdio(plan: &Plan, work: &'static str, in_flight: usize, factor: f64) -> Row {
    let runtime = runtime();
    let ours = runtime.block_on(Ours::over_stdio());
    let ours = calls(runtime, ours, in_flight);
    let rmcp = their_stdio(in_flight);
    let runtime = self::runtime();
    let (mut child, reader, writer) = runtime.block_on(async {
        let mut child = tokio::process::Command::from(server())
            .spawn()
            .expect("starts");
        let (reader, writer) = (child.stdout.take(), child.stdin.take());
        (child, reader.expect("piped"), writer.expect("piped"))
    });
    let floor = turns(runtime, Loop::new(reader, writer, in_flight), in_flight);
    let row = plan.row(
        work,
        Target::OverRmcp(factor),
        ours,
        Some(rmcp),
        Some(floor),
    );
    // Its input is closed by now.
    child.start_kill().ok();
    row
}

/// The same without a runtime on our side.
fn stdio_blocking(plan: &Plan, work: &'static str) -> Row {
    let client = mcp_driver_blocking::Client::connect(stdio_config()).expect("connects");
    let arguments = arguments();
    let ours = repeat(move || {
        drop(black_box(
            client
                .call_tool(payload::TOOL, &*arguments)
                .expect("answers"),
        ));
    });
    let rmcp = their_stdio(1);
    let mut child = server().spawn().expect("starts");
    let (reader, writer) = (child.stdout.take(), child.stdin.take());
    let mut pipe = Loop::new(reader.expect("piped"), writer.expect("piped"), 1);
    let floor = repeat(move || pipe.turn_blocking().expect("answers"));
    let row = plan.row(work, Target::OverRmcp(1.5), ours, Some(rmcp), Some(floor));
    child.kill().and_then(|()| child.wait()).ok();
    row
}

fn their_stdio(in_flight: usize) -> Contender<'static> {
    let runtime = runtime();
    let rmcp = runtime.block_on(Theirs::over_stdio());
    calls(runtime, rmcp, in_flight)
}

/// A client that is connected.
trait Caller: Clone + Send + 'static {
    /// Calls the tool and takes the result.
    fn call(&self) -> impl Future<Output = ()> + Send;
}

#[derive(Clone)]
struct Ours {
    client: mcp_driver_tokio::Client,
    arguments: Arc<JsonObject>,
}

impl Ours {
    async fn over_stream() -> Self {
        let config = Config::new(vec![PeerConfig::stream("speed")]);
        let builder = mcp_driver_tokio::Client::builder(config);
        let client = builder.stream("speed", serve_stream()).start();
        client.settled().await.expect("settles");
        Self::with(client)
    }

    async fn over_stdio() -> Self {
        let client = mcp_driver_tokio::Client::connect(stdio_config()).await;
        Self::with(client.expect("connects"))
    }

    fn with(client: mcp_driver_tokio::Client) -> Self {
        Self {
            client,
            arguments: arguments(),
        }
    }
}

impl Caller for Ours {
    async fn call(&self) {
        let result = self.client.call_tool(payload::TOOL, &*self.arguments).await;
        drop(black_box(result.expect("answers")));
    }
}

/// rmcp as its documentation shows it: a unit handler, `serve`, `call_tool`. That is the handshake of the
/// older revisions, whose requests are shorter.
#[derive(Clone)]
struct Theirs {
    client: Arc<RunningService<RoleClient, ()>>,
    arguments: Arc<JsonObject>,
}

impl Theirs {
    async fn over_stream() -> Self {
        Self::with(().serve(serve_stream()).await.expect("connects"))
    }

    async fn over_stdio() -> Self {
        let child = TokioChildProcess::new(tokio::process::Command::from(server()));
        Self::with(().serve(child.expect("starts")).await.expect("connects"))
    }

    fn with(client: RunningService<RoleClient, ()>) -> Self {
        Self {
            client: Arc::new(client),
            arguments: arguments(),
        }
    }
}

impl Caller for Theirs {
    async fn call(&self) {
        let call = CallToolRequestParams::new(payload::TOOL)
            .with_arguments(JsonObject::clone(&self.arguments));
        drop(black_box(
            self.client.call_tool(call).await.expect("answers"),
        ));
    }
}

/// So many callers, each of which calls again as soon as it is answered.
fn calls(runtime: Runtime, caller: impl Caller, in_flight: usize) -> Contender<'static> {
    Box::new(move |count| {
        runtime.block_on(async {
            let begun = Instant::now();
            if in_flight == 1 {
                repeat_call(caller.clone(), count).await;
                return begun.elapsed();
            }
            let turns = turns_for(count, in_flight);
            let callers: Vec<_> = (0..in_flight)
                .map(|_| tokio::spawn(repeat_call(caller.clone(), turns)))
                .collect();
            for caller in callers {
                caller.await.expect("no caller panics");
            }
            share(begun, count, turns, in_flight)
        })
    })
}

async fn repeat_call(caller: impl Caller, count: u64) {
    for _ in 0..count {
        caller.call().await;
    }
}

/// The hand-written loop, with as many requests in flight.
fn turns<R, W>(runtime: Runtime, mut pipe: Loop<R, W>, in_flight: usize) -> Contender<'static>
where
    R: tokio::io::AsyncRead + Unpin + 'static,
    W: tokio::io::AsyncWrite + Unpin + 'static,
{
    Box::new(move |count| {
        runtime.block_on(async {
            let begun = Instant::now();
            let turns = turns_for(count, in_flight);
            for _ in 0..turns {
                pipe.turn().await.expect("answers");
            }
            share(begun, count, turns, in_flight)
        })
    })
}

/// How often so many callers have to call for so many calls in all, or some more.
fn turns_for(count: u64, in_flight: usize) -> u64 {
    count.div_ceil(in_flight as u64)
}

/// The time since then, without the share of the calls that were some more.
fn share(begun: Instant, count: u64, turns: u64, in_flight: usize) -> Duration {
    let calls = turns * in_flight as u64;
    begun.elapsed().mul_f64(count as f64 / calls as f64)
}

/// A pipe to a server that runs as a task beside.
fn serve_stream() -> DuplexStream {
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    tokio::spawn(serve(far));
    near
}

async fn serve(mut pipe: DuplexStream) -> io::Result<()> {
    let mut server = Server::new();
    let (mut chunk, mut out) = (vec![0; PIPE_BYTES], Vec::new());
    while let count @ 1.. = pipe.read(&mut chunk).await? {
        server.answer(&chunk[..count], &mut out);
        pipe.write_all(&out).await?;
        out.clear();
    }
    Ok(())
}

/// This program as a server.
fn server() -> std::process::Command {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = std::process::Command::new(program);
    command
        .arg("--serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn stdio_config() -> Config {
    let command = server();
    let program = command.get_program().to_string_lossy().into_owned();
    Config::new(vec![PeerConfig::stdio(
        "speed",
        program,
        ["--serve".to_owned()],
    )])
}

fn arguments() -> Arc<JsonObject> {
    Arc::new(serde_json::from_str(payload::ARGUMENTS).expect("an object"))
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the machine has descriptors left")
}
