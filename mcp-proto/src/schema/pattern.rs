//! How much a regular expression can cost, by its text.

/// What a character class, an escape or a dot weighs: as many bytes as one character may have.
const CLASS: u64 = 4;

/// How many places of the pattern a text may be in at once, at most. Where no table of states is small enough,
/// each byte of the text is looked at once for each of them.
///
/// ```text
/// abc          3
/// [ab]{1000}   4,000
/// (x{10}){10}  100
/// ```
pub(super) fn places(pattern: &str) -> u64 {
    // For each open group, how many places it has, and how many of them a repetition would repeat.
    let mut open = alloc::vec![(0_u64, 0_u64)];
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        let atom = match letter {
            '(' => {
                open.push((0, 0));
                continue;
            }
            ')' if open.len() > 1 => open.pop().map_or(0, |(places, _)| places),
            '{' => {
                if let Some((times, after)) = repetition(rest.as_str()) {
                    rest = after.chars();
                    if let Some((places, last)) = open.last_mut() {
                        *places = places.saturating_add(last.saturating_mul(times - 1));
                        *last = last.saturating_mul(times);
                    }
                    continue;
                }
                1
            }
            '*' | '+' | '?' | '|' | '^' | '$' => continue,
            '[' => {
                skip_class(&mut rest);
                CLASS
            }
            '\\' => {
                skip_escape(&mut rest);
                CLASS
            }
            '.' => CLASS,
            other => other.len_utf8() as u64,
        };
        if let Some((places, last)) = open.last_mut() {
            *places = places.saturating_add(atom);
            *last = atom;
        }
    }
    let all = open.iter().map(|(places, _)| *places);
    all.fold(1, u64::saturating_add)
}

/// What stands behind `{`, if that is a repetition: how often at most (at least once), and what follows.
fn repetition(text: &str) -> Option<(u64, &str)> {
    let (inside, after) = text.split_once('}')?;
    let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let least = number(least)?;
    let most = if most.trim().is_empty() {
        least.saturating_add(1)
    } else {
        number(most)?
    };
    Some((least.max(most).max(1), after))
}

/// Goes on behind an escape, with its name if it has one: `\\d`, `\\pL`, `\\p{Greek}`, `\\x{7F}`.
fn skip_escape(rest: &mut core::str::Chars<'_>) {
    let kind = rest.next();
    if !matches!(kind, Some('p' | 'P' | 'u' | 'x')) {
        return;
    }
    match rest.as_str().split_once('}') {
        Some((name, after)) if name.starts_with('{') => *rest = after.chars(),
        _ if matches!(kind, Some('p' | 'P')) => drop(rest.next()),
        _ => {}
    }
}

/// Goes on behind a class, the ones within it included.
fn skip_class(rest: &mut core::str::Chars<'_>) {
    let mut open = 1_usize;
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => drop(rest.next()),
            '[' => open += 1,
            ']' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn repetitions_multiply() {
        for (pattern, expected) in [
            ("", 1),
            ("abc", 4),
            ("^a|b$", 3),
            ("(a+)+", 2),
            ("[ab]{1000}", 4_001),
            ("(x{10}){10}", 101),
            ("a(b(c{2}d){3}){5,7}e", 1 + 1 + 7 * (1 + 3 * 3) + 1),
            (r"\d{4}-\d{2}", 1 + 16 + 1 + 8),
            (r"\p{L}{4}", 17),
            (r"\pL{4}x{2}", 19),
            ("x{2,}", 1 + 3),
            ("x{,2}", 1 + 5),
            ("[[a-z]&&[^\\]x]]{3}", 13),
            ("((((", 1),
            ("))a", 4),
            ("a{18446744073709551615}{18446744073709551615}", u64::MAX),
        ] {
            assert_eq!(places(pattern), expected, "{pattern}");
        }
    }
}
