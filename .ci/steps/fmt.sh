#!/usr/bin/env bash
# Formatting is rustfmt's, everywhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

cargo fmt --all --check
cargo fmt --manifest-path .ci/no-std-guard/Cargo.toml --check
cargo fmt --manifest-path conformance/fuzz/Cargo.toml --check
