//! The golden vectors of R6, computed independently of this code.

use mcp_proto::identity::{Element, Field};
use mcp_proto::identity::{
    Sha256Hex, TraceContext, canonical, content_hash, control_span_id, default_run_root, derive_id,
    digest_sorted, span_id, stdio_url, trace_id,
};

fn root(letter: &str) -> String {
    letter.repeat(64)
}

fn digest_of(letter: &str) -> Sha256Hex {
    Sha256Hex::parse(&root(letter)).unwrap()
}

fn manifest_digest(pages: &[&str]) -> String {
    let (mut out, mut elements) = (Vec::new(), Vec::<Element<'_>>::new());
    for page in pages {
        canonical::array_elements(page, &mut out, 128, |element| elements.push(element)).unwrap();
    }
    digest_sorted(&out, &mut elements).to_string()
}

#[test]
fn r6_trace_ids() {
    assert_eq!(
        trace_id(&root("a")).as_str(),
        "b9c785d65b1f009a88fdef43b9b1b2df"
    );
    assert_eq!(
        trace_id(&root("b")).as_str(),
        "78b8c409bab6675ef1e1ad479a128f5f"
    );
}

#[test]
fn r6_content_hashes() {
    let list = content_hash("tools/list", None).unwrap();
    assert_eq!(
        list.as_str(),
        "6e62c4a988ed6bb3a19c350ac8a6797a8dad59f3152cfce71e4caf16dc452255"
    );
    assert_eq!(content_hash("tools/list", Some(" {\n} ")).unwrap(), list);
    let echo = r#"{"name":"echo","arguments":{"input":"hi"}}"#;
    assert_eq!(
        content_hash("tools/call", Some(echo)).unwrap().as_str(),
        "081b927cbe79d0d92031d36006563ca7703211104ad1210cf317b22db429d059"
    );
    for params in [
        r#"{"arguments":{"q":"é"},"name":"x"}"#,
        r#"{"name":"x","arguments":{"q":"\u00E9"}}"#,
    ] {
        assert_eq!(
            content_hash("tools/call", Some(params)).unwrap().as_str(),
            "b53a40c103cd6001415644c2f2312e51e917d311e22889ef1c29781ba225b7b0"
        );
    }
}

#[test]
fn r6_meta_never_enters_the_content_hash() {
    let plain = content_hash("tools/call", Some(r#"{"name":"echo"}"#)).unwrap();
    for params in [
        r#"{"_meta":{"z":1,"a":2},"name":"echo"}"#,
        r#"{"name":"echo","_meta":null}"#,
        r#"{"name":"echo","\u005fmeta":{}}"#,
    ] {
        assert_eq!(content_hash("tools/call", Some(params)).unwrap(), plain);
    }
    let nested = content_hash(
        "tools/call",
        Some(r#"{"name":"echo","arguments":{"_meta":1}}"#),
    );
    assert_ne!(
        nested.unwrap(),
        content_hash("tools/call", Some(r#"{"name":"echo","arguments":{}}"#)).unwrap()
    );
}

#[test]
fn r6_span_ids() {
    let list = content_hash("tools/list", None).unwrap();
    assert_eq!(span_id(&list, 0).as_str(), "9be6cb26eae9830b");
    assert_eq!(span_id(&list, 1).as_str(), "a38f9595d6348cb2");
    assert_eq!(span_id(&digest_of("a"), 0).as_str(), "4c11ed7b1eb9d0fd");
    assert_eq!(span_id(&digest_of("e"), 1).as_str(), "2fdbb0e5c565f0c5");
}

#[test]
fn r6_trace_context() {
    let echo = r#"{"name":"echo","arguments":{"input":"hi"}}"#;
    let hash = content_hash("tools/call", Some(echo)).unwrap();
    let trace = TraceContext::for_call(trace_id(&root("a")), span_id(&hash, 1), 1);
    assert_eq!(
        trace.traceparent(),
        "00-b9c785d65b1f009a88fdef43b9b1b2df-72bf61596651a0ab-01"
    );
    assert_eq!(
        trace.baggage("tools/call"),
        "mcp.method=tools/call,mcp.call_index=1"
    );
    assert_eq!(
        trace.baggage("a b,c;d%\"\\é"),
        "mcp.method=a%20b%2Cc%3Bd%25%22%5C%C3%A9,mcp.call_index=1"
    );
}

/// R6: control messages have spans of their own and never a call index.
#[test]
fn r6_control_spans() {
    let span = control_span_id("git", "tools/list", 3);
    let fields = [
        ("server", Field::Text("git")),
        ("ordinal", Field::Number(3)),
        ("method", Field::Text("tools/list")),
    ];
    assert_eq!(span.as_str(), derive_id("mcp.control", &fields, 8));
    assert_ne!(span, control_span_id("git", "tools/list", 4));
    let trace = TraceContext::for_control(trace_id("r"), span);
    assert_eq!(trace.baggage("tools/list"), "mcp.method=tools/list");
}

#[test]
fn r6_default_run_roots() {
    assert_eq!(
        default_run_root("fake", "https://fake/mcp").as_str(),
        "b8f43815172fb5614dddeaf52682ceafa5bf830de9d971929d33a7d3091c6ae0"
    );
    assert_eq!(
        stdio_url("sérver", &["--a", "x \"y\""]),
        r#"stdio:["s\u00e9rver","--a","x \"y\""]"#
    );
    assert_eq!(stdio_url::<&str>("server", &[]), r#"stdio:["server"]"#);
}

#[test]
fn r21_manifest_digests() {
    let one = r#"[{"name":"echo","description":"","inputSchema":{}}]"#;
    assert_eq!(
        manifest_digest(&[one]),
        "0f1ccbd291f203569c5a345bf127a14a76435b4cd916177a8ea1240072a2f7e6"
    );
    let empty = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";
    assert_eq!(manifest_digest(&["[]"]), empty);
    assert_eq!(manifest_digest(&["[]", " [ ] "]), empty);
}

/// R21: the digest is that of the sorted array, however the pages were cut and the tools ordered.
#[test]
fn r21_manifest_digest_is_that_of_the_sorted_array() {
    let sorted = r#"[{"name":"Z"},{"name":"a"},{"name":"ä"},{"name":"\ud83d\ude00"}]"#;
    let mut out = Vec::new();
    canonical::write(sorted, &mut out, 128).unwrap();
    let expected = Sha256Hex::of(&out).to_string();
    assert_eq!(manifest_digest(&[sorted]), expected);
    let pages = [
        r#"[{"name":"😀"},{"name":"a"}]"#,
        r#"[{"name":"ä"}, {"name":"\u005a"}]"#,
    ];
    assert_eq!(manifest_digest(&pages), expected);
}
