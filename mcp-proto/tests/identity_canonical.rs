//! Canonical JSON (R6, R21).

use mcp_proto::identity::canonical::{self, DEPTH_CEILING};
use mcp_proto::identity::{CanonicalProblem, content_hash};
use proptest::prelude::*;

fn canonical(json: &str) -> Result<String, CanonicalProblem> {
    let mut out = b"before".to_vec();
    match canonical::write(json, &mut out, 128) {
        Ok(()) => Ok(String::from_utf8(out).unwrap().split_off("before".len())),
        Err(error) => {
            assert_eq!(out, b"before");
            assert!(error.offset_bytes <= json.len());
            Err(error.problem)
        }
    }
}

/// What Python 3 prints for each with `json.dumps(json.loads(…), sort_keys=True, separators=(",", ":"))`.
#[test]
fn r6_numbers_are_written_as_python_writes_them() {
    let cases = [
        ("0", "0"),
        ("-0", "0"),
        ("-7", "-7"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567890",
        ),
        ("-0.0", "-0.0"),
        ("1.0", "1.0"),
        ("1.10", "1.1"),
        ("1E2", "100.0"),
        ("-12E0", "-12.0"),
        ("12.5e1", "125.0"),
        ("1234.5678", "1234.5678"),
        ("1e15", "1000000000000000.0"),
        ("1e16", "1e+16"),
        ("1e22", "1e+22"),
        ("100000000000000000000.0", "1e+20"),
        ("12345678901234567.0", "1.2345678901234568e+16"),
        ("9007199254740993.0", "9007199254740992.0"),
        ("0.1", "0.1"),
        ("0.00012", "0.00012"),
        ("1e-4", "0.0001"),
        ("1e-5", "1e-05"),
        ("-1.5e-7", "-1.5e-07"),
        ("1e100", "1e+100"),
        ("1.5E+300", "1.5e+300"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("5e-324", "5e-324"),
        ("2.2250738585072014e-308", "2.2250738585072014e-308"),
        ("1e-400", "0.0"),
        ("-1e-400", "-0.0"),
    ];
    for (text, expected) in cases {
        assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn r6_strings_are_written_as_python_writes_them() {
    let cases = [
        (r#""\/ \b\f\n\r\t\"\\""#, r#""/ \b\f\n\r\t\"\\""#),
        (
            r#""\u0000\u001F\u0020\u0022\u005c\u007E""#,
            r#""\u0000\u001f \"\\~""#,
        ),
        (
            "\"\u{7f}\u{80}é\u{2028}\u{ffff}😀\"",
            r#""\u007f\u0080\u00e9\u2028\uffff\ud83d\ude00""#,
        ),
        (
            r#""\u000a\u0008\u000C\uD83D\uDE00""#,
            r#""\n\b\f\ud83d\ude00""#,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
    }
}

/// R6: by code point, not by UTF-16 unit, nor by the escaped text.
#[test]
fn r6_members_are_sorted_by_code_point() {
    let json =
        r#"{"😀":1,"\uffff":2,"é":3,"z":4,"\"":5," ":6,"":7,"a":8,"aa":9,"\u0061b":10,"~":11}"#;
    let expected = concat!(
        r#"{"":7," ":6,"\"":5,"a":8,"aa":9,"ab":10,"z":4,"~":11,"\u00e9":3,"#,
        r#""\uffff":2,"\ud83d\ude00":1}"#
    );
    assert_eq!(canonical(json).as_deref(), Ok(expected));
}

#[test]
fn r6_what_has_no_canonical_form() {
    use CanonicalProblem::{DuplicateMember, LoneSurrogate, NumberTooLarge, Syntax};
    let cases = [
        (r#"{"a":1,"a":1}"#, DuplicateMember),
        (r#"{"a":1,"b":2,"\u0061":1}"#, DuplicateMember),
        (r#"[{"b":1,"a":{"x":1},"c":0,"a":1}]"#, DuplicateMember),
        (r#""\ud800""#, LoneSurrogate),
        (r#""\udc00""#, LoneSurrogate),
        (r#"{"\ud83dx":1}"#, LoneSurrogate),
        (r#""\ud83d\u0041""#, LoneSurrogate),
        ("1e400", NumberTooLarge),
        ("[-2e308]", NumberTooLarge),
        ("", Syntax),
        ("{", Syntax),
        ("[1,]", Syntax),
        (r#"{"a":1,}"#, Syntax),
        (r#"{"a" 1}"#, Syntax),
        ("{1:2}", Syntax),
        ("01", Syntax),
        ("-", Syntax),
        ("1.", Syntax),
        (".5", Syntax),
        ("1e", Syntax),
        ("+1", Syntax),
        ("NaN", Syntax),
        ("nul", Syntax),
        ("1 2", Syntax),
        ("\"a\nb\"", Syntax),
        (r#""\x""#, Syntax),
        (r#""\u12g4""#, Syntax),
        (r#""\u+123""#, Syntax),
        ("\"", Syntax),
        ("\"\\", Syntax),
    ];
    for (text, problem) in cases {
        assert_eq!(canonical(text), Err(problem), "{text}");
    }
}

/// R1: the depth is bounded by what was asked for, and by what is safe if too much was.
#[test]
fn r1_the_depth_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let write = |json: &str, max| {
        canonical::write(json, &mut Vec::new(), max).map_err(|error| error.problem)
    };
    for deep in [nested, objects] {
        assert_eq!(write(&deep(7), 7), Ok(()));
        assert_eq!(write(&deep(8), 7), Err(CanonicalProblem::TooDeep));
        assert_eq!(write(&deep(DEPTH_CEILING), usize::MAX), Ok(()));
        assert_eq!(
            write(&deep(100_000), usize::MAX),
            Err(CanonicalProblem::TooDeep)
        );
    }
    assert_eq!(write("1", 0), Ok(()));
    // Levels next to each other do not add up.
    assert_eq!(write(r#"[[],{"b":[],"a":{}},[[]]]"#, 3), Ok(()));
}

/// R21, R22: what a list of tools needs to know about each, in the pass that makes them canonical.
#[test]
fn r21_elements_of_an_array() {
    let json = concat!(
        r#" [ {"name":"\u0062","inputSchema":null} ,{"inputSchema":{},"name":"é","x":{"name":"no"}},"#,
        r#" 7, {"x":{"inputSchema":1},"name":3},[] ] "#
    );
    let (mut out, mut elements) = (b"page".to_vec(), Vec::new());
    canonical::array_elements(json, &mut out, 4, |element| elements.push(element)).unwrap();
    let found: Vec<_> = elements
        .iter()
        .map(|element| {
            let text = std::str::from_utf8(&out[element.canonical.clone()]).unwrap();
            (
                text,
                element.name.as_deref(),
                element.has_input_schema,
                element.source,
            )
        })
        .collect();
    let expected = [
        (
            r#"{"inputSchema":null,"name":"b"}"#,
            Some("b"),
            true,
            r#"{"name":"\u0062","inputSchema":null}"#,
        ),
        (
            r#"{"inputSchema":{},"name":"\u00e9","x":{"name":"no"}}"#,
            Some("é"),
            true,
            r#"{"inputSchema":{},"name":"é","x":{"name":"no"}}"#,
        ),
        ("7", None, false, "7"),
        (
            r#"{"name":3,"x":{"inputSchema":1}}"#,
            None,
            false,
            r#"{"x":{"inputSchema":1},"name":3}"#,
        ),
        ("[]", None, false, "[]"),
    ];
    assert_eq!(found, expected);

    for (json, problem) in [
        ("{}", CanonicalProblem::NotArray),
        ("[1,2", CanonicalProblem::Syntax),
        ("[[[[[]]]]]", CanonicalProblem::TooDeep),
    ] {
        let mut out = b"page".to_vec();
        let error = canonical::array_elements(json, &mut out, 4, |_| {}).unwrap_err();
        assert_eq!(
            (error.problem, out.as_slice()),
            (problem, b"page".as_slice())
        );
    }
}

/// A value as a test builds it, so that it can be written in more than one way.
#[derive(Clone, Debug)]
enum Tree {
    Word(&'static str),
    Integer(i128),
    Text(String),
    Array(Vec<Self>),
    Object(std::collections::BTreeMap<String, Self>),
}

fn tree() -> impl Strategy<Value = Tree> {
    let text = || {
        prop_oneof![
            any::<String>(),
            "[a-c]{0,9}",
            "[\\\\\"/\n\u{7f}é😀\u{e000}\u{1}x]{0,12}"
        ]
    };
    let leaf = prop_oneof![
        prop_oneof![
            Just("null"),
            Just("true"),
            Just("false"),
            Just("0.5"),
            Just("1e+20")
        ]
        .prop_map(Tree::Word),
        any::<i128>().prop_map(Tree::Integer),
        text().prop_map(Tree::Text),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Tree::Array),
            proptest::collection::btree_map(text(), inner, 0..6).prop_map(Tree::Object),
        ]
    })
}

/// The canonical form, written the obvious way. A `BTreeMap` of strings is sorted by code point.
fn reference(tree: &Tree) -> String {
    match tree {
        Tree::Word(word) => (*word).to_owned(),
        Tree::Integer(number) => number.to_string(),
        Tree::Text(text) => reference_text(text),
        Tree::Array(items) => {
            let items: Vec<_> = items.iter().map(reference).collect();
            format!("[{}]", items.join(","))
        }
        Tree::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", reference_text(name), reference(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn reference_text(text: &str) -> String {
    format!(
        "\"{}\"",
        text.chars().map(reference_char).collect::<String>()
    )
}

fn reference_char(char: char) -> String {
    match char {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        ' '..='~' => char.to_string(),
        _ => {
            let mut units = [0; 2];
            let units = char.encode_utf16(&mut units);
            units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
    }
}

/// Writes the same value some other way: members in any order, white space, any escapes.
struct Scribbler(u64);

impl Scribbler {
    fn choose(&mut self, among: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % among
    }

    fn space(&mut self) -> &'static str {
        ["", "", "", " ", "\n\t", "\r\n "][self.choose(6) as usize]
    }

    fn join(&mut self, open: char, parts: &[String], close: char) -> String {
        let mut out = open.to_string();
        for (index, part) in parts.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            out = [&out, self.space(), comma, self.space(), part, self.space()].concat();
        }
        out + self.space() + &close.to_string()
    }

    fn write(&mut self, tree: &Tree) -> String {
        match tree {
            Tree::Word("0.5") => "5E-1".to_owned(),
            Tree::Word("1e+20") => "100000000000000000000.000".to_owned(),
            Tree::Word(word) => (*word).to_owned(),
            Tree::Integer(0) => "-0".to_owned(),
            Tree::Integer(number) => number.to_string(),
            Tree::Text(text) => self.text(text),
            Tree::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| self.write(item)).collect();
                self.join('[', &items, ']')
            }
            Tree::Object(members) => {
                let mut parts = Vec::new();
                for (name, value) in members {
                    let part = [
                        &self.text(name),
                        self.space(),
                        ":",
                        self.space(),
                        &self.write(value),
                    ]
                    .concat();
                    parts.insert(self.choose(parts.len() as u64 + 1) as usize, part);
                }
                self.join('{', &parts, '}')
            }
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut out = "\"".to_owned();
        for char in text.chars() {
            let must = matches!(char, '"' | '\\' | '\0'..='\x1f');
            match self.choose(4) {
                0 => {
                    for unit in char.encode_utf16(&mut [0; 2]) {
                        out += &format!("\\u{unit:04X}");
                    }
                }
                1 if char == '/' => out += "\\/",
                _ if must => out += &reference_char(char),
                _ => out.push(char),
            }
        }
        out + "\""
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// R6: one form for each value, however it was written; and that form is its own.
    #[test]
    fn r6_equal_values_have_one_form(tree in tree(), seed in any::<u64>()) {
        let expected = reference(&tree);
        let written = Scribbler(seed).write(&tree);
        let found = canonical(&written);
        prop_assert_eq!(found.as_deref(), Ok(expected.as_str()), "{}", written);
        let again = canonical(&expected);
        prop_assert_eq!(again.as_deref(), Ok(expected.as_str()));
    }

    /// R6: different values have different hashes, equal ones the same.
    #[test]
    fn r6_hashes_tell_values_apart(one in tree(), other in tree(), seed in any::<u64>()) {
        let params = |text: &str| content_hash("m", Some(&format!("{{\"a\":{text}}}"))).unwrap();
        let hash = params(&reference(&one));
        prop_assert_eq!(hash, params(&Scribbler(seed).write(&one)));
        prop_assert_eq!(hash == params(&reference(&other)), reference(&one) == reference(&other));
    }

    /// R6: a double keeps its value, and its form is as short as can be.
    #[test]
    fn r6_doubles_read_back(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let text = canonical(&format!("{value:?}")).unwrap();
        prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
        let digits = |text: &str| {
            let mantissa = text.split('e').next().unwrap().replace(['.', '-'], "");
            mantissa.trim_matches('0').len()
        };
        prop_assert_eq!(digits(&text), digits(&format!("{value:e}")));
    }

    /// R1: agrees with serde_json on what is JSON, byte for byte of damage, and never panics.
    #[test]
    fn r1_damaged_texts(tree in tree(), seed in any::<u64>(), at in any::<prop::sample::Index>(), char in any::<char>(), cut in any::<bool>()) {
        let mut written = Scribbler(seed).write(&tree);
        let mut at = at.index(written.len() + 1);
        while !written.is_char_boundary(at) {
            at -= 1;
        }
        if cut {
            written.truncate(at);
        } else {
            written.insert(at, char);
        }
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&written).is_ok();
        match canonical(&written) {
            Ok(text) => {
                prop_assert!(is_json);
                prop_assert_eq!(canonical(&text), Ok(text));
            }
            // Damage behind another problem is not looked for.
            Err(problem) => prop_assert!(
                !is_json || problem != CanonicalProblem::Syntax, "{:?} {}", problem, written
            ),
        }
    }
}
