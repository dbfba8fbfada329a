#!/bin/sh
# Makes sure of two MPI libraries, a Fortran compiler and FFTW. Debian packages that are missing are installed when we may (root, or
# sudo without a password); otherwise the command is named.
set -eu

missing=
for command in mpicc.openmpi mpif90.openmpi mpirun.openmpi mpicc.mpich mpif90.mpich mpirun.mpich; do
    command -v "$command" >/dev/null 2>&1 || missing=yes
done
[ -e /usr/include/fftw3.h ] || missing=yes
[ -z "$missing" ] && exit 0

packages="gcc libc6-dev gfortran libopenmpi-dev openmpi-bin libmpich-dev mpich libfftw3-dev"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "kasuri: please install Open MPI, MPICH, gfortran and FFTW (Debian: $packages)" >&2
    exit 1
elif [ "$(id -u)" = 0 ]; then
    asroot=
elif sudo -n true 2>/dev/null; then
    asroot=sudo
else
    echo "kasuri: please run: sudo apt-get install $packages" >&2
    exit 1
fi
echo "kasuri: installing Debian packages: $packages"
$asroot apt-get update -qq
# shellcheck disable=SC2086  # a list of words
$asroot env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
