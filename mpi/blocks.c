#include "blocks.h"

#include <limits.h>
#include <stdlib.h>

char *kasuri_address(const struct kasuri_blocks *blocks, int rank)
{
    if (blocks->offsets)
        return blocks->buffer + blocks->offsets[rank];
    MPI_Aint elements = (MPI_Aint)blocks->count * rank;
    if (blocks->long_displacements)
        elements = blocks->long_displacements[rank];
    else if (blocks->displacements)
        elements = blocks->displacements[rank];
    return blocks->buffer + elements * blocks->extent;
}

/* Counts of more than 31 bits exist from MPI 4 on; before, nobody can ask for one. */
static int send(const struct kasuri_exchange *exchange, int to, MPI_Request *request)
{
    const struct kasuri_blocks *blocks = &exchange->out;
    const MPI_Count count = kasuri_count(blocks, to);
    const MPI_Datatype type = kasuri_type(blocks, to);
    const MPI_Comm comm = exchange->plan->messages;
#if MPI_VERSION >= 4
    if (count > INT_MAX)
        return PMPI_Isend_c(kasuri_address(blocks, to), count, type, to, exchange->tag, comm, request);
#endif
    return PMPI_Isend(kasuri_address(blocks, to), (int)count, type, to, exchange->tag, comm, request);
}

static int receive(const struct kasuri_exchange *exchange, int from, MPI_Request *request)
{
    const struct kasuri_blocks *blocks = &exchange->in;
    const MPI_Count count = kasuri_count(blocks, from);
    const MPI_Datatype type = kasuri_type(blocks, from);
    const MPI_Comm comm = exchange->plan->messages;
#if MPI_VERSION >= 4
    if (count > INT_MAX)
        return PMPI_Irecv_c(kasuri_address(blocks, from), count, type, from, exchange->tag, comm, request);
#endif
    return PMPI_Irecv(kasuri_address(blocks, from), (int)count, type, from, exchange->tag, comm, request);
}

/* Begins the messages of a step. */
static int begin(struct kasuri_exchange *exchange, struct kasuri_step step)
{
    struct kasuri_window *open = &exchange->open;
    int error = MPI_SUCCESS;
    if (step.from != MPI_PROC_NULL && kasuri_bytes(&exchange->in, step.from) > 0) {
        error = receive(exchange, step.from, &open->requests[open->count]);
        kasuri_begun(open, 1, error);
    }
    if (error == MPI_SUCCESS && step.to != MPI_PROC_NULL && kasuri_bytes(&exchange->out, step.to) > 0) {
        error = send(exchange, step.to, &open->requests[open->count]);
        kasuri_begun(open, 0, error);
    }
    return error;
}

int kasuri_waits(const struct kasuri_plan *plan, struct kasuri_step step, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    return (step.to != MPI_PROC_NULL && kasuri_bytes(out, step.to) >= plan->least) ||
           (step.from != MPI_PROC_NULL && kasuri_bytes(in, step.from) >= plan->least);
}

/* Is the message to oneself where it belongs? One buffer may be given for both. */
static int has_own(const struct kasuri_exchange *exchange)
{
    const struct kasuri_blocks *out = &exchange->out, *in = &exchange->in;
    const int own = exchange->plan->rank;
    return kasuri_address(out, own) == kasuri_address(in, own) && kasuri_type(out, own) == kasuri_type(in, own);
}

void kasuri_prepare_exchange(struct kasuri_exchange *exchange, const struct kasuri_plan *plan, const struct kasuri_blocks *out,
                             const struct kasuri_blocks *in, int tag, int takes_own)
{
    exchange->plan = plan;
    exchange->out = *out;
    exchange->in = *in;
    exchange->tag = tag;
    exchange->step = takes_own && !has_own(exchange) ? -1 : 0;
    exchange->is_full = 0;
    exchange->error = MPI_SUCCESS;
    exchange->open = (struct kasuri_window){exchange->requests, exchange->statuses, exchange->is_receive, 0};
}

