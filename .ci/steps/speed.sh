#!/usr/bin/env bash
# The speed bench runs. Its figures are shown, not judged: this machine is shared.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

needs speed "there is no speed bench yet" has_target conformance bin speed
cargo run --locked --release -p conformance --features speed --bin speed -- --quick
