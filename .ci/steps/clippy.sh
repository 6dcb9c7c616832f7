#!/usr/bin/env bash
# No warning from the compiler or clippy, in any target, with every feature and with none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
cargo clippy --locked --package mcp-proto --no-default-features -- -D warnings
