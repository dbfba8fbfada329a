#!/bin/sh
# Installs Debian packages when we may (root, or sudo without a password); otherwise names the command and fails.
set -eu

if ! command -v apt-get >/dev/null 2>&1; then
    echo "kasuri: please install what Debian calls: $*" >&2
    exit 1
elif [ "$(id -u)" = 0 ]; then
    asroot=
elif sudo -n true 2>/dev/null; then
    asroot=sudo
else
    echo "kasuri: please run: sudo apt-get install $*" >&2
    exit 1
fi
echo "kasuri: installing Debian packages: $*"
$asroot apt-get update -qq
$asroot env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
