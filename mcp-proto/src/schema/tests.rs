use alloc::boxed::Box;
use alloc::vec::Vec;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn compile(schema: Value) -> Result<OutputSchema, SchemaRefused> {
    OutputSchema::compile(&Json::from(schema), &SchemaLimits::default())
}

/// The outcome of a validation as text, `fits` being the good one.
fn outcome(schema: Value, value: Value) -> String {
    match compile(schema).unwrap().validate(&Json::from(value)) {
        Ok(()) => "fits".into(),
        Err(mismatch) => mismatch.to_string(),
    }
}

/// R63: where and what, without the value itself, which may be a secret.
#[test]
fn r63_a_mismatch_says_where_and_what() {
    let schema = json!({
        "type": "object",
        "properties": {"a/b": {"type": "array", "items": {"type": "integer"}}, "c": {"enum": ["x"]}},
        "required": ["a/b"],
    });
    let of = |value| outcome(schema.clone(), value);
    assert_eq!(of(json!({"a/b": [1]})), "fits");
    let mismatch = "/a~1b/1: value is not of type \"integer\"";
    assert_eq!(of(json!({"a/b": [1, "secret"]})), mismatch);
    assert_eq!(of(json!({})), "\"a/b\" is a required property");
    assert!(!of(json!({"a/b": [], "c": "secret"})).contains("secret"));
    assert_eq!(of(json!(null)), "value is not of type \"object\"");
}

/// R63: 2020-12 unless draft-07 is named; nothing else.
/// spec: 2026-07-28 basic#schema-dialect
#[test]
fn r63_dialects() {
    // A tuple is `prefixItems` in one dialect and an array of `items` in the other.
    let tuple = |keyword: &str, dialect: Option<&str>| {
        let mut schema = json!({keyword: [{"type": "string"}]});
        if let (Some(dialect), Value::Object(members)) = (dialect, &mut schema) {
            members.insert("$schema".into(), dialect.into());
        }
        schema
    };
    let refuses = |schema| outcome(schema, json!([1])) != "fits";
    let draft_07 = Some("http://json-schema.org/draft-07/schema#");
    let draft_2020 = Some("https://json-schema.org/draft/2020-12/schema");
    assert!(refuses(tuple("prefixItems", None)));
    assert!(refuses(tuple("prefixItems", draft_2020)));
    assert!(!refuses(tuple("prefixItems", draft_07)));
    assert!(refuses(tuple("items", draft_07)));
    assert!(refuses(tuple(
        "items",
        Some("https://json-schema.org/draft-07/schema")
    )));
    for other in [
        json!("http://json-schema.org/draft-04/schema#"),
        json!("https://example.com/mine"),
        json!(7),
    ] {
        let refused = compile(json!({"$schema": other})).unwrap_err();
        assert_eq!(refused, SchemaRefused::Dialect(other.to_string()));
    }
}

/// R63: references inside of the schema are followed, others are refused without a look.
/// spec: 2026-07-28 basic#ref-resolution
#[test]
fn r63_references_stay_inside() {
    for schema in [
        json!({"$ref": "#/$defs/a~1%62", "$defs": {"a/b": {"type": "string"}}}),
        json!({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "string"}}}),
        json!({"$dynamicRef": "#x", "$defs": {"a": {"$dynamicAnchor": "x", "type": "string"}}}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#x",
            "definitions": {"a": {"$id": "#x", "type": "string"}}}),
        json!({"$id": "https://example.com/a", "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
        // Not what a dialect's own schema has there.
        json!({"$id": "http://json-schema.org/draft-07/schema", "$ref": "#/$defs/a",
            "$defs": {"a": {"type": "string"}}}),
    ] {
        assert_eq!(outcome(schema.clone(), json!("x")), "fits", "{schema}");
        assert_ne!(outcome(schema.clone(), json!(1)), "fits", "{schema}");
    }
    for outside in [
        "http://127.0.0.1/x",
        "file:///etc/passwd",
        "other.json",
        "//x",
        "other.json#/a",
    ] {
        for keyword in ["$ref", "$dynamicRef"] {
            let schema = json!({"properties": {"a": {keyword: outside}}});
            let refused = compile(schema).unwrap_err();
            assert_eq!(refused, SchemaRefused::External(outside.into()));
        }
    }
    for nowhere in ["#/$defs/b", "#b", "#/%ff"] {
        let refused = compile(json!({"$ref": nowhere})).unwrap_err();
        assert_eq!(refused, SchemaRefused::Dangling(nowhere.into()));
    }
    let part = json!({"$defs": {"a": {"$id": "http://x/"}}});
    assert_eq!(compile(part).unwrap_err(), SchemaRefused::Embedded("$id"));
    // A property may be called anything.
    let names = json!({"properties": {"$ref": {"type": "string"}, "$id": {}, "$schema": {}}});
    assert_eq!(outcome(names, json!({"$ref": "http://x/"})), "fits");
}

