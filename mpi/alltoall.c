/* MPI_Alltoall and MPI_Alltoallv by the phases of a schedule, in place of the MPI library's own. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan.h"
#include "trace.h"

/* Messages of schedules have a communicator of their own, so one tag will do. */
enum { TAG = 1 };

static unsigned long long scheduled, left;

/* How many calls have gone by a schedule. For tests. */
unsigned long long kasuri_alltoall_scheduled(void)
{
    return scheduled;
}

void kasuri_report(void)
{
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (getenv("KASURI_MPI_REPORT") && rank == 0)
        fprintf(stderr, "kasuri: all-to-alls of rank 0: %llu by the schedule, %llu by the MPI library\n", scheduled, left);
}

/* The messages that a call sends or receives, one for each rank of its communicator. */
struct blocks {
    char *buffer;
    MPI_Datatype type;
    /* Extent of an element and its size, in bytes. */
    MPI_Aint extent;
    MPI_Count size;
    /* Elements for each rank: `count`, or `counts` with `displacements` in elements or `offsets` in bytes. */
    int count;
    const int *counts;
    const int *displacements;
    const MPI_Aint *offsets;
};

static int count_of(const struct blocks *blocks, int rank)
{
    return blocks->counts ? blocks->counts[rank] : blocks->count;
}

static MPI_Count bytes_of(const struct blocks *blocks, int rank)
{
    return count_of(blocks, rank) * blocks->size;
}

static char *address(const struct blocks *blocks, int rank)
{
    if (blocks->offsets)
        return blocks->buffer + blocks->offsets[rank];
    const MPI_Aint elements = blocks->counts ? blocks->displacements[rank] : (MPI_Aint)blocks->count * rank;
    return blocks->buffer + elements * blocks->extent;
}

/* Does MPI know the type? */
static int measure(struct blocks *blocks)
{
    MPI_Aint low;
    return blocks->type != MPI_DATATYPE_NULL && PMPI_Type_get_extent(blocks->type, &low, &blocks->extent) == MPI_SUCCESS &&
           PMPI_Type_size_x(blocks->type, &blocks->size) == MPI_SUCCESS;
}

/* The longest message that a schedule sends, in bytes. */
static MPI_Count limit(void)
{
    const char *text = getenv("KASURI_MPI_MAX_BYTES");
    const long long asked = text ? atoll(text) : INT_MAX;
    return asked > 0 && asked < INT_MAX ? asked : INT_MAX;
}

/* Are the counts right, and no message too long? */
enum verdict { GOES, LONG, WRONG };

static enum verdict judge(const struct blocks *blocks, int size)
{
    const MPI_Count most = limit();
    enum verdict verdict = GOES;
    for (int rank = 0; rank < (blocks->counts ? size : 1); rank++) {
        if (count_of(blocks, rank) < 0)
            return WRONG;
        if (bytes_of(blocks, rank) > most)
            verdict = LONG;
    }
    return verdict;
}

/* The first real error among those of a phase. */
static int first_error(int error, const MPI_Status *statuses, int count)
{
    int class = error;
    PMPI_Error_class(error, &class);
    for (int i = 0; class == MPI_ERR_IN_STATUS && i < count; i++)
        if (statuses[i].MPI_ERROR != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_ERR_PENDING)
            return statuses[i].MPI_ERROR;
    return error;
}

/* One phase. `can_go_on` is cleared if a message could not be sent or awaited: then neither can the others. */
static int run_step(const struct kasuri_plan *plan, struct kasuri_step step, const struct blocks *out, const struct blocks *in,
                    int *can_go_on)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int count = 0, error = MPI_SUCCESS;
    if (step.from != MPI_PROC_NULL && bytes_of(in, step.from) > 0) {
        error = PMPI_Irecv(address(in, step.from), count_of(in, step.from), in->type, step.from, TAG, plan->messages, &requests[count]);
        count += error == MPI_SUCCESS;
    }
    if (error == MPI_SUCCESS && step.to != MPI_PROC_NULL && bytes_of(out, step.to) > 0) {
        error = PMPI_Isend(address(out, step.to), count_of(out, step.to), out->type, step.to, TAG, plan->messages, &requests[count]);
        count += error == MPI_SUCCESS;
    }
    if (error != MPI_SUCCESS) {
        *can_go_on = 0;
        if (count > 0) {
            PMPI_Cancel(&requests[0]);
            PMPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        }
        return error;
    }
    return first_error(PMPI_Waitall(count, requests, statuses), statuses, count);
}

/* The message to oneself, unless it stays in place, and the phases. The phases go on after a message that was longer than awaited:
 * the other ranks need theirs. */
static int run(const struct kasuri_plan *plan, const struct blocks *out, const struct blocks *in, int is_in_place)
{
    const int self = plan->rank;
    int result = MPI_SUCCESS, can_go_on = 1;
    if (!is_in_place)
        result = PMPI_Sendrecv(address(out, self), count_of(out, self), out->type, self, TAG, address(in, self), count_of(in, self),
                               in->type, self, TAG, plan->messages, MPI_STATUS_IGNORE);
    for (int i = 0; i < plan->steps && can_go_on; i++) {
        const int error = run_step(plan, plan->step[i], out, in, &can_go_on);
        if (result == MPI_SUCCESS)
            result = error;
    }
    return result;
}

