#!/usr/bin/env bash
# Drivers stay thin (law 4): at most 610 lines of code each that move bytes, start processes and keep the
# clock, without tests and binaries. What grows beyond that is policy and belongs into the core.
#
# Counted apart, with a limit of its own, is the public face: lib.rs, client.rs, operation.rs and streaming.rs
# hold the handles, whose methods hand one operation each to the core and nothing else, and call the handlers
# that the application gave: it grows with what the core offers, and not with what a driver decides. So is
# ledger.rs, which moves bytes to and from one file and knows of nothing else. `elsewhere.rs` of the
# blocking driver counts with neither: it says in the place of every function that the platform is not
# supported, and performs nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

limit=610
face_limit=580
ledger_limit=70
fat=
for driver in mcp-driver-tokio mcp-driver-blocking; do
    code=$(code_of "$driver/src" | sed "\\#^$driver/src/\(bin/\|elsewhere\.rs:\)#d")
    all=$(sed '/^$/d' <<<"$code" | wc -l)
    needs drivers "$driver has no code yet" test "$all" -gt 0
    cut -d : -f 1 <<<"$code" | sort | uniq -c
    face=$(grep -cE "^$driver/src/(lib|client|operation|streaming)\.rs:" <<<"$code" || true)
    ledger=$(grep -cE "^$driver/src/ledger\.rs:" <<<"$code" || true)
    lines=$((all - face - ledger))
    echo "$driver: $lines of at most $limit lines, a face of $face of at most $face_limit, and a ledger of $ledger of at most $ledger_limit"
    ((lines <= limit && face <= face_limit && ledger <= ledger_limit)) || fat+=" $driver"
done
[[ -z $fat ]] || fail "too much code:$fat; what of it is policy belongs into the core"
