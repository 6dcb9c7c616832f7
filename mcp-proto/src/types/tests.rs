use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use proptest::prelude::*;

use super::*;
use crate::limits::Limits;
use crate::time::Duration;
use crate::wire::Json;
use object::each_member;

/// Reads a result from its text.
pub(crate) fn reading<R>(text: &str, read: impl FnOnce(&Members<'_>) -> R) -> R {
    let json = Json::parse(text).unwrap();
    let mut members = Members::default();
    each_member(json.as_raw(), |name, raw| {
        assert!(members.insert(name, raw));
        Ok::<_, ()>(())
    })
    .unwrap()
    .unwrap();
    read(&members)
}

fn call(text: &str) -> Result<CallToolResult, Fault> {
    reading(text, |members| {
        CallToolResult::read(members, &Limits::default())
    })
}

fn fault(violation: Violation, detail: &str) -> Fault {
    Fault::new(violation, detail)
}

/// R17: the four shapes of `resultType` in both eras.
#[test]
fn result_type_by_era() {
    use Violation::{InputRequiredInvalid, ResultTypeMissing, ResultTypeUnknown};
    let kind = |text, era| {
        reading(text, |members| {
            result_type(members, era).map_err(|fault| fault.violation)
        })
    };
    for (text, modern, legacy) in [
        ("{}", Err(ResultTypeMissing), Ok(ResultType::Complete)),
        (
            r#"{"resultType":null}"#,
            Err(ResultTypeMissing),
            Ok(ResultType::Complete),
        ),
        (
            r#"{"resultType":"complete"}"#,
            Ok(ResultType::Complete),
            Ok(ResultType::Complete),
        ),
        (
            r#"{"resultType":"input_required"}"#,
            Ok(ResultType::InputRequired),
            Err(InputRequiredInvalid),
        ),
        (
            r#"{"resultType":"Complete"}"#,
            Err(ResultTypeUnknown),
            Err(ResultTypeUnknown),
        ),
        (
            r#"{"resultType":1}"#,
            Err(ResultTypeUnknown),
            Err(ResultTypeUnknown),
        ),
    ] {
        assert_eq!(kind(text, Era::Modern), modern, "{text}");
        assert_eq!(kind(text, Era::Legacy), legacy, "{text}");
    }
    let unknown = reading(r#"{"resultType":"ta\u001bsk"}"#, |members| {
        result_type(members, Era::Modern).unwrap_err().detail
    });
    assert_eq!(unknown, r#"resultType is "ta\u{1b}sk""#);
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

/// R1, R63: the depth limit of structured content is exact.
#[test]
fn structured_content_depth() {
    let limits = Limits::default();
    let nested = |depth: usize| {
        let text = format!(
            r#"{{"content":[],"structuredContent":{}1{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        reading(&text, |members| {
            CallToolResult::read(members, &limits).map(|_| ())
        })
    };
    assert_eq!(nested(limits.depth), Ok(()));
    assert_eq!(
        nested(limits.depth + 1).unwrap_err().violation,
        Violation::TooDeep
    );
    assert_eq!(nested(200_000).unwrap_err().violation, Violation::TooDeep);
}

/// R30: the state goes back byte by byte, even where it stands for no text.
#[test]
fn request_state_is_kept_as_written() {
    let state = |text| reading(text, InputRequired::read).unwrap().state.unwrap();
    let escaped = state(r#"{"requestState":"a\u00e9\/\"b"}"#);
    assert_eq!(escaped.as_json().as_str(), r#""a\u00e9\/\"b""#);
    assert_eq!(escaped.text().as_deref(), Some("aé/\"b"));
    let lone = state(r#"{"requestState":"\ud800"}"#);
    assert_eq!(lone.as_json().as_str(), r#""\ud800""#);
    assert_eq!(lone.text(), None);
    let stored = Json::encode(&escaped).unwrap();
    assert_eq!(stored.decode::<RequestState>().unwrap(), escaped);
    assert_eq!(format!("{lone:?}"), "RequestState(8 bytes)");
    assert_eq!(state(r#"{"requestState":""}"#).text().as_deref(), Some(""));
}

/// R30: what an input_required result must be.
#[test]
fn input_required_faults() {
    for (text, detail) in [
        ("{}", "there is neither an input request nor a requestState"),
        (
            r#"{"inputRequests":null,"requestState":null}"#,
            "there is neither an input request nor a requestState",
        ),
        (
            r#"{"inputRequests":{}}"#,
            "there is neither an input request nor a requestState",
        ),
        (r#"{"requestState":7}"#, "requestState is not a string"),
        (r#"{"inputRequests":[]}"#, "inputRequests is not an object"),
        (
            r#"{"inputRequests":{"a":1}}"#,
            "inputRequests.a is not an object",
        ),
        (
            r#"{"inputRequests":{"a":{}}}"#,
            "inputRequests.a.method is missing",
        ),
        (
            r#"{"inputRequests":{"a":{"method":"tools/call","params":{}}}}"#,
            "inputRequests.a.method asks for no kind of input",
        ),
        (
            r#"{"inputRequests":{"a":{"method":"elicitation/create"}}}"#,
            "inputRequests.a.params is missing",
        ),
        (
            r#"{"inputRequests":{"a":{"method":"elicitation/create","params":{}}}}"#,
            "inputRequests.a.params.message is missing",
        ),
        (
            r#"{"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m","mode":"url"}}}}"#,
            "inputRequests.a.params.url is missing",
        ),
        (
            r#"{"inputRequests":{"a":{"method":"sampling/createMessage","params":{"messages":{}}}}}"#,
            "inputRequests.a.params.messages is not an array",
        ),
        (
            r#"{"inputRequests":{"a":{"method":"roots/list","params":[]}}}"#,
            "inputRequests.a.params is not an object",
        ),
        (
            r#"{"inputRequests":{"a":{"method":"roots/list"},"\u0061":{"method":"roots/list"}}}"#,
            "inputRequests.a stands twice",
        ),
    ] {
        let expected = fault(Violation::InputRequiredInvalid, detail);
        assert_eq!(reading(text, InputRequired::read), Err(expected), "{text}");
    }
}

/// R30: requests in the server's order, with the text for a person.
#[test]
fn input_requests_and_their_prompt() {
    let input = reading(
        r#"{"inputRequests":{
            "z":{"method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object"}}},
            "b":{"method":"elicitation/create","params":{"mode":"url","message":"Sign in:","url":"https://example.com/"}},
            "c":{"method":"sampling/createMessage","params":{"messages":[
                {"role":"user","content":{"type":"text","text":"Capital?"}},
                {"role":"user","content":[{"type":"image","data":"","mimeType":"i/p"},{"type":"text","text":"Now."}]}]}},
            "a":{"method":"roots/list"}}}"#,
        InputRequired::read,
    )
    .unwrap();
    let keys: Vec<_> = input.requests.iter().map(|request| &*request.key).collect();
    assert_eq!(keys, ["z", "b", "c", "a"]);
    assert_eq!(input.requests[3].method, InputMethod::Roots);
    assert_eq!(input.requests[3].params.as_str(), "{}");
    assert_eq!(
        input.prompt(),
        "Your name?\nSign in: https://example.com/\nCapital?\nNow.\n\
         The server asks which directories you work in."
    );
    assert_eq!(input.state, None);
}

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
            CallToolResult::read(members, &Limits::default()).err(),
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
