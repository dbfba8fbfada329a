#!/bin/sh
# Makes sure of two MPI libraries, a Fortran compiler and FFTW.
set -eu

missing=
for command in mpicc.openmpi mpif90.openmpi mpirun.openmpi mpicc.mpich mpif90.mpich mpirun.mpich; do
    command -v "$command" >/dev/null 2>&1 || missing=yes
done
[ -e /usr/include/fftw3.h ] || missing=yes
[ -z "$missing" ] && exit 0

exec "$(dirname "$0")/debian-packages.sh" gcc libc6-dev gfortran libopenmpi-dev openmpi-bin libmpich-dev mpich libfftw3-dev
