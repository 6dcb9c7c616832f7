#!/usr/bin/env bash
# Servers that other people wrote, at pinned versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

needs interop "there is no interop runner yet" has_target conformance bin interop
needs demo "the interop runner drives mcp-harness, which is not there yet" has_target mcp-driver-tokio bin mcp-harness
install_missing python3:python3-venv node:nodejs npm:npm
status=0
bash conformance/interop/install.sh || status=$?
((status == 0 || status == 75)) || fail "the reference servers could not be installed"
needs registries "npm or PyPI cannot be reached" test "$status" -eq 0
cargo run --locked --release -p conformance --features interop --bin interop
