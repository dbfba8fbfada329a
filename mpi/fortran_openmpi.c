/* The same calls from Fortran, under Open MPI.
 *
 * Arguments come by reference; handles are numbers; MPI_IN_PLACE and MPI_BOTTOM are addresses of variables of the library. The error
 * may be left out by programs that use mpi_f08. */
#include <mpi.h>

#ifdef OPEN_MPI

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

/* The address by which Fortran says a special buffer. */
static void *special(void *buffer, const char *symbol, void *meaning)
{
    const void *address = dlsym(RTLD_DEFAULT, symbol);
    return address && buffer == address ? meaning : buffer;
}

static void *buffer_of(void *buffer)
{
    return special(special(buffer, "mpi_fortran_in_place_", MPI_IN_PLACE), "mpi_fortran_bottom_", MPI_BOTTOM);
}

static void answer(MPI_Fint *error, int value)
{
    if (error)
        *error = value;
}

/* The names that Fortran compilers give a routine, and those of the module mpi_f08. */
#define NAMES(lower, upper, mixed, parameters)                                                                                             \
    void lower parameters __attribute__((alias("kasuri_" #lower)));                                                                        \
    void lower##_ parameters __attribute__((alias("kasuri_" #lower)));                                                                     \
    void lower##__ parameters __attribute__((alias("kasuri_" #lower)));                                                                    \
    void lower##_f08_ parameters __attribute__((alias("kasuri_" #lower)));                                                                 \
    void upper parameters __attribute__((alias("kasuri_" #lower)));                                                                        \
    void mixed##_f parameters __attribute__((alias("kasuri_" #lower)));                                                                    \
    void mixed##_f08 parameters __attribute__((alias("kasuri_" #lower)))

#define ALLTOALL                                                                                                                           \
    (void *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, void *recvbuf, MPI_Fint *recvcount, MPI_Fint *recvtype, MPI_Fint *comm,       \
     MPI_Fint *error)

void kasuri_mpi_alltoall ALLTOALL
{
    void *from = buffer_of(sendbuf);
    /* In place, a program may leave any number in the place of the type. */
    const MPI_Datatype type = from == MPI_IN_PLACE ? MPI_DATATYPE_NULL : PMPI_Type_f2c(*sendtype);
    answer(error, MPI_Alltoall(from, *sendcount, type, buffer_of(recvbuf), *recvcount, PMPI_Type_f2c(*recvtype), PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_alltoall, MPI_ALLTOALL, MPI_Alltoall, ALLTOALL);

#define ALLTOALLV                                                                                                                          \
    (void *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtype, void *recvbuf, MPI_Fint *recvcounts, MPI_Fint *rdispls,   \
     MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *error)

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "counts of Fortran are passed on as they are");

void kasuri_mpi_alltoallv ALLTOALLV
{
    void *from = buffer_of(sendbuf);
    const MPI_Datatype type = from == MPI_IN_PLACE ? MPI_DATATYPE_NULL : PMPI_Type_f2c(*sendtype);
    answer(error, MPI_Alltoallv(from, sendcounts, sdispls, type, buffer_of(recvbuf), recvcounts, rdispls, PMPI_Type_f2c(*recvtype),
                                PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_alltoallv, MPI_ALLTOALLV, MPI_Alltoallv, ALLTOALLV);

/* Those that do not wait. */
#define IALLTOALL                                                                                                                          \
    (void *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, void *recvbuf, MPI_Fint *recvcount, MPI_Fint *recvtype, MPI_Fint *comm,       \
     MPI_Fint *request, MPI_Fint *error)

static void answer_request(MPI_Fint *request, MPI_Request made, MPI_Fint *error, int value)
{
    if (value == MPI_SUCCESS)
        *request = PMPI_Request_c2f(made);
    answer(error, value);
}

void kasuri_mpi_ialltoall IALLTOALL
{
    void *from = buffer_of(sendbuf);
    const MPI_Datatype type = from == MPI_IN_PLACE ? MPI_DATATYPE_NULL : PMPI_Type_f2c(*sendtype);
    MPI_Request made = MPI_REQUEST_NULL;
    const int value = MPI_Ialltoall(from, *sendcount, type, buffer_of(recvbuf), *recvcount, PMPI_Type_f2c(*recvtype),
                                    PMPI_Comm_f2c(*comm), &made);
    answer_request(request, made, error, value);
}

NAMES(mpi_ialltoall, MPI_IALLTOALL, MPI_Ialltoall, IALLTOALL);

#define IALLTOALLV                                                                                                                         \
    (void *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtype, void *recvbuf, MPI_Fint *recvcounts, MPI_Fint *rdispls,   \
     MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)

void kasuri_mpi_ialltoallv IALLTOALLV
{
    void *from = buffer_of(sendbuf);
    const MPI_Datatype type = from == MPI_IN_PLACE ? MPI_DATATYPE_NULL : PMPI_Type_f2c(*sendtype);
    MPI_Request made = MPI_REQUEST_NULL;
    const int value = MPI_Ialltoallv(from, sendcounts, sdispls, type, buffer_of(recvbuf), recvcounts, rdispls, PMPI_Type_f2c(*recvtype),
                                     PMPI_Comm_f2c(*comm), &made);
    answer_request(request, made, error, value);
}

NAMES(mpi_ialltoallv, MPI_IALLTOALLV, MPI_Ialltoallv, IALLTOALLV);

/* The types of all ranks of a communicator. NULL if there is no memory. */
static MPI_Datatype *types_of(const MPI_Fint *types, MPI_Comm comm)
{
    int size = 0, is_between = 0;
    if (PMPI_Comm_test_inter(comm, &is_between) != MPI_SUCCESS)
        return NULL;
    if (is_between)
        PMPI_Comm_remote_size(comm, &size);
    else
        PMPI_Comm_size(comm, &size);
    MPI_Datatype *list = malloc(((size_t)size + 1) * sizeof *list);
    for (int i = 0; i < size && list; i++)
        list[i] = PMPI_Type_f2c(types[i]);
    return list;
}

#define ALLTOALLW                                                                                                                          \
    (void *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtypes, void *recvbuf, MPI_Fint *recvcounts, MPI_Fint *rdispls,  \
     MPI_Fint *recvtypes, MPI_Fint *comm, MPI_Fint *error)

void kasuri_mpi_alltoallw ALLTOALLW
{
    void *from = buffer_of(sendbuf);
    const MPI_Comm among = PMPI_Comm_f2c(*comm);
    MPI_Datatype *in = types_of(recvtypes, among), *out = from == MPI_IN_PLACE ? NULL : types_of(sendtypes, among);
    answer(error, in && (out || from == MPI_IN_PLACE)
                      ? MPI_Alltoallw(from, sendcounts, sdispls, out, buffer_of(recvbuf), recvcounts, rdispls, in, among)
                      : MPI_ERR_NO_MEM);
    free(in);
    free(out);
}

NAMES(mpi_alltoallw, MPI_ALLTOALLW, MPI_Alltoallw, ALLTOALLW);

#define BCAST (void *buffer, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error)

void kasuri_mpi_bcast BCAST
{
    answer(error, MPI_Bcast(buffer_of(buffer), *count, PMPI_Type_f2c(*type), *root, PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_bcast, MPI_BCAST, MPI_Bcast, BCAST);

#define REDUCE                                                                                                                             \
    (void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *error)

void kasuri_mpi_reduce REDUCE
{
    answer(error, MPI_Reduce(buffer_of(sendbuf), buffer_of(recvbuf), *count, PMPI_Type_f2c(*type), PMPI_Op_f2c(*op), *root,
                             PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_reduce, MPI_REDUCE, MPI_Reduce, REDUCE);

#define ALLREDUCE (void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error)

void kasuri_mpi_allreduce ALLREDUCE
{
    answer(error, MPI_Allreduce(buffer_of(sendbuf), buffer_of(recvbuf), *count, PMPI_Type_f2c(*type), PMPI_Op_f2c(*op),
                                PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_allreduce, MPI_ALLREDUCE, MPI_Allreduce, ALLREDUCE);

#define ALLGATHER                                                                                                                          \
    (void *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, void *recvbuf, MPI_Fint *recvcount, MPI_Fint *recvtype, MPI_Fint *comm,       \
     MPI_Fint *error)

void kasuri_mpi_allgather ALLGATHER
{
    void *from = buffer_of(sendbuf);
    const MPI_Datatype type = from == MPI_IN_PLACE ? MPI_DATATYPE_NULL : PMPI_Type_f2c(*sendtype);
    answer(error, MPI_Allgather(from, *sendcount, type, buffer_of(recvbuf), *recvcount, PMPI_Type_f2c(*recvtype), PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_allgather, MPI_ALLGATHER, MPI_Allgather, ALLGATHER);

#define REDUCE_SCATTER                                                                                                                     \
    (void *sendbuf, void *recvbuf, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *error)

void kasuri_mpi_reduce_scatter REDUCE_SCATTER
{
    answer(error, MPI_Reduce_scatter(buffer_of(sendbuf), buffer_of(recvbuf), counts, PMPI_Type_f2c(*type), PMPI_Op_f2c(*op),
                                     PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_reduce_scatter, MPI_REDUCE_SCATTER, MPI_Reduce_scatter, REDUCE_SCATTER);

void kasuri_mpi_reduce_scatter_block ALLREDUCE
{
    answer(error, MPI_Reduce_scatter_block(buffer_of(sendbuf), buffer_of(recvbuf), *count, PMPI_Type_f2c(*type), PMPI_Op_f2c(*op),
                                           PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_reduce_scatter_block, MPI_REDUCE_SCATTER_BLOCK, MPI_Reduce_scatter_block, ALLREDUCE);

/* Others that do not wait. */
#define IALLREDUCE                                                                                                                         \
    (void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
#define REDUCES_LATER(lower, upper, mixed, count)                                                                                          \
    void kasuri_##lower IALLREDUCE                                                                                                         \
    {                                                                                                                                      \
        MPI_Request made = MPI_REQUEST_NULL;                                                                                               \
        const int value = mixed(buffer_of(sendbuf), buffer_of(recvbuf), count, PMPI_Type_f2c(*type), PMPI_Op_f2c(*op),                     \
                                PMPI_Comm_f2c(*comm), &made);                                                                              \
        answer_request(request, made, error, value);                                                                                       \
    }                                                                                                                                      \
    NAMES(lower, upper, mixed, IALLREDUCE)

REDUCES_LATER(mpi_iallreduce, MPI_IALLREDUCE, MPI_Iallreduce, *count);
REDUCES_LATER(mpi_ireduce_scatter, MPI_IREDUCE_SCATTER, MPI_Ireduce_scatter, count);
REDUCES_LATER(mpi_ireduce_scatter_block, MPI_IREDUCE_SCATTER_BLOCK, MPI_Ireduce_scatter_block, *count);

void kasuri_mpi_iallgather IALLTOALL
{
    void *from = buffer_of(sendbuf);
    const MPI_Datatype type = from == MPI_IN_PLACE ? MPI_DATATYPE_NULL : PMPI_Type_f2c(*sendtype);
    MPI_Request made = MPI_REQUEST_NULL;
    const int value = MPI_Iallgather(from, *sendcount, type, buffer_of(recvbuf), *recvcount, PMPI_Type_f2c(*recvtype),
                                     PMPI_Comm_f2c(*comm), &made);
    answer_request(request, made, error, value);
}

NAMES(mpi_iallgather, MPI_IALLGATHER, MPI_Iallgather, IALLTOALL);

#define BARRIER (MPI_Fint *comm, MPI_Fint *error)

void kasuri_mpi_barrier BARRIER
{
    answer(error, MPI_Barrier(PMPI_Comm_f2c(*comm)));
}

NAMES(mpi_barrier, MPI_BARRIER, MPI_Barrier, BARRIER);

#define FINALIZE (MPI_Fint *error)

void kasuri_mpi_finalize FINALIZE
{
    answer(error, MPI_Finalize());
}

NAMES(mpi_finalize, MPI_FINALIZE, MPI_Finalize, FINALIZE);

/* Single messages. */
static MPI_Status *status_of(MPI_Fint *status, MPI_Status *room)
{
    return special(status, "mpi_fortran_status_ignore_", NULL) ? room : MPI_STATUS_IGNORE;
}

static void tell(const MPI_Status *from, MPI_Fint *to)
{
    if (from != MPI_STATUS_IGNORE)
        PMPI_Status_c2f(from, to);
}

#define SEND (void *buffer, MPI_Fint *count, MPI_Fint *type, MPI_Fint *to, MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *error)
#define SENDS(lower, upper, mixed)                                                                                                         \
    void kasuri_##lower SEND                                                                                                               \
    {                                                                                                                                      \
        answer(error, mixed(buffer_of(buffer), *count, PMPI_Type_f2c(*type), *to, *tag, PMPI_Comm_f2c(*comm)));                            \
    }                                                                                                                                      \
    NAMES(lower, upper, mixed, SEND)

SENDS(mpi_send, MPI_SEND, MPI_Send);
SENDS(mpi_ssend, MPI_SSEND, MPI_Ssend);
SENDS(mpi_rsend, MPI_RSEND, MPI_Rsend);
SENDS(mpi_bsend, MPI_BSEND, MPI_Bsend);

#define START                                                                                                                              \
    (void *buffer, MPI_Fint *count, MPI_Fint *type, MPI_Fint *peer, MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error)
#define STARTS(lower, upper, mixed)                                                                                                        \
    void kasuri_##lower START                                                                                                              \
    {                                                                                                                                      \
        MPI_Request made = MPI_REQUEST_NULL;                                                                                               \
        answer(error, mixed(buffer_of(buffer), *count, PMPI_Type_f2c(*type), *peer, *tag, PMPI_Comm_f2c(*comm), &made));                   \
        *request = PMPI_Request_c2f(made);                                                                                                 \
    }                                                                                                                                      \
    NAMES(lower, upper, mixed, START)

STARTS(mpi_isend, MPI_ISEND, MPI_Isend);
STARTS(mpi_issend, MPI_ISSEND, MPI_Issend);
STARTS(mpi_irecv, MPI_IRECV, MPI_Irecv);

#define RECV                                                                                                                               \
    (void *buffer, MPI_Fint *count, MPI_Fint *type, MPI_Fint *from, MPI_Fint *tag, MPI_Fint *comm, MPI_Fint *status, MPI_Fint *error)

void kasuri_mpi_recv RECV
{
    MPI_Status room, *told = status_of(status, &room);
    answer(error, MPI_Recv(buffer_of(buffer), *count, PMPI_Type_f2c(*type), *from, *tag, PMPI_Comm_f2c(*comm), told));
    tell(told, status);
}

NAMES(mpi_recv, MPI_RECV, MPI_Recv, RECV);

#define SENDRECV                                                                                                                           \
    (void *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, MPI_Fint *to, MPI_Fint *sendtag, void *recvbuf, MPI_Fint *recvcount,          \
     MPI_Fint *recvtype, MPI_Fint *from, MPI_Fint *recvtag, MPI_Fint *comm, MPI_Fint *status, MPI_Fint *error)

void kasuri_mpi_sendrecv SENDRECV
{
    MPI_Status room, *told = status_of(status, &room);
    answer(error, MPI_Sendrecv(buffer_of(sendbuf), *sendcount, PMPI_Type_f2c(*sendtype), *to, *sendtag, buffer_of(recvbuf), *recvcount,
                               PMPI_Type_f2c(*recvtype), *from, *recvtag, PMPI_Comm_f2c(*comm), told));
    tell(told, status);
}

NAMES(mpi_sendrecv, MPI_SENDRECV, MPI_Sendrecv, SENDRECV);

#define WAIT (MPI_Fint *request, MPI_Fint *status, MPI_Fint *error)

void kasuri_mpi_wait WAIT
{
    MPI_Status room, *told = status_of(status, &room);
    MPI_Request waited = PMPI_Request_f2c(*request);
    answer(error, MPI_Wait(&waited, told));
    *request = PMPI_Request_c2f(waited);
    tell(told, status);
}

NAMES(mpi_wait, MPI_WAIT, MPI_Wait, WAIT);

#define WAITALL (MPI_Fint *count, MPI_Fint *requests, MPI_Fint *statuses, MPI_Fint *error)

void kasuri_mpi_waitall WAITALL
{
    const int is_told = special(statuses, "mpi_fortran_statuses_ignore_", NULL) != NULL, words = sizeof(MPI_Status) / sizeof(MPI_Fint);
    const size_t many = *count > 0 ? (size_t)*count : 1;
    MPI_Request *waited = malloc(many * sizeof *waited);
    MPI_Status *told = malloc(many * sizeof *told);
    int result = MPI_ERR_NO_MEM;
    if (waited && told) {
        for (int i = 0; i < *count; i++)
            waited[i] = PMPI_Request_f2c(requests[i]);
        result = MPI_Waitall(*count, waited, told);
        for (int i = 0; i < *count; i++) {
            requests[i] = PMPI_Request_c2f(waited[i]);
            if (is_told)
                tell(&told[i], statuses + i * words);
        }
    }
    free(waited);
    free(told);
    answer(error, result);
}

NAMES(mpi_waitall, MPI_WAITALL, MPI_Waitall, WAITALL);

#endif
