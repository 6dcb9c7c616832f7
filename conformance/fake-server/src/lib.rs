//! A scriptable MCP server, sans-IO.
//!
//! It is the other side in tests of MCP *clients*: perfectly well-behaved by default, and
//! misbehaving exactly as told. The core, [`FakeServer`], does no I/O and has no clock, so a test
//! can run it inside the process under virtual time; [`stdio::run`] and the binary `fake-server`
//! run the same thing as a real child process.
//!
//! # Built-in behaviour
//!
//! A script without steps is a complete server of its [`Era`]: the handshake or `server/discover`,
//! tools, resources, prompts, completions, subscriptions, paging, cancellation and progress.
//!
//! | tool | does |
//! |---|---|
//! | `echo {text}` | gives the text back; logs it if the client asked for messages of level `info` |
//! | `add {a, b}` | text and, where the revision has it, `structuredContent {"sum": n}` with an output schema |
//! | `fail` | a result with `isError` |
//! | `rpc_error {code?, message?}` | a JSON-RPC error, -32001 by default |
//! | `slow {ms}` | answers after so many milliseconds; a cancelled call is never answered |
//! | `progress {steps, everyMs}` | progress notifications if the call has a token, then the answer |
//! | `big {bytes}` | a text of that many `x` |
//! | `content` | one block of every type the revision has |
//! | `ask` | asks for a name: modern by `input_required`, legacy by `elicitation/create` |
//! | `env {name}` | the process's environment variable, or `unset` |
//! | `touch_list` | adds the tool `added_N` and tells those who want to know |
//! | `touch_resource {uri}` | tells the subscribers of that resource that it changed |
//! | `end_listen` | ends every modern subscription gracefully |
//! | `exit {code}` | ends the process without an answer |
//!
//! Resources: `fake://text/readme`, `fake://blob/pixel`, template `fake://notes/{id}`. Prompts:
//! `greeting`, and `review {code, style?}` whose `style` completes.
//!
//! JSON-RPC batches are refused in every revision, also in 2025-03-26, which had them.
//!
//! # Scripts
//!
//! A script is a JSON document:
//!
//! ```json
//! {
//!   "era": "legacy",
//!   "protocol_version": "2025-06-18",
//!   "options": {"name": "old", "page_size": 2},
//!   "steps": [{"on": "tools/call"}, "not JSON at all", "«OK_RESULT_LEGACY»"],
//!   "respawn": [{"exit": 1}]
//! }
//! ```
//!
//! * `era`: `modern` (default), `legacy`, `dual`, or `probe`, which is `dual` with the handshake
//!   left to the steps. `protocol_version` is for `legacy` only (default 2025-11-25).
//! * `options`: `name`, `version`, `instructions`, `page_size`, `tools`, `tool_prefix`, `ttl_ms`,
//!   `cache_scope`, `capabilities` (sent as given), `respawn_state` and `transcript` (files of the
//!   runner).
//! * `steps` run in order; `respawn` are the steps of the second and later processes.
//!
//! With steps the server shows a small face: only tools, namely `echo` and those of
//! `options.tools`, and no other capability (everything else still answers when asked).
//! Unless a step waits for `server/discover` or `initialize`, the built-in handshake comes before
//! the first step; a modern client that skips discovery starts the steps with its first message.
//! If a step does wait for one of the two, neither is ever answered unless a step does it.
//!
//! ## Where a client message goes
//!
//! To the step the script stands at, else to an `on_each` of that method, else to the built-in
//! behaviour. While the script sleeps or loops, a message that the next waiting step would take is
//! kept for that step.
//!
//! ## Steps
//!
//! Output; these are also what `emit` may hold (one, or a list):
//!
//! | step | does |
//! |---|---|
//! | `"text"` | the text and a line feed on stdout |
//! | `{"raw": s}`, `{"raw_b64": b}` | text or bytes on stdout, no line feed |
//! | `{"repeat": {"text": s, "count": n}}`, `{"repeat_line": …}` | the text n times, without or with a line feed each |
//! | `{"stderr": s}`, `{"stderr_b64": b}`, `{"stderr_bytes": n}` | text, bytes, or n bytes of noise on stderr |
//! | `{"exit": code}` | the process ends |
//! | `{"kill": true}` | the process ends as if the system had killed it |
//!
//! Waiting:
//!
//! | step | does |
//! |---|---|
//! | `{"on": METHOD, "as": name, "where": {"params.cursor": ""}}` | waits for such a message; `where` holds dotted paths and their values (`null` = absent or null) |
//! | `{"optional_on": METHOD, "within_ms": n, "as": name, "where": …}` | the same, but goes on after n milliseconds (never without `within_ms`) |
//! | `{"on_response": id}` | waits for the client's response with this id |
//! | `{"sleep_ms": n}` | waits |
//! | `{"loop": {"every_ms": n, "emit": …, "count": n}}` | emits at once and then every n milliseconds; without `count` for ever |
//! | `{"hang": true}` | stays alive and silent for ever, also at the end of input |
//!
//! Reactions:
//!
//! | step | does |
//! |---|---|
//! | `{"on_each": METHOD, "emit": …, "where": …}` | answers every such message from now on; the latest that fits wins |
//! | `{"if_seen": name, "emit": …}` | emits if the step of that name had a match |
//!
//! The process:
//!
//! | step | does |
//! |---|---|
//! | `{"stop_reading": true}` | leaves stdin open, reads no more |
//! | `{"close_stdin_read": true}` | closes the read end of stdin |
//! | `{"close_stdout": true}` | closes stdout and lives on |
//! | `{"ignore_stdin_eof": true}` | does not exit at the end of input |
//! | `{"ignore_sigterm": true}` | does not exit on SIGTERM |
//! | `{"spawn_child": "holds_pipes"}`, `"own_session"` | starts a child that holds the pipes, in the same process group or in its own session |
//!
//! Assertions about the client; a broken one is in [`FakeServer::failures`], on stderr, and makes
//! the exit code at the end of input [`EXIT_ASSERTION`]:
//!
//! | step | fails if |
//! |---|---|
//! | `{"forbid": METHOD}` | the client sends METHOD from now on |
//! | `{"forbid_before": [X, Y]}` | X comes before Y, counted from the start of the run |
//! | `{"expect_next": METHOD, "else_exit": code, "as": name}` | the next message is another one; with `else_exit` the process ends then |
//! | `{"assert_no_input_ms": n}` | a message comes within n milliseconds |
//!
//! ## Placeholders
//!
//! | text | becomes |
//! |---|---|
//! | `$ID`, `$ID(name)` | the JSON of the id of the last request a step matched (in an `on_each`: of the one it answers), or of the one of that name |
//! | `$ID_STR` | the last id as a JSON string |
//! | `$MESSAGE` | the last matched request as it came, but for white space and the order of members |
//! | `$PTOKEN` | the JSON of the last matched request's progress token |
//! | `$SUBID` | the JSON of the id of the last `subscriptions/listen` |
//! | `$ARG(name)` | `params.arguments.text` of that message, escaped for use between quotes |
//! | `$N` | a counter from 1: rounds of a loop, matches of an `on_each`, else texts that use it |
//! | `«OK»` | a modern result object that says `ok` |
//! | `«OK_RESULT»`, `«OK_RESULT_LEGACY»` | the whole response around it, per era |
//! | `«GOOD_DISCOVER»`, `«GOOD_INIT»`, `«METHOD_NOT_FOUND»` | good answers to the handshakes, and -32601 |

mod builtin;
mod engine;
mod message;
mod script;
mod server;
pub mod stdio;

pub use script::{CacheScope, Era, LegacyVersion, MODERN_VERSION, Script, ScriptError};
pub(crate) use server::Sink;
pub use server::{ChildKind, EXIT_ASSERTION, FakeServer, Input, Output};
