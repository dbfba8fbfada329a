/* The same calls from Fortran's module mpi_f08, under MPICH. Its other Fortran calls the functions of C, which are ours already.
 *
 * Buffers come as descriptors, other arguments by reference; the error may be left out. Where a buffer has gaps that no type tells,
 * the MPI library makes the type: its own routine is called. */
#include <mpi.h>

#ifdef MPICH

#include <ISO_Fortran_binding.h>
#include <dlfcn.h>
#include <stddef.h>

/* The address of a buffer, with the meaning of the special ones. */
static void *buffer_of(const CFI_cdesc_t *buffer)
{
    static const void *in_place, *bottom;
    if (!in_place) {
        in_place = dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_IN_PLACE");
        bottom = dlsym(RTLD_DEFAULT, "MPIR_F08_MPI_BOTTOM");
    }
    if (in_place && buffer->base_addr == in_place)
        return MPI_IN_PLACE;
    return bottom && buffer->base_addr == bottom ? MPI_BOTTOM : buffer->base_addr;
}

static int is_whole(const CFI_cdesc_t *buffer)
{
    CFI_index_t distance = (CFI_index_t)buffer->elem_len;
    for (int i = 0; i < buffer->rank; i++) {
        if (buffer->dim[i].sm != distance && buffer->dim[i].extent > 1)
            return 0;
        distance *= buffer->dim[i].extent;
    }
    return 1;
}

static void answer(MPI_Fint *error, int value)
{
    if (error)
        *error = value;
}

/* The MPI library's own routine of that name. */
#define OWN(routine) (__extension__(void (*)()) dlsym(RTLD_NEXT, #routine))

void mpi_alltoall_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Fint *recvcount,
                         MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoall(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm));
    else
        OWN(mpi_alltoall_f08ts_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, error);
}

void mpi_alltoallv_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf,
                          MPI_Fint *recvcounts, MPI_Fint *rdispls, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoallv(buffer_of(sendbuf), sendcounts, sdispls, *sendtype, buffer_of(recvbuf), recvcounts, rdispls, *recvtype,
                                    *comm));
    else
        OWN(mpi_alltoallv_f08ts_)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, error);
}

void mpi_alltoallw_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtypes, CFI_cdesc_t *recvbuf,
                          MPI_Fint *recvcounts, MPI_Fint *rdispls, MPI_Fint *recvtypes, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoallw(buffer_of(sendbuf), sendcounts, sdispls, sendtypes, buffer_of(recvbuf), recvcounts, rdispls, recvtypes,
                                    *comm));
    else
        OWN(mpi_alltoallw_f08ts_)(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, error);
}

/* Those that do not wait. */
void mpi_ialltoall_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Fint *recvcount,
                          MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ialltoall(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm, request));
    else
        OWN(mpi_ialltoall_f08ts_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request, error);
}

void mpi_ialltoallv_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf,
                           MPI_Fint *recvcounts, MPI_Fint *rdispls, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ialltoallv(buffer_of(sendbuf), sendcounts, sdispls, *sendtype, buffer_of(recvbuf), recvcounts, rdispls,
                                     *recvtype, *comm, request));
    else
        OWN(mpi_ialltoallv_f08ts_)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request, error);
}

/* The same with counts of 64 bits. */
#if MPI_VERSION >= 4
void mpi_ialltoall_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Count *recvcount,
                                MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error,
               MPI_Ialltoall_c(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm, request));
    else
        OWN(mpi_ialltoall_f08ts_large_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request, error);
}

void mpi_ialltoallv_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcounts, MPI_Aint *sdispls, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf,
                                 MPI_Count *recvcounts, MPI_Aint *rdispls, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *request,
                                 MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ialltoallv_c(buffer_of(sendbuf), sendcounts, sdispls, *sendtype, buffer_of(recvbuf), recvcounts, rdispls,
                                       *recvtype, *comm, request));
    else
        OWN(mpi_ialltoallv_f08ts_large_)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request,
                                         error);
}

void mpi_alltoall_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Count *recvcount,
                               MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoall_c(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm));
    else
        OWN(mpi_alltoall_f08ts_large_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, error);
}

void mpi_alltoallv_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcounts, MPI_Aint *sdispls, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf,
                                MPI_Count *recvcounts, MPI_Aint *rdispls, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoallv_c(buffer_of(sendbuf), sendcounts, sdispls, *sendtype, buffer_of(recvbuf), recvcounts, rdispls,
                                      *recvtype, *comm));
    else
        OWN(mpi_alltoallv_f08ts_large_)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, error);
}
#endif

void mpi_bcast_f08ts_(CFI_cdesc_t *buffer, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(buffer))
        answer(error, MPI_Bcast(buffer_of(buffer), *count, *type, *root, *comm));
    else
        OWN(mpi_bcast_f08ts_)(buffer, count, type, root, comm, error);
}

