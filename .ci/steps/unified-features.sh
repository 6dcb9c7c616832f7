#!/usr/bin/env bash
# Another crate may switch on any feature of serde_json: digests and everything else stay the same (R6).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

# The core's own optional features are tested on the way.
features=schema,tracing,serde_json/preserve_order,serde_json/arbitrary_precision
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --locked --package mcp-proto --features "$features"
else
    cargo test --locked --package mcp-proto --features "$features" --lib --tests
fi
