//! Writing messages (R100): one line each, and what is written reads back the same. And depth (R1).

use mcp_proto::wire::encode::{self, push_single_line, push_string};
use mcp_proto::wire::{Answer, IdToken, Message, ObjectWriter, ResponseId, depth, envelope};
use proptest::prelude::*;
use serde_json::Value;

/// JSON of any shape, as a text with white space and line breaks in all places.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map(any::<String>(), json(), 0..5)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value)
        .unwrap()
        .replace('\n', "\r\n")
}

/// The one line that was written, without its line end.
fn only_line(out: &[u8]) -> &[u8] {
    let line = out.strip_suffix(b"\n").unwrap();
    assert!(!line.iter().any(|byte| b"\r\n".contains(byte)));
    line
}

proptest! {
    #[test]
    fn r100_strings_read_back(text in any::<String>()) {
        let mut out = Vec::new();
        push_string(&mut out, &text);
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }

    #[test]
    fn r100_raw_json_keeps_its_value_on_one_line(value in json()) {
        let mut out = Vec::new();
        push_single_line(&mut out, &pretty(&value));
        prop_assert!(!out.iter().any(|byte| b"\r\n".contains(byte)));
        prop_assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), value);
    }

    #[test]
    fn r100_messages_read_back(
        method in any::<String>(), params in object(), code in any::<i64>(), text in any::<String>(),
        id in prop_oneof![any::<u64>().prop_map(|id| id.to_string()), any::<String>().prop_map(|id| Value::from(id).to_string())],
    ) {
        let id = IdToken::parse(&id).unwrap();
        let mut out = Vec::new();
        encode::notification(&mut out, &method, Some(&pretty(&params)));
        let Ok(Message::Notification(read)) = envelope::read(only_line(&out)) else {
            panic!("a notification");
        };
        prop_assert_eq!(read.method, method);
        prop_assert_eq!(&serde_json::from_str::<Value>(read.params.unwrap().get()).unwrap(), &params);

        out.clear();
        encode::response_result(&mut out, id, &pretty(&params));
        let Ok(Message::Response(read)) = envelope::read(only_line(&out)) else {
            panic!("a response");
        };
        prop_assert_eq!(read.id, ResponseId::Token(id));
        let Answer::Result(members) = read.answer else {
            panic!("a result");
        };
        prop_assert_eq!(members.len(), params.as_object().unwrap().len());
        for (name, value) in params.as_object().unwrap() {
            prop_assert_eq!(&serde_json::from_str::<Value>(members.get(name).unwrap().get()).unwrap(), value);
        }

        out.clear();
        encode::response_error(&mut out, id, code, &text);
        let Ok(Message::Response(read)) = envelope::read(only_line(&out)) else {
            panic!("a response");
        };
        prop_assert_eq!(read.id, ResponseId::Token(id));
        let Answer::Error(error) = read.answer else {
            panic!("an error");
        };
        prop_assert_eq!((error.code, error.message.as_ref()), (code, text.as_str()));
    }

    /// R1: the depth is that of the value, however the brackets in its strings look.
    #[test]
    fn r1_depth_is_exact(value in json(), around in 0_usize..300) {
        fn depth_of(value: &Value) -> usize {
            match value {
                Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
                Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or(0),
                _ => 0,
            }
        }
        let brackets = Value::from(r#"[[[[{{{{]"\"#.repeat(40));
        let mut text = Value::from(vec![brackets, value.clone()]).to_string();
        text = format!("{}{text}{}", "[".repeat(around), "]".repeat(around));
        let exact = 1 + depth_of(&value) + around;
        prop_assert!(depth::exceeds(&text, exact - 1));
        prop_assert!(!depth::exceeds(&text, exact));
    }
}

#[test]
fn objects_are_written_member_by_member() {
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    object
        .members(" ")
        .members(r#""a":1"#)
        .members("")
        .raw("b", "[\n]");
    let mut inner = object.object("c");
    inner.u64("min", 0).u64("max", u64::MAX);
    inner.end();
    object.object("d").end();
    object.end();
    let expected = r#"{"a":1,"b":[],"c":{"min":0,"max":18446744073709551615},"d":{}}"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
