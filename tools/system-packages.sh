#!/bin/sh
# Makes sure of what `make` cannot install into the virtual environment: Python with venv, a C compiler, cargo.
set -eu

python=${1:-python3}
missing=

if ! command -v "$python" >/dev/null 2>&1; then
    missing="$missing python3 python3-venv"
else
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "kasuri: $python is $("$python" -V 2>&1); 3.11 or newer is needed: make PYTHON=/path/to/python3.11" >&2
        exit 1
    fi
    "$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
fi
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"

if [ -n "$missing" ]; then
    # shellcheck disable=SC2086  # a list of words
    "$(dirname "$0")/debian-packages.sh" $missing
fi

if ! command -v cargo >/dev/null 2>&1; then
    echo "kasuri: cargo (Rust 1.89 or newer) is needed; see https://rustup.rs" >&2
    exit 1
fi
