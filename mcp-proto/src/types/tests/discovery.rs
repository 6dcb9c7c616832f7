use alloc::format;

use super::super::*;
use super::{fault, reading};
use crate::time::Duration;

fn discover(text: &str) -> Result<DiscoverResult, DiscoverFault> {
    reading(text, DiscoverResult::read)
}

/// R11: what is required of a discover answer, and what is not.
#[test]
fn discover_answers() {
    let minimal =
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
    let result = discover(minimal).unwrap();
    assert_eq!(result.supported_versions, ["2026-07-28"]);
    assert_eq!(result.server_info, None);
    assert_eq!(result.cache, CacheHint::default());

    let full = discover(
        r#"{"resultType":"complete","supportedVersions":["2030-01-01","2026-07-28"],
            "capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":"yes"},
                "prompts":null,"logging":{},"completions":false,"extensions":{"x/y":{"v":1}}},
            "instructions":"Be kind.","ttlMs":1500,"cacheScope":"public","serverInfo":{"name":"top","version":"1"},
            "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"2","title":"Fake"}}}"#,
    )
    .unwrap();
    let info = full.server_info.unwrap();
    assert_eq!((&*info.name, &*info.version), ("fake", "2"));
    assert_eq!(info.title().as_deref(), Some("Fake"));
    let can = &full.capabilities;
    assert_eq!(can.tools, Some(ListCapability { list_changed: true }));
    let resources = can.resources.unwrap();
    assert_eq!((resources.subscribe, resources.list_changed), (true, false));
    assert_eq!(
        (can.prompts, can.logging, can.completions),
        (None, true, false)
    );
    assert_eq!(can.extensions().unwrap().get(), r#"{"x/y":{"v":1}}"#);
    assert_eq!(full.instructions.as_deref(), Some("Be kind."));
    assert_eq!(full.cache.ttl, Duration::from_millis(1500));
    assert_eq!(full.cache.scope, CacheScope::Public);
}

/// R11: a server that misstates who it is, is still modern; the other place is looked at.
#[test]
fn discover_server_info_is_optional() {
    for (meta, top, expected) in [
        (
            r#"{"io.modelcontextprotocol/serverInfo":{"name":""}}"#,
            r#"{"name":"t","version":"1"}"#,
            Some("t"),
        ),
        ("7", "\"fake\"", None),
        ("{}", r#"{"name":"t","version":2}"#, None),
    ] {
        let text = format!(
            r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{}},"_meta":{meta},"serverInfo":{top}}}"#
        );
        let info = discover(&text).unwrap().server_info;
        assert_eq!(info.map(|info| info.name).as_deref(), expected, "{text}");
    }
}

/// R14: `{}` is ambiguous, anything else that is no discover answer is a hard failure.
#[test]
fn discover_faults() {
    use Violation::{InputRequiredInvalid, MalformedResult, ResultTypeMissing, ResultTypeUnknown};
    assert_eq!(discover("{}"), Err(DiscoverFault::Empty));
    for (text, violation, detail) in [
        (
            r#"{"tools":[]}"#,
            ResultTypeMissing,
            "resultType is missing",
        ),
        (
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#,
            ResultTypeMissing,
            "resultType is missing",
        ),
        (
            r#"{"resultType":"complete"}"#,
            MalformedResult,
            "capabilities is missing",
        ),
        (
            r#"{"resultType":"complete","capabilities":{}}"#,
            MalformedResult,
            "supportedVersions is missing",
        ),
        (
            r#"{"resultType":"complete","capabilities":{},"supportedVersions":[]}"#,
            MalformedResult,
            "supportedVersions is empty",
        ),
        (
            r#"{"resultType":"complete","capabilities":{},"supportedVersions":"2026-07-28"}"#,
            MalformedResult,
            "supportedVersions is not an array",
        ),
        (
            r#"{"resultType":"complete","capabilities":{},"supportedVersions":["2026-07-28",1]}"#,
            MalformedResult,
            "supportedVersions[1] is not a string",
        ),
        (
            r#"{"resultType":"complete","capabilities":[],"supportedVersions":["2026-07-28"]}"#,
            MalformedResult,
            "capabilities is not an object",
        ),
        (
            r#"{"resultType":"done","capabilities":{},"supportedVersions":["2026-07-28"]}"#,
            ResultTypeUnknown,
            r#"resultType is "done""#,
        ),
        (
            r#"{"resultType":"input_required","requestState":"x"}"#,
            InputRequiredInvalid,
            r#"resultType is "input_required", which server/discover cannot ask for"#,
        ),
    ] {
        let expected = DiscoverFault::Malformed(fault(violation, detail));
        assert_eq!(discover(text), Err(expected), "{text}");
    }
}
