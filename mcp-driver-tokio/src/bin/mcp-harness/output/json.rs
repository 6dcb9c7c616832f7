//! The JSON forms: the same members in `--json` and in `batch`.

use mcp_proto::error::{Cause, FailedPeers};
use mcp_proto::types::{CallToolResult, Entry, InputRequired, OutputCheck};
use mcp_proto::wire::encode::{push_single_line, push_string};
use mcp_proto::wire::{Json, Members, ObjectWriter};
use mcp_proto::{Ended, Error, ErrorKind, Listed, Outcome, Reply, Report};

use crate::exit::{Exit, Failure};
use crate::program::typed;
use crate::session::Progress;

/// `complete`, `input_required`, `cancelled` or `error`.
pub(crate) const fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Complete(_) => "complete",
        Outcome::InputRequired(_) => "input_required",
        Outcome::Failed(error) => failed_word(error.kind()),
    }
}

const fn failed_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Cancelled => "cancelled",
        _ => "error",
    }
}

/// What `call`, `read` and `prompt` print with `--json`, unless they fail. `asked` is what they were about, and
/// `beside` what went wrong beside it.
pub(crate) fn operation(
    ended: &Ended,
    asked: (&'static str, &str),
    beside: Option<&Failure>,
) -> Vec<u8> {
    document(|object| {
        members(object, &who(ended, asked));
        object.string("outcome", outcome_word(&ended.outcome));
        result(object, &ended.outcome, true);
        if let Some(beside) = beside {
            failure(object, beside);
        }
    })
}

/// What a command prints with `--json` when it fails.
pub(crate) fn failed(failed: &Failure) -> Vec<u8> {
    document(|object| {
        members(object, &failed.about);
        object.string("outcome", failed_word(failed.kind));
        failure(object, failed);
    })
}

/// What the lists print: their descriptors under canonical names, each with its server, of these.
pub(crate) fn list(reply: &Reply, names: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    match reply {
        Reply::Tools(list) => descriptors(&mut out, "name", list, names),
        Reply::Resources(list) => descriptors(&mut out, "uri", list, names),
        Reply::ResourceTemplates(list) => descriptors(&mut out, "uriTemplate", list, names),
        Reply::Prompts(list) => descriptors(&mut out, "name", list, names),
        _ => out.extend_from_slice(b"[]"),
    }
    out
}

/// One object.
pub(crate) fn document(write: impl FnOnce(&mut ObjectWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    write(&mut object);
    object.end();
    out
}

/// Who answered, and what was asked for: a tool under the server's own name for it, once that is known.
pub(crate) fn who(ended: &Ended, asked: (&'static str, &str)) -> Vec<(&'static str, String)> {
    let failed = match &ended.outcome {
        Outcome::Failed(error) => error.peer.as_deref(),
        _ => None,
    };
    let peer = ended.peer.as_deref().or(failed);
    let (member, name) = asked;
    let name = ended.tool.as_deref().unwrap_or(name);
    let peer = peer.map(|peer| ("peer", peer.to_owned()));
    peer.into_iter()
        .chain([(member, name.to_owned())])
        .collect()
}

/// Members that are strings.
pub(crate) fn members(object: &mut ObjectWriter<'_>, members: &[(&'static str, String)]) {
    for (name, value) in members {
        object.string(name, value);
    }
}

/// What came of an operation.
pub(crate) fn result(object: &mut ObjectWriter<'_>, outcome: &Outcome, executes: bool) {
    match outcome {
        Outcome::Complete(answer) => reply(object, answer),
        Outcome::InputRequired(pending) => input_required(object, &pending.input),
        Outcome::Failed(error) => self::error(object, error, executes),
    }
}

/// The members of the startup report.
pub(crate) fn report(object: &mut ObjectWriter<'_>, report: &Report) {
    let json = report.to_json();
    let members = json.as_str().trim_start_matches('{');
    object.members(members.strip_suffix('}').unwrap_or(members));
}

/// The member `error` of a command that could not be carried out.
pub(crate) fn failure(object: &mut ObjectWriter<'_>, failure: &Failure) {
    if let Some(known) = &failure.error
        && failure.exit != Exit::Interrupted
    {
        return error(object, known, !failure.about.is_empty());
    }
    let mut object = object.object("error");
    object.string("kind", failure.kind.as_str());
    object.string("message", &failure.message);
    object.string("remedy", &typed(&failure.remedy));
    if !failure.details.is_empty() {
        strings(&mut object, "details", &failure.details);
    }
    if !failure.about.is_empty() {
        object.raw("mayHaveExecuted", boolean(failure.may_have_executed()));
    }
    object.end();
}

/// The member `error`; with whether it may have been executed, where something was to be.
pub(crate) fn error(object: &mut ObjectWriter<'_>, error: &Error, executes: bool) {
    let mut object = object.object("error");
    object.string("kind", error.kind().as_str());
    if let Some(peer) = &error.peer {
        object.string("peer", peer);
    }
    object.string("message", &error.cause.to_string());
    object.string("remedy", &typed(&error.remedy()));
    if !error.stderr().is_empty() {
        strings(&mut object, "stderr", error.stderr());
    }
    if let Some(failed) = error.failed_peers() {
        failed_peers(&mut object, failed);
    }
    match &error.cause {
        Cause::Rpc(rpc) => {
            object.raw("code", &rpc.code.to_string());
            if let Some(data) = &rpc.data {
                object.raw("data", data.as_str());
            }
        }
        Cause::CapabilityMissing {
            manifest_digest, ..
        }
        | Cause::Quarantined {
            manifest_digest, ..
        } => {
            object.string("manifestDigest", manifest_digest);
        }
        Cause::RetryRefused(refusal) => {
            object.string("cause", refusal.error.kind().as_str());
        }
        Cause::StreamDropped(dropped) => {
            if let Some(last) = &dropped.last {
                object.string("cause", last.kind().as_str());
            }
            object.u64("attempts", dropped.stream.attempts.into());
        }
        _ => {}
    }
    let of_stream = [
        ("partialText", error.partial_text()),
        ("checkpointToken", error.checkpoint_token()),
        ("idempotencyKey", error.idempotency_key()),
    ];
    for (name, value) in of_stream {
        if let Some(value) = value {
            object.string(name, value);
        }
    }
    if executes {
        object.raw("mayHaveExecuted", boolean(error.may_have_executed()));
    }
    object.end();
}

/// The servers that could not be asked: some of them by name, and how many there are.
fn failed_peers(object: &mut ObjectWriter<'_>, failed: &FailedPeers) {
    let documents: Vec<Vec<u8>> = failed
        .named
        .iter()
        .map(|peer| {
            document(|object| {
                object.string("name", &peer.peer);
                object.string("kind", peer.kind.as_str());
                object.string("message", &peer.message);
                object.string("remedy", &typed(&peer.remedy));
                if !peer.stderr.is_empty() {
                    strings(object, "stderr", &peer.stderr);
                }
            })
        })
        .collect();
    objects(object, "failedPeers", &documents);
    object.u64("failedPeersTotal", failed.total as u64);
}

/// The members of a progress report.
pub(crate) fn progress(object: &mut ObjectWriter<'_>, update: &Progress) {
    object.raw("progress", &number(update.progress));
    if let Some(total) = update.total {
        object.raw("total", &number(total));
    }
    if let Some(message) = &update.message {
        object.string("message", message);
    }
}

fn reply(object: &mut ObjectWriter<'_>, reply: &Reply) {
    match reply {
        Reply::Tools(list) => descriptors(object.key("tools"), "name", list, &[]),
        Reply::Resources(list) => descriptors(object.key("resources"), "uri", list, &[]),
        Reply::ResourceTemplates(list) => {
            descriptors(object.key("resourceTemplates"), "uriTemplate", list, &[]);
        }
        Reply::Prompts(list) => descriptors(object.key("prompts"), "name", list, &[]),
        Reply::Call(result) => call_result(object, result),
        Reply::Stream(stream) => {
            object.string("text", &stream.text);
            object.raw("cancelled", boolean(stream.cancelled));
            object.u64("attempts", stream.attempts.into());
            if let Some(answer) = &stream.answer {
                call_result(object, answer);
            }
        }
        Reply::Read(result) => {
            let contents = result.contents.iter().map(|part| part.raw().as_str());
            array(object.key("contents"), contents);
            optional(object, "meta", result.meta.as_ref());
        }
        Reply::Prompt(result) => {
            if let Some(description) = &result.description {
                object.string("description", description);
            }
            let messages = result.messages.iter().map(|message| message.raw().as_str());
            array(object.key("messages"), messages);
            optional(object, "meta", result.meta.as_ref());
        }
        Reply::Listened { notifications } => {
            object.u64("notifications", *notifications);
        }
        _ => {}
    }
}

fn call_result(object: &mut ObjectWriter<'_>, result: &CallToolResult) {
    object.raw("isError", boolean(result.is_error));
    let content = result.content.iter().map(|block| block.raw().as_str());
    array(object.key("content"), content);
    let structured = result.structured_content.as_ref();
    optional(object, "structuredContent", structured);
    optional(object, "meta", result.meta.as_ref());
    match &result.output_check {
        OutputCheck::Mismatch(fault) => {
            object.string("schemaMismatch", &fault.detail);
        }
        OutputCheck::Impossible(reason) => {
            object.string("notValidated", reason);
        }
        _ => {}
    }
}

fn input_required(object: &mut ObjectWriter<'_>, input: &InputRequired) {
    optional(object, "inputRequests", input.raw_requests.as_ref());
    if let Some(state) = &input.state {
        object.raw("requestState", state.as_json().as_str());
    }
    optional(object, "meta", input.meta.as_ref());
}

fn optional(object: &mut ObjectWriter<'_>, name: &str, value: Option<&Json>) {
    if let Some(value) = value {
        object.raw(name, value.as_str());
    }
}

/// Descriptors as the servers sent them, but for the member that identifies them, and with `peer` where the
/// servers have names here.
fn descriptors<T: Entry>(out: &mut Vec<u8>, key: &str, list: &[Listed<T>], names: &[String]) {
    out.push(b'[');
    for (index, listed) in list.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let peer = names.get(listed.peer.index());
        if peer.is_none() && listed.name == listed.item.key() {
            push_single_line(out, listed.item.raw().as_str());
        } else {
            let name = (key, listed.name.as_str());
            labelled(out, name, peer.map(String::as_str), listed.item.raw());
        }
    }
    out.push(b']');
}

