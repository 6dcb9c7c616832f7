//! "Did you mean …?": the nearest known name, for configuration keys and tool names alike.

use alloc::vec::Vec;

/// Longer names are not compared: the distance costs the product of both lengths, and a server can
/// choose one of them.
const LONGEST_CHARS: usize = 128;

/// The candidate that `name` is most likely a misspelling of, or `None` when nothing is near.
///
/// Near means: equal but for case, or at most one change (insertion, removal, replacement, exchange
/// of neighbours) per three characters. Of equally near candidates the first one wins.
///
/// ```
/// use mcp_proto::nearest::nearest;
/// assert_eq!(nearest("comand", ["args", "command"]), Some("command"));
/// assert_eq!(nearest("colour", ["args", "command"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(name)?;
    let tolerance = (wanted.len() / 3).max(1);
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in candidates {
        // A character takes at most four bytes, so this skips most candidates without reading them.
        if candidate.len() > 4 * (wanted.len() + tolerance) {
            continue;
        }
        let Some(other) = folded(candidate) else {
            continue;
        };
        if other.len().abs_diff(wanted.len()) > tolerance {
            continue;
        }
        let distance = distance(&wanted, &other);
        // A change of every character is no misspelling.
        let near = distance <= tolerance && distance < wanted.len().max(other.len());
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The characters in lower case, or `None` when there are none or too many.
fn folded(name: &str) -> Option<Vec<char>> {
    let chars: Vec<char> = name
        .chars()
        .take(LONGEST_CHARS + 1)
        .flat_map(char::to_lowercase)
        .collect();
    (1..=LONGEST_CHARS).contains(&chars.len()).then_some(chars)
}

/// Optimal string alignment distance: Levenshtein's, with an exchange of neighbours as one change.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, left) in a.iter().enumerate() {
        let mut current = Vec::with_capacity(above.len());
        current.push(row + 1);
        for (column, right) in b.iter().enumerate() {
            // Every row has one cell more than `b` has characters, so the fallbacks never decide.
            let at =
                |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX);
            let replaced = at(&above, column).saturating_add(usize::from(left != right));
            let removed = at(&above, column + 1).saturating_add(1);
            let inserted = at(&current, column).saturating_add(1);
            let mut least = replaced.min(removed).min(inserted);
            let exchanged = row > 0
                && column > 0
                && a.get(row - 1) == Some(right)
                && b.get(column - 1) == Some(left);
            if exchanged {
                least = least.min(at(&before, column - 1).saturating_add(1));
            }
            current.push(least);
        }
        before = core::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    #[test]
    fn one_change_of_each_kind_is_near() {
        for misspelt in ["comand", "commmand", "commend", "comamnd", "COMMAND"] {
            assert_eq!(
                nearest(misspelt, ["args", "command", "cwd"]),
                Some("command"),
                "{misspelt}"
            );
        }
    }

    #[test]
    fn nothing_is_suggested_for_what_is_far_empty_or_endless() {
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest("", ["a"]), None);
        let endless: String = "a".repeat(1 << 20);
        assert_eq!(nearest(&endless, [endless.as_str()]), None);
    }

    #[test]
    fn the_nearer_wins_and_then_the_first() {
        assert_eq!(nearest("serch", ["march", "search"]), Some("search"));
        assert_eq!(nearest("tool_x", ["tool_a", "tool_b"]), Some("tool_a"));
    }

    proptest! {
        #[test]
        fn the_distance_is_symmetric_and_zero_only_for_equals(a in "[abc]{0,8}", b in "[abc]{0,8}") {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            prop_assert_eq!(distance(&a, &b), distance(&b, &a));
            prop_assert_eq!(distance(&a, &b) == 0, a == b);
            prop_assert!(distance(&a, &b) <= a.len().max(b.len()));
        }
    }
}
