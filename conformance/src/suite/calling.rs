//! Calls and their answers (R3, R20, R30, R42, R81).

use mcp_proto::error::Cause;
use mcp_proto::types::Content;
use mcp_proto::wire::Json;
use mcp_proto::{ErrorKind, Identity, Operation, Outcome};
use serde_json::json;

use super::stage::{Stage, call, refused, with_progress};
use super::{Setup, expect};

/// R81: the same call in both eras, by a peer's own name and by the canonical one.
pub(super) fn results_arrive_in_both_eras(stage: &Stage<'_>) {
    let mut legacy = stage.peer("legacy", json!({"era": "legacy"}));
    legacy.allow_legacy = true;
    let client = stage.connect(vec![legacy, stage.modern("modern")]);
    for peer in ["legacy", "modern"] {
        let result = client.call(peer, "add", json!({"a": 2, "b": 3}));
        let structured = result.structured_content.as_ref().map(expect::value);
        assert_eq!(structured, Some(json!({"sum": 5})));
        assert_eq!(result.text(), r#"{"sum":5}"#);
        assert!(!result.is_error);

        let canonical = Operation::call(
            format!("{peer}/echo"),
            Some(Json::from(json!({"text": "ünï \"\\ \u{2028}🔒\n\t"}))),
        );
        let ended = client.run(canonical);
        assert_eq!(ended.peer.as_deref(), Some(peer));
        assert_eq!(ended.tool.as_deref(), Some("echo"));
        assert_eq!(expect::called(ended).text(), "ünï \"\\ \u{2028}🔒\n\t");
    }
    client.end();
}

/// R60: one block of every type the revision has.
pub(super) fn every_type_of_content_arrives(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let result = client.call("a", "content", json!({}));
    let kinds: Vec<String> = result
        .content
        .iter()
        .map(|block| match block.view() {
            Content::Text { text } => format!("text {text}"),
            Content::Image { data, mime_type } => format!("image {mime_type} {}", data.len()),
            Content::Audio { data, mime_type } => format!("audio {mime_type} {}", data.len()),
            Content::Resource(resource) => format!("resource {}", resource.uri),
            Content::ResourceLink { uri, name, .. } => format!("link {uri} {name}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "text text",
            "image image/png 96",
            "audio audio/wav 60",
            "resource fake://text/readme",
            "link fake://blob/pixel pixel",
        ]
    );
    client.end();
}

/// R3: a tool that fails has answered; a server that refuses has not.
pub(super) fn errors_of_tools_and_of_servers_are_told_apart(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let result = client.call("a", "fail", json!({}));
    assert!(result.is_error);
    assert_eq!(result.text(), "This tool always fails");

    let arguments = json!({"code": -32050, "message": "out of paper"});
    let error = expect::failed(client.run(call("a", "rpc_error", arguments)));
    assert_eq!(error.kind(), ErrorKind::Rpc);
    let Cause::Rpc(rpc) = &error.cause else {
        panic!("expected the server's error, got {error:?}");
    };
    assert_eq!((rpc.code, rpc.message.as_str()), (-32050, "out of paper"));
    assert_eq!(
        rpc.data.as_ref().map(expect::value),
        Some(json!({"tool": "rpc_error"}))
    );
    assert_eq!(
        client.report_of("a").degraded,
        None,
        "neither breaks the protocol"
    );
    client.end();
}

/// R20: what is not in the manifest is refused here; the nearest name is suggested.
pub(super) fn an_unknown_tool_is_not_sent(stage: &Stage<'_>) {
    let options = json!({"transcript": stage.file("transcript")});
    let client = stage.connect(vec![
        stage.peer("a", json!({"options": options})),
        stage.modern("b"),
    ]);
    let error = refused(&client, call("a", "ecko", json!({})));
    assert_eq!(
        (error.kind(), error.may_have_executed()),
        (ErrorKind::CapabilityMissing, false)
    );
    assert!(error.is_tool_not_found());

    let error = refused(&client, Operation::call("echo", None));
    let canonical = ["a/echo", "b/echo"].map(str::to_owned).to_vec();
    let tool = "echo".to_owned();
    assert_eq!(error.cause, Cause::AmbiguousTool { tool, canonical });

    let error = refused(&client, Operation::call("nothing/like/it", None));
    assert_eq!(
        (error.kind(), error.may_have_executed()),
        (ErrorKind::ToolNotFound, false)
    );
    let error = refused(&client, call("nobody", "echo", json!({})));
    assert_eq!(
        (error.kind(), error.may_have_executed()),
        (ErrorKind::Usage, false)
    );
    client.end();
    assert_eq!(
        stage.received_methods("transcript"),
        ["server/discover", "tools/list"]
    );
}

/// R30: the state of the first answer goes back byte by byte.
pub(super) fn an_input_request_is_answered_by_a_second_call(stage: &Stage<'_>) {
    let mut setup = Setup::of(vec![stage.modern("a")]);
    let info = json!({"name": "conformance", "version": "1"});
    let capabilities = json!({"elicitation": {}});
    setup.identity = Identity::new(Json::from(info), Json::from(capabilities))
        .unwrap_or_else(|error| panic!("{error}"));
    let client = stage.start(setup);
    let required = match client.run(call("a", "ask", json!({}))).outcome {
        Outcome::InputRequired(pending) => pending.input,
        outcome => panic!("expected input requests, got {outcome:?}"),
    };
    let keys: Vec<&str> = required
        .requests
        .iter()
        .map(|request| request.key.as_str())
        .collect();
    assert_eq!(keys, ["name"]);
    let answers = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let second = Operation::call("ask", None).on("a");
    let ended = client.run(second.answering(&required, answers));
    assert_eq!(expect::called(ended).text(), "Hello, Ada");
    client.end();
}

/// R42: progress is strictly increasing, and none is lost or comes after the end.
pub(super) fn progress_increases_and_precedes_the_end(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let operation = call("a", "progress", json!({"steps": 5, "everyMs": 10}));
    let id = client.submit(operation.clone().with(with_progress()));
    assert_eq!(expect::called(client.wait(id)).text(), "5 steps");
    let reports = client.session.progress(id);
    let reports: Vec<_> = reports
        .iter()
        .map(|report| (report.progress, report.total))
        .collect();
    let expected = [1.0, 2.0, 3.0, 4.0, 5.0].map(|progress| (progress, Some(5.0)));
    assert_eq!(reports, expected);

    let id = client.submit(operation);
    assert_eq!(expect::called(client.wait(id)).text(), "5 steps");
    assert_eq!(client.session.progress(id), [], "nobody asked for it");
    client.end();
}
