/* Preloaded in tests before the library: KASURI_TEST_SLOW=schedule makes each message of a schedule take 50 milliseconds longer,
 * KASURI_TEST_SLOW=library each all-to-all of the MPI library, and each all-reduce of more than a few numbers. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void delay(const char *what)
{
    if (strcmp(getenv("KASURI_TEST_SLOW"), what) == 0)
        usleep(50000);
}

int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    typedef int isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    delay("schedule");
    return (__extension__(isend *) dlsym(RTLD_NEXT, "PMPI_Isend"))(buffer, count, type, to, tag, comm, request);
}

int PMPI_Alltoall(const void *out, int sent, MPI_Datatype sendtype, void *in, int received, MPI_Datatype recvtype, MPI_Comm comm)
{
    typedef int alltoall(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
    delay("library");
    return (__extension__(alltoall *) dlsym(RTLD_NEXT, "PMPI_Alltoall"))(out, sent, sendtype, in, received, recvtype, comm);
}

int PMPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    typedef int allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    if (count > 100)
        delay("library");
    return (__extension__(allreduce *) dlsym(RTLD_NEXT, "PMPI_Allreduce"))(out, in, count, type, op, comm);
}
