#!/usr/bin/env bash
# The core depends on what .ci/core-dependencies.allow lists, and on nothing else (law 2). What one of its features
# adds stands in .ci/core-dependencies.FEATURE.allow.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

# listed FILE...: the crates that these lists allow.
listed() {
    sed 's/#.*//; s/ *$//; /^$/d' "$@" | sort -u
}

# tree OPTION...: the crates that the core is made of.
tree() {
    cargo tree --locked --package mcp-proto --edges normal,build --target all --prefix none "$@" | cut -d ' ' -f 1
}

# check LISTS ALLOWED FOUND OPTION...
check() {
    local lists=$1 allowed=$2 found=$3 unlisted unused
    shift 3
    unlisted=$(comm -13 <(echo "$allowed") <(echo "$found"))
    unused=$(comm -23 <(echo "$allowed") <(echo "$found"))
    for crate in $unlisted; do
        echo "mcp-proto $* depends on $crate, which $lists does not allow:" >&2
        cargo tree --locked --package mcp-proto --edges normal,build --target all "$@" --invert "$crate" >&2
    done
    [[ -z $unlisted ]] || fail "the core has dependencies that nobody allowed: ${unlisted//$'\n'/ }"
    [[ -z $unused ]] || fail "take these out of $lists, nothing needs them: ${unused//$'\n'/ }"
}

list=.ci/core-dependencies.allow
found=$(for features in --no-default-features --features=default; do tree "$features"; done | sort -u)
check "$list" "$(listed "$list")" "$found"
echo "$found" | paste -s -d ' '

for extra in .ci/core-dependencies.*.allow; do
    feature=${extra#.ci/core-dependencies.}
    feature=${feature%.allow}
    found=$(tree "--features=$feature" | sort -u)
    check "$extra" "$(listed "$list" "$extra")" "$found" "--features=$feature"
    echo "$feature: $(listed "$extra" | paste -s -d ' ')"
done
