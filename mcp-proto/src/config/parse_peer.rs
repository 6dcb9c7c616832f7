//! One entry of `mcpServers`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Config;
use super::document::{Member, Node, Object};
use super::peer::{
    HttpConfig, HttpKind, PeerConfig, Restart, StdioConfig, StdoutNoise, Transport, validate_name,
};
use super::values::Parser;
use crate::cost::NanoUsd;
use crate::limits::Limits;
use crate::negotiation::EraSetting;
use crate::secret::{Secret, Templated};
use crate::version::{Era, Version};

const ERAS: [(&str, EraSetting); 3] = [
    ("auto", EraSetting::Auto),
    ("legacy", EraSetting::Legacy),
    ("modern", EraSetting::Modern),
];

const NOISE: [(&str, StdoutNoise); 3] = [
    ("auto", StdoutNoise::Auto),
    ("degrade", StdoutNoise::Degrade),
    ("tolerate", StdoutNoise::Tolerate),
];

#[derive(Clone, Copy)]
enum Kind {
    Http(HttpKind),
    Stdio,
}

impl<'t> Parser<'t, '_> {
    /// Adds the peer, unless it is switched off or wrong.
    pub(super) fn peer(&mut self, member: &Member<'t>, config: &mut Config) {
        if let Err(error) = validate_name(&member.name) {
            self.reader
                .name_error(member, format!("{error}; rename it"));
        }
        let Some(mut object) = self.reader.object(&member.value) else {
            return;
        };
        let mut disabled = false;
        self.set(&mut disabled, object.take("disabled"), Self::flag);
        let mut enabled = true;
        self.set(&mut enabled, object.take("enabled"), Self::flag);
        if disabled || !enabled {
            // Not looked into: its variables need not exist.
            config.disabled.push(member.name.clone());
            return;
        }
        let transport = self.transport(member, &mut object);
        // A stand-in lets the other settings be checked where the transport is wrong.
        let known = transport.is_some();
        let mut peer = PeerConfig::new(member.name.clone(), transport.unwrap_or(Transport::Stream));
        self.eras(member, &mut object, &mut peer);
        self.deadlines(&mut object, &mut peer);
        self.policies(&mut object, &mut peer);
        self.limits(&mut object, &mut peer.limits);
        self.set(&mut peer.restart, object.take("restart"), Self::restart);
        self.leftover(object);
        if known {
            config.peers.push(peer);
        }
    }

    fn transport(&mut self, member: &Member<'t>, object: &mut Object<'t>) -> Option<Transport> {
        let mut kind = None;
        let word = object.take("type").or_else(|| object.take("transport"));
        let stated = word.is_some();
        self.set_some(&mut kind, word, Self::kind);
        if stated && kind.is_none() {
            return None;
        }
        let command = object.take("command");
        let url = object
            .take("url")
            .or_else(|| object.take("serverUrl"))
            .or_else(|| object.take("httpUrl"));
        match (command, url, kind) {
            (Some(command), None, None | Some(Kind::Stdio)) => self.stdio(&command.value, object),
            (None, Some(url), None) => self.http(&url.value, HttpKind::Streamable, object),
            (None, Some(url), Some(Kind::Http(kind))) => self.http(&url.value, kind, object),
            (command, url, kind) => {
                let message = match (command.is_some(), url.is_some(), kind) {
                    (true, true, _) => "has both \"command\" and \"url\"; keep one",
                    (_, _, Some(Kind::Http(_))) => "has an HTTP \"type\" and no \"url\"; add it",
                    (_, _, Some(Kind::Stdio)) => "has \"type\" stdio and no \"command\"; add it",
                    (_, _, None) => {
                        "has neither \"command\" (to start it) nor \"url\" (to reach it); add one"
                    }
                };
                self.reader.name_error(member, message);
                None
            }
        }
    }

    /// `type`. Hosts differ in the spelling: `streamable-http`, `streamableHttp`, `http`, …
    fn kind(&mut self, node: &Node<'t>) -> Option<Kind> {
        let found = self.reader.string(node)?;
        let mut folded = found.replace(['-', '_'], "");
        folded.make_ascii_lowercase();
        match folded.as_str() {
            "stdio" | "local" => Some(Kind::Stdio),
            "http" | "streamablehttp" | "remote" => Some(Kind::Http(HttpKind::Streamable)),
            "sse" => Some(Kind::Http(HttpKind::Sse)),
            _ => {
                let message = format!("unknown transport {found:?}; one of stdio, http, sse");
                self.reader.error(node, message);
                None
            }
        }
    }

    fn stdio(&mut self, command: &Node<'t>, object: &mut Object<'t>) -> Option<Transport> {
        let command = self.expanded_text(command);
        let mut stdio = StdioConfig::new::<Templated>(command.clone().unwrap_or_default(), []);
        self.set(&mut stdio.args, object.take("args"), Self::expanded_list);
        self.set(&mut stdio.env, object.take("env"), Self::variables);
        self.set(
            &mut stdio.env_allow,
            object.take("envAllow"),
            Self::set_of_texts,
        );
        self.set_some(&mut stdio.cwd, object.take("cwd"), Self::expanded_text);
        for name in ["headers", "allowInsecureHttp", "caFile"] {
            self.no_effect(object.take(name), "standard input and output");
        }
        command.map(|_| stdio.into())
    }

    fn http(
        &mut self,
        node: &Node<'t>,
        kind: HttpKind,
        object: &mut Object<'t>,
    ) -> Option<Transport> {
        let mut url = self.expanded_text(node);
        if url.as_ref().is_some_and(|url| !is_http(url.value())) {
            let message = "expected an address that begins with \"https://\" or \"http://\"";
            self.reader.error(node, message);
            url = None;
        }
        let mut http = HttpConfig::new(url.clone().unwrap_or_default());
        http.kind = kind;
        self.set(&mut http.headers, object.take("headers"), Self::headers);
        let insecure = object.take("allowInsecureHttp");
        self.set(&mut http.allow_insecure, insecure, Self::flag);
        self.set_some(
            &mut http.ca_file,
            object.take("caFile"),
            Self::expanded_text,
        );
        for name in ["args", "env", "envAllow", "cwd", "stdoutNoise"] {
            self.no_effect(object.take(name), "HTTP");
        }
        url.map(|_| http.into())
    }

    fn eras(&mut self, member: &Member<'t>, object: &mut Object<'t>, peer: &mut PeerConfig) {
        self.set(
            &mut peer.allow_legacy,
            object.take("allowLegacy"),
            Self::flag,
        );
        let era = object.take("era");
        let versions = object.take("legacyVersions");
        self.set(&mut peer.legacy_versions, versions, Self::legacy_versions);
        let legacy = object.take("legacy");
        self.set_some(&mut peer.legacy_session, legacy, Self::session_header);
        let at = era.as_ref().unwrap_or(member).clone();
        self.set(&mut peer.era, era, |parser, node| parser.word(node, &ERAS));
        if peer.allow_legacy {
            return;
        }
        if peer.era == EraSetting::Legacy {
            let message = "the era \"legacy\" needs \"allowLegacy\": true beside it";
            self.reader.name_error(&at, message);
        }
        if matches!(&peer.transport, Transport::Http(http) if http.kind == HttpKind::Sse) {
            let message = "\"type\": \"sse\" is a legacy transport; if the server speaks nothing \
                           newer, it needs \"allowLegacy\": true";
            self.reader.warn(member, message);
        }
    }

    fn legacy_versions(&mut self, node: &Node<'t>) -> Option<Vec<Version>> {
        let words: Vec<(&str, Version)> = Version::ALL
            .into_iter()
            .filter(|version| version.era() == Era::Legacy)
            .map(|version| (version.as_str(), version))
            .collect();
        let elements = self.reader.array(node)?;
        if elements.is_empty() {
            let message = "names no revision; leave it out to accept all of them";
            self.reader.error(node, message);
        }
        let versions: Vec<_> = elements
            .iter()
            .map(|element| {
                if element.text().trim_matches('"') == Version::LATEST.as_str() {
                    let message = "is no legacy revision, and needs no permission; leave it out";
                    self.reader.error(element, message);
                    return None;
                }
                self.word(element, &words)
            })
            .collect();
        let mut versions: Vec<Version> = versions.into_iter().collect::<Option<_>>()?;
        versions.sort_by(|a, b| b.cmp(a));
        versions.dedup();
        Some(versions)
    }

    /// `legacy`: an object with `sessionHeader`.
    fn session_header(&mut self, node: &Node<'t>) -> Option<bool> {
        let mut object = self.reader.object(node)?;
        let member = object.take("sessionHeader");
        self.leftover(object);
        member.and_then(|member| self.flag(&member.value))
    }

    fn deadlines(&mut self, object: &mut Object<'t>, peer: &mut PeerConfig) {
        self.set(
            &mut peer.probe_timeout,
            object.take("probeTimeoutMs"),
            Self::millis,
        );
        self.set(&mut peer.timeout, object.take("timeoutMs"), Self::millis);
        let absolute = object.take("absoluteTimeoutMs");
        let Some(member) = absolute else {
            peer.absolute_timeout = peer.absolute_timeout.max(peer.timeout);
            return;
        };
        self.set(
            &mut peer.absolute_timeout,
            Some(member.clone()),
            Self::millis,
        );
        if peer.absolute_timeout < peer.timeout {
            let message = format!(
                "is shorter than \"timeoutMs\" ({}), which therefore never counts",
                peer.timeout.as_millis()
            );
            self.reader.warn(&member, message);
        }
    }

    fn policies(&mut self, object: &mut Object<'t>, peer: &mut PeerConfig) {
        let retries = object.take("maxContinuationRetries");
        self.set(
            &mut peer.max_continuation_retries,
            retries,
            |parser, node| parser.count(node, 0),
        );
        for (name, place) in [
            ("validateCapabilities", &mut peer.validate_capabilities),
            ("validateOutput", &mut peer.validate_output),
            ("pinTools", &mut peer.pin_tools),
            ("refuseDegraded", &mut peer.refuse_degraded),
            ("sendClientInfo", &mut peer.send_client_info),
            (
                "compatCapabilitiesAlias",
                &mut peer.compat_capabilities_alias,
            ),
        ] {
            self.set(place, object.take(name), Self::flag);
        }
        for (name, place) in [
            ("authContext", &mut peer.auth_context),
            ("idempotencyMetaKey", &mut peer.idempotency_meta_key),
            ("checkpointMetaKey", &mut peer.checkpoint_meta_key),
        ] {
            self.set_some(place, object.take(name), Self::text);
        }
        let tools = object.take("idempotentTools");
        self.set(&mut peer.idempotent_tools, tools, Self::set_of_texts);
        self.set_some(&mut peer.cost, object.take("costUsd"), Self::usd);
        self.set(
            &mut peer.tool_costs,
            object.take("toolCostsUsd"),
            Self::tool_costs,
        );
        let noise = object.take("stdoutNoise");
        self.set(&mut peer.stdout_noise, noise, |parser, node| {
            parser.word(node, &NOISE)
        });
    }

    /// `toolCostsUsd`: tools to dollars.
    fn tool_costs(&mut self, node: &Node<'t>) -> Option<BTreeMap<String, NanoUsd>> {
        let members = self.reader.map(node)?;
        let costs = members
            .into_iter()
            .filter_map(|member| Some((member.name, self.usd(&member.value)?)));
        Some(costs.collect())
    }

    fn limits(&mut self, object: &mut Object<'t>, limits: &mut Limits) {
        for (name, place) in [
            ("maxLineBytes", &mut limits.line_bytes),
            ("maxBodyBytes", &mut limits.body_bytes),
            ("maxDepth", &mut limits.depth),
            ("maxPages", &mut limits.pages),
            ("maxTools", &mut limits.items),
            ("maxInFlight", &mut limits.in_flight),
        ] {
            self.set(place, object.take(name), Self::size);
        }
        let rounds = object.take("maxInputRounds");
        self.set(&mut limits.input_rounds, rounds, |parser, node| {
            parser.count(node, 1)
        });
    }

    fn restart(&mut self, node: &Node<'t>) -> Option<Restart> {
        let mut object = self.reader.object(node)?;
        let mut restart = Restart::default();
        let attempts = object.take("maxAttempts");
        self.set(&mut restart.max_attempts, attempts, |parser, node| {
            parser.count(node, 0)
        });
        self.set(&mut restart.backoff, object.take("backoffMs"), Self::millis);
        self.set(
            &mut restart.backoff_max,
            object.take("backoffMaxMs"),
            Self::millis,
        );
        self.leftover(object);
        Some(restart)
    }

    /// `env`: names to values.
    fn variables(&mut self, node: &Node<'t>) -> Option<BTreeMap<String, Secret>> {
        let mut variables = BTreeMap::new();
        for member in self.reader.map(node)? {
            if member.name.is_empty() || member.name.contains(['=', '\0']) {
                let message = "a variable's name is not empty and has neither \"=\" nor NUL";
                self.reader.name_error(&member, message);
            }
            if let Some(value) = self.expanded(&member.value) {
                variables.insert(member.name, Secret::of(&value));
            }
        }
        Some(variables)
    }

    /// `headers`: names to values.
    fn headers(&mut self, node: &Node<'t>) -> Option<Vec<(String, Secret)>> {
        let mut headers = Vec::new();
        for member in self.reader.map(node)? {
            if !is_header_name(&member.name) {
                let message = "a header's name has only letters, digits and !#$%&'*+-.^_`|~";
                self.reader.name_error(&member, message);
            }
            let Some(value) = self.expanded(&member.value) else {
                continue;
            };
            // A line break would end the header and begin another one.
            if value.value().chars().any(|c| c.is_control() && c != '\t') {
                let message = "a header's value has no control characters (is there a line break \
                               at the end of a variable?)";
                self.reader.error(&member.value, message);
            }
            headers.push((member.name, Secret::of(&value)));
        }
        Some(headers)
    }
}

fn is_http(url: &str) -> bool {
    let scheme = url
        .split("://")
        .next()
        .filter(|scheme| scheme.len() < url.len());
    scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
    })
}

/// A token of RFC 9110, section 5.6.2.
fn is_header_name(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}
