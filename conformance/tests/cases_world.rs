//! The corpus of misbehaving servers against the core in the World.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use conformance::cases::{self, Case, Front, InWorld, Played, judge};
use serde_json::{Value, json};

#[test]
fn every_case_holds() {
    cases::assert_holds(&InWorld::as_written(), 2);
}

/// How the servers' output is cut makes no difference.
#[test]
fn every_case_holds_byte_by_byte() {
    cases::assert_holds(&InWorld::byte_by_byte(), 2);
}

#[test]
fn names_and_titles_are_unique() {
    let cases = Case::corpus().unwrap_or_else(|error| panic!("{error}"));
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    let of_files = |part: fn(&Case) -> &str| -> BTreeSet<String> {
        cases.iter().map(|case| part(case).to_owned()).collect()
    };
    let files = of_files(|case| case.name.split(" [").next().unwrap_or_default());
    assert_eq!(of_files(|case| &case.title).len(), files.len());
}

/// What is expected, changed to something that is not the case, is found to be wrong: a fact that cannot
/// fail is none.
#[test]
fn every_expectation_can_fail() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let cases = Case::corpus().unwrap_or_else(|error| panic!("{error}"));
    let played: BTreeMap<String, Played> = cases
        .iter()
        .map(|case| {
            let played = InWorld::as_written().play(case);
            (case.name.clone(), played.unwrap_or_default())
        })
        .collect();
    let files: BTreeSet<&str> = cases
        .iter()
        .filter(|case| case.pending.is_none())
        .filter_map(|case| case.name.split(" [").next())
        .collect();
    let mut idle = Vec::new();
    let mut facts = 0;
    for name in files {
        let text = fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        let mut places = Vec::new();
        expectations(&file, "", false, &mut places);
        for place in places {
            facts += 1;
            let mut changed = file.clone();
            *changed.pointer_mut(&place).unwrap() = other(&file, &place);
            let cases = Case::parse(name, &changed.to_string()).unwrap();
            let holds =
                |case: &Case| case.pending.is_some() || judge(case, &played[&case.name]).is_empty();
            if cases.iter().all(holds) {
                idle.push(format!("{name} {place}"));
            }
        }
    }
    assert!(facts > 500, "only {facts} facts");
    assert_eq!(idle, [""; 0]);
}

/// The places of all facts that are expected, as JSON pointers.
fn expectations(value: &Value, at: &str, inside: bool, places: &mut Vec<String>) {
    let below = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(members) if inside && members.contains_key("$any") => {
            places.push(at.to_owned());
        }
        Value::Object(members) if !members.is_empty() || !inside => {
            for (key, member) in members {
                // What a server says, and what is expected only of something that is still missing.
                let skipped = !inside && (key == "server" || member.get("pending").is_some());
                if !skipped {
                    expectations(member, &below(key), inside || key == "expect", places);
                }
            }
        }
        Value::Array(items) if !items.is_empty() || !inside => {
            for (index, item) in items.iter().enumerate() {
                expectations(item, &below(&index.to_string()), inside, places);
            }
        }
        _ if inside => places.push(at.to_owned()),
        _ => {}
    }
}

/// Something else than what is expected there.
fn other(file: &Value, place: &str) -> Value {
    let denied = ["/$lacks", "/never"].iter().any(|key| place.contains(key));
    match file.pointer(place).unwrap_or(&Value::Null) {
        // Every text contains the empty one.
        Value::String(_) if denied => json!(""),
        Value::Number(number) if place.ends_with("/$max") => {
            json!(number.as_f64().map(|number| -1.0 - number))
        }
        Value::Number(number) => json!(number.as_f64().map(|number| number * 2.0 + 12345.0)),
        Value::Bool(flag) => json!(!flag),
        _ => json!("something else"),
    }
}
