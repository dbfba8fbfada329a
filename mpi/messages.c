/* Single sends and receives, recorded in the trace; they are the MPI library's own. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "own.h"
#include "trace.h"
#include "waits.h"

static MPI_Count bytes_of(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS)
        return 0;
    return count * size;
}

/* Is the call recorded? A communicator that is wrong is for the library to complain of. */
static int enter(MPI_Comm comm)
{
    return kasuri_trace_is_on() && comm != MPI_COMM_NULL && kasuri_trace_enter(comm);
}

#define SEND(name, count_type)                                                                                                             \
    int MPI_##name(const void *buffer, count_type count, MPI_Datatype type, int to, int tag, MPI_Comm comm)                                \
    {                                                                                                                                      \
        if (enter(comm))                                                                                                                   \
            kasuri_trace_own_send(to, bytes_of(count, type), tag);                                                                         \
        const int error = PMPI_##name(buffer, count, type, to, tag, comm);                                                                 \
        kasuri_trace_leave();                                                                                                              \
        return error;                                                                                                                      \
    }

SEND(Send, int)
SEND(Ssend, int)
SEND(Bsend, int)
SEND(Rsend, int)

#define START_SEND(name, count_type)                                                                                                       \
    int MPI_##name(const void *buffer, count_type count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)          \
    {                                                                                                                                      \
        const int is_recorded = enter(comm);                                                                                               \
        const int error = PMPI_##name(buffer, count, type, to, tag, comm, request);                                                        \
        if (is_recorded && error == MPI_SUCCESS)                                                                                           \
            kasuri_trace_start_send(to, bytes_of(count, type), tag, *request);                                                             \
        kasuri_trace_leave();                                                                                                              \
        return error;                                                                                                                      \
    }

START_SEND(Isend, int)
START_SEND(Issend, int)
START_SEND(Ibsend, int)
START_SEND(Irsend, int)

