#!/usr/bin/env bash
# Nothing that ran before has changed a file of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source .ci/lib.sh

git rev-parse --git-dir >/dev/null 2>&1 || skip "this is no git clone"
changes=$(git status --porcelain)
[[ -z $changes ]] || fail "changed or new files:"$'\n'"$changes"