/// A descriptor under another name, and with its server. What the server itself calls its peer makes way.
fn labelled(out: &mut Vec<u8>, (key, name): (&str, &str), peer: Option<&str>, descriptor: &Json) {
    // A member that stands twice: which of the two is meant is not for us to say.
    let Ok(members) = descriptor.view::<Members<'_>>() else {
        push_single_line(out, descriptor.as_str());
        return;
    };
    let mut object = ObjectWriter::new(out);
    if let Some(peer) = peer {
        object.string("peer", peer);
    }
    for (member, value) in members.iter() {
        if member == key {
            object.string(member, name);
        } else if member != "peer" || peer.is_none() {
            object.raw(member, value.get());
        }
    }
    object.end();
}

fn array<'a>(out: &mut Vec<u8>, items: impl Iterator<Item = &'a str>) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_single_line(out, item);
    }
    out.push(b']');
}

/// A list of [`document`]s as the value of a member.
pub(crate) fn objects(object: &mut ObjectWriter<'_>, name: &str, items: &[Vec<u8>]) {
    let out = object.key(name);
    out.push(b'[');
    out.extend_from_slice(&items.join(&b','));
    out.push(b']');
}

/// A list of strings as the value of a member.
pub(crate) fn strings(object: &mut ObjectWriter<'_>, name: &str, items: &[String]) {
    let out = object.key(name);
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_string(out, item);
    }
    out.push(b']');
}

