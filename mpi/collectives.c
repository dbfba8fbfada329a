/* The other collective calls that a trace records. They are the MPI library's own; the messages written for them are those of the
 * usual algorithms: binomial trees, and dissemination for the barrier. */
#include <mpi.h>

#include "collectives.h"
#include "own.h"
#include "plan.h"
#include "trace.h"

MPI_Count kasuri_bytes_in(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS)
        return 0;
    return count * size;
}

void kasuri_trace_tree(MPI_Comm comm, int root, MPI_Count bytes, int is_down)
{
    int rank, size, bit = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const int relative = (rank - root + size) % size;
    while (bit < size && !(relative & bit))
        bit *= 2;
    const int parent = (relative - bit + root + size) % size;
    if (is_down && relative > 0)
        kasuri_trace_receive(parent, bytes);
    kasuri_trace_stage();
    for (int half = bit / 2; half > 0; half /= 2) {
        if (relative + half < size) {
            const int child = (relative + half + root) % size;
            if (is_down)
                kasuri_trace_send(child, bytes);
            else
                kasuri_trace_receive(child, bytes);
        }
    }
    kasuri_trace_stage();
    if (!is_down && relative > 0)
        kasuri_trace_send(parent, bytes);
    kasuri_trace_stage();
}

static void dissemination(MPI_Comm comm)
{
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    for (int distance = 1; distance < size; distance *= 2) {
        kasuri_trace_send((rank + distance) % size, 1);
        kasuri_trace_receive((rank - distance + size) % size, 1);
        kasuri_trace_stage();
    }
}

int kasuri_is_rank(int root, MPI_Comm comm)
{
    int size = 0;
    return comm != MPI_COMM_NULL && PMPI_Comm_size(comm, &size) == MPI_SUCCESS && root >= 0 && root < size;
}

/* The calls that have counts, with counts of either width. */
#define WITH_COUNTS(suffix, count_type)                                                                                                    \
    int MPI_Bcast##suffix(void *buffer, count_type count, MPI_Datatype type, int root, MPI_Comm comm)                                      \
    {                                                                                                                                      \
        if (kasuri_is_rank(root, comm) && kasuri_trace_enter(comm))                                                                        \
            kasuri_trace_tree(comm, root, kasuri_bytes_in(count, type), 1);                                                                \
        const int error = PMPI_Bcast##suffix(buffer, count, type, root, comm);                                                             \
        kasuri_trace_leave();                                                                                                              \
        return error;                                                                                                                      \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Reduce##suffix(const void *sendbuf, void *recvbuf, count_type count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)    \
    {                                                                                                                                      \
        if (kasuri_is_rank(root, comm) && kasuri_trace_enter(comm))                                                                        \
            kasuri_trace_tree(comm, root, kasuri_bytes_in(count, type), 0);                                                                \
        const int error = PMPI_Reduce##suffix(sendbuf, recvbuf, count, type, op, root, comm);                                              \
        kasuri_trace_leave();                                                                                                              \
        return error;                                                                                                                      \
    }

WITH_COUNTS(, int)

/* From MPI 4 on; mpi4py calls these. */
#if MPI_VERSION >= 4
WITH_COUNTS(_c, MPI_Count)
#endif

int MPI_Barrier(MPI_Comm comm)
{
    if (kasuri_is_rank(0, comm) && kasuri_trace_enter(comm))
        dissemination(comm);
    const int error = PMPI_Barrier(comm);
    kasuri_trace_leave();
    return error;
}

int MPI_Finalize(void)
{
    kasuri_trace_write();
    kasuri_report();
    kasuri_end();
    return PMPI_Finalize();
}

KASURI_TAKES(Finalize);
