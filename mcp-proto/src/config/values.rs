//! Readers for the kinds of values that settings have. Each records what is wrong and returns `None`.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::document::{Member, Node, Object, Reader};
use super::expand::{Lookup, expand};
use crate::nearest::nearest;
use crate::secret::Templated;
use crate::time::Duration;

/// Keys that other hosts write for themselves. They say nothing about how to reach a peer.
const FOREIGN: [&str; 25] = [
    "alwaysAllow",
    "alwaysLoad",
    "auth",
    "authProviderType",
    "autoApprove",
    "autoStart",
    "category",
    "description",
    "dev",
    "gallery",
    "icon",
    "icons",
    "id",
    "inputs",
    "metadata",
    "name",
    "note",
    "oauth",
    "requiresApproval",
    "sandbox",
    "sandboxEnabled",
    "tags",
    "title",
    "trust",
    "version",
];

const TOOL_FILTER: &str = "not obeyed: every tool of the server is offered";

/// Keys of other hosts that would change what happens, were they obeyed: to drop them silently would
/// surprise.
const UNSUPPORTED: [(&str, &str); 9] = [
    ("allowedTools", TOOL_FILTER),
    ("disabledTools", TOOL_FILTER),
    ("enabledTools", TOOL_FILTER),
    ("envFile", "not read; write the variables in \"env\""),
    ("excludeTools", TOOL_FILTER),
    (
        "headersHelper",
        "not run; write \"headers\", with \"${VAR}\" for secrets",
    ),
    ("includeTools", TOOL_FILTER),
    (
        "timeout",
        "not obeyed, for its unit differs between hosts; write \"timeoutMs\"",
    ),
    ("tools", TOOL_FILTER),
];

/// The reader together with the variables.
pub(super) struct Parser<'t, 'e> {
    pub(super) reader: Reader<'t>,
    pub(super) env: &'e mut Lookup<'e>,
}

impl<'t> Parser<'t, '_> {
    /// Puts a value into its place, where the member is there and good.
    pub(super) fn set<T>(
        &mut self,
        place: &mut T,
        member: Option<Member<'t>>,
        read: impl FnOnce(&mut Self, &Node<'t>) -> Option<T>,
    ) {
        if let Some(value) = member.and_then(|member| read(self, &member.value)) {
            *place = value;
        }
    }

    /// [`set`](Self::set) for a place that may stay empty.
    pub(super) fn set_some<T>(
        &mut self,
        place: &mut Option<T>,
        member: Option<Member<'t>>,
        read: impl FnOnce(&mut Self, &Node<'t>) -> Option<T>,
    ) {
        self.set(place, member, |parser, node| read(parser, node).map(Some));
    }

    pub(super) fn flag(&mut self, node: &Node<'t>) -> Option<bool> {
        self.reader.boolean(node)
    }

    /// A string that is not empty.
    pub(super) fn text(&mut self, node: &Node<'t>) -> Option<String> {
        let text = self.reader.string(node)?;
        if text.is_empty() {
            self.reader
                .error(node, "expected a string that is not empty");
            return None;
        }
        Some(text)
    }

    /// An array of strings as a set.
    pub(super) fn set_of_texts(&mut self, node: &Node<'t>) -> Option<BTreeSet<String>> {
        Some(self.reader.strings(node)?.into_iter().collect())
    }

    /// A string in which variables expand. A NUL cannot reach any program, path or header.
    pub(super) fn expanded(&mut self, node: &Node<'t>) -> Option<Templated> {
        let text = self.reader.string(node)?;
        match expand(&text, self.env) {
            Ok(expanded) if expanded.value().contains('\0') => {
                self.reader
                    .error(node, "a NUL character is not allowed here");
                None
            }
            Ok(expanded) => Some(expanded),
            Err(message) => {
                self.reader.error(node, message);
                None
            }
        }
    }

    /// [`expanded`](Self::expanded), and not empty.
    pub(super) fn expanded_text(&mut self, node: &Node<'t>) -> Option<Templated> {
        let text = self.expanded(node)?;
        if text.value().is_empty() {
            self.reader.error(node, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// An array of strings in which variables expand.
    pub(super) fn expanded_list(&mut self, node: &Node<'t>) -> Option<Vec<Templated>> {
        let elements = self.reader.array(node)?;
        // Every element is looked at, so that every wrong one is reported.
        let texts: Vec<_> = elements
            .iter()
            .map(|element| self.expanded(element))
            .collect();
        texts.into_iter().collect()
    }

    /// Milliseconds, at least 1.
    pub(super) fn millis(&mut self, node: &Node<'t>) -> Option<Duration> {
        self.reader.whole(node, 1).map(Duration::from_millis)
    }

    /// A size or a count, at least 1.
    pub(super) fn size(&mut self, node: &Node<'t>) -> Option<usize> {
        let size = self.reader.whole(node, 1)?;
        // What does not fit is no bound at all on this machine.
        Some(usize::try_from(size).unwrap_or(usize::MAX))
    }

    /// A count of attempts, at least `least`.
    pub(super) fn count(&mut self, node: &Node<'t>, least: u64) -> Option<u32> {
        let count = self.reader.whole(node, least)?;
        Some(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&mut self, node: &Node<'t>, words: &[(&str, T)]) -> Option<T> {
        let found = self.reader.string(node)?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == found) {
            return Some(*meaning);
        }
        let known = words.iter().map(|(word, _)| *word);
        let message = match nearest(&found, known.clone()) {
            Some(near) => format!("unknown word {found:?}; did you mean {near:?}?"),
            None => {
                let known: Vec<&str> = known.collect();
                format!("unknown word {found:?}; one of {}", known.join(", "))
            }
        };
        self.reader.error(node, message);
        None
    }

    /// Warns of what nobody asked for.
    pub(super) fn leftover(&mut self, object: Object<'t>) {
        let (members, known) = object.leftover();
        for member in members {
            let name = member.name.as_str();
            // Nothing and everything restrict nothing.
            if matches!(member.value.text(), "null" | "[]" | "[\"*\"]") {
                continue;
            }
            // Names like these are comments by convention, or an editor's.
            if name.starts_with(['_', '$', '#'])
                || name.starts_with("//")
                || FOREIGN.contains(&name)
            {
                continue;
            }
            let unsupported = UNSUPPORTED.iter().find(|(key, _)| *key == name);
            let message = match (unsupported, nearest(name, known.iter().copied())) {
                (Some((_, why)), _) => format!("{name:?} is {why}"),
                (None, Some(near)) => format!("unknown key; did you mean {near:?}?"),
                (None, None) => "unknown key, ignored".into(),
            };
            self.reader.warn(&member, message);
        }
    }
}
