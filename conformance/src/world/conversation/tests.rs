//! The observer is tested itself: every rule can fail.

use super::*;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"traceparent":"00-b9c785d65b1f009a88fdef43b9b1b2df-4c11ed7b1eb9d0fd-01"}"#;
const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}"#;

/// `>` lines are written by the client, `<` lines by the server; gives the first broken rule.
fn judge(may_initialize: bool, exchange: &[&str]) -> Result<Conversation, Rule> {
    let mut peer = PeerRecord::new(may_initialize, 1 << 16, None);
    let mut conversation = Conversation::default();
    for line in exchange {
        let (side, text) = line.split_at(1);
        let text = text.replace("META", META) + "\n";
        conversation.settle();
        match side {
            ">" => {
                let judged = conversation.on_write(text.as_bytes(), &mut peer);
                judged.map_err(|(rule, _)| rule)?;
                conversation.on_written();
            }
            _ => conversation.on_data(text.as_bytes(), &mut peer),
        }
    }
    Ok(conversation)
}

const PROBE: &str = r#">{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}"#;
const INITIALIZE: &str = r#">{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{}}}"#;
const READY: &str = r#">{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#">{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
const CANCEL: &str =
    r#">{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;

#[test]
fn good_conversations_of_both_eras_pass() {
    let discovered = format!("<{DISCOVERED}");
    let call = r#">{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x",META}}"#;
    let modern = judge(false, &[PROBE, &discovered, call, CANCEL]).unwrap();
    assert!(modern.awaits(3));
    let initialized = format!("<{INITIALIZED}");
    let ask = r#"<{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
    let answer = r#">{"jsonrpc":"2.0","id":"a","result":{}}"#;
    let legacy = [PROBE, INITIALIZE, &initialized, READY, LIST, ask, answer];
    assert!(judge(true, &legacy).is_ok());
}

/// Every rule can fail: the observer of the property tests is itself tested.
#[test]
fn every_broken_rule_is_seen() {
    let discovered = format!("<{DISCOVERED}");
    let initialized = format!("<{INITIALIZED}");
    let refused = r#"<{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"","data":{"supported":["2026-07-28"]}}}"#;
    let bare_call = r#">{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{}}"#;
    let stamped_list = r#">{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{META}}"#;
    let answer = r#">{"jsonrpc":"2.0","id":"a","result":{}}"#;
    let answered = r#"<{"jsonrpc":"2.0","id":3,"result":{}}"#;
    for (rule, may_initialize, exchange) in [
        (Rule::Handshake, false, vec![PROBE, INITIALIZE]),
        (Rule::Handshake, true, vec![PROBE, &discovered, INITIALIZE]),
        (Rule::Handshake, true, vec![PROBE, refused, INITIALIZE]),
        (Rule::Initialized, true, vec![PROBE, INITIALIZE, READY]),
        (
            Rule::Initialized,
            true,
            vec![INITIALIZE, &initialized, LIST],
        ),
        (
            Rule::Initialized,
            true,
            vec![INITIALIZE, &initialized, READY, READY],
        ),
        (Rule::BeforeEra, true, vec![PROBE, LIST]),
        (
            Rule::BeforeEra,
            true,
            vec![INITIALIZE, &initialized, READY, PROBE],
        ),
        (Rule::ModernMeta, false, vec![PROBE, &discovered, bare_call]),
        (
            Rule::LegacyMeta,
            true,
            vec![INITIALIZE, &initialized, READY, stamped_list],
        ),
        (Rule::RequestId, false, vec![PROBE, PROBE]),
        (Rule::Cancelled, false, vec![PROBE, &discovered, CANCEL]),
        (
            Rule::Cancelled,
            true,
            vec![INITIALIZE, &initialized, READY, LIST, answered, CANCEL],
        ),
        (
            Rule::Cancelled,
            true,
            vec![INITIALIZE, &initialized, READY, LIST, CANCEL, CANCEL],
        ),
        (Rule::Response, false, vec![PROBE, &discovered, answer]),
        (
            Rule::Response,
            true,
            vec![INITIALIZE, &initialized, READY, answer],
        ),
        (Rule::Framing, false, vec![">[1]"]),
        (
            Rule::Framing,
            false,
            vec![r#">{"jsonrpc":"2.0","id":1,"method":"x","extra":1}"#],
        ),
    ] {
        assert_eq!(
            judge(may_initialize, &exchange).err(),
            Some(rule),
            "{exchange:?}"
        );
    }
}
