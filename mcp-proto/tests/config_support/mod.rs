//! Configuration files as tests write them.
#![allow(dead_code)] // each test program uses some of it

use mcp_proto::config::{HttpConfig, PeerConfig, SpawnPlan, SpawnRule, StdioConfig, Transport};
use mcp_proto::{Config, Error, ErrorKind};

pub(crate) const SECRET: &str = "hunter2-s3cret";

pub(crate) fn env(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some(SECRET.to_owned()),
        "BROKEN_TOKEN" => Some(format!("{SECRET}\n")),
        "HOME" => Some("/home/ada".to_owned()),
        "PATH" => Some("/bin:/usr/bin".to_owned()),
        "EXPORTED" => Some("() { :; }".to_owned()),
        _ => None,
    }
}

pub(crate) fn parse(text: &str) -> Config {
    Config::parse(text, ".mcp.json", &mut env).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn errors(text: &str) -> String {
    match Config::parse(text, ".mcp.json", &mut env) {
        Ok(config) => panic!("accepted: {config:?}"),
        Err(error) => error.to_string(),
    }
}

/// One peer named `p` with these members.
pub(crate) fn peer(members: &str) -> PeerConfig {
    let config = parse(&format!(r#"{{"mcpServers":{{"p":{{{members}}}}}}}"#));
    assert_eq!(config.warnings, [], "{members}");
    config.peers.into_iter().next().expect("one peer")
}

/// What is wrong with a peer named `p` with these members, without the position.
pub(crate) fn peer_error(members: &str) -> String {
    let text = errors(&format!(r#"{{"mcpServers":{{"p":{{{members}}}}}}}"#));
    text.split_once(": ").expect("a position").1.to_owned()
}

pub(crate) fn stdio(peer: &PeerConfig) -> &StdioConfig {
    match &peer.transport {
        Transport::Stdio(stdio) => stdio,
        other => panic!("not stdio: {other:?}"),
    }
}

pub(crate) fn http(peer: &PeerConfig) -> &HttpConfig {
    match &peer.transport {
        Transport::Http(http) => http,
        other => panic!("not http: {other:?}"),
    }
}

/// A world in which `/bin` is empty and nothing is called `nowhere`; all other files are executable.
pub(crate) fn find(path: &str) -> Option<String> {
    let exists = !path.starts_with("/bin/") && !path.ends_with("/nowhere");
    exists.then(|| path.to_owned())
}

pub(crate) fn plan(child: &StdioConfig, rules: Option<&[SpawnRule]>) -> Result<SpawnPlan, String> {
    let found = child.plan(rules, &mut env, &mut find);
    found.map_err(|cause| {
        let error = Error::general(cause);
        assert_eq!(error.kind(), ErrorKind::SpawnRefused);
        error.to_string()
    })
}
