/* What is known of the blocks of a call before it is decided how it goes. */
#ifndef KASURI_MEASURE_H
#define KASURI_MEASURE_H

#include <mpi.h>

#include "blocks.h"

/* Are these blocks that the MPI library takes? Fills in the sizes of their types, into `sizes` where each rank has a type of its own, and
 * the bytes of the longest. What is wrong with them is for the library to say. */
int kasuri_measure(struct kasuri_blocks *blocks, int size, MPI_Count *sizes, MPI_Count *most);

/* The size of the type if it is MPI's own and the last one that this thread measured; else -1. */
MPI_Count kasuri_last_size(MPI_Datatype type);

/* MPICH refuses one buffer for both where it sees that all of what it sends is overwritten; others do not look. Equal blocks of nothing it
 * takes: some ranks may then give one buffer and others two, and all must go the same way. */
int kasuri_is_refused_alias(const struct kasuri_blocks *out, const struct kasuri_blocks *in, int is_in_place);

#endif
