/* MPI_Ialltoall, MPI_Ialltoallv and MPI_Ialltoallw, and the persistent all-to-alls, by the phases of a schedule, in the background.
 *
 * A call that does not wait must not wait for another rank. So it goes by the schedule only if the ranks have agreed on one before; and as
 * no rank knows the lengths of all messages of an MPI_Ialltoallv, that goes by it whatever they are: it does not wait for phases of short
 * ones. */
#include <mpi.h>
#include <stdlib.h>

#include "background.h"
#include "blocks.h"
#include "measure.h"
#include "own.h"
#include "plan.h"

/* A call. */
struct call {
    MPI_Comm comm;
    struct kasuri_blocks out, in;
    int is_in_place;
    /* Where each rank has a type of its own: displacements, and room for the sizes of types; of what comes, then of what goes. */
    MPI_Aint *offsets;
    MPI_Count *sizes;
};

/* A call that has begun. The operation is the first, so that one is the other. */
struct exchange {
    struct kasuri_operation operation;
    struct call call;
    /* Duplicates of types, and lists of types and of counts. */
    MPI_Datatype *held, *types;
    int held_count;
    MPI_Count *counts;
    /* Where it is in place. */
    struct kasuri_packed packed;
    struct kasuri_exchange phases;
};

static int hold_type(struct exchange *exchange, MPI_Datatype *type)
{
    MPI_Datatype held = MPI_DATATYPE_NULL;
    const int error = kasuri_hold_type(type, &held);
    if (held != MPI_DATATYPE_NULL)
        exchange->held[exchange->held_count++] = held;
    return error;
}

/* The types of what goes to a rank and comes from it. What is one type stays one. */
static int hold_pair(struct exchange *exchange, MPI_Datatype *out, MPI_Datatype *in)
{
    const int is_one = *out == *in;
    int error = hold_type(exchange, in);
    if (is_one)
        *out = *in;
    else if (error == MPI_SUCCESS && !exchange->call.is_in_place)
        error = hold_type(exchange, out);
    return error;
}

/* The lists of types, too, are kept: from Fortran they are copies. Of nothing there may be no type. */
static int hold_lists(struct exchange *exchange, int size)
{
    struct kasuri_blocks *out = &exchange->call.out, *in = &exchange->call.in;
    int error = MPI_SUCCESS;
    for (int rank = 0; rank < size && error == MPI_SUCCESS; rank++) {
        MPI_Datatype *of = &exchange->types[rank], *to = &exchange->types[size + rank];
        *of = kasuri_bytes(in, rank) > 0 ? in->types[rank] : MPI_BYTE;
        *to = kasuri_bytes(out, rank) > 0 ? out->types[rank] : MPI_BYTE;
        error = hold_pair(exchange, to, of);
    }
    in->types = exchange->types;
    out->types = exchange->types + size;
    return error;
}

/* Copies of counts and displacements. A program must leave its own as they are, but mpi4py may free them. */
static int keep_lists(struct exchange *exchange)
{
    struct kasuri_blocks *out = &exchange->call.out, *in = &exchange->call.in;
    const int size = exchange->operation.plan->size, has_offsets = exchange->call.offsets != NULL;
    if (!kasuri_is_list(in))
        return MPI_SUCCESS;
    MPI_Count *counts = exchange->counts = malloc(2 * (size_t)size * sizeof *counts);
    MPI_Aint *offsets = has_offsets ? exchange->call.offsets : malloc(2 * (size_t)size * sizeof *offsets);
    exchange->call.offsets = offsets;
    if (!counts || !offsets)
        return MPI_ERR_NO_MEM;
    for (int rank = 0; rank < size; rank++) {
        counts[rank] = kasuri_count(in, rank);
        counts[size + rank] = kasuri_count(out, rank);
        offsets[rank] = kasuri_address(in, rank) - in->buffer;
        offsets[size + rank] = kasuri_address(out, rank) - out->buffer;
    }
    in->counts = out->counts = NULL;
    in->long_counts = counts;
    out->long_counts = counts + size;
    in->offsets = offsets;
    out->offsets = offsets + size;
    return MPI_SUCCESS;
}

