#!/usr/bin/env bash
# No async runtime in the tree of the blocking driver.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

runtimes='tokio|tokio-.*|async-std|async-global-executor|async-executor|async-io|async-task|smol|mio|futures-executor|monoio|glommio|compio|embassy-executor|hyper|reqwest'
tree=$(cargo tree --locked --package mcp-driver-blocking --edges normal,build --target all --all-features --prefix none |
    cut -d ' ' -f 1 | sort -u)
grep -qx mcp-proto <<<"$tree" || fail "the tree does not even hold mcp-proto: this check checks nothing"
if grep -xE "$runtimes" <<<"$tree" >&2; then
    fail "the blocking driver pulls in an async runtime"
fi
paste -s -d ' ' <<<"$tree"
