use mcp_proto::PeerId;
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

const LINK: LinkId = LinkId {
    peer: PeerId::new(0),
    serial: 1,
};

/// Quarantined since that moment, or not.
fn quarantine(consent: &mut Consent, since: Option<u64>) {
    let pinned = pinned(consent);
    pinned.since = since.map(|since| ("t".into(), since)).into_iter().collect();
}

/// The client was drained.
fn rest(consent: &mut Consent) {
    consent.credited.clear();
    consent.lists.clear();
    consent.moment += 1;
}

/// A write with a call in it.
fn called(consent: &mut Consent, stamp: u64, tool: &str, bytes: usize) {
    consent.on_write(LINK, bytes);
    consent.on_called(stamp, LINK, tool);
}

fn verdict(consent: &mut Consent) -> Result<(), Rule> {
    consent.convict().map_err(|(rule, _)| rule)
}

/// A call is a breach if its tool was quarantined before what led to it, whether or not it was asked for before
/// that: when it waited for its turn, is repeated, or goes on by itself.
#[test]
fn calling_a_quarantined_tool_is_a_breach() {
    let mut consent = consent(true);
    consent.on_wanted(1);
    rest(&mut consent);
    quarantine(&mut consent, Some(1));
    called(&mut consent, 1, "other", 9);
    assert_eq!(verdict(&mut consent), Ok(()));
    rest(&mut consent);
    called(&mut consent, 1, "t", 9);
    assert_eq!(verdict(&mut consent), Err(Rule::Consent), "in a queue");
    rest(&mut consent);
    called(&mut consent, 1, "t", 9);
    assert_eq!(verdict(&mut consent), Err(Rule::Consent), "once more");
    rest(&mut consent);
    consent.on_wanted(2);
    called(&mut consent, 2, "t", 9);
    assert_eq!(verdict(&mut consent), Err(Rule::Consent), "asked for");
    rest(&mut consent);
    called(&mut consent, 2, "t", 9);
    quarantine(&mut consent, None);
    assert_eq!(verdict(&mut consent), Ok(()), "it is what it was");
    called(&mut consent, 2, "t", 9);
    quarantine(&mut consent, Some(1));
    assert_eq!(verdict(&mut consent), Ok(()), "it became so just now");
    consent.on_listed(0);
    called(&mut consent, 2, "t", 9);
    assert_eq!(verdict(&mut consent), Err(Rule::Consent), "one list");
    consent.on_listed(0);
    called(&mut consent, 2, "t", 9);
    assert_eq!(verdict(&mut consent), Ok(()), "it may have been free");
}

/// What may have waited for an outstanding write since before the quarantine is excused, and nothing else is.
#[test]
fn what_waits_to_be_written_is_on_its_way() {
    let judge = |since: u64, wanted: bool, credited: bool, bytes: usize| {
        let mut consent = consent(true);
        rest(&mut consent);
        consent.on_wanted(1);
        // At moment 1, and 20 bytes at moment 3.
        consent.on_write(LINK, bytes);
        rest(&mut consent);
        rest(&mut consent);
        consent.on_credit(LINK);
        consent.on_write(LINK, 20);
        rest(&mut consent);
        quarantine(&mut consent, Some(since));
        rest(&mut consent);
        if wanted {
            consent.on_wanted(1);
        }
        if credited {
            consent.on_credit(LINK);
        }
        called(&mut consent, 1, "t", WRITE_BYTES - 20);
        verdict(&mut consent)
    };
    assert_eq!(judge(4, false, true, 20), Ok(()));
    assert_eq!(judge(3, false, true, 20), Err(Rule::Consent), "earlier");
    assert_eq!(judge(4, false, false, 20), Err(Rule::Consent), "no write");
    assert_eq!(judge(4, true, true, 20), Err(Rule::Consent), "asked for");
    let judge = |since: u64, bytes: usize| {
        let mut consent = consent(true);
        rest(&mut consent);
        consent.on_write(LINK, WRITE_BYTES);
        rest(&mut consent);
        rest(&mut consent);
        consent.on_credit(LINK);
        consent.on_write(LINK, 20);
        rest(&mut consent);
        quarantine(&mut consent, Some(since));
        consent.on_credit(LINK);
        called(&mut consent, 1, "t", bytes);
        verdict(&mut consent)
    };
    assert_eq!(judge(3, 20), Err(Rule::Consent));
    assert_eq!(judge(3, WRITE_BYTES), Ok(()), "there was no room for it");
    assert_eq!(judge(1, WRITE_BYTES), Err(Rule::Consent), "earlier still");
}
