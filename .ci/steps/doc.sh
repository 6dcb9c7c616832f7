#!/usr/bin/env bash
# The documentation builds without warnings; in the core also that of private items.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

export RUSTDOCFLAGS="-D warnings"
cargo doc --locked --workspace --no-deps
cargo doc --locked --package mcp-proto --no-deps --document-private-items
cargo doc --locked --package mcp-proto --no-deps --all-features