static int hold_types(struct exchange *exchange)
{
    const int size = exchange->operation.plan->size, is_list = exchange->call.in.types != NULL;
    exchange->held = malloc(2 * (size_t)(is_list ? size : 1) * sizeof *exchange->held);
    exchange->types = malloc(2 * (size_t)(is_list ? size : 1) * sizeof *exchange->types);
    if (!exchange->held || !exchange->types)
        return MPI_ERR_NO_MEM;
    return is_list ? hold_lists(exchange, size) : hold_pair(exchange, &exchange->call.out.type, &exchange->call.in.type);
}

static void free_exchange(struct kasuri_operation *operation)
{
    struct exchange *exchange = (struct exchange *)operation;
    kasuri_free_packed(&exchange->packed);
    while (exchange->held_count > 0)
        PMPI_Type_free(&exchange->held[--exchange->held_count]);
    free(exchange->held);
    free(exchange->types);
    free(exchange->counts);
    free(exchange->call.offsets);
    free(exchange->call.sizes);
    free(exchange);
}

/* The first turn. Where anything is wrong there is nothing more to do. */
static int begin(struct exchange *exchange)
{
    struct kasuri_operation *operation = &exchange->operation;
    const struct call *call = &exchange->call;
    const struct kasuri_blocks *out = &call->out;
    operation->has_begun = 1;
    if (call->is_in_place) {
        operation->error = kasuri_pack(operation->plan, &call->in, &exchange->packed);
        out = &exchange->packed.blocks;
    }
    kasuri_prepare_exchange(&exchange->phases, operation->plan, out, &call->in, operation->tag, !call->is_in_place);
    return operation->error == MPI_SUCCESS;
}

static int go_on(struct kasuri_operation *operation, int *has_moved)
{
    struct exchange *exchange = (struct exchange *)operation;
    if (!operation->has_begun && !begin(exchange))
        return 1;
    const int before = exchange->phases.step;
    const int has_ended = kasuri_go_on(&exchange->phases, 0);
    *has_moved |= exchange->phases.step != before;
    if (has_ended) {
        operation->error = exchange->phases.error;
        kasuri_free_packed(&exchange->packed);
    }
    return has_ended;
}

/* Does the call go by the plan? All ranks have the same answer. What is wrong with it is for the MPI library to say. */
static int goes_by(struct call *call, const struct kasuri_plan *plan)
{
    MPI_Count sent = 0, received = 0, *sizes = call->sizes;
    if (!plan || !plan->has_background || !kasuri_measure(&call->in, plan->size, sizes, &received) ||
        (!call->is_in_place && !kasuri_measure(&call->out, plan->size, sizes ? sizes + plan->size : NULL, &sent)) ||
        kasuri_is_refused_alias(&call->out, &call->in, call->is_in_place))
        return 0;
    const MPI_Count bytes = received > sent ? received : sent;
    /* A copy of blocks of unlike lengths might have more bytes than MPI can pack, and other ranks would not know. */
    if (kasuri_is_list(&call->in))
        return !call->is_in_place;
    return bytes >= plan->least && bytes <= plan->most;
}

/* Makes an operation of a call, which takes over its memory. NULL if there is no memory. */
static struct exchange *make(const struct call *call, struct kasuri_plan *plan, int tag)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->operation = (struct kasuri_operation){.plan = plan, .tag = tag, .go_on = go_on, .free = free_exchange};
    exchange->call = *call;
    return exchange;
}

/* Begins the call, or gives it a request to be started. */
static int take(const struct call *call, struct kasuri_plan *plan, int tag, int is_persistent, MPI_Request *request)
{
    struct exchange *exchange = make(call, plan, tag);
    int error = exchange ? keep_lists(exchange) : MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS)
        error = hold_types(exchange);
    kasuri_background_calls[KASURI_ALLTOALL].scheduled++;
    if (error == MPI_SUCCESS)
        error = (is_persistent ? kasuri_keep_operation : kasuri_begin_operation)(&exchange->operation, request);
    if (error == MPI_SUCCESS)
        return error;
    if (exchange)
        free_exchange(&exchange->operation);
    PMPI_Comm_call_errhandler(call->comm, error);
    return error;
}

