/* The calls by their names with a P. Where a tool has taken the program's call before, it is this library's turn; else somebody wants the
 * MPI library's own. */
#define KASURI_PASSES
#include "own.h"
#include "waits.h"

#include <dlfcn.h>

/* Another one of the same name that comes before this library, or the next behind it. */
static void *own(const char *name, const void *ours)
{
    void *first = dlsym(RTLD_DEFAULT, name);
    return first && first != ours ? first : dlsym(RTLD_NEXT, name);
}

/* What passes on a call of this name with a P, found out before the program begins. Where there is no tool, to another function. */
#define PASSES_TO(other, name, parameters, arguments)                                                                                      \
    __typeof__(PMPI_##name) *kasuri_own_##name;                                                                                            \
    static __typeof__(PMPI_##name) *next_##name;                                                                                           \
    static int has_tool_##name;                                                                                                            \
                                                                                                                                           \
    int PMPI_##name parameters                                                                                                             \
    {                                                                                                                                      \
        return has_tool_##name ? kasuri_##name arguments : other arguments;                                                                \
    }                                                                                                                                      \
                                                                                                                                           \
    extern __typeof__(PMPI_##name) passed_##name __attribute__((alias("PMPI_" #name), visibility("hidden")));                              \
                                                                                                                                           \
    __attribute__((constructor)) static void find_##name(void)                                                                             \
    {                                                                                                                                      \
        kasuri_own_##name = __extension__(__typeof__(PMPI_##name) *) own("PMPI_" #name, __extension__(void *) passed_##name);              \
        next_##name = __extension__(__typeof__(PMPI_##name) *) dlsym(RTLD_NEXT, "PMPI_" #name);                                            \
        has_tool_##name = dlsym(RTLD_DEFAULT, "MPI_" #name) != __extension__(void *) kasuri_##name;                                        \
    }                                                                                                                                      \
    int PMPI_##name parameters

/* To the next behind this library. */
#define PASSES(name, parameters, arguments) PASSES_TO(next_##name, name, parameters, arguments)

/* With counts and places of either width. */
#define COLLECTIVES(suffix, count, place)                                                                                                  \
    PASSES(Alltoall##suffix,                                                                                                               \
           (const void *sendbuf, count sendcount, MPI_Datatype sendtype, void *recvbuf, count recvcount, MPI_Datatype recvtype,            \
            MPI_Comm comm),                                                                                                                \
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));                                                            \
    PASSES(Allgather##suffix,                                                                                                              \
           (const void *sendbuf, count sendcount, MPI_Datatype sendtype, void *recvbuf, count recvcount, MPI_Datatype recvtype,            \
            MPI_Comm comm),                                                                                                                \
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));                                                            \
    PASSES(Alltoallv##suffix,                                                                                                              \
           (const void *sendbuf, const count sendcounts[], const place sdispls[], MPI_Datatype sendtype, void *recvbuf,                    \
            const count recvcounts[], const place rdispls[], MPI_Datatype recvtype, MPI_Comm comm),                                        \
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm));                                        \
    PASSES(Alltoallw##suffix,                                                                                                              \
           (const void *sendbuf, const count sendcounts[], const place sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,           \
            const count recvcounts[], const place rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),                               \
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm));                                      \
    PASSES(Allreduce##suffix, (const void *sendbuf, void *recvbuf, count number, MPI_Datatype type, MPI_Op op, MPI_Comm comm),             \
           (sendbuf, recvbuf, number, type, op, comm));                                                                                    \
    PASSES(Reduce_scatter_block##suffix, (const void *sendbuf, void *recvbuf, count number, MPI_Datatype type, MPI_Op op, MPI_Comm comm),  \
           (sendbuf, recvbuf, number, type, op, comm));                                                                                    \
    PASSES(Reduce_scatter##suffix,                                                                                                         \
           (const void *sendbuf, void *recvbuf, const count counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),                        \
           (sendbuf, recvbuf, counts, type, op, comm))