pub(crate) const fn boolean(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// A finite number, without a fraction where it has none. `Display` never writes an exponent.
fn number(value: f64) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use mcp_proto::StreamChunk;
    use mcp_proto::continuation::{StreamPolicy, StreamWish};
    use mcp_proto::error::DroppedStream;

    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        for (value, text) in [(10.0, "10"), (0.5, "0.5"), (1e21, "1000000000000000000000")] {
            assert_eq!(number(value), text);
        }
    }

    /// R3, R32: a stream that was dropped says how far it came and how to go on.
    #[test]
    fn a_dropped_stream_says_how_to_go_on() {
        let mut core = mcp_proto::StreamContinuation::new(StreamPolicy::default(), "k");
        let now = mcp_proto::Instant::ZERO;
        core.start(now);
        let chunk = StreamChunk {
            text: "half".into(),
            checkpoint_token: Some("t".into()),
            ..StreamChunk::default()
        };
        core.chunk(1, chunk, now);
        core.failed(1, false, now);
        let wishes = std::iter::from_fn(|| core.poll_wish());
        let ends = wishes.filter_map(|wish| match wish {
            StreamWish::End(Err(dropped)) => Some(dropped),
            _ => None,
        });
        let stream = ends.last().unwrap();
        let last = Some(Error::general(Cause::Cancelled));
        let cause = Cause::StreamDropped(Box::new(DroppedStream::new(stream, last)));
        let text = document(|object| error(object, &Error::new("p", cause), true));
        let text = String::from_utf8(text).unwrap();
        let members = r#""cause":"cancelled","attempts":1,"partialText":"half","checkpointToken":"t","idempotencyKey":"k","mayHaveExecuted":false"#;
        assert!(text.contains(members), "{text}");
        assert!(text.contains(r#""kind":"streamDropped""#), "{text}");
    }

    #[test]
    fn only_the_name_of_a_descriptor_changes() {
        let descriptor = Json::parse(r#"{"x":[1.0, 1e2],"name":"a","inputSchema":{"name":1}}"#);
        let mut out = Vec::new();
        labelled(&mut out, ("name", "p/a"), None, &descriptor.unwrap());
        let expected = r#"{"x":[1.0, 1e2],"name":"p/a","inputSchema":{"name":1}}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let descriptor = Json::parse(r#"{"name":"a","peer":"other"}"#);
        let mut out = Vec::new();
        labelled(&mut out, ("name", "a"), Some("p"), &descriptor.unwrap());
        let expected = r#"{"peer":"p","name":"a"}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_descriptor_that_cannot_be_renamed_is_not_lost() {
        let text = r#"{"name":"a","x":1,"x":2}"#;
        let mut out = Vec::new();
        labelled(&mut out, ("name", "p/a"), None, &Json::parse(text).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
