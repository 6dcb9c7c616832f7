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

/// A call is a breach if its tool was quarantined when it was last asked for and still is, and not if that came
/// later, or is over.
#[test]
fn calling_a_quarantined_tool_is_a_breach() {
    let mut consent = consent(true);
    let mut judge = |stamp: u64, tool: &str, wanted: bool, freed: bool| {
        if wanted {
            consent.on_wanted(stamp);
        }
        consent.moment = 1;
        pinned(&mut consent).since.insert("t".into(), 1);
        consent.on_called(stamp, 0, tool);
        if freed {
            pinned(&mut consent).since.clear();
        }
        consent.convict().map_err(|(rule, _)| rule)
    };
    assert_eq!(judge(1, "t", true, false), Ok(()), "it was on its way");
    assert_eq!(judge(2, "other", true, false), Ok(()));
    assert_eq!(judge(2, "t", false, false), Err(Rule::Consent));
    assert_eq!(judge(1, "t", true, false), Err(Rule::Consent), "answered");
    assert_eq!(judge(1, "t", false, true), Ok(()), "it is what it was");
}
