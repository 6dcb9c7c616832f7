use mcp_proto::types::Entry as _;
use mcp_proto::wire::Json;

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

fn pinned(consent: &mut Consent) -> &mut Pinned {
    consent.peers[0].as_mut().unwrap()
}

/// A tool that is new or another one by now is in force before it was accepted.
#[test]
fn another_tool_in_force_is_a_breach() {
    assert!(consent(false).peers[0].is_none());
    let mut consent = consent(true);
    let pinned = pinned(&mut consent);
    pinned.judge(&[tool("first")]).unwrap();
    pinned.judge(&[]).unwrap();
    pinned.judge(&[tool("first")]).unwrap();
    let breach = pinned.judge(&[tool("second")]).unwrap_err();
    assert_eq!(breach.0, Rule::Consent);
    pinned.accept(&tool("second"));
    pinned.judge(&[tool("second")]).unwrap();
    assert!(pinned.judge(&[tool("first")]).is_err());
    let mut fresh = Pinned::default();
    fresh.judge(&[]).unwrap();
    assert!(fresh.judge(&[tool("new")]).is_err());
}

/// A call is a breach if its tool was quarantined when it was last asked for, and not if that came later.
#[test]
fn calling_a_quarantined_tool_is_a_breach() {
    let mut consent = consent(true);
    consent.on_wanted(1);
    consent.moment = 1;
    pinned(&mut consent).since.insert("t".into(), 1);
    consent.on_wanted(2);
    assert!(consent.on_called(1, 0, "t").is_ok(), "it was on its way");
    assert!(consent.on_called(2, 0, "other").is_ok());
    assert_eq!(consent.on_called(2, 0, "t").unwrap_err().0, Rule::Consent);
    consent.on_wanted(1);
    assert!(
        consent.on_called(1, 0, "t").is_err(),
        "it was answered since"
    );
}
