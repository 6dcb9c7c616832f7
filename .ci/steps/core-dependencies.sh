#!/usr/bin/env bash
# The core depends on what .ci/core-dependencies.allow lists, and on nothing else (law 2).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

list=.ci/core-dependencies.allow
allowed=$(sed 's/#.*//; s/ *$//; /^$/d' "$list" | sort -u)
found=$(
    for features in --no-default-features --features=default; do
        cargo tree --locked --package mcp-proto --edges normal,build --target all --prefix none "$features"
    done | cut -d ' ' -f 1 | sort -u
)

unlisted=$(comm -13 <(echo "$allowed") <(echo "$found"))
unused=$(comm -23 <(echo "$allowed") <(echo "$found"))
for crate in $unlisted; do
    echo "mcp-proto depends on $crate, which $list does not allow:" >&2
    cargo tree --locked --package mcp-proto --edges normal,build --target all --invert "$crate" >&2
done
[[ -z $unlisted ]] || fail "the core has dependencies that nobody allowed: ${unlisted//$'\n'/ }"
[[ -z $unused ]] || fail "take these out of $list, nothing needs them: ${unused//$'\n'/ }"
echo "$found" | paste -s -d ' '
