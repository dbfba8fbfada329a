/* The MPI library's own of the calls that this library takes over.
 *
 * A tool that stands before this library has the program's calls first, and passes them on by their names with a P. So these names are
 * taken over as well; here they mean the MPI library's own again. */
#ifndef KASURI_OWN_H
#define KASURI_OWN_H

#include <mpi.h>

#define KASURI_OWN(name)                                                                                                                   \
    extern __typeof__(PMPI_##name) *kasuri_own_##name;                                                                                     \
    extern __typeof__(PMPI_##name) kasuri_##name __attribute__((visibility("hidden")))

KASURI_OWN(Allgather);
KASURI_OWN(Allreduce);
KASURI_OWN(Alltoall);
KASURI_OWN(Alltoallv);
KASURI_OWN(Alltoallw);
KASURI_OWN(Finalize);
KASURI_OWN(Reduce_scatter);
KASURI_OWN(Reduce_scatter_block);
#if MPI_VERSION >= 4
KASURI_OWN(Allgather_c);
KASURI_OWN(Allreduce_c);
KASURI_OWN(Alltoall_c);
KASURI_OWN(Alltoallv_c);
KASURI_OWN(Alltoallw_c);
KASURI_OWN(Reduce_scatter_c);
KASURI_OWN(Reduce_scatter_block_c);
#endif

/* After the definition of a call of this library: its name for own.c, by which no tool is called. */
#define KASURI_TAKES(name) extern __typeof__(PMPI_##name) kasuri_##name __attribute__((alias("MPI_" #name), visibility("hidden")))

#ifndef KASURI_PASSES
#define PMPI_Allgather (*kasuri_own_Allgather)
#define PMPI_Allreduce (*kasuri_own_Allreduce)
#define PMPI_Alltoall (*kasuri_own_Alltoall)
#define PMPI_Alltoallv (*kasuri_own_Alltoallv)
#define PMPI_Alltoallw (*kasuri_own_Alltoallw)
#define PMPI_Finalize (*kasuri_own_Finalize)
#define PMPI_Reduce_scatter (*kasuri_own_Reduce_scatter)
#define PMPI_Reduce_scatter_block (*kasuri_own_Reduce_scatter_block)
#define PMPI_Allgather_c (*kasuri_own_Allgather_c)
#define PMPI_Allreduce_c (*kasuri_own_Allreduce_c)
#define PMPI_Alltoall_c (*kasuri_own_Alltoall_c)
#define PMPI_Alltoallv_c (*kasuri_own_Alltoallv_c)
#define PMPI_Alltoallw_c (*kasuri_own_Alltoallw_c)
#define PMPI_Reduce_scatter_c (*kasuri_own_Reduce_scatter_c)
#define PMPI_Reduce_scatter_block_c (*kasuri_own_Reduce_scatter_block_c)
#endif

#endif
