/* Messages that a trace writes for collective calls of the MPI library's own. */
#ifndef KASURI_COLLECTIVES_H
#define KASURI_COLLECTIVES_H

#include <mpi.h>

/* Is it a communicator that has this rank? If not, it is for the MPI library to complain of. */
int kasuri_is_rank(int root, MPI_Comm comm);

/* Bytes of so many elements; 0 where the type is none. */
MPI_Count kasuri_bytes_in(MPI_Count count, MPI_Datatype type);

/* The messages of a binomial tree: from the root to all, or from all to the root. */
void kasuri_trace_tree(MPI_Comm comm, int root, MPI_Count bytes, int is_down);

#endif
