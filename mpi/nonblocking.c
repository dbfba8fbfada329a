/* MPI_Ialltoall and MPI_Ialltoallv by the phases of a schedule, in the background.
 *
 * The call itself must not wait for another rank. So it goes by the schedule only if the ranks have agreed on one before; and as no rank
 * knows the lengths of all messages of an MPI_Ialltoallv, that goes by it whatever they are: it does not wait for phases of short ones. */
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
};

/* A call that has begun. The operation is the first, so that one is the other. */
struct exchange {
    struct kasuri_operation operation;
    struct kasuri_blocks out, in;
    int is_in_place;
    /* Where it is in place. */
    struct kasuri_packed packed;
    struct kasuri_exchange phases;
};

/* The program may free a type before the call has ended: keeps a duplicate of one that is not MPI's own. */
static int hold_type(MPI_Datatype *type)
{
    int integers, addresses, types, combiner, error = PMPI_Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
    MPI_Datatype held = *type;
    if (error == MPI_SUCCESS && combiner != MPI_COMBINER_NAMED)
        error = PMPI_Type_dup(*type, &held);
    *type = error == MPI_SUCCESS ? held : MPI_DATATYPE_NULL;
    return error;
}

static void let_type_go(MPI_Datatype *type)
{
    int integers, addresses, types, combiner = MPI_COMBINER_NAMED;
    if (*type != MPI_DATATYPE_NULL)
        PMPI_Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(type);
}

static void free_exchange(struct kasuri_operation *operation)
{
    struct exchange *exchange = (struct exchange *)operation;
    kasuri_free_packed(&exchange->packed);
    let_type_go(&exchange->in.type);
    if (!exchange->is_in_place)
        let_type_go(&exchange->out.type);
    free(exchange);
}

/* The first turn. Where anything is wrong there is nothing more to do. */
static int begin(struct exchange *exchange)
{
    struct kasuri_operation *operation = &exchange->operation;
    const struct kasuri_blocks *out = &exchange->out;
    operation->has_begun = 1;
    if (exchange->is_in_place) {
        operation->error = kasuri_pack(operation->plan, &exchange->in, &exchange->packed);
        out = &exchange->packed.blocks;
    }
    kasuri_prepare_exchange(&exchange->phases, operation->plan, out, &exchange->in, operation->tag, !exchange->is_in_place);
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

/* Does the call go by the schedule? All ranks have the same answer. What is wrong with it is for the MPI library to say. */
static struct kasuri_plan *plan_of(struct call *call)
{
    MPI_Count sent = 0, received = 0;
    struct kasuri_plan *plan = kasuri_has_background() ? kasuri_known_plan(call->comm, KASURI_ALLTOALL) : NULL;
    if (!plan || !plan->has_background || !kasuri_measure(&call->in, plan->size, NULL, &received) ||
        (!call->is_in_place && !kasuri_measure(&call->out, plan->size, NULL, &sent)) ||
        kasuri_is_refused_alias(&call->out, &call->in, call->is_in_place))
        return NULL;
    const MPI_Count bytes = received > sent ? received : sent;
    /* A copy of blocks of unlike lengths might have more bytes than MPI can pack, and other ranks would not know. */
    if (kasuri_is_list(&call->in))
        return call->is_in_place ? NULL : plan;
    return bytes >= plan->least && bytes <= plan->most ? plan : NULL;
}

/* Begins a call in the background. */
static int begin_call(const struct call *call, struct kasuri_plan *plan, MPI_Request *request)
{
    int error = MPI_ERR_NO_MEM;
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange) {
        exchange->operation = (struct kasuri_operation){
            .plan = plan, .tag = kasuri_background_tag(plan), .go_on = go_on, .free = free_exchange};
        exchange->out = call->out;
        exchange->in = call->in;
        exchange->is_in_place = call->is_in_place;
        error = hold_type(&exchange->in.type);
        if (error == MPI_SUCCESS && !call->is_in_place)
            error = hold_type(&exchange->out.type);
        if (error == MPI_SUCCESS)
            error = kasuri_begin_operation(&exchange->operation, request);
        if (error != MPI_SUCCESS)
            free_exchange(&exchange->operation);
    }
    if (error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, error);
    return error;
}

/* The body of a call: by the schedule, or else by `own`, the MPI library's. */
#define CALL(call, request, own)                                                                                                           \
    do {                                                                                                                                   \
        struct kasuri_plan *plan = request ? plan_of(&(call)) : NULL;                                                                      \
        if (plan) {                                                                                                                        \
            kasuri_background_calls[KASURI_ALLTOALL].scheduled++;                                                                          \
            return begin_call(&(call), plan, request);                                                                                     \
        }                                                                                                                                  \
        kasuri_background_calls[KASURI_ALLTOALL].left++;                                                                                   \
        return own;                                                                                                                        \
    } while (0)

#define IALLTOALL(name, count_type)                                                                                                        \
    int MPI_##name(const void *sendbuf, count_type sendcount, MPI_Datatype sendtype, void *recvbuf, count_type recvcount,                  \
                   MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)                                                             \
    {                                                                                                                                      \
        struct call call = {.comm = comm,                                                                                                  \
                            .out = {.buffer = (char *)sendbuf, .type = sendtype, .count = sendcount},                                      \
                            .in = {.buffer = recvbuf, .type = recvtype, .count = recvcount},                                               \
                            .is_in_place = sendbuf == MPI_IN_PLACE};                                                                       \
        CALL(call, request, PMPI_##name(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request));                       \
    }

#define IALLTOALLV(name, count_type, place_type, width)                                                                                    \
    int MPI_##name(const void *sendbuf, const count_type sendcounts[], const place_type sdispls[], MPI_Datatype sendtype, void *recvbuf,   \
                   const count_type recvcounts[], const place_type rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)  \
    {                                                                                                                                      \
        const int is_whole = recvcounts && rdispls && (sendbuf == MPI_IN_PLACE || (sendcounts && sdispls));                                \
        struct call call = {                                                                                                               \
            .comm = is_whole ? comm : MPI_COMM_NULL,                                                                                       \
            .out = {.buffer = (char *)sendbuf, .type = sendtype, .width##counts = sendcounts, .width##displacements = sdispls},            \
            .in = {.buffer = recvbuf, .type = recvtype, .width##counts = recvcounts, .width##displacements = rdispls},                     \
            .is_in_place = sendbuf == MPI_IN_PLACE};                                                                                       \
        CALL(call, request,                                                                                                                \
             PMPI_##name(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request));                  \
    }

IALLTOALL(Ialltoall, int)
IALLTOALLV(Ialltoallv, int, int, )
KASURI_TAKES(Ialltoall);
KASURI_TAKES(Ialltoallv);

/* From MPI 4 on with long counts, too: mpi4py calls these. */
#if MPI_VERSION >= 4
IALLTOALL(Ialltoall_c, MPI_Count)
IALLTOALLV(Ialltoallv_c, MPI_Count, MPI_Aint, long_)
KASURI_TAKES(Ialltoall_c);
KASURI_TAKES(Ialltoallv_c);
#endif
