//! A scriptable MCP server, sans-IO.