/* Begins a call that does not wait. Fails if it is the MPI library's. */
static int begins(struct call *call, MPI_Request *request, int *error)
{
    struct kasuri_plan *plan = request && kasuri_has_background() ? kasuri_known_plan(call->comm, KASURI_ALLTOALL) : NULL;
    if (!goes_by(call, plan))
        return 0;
    *error = take(call, plan, kasuri_background_tag(plan), 0, request);
    return 1;
}

/* Displacements in bytes, and room for the sizes of types. Fails where the call is the MPI library's in any case. */
static int make_lists(struct call *call, int *size)
{
    int is_between = 0;
    if (call->comm == MPI_COMM_NULL || !kasuri_has_background() || PMPI_Comm_test_inter(call->comm, &is_between) != MPI_SUCCESS ||
        is_between || PMPI_Comm_size(call->comm, size) != MPI_SUCCESS)
        return 0;
    call->offsets = malloc(2 * (size_t)*size * sizeof *call->offsets);
    call->sizes = malloc(2 * (size_t)*size * sizeof *call->sizes);
    call->in.offsets = call->offsets;
    call->out.offsets = call->offsets ? call->offsets + *size : NULL;
    return call->offsets && call->sizes;
}

/* The body of a call: `way` takes it, or it goes to `own`, the MPI library's. */
#define CALL(call, way, request, own)                                                                                                      \
    do {                                                                                                                                   \
        int error = MPI_SUCCESS;                                                                                                           \
        if (way(&(call), request, &error))                                                                                                 \
            return error;                                                                                                                  \
        free((call).offsets);                                                                                                              \
        free((call).sizes);                                                                                                                \
        kasuri_background_calls[KASURI_ALLTOALL].left++;                                                                                   \
        return own;                                                                                                                        \
    } while (0)

/* The parameters behind the communicator differ. */
#define PLAIN_PARAMETERS MPI_Request *request
#define PLAIN_ARGUMENTS request
#define INFO_PARAMETERS MPI_Info info, MPI_Request *request
#define INFO_ARGUMENTS info, request

