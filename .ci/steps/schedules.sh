#!/usr/bin/env bash
# A hundred thousand generated schedules hold: whatever servers, applications and time do (see
# conformance/src/schedules). A failing one prints its seed, its transcript and how to run it again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

cargo run --locked --quiet --profile checked -p conformance --bin schedules -- --count 100000
