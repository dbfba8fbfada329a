/* The calls by their names with a P. Where a tool has taken the program's call before, it is this library's turn; else somebody wants the
 * MPI library's own. */
#define KASURI_PASSES
#include "own.h"

#include <dlfcn.h>

/* Another one of the same name that comes before this library, or the next behind it. */
static void *own(const char *name, const void *ours)
{
    void *first = dlsym(RTLD_DEFAULT, name);
    return first && first != ours ? first : dlsym(RTLD_NEXT, name);
}

/* What passes on a call of this name with a P, found out before the program begins. */
#define PASSES(name, parameters, arguments)                                                                                                \
    __typeof__(PMPI_##name) *kasuri_own_##name;                                                                                            \
    static __typeof__(PMPI_##name) *next_##name;                                                                                           \
    static int has_tool_##name;                                                                                                            \
                                                                                                                                           \
    int PMPI_##name parameters                                                                                                             \
    {                                                                                                                                      \
        return has_tool_##name ? kasuri_##name arguments : next_##name arguments;                                                          \
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

COLLECTIVES(, int, int);
PASSES(Finalize, (void), ());
#if MPI_VERSION >= 4
COLLECTIVES(_c, MPI_Count, MPI_Aint);
#endif
