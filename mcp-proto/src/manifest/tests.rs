use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use proptest::prelude::*;

use super::*;
use crate::time::Duration;
use crate::types::tests::reading;
use crate::types::{ListFault, Prompt};

fn limits(pages: usize, items: usize) -> Limits {
    Limits {
        pages,
        items,
        ..Limits::default()
    }
}

/// A page with these entries; `rest` are further members.
fn page<T: Entry>(listing: Listing<T>, entries: &[&str], rest: &str, now: Instant) -> Step<T> {
    let text = format!(r#"{{"{}":[{}]{rest}}}"#, T::MEMBER, entries.join(","));
    reading(&text, |members| listing.on_page(members, now))
}

fn done<T: Entry>(step: Step<T>) -> List<T> {
    match step {
        Step::Done(list) => list,
        other => panic!("not done: {:?}", other_name(&other)),
    }
}

fn next<T: Entry>(step: Step<T>) -> (String, Listing<T>) {
    match step {
        Step::Next { cursor, listing } => (cursor, listing),
        other => panic!("no next page: {:?}", other_name(&other)),
    }
}

fn failed<T: Entry>(step: Step<T>) -> ListFault {
    match step {
        Step::Failed(fault) => fault,
        other => panic!("not failed: {:?}", other_name(&other)),
    }
}

fn other_name<T>(step: &Step<T>) -> String {
    match step {
        Step::Next { cursor, .. } => format!("next {cursor:?}"),
        Step::Done(list) => format!("done with {} entries", list.items.len()),
        Step::Failed(fault) => format!("failed: {fault}"),
    }
}

/// A manifest that was given these entries in one page.
fn manifest(entries: &[&str]) -> Manifest {
    let mut manifest = Manifest::new();
    refresh(&mut manifest, entries);
    manifest
}

fn refresh(manifest: &mut Manifest, entries: &[&str]) -> Changes {
    let listing = manifest.begin(&Limits::default());
    let list = done(page(listing, entries, "", Instant::ZERO));
    match manifest.install(list, |_| None) {
        Installed::Replaced(changes) => changes,
        Installed::Superseded => panic!("superseded"),
    }
}

fn at(seconds: u64) -> Instant {
    Instant::after_epoch(Duration::from_secs(seconds))
}

fn names(manifest: &Manifest) -> Vec<&str> {
    manifest.tools().iter().map(Tool::name).collect()
}

/// R21: the golden digests, and that the order of arrival and of members does not count.
#[test]
fn golden_digests() {
    assert_eq!(
        manifest(&[r#"{"name":"echo","description":"","inputSchema":{}}"#]).digest(),
        Some("0f1ccbd291f203569c5a345bf127a14a76435b4cd916177a8ea1240072a2f7e6")
    );
    assert_eq!(
        manifest(&[]).digest(),
        Some("4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945")
    );
    assert_eq!(Manifest::new().digest(), None);
    let one = manifest(&[r#"{"name":"a","x":{"p":1,"q":2}}"#, r#"{"name":"b"}"#]);
    let two = manifest(&[r#"{"name": "b"}"#, r#"{"x":{"q":2,"p":1},"name":"a"}"#]);
    assert_eq!(one.digest(), two.digest());
    assert_eq!(one.tool_digest("a"), two.tool_digest("a"));
    assert_ne!(one.tool_digest("a"), one.tool_digest("b"));
    assert_eq!(one.tool_digest("c"), None);
    // Unknown members are part of it.
    assert_ne!(
        one.digest(),
        manifest(&[r#"{"name":"a","x":{"p":1,"q":3}}"#, r#"{"name":"b"}"#]).digest()
    );
}

/// R21: what was left out is part of what the server advertises.
#[test]
fn digest_covers_what_was_left_out() {
    let (a, b) = (
        r#"{"name":"a"}"#,
        r#"{"name":"b","inputSchema":{"$ref":"http://x/"}}"#,
    );
    let both = manifest(&[a, b]);
    assert_eq!(names(&both), ["a"]);
    assert_ne!(both.digest(), manifest(&[a]).digest());
}

/// R20: all pages; the empty string is a cursor.
#[test]
fn every_page_counts() {
    let listing = Manifest::new().begin(&Limits::default());
    let (cursor, listing) = next(page(
        listing,
        &[r#"{"name":"b"}"#],
        r#","nextCursor":"","ttlMs":90000,"cacheScope":"public""#,
        at(0),
    ));
    assert_eq!(cursor, "");
    let (cursor, listing) = next(page(
        listing,
        &[],
        r#","nextCursor":"\u00e9","ttlMs":10000,"cacheScope":"public""#,
        at(5),
    ));
    assert_eq!(cursor, "é");
    let list = done(page(
        listing,
        &[r#"{"name":"a"}"#],
        r#","nextCursor":null,"ttlMs":90000"#,
        at(7),
    ));
    let keys: Vec<_> = list.items.iter().map(Entry::key).collect();
    assert_eq!(keys, ["b", "a"]);
    // R70: the earliest expiry, and private because one page was.
    assert_eq!(list.fresh_until, at(15));
    assert_eq!(list.scope, CacheScope::Private);
}

/// R20: loops and floods stop with an error, and the last good manifest is kept.
#[test]
fn loops_and_floods() {
    let kept = manifest(&[r#"{"name":"old"}"#]);
    let listing = kept.begin(&Limits::default());
    let (_, listing) = next(page(
        listing,
        &[r#"{"name":"a"}"#],
        r#","nextCursor":"""#,
        at(0),
    ));
    let step = page(listing, &[r#"{"name":"a"}"#], r#","nextCursor":"""#, at(0));
    assert_eq!(failed(step), ListFault::CursorLoop);

    let listing = kept.begin(&limits(2, 10));
    let (_, listing) = next(page(listing, &[], r#","nextCursor":"1""#, at(0)));
    let step = page(listing, &[], r#","nextCursor":"2""#, at(0));
    assert_eq!(failed(step), ListFault::TooManyPages { max: 2 });

    let listing = kept.begin(&limits(9, 3));
    let two = [r#"{"name":"a"}"#, r#"{"name":"b"}"#];
    let (_, listing) = next(page(listing, &two, r#","nextCursor":"1""#, at(0)));
    let step = page(listing, &two, "", at(0));
    assert_eq!(failed(step), ListFault::TooManyItems { max: 3 });

    let small = Limits {
        line_bytes: 16,
        ..Limits::default()
    };
    let wide = format!(r#"{{"name":"{}"}}"#, "x".repeat(64));
    let step = page(kept.begin(&small), &[&wide], "", at(0));
    assert_eq!(failed(step), ListFault::TooManyBytes { max: 64 });

    let step = page(kept.begin(&Limits::default()), &["7"], "", at(0));
    assert!(matches!(failed(step), ListFault::Violation(fault)
        if fault.violation == Violation::EntryWithoutName));
    assert_eq!(names(&kept), ["old"]);
}

#[test]
fn limits_become_typed_causes() {
    let cause = ListFault::TooManyPages { max: 2 }.into_cause(Tool::METHOD);
    assert_eq!(
        cause.to_string(),
        "number of pages of tools/list exceeds the limit of 2"
    );
    let fault = Fault::new(Violation::MalformedResult, "tools is missing");
    assert_eq!(
        ListFault::Violation(fault.clone()).into_cause(Tool::METHOD),
        crate::error::Cause::SchemaViolation(fault)
    );
}

/// R22: none of the twins can be called, whatever stands between them.
#[test]
fn duplicates_are_dropped() {
    let manifest = manifest(&[
        r#"{"name":"a","description":"one"}"#,
        r#"{"name":"b"}"#,
        r#"{"name":"\u0061","description":"two"}"#,
    ]);
    assert_eq!(names(&manifest), ["b"]);
    assert!(!manifest.contains("a"));
    let [rejected] = manifest.rejected() else {
        panic!("one name was left out");
    };
    assert_eq!(rejected.name, "a");
    assert_eq!(
        rejected.reason,
        Rejection::Duplicate(Fault::new(
            Violation::DuplicateTool,
            r#"2 tools have the name "a""#
        ))
    );
}

/// R22, R63: no schema is kept and flagged; a schema that leads outside costs its own tool only.
#[test]
fn schemas() {
    let manifest = manifest(&[
        r#"{"name":"none"}"#,
        r#"{"name":"null","inputSchema":null}"#,
        r##"{"name":"recursive","inputSchema":{"type":"object"},"outputSchema":{"$defs":{"N":{"items":{"$ref":"#/$defs/N"}}},"$ref":"#/$defs/N"}}"##,
        r#"{"name":"net","inputSchema":{"properties":{"p":{"$ref":"http://169.254.169.254/latest"}}}}"#,
        r#"{"name":"file","outputSchema":{"allOf":[{"\u0024ref":"file:///etc/passwd"}]}}"#,
        r#"{"name":"words","description":"\"$ref\":\"http://x\"","_meta":{"$ref":"http://x"}}"#,
    ]);
    assert_eq!(names(&manifest), ["none", "null", "recursive", "words"]);
    assert!(!manifest.tool("none").unwrap().has_input_schema());
    assert!(!manifest.tool("null").unwrap().has_input_schema());
    assert!(manifest.tool("recursive").unwrap().has_input_schema());
    let reasons: Vec<_> = manifest
        .rejected()
        .iter()
        .map(|tool| (&*tool.name, &tool.reason))
        .collect();
    assert_eq!(
        reasons,
        [
            (
                "file",
                &Rejection::ExternalReference(
                    r#"outputSchema refers to "file:///etc/passwd", which is outside of the schema"#.into()
                )
            ),
            (
                "net",
                &Rejection::ExternalReference(
                    r#"inputSchema refers to "http://169.254.169.254/latest", which is outside of the schema"#.into()
                )
            ),
        ]
    );
}

#[test]
fn the_caller_may_refuse_more() {
    let mut manifest = Manifest::new();
    let entries = [r#"{"name":"a"}"#, r#"{"name":"b"}"#];
    let list = done(page(
        manifest.begin(&Limits::default()),
        &entries,
        "",
        at(0),
    ));
    manifest.install(list, |tool| {
        (tool.name() == "a").then(|| "bad header".into())
    });
    assert_eq!(names(&manifest), ["b"]);
    assert_eq!(
        manifest.rejected()[0].reason,
        Rejection::Refused("bad header".into())
    );
}

/// R21: what a refresh changed, by name.
#[test]
fn changes_after_a_refresh() {
    let mut manifest = Manifest::new();
    let first = refresh(
        &mut manifest,
        &[
            r#"{"name":"b","x":1}"#,
            r#"{"name":"a","x":{"p":1,"q":2}}"#,
            r#"{"name":"c"}"#,
        ],
    );
    assert_eq!(first.added, ["a", "b", "c"]);
    let second = refresh(
        &mut manifest,
        &[
            r#"{"x":{"q":2,"p":1},"name":"a"}"#,
            r#"{"name":"b","x":2}"#,
            r#"{"name":"d"}"#,
        ],
    );
    assert_eq!(second.added, ["d"]);
    assert_eq!(second.removed, ["c"]);
    assert_eq!(second.changed, ["b"]);
    assert!(
        refresh(
            &mut manifest,
            &[
                r#"{"name":"d"}"#,
                r#"{"name":"b","x":2}"#,
                r#"{"name":"a","x":{"p":1,"q":2}}"#
            ]
        )
        .is_empty()
    );
}

/// R70: fresh while now < received + ttl; an invalidation ends it, and a list that was asked for
/// before the invalidation cannot bring it back.
#[test]
fn freshness_and_invalidation() {
    let mut manifest = Manifest::new();
    assert!(!manifest.is_known() && !manifest.fresh_at(at(0)));
    let fetch = |manifest: &Manifest, name: &str| {
        let entry = format!(r#"{{"name":"{name}"}}"#);
        done(page(
            manifest.begin(&Limits::default()),
            &[&entry],
            r#","ttlMs":10000"#,
            at(100),
        ))
    };
    let list = fetch(&manifest, "a");
    manifest.install(list, |_| None);
    assert!(manifest.fresh_at(at(100)) && manifest.fresh_at(at(109)));
    assert!(!manifest.fresh_at(at(110)));

    let in_flight = fetch(&manifest, "b");
    manifest.invalidate();
    assert!(!manifest.fresh_at(at(100)) && manifest.contains("a"));
    manifest.install(in_flight.clone(), |_| None);
    assert!(manifest.contains("b") && !manifest.fresh_at(at(100)));
    let list = fetch(&manifest, "c");
    manifest.install(list, |_| None);
    assert!(manifest.fresh_at(at(100)));
    assert_eq!(manifest.install(in_flight, |_| None), Installed::Superseded);
    assert!(manifest.contains("c") && !manifest.contains("b"));

    manifest.clear();
    assert!(!manifest.is_known() && manifest.tools().is_empty());
}

/// One listing serves every list.
#[test]
fn other_lists_page_alike() {
    let listing = Listing::<Prompt>::start(3, &Limits::default());
    let list = done(page(
        listing,
        &[r#"{"name":"p","arguments":[{"name":"x","required":true},{}]}"#],
        "",
        at(0),
    ));
    assert_eq!(list.generation, 3);
    let arguments = list.items[0].arguments();
    assert_eq!(arguments.len(), 1);
    assert!(arguments[0].required && arguments[0].name == "x");
}

proptest! {
    /// R20: whatever cursors a server gives, paging ends within the bounds, and never asks twice
    /// with the same cursor.
    #[test]
    fn paging_terminates(
        cursors in proptest::collection::vec(proptest::option::weighted(0.9, "[ab]{0,3}"), 1..40),
        pages_max in 1_usize..12,
    ) {
        let mut listing = Listing::<Prompt>::start(0, &limits(pages_max, 1_000));
        let mut asked: Vec<Option<String>> = vec![None];
        let mut answers = cursors.into_iter().cycle();
        loop {
            prop_assert!(asked.len() <= pages_max);
            let rest = match answers.next().flatten() {
                Some(cursor) => format!(r#","nextCursor":"{cursor}""#),
                None => String::new(),
            };
            let entry = format!(r#"{{"name":"p{}"}}"#, asked.len());
            match page(listing, &[&entry], &rest, Instant::ZERO) {
                Step::Done(list) => {
                    prop_assert_eq!(list.items.len(), asked.len());
                    break;
                }
                Step::Failed(fault) => {
                    let max = pages_max;
                    let allowed = [ListFault::CursorLoop, ListFault::TooManyPages { max }];
                    prop_assert!(allowed.contains(&fault));
                    break;
                }
                Step::Next { cursor, listing: rest } => {
                    prop_assert!(!asked.contains(&Some(cursor.clone())));
                    asked.push(Some(cursor));
                    listing = rest;
                }
            }
        }
    }

    /// R22: exactly the names that stand once are routable, each to its own descriptor.
    #[test]
    fn only_unique_names_are_routable(entries in proptest::collection::vec("[a-e]{1,2}", 0..24)) {
        let texts: Vec<_> = entries
            .iter()
            .enumerate()
            .map(|(index, name)| format!(r#"{{"name":"{name}","x":{index}}}"#))
            .collect();
        let manifest = manifest(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let mut positions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, name) in entries.iter().enumerate() {
            positions.entry(name).or_default().push(index);
        }
        for (name, positions) in &positions {
            let routed = manifest.tool(name).and_then(|tool| tool.member("x"));
            let expected = match positions[..] {
                [only] => Some(only.to_string()),
                _ => None,
            };
            prop_assert_eq!(routed.map(|raw| raw.get().to_string()), expected);
        }
        let unique = positions.values().filter(|positions| positions.len() == 1).count();
        prop_assert_eq!(manifest.tools().len(), unique);
        prop_assert_eq!(manifest.rejected().len(), positions.len() - unique);
    }
}
