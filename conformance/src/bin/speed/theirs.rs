//! What rmcp does with a line that arrived.

use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;

/// Decodes a line as rmcp's own byte-stream transport does: into its typed message.
pub(crate) fn decode(line: &[u8]) -> RxJsonRpcMessage<RoleClient> {
    assert!(std::str::from_utf8(line).is_ok());
    serde_json::from_slice(line).expect("the payload is a message")
}
