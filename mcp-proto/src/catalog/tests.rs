use super::*;
use alloc::collections::BTreeSet;
use alloc::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

const PEERS: [&str; 4] = ["a", "b", "c", "s"];
const ITEMS: [&str; 9] = ["", "s", "t", "a/", "a/s", "b/s", "a/a/s", "d/s", "x/y/z"];

fn build(lists: &[(u32, Vec<&'static str>)]) -> Catalog {
    let sources: Vec<_> = lists
        .iter()
        .map(|(index, items)| Source::new(PeerId::new(*index), PEERS[*index as usize], items))
        .collect();
    Catalog::build(&sources)
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.names().collect()
}

/// R80: every owner of a colliding name is qualified, and the error names them all.
#[test]
fn a_colliding_name_leads_nowhere_and_names_its_owners() {
    let catalog = build(&[(1, vec!["s", "t"]), (0, vec!["s"])]);
    assert_eq!(names(&catalog), ["a/s", "b/s", "t"]);
    let canonical = vec!["a/s".to_owned(), "b/s".to_owned()];
    let error = catalog.resolve("s").unwrap_err();
    assert_eq!(
        error,
        ResolveError::Ambiguous {
            canonical: canonical.clone()
        }
    );
    assert_eq!(catalog.collisions()[0].owners, ["a", "b"]);
    assert_eq!(catalog.collisions()[0].canonical, canonical);
}

/// R80, R1: no server takes over another one's qualified name, whether that one has the tool, has
/// it not, or is not there yet.
#[test]
fn a_tool_that_looks_qualified_is_qualified_itself() {
    let hostile = ["a/s"];
    let (a, c) = (PeerId::new(0), PeerId::new(2));
    for (honest, expected) in [
        (Source::new(a, "a", &["s"]), Ok("s")),
        (
            Source::new(a, "a", &["t"]),
            Err(ResolveError::Unknown {
                suggestion: Some("c/a/s".into()),
            }),
        ),
        (
            Source::unknown(a, "a"),
            Err(ResolveError::NotListed {
                peer: a,
                item: "s".into(),
            }),
        ),
    ] {
        let catalog = Catalog::build(&[Source::new(c, "c", &hostile), honest]);
        let found = catalog.resolve("a/s").map(|route| {
            assert_eq!(route.peer, a);
            route.item
        });
        assert_eq!(found, expected);
        assert_eq!(catalog.resolve("c/a/s").unwrap().peer, c);
    }
}

/// R81: unknown is told from ambiguous, with the nearest name.
#[test]
fn an_unknown_name_has_a_suggestion() {
    let (a, b) = (PeerId::new(0), PeerId::new(1));
    let catalog = Catalog::build(&[
        Source::new(a, "git", &["diff", "search"]),
        Source::new(b, "web", &["search", "fetch"]),
    ]);
    for (asked, near) in [
        ("dif", Some("diff")),
        ("serach", Some("search")),
        ("git/serch", Some("git/search")),
        ("web/diff", None),
        ("gti/search", Some("git/search")),
        ("zzz", None),
    ] {
        let suggestion = near.map(ToOwned::to_owned);
        let expected = ResolveError::Unknown { suggestion };
        assert_eq!(catalog.resolve(asked).unwrap_err(), expected, "{asked}");
    }
}

type Lists = Vec<(u32, Vec<&'static str>)>;

fn lists() -> impl Strategy<Value = Lists> {
    let items = || subsequence(ITEMS.to_vec(), 0..=ITEMS.len());
    (
        subsequence(vec![0_u32, 1, 2, 3], 0..=4),
        [items(), items(), items(), items()],
    )
        .prop_map(|(peers, items)| peers.into_iter().zip(items).collect())
}

proptest! {
    /// R80: the order of peers and items changes nothing.
    #[test]
    fn order_changes_nothing(
        (lists, shuffled) in lists().prop_flat_map(|lists| {
            let reversed: Lists = lists
                .iter()
                .map(|(peer, items)| (*peer, items.iter().rev().copied().collect()))
                .collect();
            (Just(lists), Just(reversed).prop_shuffle())
        }),
    ) {
        prop_assert_eq!(build(&lists), build(&shuffled));
    }

    /// R80, R81: names are unique, each leads to exactly its owner, and `<peer>/<item>` always
    /// means that item of that peer.
    #[test]
    fn every_item_has_one_name_that_leads_back(lists in lists()) {
        let catalog = build(&lists);
        let mut seen = BTreeSet::new();
        for (index, items) in &lists {
            let peer = PeerId::new(*index);
            for item in items {
                let canonical = catalog.canonical(peer, item).unwrap();
                prop_assert!(seen.insert(canonical));
                let qualified = format!("{}/{item}", PEERS[*index as usize]);
                for name in [canonical, qualified.as_str()] {
                    let route = catalog.resolve(name).unwrap();
                    prop_assert_eq!((route.peer, route.item, route.canonical), (peer, *item, canonical));
                }
            }
        }
        prop_assert_eq!(seen.into_iter().collect::<Vec<_>>(), names(&catalog));
    }

    /// R80: a bare name leads somewhere only if exactly one peer has it.
    #[test]
    fn a_bare_name_is_never_a_guess(lists in lists(), item in proptest::sample::select(&ITEMS[..])) {
        let catalog = build(&lists);
        let owners: Vec<u32> = lists
            .iter()
            .filter(|(_, items)| items.contains(&item))
            .map(|(peer, _)| *peer)
            .collect();
        if let Ok(route) = catalog.resolve(item) {
            let qualified = format!("{}/{}", PEERS[route.peer.index()], route.item);
            let sole = owners == [route.peer.index() as u32] && route.item == item;
            prop_assert!(sole || qualified == item);
        }
    }
}
