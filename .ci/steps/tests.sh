#!/usr/bin/env bash
# The tests, exactly as README.md says that they are run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

command='cargo test --workspace'
grep -qx "$command" README.md || fail "README.md does not give \`$command\` as the command that runs the tests"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
$command 2>&1 | tee "$log"

totals=$(awk '
    /^test result: ok\./ { suites++; passed += $4; ignored += $8 }
    END { printf "test result: ok. %d passed; 0 failed; %d ignored; 0 measured; 0 filtered out\n", passed, ignored }
' "$log")
[[ $totals != *" 0 passed"* ]] || fail "no test ran"
[[ -z ${CI_TMP:-} ]] || echo "$totals" >"$CI_TMP/tests"
