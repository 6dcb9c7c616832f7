#!/usr/bin/env bash
# The first command of README.md, as a newcomer types it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

grep -qx 'cargo harness demo' README.md || fail "README.md does not give \`cargo harness demo\` as the first command"
needs demo "there is no binary mcp-harness yet" has_target mcp-driver-tokio bin mcp-harness
cargo harness demo
