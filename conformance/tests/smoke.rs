//! First light: one peer of each era answers a call.

use conformance::fake_server::Script;
use conformance::world::World;
use mcp_proto::wire::Json;
use mcp_proto::{Config, Identity, Operation, Outcome, PeerConfig, Reply, Request};

#[test]
fn modern_and_legacy_answer() {
    let mut old = PeerConfig::stdio("old", "old", Vec::<String>::new());
    old.allow_legacy = true;
    let new = PeerConfig::stdio("new", "new", Vec::<String>::new());
    let config = Config::new(vec![new, old]);
    let legacy = mcp_fake_server::LegacyVersion::LATEST;
    let servers = vec![
        ("new".into(), Script::modern()),
        ("old".into(), Script::legacy(legacy)),
    ];
    let mut world = World::new(config, Identity::default(), servers);
    world.connect();
    let settled = world.run(Operation::new(Request::Settle));
    println!("{}", world.transcript());
    println!("{}", world.client.report());
    assert!(settled.is_ok());
    for peer in ["new", "old"] {
        let call = Operation::call("add", Some(Json::parse(r#"{"a":2,"b":3}"#).unwrap())).on(peer);
        let ended = world.run(call).unwrap();
        let Outcome::Complete(Reply::Call(result)) = ended.outcome else {
            panic!("{}", world.transcript());
        };
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"sum":5}"#);
    }
    world.close();
    println!("{}", world.transcript());
    assert!(world.client.is_closed());
}
