use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;

use proptest::prelude::*;

use super::super::*;
use super::{fault, reading};
use crate::wire::Json;

fn call(text: &str) -> Result<CallToolResult, Fault> {
    reading(text, CallToolResult::read)
}

/// R60: every malformed content block is named with its place; nothing is guessed.
#[test]
fn malformed_content_says_where() {
    for (block, detail) in [
        ("1", "content[1] is not an object"),
        ("null", "content[1] is not an object"),
        ("[]", "content[1] is not an object"),
        ("{}", "content[1].type is missing"),
        (r#"{"type":null}"#, "content[1].type is missing"),
        (r#"{"type":7}"#, "content[1].type is not a string"),
        (r#"{"type":"text"}"#, "content[1].text is missing"),
        (
            r#"{"type":"text","text":null}"#,
            "content[1].text is missing",
        ),
        (
            r#"{"type":"text","text":["a"]}"#,
            "content[1].text is not a string",
        ),
        (
            r#"{"type":"text","text":"cut \ud83d"}"#,
            "content[1].text has a lone surrogate escape",
        ),
        (
            r#"{"type":"text","text":"a","te\u0078t":"b"}"#,
            "content[1] has a member twice",
        ),
        (
            r#"{"type":"image","mimeType":"image/png"}"#,
            "content[1].data is missing",
        ),
        (
            r#"{"type":"audio","data":"AA=="}"#,
            "content[1].mimeType is missing",
        ),
        (r#"{"type":"resource"}"#, "content[1].resource is missing"),
        (
            r#"{"type":"resource","resource":"x"}"#,
            "content[1].resource is not an object",
        ),
        (
            r#"{"type":"resource","resource":{"uri":"a:"}}"#,
            "content[1].resource has neither text nor blob",
        ),
        (
            r#"{"type":"resource","resource":{"text":"x"}}"#,
            "content[1].resource.uri is missing",
        ),
        (
            r#"{"type":"resource","resource":{"uri":"a:","blob":1}}"#,
            "content[1].resource.blob is not a string",
        ),
        (
            r#"{"type":"resource_link","uri":"file:///a"}"#,
            "content[1].name is missing",
        ),
        (
            r#"{"type":"resource_link","name":"a"}"#,
            "content[1].uri is missing",
        ),
    ] {
        let text = format!(r#"{{"content":[{{"type":"text","text":"ok"}},{block}]}}"#);
        assert_eq!(
            call(&text),
            Err(fault(Violation::MalformedContent, detail)),
            "{block}"
        );
    }
}

/// R60: the parts of a tool result around the content.
#[test]
fn malformed_tool_results() {
    for (text, violation, detail) in [
        ("{}", Violation::MalformedResult, "content is missing"),
        (
            r#"{"toolResult":{"content":[]}}"#,
            Violation::MalformedResult,
            "content is missing",
        ),
        (
            r#"{"structuredContent":{"a":1}}"#,
            Violation::MalformedResult,
            "content is missing",
        ),
        (
            r#"{"content":"ok"}"#,
            Violation::MalformedResult,
            "content is not an array",
        ),
        (
            r#"{"content":[],"isError":"false"}"#,
            Violation::MalformedResult,
            "isError is not a boolean",
        ),
    ] {
        assert_eq!(call(text), Err(fault(violation, detail)), "{text}");
    }
}

#[test]
fn views_of_every_content_type() {
    let result = call(
        r#"{"content":[
            {"type":"text","text":"a\nb","annotations":{"priority":1.50},"_meta":{"k":1}},
            {"type":"image","data":"/9j/","mimeType":"image/png"},
            {"type":"audio","data":"AAAA","mimeType":"audio/wav"},
            {"type":"resource","resource":{"uri":"a:1","mimeType":"x/y","blob":"AA==","text":null}},
            {"type":"resource_link","uri":"a:2","name":"n","title":null,"description":"d"},
            {"type":"hologram","voxels":1e400}
        ],"isError":null}"#,
    )
    .unwrap();
    assert!(!result.is_error);
    let [words, image, audio, resource, link, unknown] = &result.content[..] else {
        panic!("six blocks");
    };
    assert_eq!(words.text().as_deref(), Some("a\nb"));
    assert_eq!(words.annotations().unwrap().get(), r#"{"priority":1.50}"#);
    assert_eq!(words.meta().unwrap().get(), r#"{"k":1}"#);
    assert!(matches!(image.view(), Content::Image { data, mime_type }
        if data == "/9j/" && mime_type == "image/png" && matches!(data, Cow::Borrowed(_))));
    assert!(matches!(audio.view(), Content::Audio { mime_type, .. } if mime_type == "audio/wav"));
    assert!(matches!(resource.view(), Content::Resource(view)
        if view.uri == "a:1"
            && view.mime_type.as_deref() == Some("x/y")
            && view.body == ResourceBody::Blob("AA==".into())));
    assert!(
        matches!(link.view(), Content::ResourceLink { uri, name, title: None, description, .. }
        if uri == "a:2" && name == "n" && description.as_deref() == Some("d"))
    );
    assert!(matches!(unknown.view(), Content::Unknown { kind, raw }
        if kind == "hologram" && raw.get() == r#"{"type":"hologram","voxels":1e400}"#));
    assert_eq!(result.text(), "a\nb");
}

/// What passes through is not rewritten: digits, order, white space and unknown members stay.
#[test]
fn content_is_written_as_it_came() {
    let block = r#"{ "z":1.0e2, "type":"text", "text":"\u00e9", "big":12345678901234567890123 }"#;
    let result = call(&format!(r#"{{"content":[{block}]}}"#)).unwrap();
    assert_eq!(
        Json::encode(&result.content).unwrap().as_str(),
        format!("[{block}]")
    );
    assert_eq!(result.text(), "é");
}

/// The schema makes `null` a structured value; only absence is no value.
#[test]
fn structured_content_null_is_a_value() {
    let structured = |text| {
        call(text)
            .unwrap()
            .structured_content
            .map(|json| json.to_string())
    };
    assert_eq!(structured(r#"{"content":[]}"#), None);
    assert_eq!(
        structured(r#"{"content":[],"structuredContent":null}"#).as_deref(),
        Some("null")
    );
    assert_eq!(
        structured(r#"{"content":[],"structuredContent":[1.0]}"#).as_deref(),
        Some("[1.0]")
    );
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\\\\\"\u{e9}]{0,4}".prop_map(Value::from),
        prop_oneof!["text", "image", "resource", "resource_link", "complete"].prop_map(Value::from),
    ];
    let names = "type|text|data|mimeType|resource|uri|name|content|isError|method|params|message";
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(names, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// R1, R60: a block is either refused or is seen as what its type says, and is kept as it came.
    #[test]
    fn blocks_are_refused_or_seen(value in any_json()) {
        let raw = Json::from(value);
        let kind = raw.decode::<serde_json::Value>().unwrap()["type"].as_str().map(str::to_string);
        let Ok(block) = ContentBlock::read(raw.as_raw()) else { return Ok(()) };
        prop_assert_eq!(block.raw(), &raw);
        let seen = match block.view() {
            Content::Text { .. } => "text".to_string(),
            Content::Image { .. } => "image".to_string(),
            Content::Audio { .. } => "audio".to_string(),
            Content::Resource(_) => "resource".to_string(),
            Content::ResourceLink { .. } => "resource_link".to_string(),
            Content::Unknown { kind, .. } => {
                prop_assert!(!["text", "image", "audio", "resource", "resource_link"].contains(&&*kind));
                kind.into_owned()
            }
        };
        prop_assert_eq!(Some(seen), kind);
    }

    /// R1: whatever the members are, every reader ends with a value or a printable fault.
    #[test]
    fn readers_never_panic(value in any_json(), name in "content|messages|contents|inputRequests|tools|completion|capabilities") {
        let text = format!(r#"{{"resultType":"complete","{name}":{}}}"#, Json::from(value));
        let faults = reading(&text, |members| [
            CallToolResult::read(members).err(),
            GetPromptResult::read(members).err(),
            ReadResourceResult::read(members).err(),
            InputRequired::read(members).err(),
            CompleteResult::read(members).err(),
        ]);
        for fault in faults.into_iter().flatten() {
            prop_assert!(!fault.detail.is_empty() && !fault.detail.contains(char::is_control));
        }
    }
}
