#!/usr/bin/env bash
# Only mcp-proto/src/legacy knows the words of older revisions (law 3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

words='"initialize"|"notifications/initialized"|mcp-session-id|last-event-id'
code=$(code_of mcp-proto/src mcp-driver-tokio/src mcp-driver-blocking/src)
# No pipe into grep -q: it ends early, and the writer's SIGPIPE would count as a failure.
legacy=$(grep '^mcp-proto/src/legacy/' <<<"$code" || true)
if ! grep -qiE "$words" <<<"$legacy"; then
    fail "the words stand nowhere, not even in mcp-proto/src/legacy: this check checks nothing"
fi
if grep -v '^mcp-proto/src/legacy/' <<<"$code" | grep -iE "$words" >&2; then
    fail "move this into mcp-proto/src/legacy"
fi
echo "$(wc -l <<<"$code") lines of code, none of them outside mcp-proto/src/legacy with such a word"
