//! What goes over the wire: the same bytes for every contender.

use std::fmt::Write as _;

/// The name of the tool that is called.
pub(crate) const TOOL: &str = "tool_0007";
/// The arguments of the call.
pub(crate) const ARGUMENTS: &str = r#"{"path":"src/lib.rs","limit":20,"recursive":false}"#;
/// How long the small response line is, without its line end.
const SMALL_BYTES: usize = 154;

/// A server's answer to `server/discover`, without the envelope.
pub(crate) const DISCOVERED: &str = concat!(
    r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"speed","version":"1.0.0"},"resultType":"complete","#,
    r#""ttlMs":3600000,"cacheScope":"private"}"#
);
/// A server's answer to the handshake of the older revisions, without the envelope.
pub(crate) const INITIALIZED: &str = concat!(
    r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"#,
    r#""serverInfo":{"name":"speed","version":"1.0.0"}}"#
);

/// The result of the small call: its whole response has 154 bytes where the id has six digits.
pub(crate) fn small_result() -> String {
    let result = |text: &str| {
        format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}"#)
    };
    let envelope = response("100000", &result("")).len() - 1;
    result(&filler(SMALL_BYTES - envelope))
}

/// The line of the call as this client writes it.
pub(crate) fn request() -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":100000,"method":"tools/call","params":{{"name":"{}","arguments":{},"#,
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
            r#""io.modelcontextprotocol/clientInfo":{{"name":"mcp-harness","version":"0.1.0"}},"#,
            r#""io.modelcontextprotocol/clientCapabilities":{{}},"#,
            r#""traceparent":"00-b9c785d65b1f009a88fdef43b9b1b2df-72bf61596651a0ab-01","#,
            r#""baggage":"mcp.method=tools/call,mcp.call_index=100000"}}}}}}"#,
            "\n"
        ),
        TOOL, ARGUMENTS
    )
}

/// One response line with its line end.
pub(crate) fn response(id: &str, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n")
}

/// The result of `tools/list` with so many tools in about so many bytes.
pub(crate) fn tools_result(count: usize, bytes: usize) -> String {
    let share = bytes / count;
    let tools: Vec<String> = (0..count)
        .map(|index| {
            let bare = tool(index, "").len() + 1;
            tool(index, &filler(share.saturating_sub(bare)))
        })
        .collect();
    let tools = tools.join(",");
    format!(
        r#"{{"resultType":"complete","ttlMs":3600000,"cacheScope":"private","tools":[{tools}]}}"#
    )
}

fn tool(index: usize, words: &str) -> String {
    format!(
        concat!(
            r#"{{"name":"tool_{:04}","title":"Tool {}","description":"{}","#,
            r#""inputSchema":{{"type":"object","properties":{{"#,
            r#""path":{{"type":"string","description":"Where to look."}},"#,
            r#""limit":{{"type":"integer","minimum":1,"maximum":1000}},"#,
            r#""recursive":{{"type":"boolean","default":false}}}},"#,
            r#""required":["path"],"additionalProperties":false}},"#,
            r#""annotations":{{"readOnlyHint":true}}}}"#
        ),
        index, index, words
    )
}

/// A call's result with about so many bytes of structured content: rows of a table.
pub(crate) fn structured_result(bytes: usize) -> String {
    let mut rows = String::new();
    for id in 0.. {
        let (name, score) = (filler(24), f64::from(id) / 8.0);
        // Writing to a string cannot fail.
        let _ = write!(
            rows,
            r#"{{"id":{id},"name":"{name}","score":{score:.3},"tags":["alpha","beta"],"active":true}}"#
        );
        if rows.len() >= bytes {
            break;
        }
        rows.push(',');
    }
    format!(
        r#"{{"resultType":"complete","content":[{{"type":"text","text":"ok"}}],"structuredContent":{{"rows":[{rows}]}}}}"#
    )
}

/// Plain words of so many bytes.
fn filler(bytes: usize) -> String {
    "reads what stands in a file and says where it was "
        .chars()
        .cycle()
        .take(bytes)
        .collect()
}
