#!/bin/sh
# Makes sure of what `make` cannot install into the virtual environment: Python with venv, a C compiler, cargo.
# Debian packages that are missing are installed when we may (root, or sudo without a password); otherwise the command is named.
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
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "kasuri: please install:$missing" >&2
        exit 1
    elif [ "$(id -u)" = 0 ]; then
        asroot=
    elif sudo -n true 2>/dev/null; then
        asroot=sudo
    else
        echo "kasuri: please run: sudo apt-get install$missing" >&2
        exit 1
    fi
    echo "kasuri: installing Debian packages:$missing"
    $asroot apt-get update -qq
    # shellcheck disable=SC2086  # a list of words
    $asroot env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

if ! command -v cargo >/dev/null 2>&1; then
    echo "kasuri: cargo (Rust 1.88 or newer) is needed; see https://rustup.rs" >&2
    exit 1
fi
