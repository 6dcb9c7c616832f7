#!/usr/bin/env bash
# Installs the pinned reference servers into .venv and node_modules beside this script.
# Exit: 0 all there; 75 a package registry cannot be reached (try again later); 1 anything else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# What pip and npm print when the network, and not the package, is at fault.
unreachable='NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|connection broken by'
unreachable+='|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT'
unreachable+='|ENOTCACHED'

fail() {
    echo "interop: $1" >&2
    exit "${2:-1}"
}

need() {
    command -v "$1" >/dev/null || fail "$1 is not on the PATH ($2)"
}

# installing WHAT COMMAND...: runs the command quietly; on failure says why, and whether to try again.
installing() {
    local what=$1
    shift
    echo "interop: installing $what"
    if "$@" >"$log" 2>&1; then
        return
    fi
    if grep -qE "$unreachable" "$log"; then
        fail "no package registry can be reached, so $what could not be installed" 75
    fi
    tail -n 20 "$log" >&2
    fail "could not install $what"
}

# A copy of the pins is left as the stamp once all of them are installed, so an interrupted or outdated
# installation never passes for a complete one.
installed() {
    cmp -s "$1" "$2/.installed-$1"
}

python_servers() {
    installed requirements.txt .venv && [[ -x .venv/bin/python ]] && return
    local python=${PYTHON:-python3}
    need "$python" "3.11 or later, with venv; set PYTHON to name another"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "$python is older than 3.11"
    installing "a Python environment" "$python" -m venv --clear .venv
    installing "the Python servers" .venv/bin/python -m pip install --disable-pip-version-check --no-deps \
        --retries 1 --timeout 30 --requirement requirements.txt
    cp requirements.txt .venv/.installed-requirements.txt
}

node_servers() {
    installed package-lock.json node_modules && return
    need npm "Node.js 20 or later"
    installing "the Node servers" npm ci --no-audit --no-fund --ignore-scripts --prefer-offline \
        --fetch-retries=1 --fetch-retry-mintimeout=1000
    cp package-lock.json node_modules/.installed-package-lock.json
}

need git "mcp-server-git runs it"
need node "Node.js 20 or later"
python_servers
node_servers
echo "interop: every server is installed"
