# Shared by the gate and its steps; sourced, not run.
# shellcheck shell=bash

# The same everywhere: no colours to parse around, no snapshot accepted, no incremental artefacts.
export CARGO_INCREMENTAL=0 CARGO_NET_RETRY=5 CARGO_TERM_COLOR=never CARGO_TERM_PROGRESS_WHEN=never
export TERM=dumb INSTA_UPDATE=no PROPTEST_DISABLE_FAILURE_PERSISTENCE=1
[[ ! -d ${HOME:-/root}/.cargo/bin ]] || export PATH="${HOME:-/root}/.cargo/bin:$PATH"

fail() {
    echo "ci: $*" >&2
    exit 1
}

# need COMMAND ADVICE
need() {
    command -v "$1" >/dev/null || fail "$1 is not on the PATH; $2"
}

# skip REASON: ends the step. The summary shows the reason.
skip() {
    echo "ci: skipped: $*"
    [[ -z ${CI_TMP:-} ]] || echo "$*" >"$CI_TMP/note"
    exit 0
}

# needs NAME REASON COMMAND...: goes on when the command succeeds. Else the step fails if NAME is listed in
# REQUIRED, and is skipped if it is not.
needs() {
    local name=$1 reason=$2
    shift 2
    if "$@"; then
        return
    fi
    if [[ " ${REQUIRED:-} " == *" $name "* ]]; then
        fail "$reason, but REQUIRED lists $name"
    fi
    skip "$reason"
}

# has_target PACKAGE KIND NAME: whether the package has that binary (bin) or benchmark (bench).
has_target() {
    cargo metadata --locked --no-deps --format-version 1 | python3 -c '
import json, sys
package, kind, name = sys.argv[1:]
sys.exit(not any(
    kind in target["kind"] and target["name"] == name
    for found in json.load(sys.stdin)["packages"] if found["name"] == package
    for target in found["targets"]
))' "$@"
}

# install_missing COMMAND:PACKAGE...: the Debian packages of the commands that are not there.
install_missing() {
    local pair missing=()
    for pair in "$@"; do
        case $pair in
        *:python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=("${pair#*:}") ;;
        *) command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}") ;;
        esac
    done
    ((${#missing[@]} > 0)) || return 0
    echo "ci: installing ${missing[*]}"
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        fail "not there: ${missing[*]}; install them with this system's package manager"
    fi
    apt-get update --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends "${missing[@]}"
}

# code_of DIRECTORY...: every line of code under src that is no comment and no test, as FILE:LINE:TEXT.
code_of() {
    find "$@" -name '*.rs' -print0 | sort -z | xargs -0 awk -f .ci/code.awk
}
