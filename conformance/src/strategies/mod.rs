//! Generated configurations, servers and runs: plain functions over a [`Choice`].
//!
//! A decision of 0 is always the tame one, so a dry source gives a well-behaved server, and shrinking
//! the bytes shrinks towards it.

mod application;
mod hostile;
mod money;
mod scenes;
mod server;

use mcp_proto::config::StdoutNoise;
use mcp_proto::negotiation::EraSetting;
use mcp_proto::types::LogLevel;
use mcp_proto::{Identity, PeerConfig};
use serde_json::json;

pub use application::{Reaction, Said, Step, call, operation, perform, steps};
pub use hostile::{HOSTILE_LINES, hostile_text};
pub use money::{LedgerFile, config};
pub use server::script;

use crate::world::{Choice, Splits, World, millis, pick};

/// Longest line of generated peers: small, so that limits are reached.
pub const LINE_BYTES: usize = 4 << 10;

/// Where checkpoints and idempotency keys of generated peers travel.
pub const CHECKPOINT: &str = "example.com/checkpoint";
/// See [`CHECKPOINT`].
pub const KEY: &str = "example.com/key";

/// A peer with small limits and short deadlines.
pub fn peer(choice: &mut dyn Choice, name: &str) -> PeerConfig {
    let mut peer = PeerConfig::stdio(name, name, Vec::<String>::new());
    peer.limits.line_bytes = LINE_BYTES;
    peer.limits.pages = 5;
    peer.limits.items = 20;
    peer.limits.notifications = 4;
    peer.limits.in_flight = 1 + choice.choose(16) as usize;
    peer.probe_timeout = millis(3_000);
    peer.timeout = millis(4_000);
    peer.absolute_timeout = millis(9_000);
    peer.allow_legacy = !choice.one_in(3);
    peer.era = *pick(
        choice,
        &[
            EraSetting::Auto,
            EraSetting::Auto,
            EraSetting::Modern,
            EraSetting::Legacy,
        ],
    );
    peer.stdout_noise = *pick(
        choice,
        &[
            StdoutNoise::Auto,
            StdoutNoise::Tolerate,
            StdoutNoise::Degrade,
        ],
    );
    peer.validate_capabilities = !choice.one_in(4);
    peer.refuse_degraded = choice.one_in(4);
    peer.limits.input_rounds = 1 + choice.choose(4);
    // How it is brought back, and what may be repeated then.
    peer.restart.max_attempts = 3 - choice.choose(4);
    peer.restart.backoff = millis(50 + u64::from(choice.choose(1_000)));
    peer.restart.backoff_max = millis(2_000);
    peer.max_continuation_retries = choice.choose(4);
    if choice.one_in(3) {
        peer.idempotent_tools
            .extend(["echo", "slow", "ask", "progress", "talk"].map(String::from));
    }
    if choice.one_in(4) {
        peer.idempotency_meta_key = Some(KEY.into());
    }
    if choice.one_in(2) {
        peer.checkpoint_meta_key = Some(CHECKPOINT.into());
    }
    peer.pin_tools = choice.one_in(4);
    peer.validate_output = choice.one_in(6);
    money::price(choice, &mut peer);
    peer
}

/// Who the application is: without any capability, or with all that there are; with or without an
/// interest in log messages.
///
/// # Panics
/// Never: both objects are good.
pub fn identity(choice: &mut dyn Choice) -> Identity {
    let identity = match choice.choose(3) {
        0 => Identity::default(),
        _ => {
            let info = json!({"name": "world", "version": "1"});
            let all = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}});
            Identity::new(info.into(), all.into()).expect("two objects")
        }
    };
    if choice.one_in(4) {
        return identity.with_log_level(LogLevel::Info);
    }
    identity
}

/// A world of generated peers and servers, in which a schedule decides.
pub fn world(choice: &mut dyn Choice, names: &[&str], schedule: impl Choice + 'static) -> World {
    let identity = identity(choice);
    let peers = names.iter().map(|name| peer(choice, name)).collect();
    let scripts = names
        .iter()
        .map(|name| ((*name).to_owned(), script(choice)))
        .collect();
    let (config, file) = config(choice, peers);
    let mut world = file
        .put_in(World::new(config, identity, scripts))
        .with_schedule(schedule)
        .with_splits(Splits::Chosen)
        .with_untrusted_servers()
        .with_stamps();
    for name in names {
        if choice.one_in(32) {
            world = world.with_endless_start(name);
        }
        if choice.one_in(32) {
            world = world.with_spawn_failure(name);
        }
    }
    world
}
