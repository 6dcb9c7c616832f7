#!/usr/bin/env bash
# Rust 1.88 is what every crate declares, and what every dependency of a published crate is content with, whatever the features.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

cargo metadata --locked --all-features --format-version 1 | python3 .ci/msrv.py 1.88
