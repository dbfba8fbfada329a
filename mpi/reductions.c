/* MPI_Allreduce, MPI_Reduce_scatter, MPI_Reduce_scatter_block and MPI_Allgather by the phases of a schedule, in place of the MPI library's
 * own; and those that do not wait, in the background.
 *
 * Where several ranks share a place of the schedule, the MPI library reduces or gathers among them, the first of them goes through the
 * phases, and the library spreads the result. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "background.h"
#include "collectives.h"
#include "own.h"
#include "plan.h"
#include "rounds.h"
#include "trace.h"

/* Memory of a call that is kept for the next, at most. */
enum { KEPT = 1 << 26 };

/* A call. */
struct call {
    enum kasuri_collective collective;
    MPI_Comm comm;
    /* NULL where the MPI library's own is used. */
    struct kasuri_plan *plan;
    const void *sendbuf;
    void *recvbuf;
    int is_in_place;
    /* Of an all-gather, what is sent. */
    MPI_Count sendcount;
    MPI_Datatype sendtype;
    /* Elements: of the whole vector, of each rank's block, or of the blocks of the ranks. */
    MPI_Count count;
    const int *counts;
    const MPI_Count *long_counts;
    MPI_Datatype type;
    MPI_Op op;
    /* What is known of the type, and the elements of all. */
    struct kasuri_vector vector;
    MPI_Count size, total;
    /* Is the type no derived one? */
    int is_named;
    /* Where both ways are tried: what is known of calls like it. And when it began. */
    struct kasuri_choice *choice;
    double begin;
    /* Of its messages. */
    int tag;
};

/* A type of MPI's own and an operation on it that may be done in any order, which never change. Asking the library costs a message of a few
 * bytes a good part of its time. */
struct known {
    MPI_Datatype type;
    MPI_Op op;
    struct kasuri_vector vector;
    MPI_Count size;
    int is_known;
};

static KASURI_OWN_OF_THREAD struct known last_known;

static MPI_Count count_of(const struct call *call, int rank)
{
    if (call->long_counts)
        return call->long_counts[rank];
    return call->counts ? call->counts[rank] : call->count;
}

/* Operations of MPI's own: others may be freed, and their handles come again. */
static int is_own(MPI_Op op)
{
    return op == MPI_SUM || op == MPI_MAX || op == MPI_MIN || op == MPI_PROD || op == MPI_LAND || op == MPI_BAND || op == MPI_LOR ||
           op == MPI_BOR || op == MPI_LXOR || op == MPI_BXOR || op == MPI_MAXLOC || op == MPI_MINLOC;
}

/* Looks at the type and the operation. Fails where the MPI library would not take them, where the order of a reduction may not be changed,
 * and where elements do not follow each other. */