/* A rank that waits has begun all that others wait for before, so whoever is furthest behind can go on. They go on after a message that has
 * failed on arrival; after one that could not be begun they would take the next one for it. */
int kasuri_go_on(struct kasuri_exchange *exchange, int waits)
{
    const struct kasuri_plan *plan = exchange->plan;
    struct kasuri_window *open = &exchange->open;
    for (;;) {
        const int is_last = exchange->step == plan->steps;
        if ((exchange->is_full || is_last) && !kasuri_finish(open, waits, &exchange->error))
            return 0;
        if (is_last)
            return 1;
        const struct kasuri_step own = {plan->rank, plan->rank}, step = exchange->step < 0 ? own : plan->step[exchange->step];
        const int error = begin(exchange, step);
        if (error != MPI_SUCCESS) {
            kasuri_give_up(open);
            kasuri_keep_first(&exchange->error, error);
            /* Of a message to oneself nobody else knows. */
            exchange->step = exchange->step < 0 ? 0 : plan->steps;
            continue;
        }
        exchange->is_full =
            open->count + 2 > KASURI_WINDOW || exchange->step < 0 || kasuri_waits(plan, step, &exchange->out, &exchange->in);
        exchange->step++;
    }
}

static int run(const struct kasuri_plan *plan, const struct kasuri_blocks *out, const struct kasuri_blocks *in, int takes_own)
{
    struct kasuri_exchange exchange;
    kasuri_prepare_exchange(&exchange, plan, out, in, kasuri_tag(plan), takes_own);
    kasuri_go_on(&exchange, 1);
    return exchange.error;
}

int kasuri_run_steps(const struct kasuri_plan *plan, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    return run(plan, out, in, 0);
}

int kasuri_run(const struct kasuri_plan *plan, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    return run(plan, out, in, 1);
}

/* Fills in counts and offsets of a packed copy of the blocks; the bytes are allocated here. */
static int pack(const struct kasuri_plan *plan, const struct kasuri_blocks *in, struct kasuri_blocks *copy, int *counts, MPI_Aint *offsets)
{
    MPI_Aint total = 0;
    int error = MPI_SUCCESS;
    for (int rank = 0; rank < plan->size && error == MPI_SUCCESS; rank++) {
        /* Of nothing there may be no type. */
        if (kasuri_bytes(in, rank) == 0)
            continue;
        error = PMPI_Pack_size((int)kasuri_count(in, rank), kasuri_type(in, rank), plan->messages, &counts[rank]);
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
        if (kasuri_bytes(in, rank) == 0)
            continue;
        error = PMPI_Pack(kasuri_address(in, rank), (int)kasuri_count(in, rank), kasuri_type(in, rank), kasuri_address(copy, rank),
                          counts[rank], &position, plan->messages);
        counts[rank] = position;
    }
    return error;
}

int kasuri_pack(const struct kasuri_plan *plan, const struct kasuri_blocks *in, struct kasuri_packed *packed)
{
    int *counts = packed->counts = calloc((size_t)plan->size, sizeof *counts);
    MPI_Aint *offsets = packed->offsets = calloc((size_t)plan->size, sizeof *offsets);
    packed->blocks =
        (struct kasuri_blocks){.type = MPI_PACKED, .extent = 1, .size = 1, .is_plain = 1, .counts = counts, .offsets = offsets};
    return counts && offsets ? pack(plan, in, &packed->blocks, counts, offsets) : MPI_ERR_NO_MEM;
}

void kasuri_free_packed(struct kasuri_packed *packed)
{
    free(packed->counts);
    free(packed->offsets);
    free(packed->blocks.buffer);
    *packed = (struct kasuri_packed){0};
}

/* What arrives would overwrite what is still to be sent: a packed copy is sent. */
int kasuri_run_in_place(const struct kasuri_plan *plan, const struct kasuri_blocks *in, kasuri_way *way)
{
    struct kasuri_packed packed;
    int error = kasuri_pack(plan, in, &packed);
    if (error == MPI_SUCCESS)
        error = way(plan, &packed.blocks, in);
    kasuri_free_packed(&packed);
    return error;
}