void mpi_reduce_f08ts_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *root,
                       MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Reduce(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *root, *comm));
    else
        OWN(mpi_reduce_f08ts_)(sendbuf, recvbuf, count, type, op, root, comm, error);
}

void mpi_allreduce_f08ts_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                          MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Allreduce(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *comm));
    else
        OWN(mpi_allreduce_f08ts_)(sendbuf, recvbuf, count, type, op, comm, error);
}

void mpi_allgather_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Fint *recvcount,
                          MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Allgather(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm));
    else
        OWN(mpi_allgather_f08ts_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, error);
}

void mpi_reduce_scatter_f08ts_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                               MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Reduce_scatter(buffer_of(sendbuf), buffer_of(recvbuf), counts, *type, *op, *comm));
    else
        OWN(mpi_reduce_scatter_f08ts_)(sendbuf, recvbuf, counts, type, op, comm, error);
}

void mpi_reduce_scatter_block_f08ts_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
                                     MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Reduce_scatter_block(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *comm));
    else
        OWN(mpi_reduce_scatter_block_f08ts_)(sendbuf, recvbuf, count, type, op, comm, error);
}

/* The same with counts of 64 bits. */
#if MPI_VERSION >= 4
void mpi_alltoallw_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcounts, MPI_Aint *sdispls, MPI_Fint *sendtypes, CFI_cdesc_t *recvbuf,
                                MPI_Count *recvcounts, MPI_Aint *rdispls, MPI_Fint *recvtypes, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoallw_c(buffer_of(sendbuf), sendcounts, sdispls, sendtypes, buffer_of(recvbuf), recvcounts, rdispls,
                                      recvtypes, *comm));
    else
        OWN(mpi_alltoallw_f08ts_large_)(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, error);
}

void mpi_allreduce_f08ts_large_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Allreduce_c(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *comm));
    else
        OWN(mpi_allreduce_f08ts_large_)(sendbuf, recvbuf, count, type, op, comm, error);
}

void mpi_allgather_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Count *recvcount,
                                MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Allgather_c(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm));
    else
        OWN(mpi_allgather_f08ts_large_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, error);
}

void mpi_reduce_scatter_f08ts_large_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *counts, MPI_Fint *type, MPI_Fint *op,
                                     MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Reduce_scatter_c(buffer_of(sendbuf), buffer_of(recvbuf), counts, *type, *op, *comm));
    else
        OWN(mpi_reduce_scatter_f08ts_large_)(sendbuf, recvbuf, counts, type, op, comm, error);
}

void mpi_reduce_scatter_block_f08ts_large_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count, MPI_Fint *type, MPI_Fint *op,
                                           MPI_Fint *comm, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Reduce_scatter_block_c(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *comm));
    else
        OWN(mpi_reduce_scatter_block_f08ts_large_)(sendbuf, recvbuf, count, type, op, comm, error);
}
#endif

/* Others that do not wait. */
void mpi_ialltoallw_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtypes, CFI_cdesc_t *recvbuf,
                           MPI_Fint *recvcounts, MPI_Fint *rdispls, MPI_Fint *recvtypes, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ialltoallw(buffer_of(sendbuf), sendcounts, sdispls, sendtypes, buffer_of(recvbuf), recvcounts, rdispls, recvtypes,
                                     *comm, request));
    else
        OWN(mpi_ialltoallw_f08ts_)(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request, error);
}

void mpi_iallreduce_f08ts_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                           MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Iallreduce(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *comm, request));
    else
        OWN(mpi_iallreduce_f08ts_)(sendbuf, recvbuf, count, type, op, comm, request, error);
}

void mpi_iallgather_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Fint *recvcount,
                           MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Iallgather(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm, request));
    else
        OWN(mpi_iallgather_f08ts_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request, error);
}

void mpi_ireduce_scatter_f08ts_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ireduce_scatter(buffer_of(sendbuf), buffer_of(recvbuf), counts, *type, *op, *comm, request));
    else
        OWN(mpi_ireduce_scatter_f08ts_)(sendbuf, recvbuf, counts, type, op, comm, request, error);
}

void mpi_ireduce_scatter_block_f08ts_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
                                      MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ireduce_scatter_block(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *comm, request));
    else
        OWN(mpi_ireduce_scatter_block_f08ts_)(sendbuf, recvbuf, count, type, op, comm, request, error);
}

/* With counts of 64 bits; and persistent ones. */
#if MPI_VERSION >= 4
void mpi_ialltoallw_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcounts, MPI_Aint *sdispls, MPI_Fint *sendtypes, CFI_cdesc_t *recvbuf,
                                 MPI_Count *recvcounts, MPI_Aint *rdispls, MPI_Fint *recvtypes, MPI_Fint *comm, MPI_Fint *request,
                                 MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ialltoallw_c(buffer_of(sendbuf), sendcounts, sdispls, sendtypes, buffer_of(recvbuf), recvcounts, rdispls,
                                       recvtypes, *comm, request));
    else
        OWN(mpi_ialltoallw_f08ts_large_)(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request,
                                         error);
}

