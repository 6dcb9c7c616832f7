//! From the text of a file to a [`Config`].

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::document::{Member, Node, Object, Reader};
use super::expand::Lookup;
use super::harness::{HarnessConfig, MergePolicy};
use super::spawn::SpawnRule;
use super::values::Parser;
use super::{Config, ConfigError};
use crate::cost::{CostReading, NanoUsd};
use crate::nearest::nearest;

/// The merge policies that are specified; only the first one is implemented.
const MERGE_POLICIES: [(&str, Option<MergePolicy>); 4] = [
    ("prefix-on-collision", Some(MergePolicy::PrefixOnCollision)),
    ("always-prefix", None),
    ("first-keeps-bare", None),
    ("reject", None),
];

pub(super) fn config(
    text: &str,
    source: &str,
    env: &mut Lookup<'_>,
) -> Result<Config, ConfigError> {
    let (reader, root) = Reader::open(source, text);
    let mut parser = Parser { reader, env };
    let mut config = Config::default();
    if let Some(root) = root {
        parser.document(&root, &mut config);
    }
    let mut reader = parser.reader;
    if !reader.errors.is_empty() {
        reader
            .errors
            .sort_by_key(|finding| (finding.line, finding.column));
        let findings = reader.errors;
        return Err(ConfigError { findings });
    }
    reader
        .warnings
        .sort_by_key(|finding| (finding.line, finding.column));
    config.warnings = reader.warnings;
    Ok(config)
}

impl<'t> Parser<'t, '_> {
    fn document(&mut self, root: &Node<'t>, config: &mut Config) {
        let Some(mut object) = self.reader.object(root) else {
            return;
        };
        let servers = match (object.take("mcpServers"), object.take("servers")) {
            (Some(servers), None) | (None, Some(servers)) => servers,
            (Some(_), Some(second)) => {
                let message = "stands beside \"mcpServers\", which means the same; keep one";
                return self.reader.name_error(&second, message);
            }
            (None, None) => return self.no_servers(root, object),
        };
        for member in self.reader.map(&servers.value).unwrap_or_default() {
            self.peer(&member, config);
        }
        if let Some(harness) = object.take("harness") {
            config.harness = self.harness(&harness.value);
        }
        self.leftover(object);
    }

    /// A document without servers, or with servers that are not where they should be.
    fn no_servers(&mut self, root: &Node<'t>, object: Object<'t>) {
        const EXPECTED: &str = "expected an object \"mcpServers\" that holds the servers by name";
        let (members, _) = object.leftover();
        for member in &members {
            if let Some(near) = nearest(&member.name, ["mcpServers", "servers"]) {
                let message = format!("unknown key; did you mean {near:?}?");
                return self.reader.name_error(member, message);
            }
        }
        let is_server = |member: &&Member<'t>| {
            let keys = self.reader.keys(&member.value);
            keys.iter().any(|key| key == "command" || key == "url")
        };
        match members.iter().find(is_server) {
            Some(server) => {
                let message = format!("{EXPECTED}; put this one into it");
                self.reader.name_error(server, message);
            }
            None => self.reader.error(root, EXPECTED),
        }
    }

    fn harness(&mut self, node: &Node<'t>) -> HarnessConfig {
        let mut harness = HarnessConfig::default();
        let Some(mut object) = self.reader.object(node) else {
            return harness;
        };
        self.set(
            &mut harness.merge_policy,
            object.take("mergePolicy"),
            Self::merge_policy,
        );
        self.set_some(
            &mut harness.run_root_hash,
            object.take("runRootHash"),
            Self::root_hash,
        );
        self.set_some(&mut harness.task_id, object.take("taskId"), Self::text);
        self.set_some(
            &mut harness.ledger,
            object.take("ledger"),
            Self::expanded_text,
        );
        self.set_some(&mut harness.budget, object.take("budgetUsd"), Self::usd);
        self.set_some(
            &mut harness.allow_spawn,
            object.take("allowSpawn"),
            Self::spawn_rules,
        );
        let stale = object.take("stalenessOnError");
        self.set(&mut harness.staleness_on_error, stale, Self::flag);
        let share = object.take("sharePublicCache");
        self.set(&mut harness.share_public_cache, share, Self::flag);
        self.leftover(object);
        harness
    }

    fn merge_policy(&mut self, node: &Node<'t>) -> Option<MergePolicy> {
        let policy = self.word(node, &MERGE_POLICIES)?;
        if policy.is_none() {
            let message = format!(
                "the merge policy {} is not available yet; write \"prefix-on-collision\"",
                node.text()
            );
            self.reader.error(node, message);
        }
        policy
    }

    fn root_hash(&mut self, node: &Node<'t>) -> Option<String> {
        let hash = self.reader.string(node)?;
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hash.len() == 64 && hash.bytes().all(hex) {
            return Some(hash);
        }
        let message = "expected 64 lowercase hexadecimal digits (a SHA-256 hash)";
        self.reader.error(node, message);
        None
    }

    /// An amount in dollars, exactly as it is written.
    pub(super) fn usd(&mut self, node: &Node<'t>) -> Option<NanoUsd> {
        if node.kind() != "a number" {
            self.reader.expected("a number of dollars", node);
            return None;
        }
        let CostReading { amount, warning } = NanoUsd::read(node.text());
        if warning.is_some() {
            let message = format!(
                "expected dollars: not negative, at most {}, at most 9 decimal places",
                NanoUsd::MAX
            );
            self.reader.error(node, message);
            return None;
        }
        Some(amount)
    }

    fn spawn_rules(&mut self, node: &Node<'t>) -> Option<Vec<SpawnRule>> {
        let elements = self.reader.array(node)?;
        let rules: Vec<_> = elements
            .iter()
            .map(|element| self.spawn_rule(element))
            .collect();
        rules.into_iter().collect()
    }

    fn spawn_rule(&mut self, node: &Node<'t>) -> Option<SpawnRule> {
        match node.kind() {
            "a string" => self.expanded_text(node).map(SpawnRule::any_args),
            "an object" => {
                let mut object = self.reader.object(node)?;
                let command = object.take("command");
                let args = object.take("args");
                self.leftover(object);
                let Some(command) = command else {
                    self.reader.error(node, "expected a \"command\"");
                    return None;
                };
                let command = self.expanded_text(&command.value);
                let Some(args) = args else {
                    return command.map(SpawnRule::any_args);
                };
                let args = self.expanded_list(&args.value);
                Some(SpawnRule::exact(command?, args?))
            }
            _ => {
                let what = "a command, or an object with \"command\" and \"args\"";
                self.reader.expected(what, node);
                None
            }
        }
    }

    /// Warns that a setting does nothing.
    pub(super) fn no_effect(&mut self, member: Option<Member<'t>>, transport: &str) {
        if let Some(member) = member {
            let message = format!("has no effect on a server that is reached over {transport}");
            self.reader.warn(&member, message);
        }
    }
}
