#!/usr/bin/env bash
# The core links without std, and this proof would notice std (law 2).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

# The same versions as in the workspace; cargo leaves out what the guard does not need.
cp Cargo.lock .ci/no-std-guard/Cargo.lock
guard=(cargo build --manifest-path .ci/no-std-guard/Cargo.toml --target-dir target/no-std-guard)

"${guard[@]}"
"${guard[@]}" --features tracing

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if "${guard[@]}" --features std >"$log" 2>&1; then
    fail "the guard builds with std switched on, so it proves nothing"
fi
if ! grep -q 'error\[E0152\].*`panic_impl`' "$log"; then
    cat "$log" >&2
    fail "with std the guard fails, but not because std brings a second panic handler"
fi
echo "with std the guard fails as it must: $(grep -m 1 E0152 "$log")"
