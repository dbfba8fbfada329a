#!/bin/sh
# Builds the SimGrid side of the flow benchmark into the given file; Debian's package is installed if it is missing.
set -eu
target=$1
if [ ! -e /usr/include/simgrid/s4u.hpp ] || ! command -v g++ >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ]; then
        asroot=
    elif sudo -n true 2>/dev/null; then
        asroot=sudo
    else
        echo "kasuri: please run: sudo apt-get install libsimgrid-dev g++" >&2
        exit 1
    fi
    echo "kasuri: installing Debian packages: libsimgrid-dev g++"
    $asroot apt-get update -qq
    $asroot env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libsimgrid-dev g++ >/dev/null
fi
mkdir -p "$(dirname "$target")"
g++ -O2 -std=c++17 benches/simgrid/batch.cpp -lsimgrid -o "$target"
