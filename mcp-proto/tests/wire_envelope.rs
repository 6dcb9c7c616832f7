//! The JSON-RPC envelope (R60, R62).

use mcp_proto::Violation;
use mcp_proto::wire::envelope::read;
use mcp_proto::wire::{
    Answer, Message, RejectKind, Rejected, ResponseId, depth, printable, salvage_id,
};
use proptest::prelude::*;
use serde_json::Value;

fn rejected(line: impl AsRef<[u8]>) -> Rejected {
    let line = line.as_ref();
    match read(line) {
        Err(rejected) => rejected,
        Ok(message) => panic!("{} was read as {message:?}", line.escape_ascii()),
    }
}

/// What R60 refuses: the line, what is wrong, and the request that it answers all the same.
#[test]
fn r60_malformed_messages() {
    use Violation::{
        Batch, BothResultAndError, DuplicateMember, MalformedError, MalformedResult,
        NeitherResultNorError, NotJson, NotUtf8, ResultNotObject, WrongId, WrongJsonrpc,
    };
    let cases: &[(&[u8], Violation, Option<u64>)] = &[
        (br#"{"id":1,"result":{}}"#, WrongJsonrpc, Some(1)),
        (
            br#"{"jsonrpc":2.0,"id":1,"result":{}}"#,
            WrongJsonrpc,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            WrongJsonrpc,
            Some(1),
        ),
        (
            br#"{"jsonrpc":null,"id":1,"result":{}}"#,
            WrongJsonrpc,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            WrongJsonrpc,
            None,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1}"#,
            NeitherResultNorError,
            Some(1),
        ),
        (br#"{"jsonrpc":"2.0"}"#, NeitherResultNorError, None),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            NeitherResultNorError,
            None,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
            NeitherResultNorError,
            None,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
            BothResultAndError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            BothResultAndError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}"#,
            BothResultAndError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            ResultNotObject,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","result":[{}],"id":1}"#,
            ResultNotObject,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","result":"x","id":1}"#,
            ResultNotObject,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","result":1e999,"id":1}"#,
            ResultNotObject,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":null}"#,
            MalformedError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
            MalformedError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}"#,
            MalformedError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":{"code":1.0,"message":"m"}}"#,
            MalformedError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}"#,
            MalformedError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":{"code":9223372036854775808,"message":"m"}}"#,
            MalformedError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
            MalformedError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":null}}"#,
            MalformedError,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":1,"message":"m"}}"#,
            DuplicateMember,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"\u0061":1}}"#,
            DuplicateMember,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            DuplicateMember,
            None,
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
            DuplicateMember,
            Some(1),
        ),
        (br#"{"jsonrpc":"2.0","id":true,"result":{}}"#, WrongId, None),
        (br#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#, WrongId, None),
        (br#"{"jsonrpc":"2.0","id":[1],"result":{}}"#, WrongId, None),
        (
            br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            WrongId,
            None,
        ),
        (br#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, Batch, Some(1)),
        (
            br#"[{"jsonrpc":"2.0","method":"x"},{"id":1,"error":null}]"#,
            Batch,
            Some(1),
        ),
        (
            br#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#,
            Batch,
            None,
        ),
        (br#"[]"#, Batch, None),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}"#,
            NotJson,
            Some(1),
        ),
        (br#"{"jsonrpc":"2.0","id":1,"result":{}"#, NotJson, Some(1)),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{}} {}"#,
            NotJson,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{},}"#,
            NotJson,
            Some(1),
        ),
        (
            br#"{"jsonrpc":"2.0","id":1,"result":{"\ud800":1}}"#,
            MalformedResult,
            Some(1),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\xff\"}}",
            NotUtf8,
            Some(1),
        ),
    ];
    for (line, violation, id) in cases {
        let rejected = rejected(line);
        let found = (rejected.fault.violation, rejected.id, rejected.kind);
        let expected = (*violation, *id, RejectKind::Malformed);
        assert_eq!(found, expected, "{}", line.escape_ascii());
    }
}

/// R62: what was never meant to be a message is noise, whatever it looks like.
#[test]
fn r62_noise() {
    let cases: &[(&[u8], Violation)] = &[
        (b"Server listening on stdio", Violation::NotJson),
        (b"[INFO] {\"id\":1}", Violation::NotJson),
        (b"{not json}", Violation::NotJson),
        (b"\x80\x81", Violation::NotUtf8),
        (b"42", Violation::NotObject),
        (b"\"jsonrpc\"", Violation::NotObject),
        (b"null", Violation::NotObject),
        (b"{}", Violation::WrongJsonrpc),
        (
            br#"{"level":"info","msg":"started"}"#,
            Violation::WrongJsonrpc,
        ),
    ];
    for (line, violation) in cases {
        let rejected = rejected(line);
        let found = (rejected.fault.violation, rejected.id, rejected.kind);
        assert_eq!(
            found,
            (*violation, None, RejectKind::Noise),
            "{}",
            line.escape_ascii()
        );
    }
}

/// R60: `null` is told from nothing, and the words of an id are kept.
#[test]
fn r60_ids() {
    let id_of = |member: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0",{member}"error":{{"code":1,"message":"m"}}}}"#);
        match read(line.as_bytes()) {
            Ok(Message::Response(response)) => match response.id {
                ResponseId::Absent => "absent".to_owned(),
                ResponseId::Null => "null".to_owned(),
                ResponseId::Token(token) => {
                    format!("{token} {:?}", response.id.as_u64().or(token.as_u64()))
                }
            },
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(id_of(""), "absent");
    assert_eq!(id_of(r#""id":null,"#), "null");
    assert_eq!(id_of(r#""id": 7 ,"#), "7 Some(7)");
    assert_eq!(id_of(r#""id":0,"#), "0 Some(0)");
    assert_eq!(id_of(r#""id":"7","#), "\"7\" None");
    assert_eq!(id_of(r#""id":-7,"#), "-7 None");
    assert_eq!(id_of(r#""id":-0,"#), "-0 None");
    assert_eq!(
        id_of(r#""id":18446744073709551615,"#),
        "18446744073709551615 Some(18446744073709551615)"
    );
    assert_eq!(
        id_of(r#""id":18446744073709551616,"#),
        "18446744073709551616 None"
    );
}

/// R60: a server's id is echoed in its own words; params are left to the caller, of whatever type.
#[test]
fn r60_requests_and_notifications() {
    let line =
        br#" {"params": [1], "\u006dethod":"p\u0069ng","id":"\u0061\n","jsonrpc":"2.0","x":{}} "#;
    let Ok(Message::Request(request)) = read(line) else {
        panic!("a request");
    };
    assert_eq!(request.id.as_str(), r#""\u0061\n""#);
    assert_eq!(request.method, "ping");
    assert_eq!(request.params.unwrap().get(), "[1]");

    let Ok(Message::Notification(notification)) = read(br#"{"jsonrpc":"2.0","method":"a/b"}"#)
    else {
        panic!("a notification");
    };
    assert_eq!(notification.method, "a/b");
    assert!(notification.params.is_none());
}

#[test]
fn r60_errors_and_results_are_kept_as_they_are() {
    let line = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"n\u00f6","data": null,"x":1}}"#;
    let Ok(Message::Response(response)) = read(line) else {
        panic!("a response");
    };
    let Answer::Error(error) = response.answer else {
        panic!("an error");
    };
    assert_eq!((error.code, error.message.as_ref()), (-32601, "nö"));
    assert_eq!(error.data.unwrap().get(), "null");

    let line = br#"{"jsonrpc":"2.0","id":1,"result":{"b": [1, 2e0], "a" :true,"n":null}}"#;
    let Ok(Message::Response(response)) = read(line) else {
        panic!("a response");
    };
    let Answer::Result(members) = response.answer else {
        panic!("a result");
    };
    let members: Vec<_> = members
        .iter()
        .map(|(name, value)| (name, value.get()))
        .collect();
    assert_eq!(members, [("b", "[1, 2e0]"), ("a", "true"), ("n", "null")]);
}

/// R1: a result of very many members is neither refused nor slow, and a repeated one is still found.
#[test]
fn r1_results_of_many_members() {
    let members: Vec<_> = (0..200_000).map(|n| format!("\"m{n}\":0")).collect();
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{{}}}}}"#,
        members.join(",")
    );
    assert!(read(line.as_bytes()).is_ok());
    let line = line.replace("m199999", "m0");
    assert_eq!(rejected(line).fault.violation, Violation::DuplicateMember);
}

/// R1: nesting costs no stack here; whether it is too deep is asked separately.
#[test]
fn r1_deeply_nested_messages_are_read() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for levels in [126, 127, 1_000_000] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{}}}}}"#,
            nested(levels)
        );
        assert!(read(line.as_bytes()).is_ok());
        assert_eq!(depth::exceeds(&line, 128), levels > 126);
        assert_eq!(rejected(format!("[{line}]")).id, Some(1));
    }
}

/// R60: what a person is shown is short, and cannot play tricks on a terminal.
#[test]
fn r60_details_are_bounded_and_printable() {
    let evil = format!("\u{1b}[2J\u{202e}{}", "é".repeat(5000));
    let quoted = serde_json::to_string(&evil).unwrap();
    for line in [
        evil,
        format!(r#"{{"jsonrpc":{quoted},"id":1,"result":{{}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{quoted}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{quoted}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{quoted}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":[{quoted}],"result":{{}}}}"#),
        format!("[{quoted}]"),
    ] {
        let detail = rejected(&line).fault.detail;
        assert!(detail.len() <= 200 && detail.contains("é"), "{detail}");
        assert!(
            !detail
                .chars()
                .any(|char| char.is_control() || char == '\u{202e}'),
            "{detail:?}"
        );
    }
    assert!(
        rejected(br#"{"jsonrpc":"2.0","id":1,"error":"no such tool"}"#)
            .fault
            .detail
            .contains("no such tool")
    );
}

#[test]
fn r60_ids_are_salvaged_from_broken_lines() {
    let cases: &[(&str, Option<u64>)] = &[
        (r#"{"jsonrpc":"2.0","id":12,"result":{"a":"#, Some(12)),
        (
            r#"{"jsonrpc":"2.0","result":{"id":9,"s":"\"id\":8 }"},"id" : 12 }"#,
            Some(12),
        ),
        // Cut off inside the number: 12 may have been 123.
        (r#"{"jsonrpc":"2.0","id":12"#, None),
        (r#"{"jsonrpc":"2.0","id":"12","result"#, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"result"#, None),
        (r#"{"jsonrpc":"2.0","id":012,"result"#, None),
        (
            r#"{"jsonrpc":"2.0","id":12,"method":"ping","params":{"#,
            None,
        ),
        (r#"{"result":{"id":9}}, "id":1,"#, None),
        (r#"[{"id":1,"#, None),
        ("", None),
    ];
    for (line, id) in cases {
        assert_eq!(salvage_id(line.as_bytes()), *id, "{line}");
    }
}

/// What a reader that builds a `Value` makes of a line: its kind, id, method or code, and content. `None`
/// when it must be refused. Repeated members, which a `Value` hides, are not generated.
fn reference(line: &[u8]) -> Option<(&'static str, Value, Value, Value)> {
    let Value::Object(message) = serde_json::from_slice(line).ok()? else {
        return None;
    };
    if message.get("jsonrpc")? != "2.0" {
        return None;
    }
    let part = |name: &str| message.get(name).cloned();
    let id = part("id");
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    let nothing = Value::String("nothing".into());
    let or_nothing = |value: Option<Value>| value.unwrap_or_else(|| nothing.clone());
    match (part("method"), part("result"), part("error")) {
        (Some(method), None, None) if method.is_string() => match id {
            None => Some((
                "notification",
                nothing.clone(),
                method,
                or_nothing(part("params")),
            )),
            Some(id) => is_id(&id).then(|| ("request", id, method, or_nothing(part("params")))),
        },
        (None, result, error) => {
            if id.as_ref().is_some_and(|id| !is_id(id) && !id.is_null()) {
                return None;
            }
            let id = or_nothing(id);
            match (result, error) {
                (Some(result), None) if result.is_object() => Some(("result", id, nothing, result)),
                (None, Some(Value::Object(error))) => {
                    let (code, message) = (error.get("code")?, error.get("message")?);
                    let is_error = code.is_i64() && message.is_string();
                    let data = or_nothing(error.get("data").cloned());
                    is_error.then(|| {
                        (
                            "error",
                            id,
                            code.clone(),
                            serde_json::json!([message, data]),
                        )
                    })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The same of the reader under test. What it leaves unread may turn out to be no value yet, such as half
/// a surrogate pair; that is refused when it is read.
fn under_test(line: &[u8]) -> Option<(&'static str, Value, Value, Value)> {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let nothing = Value::String("nothing".into());
    let raw = |raw: Option<&serde_json::value::RawValue>| match raw {
        Some(raw) => value(raw.get()),
        None => Some(Value::String("nothing".into())),
    };
    Some(match read(line).ok()? {
        Message::Notification(it) => ("notification", nothing, it.method.into(), raw(it.params)?),
        Message::Request(it) => {
            let id = value(it.id.as_str())?;
            ("request", id, it.method.into(), raw(it.params)?)
        }
        Message::Response(it) => {
            let id = match it.id {
                ResponseId::Absent => nothing.clone(),
                ResponseId::Null => Value::Null,
                ResponseId::Token(token) => value(token.as_str())?,
            };
            match it.answer {
                Answer::Result(members) => {
                    let mut object = serde_json::Map::new();
                    for (name, raw) in members.iter() {
                        object.insert(name.to_owned(), value(raw.get())?);
                    }
                    ("result", id, nothing, object.into())
                }
                Answer::Error(error) => {
                    let content = serde_json::json!([error.message, raw(error.data)?]);
                    ("error", id, error.code.into(), content)
                }
            }
        }
    })
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop_oneof![Just("1"), Just("0"), Just("-1"), Just("7.5"), Just("1e3"), Just("1.0")].prop_map(str::to_owned),
        3 => Just("null".to_owned()),
        1 => Just("true".to_owned()),
        4 => any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        1 => Just(r#""\u00e9\ud83d\ude00\/""#.to_owned()),
        2 => Just(r#""2.0""#.to_owned()),
        2 => Just(r#""ping""#.to_owned()),
        1 => Just("[1, {\"a\": []}]".to_owned()),
        3 => Just(r#"{"a":1,"b":{"a":"x"}}"#.to_owned()),
        4 => Just(r#"{"code":-32601,"message":"m"}"#.to_owned()),
        1 => Just(r#"{"data":[1],"message":"m","code":1}"#.to_owned()),
        1 => Just(r#"{"code":1.5,"message":"m"}"#.to_owned()),
        1 => Just("{}".to_owned()),
    ]
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let member = |name: &'static str, weight| {
        let other = scalar().prop_map(move |value| format!("\"{name}\":{value}"));
        proptest::option::weighted(weight, other)
    };
    let version = proptest::option::weighted(
        0.95,
        prop_oneof![9 => Just(r#""jsonrpc":"2.0""#), 1 => Just(r#""\u006asonrpc" : "2\u002e0""#)],
    );
    let parts = (
        version.prop_map(|text| text.map(str::to_owned)),
        member("id", 0.7),
        member("method", 0.4),
        member("params", 0.3),
        member("result", 0.4),
        member("error", 0.3),
        // Never looked into, so it must have no other way to be wrong than by the grammar.
        proptest::option::weighted(0.2, Just(r#""other":[{"a":1},"x"]"#.to_owned())),
    );
    let members = parts.prop_map(|(a, b, c, d, e, f, g)| {
        [a, b, c, d, e, f, g]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    });
    let space = prop_oneof![5 => Just(""), 1 => Just(" "), 1 => Just("\t")];
    (
        members.prop_shuffle(),
        space,
        any::<(bool, prop::sample::Index, u8)>(),
        0..8_u8,
    )
        .prop_map(|(members, space, (insert, index, byte), damage)| {
            let glue = format!("{space},{space}");
            let mut line =
                format!("{space}{{{space}{}{space}}}{space}", members.join(&glue)).into_bytes();
            // Most lines stay whole; some get a byte changed, inserted or lose their end.
            let at = index.index(line.len());
            match damage {
                0 if insert => line.insert(at, byte),
                0 => line[at] = byte,
                1 => line.truncate(at),
                _ => {}
            }
            line
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// R60: accepts what a reader that builds values and checks them accepts, and finds the same in it.
    #[test]
    fn r60_agrees_with_a_value(line in line()) {
        // A repeated member needs a byte changed in just the right place; a `Value` would not see it.
        let repeated = matches!(
            read(&line),
            Err(Rejected { fault, .. }) if fault.violation == Violation::DuplicateMember
        );
        if !repeated {
            prop_assert_eq!(under_test(&line), reference(&line), "{}", line.escape_ascii());
        }
    }

    /// R1: whatever the bytes, there is an answer, short and printable.
    #[test]
    fn r1_no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), max in 0_usize..64) {
        if let Err(rejected) = read(&bytes) {
            prop_assert!(rejected.fault.detail.len() <= 200);
        }
        let _ = salvage_id(&bytes);
        let text = printable(&bytes, max);
        prop_assert!(text.len() <= max);
        prop_assert!(!text.chars().any(char::is_control));
    }
}
