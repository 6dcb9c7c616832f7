use alloc::format;
use alloc::vec::Vec;

use super::super::*;
use super::{fault, reading};
use crate::wire::Json;

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
