use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::time::Duration;

fn hint(millis: u64, scope: CacheScope) -> CacheHint {
    CacheHint {
        ttl: Duration::from_millis(millis),
        scope,
    }
}

fn at(millis: u64) -> Instant {
    Instant::after_epoch(Duration::from_millis(millis))
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn put(cache: &mut ResponseCache, method: &str, params: &str, value: &str, ttl: u64) -> bool {
    let ticket = cache.ticket(method, params).unwrap();
    cache.store(&ticket, json(value), hint(ttl, CacheScope::Private), at(0))
}

fn has(cache: &mut ResponseCache, method: &str, params: &str) -> bool {
    let ticket = cache.ticket(method, params).unwrap();
    cache.get(&ticket, at(0)).is_some()
}

/// R70: fresh while now < received + ttl; old answers only on demand.
#[test]
fn freshness() {
    let mut cache = ResponseCache::new(8, 1_000);
    let ticket = cache.ticket("resources/read", r#"{"uri":"a:"}"#).unwrap();
    assert!(cache.store(&ticket, json("1"), hint(10, CacheScope::Public), at(5)));
    assert_eq!(cache.get(&ticket, at(14)), Some(&json("1")));
    assert_eq!(cache.get(&ticket, at(15)), None);
    assert_eq!(cache.stale(&ticket), Some(&json("1")));
    // An answer that must not be kept replaces what was kept.
    assert!(!cache.store(&ticket, json("2"), CacheHint::default(), at(16)));
    assert_eq!((cache.stale(&ticket), cache.bytes()), (None, 0));
}

/// R70: other methods, and answers to supplied input, are never kept.
#[test]
fn what_gets_no_ticket() {
    let cache = ResponseCache::new(8, 1_000);
    for (method, params) in [
        ("tools/call", "{}"),
        ("prompts/get", "{}"),
        ("resources/read", r#"{"uri":"a:","requestState":"s"}"#),
        ("resources/read", r#"{"uri":"a:","requestState":null}"#),
        ("resources/read", r#"{"uri":"a:","input\u0052esponses":{}}"#),
        ("resources/read", "[]"),
        ("resources/read", "{"),
    ] {
        assert!(cache.ticket(method, params).is_none(), "{method} {params}");
    }
}

/// R70: each notification drops its own kind and nothing else.
#[test]
fn invalidation_by_kind() {
    let mut cache = ResponseCache::new(8, 1_000);
    let all = [
        ("resources/list", "{}"),
        ("resources/templates/list", "{}"),
        ("prompts/list", r#"{"cursor":""}"#),
        ("resources/read", r#"{"uri":"file:///d/a"}"#),
        ("resources/read", r#"{"uri":"file:///d"}"#),
        ("resources/read", r#"{"uri":"file:///e"}"#),
    ];
    let fill = |cache: &mut ResponseCache| {
        for (method, params) in all {
            assert!(put(cache, method, params, "1", 1_000));
        }
    };
    let kept = |cache: &mut ResponseCache| all.map(|(method, params)| has(cache, method, params));
    fill(&mut cache);
    cache.invalidate(CacheKind::Resources);
    assert_eq!(kept(&mut cache), [false, false, true, true, true, true]);
    fill(&mut cache);
    cache.invalidate_resource("file:///d/a");
    assert_eq!(kept(&mut cache), [true, true, true, false, false, true]);
    fill(&mut cache);
    cache.clear();
    assert!(cache.is_empty() && cache.bytes() == 0);
}

/// R70: an answer that was under way cannot be written back over an invalidation.
#[test]
fn in_flight_answers_do_not_survive() {
    let mut cache = ResponseCache::new(8, 1_000);
    let list = cache.ticket("prompts/list", "{}").unwrap();
    let read = cache.ticket("resources/read", r#"{"uri":"a:"}"#).unwrap();
    cache.invalidate(CacheKind::Prompts);
    assert!(!cache.store(&list, json("1"), hint(1_000, CacheScope::Public), at(0)));
    assert!(cache.store(&read, json("1"), hint(1_000, CacheScope::Public), at(0)));
    cache.drop_private();
    assert_eq!(cache.get(&read, at(0)), Some(&json("1")));
    assert!(!cache.store(&read, json("2"), hint(1_000, CacheScope::Public), at(0)));
    assert_eq!(cache.get(&read, at(0)), Some(&json("1")));
}

/// R70: what only one authorization may see goes with it.
#[test]
fn private_answers_go_with_the_authorization() {
    let mut cache = ResponseCache::new(8, 1_000);
    assert!(put(&mut cache, "prompts/list", "{}", "1", 1_000));
    let public = cache.ticket("resources/list", "{}").unwrap();
    assert!(cache.store(&public, json("2"), hint(1_000, CacheScope::Public), at(0)));
    cache.drop_private();
    assert!(!has(&mut cache, "prompts/list", "{}"));
    assert!(has(&mut cache, "resources/list", "{}"));
}

/// R1, R70: bounded by count and bytes; what was used longest ago goes first.
#[test]
fn least_recently_used_goes_first() {
    let mut cache = ResponseCache::new(2, 1_000);
    let uri = |name| format!(r#"{{"uri":"{name}:"}}"#);
    put(&mut cache, "resources/read", &uri("a"), "1", 1_000);
    put(&mut cache, "resources/read", &uri("b"), "1", 1_000);
    assert!(has(&mut cache, "resources/read", &uri("a")));
    put(&mut cache, "resources/read", &uri("c"), "1", 1_000);
    let kept = ["a", "b", "c"].map(|name| has(&mut cache, "resources/read", &uri(name)));
    assert_eq!(kept, [true, false, true]);

    let mut small = ResponseCache::new(9, 64);
    let large = format!("\"{}\"", "x".repeat(64));
    assert!(put(&mut small, "resources/read", &uri("a"), "1", 1_000));
    assert!(!put(&mut small, "resources/read", &uri("b"), &large, 1_000));
    assert!(has(&mut small, "resources/read", &uri("a")));
}

#[derive(Clone, Debug)]
enum Op {
    Store { key: u8, ttl: u64 },
    Begin { key: u8 },
    Land { ttl: u64 },
    Get { key: u8 },
    Invalidate { reads: bool },
    Wait { millis: u64 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        (0..6_u8, 0..30_u64).prop_map(|(key, ttl)| Op::Store { key, ttl }),
        (0..6_u8).prop_map(|key| Op::Begin { key }),
        (0..30_u64).prop_map(|ttl| Op::Land { ttl }),
        (0..6_u8).prop_map(|key| Op::Get { key }),
        any::<bool>().prop_map(|reads| Op::Invalidate { reads }),
        (0..20_u64).prop_map(|millis| Op::Wait { millis }),
    ];
    proptest::collection::vec(op, 1..60)
}

/// Even keys are reads, odd ones are pages of a list.
fn request(key: u8) -> (CacheKind, &'static str, String) {
    if key.is_multiple_of(2) {
        let params = format!(r#"{{"uri":"k{key}:"}}"#);
        (CacheKind::Reads, "resources/read", params)
    } else {
        let params = format!(r#"{{"cursor":"{key}"}}"#);
        (CacheKind::Prompts, "prompts/list", params)
    }
}

proptest! {
    /// R70 against a model without bounds: what is given was stored under that very key, after the
    /// last invalidation of its kind, and its time is not over; and the bounds hold.
    #[test]
    fn never_stale(ops in ops(), entries_max in 1_usize..5) {
        let bytes_max = 200;
        let mut cache = ResponseCache::new(entries_max, bytes_max);
        let mut model: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
        let mut flight: Option<(u8, Ticket, bool)> = None;
        let (mut now, mut serial) = (0, 0_u64);
        for op in ops {
            serial += 1;
            match op {
                Op::Wait { millis } => now += millis,
                Op::Begin { key } => {
                    let (_, method, params) = request(key);
                    flight = Some((key, cache.ticket(method, &params).unwrap(), true));
                }
                Op::Land { ttl } => {
                    let Some((key, ticket, valid)) = flight.take() else { continue };
                    let stored = cache.store(
                        &ticket, json(&format!("{serial}")), hint(ttl, CacheScope::Private), at(now),
                    );
                    prop_assert!(valid || !stored);
                    if stored {
                        model.insert(key, (serial, now + ttl));
                    } else if valid {
                        model.remove(&key);
                    }
                }
                Op::Store { key, ttl } => {
                    let (_, method, params) = request(key);
                    let ticket = cache.ticket(method, &params).unwrap();
                    let stored = cache.store(
                        &ticket, json(&format!("{serial}")), hint(ttl, CacheScope::Private), at(now),
                    );
                    prop_assert_eq!(stored, ttl > 0);
                    model.remove(&key);
                    if stored {
                        model.insert(key, (serial, now + ttl));
                    }
                }
                Op::Invalidate { reads } => {
                    let kind = if reads { CacheKind::Reads } else { CacheKind::Prompts };
                    cache.invalidate(kind);
                    model.retain(|key, _| request(*key).0 != kind);
                    if let Some((key, _, valid)) = &mut flight {
                        *valid &= request(*key).0 != kind;
                    }
                }
                Op::Get { key } => {
                    let (_, method, params) = request(key);
                    let ticket = cache.ticket(method, &params).unwrap();
                    if let Some(value) = cache.get(&ticket, at(now)) {
                        let (stored, until) = model.get(&key).copied().unwrap_or((0, 0));
                        prop_assert_eq!(value, &json(&format!("{stored}")));
                        prop_assert!(now < until);
                    }
                }
            }
            prop_assert!(cache.len() <= entries_max && cache.bytes() <= bytes_max);
        }
    }
}
