use mcp_proto::types::Entry as _;
use mcp_proto::wire::Json;
use mcp_proto::{Listed, OperationId, PeerConfig, PeerId};

use super::*;

fn tool(description: &str) -> Tool {
    let text = format!(r#"{{"name":"t","description":"{description}"}}"#);
    Tool::read(Json::parse(&text).unwrap().as_raw(), 0).unwrap()
}

fn consent(pins: bool) -> Consent {
    let mut peer = PeerConfig::stdio("a", "a", Vec::<String>::new());
    peer.pin_tools = pins;
    Consent::new(&Config::new(vec![peer]))
}

fn offers(description: &str) -> Ended {
    let listed = Listed {
        name: "t".into(),
        peer: PeerId::new(0),
        item: tool(description),
    };
    Ended {
        operation: OperationId::new(1),
        peer: None,
        tool: None,
        outcome: Outcome::Complete(Reply::Tools(vec![listed])),
    }
}

/// A tool that is another one by now is offered after it was accepted, and only where tools are pinned.
#[test]
fn offering_another_tool_is_a_breach() {
    let mut pinned = consent(true);
    pinned.on_ended(&offers("first")).unwrap();
    pinned.on_ended(&offers("first")).unwrap();
    let breach = pinned.on_ended(&offers("second")).unwrap_err();
    assert_eq!(breach.0, Rule::Consent);
    let accepted = ("a".to_owned(), "t".to_owned());
    pinned.trusted.insert(accepted, descriptor(&tool("second")));
    pinned.on_ended(&offers("second")).unwrap();
    assert!(pinned.on_ended(&offers("first")).is_err());
    let mut free = consent(false);
    free.on_ended(&offers("first")).unwrap();
    free.on_ended(&offers("second")).unwrap();
}

/// A call is a breach if its tool was quarantined when it was last asked for, and not if that came later.
#[test]
fn calling_a_quarantined_tool_is_a_breach() {
    let mut pinned = consent(true);
    pinned.on_wanted(1);
    pinned.moment = 1;
    pinned.since.insert(("a".into(), "t".into()), 1);
    pinned.on_wanted(2);
    assert!(pinned.on_called(1, 0, "t").is_ok(), "it was on its way");
    assert!(pinned.on_called(2, 0, "other").is_ok());
    assert_eq!(pinned.on_called(2, 0, "t").unwrap_err().0, Rule::Consent);
    pinned.on_wanted(1);
    assert!(
        pinned.on_called(1, 0, "t").is_err(),
        "it was answered since"
    );
}
