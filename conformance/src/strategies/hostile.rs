//! Lines that are wrong, odd, or right at the wrong moment.

use crate::world::{Choice, pick};

/// Lines that no client should have to see, in answer to a request whose id is `$ID`: every kind of
/// [`Violation`](mcp_proto::Violation), and what is odd but allowed.
pub const HOSTILE_LINES: [&str; 78] = [
    r#"[{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}]"#,
    r#"[]"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{},"result":{"content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"id":$ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"name":"echo"},{"name":"echo"}],"content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"title":"x"}]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":null,"content":null}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{},"error":null}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"method":"x","result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","requestState":"s"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text"}]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":["x"]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"isError":"no"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":"string"}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":"x","message":1}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"temperature":21}}"#,
    r#"{"jsonrpc":"2.0","id":$ID}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":null}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":[]}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"value":NaN}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"cut"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"\ud83d"}],"resultType":"complete"}}"#,
    r#""just a string""#,
    r#"42"#,
    r#"null"#,
    r#"{"jsonrpc":"2.0","id":"srv","method":"sampling/createMessage","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":-1,"method":"roots/list"}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"streaming","content":[]}}"#,
    r#"{"id":$ID,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"1.0","id":$ID,"result":{}}"#,
    r#"{"jsonrpc":2.0,"id":$ID,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
    r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}"#,
    r#"{"jsonrpc":"2.0","id":true,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$ID.0,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID_STR,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":424242,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID0,"result":{"resultType":"complete","content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"header"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32021,"message":"capability","data":{"requiredCapabilities":{"sampling":{}}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"version","data":{"supported":["2026-07-28"],"requested":"x"}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"version","data":{"supported":["2024-11-05"]}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32022,"message":"version","data":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":0,"message":"invalid during session initialization"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":[]}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$PTOKEN,"progress":$N}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$N,"progress":$N,"total":0}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$PTOKEN,"progress":"half"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"unasked"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/unheard/of","params":7}"#,
    "\u{1b}[32m[info]\u{1b}[39m starting \u{1f680}",
    r#"{"level":"info","msg":"a log record in JSON"}"#,
    "   \t ",
    // Questions, and what looks like some.
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}},"requestState":"s"}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}}"#,
    r#"{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"tools/call","params":{}}},"requestState":7}}"#,
    // Requests of the server, of which older revisions have some.
    r#"{"jsonrpc":"2.0","id":"p$N","method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":$N,"method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":"r","method":"roots/list","params":{"_meta":{"progressToken":1}}}"#,
    r#"{"jsonrpc":"2.0","id":"","method":""}"#,
    // Notifications of every kind.
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:$N"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:$N","_meta":{"io.modelcontextprotocol/subscriptionId":$SUBID}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$SUBID}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$SUBID}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","logger":"x","data":{"a":[1,2]}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$SUBID},"notifications":{}}}"#,
];

/// A hostile line with its line feed (or without), its placeholders filled with small numbers.
pub fn hostile_text(choice: &mut dyn Choice) -> String {
    let line = *pick(choice, &HOSTILE_LINES);
    let number = choice.choose(9).to_string();
    let line = ["$ID_STR", "$ID", "$PTOKEN", "$SUBID", "$N"]
        .into_iter()
        .fold(line.to_owned(), |line, name| line.replace(name, &number));
    if choice.one_in(8) { line } else { line + "\n" }
}
