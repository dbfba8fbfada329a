/* The MPI library's own calls that wait for requests, which let operations in the background go on meanwhile. */
#ifndef KASURI_WAITS_H
#define KASURI_WAITS_H

#include <mpi.h>

#define KASURI_WAITS(name) extern __typeof__(PMPI_##name) kasuri_wait_##name

KASURI_WAITS(Wait);
KASURI_WAITS(Waitany);
KASURI_WAITS(Waitall);
KASURI_WAITS(Waitsome);

#endif
