use alloc::format;
use alloc::string::String;

use super::super::*;
use super::{fault, reading};
use crate::wire::Json;

/// Optional members that are null are absent: one null hint must not cost a tool.
#[test]
fn tool_views() {
    let tool = |text: &str| {
        let raw = Json::parse(text).unwrap();
        <Tool as Entry>::read(raw.as_raw(), 0).unwrap()
    };
    let bare = tool(
        r#"{"title":null,"name":"a","description":7,"inputSchema":null,
            "annotations":{"readOnlyHint":null,"destructiveHint":false,"title":null}}"#,
    );
    assert_eq!(bare.name(), "a");
    assert_eq!((bare.title(), bare.description()), (None, None));
    assert!(!bare.has_input_schema() && !bare.has_output_schema());
    assert_eq!(bare.annotations().read_only, None);
    assert_eq!(bare.annotations().destructive, Some(false));
    let full = tool(
        r#"{"name":"n\u00e9","title":"T","description":"d\n","inputSchema":{"type":"object"},
            "outputSchema":{},"annotations":{"idempotentHint":true},"icons":[]}"#,
    );
    assert_eq!(full.name(), "né");
    assert_eq!(full.description().as_deref(), Some("d\n"));
    assert_eq!(full.input_schema().unwrap().get(), r#"{"type":"object"}"#);
    assert!(full.has_output_schema());
    assert_eq!(full.annotations().idempotent, Some(true));
    assert_eq!(full.member("icons").unwrap().get(), "[]");
    assert_eq!(tool(r#"{"name":"","x":[]}"#).name(), "");
}

/// R60: an entry without a name; the short cut for names that come first changes nothing.
#[test]
fn entries_without_name() {
    for (entry, detail) in [
        ("7", "tools[0] is not an object"),
        ("null", "tools[0] is not an object"),
        ("{}", "tools[0].name is missing"),
        (r#"{"name":null}"#, "tools[0].name is missing"),
        (r#"{"name":["a"]}"#, "tools[0].name is not a string"),
        (
            r#"{"name":"\ud800"}"#,
            "tools[0].name has a lone surrogate escape",
        ),
        (r#"{"name":"a","name":"b"}"#, "tools[0] has a member twice"),
        (
            r#"{"name":"a","x":"\n","na\u006de":"b"}"#,
            "tools[0] has a member twice",
        ),
    ] {
        let page = reading(&format!(r#"{{"tools":[{entry}]}}"#), |members| {
            ListPage::<Tool>::read(members, 10)
        });
        let expected = fault(Violation::EntryWithoutName, detail);
        assert_eq!(page, Err(ListFault::Violation(expected)), "{entry}");
    }
    let other = |text| {
        let json = Json::parse(text).unwrap();
        let detail = |fault: Fault| fault.detail;
        (
            Resource::read(json.as_raw(), 2).map(|_| ()).map_err(detail),
            ResourceTemplate::read(json.as_raw(), 2)
                .map(|_| ())
                .map_err(detail),
            Prompt::read(json.as_raw(), 2).map(|_| ()).map_err(detail),
        )
    };
    assert_eq!(
        other(r#"{"uri":"a:","name":"n"}"#),
        (
            Ok(()),
            Err("resourceTemplates[2].uriTemplate is missing".into()),
            Ok(())
        )
    );
    assert_eq!(
        other(r#"{"uri":"a:","uriTemplate":"a:{x}"}"#),
        (
            Err("resources[2].name is missing".into()),
            Err("resourceTemplates[2].name is missing".into()),
            Err("prompts[2].name is missing".into()),
        )
    );
}

/// Pagination: null ends, the empty string does not, anything else is a violation.
#[test]
fn cursors() {
    let next = |cursor: &str| {
        let text = format!(r#"{{"prompts":[{{"name":"p"}}],"nextCursor":{cursor}}}"#);
        reading(&text, |members| ListPage::<Prompt>::read(members, 10)).map(|page| page.next_cursor)
    };
    assert_eq!(next("null"), Ok(None));
    assert_eq!(next(r#""""#), Ok(Some(String::new())));
    assert_eq!(next(r#""a\u00e9""#), Ok(Some("aé".into())));
    for (cursor, detail) in [
        ("1", "nextCursor is not a string"),
        ("{}", "nextCursor is not a string"),
        (r#""\udc00""#, "nextCursor has a lone surrogate escape"),
    ] {
        let expected = fault(Violation::MalformedResult, detail);
        assert_eq!(next(cursor), Err(ListFault::Violation(expected)));
    }
    for (text, detail) in [
        ("{}", "tools is missing"),
        (r#"{"tools":{"a":{}}}"#, "tools is not an array"),
        (r#"{"tools":null}"#, "tools is missing"),
    ] {
        let expected = fault(Violation::MalformedResult, detail);
        let page = reading(text, |members| ListPage::<Tool>::read(members, 10));
        assert_eq!(page, Err(ListFault::Violation(expected)), "{text}");
    }
}
