/* A tool that is preloaded before the library and counts the program's calls, as profilers do: it passes them on by their names with a P.
 */
#include <mpi.h>
#include <stdio.h>

static int alltoalls, allreduces, nonblocking, waits;

int MPI_Alltoall(const void *out, int sent, MPI_Datatype sendtype, void *in, int received, MPI_Datatype recvtype, MPI_Comm comm)
{
    alltoalls++;
    return PMPI_Alltoall(out, sent, sendtype, in, received, recvtype, comm);
}

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    allreduces++;
    return PMPI_Allreduce(out, in, count, type, op, comm);
}

int MPI_Ialltoall(const void *out, int sent, MPI_Datatype sendtype, void *in, int received, MPI_Datatype recvtype, MPI_Comm comm,
                  MPI_Request *request)
{
    nonblocking++;
    return PMPI_Ialltoall(out, sent, sendtype, in, received, recvtype, comm, request);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    waits++;
    return PMPI_Waitall(count, requests, statuses);
}

int MPI_Finalize(void)
{
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "tool: %d all-to-alls, %d all-reduces, %d non-blocking all-to-alls, %d waits for all\n", alltoalls, allreduces,
                nonblocking, waits);
    return PMPI_Finalize();
}
