/* Preloaded before the library: the send number KASURI_TEST_FAIL of every rank fails. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

typedef int isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    static int calls;
    if (++calls == atoi(getenv("KASURI_TEST_FAIL")))
        return MPI_ERR_OTHER;
    return (__extension__(isend *) dlsym(RTLD_NEXT, "PMPI_Isend"))(buffer, count, type, to, tag, comm, request);
}
