#!/bin/sh
# Builds the SimGrid side of the flow benchmark into the given file; Debian's package is installed if it is missing.
set -eu
target=$1
if [ ! -e /usr/include/simgrid/s4u.hpp ] || ! command -v g++ >/dev/null 2>&1; then
    "$(dirname "$0")/debian-packages.sh" libsimgrid-dev g++
fi
mkdir -p "$(dirname "$target")"
g++ -O2 -std=c++17 benches/simgrid/batch.cpp -lsimgrid -o "$target"
