/* The MPI library's own of the calls that this library takes over.
 *
 * A tool that stands before this library has the program's calls first, and passes them on by their names with a P. So these names are
 * taken over as well; here they mean the MPI library's own again. */
#ifndef KASURI_OWN_H
#define KASURI_OWN_H

#include <mpi.h>

/* Persistent collectives are of MPI 4; Open MPI 5 has them before. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define KASURI_HAS_PERSISTENT 1
#else
#define KASURI_HAS_PERSISTENT 0
#endif

#define KASURI_OWN(name)                                                                                                                   \
    extern __typeof__(PMPI_##name) *kasuri_own_##name;                                                                                     \
    extern __typeof__(PMPI_##name) kasuri_##name __attribute__((visibility("hidden")))

KASURI_OWN(Allgather);
KASURI_OWN(Allreduce);
KASURI_OWN(Alltoall);
KASURI_OWN(Alltoallv);
KASURI_OWN(Alltoallw);
KASURI_OWN(Cart_create);
KASURI_OWN(Cart_sub);
KASURI_OWN(Comm_create);
KASURI_OWN(Comm_create_group);
KASURI_OWN(Comm_dup);
KASURI_OWN(Comm_dup_with_info);
KASURI_OWN(Comm_split);
KASURI_OWN(Comm_split_type);
KASURI_OWN(Finalize);
KASURI_OWN(Iallgather);
KASURI_OWN(Iallreduce);
KASURI_OWN(Ialltoall);
KASURI_OWN(Ialltoallv);
KASURI_OWN(Ialltoallw);
KASURI_OWN(Init);
KASURI_OWN(Init_thread);
KASURI_OWN(Ireduce_scatter);
KASURI_OWN(Ireduce_scatter_block);
KASURI_OWN(Reduce_scatter);
KASURI_OWN(Reduce_scatter_block);
KASURI_OWN(Request_free);
KASURI_OWN(Start);
KASURI_OWN(Startall);
KASURI_OWN(Wait);
KASURI_OWN(Waitall);
KASURI_OWN(Waitany);
KASURI_OWN(Waitsome);
#if KASURI_HAS_PERSISTENT
KASURI_OWN(Alltoall_init);
KASURI_OWN(Alltoallv_init);
KASURI_OWN(Alltoallw_init);
#endif
#if MPI_VERSION >= 4
KASURI_OWN(Allgather_c);
KASURI_OWN(Allreduce_c);
KASURI_OWN(Alltoall_c);
KASURI_OWN(Alltoall_init_c);
KASURI_OWN(Alltoallv_c);
KASURI_OWN(Alltoallv_init_c);
KASURI_OWN(Alltoallw_c);
KASURI_OWN(Alltoallw_init_c);
KASURI_OWN(Iallgather_c);
KASURI_OWN(Iallreduce_c);
KASURI_OWN(Ialltoall_c);
KASURI_OWN(Ialltoallv_c);
KASURI_OWN(Ialltoallw_c);
KASURI_OWN(Ireduce_scatter_block_c);
KASURI_OWN(Ireduce_scatter_c);
KASURI_OWN(Reduce_scatter_block_c);
KASURI_OWN(Reduce_scatter_c);
#endif

/* After the definition of a call of this library: its name for own.c, by which no tool is called. */
#define KASURI_TAKES(name) extern __typeof__(PMPI_##name) kasuri_##name __attribute__((alias("MPI_" #name), visibility("hidden")))

#ifndef KASURI_PASSES
#define PMPI_Allgather (*kasuri_own_Allgather)
#define PMPI_Allreduce (*kasuri_own_Allreduce)
#define PMPI_Alltoall (*kasuri_own_Alltoall)
#define PMPI_Alltoallv (*kasuri_own_Alltoallv)
#define PMPI_Alltoallw (*kasuri_own_Alltoallw)
#define PMPI_Cart_create (*kasuri_own_Cart_create)
#define PMPI_Cart_sub (*kasuri_own_Cart_sub)
#define PMPI_Comm_create (*kasuri_own_Comm_create)
#define PMPI_Comm_create_group (*kasuri_own_Comm_create_group)
#define PMPI_Comm_dup (*kasuri_own_Comm_dup)
#define PMPI_Comm_dup_with_info (*kasuri_own_Comm_dup_with_info)
#define PMPI_Comm_split (*kasuri_own_Comm_split)
#define PMPI_Comm_split_type (*kasuri_own_Comm_split_type)
#define PMPI_Finalize (*kasuri_own_Finalize)
#define PMPI_Iallgather (*kasuri_own_Iallgather)
#define PMPI_Iallreduce (*kasuri_own_Iallreduce)
#define PMPI_Ialltoall (*kasuri_own_Ialltoall)
#define PMPI_Ialltoallv (*kasuri_own_Ialltoallv)
#define PMPI_Ialltoallw (*kasuri_own_Ialltoallw)
#define PMPI_Init (*kasuri_own_Init)
#define PMPI_Init_thread (*kasuri_own_Init_thread)
#define PMPI_Ireduce_scatter (*kasuri_own_Ireduce_scatter)
#define PMPI_Ireduce_scatter_block (*kasuri_own_Ireduce_scatter_block)
#define PMPI_Reduce_scatter (*kasuri_own_Reduce_scatter)
#define PMPI_Reduce_scatter_block (*kasuri_own_Reduce_scatter_block)
#define PMPI_Request_free (*kasuri_own_Request_free)
#define PMPI_Start (*kasuri_own_Start)
#define PMPI_Startall (*kasuri_own_Startall)
#define PMPI_Wait (*kasuri_own_Wait)
#define PMPI_Waitall (*kasuri_own_Waitall)
#define PMPI_Waitany (*kasuri_own_Waitany)
#define PMPI_Waitsome (*kasuri_own_Waitsome)
#define PMPI_Alltoall_init (*kasuri_own_Alltoall_init)
#define PMPI_Alltoallv_init (*kasuri_own_Alltoallv_init)
#define PMPI_Alltoallw_init (*kasuri_own_Alltoallw_init)
#define PMPI_Allgather_c (*kasuri_own_Allgather_c)
#define PMPI_Allreduce_c (*kasuri_own_Allreduce_c)
#define PMPI_Alltoall_c (*kasuri_own_Alltoall_c)
#define PMPI_Alltoall_init_c (*kasuri_own_Alltoall_init_c)
#define PMPI_Alltoallv_c (*kasuri_own_Alltoallv_c)
#define PMPI_Alltoallv_init_c (*kasuri_own_Alltoallv_init_c)
#define PMPI_Alltoallw_c (*kasuri_own_Alltoallw_c)
#define PMPI_Alltoallw_init_c (*kasuri_own_Alltoallw_init_c)
#define PMPI_Iallgather_c (*kasuri_own_Iallgather_c)
#define PMPI_Iallreduce_c (*kasuri_own_Iallreduce_c)
#define PMPI_Ialltoall_c (*kasuri_own_Ialltoall_c)
#define PMPI_Ialltoallv_c (*kasuri_own_Ialltoallv_c)
#define PMPI_Ialltoallw_c (*kasuri_own_Ialltoallw_c)
#define PMPI_Ireduce_scatter_block_c (*kasuri_own_Ireduce_scatter_block_c)
#define PMPI_Ireduce_scatter_c (*kasuri_own_Ireduce_scatter_c)
#define PMPI_Reduce_scatter_block_c (*kasuri_own_Reduce_scatter_block_c)
#define PMPI_Reduce_scatter_c (*kasuri_own_Reduce_scatter_c)
#endif

#endif
