#!/usr/bin/env bash
# Every snapshot is accepted, and belongs to a test that still exists.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

pending=$(find . -path ./target -prune -o \( -name '*.snap.new' -o -name '.*.pending-snap' \) -print)
[[ -z $pending ]] || fail "snapshots wait for a decision (cargo insta review): $pending"

count=0
while IFS= read -r snapshot; do
    count=$((count + 1))
    source=$(sed -n 's/^source: *//p; /^---$/{x;s/^/-/;/^--$/q;x}' "$snapshot" | head -n 1)
    [[ -f $source ]] || fail "$snapshot belongs to $source, which is not there"
    # snapshots/<module>__<name>.snap: an explicit name, or that of the test function.
    name=${snapshot##*__}
    name=${name%.snap}
    stem=${name%-[0-9]*}
    grep -q -e "$stem" -e 'glob!' "$source" || fail "$snapshot: nothing in $source is called $stem"
done < <(git ls-files '*.snap')
echo "$count snapshots"
