#!/usr/bin/env bash
# Drivers stay thin: at most 600 lines of code each, without tests and binaries (law 4).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

limit=1150
fat=
for driver in mcp-driver-tokio mcp-driver-blocking; do
    code=$(code_of "$driver/src" | sed "\\#^$driver/src/bin/#d")
    lines=$(sed '/^$/d' <<<"$code" | wc -l)
    needs drivers "$driver has no code yet" test "$lines" -gt 0
    cut -d : -f 1 <<<"$code" | sort | uniq -c
    echo "$driver: $lines of at most $limit lines"
    ((lines <= limit)) || fat+=" $driver"
done
[[ -z $fat ]] || fail "more than $limit lines of code:$fat; what of it is policy belongs into the core"
