/* MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw by the phases of a schedule, in place of the MPI library's own. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "blocks.h"
#include "measure.h"
#include "own.h"
#include "plan.h"
#include "trace.h"

/* The ranks tell each other the longest of their blocks at the first two all-to-alls of blocks of their own lengths, and after so many. */
enum { TELL_EVERY = 64 };

/* A call. */
struct call {
    MPI_Comm comm;
    /* NULL where the MPI library's own is used. */
    struct kasuri_plan *plan;
    struct kasuri_blocks out, in;
    int is_in_place;
    /* Where each rank has a type of its own: room for the sizes of those that come and that go. */
    MPI_Count *sizes;
    /* Do the ranks of a place share its messages? */
    int is_gathered;
    /* Do the ranks tell each other the longest of their blocks? */
    int tells;
    /* Where both ways are tried: what is known of calls like it. And when it began. */
    struct kasuri_choice *choice;
    double begin;
};

/* The bytes by which it is decided how a call goes: the same on all ranks. Those of an MPI_Alltoall have the same length. Those of an
 * MPI_Alltoallv tell each other theirs, or go by what they told each other last. */
static MPI_Count common_bytes(const struct call *call, MPI_Count most)
{
    struct kasuri_plan *plan = call->plan;
    if (!kasuri_is_list(&call->in))
        return most;
    if (call->tells) {
        long long mine = most, all = 0;
        PMPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_MAX, plan->messages);
        plan->longest = all;
    }
    return plan->longest;
}

/* Is the call one for the schedule? Fills in `choice` where both ways are tried. */
static int goes_by_schedule(struct call *call, MPI_Count bytes)
{
    struct kasuri_plan *plan = call->plan;
    if (bytes > plan->most) {
        char reason[128];
        snprintf(reason, sizeof reason, "a message is longer than %lld bytes, which a schedule does not send", (long long)plan->most);
        kasuri_say(KASURI_ALLTOALL, reason);
        return 0;
    }
    const MPI_Count pairs = (MPI_Count)plan->groups.most * plan->groups.most;
    call->is_gathered =
        plan->node != MPI_COMM_NULL && !kasuri_is_list(&call->in) && bytes > 0 && bytes < plan->gathered && bytes <= plan->most / pairs;
    if ((call->is_gathered ? bytes * pairs : bytes) < plan->least)
        return 0;
    if (!plan->is_tried)
        return 1;
    call->choice = &plan->choices[2 * kasuri_is_list(&call->in) + call->is_in_place][kasuri_length(bytes)];
    return kasuri_choose(call->choice);
}

/* Writes the messages of a call: by phases, or all at once where the library does it. */
static void trace(const struct call *call)
{
    const struct kasuri_plan *plan = call->plan;
    int size, self;
    if (!kasuri_trace_enter(call->comm))
        return;
    PMPI_Comm_size(call->comm, &size);
    PMPI_Comm_rank(call->comm, &self);
    for (int i = 0; i < (plan ? plan->steps : size - 1); i++) {
        const struct kasuri_step shift = {(self + i + 1) % size, (self + size - i - 1) % size};
        const struct kasuri_step step = plan ? plan->step[i] : shift;
        if (step.to != MPI_PROC_NULL)
            kasuri_trace_send(step.to, kasuri_bytes(&call->out, step.to));
        if (step.from != MPI_PROC_NULL)
            kasuri_trace_receive(step.from, kasuri_bytes(&call->in, step.from));
        if (plan && kasuri_waits(plan, step, &call->out, &call->in))
            kasuri_trace_stage();
    }
}

/* Counts a call. The numbers are the same on all ranks, so all tell each other the longest of their blocks at the same calls: not at each,
 * for that costs as much as a call of short messages. In place, all must know. */
static void count(struct call *call, struct kasuri_plan *plan)
{
    plan->calls++;
    if (!kasuri_is_list(&call->in))
        return;
    const unsigned number = plan->vectors++;
    call->tells = call->is_in_place;
    if (number == plan->tells_at) {
        call->tells = 1;
        plan->tells_at = number == 0 ? 1 : number - number % TELL_EVERY + TELL_EVERY;
    }
}