#[test]
fn r63_what_is_no_schema_is_refused() {
    for schema in [
        json!({"type": "nothing"}),
        json!({"pattern": "("}),
        json!({"pattern": "(?=a)"}),
        json!({"$ref": 7}),
        json!([]),
        json!("x"),
    ] {
        let refused = compile(schema.clone());
        assert!(
            matches!(refused, Err(SchemaRefused::Invalid(_))),
            "{schema}: {refused:?}"
        );
    }
    let too_large_a_number = Json::parse(r#"{"minimum":1e999}"#).unwrap();
    let refused = OutputSchema::compile(&too_large_a_number, &SchemaLimits::default());
    assert!(matches!(refused, Err(SchemaRefused::Invalid(_))));
    let schema = compile(json!({"type": "integer"})).unwrap();
    let fits = |text| schema.validate(&Json::parse(text).unwrap()).is_ok();
    assert!(fits("1.0") && fits("123456789012345678901234567890") && !fits("1.5"));
    assert!(!fits("1e999"));
}

/// `$defs` in which each definition is made of the next one, and the last one is a string.
fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for index in 0..length {
        let next = json!({"$ref": format!("#/$defs/{}", index + 1)});
        definitions.insert(index.to_string(), link(next));
    }
    definitions.insert(length.to_string(), json!({"type": "string"}));
    json!({"$ref": "#/$defs/0", "$defs": definitions})
}

fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!({"type": "string"}), |inner, _| wrap(inner))
}

/// R63, R1: what would overflow the stack or take years to compile is refused before.
#[test]
fn r63_hostile_schemas_are_refused() {
    let all_of = |inner: Value| json!({"allOf": [inner]});
    let twice = |inner: Value| json!({"anyOf": [inner.clone(), inner]});
    let unevaluated = |inner: Value| json!({"unevaluatedProperties": false, "allOf": [inner]});
    let dependent =
        |inner: Value| json!({"unevaluatedItems": false, "dependentSchemas": {"a": inner}});
    let refused = |schema| format!("{}", compile(schema).unwrap_err());
    insta::assert_snapshot!(
        [
            refused(nested(60, all_of)),
            refused(chain(1_000, all_of)),
            refused(chain(
                60,
                |next| json!({"unevaluatedProperties": false, "anyOf": [next.clone(), next]})
            )),
            refused(nested(30, unevaluated)),
            refused(nested(20, dependent)),
            refused(json!({"$ref": "#"})),
            refused(json!({"anyOf": [{"type": "string"}, {"not": {"$ref": "#"}}]})),
            refused(json!({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]})),
            refused(json!({"allOf": Vec::from_iter((0..5_000).map(|_| json!({})))})),
            refused(json!({"const": "x".repeat(1 << 20)})),
            refused(json!({"pattern": "x".repeat(5_000)})),
            refused(json!({"pattern": "^((a{0,100}){0,100}){0,100}$"})),
        ]
        .join("\n")
    );
    // The same in small is no crime.
    for schema in [
        nested(20, all_of),
        chain(30, all_of),
        chain(8, twice),
        nested(4, unevaluated),
        nested(4, dependent),
        chain(30, unevaluated),
        json!({"properties": {"children": {"items": {"$ref": "#", "unevaluatedProperties": false}}}}),
    ] {
        let compiled = compile(schema.clone());
        assert!(compiled.is_ok(), "{schema}: {compiled:?}");
        let _ = compiled.map(|schema| schema.validate(&Json::from(json!({"a": 1}))));
    }
}

