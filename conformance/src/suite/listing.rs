//! Lists, resources, prompts, completions and changes (R20, R70, R91).

use mcp_proto::types::ResourceBody;
use mcp_proto::wire::Json;
use mcp_proto::{Operation, Reply, Request};
use serde_json::json;

use super::expect;
use super::stage::{PATIENCE, Stage};

/// R20: all pages of every list.
pub(super) fn lists_have_all_pages(stage: &Stage<'_>) {
    let transcript = json!({"page_size": 1, "transcript": stage.file("transcript")});
    let client = stage.connect(vec![stage.peer("a", json!({"options": transcript}))]);
    let list = |request| expect::complete(client.run(Operation::new(request).on("a")));
    let Reply::Tools(tools) = list(Request::ListTools) else {
        panic!("expected tools");
    };
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        (names.len(), names.first(), names.last()),
        (14, Some(&"add"), Some(&"touch_resource"))
    );
    assert!(names.is_sorted(), "{names:?}");
    let Reply::Resources(resources) = list(Request::ListResources) else {
        panic!("expected resources");
    };
    let resources: Vec<_> = resources
        .iter()
        .map(|entry| entry.item.name().into_owned())
        .collect();
    assert_eq!(resources, ["readme", "pixel"]);
    let Reply::ResourceTemplates(templates) = list(Request::ListResourceTemplates) else {
        panic!("expected resource templates");
    };
    assert_eq!(
        templates
            .iter()
            .map(|entry| entry.item.name())
            .collect::<Vec<_>>(),
        ["note"]
    );
    let Reply::Prompts(prompts) = list(Request::ListPrompts) else {
        panic!("expected prompts");
    };
    let prompts: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(prompts, ["greeting", "review"]);
    client.end();
    let asked = stage.received_methods("transcript");
    let pages = |method: &str| asked.iter().filter(|asked| *asked == method).count();
    assert_eq!((pages("resources/list"), pages("prompts/list")), (2, 2));
    assert_eq!(
        pages("tools/list") % names.len(),
        0,
        "a whole number of times all pages"
    );
}

/// R70, R81: the other things that servers have.
pub(super) fn resources_prompts_and_completions_arrive(stage: &Stage<'_>) {
    let client = stage.connect(vec![stage.modern("a")]);
    let run = |request| expect::complete(client.run(Operation::new(request).on("a")));

    let uri = "fake://text/readme".to_owned();
    let Reply::Read(read) = run(Request::ReadResource { uri }) else {
        panic!("expected contents");
    };
    let views: Vec<_> = read
        .contents
        .iter()
        .map(|contents| contents.view())
        .collect();
    assert!(
        matches!(&views[..], [view] if matches!(&view.body, ResourceBody::Text(text) if text == "Read me.\n")),
        "{views:?}"
    );

    let (name, arguments) = (
        "review".to_owned(),
        json!({"code": "1 + 1", "style": "terse"}),
    );
    let arguments = Some(Json::from(arguments));
    let Reply::Prompt(prompt) = run(Request::GetPrompt { name, arguments }) else {
        panic!("expected a prompt");
    };
    assert!(!prompt.messages.is_empty());
    let text = format!("{:?}", prompt.messages);
    assert!(text.contains("1 + 1"), "{text}");

    let request = Request::Complete {
        reference: Json::from(json!({"type": "ref/prompt", "name": "review"})),
        argument: "style".into(),
        value: "t".into(),
        context: None,
    };
    let Reply::Completion(completion) = run(request) else {
        panic!("expected a completion");
    };
    assert!(!completion.values.is_empty());
    assert!(
        completion.values.iter().all(|value| value.starts_with('t')),
        "{completion:?}"
    );
    client.end();
}

/// R91: in both eras a change reaches whoever listens, and the changed list is read again.
pub(super) fn a_listener_hears_of_changes_until_it_finishes(stage: &Stage<'_>) {
    let mut legacy = stage.peer("legacy", json!({"era": "legacy"}));
    legacy.allow_legacy = true;
    let client = stage.connect(vec![legacy, stage.modern("modern")]);
    for peer in ["legacy", "modern"] {
        let listening = client.submit(Operation::new(Request::Listen).on(peer));
        assert_eq!(client.call(peer, "touch_list", json!({})).text(), "added_1");
        let heard = client.session.notifications(listening, PATIENCE);
        let heard: Vec<(&str, &str)> = heard
            .iter()
            .map(|heard| (heard.peer.as_str(), heard.method.as_str()))
            .collect();
        assert_eq!(heard, [(peer, "notifications/tools/list_changed")]);
        assert_eq!(client.call(peer, "added_1", json!({})).text(), "ok");

        client.session.finish(listening);
        let reply = expect::complete(client.wait(listening));
        assert_eq!(reply, Reply::Listened { notifications: 1 });
        assert_eq!(client.call(peer, "touch_list", json!({})).text(), "added_2");
        assert_eq!(
            client.session.notifications(listening, PATIENCE),
            [],
            "it is over"
        );
    }
    client.end();
}
