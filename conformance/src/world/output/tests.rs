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

/// Judges a call of this tool with this structured result, and what it says of its check.
fn judge(outputs: &mut Outputs, tool: &str, structured: &str, check: OutputCheck) -> bool {
    let content = Json::parse("[]").unwrap();
    let structured = Json::parse(structured).unwrap();
    let mut members = Members::default();
    members.insert("content".into(), content.as_raw());
    members.insert("structuredContent".into(), structured.as_raw());
    let mut result = CallToolResult::read(&members).unwrap();
    result.output_check = check;
    let judged = outputs.on_ended(&Ended {
        operation: ID,
        peer: Some("a".into()),
        tool: Some(tool.into()),
        outcome: Outcome::Complete(Reply::Call(result)),
    });
    judged.is_ok()
}

/// All that can be said.
fn checks() -> [OutputCheck; 4] {
    let fault = mcp_proto::violation::Fault::new(Violation::OutputMismatch, "n");
    [
        OutputCheck::Unasked,
        OutputCheck::Fits,
        OutputCheck::Mismatch(fault),
        OutputCheck::Impossible("no schema".into()),
    ]
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

/// Of a result one thing can be said, and everything else is a breach.
#[test]
fn a_wrong_word_about_a_result_is_a_breach() {
    for (wants, tool, structured, right) in [
        (true, SUMS, BAD, 2),
        (true, SUMS, GOOD, 1),
        (true, "vague", BAD, 3),
        (false, SUMS, BAD, 0),
        (false, "vague", GOOD, 0),
    ] {
        for (number, check) in checks().into_iter().enumerate() {
            for by_peer in [true, false] {
                let mut outputs = outputs(|peer| peer.validate_output = by_peer && wants);
                wanted(&mut outputs, !by_peer && wants);
                let held = judge(&mut outputs, tool, structured, check.clone());
                assert_eq!(
                    held,
                    number == right,
                    "{wants} {tool} {structured} {check:?}"
                );
            }
        }
    }
}

/// Where the list may not name the tool any more, it may be that there was nothing to check against.
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
        let [.., impossible] = checks();
        assert_eq!(judge(&mut outputs, SUMS, BAD, impossible), right);
    }
}