/* Those that do not wait. */
#define NONBLOCKING(suffix, count, place)                                                                                                  \
    PASSES(Ialltoall##suffix,                                                                                                              \
           (const void *sendbuf, count sendcount, MPI_Datatype sendtype, void *recvbuf, count recvcount, MPI_Datatype recvtype,            \
            MPI_Comm comm, MPI_Request *request),                                                                                          \
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request));                                                   \
    PASSES(Ialltoallv##suffix,                                                                                                             \
           (const void *sendbuf, const count sendcounts[], const place sdispls[], MPI_Datatype sendtype, void *recvbuf,                    \
            const count recvcounts[], const place rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),                  \
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request));                               \
    PASSES(Ialltoallw##suffix,                                                                                                             \
           (const void *sendbuf, const count sendcounts[], const place sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,           \
            const count recvcounts[], const place rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request),         \
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, request));                             \
    PASSES(Iallgather##suffix,                                                                                                             \
           (const void *sendbuf, count sendcount, MPI_Datatype sendtype, void *recvbuf, count recvcount, MPI_Datatype recvtype,            \
            MPI_Comm comm, MPI_Request *request),                                                                                          \
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request));                                                   \
    PASSES(Iallreduce##suffix,                                                                                                             \
           (const void *sendbuf, void *recvbuf, count number, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request),          \
           (sendbuf, recvbuf, number, type, op, comm, request));                                                                           \
    PASSES(Ireduce_scatter_block##suffix,                                                                                                  \
           (const void *sendbuf, void *recvbuf, count number, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request),          \
           (sendbuf, recvbuf, number, type, op, comm, request));                                                                           \
    PASSES(Ireduce_scatter##suffix,                                                                                                        \
           (const void *sendbuf, void *recvbuf, const count counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm,                         \
            MPI_Request *request),                                                                                                         \
           (sendbuf, recvbuf, counts, type, op, comm, request))

/* Persistent ones. */
#define PERSISTENT(suffix, count, place)                                                                                                   \
    PASSES(Alltoall_init##suffix,                                                                                                          \
           (const void *sendbuf, count sendcount, MPI_Datatype sendtype, void *recvbuf, count recvcount, MPI_Datatype recvtype,            \
            MPI_Comm comm, MPI_Info info, MPI_Request *request),                                                                           \
           (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info, request));                                             \
    PASSES(Alltoallv_init##suffix,                                                                                                         \
           (const void *sendbuf, const count sendcounts[], const place sdispls[], MPI_Datatype sendtype, void *recvbuf,                    \
            const count recvcounts[], const place rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,                          \
            MPI_Request *request),                                                                                                         \
           (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, info, request));                         \
    PASSES(Alltoallw_init##suffix,                                                                                                         \
           (const void *sendbuf, const count sendcounts[], const place sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,           \
            const count recvcounts[], const place rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,                 \
            MPI_Request *request),                                                                                                         \
           (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, info, request))

COLLECTIVES(, int, int);
NONBLOCKING(, int, int);
/* These are always this library's: it only adds to what the MPI library's do, and Fortran calls them by these names. */
PASSES_TO(kasuri_Init, Init, (int *argc, char ***argv), (argc, argv));
PASSES_TO(kasuri_Init_thread, Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided));
PASSES_TO(kasuri_Start, Start, (MPI_Request * request), (request));
PASSES_TO(kasuri_Startall, Startall, (int count, MPI_Request requests[]), (count, requests));
PASSES_TO(kasuri_Request_free, Request_free, (MPI_Request * request), (request));
PASSES(Finalize, (void), ());
PASSES_TO(kasuri_wait_Wait, Wait, (MPI_Request * request, MPI_Status *status), (request, status));
PASSES_TO(kasuri_wait_Waitany, Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
          (count, requests, index, status));
PASSES_TO(kasuri_wait_Waitall, Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses));
PASSES_TO(kasuri_wait_Waitsome, Waitsome, (int count, MPI_Request requests[], int *ended, int indices[], MPI_Status statuses[]),
          (count, requests, ended, indices, statuses));
PASSES_TO(kasuri_Comm_dup, Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made));
PASSES_TO(kasuri_Comm_dup_with_info, Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made));
PASSES_TO(kasuri_Comm_split, Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made));
PASSES_TO(kasuri_Comm_split_type, Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
          (comm, type, key, info, made));
PASSES_TO(kasuri_Comm_create, Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made));
PASSES_TO(kasuri_Comm_create_group, Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made), (comm, group, tag, made));
PASSES_TO(kasuri_Cart_create, Cart_create,
          (MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder, MPI_Comm *made),
          (comm, dimensions, sizes, periods, reorder, made));
PASSES_TO(kasuri_Cart_sub, Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made));
#if KASURI_HAS_PERSISTENT
PERSISTENT(, int, int);
#endif
#if MPI_VERSION >= 4
PERSISTENT(_c, MPI_Count, MPI_Aint);
COLLECTIVES(_c, MPI_Count, MPI_Aint);
NONBLOCKING(_c, MPI_Count, MPI_Aint);
#endif
