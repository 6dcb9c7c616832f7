use mcp_proto::wire::{Json, Members};
use mcp_proto::{Options, PeerConfig, Violation};
use serde_json::json;

use super::*;

const ID: OperationId = OperationId::new(1);

fn outputs(adapt: impl FnOnce(&mut PeerConfig)) -> Outputs {
    let mut peer = PeerConfig::stdio("a", "a", Vec::<String>::new());
    adapt(&mut peer);
    Outputs::new(&Config::new(vec![peer]))
}

/// Judges a call of this tool with this structured result, and whether a mismatch was noted.
fn judge(outputs: &mut Outputs, tool: &str, structured: &str, noted: bool) -> bool {
    let content = Json::parse("[]").unwrap();
    let structured = Json::parse(structured).unwrap();
    let mut members = Members::default();
    members.insert("content".into(), content.as_raw());
    members.insert("structuredContent".into(), structured.as_raw());
    let mut result = CallToolResult::read(&members).unwrap();
    let fault = || mcp_proto::violation::Fault::new(Violation::OutputMismatch, "n");
    result.schema_mismatch = noted.then(fault);
    let judged = outputs.on_ended(&Ended {
        operation: ID,
        peer: Some("a".into()),
        tool: Some(tool.into()),
        outcome: Outcome::Complete(Reply::Call(result)),
    });
    judged.is_ok()
}

fn wanted(outputs: &mut Outputs, validate_output: bool) {
    let options = Options {
        validate_output,
        ..Options::default()
    };
    outputs.on_accepted(ID, &Operation::call("t", None).with(options));
}

const GOOD: &str = r#"{"n":1}"#;
const BAD: &str = r#"{"n":"x"}"#;

/// A mismatch that nobody asked about, that is none, or of a tool whose schema is not used, is a breach; so is
/// one that is not noted.
#[test]
fn a_wrong_word_about_a_result_is_a_breach() {
    for (wants, tool, structured, noted, right) in [
        (true, SUMS, BAD, true, true),
        (true, SUMS, BAD, false, false),
        (true, SUMS, GOOD, true, false),
        (true, SUMS, GOOD, false, true),
        (false, SUMS, BAD, true, false),
        (false, SUMS, BAD, false, true),
        (true, "vague", BAD, true, false),
        (true, "vague", BAD, false, true),
    ] {
        for by_peer in [true, false] {
            let mut outputs = outputs(|peer| peer.validate_output = by_peer && wants);
            wanted(&mut outputs, !by_peer && wants);
            let held = judge(&mut outputs, tool, structured, noted);
            assert_eq!(held, right, "{wants} {tool} {structured} {noted}");
        }
    }
}

/// Where the list may not name the tool any more, nothing has to be noted.
#[test]
fn an_unlisted_tool_need_not_be_checked() {
    let lists: [fn(&mut Outputs); 2] = [
        |outputs| outputs.on_listed(0, &json!([{"name": "other"}])),
        |outputs| outputs.on_listed(0, &json!([{"name": SUMS}])),
    ];
    for (list, right) in lists.into_iter().zip([true, false]) {
        let mut outputs = outputs(|_| {});
        list(&mut outputs);
        wanted(&mut outputs, true);
        assert_eq!(judge(&mut outputs, SUMS, BAD, false), right);
    }
}