static int measure(struct call *call)
{
    const int adds = call->collective != KASURI_ALLGATHER;
    struct kasuri_vector *vector = &call->vector;
    if (last_known.is_known && call->type == last_known.type && (!adds || call->op == last_known.op)) {
        *vector = last_known.vector;
        call->size = last_known.size;
        call->is_named = 1;
        return 1;
    }
    MPI_Aint low;
    int integers, addresses, types, combiner;
    *vector = (struct kasuri_vector){.type = call->type, .op = call->op};
    if (!kasuri_is_valid(call->type) || (adds && !kasuri_is_commutative(call->op, call->type)) ||
        PMPI_Type_get_extent(call->type, &low, &vector->extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent(call->type, &vector->low, &vector->span) != MPI_SUCCESS ||
        PMPI_Type_size_x(call->type, &call->size) != MPI_SUCCESS || (adds && vector->extent <= 0) || call->size <= 0 ||
        PMPI_Type_get_envelope(call->type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
        return 0;
    call->is_named = combiner == MPI_COMBINER_NAMED;
    vector->is_plain = call->is_named && vector->extent == call->size;
    if (adds && call->is_named && is_own(call->op))
        last_known = (struct known){call->type, call->op, *vector, call->size, 1};
    return 1;
}

/* The elements of all; -1 if a count is wrong. */
static MPI_Count total_of(const struct call *call, int ranks)
{
    MPI_Count total = 0;
    if (call->collective == KASURI_ALLREDUCE)
        return call->count < 0 ? -1 : call->count;
    for (int rank = 0; rank < ranks; rank++) {
        if (count_of(call, rank) < 0 || total > INT_MAX)
            return -1;
        total += count_of(call, rank);
    }
    return total;
}

/* Are these buffers that the MPI library takes? What is wrong with them is for the library to say. */
static int has_buffers(const struct call *call)
{
    const char *own = call->recvbuf;
    /* A rank may get nothing of a reduce-scatter. A derived type may hold addresses; any other needs a buffer. */
    const int receives = call->collective != KASURI_REDUCE_SCATTER || call->is_in_place || count_of(call, call->plan->rank) > 0;
    if (call->recvbuf == MPI_IN_PLACE || (call->is_named && call->total > 0 && ((receives && !call->recvbuf) || !call->sendbuf)))
        return 0;
    if (call->is_in_place)
        return 1;
    if (call->collective == KASURI_ALLGATHER) {
        MPI_Count size = 0;
        own += call->plan->rank * call->count * call->vector.extent;
        if (call->sendcount < 0 || !kasuri_is_valid(call->sendtype) || PMPI_Type_size_x(call->sendtype, &size) != MPI_SUCCESS ||
            size * call->sendcount != call->size * call->count)
            return 0;
    }
    /* MPICH refuses one buffer for both, Open MPI only for the vector of an all-reduce; else they take it for MPI_IN_PLACE. */
#if defined(MPICH) || defined(MPICH_VERSION)
    return call->sendbuf != own || call->total == 0;
#else
    return call->sendbuf != own || call->collective != KASURI_ALLREDUCE || call->total <= 1;
#endif
}

/* Bytes of the longest message of the phases: by the mean part, by which the ranks decide, and by the longest part. */
static void lengths(const struct call *call, MPI_Count *mean, MPI_Count *most)
{
    const struct kasuri_plan *plan = call->plan;
    MPI_Count part = 0;
    if (call->collective == KASURI_ALLREDUCE) {
        part = (call->total + plan->parts - 1) / plan->parts;
        *mean = call->total * call->size / plan->parts * plan->most_parts;
    } else {
        for (int rank = 0; rank < (call->counts || call->long_counts ? plan->size : 1); rank++)
            part = count_of(call, rank) > part ? count_of(call, rank) : part;
        *mean = call->total * call->size / plan->size * plan->groups.most * plan->most_parts;
        part *= plan->groups.most;
    }
    *most = part * call->size * plan->most_parts;
}

/* Is the call one for the schedule? Fills in `choice` where both ways are tried. All ranks have the same answer. */
static int goes_by_schedule(struct call *call)
{
    struct kasuri_plan *plan = call->plan;
    MPI_Count mean = 0, most = 0;
    if (call->total > INT_MAX || call->total > plan->most / call->size * plan->parts)
        most = plan->most + 1;
    else
        lengths(call, &mean, &most);
    if (most > plan->most) {
        char reason[128];
        snprintf(reason, sizeof reason, "a message would be longer than %lld bytes, which a schedule does not send", (long long)plan->most);
        kasuri_say(call->collective, reason);
        return 0;
    }
    if (mean < plan->least)
        return 0;
    if (!plan->is_tried)
        return 1;
    call->choice = &plan->choices[0][kasuri_length(mean)];
    return kasuri_choose(call->choice);
}

/* Decides how a call goes. Where anything is wrong with it, it is the MPI library's, which says so as it would without us. */
static void decide(struct call *call)
{
    struct kasuri_plan *plan = call->comm == MPI_COMM_NULL ? NULL : kasuri_plan_of(call->comm, call->collective);
    if (!plan)
        return;
    plan->calls++;
    call->plan = plan;
    call->tag = kasuri_tag(plan);
    call->total = total_of(call, plan->size);
    if (call->total < 0 || !measure(call) || !has_buffers(call) || !goes_by_schedule(call))
        call->plan = NULL;
    if (call->choice)
        call->begin = PMPI_Wtime();
}

/* Is a call the MPI library's by its length alone? */
static int is_short(MPI_Comm comm, MPI_Count count, MPI_Datatype type, MPI_Op op)
{
    struct kasuri_plan *plan = comm == MPI_COMM_NULL ? NULL : kasuri_plan_of(comm, KASURI_ALLREDUCE);
    if (!plan)
        return !kasuri_trace_is_on();
    if (!last_known.is_known || type != last_known.type || op != last_known.op || count * last_known.size >= plan->least_seen)
        return 0;
    plan->calls++;
    return 1;
}

/* Memory of a plan. NULL if there is none. */
static char *room_of(struct kasuri_plan *plan, size_t bytes)
{
    if (plan->room_bytes < bytes) {
        free(plan->room);
        plan->room = malloc(bytes);
        plan->room_bytes = plan->room ? bytes : 0;
    }
    return plan->room;
}

static void give_back(struct kasuri_plan *plan)
{
    if (plan->room_bytes > KEPT) {
        free(plan->room);
        plan->room = NULL;
        plan->room_bytes = 0;
    }
}

/* From one buffer of this rank to another. */
static int copy(const struct call *call, const void *from, MPI_Count sent, MPI_Datatype type, char *to, MPI_Count received)
{
    if (from == to || received == 0)
        return MPI_SUCCESS;
    if (call->vector.is_plain && type == call->type) {
        memcpy(to, from, (size_t)(received * call->size));
        return MPI_SUCCESS;
    }
    const struct kasuri_plan *plan = call->plan;
    return PMPI_Sendrecv(from, (int)sent, type, plan->rank, call->tag, to, (int)received, call->type, plan->rank, call->tag, plan->messages,
                         MPI_STATUS_IGNORE);
}

/* Does this rank act for its place? */
static int acts(const struct kasuri_plan *plan)
{
    return plan->groups.member[plan->groups.first[plan->groups.place[plan->rank]]] == plan->rank;
}

/* Where the parts of the vector begin, and how long they are: `first` and `count` by part, `before` by rank and one beyond. */
struct cut {
    MPI_Count *first, *count, *before;
};

static int make_cut(const struct call *call, struct cut *cut)
{
    const struct kasuri_plan *plan = call->plan;
    const struct kasuri_groups *groups = &plan->groups;
    cut->first = malloc(((size_t)(2 * plan->parts) + (size_t)plan->size + 1) * sizeof *cut->first);
    if (!cut->first)
        return 0;
    cut->count = cut->first + plan->parts;
    cut->before = cut->count + plan->parts;
    if (call->collective == KASURI_ALLREDUCE) {
        for (int part = 0; part < plan->parts; part++) {
            cut->first[part] = call->count * part / plan->parts;
            cut->count[part] = call->count * (part + 1) / plan->parts - cut->first[part];
        }
        return 1;
    }
    cut->before[0] = 0;
    for (int rank = 0; rank < plan->size; rank++)
        cut->before[rank + 1] = cut->before[rank] + count_of(call, rank);
    /* The ranks of a place follow each other. */
    for (int part = 0; part < plan->parts; part++) {
        const int begin = groups->member[groups->first[part]];
        cut->first[part] = cut->before[begin];
        cut->count[part] = cut->before[begin + kasuri_members(groups, part)] - cut->first[part];
    }
    return 1;
}

static int run_allreduce(struct call *call)
{
    struct kasuri_plan *plan = call->plan;
    struct kasuri_vector *vector = &call->vector;
    const int is_in_place = call->is_in_place || call->sendbuf == call->recvbuf, is_alone = plan->node == MPI_COMM_NULL;
    int error = MPI_SUCCESS;
    vector->buffer = call->recvbuf;
    char *room = room_of(plan, kasuri_bytes_of(vector, kasuri_needs(plan, vector).added));
    if (!room)
        error = MPI_ERR_NO_MEM;
    else if (is_alone && !is_in_place)
        error = copy(call, call->sendbuf, call->count, call->type, call->recvbuf, call->count);
    else if (!is_alone && acts(plan))
        error =
            PMPI_Reduce(is_in_place ? MPI_IN_PLACE : call->sendbuf, call->recvbuf, (int)call->count, call->type, call->op, 0, plan->node);
    else if (!is_alone)
        error = PMPI_Reduce(is_in_place ? call->recvbuf : call->sendbuf, NULL, (int)call->count, call->type, call->op, 0, plan->node);
    if (error == MPI_SUCCESS)
        error = kasuri_run_rounds(plan, vector, room);
    if (error == MPI_SUCCESS && !is_alone)
        error = PMPI_Bcast(call->recvbuf, (int)call->count, call->type, 0, plan->node);
    return error;
}

/* The acting rank hands out the blocks of the ranks of its place. */
static int hand_out(const struct call *call, const struct cut *cut, const char *whole)
{
    const struct kasuri_plan *plan = call->plan;
    const int place = plan->groups.place[plan->rank], members = kasuri_members(&plan->groups, place);
    const int begin = plan->groups.member[plan->groups.first[place]];
    int *counts = malloc(2 * (size_t)members * sizeof *counts), *places = counts ? counts + members : NULL, error = MPI_ERR_NO_MEM;
    for (int i = 0; i < members && counts; i++) {
        counts[i] = (int)count_of(call, begin + i);
        places[i] = (int)cut->before[begin + i];
    }
    if (counts)
        error = PMPI_Scatterv(whole, counts, places, call->type, call->recvbuf, counts[plan->rank - begin], call->type, 0, plan->node);
    free(counts);
    return error;
}

static int run_reduce_scatter(struct call *call, const struct cut *cut)
{
    struct kasuri_plan *plan = call->plan;
    struct kasuri_vector *vector = &call->vector;
    const void *source = call->is_in_place ? call->recvbuf : call->sendbuf;
    const int is_alone = plan->node == MPI_COMM_NULL, own = plan->rank;
    const size_t whole_bytes = acts(plan) ? kasuri_bytes_of(vector, call->total) : 0, alignment = 64;
    const size_t aligned = (whole_bytes + alignment - 1) / alignment * alignment;
    char *room = room_of(plan, aligned + kasuri_bytes_of(vector, kasuri_needs(plan, vector).added));
    if (!room)
        return MPI_ERR_NO_MEM;
    vector->buffer = room - vector->low;
    int error = is_alone ? copy(call, source, call->total, call->type, vector->buffer, call->total)
                         : PMPI_Reduce(source, vector->buffer, (int)call->total, call->type, call->op, 0, plan->node);
    if (error == MPI_SUCCESS)
        error = kasuri_run_rounds(plan, vector, room + aligned);
    if (error == MPI_SUCCESS)
        error = is_alone ? copy(call, vector->buffer + cut->before[own] * vector->extent, count_of(call, own), call->type, call->recvbuf,
                                count_of(call, own))
                         : hand_out(call, cut, vector->buffer);
    return error;
}

static int run_allgather(struct call *call, const struct cut *cut)
{
    struct kasuri_plan *plan = call->plan;
    struct kasuri_vector *vector = &call->vector;
    char *own = (char *)call->recvbuf + cut->before[plan->rank] * vector->extent;
    const int is_alone = plan->node == MPI_COMM_NULL, count = (int)call->count;
    int error = MPI_SUCCESS;
    vector->buffer = call->recvbuf;
    if (is_alone && !call->is_in_place)
        error = copy(call, call->sendbuf, call->sendcount, call->sendtype, own, call->count);
    else if (!is_alone && call->is_in_place)
        error = PMPI_Gather(acts(plan) ? MPI_IN_PLACE : own, count, call->type, own, count, call->type, 0, plan->node);
    else if (!is_alone)
        error = PMPI_Gather(call->sendbuf, (int)call->sendcount, call->sendtype, own, count, call->type, 0, plan->node);
    if (error == MPI_SUCCESS)
        error = kasuri_run_rounds(plan, vector, NULL);
    if (error == MPI_SUCCESS && !is_alone)
        error = PMPI_Bcast(call->recvbuf, (int)call->total, call->type, 0, plan->node);
    return error;
}

/* Runs a call by the schedule. */
static int run(struct call *call)
{
    struct cut cut;
    int error = MPI_ERR_NO_MEM;
    kasuri_calls[call->collective].scheduled++;
    call->vector.op = call->op;
    call->vector.is_common = 1;
    if (make_cut(call, &cut)) {
        call->vector.first = cut.first;
        call->vector.count = cut.count;
        if (call->collective == KASURI_ALLREDUCE)
            error = run_allreduce(call);
        else if (call->collective == KASURI_REDUCE_SCATTER)
            error = run_reduce_scatter(call, &cut);
        else
            error = run_allgather(call, &cut);
        free(cut.first);
    }
    give_back(call->plan);
    if (error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, error);
    return error;
}

/* Within a place: messages to the rank that acts for it, or from it. */
static void trace_place(const struct kasuri_plan *plan, MPI_Count bytes, int is_down)
{
    const struct kasuri_groups *groups = &plan->groups;
    const int place = groups->place[plan->rank], *member = &groups->member[groups->first[place]];
    for (int i = 1; i < kasuri_members(groups, place) && acts(plan); i++) {
        if (is_down)
            kasuri_trace_send(member[i], bytes);
        else
            kasuri_trace_receive(member[i], bytes);
    }
    if (!acts(plan) && is_down)
        kasuri_trace_receive(member[0], bytes);
    else if (!acts(plan))
        kasuri_trace_send(member[0], bytes);
    kasuri_trace_stage();
}

/* The messages of the phases. */
static void trace_rounds(const struct call *call)
{
    const struct kasuri_plan *plan = call->plan;
    const MPI_Count whole = call->total * call->size;
    struct cut cut;
    if (!make_cut(call, &cut))
        return;
    trace_place(plan, call->collective == KASURI_ALLGATHER ? call->count * call->size : whole, 0);
    for (int i = 0; i < plan->rounds; i++) {
        const struct kasuri_round *round = &plan->round[i];
        MPI_Count elements[2] = {0, 0};
        for (int j = 0; j < round->sent + round->received; j++) {
            const struct kasuri_piece piece = plan->piece[round->first + (size_t)j];
            for (int part = piece.first; part < piece.first + piece.count; part++)
                elements[j >= round->sent] += cut.count[part];
        }
        if (round->sent > 0)
            kasuri_trace_send(round->step.to, elements[0] * call->size);
        if (round->received > 0)
            kasuri_trace_receive(round->step.from, elements[1] * call->size);
        kasuri_trace_stage();
    }
    trace_place(plan, call->collective == KASURI_REDUCE_SCATTER ? count_of(call, 0) * call->size : whole, 1);
    free(cut.first);
}

/* The messages of the usual algorithms where the library does it: two trees, a ring of blocks, and blocks straight to their ranks. */
static void trace_library(const struct call *call)
{
    int size = 0, self = 0;
    PMPI_Comm_size(call->comm, &size);
    PMPI_Comm_rank(call->comm, &self);
    if (call->collective == KASURI_ALLREDUCE) {
        kasuri_trace_tree(call->comm, 0, kasuri_bytes_in(call->count, call->type), 0);
        kasuri_trace_tree(call->comm, 0, kasuri_bytes_in(call->count, call->type), 1);
    }
    for (int i = 1; i < size && call->collective != KASURI_ALLREDUCE; i++) {
        const int is_ring = call->collective == KASURI_ALLGATHER;
        const int to = (self + (is_ring ? 1 : i)) % size, from = (self + size - (is_ring ? 1 : i)) % size;
        kasuri_trace_send(to, kasuri_bytes_in(count_of(call, is_ring ? 0 : to), call->type));
        kasuri_trace_receive(from, kasuri_bytes_in(count_of(call, is_ring ? 0 : self), call->type));
        if (is_ring)
            kasuri_trace_stage();
    }
}

static void trace(const struct call *call)
{
    if (!kasuri_trace_is_on() || !kasuri_is_rank(0, call->comm) || !kasuri_trace_enter(call->comm))
        return;
    if (call->plan)
        trace_rounds(call);
    else
        trace_library(call);
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
        trace(&(call));                                                                                                                    \
        if ((call).plan) {                                                                                                                 \
            error = run(&(call));                                                                                                          \
        } else {                                                                                                                           \
            kasuri_calls[(call).collective].left++;                                                                                        \
            error = own;                                                                                                                   \
        }                                                                                                                                  \
        end(&(call));                                                                                                                      \
        return error;                                                                                                                      \
    } while (0)

/* What the parameters of a call say, by their names in the standard. */
#define OF_REDUCTION(which, how_much)                                                                                                      \
    {.collective = which,                                                                                                                  \
     .comm = comm,                                                                                                                         \
     .sendbuf = sendbuf,                                                                                                                   \
     .recvbuf = recvbuf,                                                                                                                   \
     .is_in_place = sendbuf == MPI_IN_PLACE,                                                                                               \
     how_much,                                                                                                                             \
     .type = type,                                                                                                                         \
     .op = op}
#define OF_ALLGATHER                                                                                                                       \
    {.collective = KASURI_ALLGATHER,                                                                                                       \
     .comm = comm,                                                                                                                         \
     .sendbuf = sendbuf,                                                                                                                   \
     .recvbuf = recvbuf,                                                                                                                   \
     .is_in_place = sendbuf == MPI_IN_PLACE,                                                                                               \
     .sendcount = sendcount,                                                                                                               \
     .sendtype = sendtype,                                                                                                                 \
     .count = recvcount,                                                                                                                   \
     .type = recvtype,                                                                                                                     \
     .op = MPI_OP_NULL}

/* The calls with counts of either width. */
#define WITH_COUNTS(suffix, count_type, lists)                                                                                             \
    int MPI_Allreduce##suffix(const void *sendbuf, void *recvbuf, count_type count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)           \
    {                                                                                                                                      \
        if (is_short(comm, count, type, op)) {                                                                                             \
            kasuri_calls[KASURI_ALLREDUCE].left++;                                                                                         \
            return PMPI_Allreduce##suffix(sendbuf, recvbuf, count, type, op, comm);                                                        \
        }                                                                                                                                  \
        struct call call = OF_REDUCTION(KASURI_ALLREDUCE, .count = count);                                                                 \
        CALL(call, PMPI_Allreduce##suffix(sendbuf, recvbuf, count, type, op, comm));                                                       \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Reduce_scatter_block##suffix(const void *sendbuf, void *recvbuf, count_type count, MPI_Datatype type, MPI_Op op,               \
                                         MPI_Comm comm)                                                                                    \
    {                                                                                                                                      \
        struct call call = OF_REDUCTION(KASURI_REDUCE_SCATTER, .count = count);                                                            \
        CALL(call, PMPI_Reduce_scatter_block##suffix(sendbuf, recvbuf, count, type, op, comm));                                            \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Reduce_scatter##suffix(const void *sendbuf, void *recvbuf, const count_type counts[], MPI_Datatype type, MPI_Op op,            \
                                   MPI_Comm comm)                                                                                          \
    {                                                                                                                                      \
        struct call call = OF_REDUCTION(KASURI_REDUCE_SCATTER, .lists = counts);                                                           \
        /* Without counts nobody knows what it would be. */                                                                                \
        if (!counts)                                                                                                                       \
            return PMPI_Reduce_scatter##suffix(sendbuf, recvbuf, counts, type, op, comm);                                                  \
        CALL(call, PMPI_Reduce_scatter##suffix(sendbuf, recvbuf, counts, type, op, comm));                                                 \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Allgather##suffix(const void *sendbuf, count_type sendcount, MPI_Datatype sendtype, void *recvbuf, count_type recvcount,       \
                              MPI_Datatype recvtype, MPI_Comm comm)                                                                        \
    {                                                                                                                                      \
        struct call call = OF_ALLGATHER;                                                                                                   \
        CALL(call, PMPI_Allgather##suffix(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));                              \
    }

WITH_COUNTS(, int, counts)

KASURI_TAKES(Allreduce);
KASURI_TAKES(Reduce_scatter);
KASURI_TAKES(Reduce_scatter_block);
KASURI_TAKES(Allgather);

/* From MPI 4 on; mpi4py calls these. */
#if MPI_VERSION >= 4
WITH_COUNTS(_c, MPI_Count, long_counts)
KASURI_TAKES(Allreduce_c);
KASURI_TAKES(Reduce_scatter_c);
KASURI_TAKES(Reduce_scatter_block_c);
KASURI_TAKES(Allgather_c);
#endif

/* Those that do not wait. The ranks have agreed on a schedule before; each has a place of its own; and an operation of the program, which
 * it may free, is left to the MPI library. */
struct later {
    /* The first, so that one is the other. */
    struct kasuri_operation operation;
    struct call call;
    struct cut cut;
    /* Duplicates of the types, which the program may free. */
    MPI_Datatype held[2];
    char *room;
    struct kasuri_rounds rounds;
};

static void free_later(struct kasuri_operation *operation)
{
    struct later *later = (struct later *)operation;
    for (int i = 0; i < 2; i++)
        if (later->held[i] != MPI_DATATYPE_NULL)
            PMPI_Type_free(&later->held[i]);
    kasuri_free_rounds(&later->rounds);
    free(later->cut.first);
    free(later->room);
    free(later);
}

/* Memory for what arrives; of a reduce-scatter for the whole vector before it. */
static char *make_room(struct later *later)
{
    struct call *call = &later->call;
    struct kasuri_vector *vector = &call->vector;
    const size_t alignment = 64, whole = call->collective == KASURI_REDUCE_SCATTER ? kasuri_bytes_of(vector, call->total) : 0;
    const size_t aligned = (whole + alignment - 1) / alignment * alignment;
    later->room = malloc(aligned + kasuri_bytes_of(vector, kasuri_needs(call->plan, vector).added));
    if (!later->room)
        return NULL;
    vector->buffer = whole > 0 ? later->room - vector->low : call->recvbuf;
    return later->room + aligned;
}

/* Brings this rank's part to its place. */
static int bring(const struct later *later)
{
    const struct call *call = &later->call;
    const struct kasuri_vector *vector = &call->vector;
    if (call->collective == KASURI_REDUCE_SCATTER)
        return copy(call, call->is_in_place ? call->recvbuf : call->sendbuf, call->total, call->type, vector->buffer, call->total);
    if (call->is_in_place)
        return MPI_SUCCESS;
    if (call->collective == KASURI_ALLREDUCE)
        return copy(call, call->sendbuf, call->count, call->type, call->recvbuf, call->count);
    return copy(call, call->sendbuf, call->sendcount, call->sendtype,
                (char *)call->recvbuf + later->cut.before[call->plan->rank] * vector->extent, call->count);
}

/* The first turn. Where anything is wrong there is nothing more to do. */
static int begin_later(struct later *later)
{
    struct kasuri_operation *operation = &later->operation;
    char *room = make_room(later);
    operation->has_begun = 1;
    operation->error = room ? bring(later) : MPI_ERR_NO_MEM;
    if (operation->error != MPI_SUCCESS)
        return 0;
    kasuri_prepare_rounds(&later->rounds, operation->plan, &later->call.vector, room, operation->tag);
    return 1;
}

static int go_on(struct kasuri_operation *operation, int *has_moved)
{
    struct later *later = (struct later *)operation;
    const struct call *call = &later->call;
    if (!operation->has_begun && !begin_later(later))
        return 1;
    const int round = later->rounds.round;
    const int has_ended = kasuri_go_on_rounds(&later->rounds, 0), own = call->plan->rank;
    *has_moved |= later->rounds.round != round;
    if (!has_ended)
        return 0;
    operation->error = later->rounds.error;
    if (operation->error == MPI_SUCCESS && call->collective == KASURI_REDUCE_SCATTER) {
        /* The program's counts may be gone. */
        const MPI_Count *before = later->cut.before, count = before[own + 1] - before[own];
        operation->error = copy(call, call->vector.buffer + before[own] * call->vector.extent, count, call->type, call->recvbuf, count);
    }
    return 1;
}

static int hold_types(struct later *later)
{
    struct call *call = &later->call;
    int error = kasuri_hold_type(&call->type, &later->held[0]);
    if (error == MPI_SUCCESS && call->collective == KASURI_ALLGATHER && !call->is_in_place)
        error = kasuri_hold_type(&call->sendtype, &later->held[1]);
    call->vector.type = call->type;
    return error;
}

/* Begins a call in the background. */
static int take(const struct call *call, MPI_Request *request)
{
    int error = MPI_ERR_NO_MEM;
    struct later *later = calloc(1, sizeof *later);
    kasuri_background_calls[call->collective].scheduled++;
    if (later) {
        later->operation = (struct kasuri_operation){.plan = call->plan, .tag = call->tag, .go_on = go_on, .free = free_later};
        later->call = *call;
        later->held[0] = later->held[1] = MPI_DATATYPE_NULL;
        if (make_cut(call, &later->cut))
            error = hold_types(later);
        later->call.vector.first = later->cut.first;
        later->call.vector.count = later->cut.count;
        later->call.vector.is_common = 1;
        later->call.vector.op = call->op;
        if (error == MPI_SUCCESS)
            error = kasuri_begin_operation(&later->operation, request);
        if (error != MPI_SUCCESS)
            free_later(&later->operation);
    }
    if (error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, error);
    return error;
}

/* Does the call go by the schedule? All ranks have the same answer. */
static int goes_later(struct call *call)
{
    struct kasuri_plan *plan = kasuri_has_background() ? kasuri_known_plan(call->comm, call->collective) : NULL;
    if (!plan || !plan->has_background || plan->node != MPI_COMM_NULL || (call->collective != KASURI_ALLGATHER && !is_own(call->op)))
        return 0;
    call->plan = plan;
    call->total = total_of(call, plan->size);
    if (call->total < 0 || !measure(call) || !has_buffers(call))
        return 0;
    MPI_Count mean = 0, most = 0;
    if (call->total > INT_MAX || call->total > plan->most / call->size * plan->parts)
        return 0;
    lengths(call, &mean, &most);
    if (most > plan->most || mean < plan->least)
        return 0;
    call->tag = kasuri_background_tag(plan);
    return 1;
}

/* The body of a call: by the schedule, or else by `own`, the MPI library's. */
#define LATER(call, request, own)                                                                                                          \
    do {                                                                                                                                   \
        if (request && goes_later(&(call)))                                                                                                \
            return take(&(call), request);                                                                                                 \
        kasuri_background_calls[(call).collective].left++;                                                                                 \
        return own;                                                                                                                        \
    } while (0)

#define NONBLOCKING(suffix, count_type, lists)                                                                                             \
    int MPI_Iallreduce##suffix(const void *sendbuf, void *recvbuf, count_type count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,          \
                               MPI_Request *request)                                                                                       \
    {                                                                                                                                      \
        struct call call = OF_REDUCTION(KASURI_ALLREDUCE, .count = count);                                                                 \
        LATER(call, request, PMPI_Iallreduce##suffix(sendbuf, recvbuf, count, type, op, comm, request));                                   \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Ireduce_scatter_block##suffix(const void *sendbuf, void *recvbuf, count_type count, MPI_Datatype type, MPI_Op op,              \
                                          MPI_Comm comm, MPI_Request *request)                                                             \
    {                                                                                                                                      \
        struct call call = OF_REDUCTION(KASURI_REDUCE_SCATTER, .count = count);                                                            \
        LATER(call, request, PMPI_Ireduce_scatter_block##suffix(sendbuf, recvbuf, count, type, op, comm, request));                        \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Ireduce_scatter##suffix(const void *sendbuf, void *recvbuf, const count_type counts[], MPI_Datatype type, MPI_Op op,           \
                                    MPI_Comm comm, MPI_Request *request)                                                                   \
    {                                                                                                                                      \
        struct call call = OF_REDUCTION(KASURI_REDUCE_SCATTER, .lists = counts);                                                           \
        if (!counts)                                                                                                                       \
            call.comm = MPI_COMM_NULL;                                                                                                     \
        LATER(call, request, PMPI_Ireduce_scatter##suffix(sendbuf, recvbuf, counts, type, op, comm, request));                             \
    }                                                                                                                                      \
                                                                                                                                           \
    int MPI_Iallgather##suffix(const void *sendbuf, count_type sendcount, MPI_Datatype sendtype, void *recvbuf, count_type recvcount,      \
                               MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)                                                 \
    {                                                                                                                                      \
        struct call call = OF_ALLGATHER;                                                                                                   \
        LATER(call, request, PMPI_Iallgather##suffix(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request));          \
    }

NONBLOCKING(, int, counts)

KASURI_TAKES(Iallreduce);
KASURI_TAKES(Ireduce_scatter);
KASURI_TAKES(Ireduce_scatter_block);
KASURI_TAKES(Iallgather);

#if MPI_VERSION >= 4
NONBLOCKING(_c, MPI_Count, long_counts)
KASURI_TAKES(Iallreduce_c);
KASURI_TAKES(Ireduce_scatter_c);
KASURI_TAKES(Ireduce_scatter_block_c);
KASURI_TAKES(Iallgather_c);
#endif
