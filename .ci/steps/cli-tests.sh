#!/usr/bin/env bash
# The tests of the binary, which the README's command does not build: it is behind a feature.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cargo test -p mcp-driver-tokio --features cli