/* Receives and exchanges, with counts of either width. */
#define RECEIVES(suffix, count_type)                                                                                                       \
    int MPI_Recv##suffix(void *buffer, count_type count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)          \
    {                                                                                                                                      \
        MPI_Status mine, *told = status == MPI_STATUS_IGNORE ? &mine : status;                                                             \
        const int is_recorded = enter(comm);                                                                                               \
        const int error = PMPI_Recv##suffix(buffer, count, type, from, tag, comm, told);                                                   \
        if (is_recorded && error == MPI_SUCCESS)                                                                                           \
            kasuri_trace_own_receive(told);                                                                                                \
        kasuri_trace_leave();                                                                                                              \
        return error;                                                                                                                      \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Irecv##suffix(void *buffer, count_type count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)       \
    {                                                                                                                                      \
        const int is_recorded = enter(comm);                                                                                               \
        const int error = PMPI_Irecv##suffix(buffer, count, type, from, tag, comm, request);                                               \
        if (is_recorded && error == MPI_SUCCESS)                                                                                           \
            kasuri_trace_start_receive(comm, *request);                                                                                    \
        kasuri_trace_leave();                                                                                                              \
        return error;                                                                                                                      \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Sendrecv##suffix(const void *sendbuf, count_type sendcount, MPI_Datatype sendtype, int to, int sendtag,                        \
                 void *recvbuf, count_type recvcount,                                                                                      \
                     MPI_Datatype recvtype, int from, int recvtag, MPI_Comm comm, MPI_Status *status)                                      \
    {                                                                                                                                      \
        MPI_Status mine, *told = status == MPI_STATUS_IGNORE ? &mine : status;                                                             \
        const int is_recorded = enter(comm);                                                                                               \
        if (is_recorded)                                                                                                                   \
            kasuri_trace_own_send(to, bytes_of(sendcount, sendtype), sendtag);                                                             \
        const int error =                                                                                                                  \
            PMPI_Sendrecv##suffix(sendbuf, sendcount, sendtype, to, sendtag, recvbuf, recvcount, recvtype, from, recvtag, comm, told);     \
        if (is_recorded && error == MPI_SUCCESS)                                                                                           \
            kasuri_trace_own_receive(told);                                                                                                \
        kasuri_trace_leave();                                                                                                              \
        return error;                                                                                                                      \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Sendrecv_replace##suffix(void *buffer, count_type count, MPI_Datatype type, int to, int sendtag, int from,                     \
                 int recvtag, MPI_Comm comm,                                                                                               \
                             MPI_Status *status)                                                                                           \
    {                                                                                                                                      \
        MPI_Status mine, *told = status == MPI_STATUS_IGNORE ? &mine : status;                                                             \
        const int is_recorded = enter(comm);                                                                                               \
        if (is_recorded)                                                                                                                   \
            kasuri_trace_own_send(to, bytes_of(count, type), sendtag);                                                                     \
        const int error = PMPI_Sendrecv_replace##suffix(buffer, count, type, to, sendtag, from, recvtag, comm, told);                      \
        if (is_recorded && error == MPI_SUCCESS)                                                                                           \
            kasuri_trace_own_receive(told);                                                                                                \
        kasuri_trace_leave();                                                                                                              \
        return error;                                                                                                                      \
    }

RECEIVES(, int)

/* From MPI 4 on; mpi4py calls these. */
#if MPI_VERSION >= 4
SEND(Send_c, MPI_Count)
SEND(Ssend_c, MPI_Count)
SEND(Bsend_c, MPI_Count)
SEND(Rsend_c, MPI_Count)
START_SEND(Isend_c, MPI_Count)
START_SEND(Issend_c, MPI_Count)
START_SEND(Ibsend_c, MPI_Count)
START_SEND(Irsend_c, MPI_Count)
RECEIVES(_c, MPI_Count)
#endif

/* Requests as they were before a call, statuses of our own, and which have ended: in the order of the requests. */
struct waiting {
    int count;
    double begin;
    MPI_Request *requests;
    MPI_Status *statuses;
    int *ended;
};

/* Fails where nothing is recorded. */
static int begin_wait(struct waiting *waiting, int count, const MPI_Request *requests)
{
    memset(waiting, 0, sizeof *waiting);
    if (!kasuri_trace_is_on() || count <= 0)
        return 0;
    waiting->count = count;
    waiting->begin = PMPI_Wtime();
    waiting->requests = malloc((size_t)count * sizeof *waiting->requests);
    waiting->statuses = malloc((size_t)count * sizeof *waiting->statuses);
    waiting->ended = calloc((size_t)count, sizeof *waiting->ended);
    if (!waiting->requests || !waiting->statuses || !waiting->ended) {
        free(waiting->requests);
        free(waiting->statuses);
        free(waiting->ended);
        return 0;
    }
    memcpy(waiting->requests, requests, (size_t)count * sizeof *requests);
    return 1;
}

static void end_wait(struct waiting *waiting, int error)
{
    if (error == MPI_SUCCESS)
        kasuri_trace_end(waiting->requests, waiting->statuses, waiting->ended, waiting->count, waiting->begin);
    free(waiting->requests);
    free(waiting->statuses);
    free(waiting->ended);
}

/* One request, of which `is_done` says whether it has ended. */
static void end_one(struct waiting *waiting, int at, int is_done, MPI_Status *told, int error)
{
    if (error == MPI_SUCCESS && is_done && at >= 0 && at < waiting->count) {
        waiting->ended[at] = 1;
        waiting->statuses[at] = *told;
    }
    end_wait(waiting, error);
}

/* All requests, if they have ended. */
static void end_all(struct waiting *waiting, int is_done, MPI_Status *statuses, int error)
{
    for (int i = 0; i < waiting->count; i++)
        waiting->ended[i] = is_done;
    if (statuses != MPI_STATUSES_IGNORE && is_done)
        memcpy(waiting->statuses, statuses, (size_t)waiting->count * sizeof *statuses);
    end_wait(waiting, error);
}

/* Those that are listed; their statuses stand in the order of the list. */
static void end_some(struct waiting *waiting, int count, const int *indices, const MPI_Status *told, MPI_Status *statuses, int error)
{
    for (int i = 0; error == MPI_SUCCESS && i < count; i++) {
        waiting->ended[indices[i]] = 1;
        waiting->statuses[indices[i]] = told[i];
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[i] = told[i];
    }
    end_wait(waiting, error);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct waiting waiting;
    if (!begin_wait(&waiting, 1, request))
        return kasuri_wait_Wait(request, status);
    MPI_Status mine, *told = status == MPI_STATUS_IGNORE ? &mine : status;
    const int error = kasuri_wait_Wait(request, told);
    end_one(&waiting, 0, 1, told, error);
    return error;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct waiting waiting;
    if (!begin_wait(&waiting, 1, request))
        return PMPI_Test(request, flag, status);
    MPI_Status mine, *told = status == MPI_STATUS_IGNORE ? &mine : status;
    const int error = PMPI_Test(request, flag, told);
    end_one(&waiting, 0, *flag, told, error);
    return error;
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct waiting waiting;
    if (!begin_wait(&waiting, count, requests))
        return kasuri_wait_Waitany(count, requests, index, status);
    MPI_Status mine, *told = status == MPI_STATUS_IGNORE ? &mine : status;
    const int error = kasuri_wait_Waitany(count, requests, index, told);
    end_one(&waiting, *index, *index != MPI_UNDEFINED, told, error);
    return error;
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct waiting waiting;
    if (!begin_wait(&waiting, count, requests))
        return PMPI_Testany(count, requests, index, flag, status);
    MPI_Status mine, *told = status == MPI_STATUS_IGNORE ? &mine : status;
    const int error = PMPI_Testany(count, requests, index, flag, told);
    end_one(&waiting, *index, *flag && *index != MPI_UNDEFINED, told, error);
    return error;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct waiting waiting;
    if (!begin_wait(&waiting, count, requests))
        return kasuri_wait_Waitall(count, requests, statuses);
    MPI_Status *told = statuses == MPI_STATUSES_IGNORE ? waiting.statuses : statuses;
    const int error = kasuri_wait_Waitall(count, requests, told);
    end_all(&waiting, 1, statuses, error);
    return error;
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct waiting waiting;
    if (!begin_wait(&waiting, count, requests))
        return PMPI_Testall(count, requests, flag, statuses);
    MPI_Status *told = statuses == MPI_STATUSES_IGNORE ? waiting.statuses : statuses;
    const int error = PMPI_Testall(count, requests, flag, told);
    end_all(&waiting, *flag, statuses, error);
    return error;
}

#define SOME(name, passed)                                                                                                                 \
    int MPI_##name(int count, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])                                 \
    {                                                                                                                                      \
        struct waiting waiting;                                                                                                            \
        MPI_Status *told = kasuri_trace_is_on() && count > 0 ? malloc((size_t)count * sizeof *told) : NULL;                                \
        if (!told || !begin_wait(&waiting, count, requests)) {                                                                             \
            free(told);                                                                                                                    \
            return passed(count, requests, outcount, indices, statuses);                                                                   \
        }                                                                                                                                  \
        const int error = passed(count, requests, outcount, indices, told);                                                                \
        end_some(&waiting, *outcount == MPI_UNDEFINED ? 0 : *outcount, indices, told, statuses, error);                                    \
        free(told);                                                                                                                        \
        return error;                                                                                                                      \
    }

SOME(Waitsome, kasuri_wait_Waitsome)
SOME(Testsome, PMPI_Testsome)

KASURI_TAKES(Wait);
KASURI_TAKES(Waitany);
KASURI_TAKES(Waitall);
KASURI_TAKES(Waitsome);