/// R63, R1: what takes too long with one value is not begun, and is not taken for a good one.
#[test]
fn r63_hostile_pairs_are_not_checked() {
    let not_checked = |schema, value| {
        let outcome = outcome(schema, value);
        assert!(outcome.ends_with("so it was not checked"), "{outcome}");
    };
    let twice = json!({"items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}});
    not_checked(twice, nested(60, |inner| json!([inner])));
    let marked =
        json!({"properties": {"a": {"unevaluatedProperties": true, "anyOf": [{"$ref": "#"}]}}});
    not_checked(marked, nested(60, |inner| json!({"a": inner})));
    not_checked(
        chain(25, |next| json!({"anyOf": [next.clone(), next]})),
        json!("x"),
    );
    not_checked(
        json!({}),
        (0..130).fold(json!(1), |inner, _| json!([inner])),
    );
    // Each of them fits, and takes about 20,000 steps of comparing or matching.
    let many = |count: usize| Vec::from_iter(0..count);
    let text = "ab".repeat(1 << 15);
    for (schema, value) in [
        (json!({"items": {"enum": many(1_000)}}), json!(many(20))),
        (json!({"const": many(20_000)}), json!(many(20_000))),
        (json!({"uniqueItems": true}), json!(many(20_000))),
        (json!({"pattern": "^(a|b)+$"}), json!(text)),
        (
            json!({"patternProperties": {"^(a|b)+$": {}}}),
            json!({text.as_str(): 1}),
        ),
        (
            json!({"propertyNames": {"pattern": "^(a|b)+$"}}),
            json!({text.as_str(): 1}),
        ),
    ] {
        for (steps, fits) in [(10_000, false), (100_000, true)] {
            let limits = SchemaLimits {
                steps,
                ..SchemaLimits::default()
            };
            let compiled = OutputSchema::compile(&Json::from(schema.clone()), &limits).unwrap();
            let outcome = compiled.validate(&Json::from(value.clone()));
            assert_eq!(outcome.is_ok(), fits, "{steps}: {outcome:?}");
        }
    }
}

/// Regular expressions are charged for what they are when their repetitions are written out: by the text when they
/// are matched, and by their number when they are compiled.
#[test]
fn r63_hostile_patterns_are_not_checked() {
    let wide = json!({"pattern": "[ab]*a[ab]{1500}c"});
    assert!(outcome(wide.clone(), json!("ab".repeat(200) + "c")).contains("does not match"));
    assert!(outcome(wide, json!("ab".repeat(1 << 19))).contains("was not checked"));

    let many = |count: usize| {
        let patterns = (0..count).map(|k| json!({"pattern": format!("\\p{{L}}{{2}}{k}")}));
        json!({"anyOf": Vec::from_iter(patterns)})
    };
    let refused = compile(many(41)).unwrap_err();
    assert_eq!(refused, SchemaRefused::TooComplex(20_000));
    assert_eq!(outcome(many(20), json!("xx7")), "fits");

    let limits = SchemaLimits::default();
    let large = json!("x".repeat(limits.instance_bytes));
    assert!(outcome(json!({}), large).contains("longer than"));
}

/// What is hostile to other validators, or is just large, is no trouble.
#[test]
fn r63_large_and_recursive_is_not_hostile() {
    let catastrophic = json!({"pattern": "^(a+)+$"});
    assert_ne!(
        outcome(catastrophic, json!("a".repeat(50_000) + "!")),
        "fits"
    );
    let many: Vec<usize> = (0..100_000).collect();
    assert_eq!(outcome(json!({"enum": many}), json!(99_999)), "fits");
    assert_eq!(outcome(json!({"uniqueItems": true}), json!(many)), "fits");
    let tree = json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]});
    assert_ne!(
        outcome(tree.clone(), nested(60, |inner| json!([inner]))),
        "fits"
    );
    assert_eq!(
        outcome(tree, (0..60).fold(json!("x"), |inner, _| json!([inner]))),
        "fits"
    );
    // Many rows of an ordinary kind.
    let rows =
        json!({"items": {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}});
    let row = json!({"a": null});
    assert_eq!(
        outcome(rows.clone(), json!(alloc::vec![row.clone(); 50_000])),
        "fits"
    );
    // Where an error would copy the value again and again, it says less.
    let mut bad = Vec::from_iter((0..20_000).map(|_| row.clone()));
    bad.push(json!({"a": 1}));
    assert_eq!(
        outcome(rows, json!(bad)),
        "does not fit the schema, and is too large to say where"
    );
}