void mpi_iallreduce_f08ts_large_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm,
                                 MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Iallreduce_c(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *comm, request));
    else
        OWN(mpi_iallreduce_f08ts_large_)(sendbuf, recvbuf, count, type, op, comm, request, error);
}

void mpi_iallgather_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Count *recvcount,
                                 MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error,
               MPI_Iallgather_c(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm, request));
    else
        OWN(mpi_iallgather_f08ts_large_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request, error);
}

void mpi_ireduce_scatter_f08ts_large_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *counts, MPI_Fint *type, MPI_Fint *op,
                                      MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ireduce_scatter_c(buffer_of(sendbuf), buffer_of(recvbuf), counts, *type, *op, *comm, request));
    else
        OWN(mpi_ireduce_scatter_f08ts_large_)(sendbuf, recvbuf, counts, type, op, comm, request, error);
}

void mpi_ireduce_scatter_block_f08ts_large_(CFI_cdesc_t *sendbuf, CFI_cdesc_t *recvbuf, MPI_Count *count, MPI_Fint *type, MPI_Fint *op,
                                            MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Ireduce_scatter_block_c(buffer_of(sendbuf), buffer_of(recvbuf), *count, *type, *op, *comm, request));
    else
        OWN(mpi_ireduce_scatter_block_f08ts_large_)(sendbuf, recvbuf, count, type, op, comm, request, error);
}

void mpi_alltoall_init_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf, MPI_Fint *recvcount,
                              MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoall_init(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm, *info,
                                        request));
    else
        OWN(mpi_alltoall_init_f08ts_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request, error);
}

void mpi_alltoall_init_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcount, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf,
                                    MPI_Count *recvcount, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request,
                                    MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoall_init_c(buffer_of(sendbuf), *sendcount, *sendtype, buffer_of(recvbuf), *recvcount, *recvtype, *comm,
                                          *info, request));
    else
        OWN(mpi_alltoall_init_f08ts_large_)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request, error);
}

void mpi_alltoallv_init_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtype, CFI_cdesc_t *recvbuf,
                               MPI_Fint *recvcounts, MPI_Fint *rdispls, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *info,
                               MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoallv_init(buffer_of(sendbuf), sendcounts, sdispls, *sendtype, buffer_of(recvbuf), recvcounts, rdispls,
                                         *recvtype, *comm, *info, request));
    else
        OWN(mpi_alltoallv_init_f08ts_)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info, request,
                                       error);
}

void mpi_alltoallv_init_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcounts, MPI_Aint *sdispls, MPI_Fint *sendtype,
                                     CFI_cdesc_t *recvbuf, MPI_Count *recvcounts, MPI_Aint *rdispls, MPI_Fint *recvtype, MPI_Fint *comm,
                                     MPI_Fint *info, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoallv_init_c(buffer_of(sendbuf), sendcounts, sdispls, *sendtype, buffer_of(recvbuf), recvcounts, rdispls,
                                           *recvtype, *comm, *info, request));
    else
        OWN(mpi_alltoallv_init_f08ts_large_)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info,
                                             request, error);
}

void mpi_alltoallw_init_f08ts_(CFI_cdesc_t *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtypes, CFI_cdesc_t *recvbuf,
                               MPI_Fint *recvcounts, MPI_Fint *rdispls, MPI_Fint *recvtypes, MPI_Fint *comm, MPI_Fint *info,
                               MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoallw_init(buffer_of(sendbuf), sendcounts, sdispls, sendtypes, buffer_of(recvbuf), recvcounts, rdispls,
                                         recvtypes, *comm, *info, request));
    else
        OWN(mpi_alltoallw_init_f08ts_)(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info,
                                       request, error);
}

void mpi_alltoallw_init_f08ts_large_(CFI_cdesc_t *sendbuf, MPI_Count *sendcounts, MPI_Aint *sdispls, MPI_Fint *sendtypes,
                                     CFI_cdesc_t *recvbuf, MPI_Count *recvcounts, MPI_Aint *rdispls, MPI_Fint *recvtypes, MPI_Fint *comm,
                                     MPI_Fint *info, MPI_Fint *request, MPI_Fint *error)
{
    if (is_whole(sendbuf) && is_whole(recvbuf))
        answer(error, MPI_Alltoallw_init_c(buffer_of(sendbuf), sendcounts, sdispls, sendtypes, buffer_of(recvbuf), recvcounts, rdispls,
                                           recvtypes, *comm, *info, request));
    else
        OWN(mpi_alltoallw_init_f08ts_large_)(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info,
                                             request, error);
}
#endif

void mpi_barrier_f08_(MPI_Fint *comm, MPI_Fint *error)
{
    answer(error, MPI_Barrier(*comm));
}

void mpi_finalize_f08_(MPI_Fint *error)
{
    answer(error, MPI_Finalize());
}

#endif
