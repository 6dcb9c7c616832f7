//! mcp-driver-blocking
