//! Peers and their settings, from `mcpServers` JSON (R110).
