use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use proptest::prelude::*;

use super::super::*;
use super::reading;
use crate::wire::Json;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn request(method: &str, params: &str) -> InputRequest {
    let text = format!(r#"{{"inputRequests":{{"q":{{"method":"{method}","params":{params}}}}}}}"#);
    let input = reading(&text, InputRequired::read).unwrap();
    input.requests.into_iter().next().unwrap()
}

fn elicitation(params: &str) -> InputRequest {
    request("elicitation/create", params)
}

fn form(schema: &str) -> Form {
    let request = elicitation(&format!(r#"{{"message":"m","requestedSchema":{schema}}}"#));
    match Elicitation::read(&request) {
        Ok(Elicitation::Form(form)) => form,
        other => panic!("{other:?}"),
    }
}

/// Every schema of the specification, and what it takes of a list of values.
#[test]
fn r30_what_each_field_takes() {
    let fields = [
        r#"{"type":"string"}"#,
        r#"{"type":"string","minLength":2,"maxLength":3}"#,
        r#"{"type":"string","format":"email"}"#,
        r#"{"type":"string","format":"uri"}"#,
        r#"{"type":"string","format":"date"}"#,
        r#"{"type":"string","format":"date-time"}"#,
        r#"{"type":"string","format":"ipv4"}"#,
        r#"{"type":"number","minimum":0,"maximum":1.5}"#,
        r#"{"type":"integer","maximum":10}"#,
        r#"{"type":"boolean"}"#,
        r#"{"type":"string","enum":["ab","é"]}"#,
        r##"{"type":"string","oneOf":[{"const":"ab","title":"A"},{"const":"c"}]}"##,
        r#"{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["ab","c"]}}"#,
        r#"{"type":"array","items":{"anyOf":[{"const":"ab","title":"A"}]}}"#,
        r#"{"type":"object","properties":{}}"#,
    ];
    let values = [
        r#""""#,
        r#""ab""#,
        r#""\u00e9""#,
        r#""éééé""#,
        r#""a@b""#,
        r#""a@b@c""#,
        r#""urn:x""#,
        r#""x y:z""#,
        r#""2024-02-29""#,
        r#""2023-02-29""#,
        r#""2026-07-28T12:00:00.5+02:00""#,
        r#""2026-07-28T24:00:00Z""#,
        r#""2026-07-28 12:00:00Z""#,
        r#""\ud800""#,
        "0",
        "1.0",
        "1.5",
        "-1",
        "1e400",
        "true",
        "[]",
        r#"["ab"]"#,
        r#"["ab","c","c"]"#,
        r#"["x"]"#,
        "[1]",
        "{}",
    ];
    let mut table = String::new();
    for field in fields {
        let form = form(&format!(
            r#"{{"type":"object","properties":{{"f":{field}}}}}"#
        ));
        let mut taken = Vec::new();
        let mut words = None;
        for value in values {
            match form.accept(&json(&format!(r#"{{"f":{value}}}"#))) {
                Ok(response) => {
                    let expected = format!(r#"{{"action":"accept","content":{{"f":{value}}}}}"#);
                    assert_eq!(response.as_json().as_str(), expected);
                    taken.push(value);
                }
                Err(fault) => words = Some(fault.to_string()),
            }
        }
        let words = words.unwrap_or_default();
        table.push_str(&format!(
            "{field}\n    takes {}\n    {words}\n",
            taken.join(" ")
        ));
    }
    insta::assert_snapshot!("what_each_field_takes", table);
}

/// R30: defaults fill what is not given, in the form's order; what does not fit is no default.
#[test]
fn r30_defaults_fill_in() {
    let form = form(
        r#"{"type":"object","required":["name","size"],"properties":{
            "name":{"type":"string","title":"Name","description":"Yours","default":"x"},
            "size":{"type":"integer","default":1.5},
            "tint":{"type":"string","enum":["r","g"],"enumNames":["Red"],"default":"g"},
            "on":{"type":"boolean"}}}"#,
    );
    assert_eq!(form.defaults().as_str(), r#"{"name":"x","tint":"g"}"#);
    let accept = |values| {
        let response = form.accept(&json(values));
        response
            .map(|response| response.as_json().to_string())
            .map_err(|fault| fault.to_string())
    };
    assert_eq!(
        accept(r#"{"on":true,"tint":"r","size":2}"#).unwrap(),
        r#"{"action":"accept","content":{"name":"x","size":2,"tint":"r","on":true}}"#
    );
    assert_eq!(accept("{}").unwrap_err(), "size is missing");
    assert_eq!(accept(r#"{"size":null}"#).unwrap_err(), "size is missing");
    assert_eq!(
        accept(r#"{"size":1,"more":1}"#).unwrap_err(),
        "more was not asked for"
    );
    assert!(
        accept(r#"{"size":1,"size":2}"#)
            .unwrap_err()
            .contains("twice")
    );
    assert!(accept("[]").unwrap_err().starts_with("content"));
    let [name, size, tint, on] = &form.fields[..] else {
        panic!()
    };
    assert_eq!(
        (
            name.title.as_deref(),
            name.description.as_deref(),
            name.required
        ),
        (Some("Name"), Some("Yours"), true)
    );
    assert_eq!(
        (size.required, &size.default, on.required),
        (true, &None, false)
    );
    let option = |value: &str, title: Option<&str>| FormOption {
        value: value.into(),
        title: title.map(ToString::to_string),
    };
    let options = alloc::vec![option("r", Some("Red")), option("g", None)];
    assert_eq!(tint.kind, FieldKind::Choice { options });
}

/// R30: what an elicitation must be, and which mode it is of.
#[test]
fn r30_elicitation_faults() {
    let read = |params| Elicitation::read(&elicitation(params)).map_err(|fault| fault.detail);
    let url = r#"{"mode":"url","message":"m","url":"https://x.example/"}"#;
    let expected = Elicitation::Url {
        message: "m".into(),
        url: "https://x.example/".into(),
    };
    assert_eq!(read(url), Ok(expected));
    for (params, detail) in [
        (
            r#"{"message":"m"}"#,
            "inputRequests.q.params.requestedSchema is missing",
        ),
        (
            r#"{"message":"m","mode":"voice"}"#,
            "inputRequests.q.params.mode is unknown",
        ),
        (
            r#"{"message":"m","mode":7}"#,
            "inputRequests.q.params.mode is unknown",
        ),
        (
            r#"{"message":"m","mode":"url","url":"x y"}"#,
            "inputRequests.q.params.url is no address",
        ),
        (
            r#"{"message":"m","requestedSchema":[]}"#,
            "inputRequests.q.params.requestedSchema is not an object",
        ),
        (
            r#"{"message":"m","requestedSchema":{"properties":{"a":{},"a":{}}}}"#,
            "inputRequests.q.params.requestedSchema.properties is not an object with unique members",
        ),
        (
            r#"{"message":"m","requestedSchema":{"required":["a",1]}}"#,
            "inputRequests.q.params.requestedSchema.required is not an array of strings",
        ),
    ] {
        assert_eq!(read(params), Err(detail.to_string()), "{params}");
    }
    let roots = Elicitation::read(&request("roots/list", "{}"));
    assert_eq!(
        roots.unwrap_err().detail,
        "inputRequests.q is no elicitation"
    );
}

/// R30: what is declared, and what is not.
#[test]
fn r30_declared_input() {
    let requests = [
        (
            "form",
            elicitation(r#"{"message":"m","requestedSchema":{}}"#),
        ),
        (
            "url",
            elicitation(r#"{"message":"m","mode":"url","url":"a:b"}"#),
        ),
        ("voice", elicitation(r#"{"message":"m","mode":"voice"}"#)),
        ("roots", request("roots/list", "{}")),
        (
            "sampling",
            request("sampling/createMessage", r#"{"messages":[]}"#),
        ),
        (
            "tools",
            request("sampling/createMessage", r#"{"messages":[],"tools":[]}"#),
        ),
        (
            "choice",
            request(
                "sampling/createMessage",
                r#"{"messages":[],"toolChoice":{}}"#,
            ),
        ),
    ];
    for (capabilities, expected) in [
        ("{}", ""),
        (r#"{"elicitation":{}}"#, "form"),
        (r#"{"elicitation":{"form":{}}}"#, "form"),
        (r#"{"elicitation":{"url":{}}}"#, "url"),
        (r#"{"elicitation":{"url":{},"form":{}}}"#, "form url"),
        (r#"{"elicitation":null,"roots":{}}"#, "roots"),
        (r#"{"sampling":{}}"#, "sampling"),
        (r#"{"sampling":{"tools":{}}}"#, "sampling tools choice"),
        ("[]", ""),
    ] {
        let declared = InputCapabilities::read(&json(capabilities));
        let (allowed, refused): (Vec<_>, Vec<_>) = requests
            .iter()
            .partition(|(_, request)| declared.check(request).is_ok());
        let allowed: Vec<_> = allowed.iter().map(|(name, _)| *name).collect();
        assert_eq!(allowed.join(" "), expected, "{capabilities}");
        for (_, request) in refused {
            let violation = declared.check(request).unwrap_err().violation;
            assert_eq!(violation, Violation::InputNotDeclared);
        }
    }
}

/// R30: each builder's answer is one to its request, and to no other; JSON of the application's is
/// checked in the same way.
#[test]
fn r30_responses_fit_their_requests() {
    let schema = r#"{"properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let form_request = elicitation(&format!(r#"{{"message":"m","requestedSchema":{schema}}}"#));
    let accepted = form(schema).accept(&json(r#"{"n":1}"#)).unwrap();
    let url = elicitation(r#"{"message":"m","mode":"url","url":"a:b"}"#);
    let roots = request("roots/list", "{}");
    let sampling = request("sampling/createMessage", r#"{"messages":[]}"#);
    let root = Root::new("file:///a", Some("A")).unwrap();
    assert_eq!(Root::new("https://a", None), None);
    let responses = [
        ("accept", accepted),
        ("accept url", InputResponse::accept_url()),
        ("decline", InputResponse::decline()),
        ("cancel", InputResponse::cancel()),
        ("roots", InputResponse::roots(&[root.clone(), root])),
        (
            "sampled",
            InputResponse::sampled_text("m", "t\"", Some("endTurn")),
        ),
        (
            "raw accept",
            InputResponse::raw(json(r#"{"action":"accept","content":{"n":"1"}}"#)),
        ),
        (
            "raw action",
            InputResponse::raw(json(r#"{"action":"maybe"}"#)),
        ),
        (
            "raw roots",
            InputResponse::raw(json(r#"{"roots":[{"uri":"http://a"}]}"#)),
        ),
        (
            "raw sampled",
            InputResponse::raw(json(r#"{"role":"assistant","model":"m","content":[{}]}"#)),
        ),
        ("raw number", InputResponse::raw(json("1"))),
    ];
    let mut table = String::new();
    for (name, response) in &responses {
        table.push_str(&format!("{name}: {}\n", response.as_json()));
        for (kind, request) in [
            ("form", &form_request),
            ("url", &url),
            ("roots", &roots),
            ("sampling", &sampling),
        ] {
            let outcome = match response.check(request) {
                Ok(()) => "fits".to_string(),
                Err(fault) => fault.to_string(),
            };
            table.push_str(&format!("    {kind:10}{outcome}\n"));
        }
    }
    insta::assert_snapshot!("which_response_fits_which_request", table);
}

/// R30: a request for sampling, read.
#[test]
fn r30_sampling_requests() {
    let read = |params| SamplingRequest::read(&request("sampling/createMessage", params));
    let sampling = read(
        r#"{"messages":[
                {"role":"user","content":{"type":"text","text":"hi"}},
                {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[]}]}],
            "maxTokens":1e2,"systemPrompt":"s","temperature":0.5,"stopSequences":["a",1,"b"],
            "modelPreferences":{"hints":[{"name":"x"},{}],"costPriority":0.1},"tools":[]}"#,
    )
    .unwrap();
    assert_eq!(
        (sampling.max_tokens, sampling.temperature),
        (100, Some(0.5))
    );
    assert_eq!(sampling.stop_sequences, ["a", "b"]);
    assert_eq!(
        (sampling.model_hints, sampling.priorities.cost),
        (alloc::vec!["x".to_string()], Some(0.1))
    );
    assert_eq!(sampling.tools, Some(json("[]")));
    let roles: Vec<_> = sampling
        .messages
        .iter()
        .map(|message| message.role)
        .collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
    assert_eq!(
        sampling.messages[0].content[0].text().as_deref(),
        Some("hi")
    );
    for (params, detail) in [
        (
            r#"{"messages":[]}"#,
            "inputRequests.q.params.maxTokens is missing",
        ),
        (
            r#"{"messages":[],"maxTokens":-1}"#,
            "inputRequests.q.params.maxTokens is no whole number",
        ),
        (
            r#"{"messages":[],"maxTokens":1.5}"#,
            "inputRequests.q.params.maxTokens is no whole number",
        ),
        (
            r#"{"messages":[{"content":[]}],"maxTokens":1}"#,
            "messages[0].role is missing",
        ),
        (
            r#"{"messages":[{"role":"x","content":[]}],"maxTokens":1}"#,
            "messages[0].role is neither assistant nor user",
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result"},{"type":"text","text":""}]}],"maxTokens":1}"#,
            "messages[0] has results of tools beside other content",
        ),
    ] {
        assert_eq!(read(params).unwrap_err().detail, detail, "{params}");
    }
}

proptest! {
    /// R1: whatever schema a server writes and whatever is answered, reading and checking it do not
    /// panic, and what is accepted fits the request.
    #[test]
    fn r1_any_schema_and_any_answer(
        schema in any_json(), value in any_json(),
    ) {
        let request = elicitation(&format!(
            r#"{{"message":"m","requestedSchema":{{"properties":{{"f":{schema},"g":{value}}},"required":["f"]}}}}"#
        ));
        if let Ok(Elicitation::Form(form)) = Elicitation::read(&request) {
            for values in [format!(r#"{{"f":{value}}}"#), value, "{}".to_string()] {
                if let Ok(response) = form.accept(&json(&values)) {
                    prop_assert_eq!(response.check(&request), Ok(()));
                }
            }
        }
    }
}

/// JSON made of the words of schemas.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_string()),
        Just("true".to_string()),
        Just("1.5".to_string()),
        Just("2".to_string()),
        Just("1e999".to_string()),
        Just(r#""string""#.to_string()),
        Just(r#""integer""#.to_string()),
        Just(r#""array""#.to_string()),
        Just(r#""\ud800""#.to_string()),
        Just(r#""date""#.to_string()),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let names = prop::sample::select(
            &[
                "type",
                "enum",
                "oneOf",
                "items",
                "anyOf",
                "const",
                "title",
                "default",
                "minLength",
                "maximum",
                "minItems",
                "format",
                "enumNames",
            ][..],
        );
        let array = prop::collection::vec(inner.clone(), 0..4)
            .prop_map(|items| format!("[{}]", items.join(",")));
        let object = prop::collection::vec((names, inner), 0..5).prop_map(|members| {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("\"{name}\":{value}"))
                .collect();
            format!("{{{}}}", members.join(","))
        });
        prop_oneof![array, object]
    })
}