/// The worst that is accepted fits into the stack of a thread (2 MiB, which tests have).
#[test]
fn r63_the_limits_fit_into_the_stack() {
    let links: [fn(Value) -> Value; 3] = [
        |next| json!({"allOf": [next]}),
        |next| json!({"not": {"oneOf": [next]}}),
        |next| json!({"if": true, "then": next}),
    ];
    let mut accepted = 0;
    for link in links {
        for length in 10..70 {
            if let Ok(schema) = compile(chain(length, link)) {
                let _ = schema.validate(&Json::from(json!(1)));
                accepted = accepted.max(length);
            }
        }
    }
    assert!(accepted >= 31, "{accepted}");
    let mut checked = 0;
    for depth in 1..128 {
        for link in links {
            let schema = compile(json!({"items": link(json!({"$ref": "#"}))})).unwrap();
            let value = (0..depth).fold(json!(1), |inner, _| json!([inner]));
            if schema.validate(&Json::from(value)).is_ok() {
                checked = checked.max(depth);
            }
        }
    }
    assert!(checked >= 60, "{checked}");
}

/// Keywords with one schema, and with several.
const ONE: &[&str] = &[
    "not",
    "items",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "if",
    "propertyNames",
];
const MANY: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

/// Schemas of few keywords that refer to each other in every way.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!(true)),
        Just(json!({"$ref": "#"})),
        Just(json!({"$dynamicRef": "#x"})),
        (0..3).prop_map(|index| json!({"$ref": format!("#/$defs/{index}")})),
    ];
    let schema = leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (proptest::sample::select(ONE), inner.clone())
                .prop_map(|(keyword, inner)| json!({keyword: inner})),
            (proptest::sample::select(MANY), proptest::collection::vec(inner.clone(), 1..3))
                .prop_map(|(keyword, inner)| json!({keyword: inner})),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| json!({
                "unevaluatedProperties": one, "anyOf": [other], "properties": {"a": {"$ref": "#/$defs/0"}},
            })),
            inner.prop_map(|inner| json!({"properties": {"a": inner}, "$dynamicAnchor": "x"})),
        ]
    });
    proptest::collection::vec(schema, 4).prop_map(|mut parts| {
        let root = parts.pop().unwrap_or_default();
        let definitions: serde_json::Map<String, Value> = parts
            .into_iter()
            .enumerate()
            .map(|(index, part)| (index.to_string(), part))
            .collect();
        json!({"allOf": [root], "$defs": definitions})
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!(null))];
    leaf.prop_recursive(6, 32, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            inner.prop_map(|inner| json!({"a": inner, "b": inner})),
        ]
    })
}

proptest! {
    /// R63: whatever a schema refers to, it is refused or judges every value, twice in the same words.
    #[test]
    fn r63_every_schema_comes_to_an_end(schema in schemas(), value in values()) {
        if let Ok(compiled) = compile(schema.clone()) {
            let value = Json::from(value);
            let again = compile(schema).map_err(Box::new)?;
            prop_assert_eq!(compiled.validate(&value), again.validate(&value));
        }
    }

    /// No JSON at all is worse than refused.
    #[test]
    fn r63_no_json_is_worse_than_refused(schema in values()) {
        let _ = compile(schema);
    }
}