#define ALLTOALL(name, way, extra, count_type)                                                                                             \
    int MPI_##name(const void *sendbuf, count_type sendcount, MPI_Datatype sendtype, void *recvbuf, count_type recvcount,                  \
                   MPI_Datatype recvtype, MPI_Comm comm, extra##_PARAMETERS)                                                               \
    {                                                                                                                                      \
        struct call call = {.comm = comm,                                                                                                  \
                            .out = {.buffer = (char *)sendbuf, .type = sendtype, .count = sendcount},                                      \
                            .in = {.buffer = recvbuf, .type = recvtype, .count = recvcount},                                               \
                            .is_in_place = sendbuf == MPI_IN_PLACE};                                                                       \
        CALL(call, way, request,                                                                                                           \
             PMPI_##name(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, extra##_ARGUMENTS));                            \
    }

#define ALLTOALLV(name, way, extra, count_type, place_type, width)                                                                         \
    int MPI_##name(const void *sendbuf, const count_type sendcounts[], const place_type sdispls[], MPI_Datatype sendtype, void *recvbuf,   \
                   const count_type recvcounts[], const place_type rdispls[], MPI_Datatype recvtype, MPI_Comm comm, extra##_PARAMETERS)    \
    {                                                                                                                                      \
        const int is_whole = recvcounts && rdispls && (sendbuf == MPI_IN_PLACE || (sendcounts && sdispls));                                \
        struct call call = {                                                                                                               \
            .comm = is_whole ? comm : MPI_COMM_NULL,                                                                                       \
            .out = {.buffer = (char *)sendbuf, .type = sendtype, .width##counts = sendcounts, .width##displacements = sdispls},            \
            .in = {.buffer = recvbuf, .type = recvtype, .width##counts = recvcounts, .width##displacements = rdispls},                     \
            .is_in_place = sendbuf == MPI_IN_PLACE};                                                                                       \
        CALL(call, way, request,                                                                                                           \
             PMPI_##name(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, extra##_ARGUMENTS));        \
    }

#define ALLTOALLW(name, way, extra, count_type, place_type, width)                                                                         \
    int MPI_##name(const void *sendbuf, const count_type sendcounts[], const place_type sdispls[], const MPI_Datatype sendtypes[],         \
                   void *recvbuf, const count_type recvcounts[], const place_type rdispls[], const MPI_Datatype recvtypes[],               \
                   MPI_Comm comm, extra##_PARAMETERS)                                                                                      \
    {                                                                                                                                      \
        /* In place it is the MPI library's. */                                                                                            \
        const int is_whole = recvcounts && rdispls && recvtypes && sendcounts && sdispls && sendtypes && sendbuf != MPI_IN_PLACE;          \
        int size = 0;                                                                                                                      \
        struct call call = {.comm = is_whole ? comm : MPI_COMM_NULL,                                                                       \
                            .out = {.buffer = (char *)sendbuf, .types = sendtypes, .width##counts = sendcounts},                           \
                            .in = {.buffer = recvbuf, .types = recvtypes, .width##counts = recvcounts}};                                   \
        if (!make_lists(&call, &size))                                                                                                     \
            call.comm = MPI_COMM_NULL;                                                                                                     \
        for (int i = 0; call.comm != MPI_COMM_NULL && i < size; i++) {                                                                     \
            call.offsets[i] = rdispls[i];                                                                                                  \
            call.offsets[size + i] = sdispls[i];                                                                                           \
        }                                                                                                                                  \
        CALL(call, way, request,                                                                                                           \
             PMPI_##name(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, extra##_ARGUMENTS));      \
    }

ALLTOALL(Ialltoall, begins, PLAIN, int)
ALLTOALLV(Ialltoallv, begins, PLAIN, int, int, )
ALLTOALLW(Ialltoallw, begins, PLAIN, int, int, )
KASURI_TAKES(Ialltoall);
KASURI_TAKES(Ialltoallv);
KASURI_TAKES(Ialltoallw);

#if KASURI_HAS_PERSISTENT
/* Prepares a persistent call, at which the ranks may wait for each other. Fails if it is the MPI library's. */
static int prepares(struct call *call, MPI_Request *request, int *error)
{
    struct kasuri_plan *plan = NULL;
    if (request && call->comm != MPI_COMM_NULL && kasuri_wants_background())
        plan = kasuri_plan_of(call->comm, KASURI_ALLTOALL);
    const int tag = goes_by(call, plan) ? kasuri_persistent_tag(plan) : -1;
    if (tag < 0)
        return 0;
    *error = take(call, plan, tag, 1, request);
    return 1;
}

ALLTOALL(Alltoall_init, prepares, INFO, int)
ALLTOALLV(Alltoallv_init, prepares, INFO, int, int, )
ALLTOALLW(Alltoallw_init, prepares, INFO, int, int, )
KASURI_TAKES(Alltoall_init);
KASURI_TAKES(Alltoallv_init);
KASURI_TAKES(Alltoallw_init);
#endif

/* From MPI 4 on with long counts, too: mpi4py calls these. */
#if MPI_VERSION >= 4
ALLTOALL(Ialltoall_c, begins, PLAIN, MPI_Count)
ALLTOALLV(Ialltoallv_c, begins, PLAIN, MPI_Count, MPI_Aint, long_)
ALLTOALLW(Ialltoallw_c, begins, PLAIN, MPI_Count, MPI_Aint, long_)
ALLTOALL(Alltoall_init_c, prepares, INFO, MPI_Count)
ALLTOALLV(Alltoallv_init_c, prepares, INFO, MPI_Count, MPI_Aint, long_)
ALLTOALLW(Alltoallw_init_c, prepares, INFO, MPI_Count, MPI_Aint, long_)
KASURI_TAKES(Ialltoall_c);
KASURI_TAKES(Ialltoallv_c);
KASURI_TAKES(Ialltoallw_c);
KASURI_TAKES(Alltoall_init_c);
KASURI_TAKES(Alltoallv_init_c);
KASURI_TAKES(Alltoallw_init_c);
#endif