/* Decides how a call goes. Where anything is wrong with it, it is the MPI library's, which says so as it would without us. */
static void decide(struct call *call)
{
    MPI_Count sent = 0, received = 0;
    int size = 0, is_between = 0;
    struct kasuri_plan *plan = call->comm == MPI_COMM_NULL ? NULL : kasuri_plan_of(call->comm, KASURI_ALLTOALL);
    if (call->comm == MPI_COMM_NULL || (!plan && !kasuri_trace_is_on()))
        return;
    if (plan) {
        count(call, plan);
        size = plan->size;
    } else if (PMPI_Comm_test_inter(call->comm, &is_between) != MPI_SUCCESS || is_between ||
               PMPI_Comm_size(call->comm, &size) != MPI_SUCCESS) {
        return;
    }
    if (!kasuri_measure(&call->in, size, call->sizes, &received) ||
        (!call->is_in_place && !kasuri_measure(&call->out, size, call->sizes ? call->sizes + size : NULL, &sent)))
        return;
    if (call->is_in_place)
        call->out = call->in;
    call->plan = plan;
    if (plan && kasuri_is_refused_alias(&call->out, &call->in, call->is_in_place))
        call->plan = NULL;
    if (call->plan && !goes_by_schedule(call, common_bytes(call, received > sent ? received : sent)))
        call->plan = NULL;
    trace(call);
    if (call->choice)
        call->begin = PMPI_Wtime();
}

/* Is a call the MPI library's by its length alone? It may take less than a microsecond among the cores of a machine, and would take a
 * tenth longer if it were looked at as the others are. */
static int is_short(MPI_Comm comm, MPI_Count number, MPI_Datatype type)
{
    struct kasuri_plan *plan = comm == MPI_COMM_NULL ? NULL : kasuri_plan_of(comm, KASURI_ALLTOALL);
    if (!plan)
        return !kasuri_trace_is_on();
    const MPI_Count size = kasuri_last_size(type);
    if (size < 0 || number * size >= plan->least_seen)
        return 0;
    plan->calls++;
    return 1;
}

/* The same for blocks of their own lengths, by what the ranks have told each other last. */
static int are_short(MPI_Comm comm, const void *sendbuf)
{
    struct kasuri_plan *plan = comm == MPI_COMM_NULL ? NULL : kasuri_plan_of(comm, KASURI_ALLTOALL);
    if (!plan)
        return !kasuri_trace_is_on();
    if (sendbuf == MPI_IN_PLACE || plan->vectors == plan->tells_at || plan->longest >= plan->least_list_seen)
        return 0;
    plan->calls++;
    plan->vectors++;
    return 1;
}

/* Runs a call by the schedule, if it goes so. */
static int run(const struct call *call)
{
    kasuri_calls[KASURI_ALLTOALL].scheduled++;
    kasuri_calls[KASURI_ALLTOALL].gathered += (unsigned long long)call->is_gathered;
    int error;
    if (call->is_in_place)
        error = kasuri_run_in_place(call->plan, &call->in, call->is_gathered ? kasuri_run_gathered : kasuri_run_steps);
    else
        error = (call->is_gathered ? kasuri_run_gathered : kasuri_run)(call->plan, &call->out, &call->in);
    if (error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, error);
    return error;
}

static void end(const struct call *call)
{
    if (call->choice)
        kasuri_learn(call->choice, call->comm, PMPI_Wtime() - call->begin);
    kasuri_trace_leave();
}

/* The body of a call: by the schedule, or else by `own`, the MPI library's. */
#define CALL(call, own)                                                                                                                    \
    do {                                                                                                                                   \
        int error;                                                                                                                         \
        decide(&(call));                                                                                                                   \
        if ((call).plan) {                                                                                                                 \
            error = run(&(call));                                                                                                          \
        } else {                                                                                                                           \
            kasuri_calls[KASURI_ALLTOALL].left++;                                                                                          \
            error = own;                                                                                                                   \
        }                                                                                                                                  \
        end(&(call));                                                                                                                      \
        return error;                                                                                                                      \
    } while (0)