/* Fills in counts and offsets of a packed copy of the blocks; the bytes are allocated here. */
static int pack(const struct kasuri_plan *plan, const struct blocks *in, struct blocks *copy, int *counts, MPI_Aint *offsets)
{
    MPI_Aint total = 0;
    int error = MPI_SUCCESS;
    for (int rank = 0; rank < plan->size && error == MPI_SUCCESS; rank++) {
        error = PMPI_Pack_size(count_of(in, rank), in->type, plan->messages, &counts[rank]);
        offsets[rank] = total;
        total += counts[rank];
    }
    if (error != MPI_SUCCESS)
        return error;
    copy->buffer = malloc((size_t)total + 1);
    if (!copy->buffer)
        return MPI_ERR_NO_MEM;
    for (int rank = 0; rank < plan->size && error == MPI_SUCCESS; rank++) {
        int position = 0;
        error = PMPI_Pack(address(in, rank), count_of(in, rank), in->type, address(copy, rank), counts[rank], &position, plan->messages);
        counts[rank] = position;
    }
    return error;
}

/* In place, what arrives would overwrite what is still to be sent: a packed copy is sent. */
static int run_in_place(const struct kasuri_plan *plan, const struct blocks *in)
{
    int *counts = calloc((size_t)plan->size, sizeof *counts);
    MPI_Aint *offsets = calloc((size_t)plan->size, sizeof *offsets);
    struct blocks copy = {.type = MPI_PACKED, .extent = 1, .size = 1, .counts = counts, .offsets = offsets};
    int error = counts && offsets ? pack(plan, in, &copy, counts, offsets) : MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS)
        error = run(plan, &copy, in, 1);
    free(counts);
    free(offsets);
    free(copy.buffer);
    return error;
}

/* Writes the messages of a call: by phases, or all at once where the library has done it. */
static void trace(MPI_Comm comm, const struct kasuri_plan *plan, const struct blocks *out, const struct blocks *in)
{
    int size, self;
    if (!kasuri_trace_enter(comm))
        return;
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &self);
    for (int i = 0; i < (plan ? plan->steps : size - 1); i++) {
        const struct kasuri_step shift = {(self + i + 1) % size, (self + size - i - 1) % size};
        const struct kasuri_step step = plan ? plan->step[i] : shift;
        if (step.to != MPI_PROC_NULL)
            kasuri_trace_send(step.to, bytes_of(out, step.to));
        if (step.from != MPI_PROC_NULL)
            kasuri_trace_receive(step.from, bytes_of(in, step.from));
        if (plan)
            kasuri_trace_stage();
    }
}

/* Runs a call by the schedule. `took` tells whether it has: else the library's own must. */
static int call(MPI_Comm comm, struct blocks out, struct blocks in, int is_in_place, int *took)
{
    *took = 0;
    if (comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    const struct kasuri_plan *plan = kasuri_plan_of(comm);
    int size = 0;
    PMPI_Comm_size(comm, &size);
    int is_known = measure(&in) && (is_in_place || measure(&out));
    if (is_in_place)
        out = in;
    int verdict = WRONG;
    if (is_known) {
        verdict = judge(&in, size);
        const int other = judge(&out, size);
        verdict = verdict > other ? verdict : other;
    }
    /* The ranks of an MPI_Alltoall see the same length; those of an MPI_Alltoallv must agree. */
    if (plan && in.counts)
        PMPI_Allreduce(MPI_IN_PLACE, &verdict, 1, MPI_INT, MPI_MAX, plan->messages);
    if (plan && verdict == LONG) {
        char reason[128];
        snprintf(reason, sizeof reason, "a message is longer than %lld bytes, which a schedule does not send", (long long)limit());
        kasuri_say(plan->rank, reason);
    }
    if (verdict != GOES)
        plan = NULL;
    if (verdict != WRONG)
        trace(comm, plan, &out, &in);
    if (!plan)
        return MPI_SUCCESS;
    *took = 1;
    scheduled++;
    const int error = is_in_place ? run_in_place(plan, &in) : run(plan, &out, &in, 0);
    if (error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, error);
    return error;
}

int MPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                 MPI_Comm comm)
{
    const struct blocks out = {.buffer = (char *)sendbuf, .type = sendtype, .count = sendcount};
    const struct blocks in = {.buffer = recvbuf, .type = recvtype, .count = recvcount};
    int took;
    int error = call(comm, out, in, sendbuf == MPI_IN_PLACE, &took);
    left += !took;
    if (!took)
        error = PMPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    kasuri_trace_leave();
    return error;
}

int MPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                  const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    const struct blocks out = {.buffer = (char *)sendbuf, .type = sendtype, .counts = sendcounts, .displacements = sdispls};
    const struct blocks in = {.buffer = recvbuf, .type = recvtype, .counts = recvcounts, .displacements = rdispls};
    const int is_in_place = sendbuf == MPI_IN_PLACE;
    int took = 0, error = MPI_SUCCESS;
    if (recvcounts && rdispls && (is_in_place || (sendcounts && sdispls)))
        error = call(comm, out, in, is_in_place, &took);
    left += !took;
    if (!took)
        error = PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
    kasuri_trace_leave();
    return error;
}
