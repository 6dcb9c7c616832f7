//! `${VAR}` and `${VAR:-default}`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::secret::Templated;

/// How variables are looked up: the core has no environment of its own.
pub(super) type Lookup<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// Replaces the variables of `text`.
///
/// - `${VAR}` stands for the variable, which must exist; `${env:VAR}` is the same in another host's
///   spelling.
/// - `${VAR:-default}` stands for the variable, or for the default where it is unset or empty.
/// - `$${` is a literal `${`. Any other `$` is itself, and what a variable holds is not looked into.
///
/// The error is a message that names the variable and never shows a value.
pub(super) fn expand(text: &str, env: &mut Lookup<'_>) -> Result<Templated, String> {
    let mut value = String::new();
    let mut shown = String::new();
    let mut expansions = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(literal) = before.strip_suffix('$') {
            for out in [&mut value, &mut shown] {
                out.push_str(literal);
                out.push_str("${");
            }
            rest = after;
            continue;
        }
        let Some((inside, after)) = after.split_once('}') else {
            return Err("\"${\" is never closed; write \"$${\" for a literal one".into());
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let resolved = lookup(name, default, env)?;
        value.push_str(before);
        value.push_str(&resolved);
        shown.push_str(before);
        shown.push_str(&format!("${{{name}}}"));
        expansions.push(resolved);
        rest = after;
    }
    value.push_str(rest);
    shown.push_str(rest);
    Ok(if expansions.is_empty() {
        Templated::literal(value)
    } else {
        Templated::expanded(value, shown).with_expansions(expansions)
    })
}

fn lookup(name: &str, default: Option<&str>, env: &mut Lookup<'_>) -> Result<String, String> {
    if name.starts_with("input:") {
        return Err(format!(
            "\"${{{name}}}\" would have to be asked of a person; set a variable and write \"${{VAR}}\""
        ));
    }
    if !is_variable_name(name) {
        return Err(format!(
            "{name:?} is no name of a variable (letters, digits and _); write \"$${{\" for a literal \"${{\""
        ));
    }
    match (env(name), default) {
        (Some(found), None) => Ok(found),
        (Some(found), Some(_)) if !found.is_empty() => Ok(found),
        (_, Some(default)) => Ok(default.into()),
        (None, None) => Err(format!(
            "the variable {name} is not set; set it, or write \"${{{name}:-default}}\""
        )),
    }
}

fn is_variable_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use proptest::prelude::*;

    fn expanded(text: &str) -> Result<Templated, String> {
        expand(text, &mut |name| match name {
            "TOKEN" => Some("s3cret".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${TOKEN}".to_owned()),
            _ => None,
        })
    }

    /// R110: the value is complete, and what is shown holds the variable's name instead.
    #[test]
    fn variables_expand_and_are_shown_by_name() {
        let cases = [
            ("Bearer ${TOKEN}", "Bearer s3cret", "Bearer ${TOKEN}"),
            ("${env:TOKEN}!", "s3cret!", "${TOKEN}!"),
            ("${NONE:-a:-b}", "a:-b", "${NONE}"),
            ("${EMPTY:-x}", "x", "${EMPTY}"),
            ("${EMPTY}", "", "${EMPTY}"),
            ("${TOKEN:-x}", "s3cret", "${TOKEN}"),
            ("${NESTED}", "${TOKEN}", "${NESTED}"),
            ("$${TOKEN}", "${TOKEN}", "${TOKEN}"),
            ("$5 $$ $TOKEN", "$5 $$ $TOKEN", "$5 $$ $TOKEN"),
        ];
        for (text, value, shown) in cases {
            let result = expanded(text).unwrap();
            assert_eq!((result.value(), result.shown()), (value, shown), "{text}");
        }
        assert!(!expanded("$${TOKEN}").unwrap().is_expanded());
    }

    #[test]
    fn what_cannot_expand_says_why() {
        for (text, part) in [
            ("${NONE}", "variable NONE is not set"),
            ("a ${TOKEN", "never closed"),
            ("${}", "no name of a variable"),
            ("${1A}", "no name of a variable"),
            ("${input:key}", "asked of a person"),
        ] {
            let message = expanded(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    proptest! {
        /// Text without `${` is itself, and nothing ever panics.
        #[test]
        fn other_text_is_untouched(text in "[a$\\{\\}:\\-é]{0,12}") {
            let result = expanded(&text);
            if !text.contains("${") {
                let result = result.unwrap();
                prop_assert_eq!(result.value(), text);
            }
        }
    }
}
