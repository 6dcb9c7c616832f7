use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::super::*;
use super::{fault, reading};
use crate::time::Duration;
use crate::wire::Json;

/// R70: hints that make no sense are read as the cautious value.
#[test]
fn cache_hints() {
    let hint = |text: &str| reading(text, CacheHint::read);
    for (ttl, millis) in [
        ("0", 0),
        ("1", 1),
        ("2500.9", 2_500),
        ("-1", 0),
        ("\"60000\"", 0),
        ("null", 0),
        ("86400000", 86_400_000),
        ("86400001", 86_400_000),
        ("1e400", 86_400_000),
        ("-1e400", 0),
    ] {
        let read = hint(&format!(r#"{{"ttlMs":{ttl}}}"#)).ttl;
        assert_eq!(read, Duration::from_millis(millis), "{ttl}");
    }
    assert_eq!(hint("{}"), CacheHint::default());
    for (scope, expected) in [
        ("\"public\"", CacheScope::Public),
        ("\"private\"", CacheScope::Private),
        ("\"Public\"", CacheScope::Private),
        ("\"shared\"", CacheScope::Private),
        ("true", CacheScope::Private),
    ] {
        assert_eq!(
            hint(&format!(r#"{{"cacheScope":{scope}}}"#)).scope,
            expected
        );
    }
    let long_public = hint(r#"{"ttlMs":9,"cacheScope":"public"}"#);
    let short_private = hint(r#"{"ttlMs":5}"#);
    assert_eq!(long_public.and(short_private), short_private);
    assert_eq!(long_public.and(long_public), long_public);
}

/// R42: what is malformed is dropped, so that no NaN, infinity or text reaches an application.
#[test]
fn progress_values() {
    let read = |text: &str| {
        let json = Json::parse(text).unwrap();
        Progress::read(json.as_raw()).map(|progress| {
            (
                progress.token.get().to_string(),
                progress.progress,
                progress.fraction(),
                progress.message.map(Cow::into_owned),
            )
        })
    };
    assert_eq!(
        read(r#"{"progressToken":"a\u0062","progress":0.5,"total":2,"message":"half"}"#),
        Some((r#""a\u0062""#.into(), 0.5, Some(0.25), Some("half".into())))
    );
    assert_eq!(
        read(r#"{"progressToken":1,"progress":5,"total":0,"message":null}"#),
        Some(("1".into(), 5.0, None, None))
    );
    assert_eq!(
        read(r#"{"progressToken":1,"progress":5,"total":4}"#),
        Some(("1".into(), 5.0, Some(1.0), None))
    );
    for malformed in [
        "[]",
        "{}",
        r#"{"progressToken":1}"#,
        r#"{"progress":1}"#,
        r#"{"progressToken":null,"progress":1}"#,
        r#"{"progressToken":[1],"progress":1}"#,
        r#"{"progressToken":1,"progress":"1"}"#,
        r#"{"progressToken":1,"progress":null}"#,
        r#"{"progressToken":1,"progress":-1}"#,
        r#"{"progressToken":1,"progress":1e400}"#,
        r#"{"progressToken":1,"progress":1,"total":"2"}"#,
        r#"{"progressToken":1,"progress":1,"total":1e400}"#,
        r#"{"progressToken":1,"progress":1,"message":2}"#,
    ] {
        assert_eq!(read(malformed), None, "{malformed}");
    }
}

#[test]
fn log_levels_are_ordered() {
    assert_eq!(LogLevel::parse("warning"), Some(LogLevel::Warning));
    assert_eq!(LogLevel::parse("warn"), None);
    assert!(LogLevel::Debug < LogLevel::Emergency);
    assert!(LogLevel::ALL.is_sorted());
}

#[test]
fn prompts_and_reads() {
    let prompt = reading(
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"},"x":1}],"description":null}"#,
        GetPromptResult::read,
    )
    .unwrap();
    let message = &prompt.messages[0];
    assert_eq!(message.role(), Role::User);
    assert!(matches!(message.content(), Content::Text { text } if text == "hi"));
    for (text, expected) in [
        ("{}", "malformed result: messages is missing"),
        (
            r#"{"messages":[{"role":"system","content":{"type":"text","text":"hi"}}]}"#,
            "malformed result: messages[0].role is neither \"user\" nor \"assistant\"",
        ),
        (
            r#"{"messages":[{"role":"user","content":"hi"}]}"#,
            "malformed content block: messages[0].content is not an object",
        ),
        (
            r#"{"messages":[{"role":"user","content":{"type":"image","data":""}}]}"#,
            "malformed content block: messages[0].content.mimeType is missing",
        ),
    ] {
        let fault = reading(text, GetPromptResult::read).unwrap_err();
        assert_eq!(fault.to_string(), expected);
    }
    let read = reading(
        r#"{"contents":[{"uri":"a:1","text":""},{"uri":"a:2","blob":"AA=="}],"ttlMs":7}"#,
        ReadResourceResult::read,
    )
    .unwrap();
    let bodies: Vec<_> = read
        .contents
        .iter()
        .map(|contents| contents.view().body)
        .collect();
    assert_eq!(
        bodies,
        vec![
            ResourceBody::Text("".into()),
            ResourceBody::Blob("AA==".into())
        ]
    );
    assert_eq!(read.cache.ttl, Duration::from_millis(7));
    let fault = reading(r#"{"contents":[{"uri":"a:"}]}"#, ReadResourceResult::read).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "malformed result: contents[0] has neither text nor blob"
    );
}

#[test]
fn completions() {
    let read = |text| reading(text, CompleteResult::read);
    let result =
        read(r#"{"completion":{"values":["a","b"],"total":9,"hasMore":true,"x":1.0}}"#).unwrap();
    assert_eq!(result.values, ["a", "b"]);
    assert_eq!((result.total, result.has_more), (Some(9), true));
    assert!(result.raw.as_str().ends_with(r#""x":1.0}"#));
    assert_eq!(
        read(r#"{"completion":{"values":[],"total":1.5}}"#)
            .unwrap()
            .total,
        None
    );
    for (text, detail) in [
        ("{}", "completion is missing"),
        (r#"{"completion":{}}"#, "completion.values is missing"),
        (
            r#"{"completion":{"values":[1]}}"#,
            "completion.values[0] is not a string",
        ),
        (
            r#"{"completion":{"values":[],"total":"1"}}"#,
            "completion.total is not a number",
        ),
        (
            r#"{"completion":{"values":[],"hasMore":1}}"#,
            "completion.hasMore is not a boolean",
        ),
    ] {
        assert_eq!(
            read(text),
            Err(fault(Violation::MalformedResult, detail)),
            "{text}"
        );
    }
}
