//! mcp-driver-tokio