#define ALLTOALL(name, count_type)                                                                                                         \
    int MPI_##name(const void *sendbuf, count_type sendcount, MPI_Datatype sendtype, void *recvbuf, count_type recvcount,                  \
                   MPI_Datatype recvtype, MPI_Comm comm)                                                                                   \
    {                                                                                                                                      \
        if (is_short(comm, recvcount, recvtype)) {                                                                                         \
            kasuri_calls[KASURI_ALLTOALL].left++;                                                                                          \
            return PMPI_##name(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);                                          \
        }                                                                                                                                  \
        struct call call = {.comm = comm,                                                                                                  \
                            .out = {.buffer = (char *)sendbuf, .type = sendtype, .count = sendcount},                                      \
                            .in = {.buffer = recvbuf, .type = recvtype, .count = recvcount},                                               \
                            .is_in_place = sendbuf == MPI_IN_PLACE};                                                                       \
        CALL(call, PMPI_##name(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));                                         \
    }

#define ALLTOALLV(name, count_type, place_type, width)                                                                                     \
    int MPI_##name(const void *sendbuf, const count_type sendcounts[], const place_type sdispls[], MPI_Datatype sendtype, void *recvbuf,   \
                   const count_type recvcounts[], const place_type rdispls[], MPI_Datatype recvtype, MPI_Comm comm)                        \
    {                                                                                                                                      \
        const int is_whole = recvcounts && rdispls && (sendbuf == MPI_IN_PLACE || (sendcounts && sdispls));                                \
        if (!is_whole || are_short(comm, sendbuf)) {                                                                                       \
            kasuri_calls[KASURI_ALLTOALL].left++;                                                                                          \
            return PMPI_##name(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);                      \
        }                                                                                                                                  \
        struct call call = {                                                                                                               \
            .comm = comm,                                                                                                                  \
            .out = {.buffer = (char *)sendbuf, .type = sendtype, .width##counts = sendcounts, .width##displacements = sdispls},            \
            .in = {.buffer = recvbuf, .type = recvtype, .width##counts = recvcounts, .width##displacements = rdispls},                     \
            .is_in_place = sendbuf == MPI_IN_PLACE};                                                                                       \
        CALL(call, PMPI_##name(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm));                     \
    }

/* Displacements in bytes, and room for the sizes of types: of what comes, then of what goes. NULL where the MPI library should see to it.
 */
struct places {
    MPI_Aint *in, *out;
    MPI_Count *sizes;
};

static int make_places(MPI_Comm comm, struct places *places, int *size)
{
    *places = (struct places){0};
    if (comm == MPI_COMM_NULL || !(kasuri_plan_of(comm, KASURI_ALLTOALL) || kasuri_trace_is_on()) ||
        PMPI_Comm_size(comm, size) != MPI_SUCCESS)
        return 0;
    places->in = malloc(2 * (size_t)*size * sizeof *places->in);
    places->sizes = malloc(2 * (size_t)*size * sizeof *places->sizes);
    places->out = places->in ? places->in + *size : NULL;
    return places->in && places->sizes;
}

static void free_places(const struct places *places)
{
    free(places->in);
    free(places->sizes);
}

#define ALLTOALLW(name, count_type, place_type, width)                                                                                     \
    static int run_##name(struct call call, const void *sendbuf, const count_type sendcounts[], const place_type sdispls[],                \
                          const MPI_Datatype sendtypes[], void *recvbuf, const count_type recvcounts[], const place_type rdispls[],        \
                          const MPI_Datatype recvtypes[], MPI_Comm comm)                                                                   \
    {                                                                                                                                      \
        CALL(call, PMPI_##name(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm));                   \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_##name(const void *sendbuf, const count_type sendcounts[], const place_type sdispls[], const MPI_Datatype sendtypes[],         \
                   void *recvbuf, const count_type recvcounts[], const place_type rdispls[], const MPI_Datatype recvtypes[],               \
                   MPI_Comm comm)                                                                                                          \
    {                                                                                                                                      \
        const int is_in_place = sendbuf == MPI_IN_PLACE;                                                                                   \
        const int is_whole = recvcounts && rdispls && recvtypes && (is_in_place || (sendcounts && sdispls && sendtypes));                  \
        struct places places;                                                                                                              \
        int size = 0, error;                                                                                                               \
        if (!is_whole || are_short(comm, sendbuf) || !make_places(comm, &places, &size)) {                                                 \
            kasuri_calls[KASURI_ALLTOALL].left++;                                                                                          \
            return PMPI_##name(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);                    \
        }                                                                                                                                  \
        for (int i = 0; i < size; i++) {                                                                                                   \
            places.in[i] = rdispls[i];                                                                                                     \
            places.out[i] = is_in_place ? 0 : sdispls[i];                                                                                  \
        }                                                                                                                                  \
        struct call call = {.comm = comm,                                                                                                  \
                            .out = {.buffer = (char *)sendbuf, .types = sendtypes, .width##counts = sendcounts, .offsets = places.out},    \
                            .in = {.buffer = recvbuf, .types = recvtypes, .width##counts = recvcounts, .offsets = places.in},              \
                            .is_in_place = is_in_place,                                                                                    \
                            .sizes = places.sizes};                                                                                        \
        error = run_##name(call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm);                  \
        free_places(&places);                                                                                                              \
        return error;                                                                                                                      \
    }

ALLTOALL(Alltoall, int)
ALLTOALLV(Alltoallv, int, int, )
ALLTOALLW(Alltoallw, int, int, )

KASURI_TAKES(Alltoall);
KASURI_TAKES(Alltoallv);
KASURI_TAKES(Alltoallw);

/* From MPI 4 on with long counts, too: mpi4py calls these. */
#if MPI_VERSION >= 4
ALLTOALL(Alltoall_c, MPI_Count)
ALLTOALLV(Alltoallv_c, MPI_Count, MPI_Aint, long_)
ALLTOALLW(Alltoallw_c, MPI_Count, MPI_Aint, long_)
KASURI_TAKES(Alltoall_c);
KASURI_TAKES(Alltoallv_c);
KASURI_TAKES(Alltoallw_c);
#endif
