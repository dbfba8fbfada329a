#include "blocks.h"

#include <limits.h>
#include <stdlib.h>

#include "window.h"

/* At most WINDOW messages are under way. */
enum { WINDOW = 64 };

/* What is under way, with room for it. */
struct window {
    struct kasuri_window open;
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    int is_receive[WINDOW];
};

static void clear(struct window *window)
{
    window->open = (struct kasuri_window){window->requests, window->statuses, window->is_receive, 0};
}

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
static int send(const struct kasuri_plan *plan, const struct kasuri_blocks *blocks, int to, MPI_Request *request)
{
    const MPI_Count count = kasuri_count(blocks, to);
#if MPI_VERSION >= 4
    if (count > INT_MAX)
        return PMPI_Isend_c(kasuri_address(blocks, to), count, kasuri_type(blocks, to), to, kasuri_tag(plan), plan->messages, request);
#endif
    return PMPI_Isend(kasuri_address(blocks, to), (int)count, kasuri_type(blocks, to), to, kasuri_tag(plan), plan->messages, request);
}

static int receive(const struct kasuri_plan *plan, const struct kasuri_blocks *blocks, int from, MPI_Request *request)
{
    const MPI_Count count = kasuri_count(blocks, from);
#if MPI_VERSION >= 4
    if (count > INT_MAX)
        return PMPI_Irecv_c(kasuri_address(blocks, from), count, kasuri_type(blocks, from), from, kasuri_tag(plan), plan->messages,
                            request);
#endif
    return PMPI_Irecv(kasuri_address(blocks, from), (int)count, kasuri_type(blocks, from), from, kasuri_tag(plan), plan->messages, request);
}

/* Begins the messages of a step. */
static int begin(const struct kasuri_plan *plan, struct kasuri_step step, const struct kasuri_blocks *out, const struct kasuri_blocks *in,
                 struct kasuri_window *window)
{
    int error = MPI_SUCCESS;
    if (step.from != MPI_PROC_NULL && kasuri_bytes(in, step.from) > 0) {
        error = receive(plan, in, step.from, &window->requests[window->count]);
        kasuri_begun(window, 1, error);
    }
    if (error == MPI_SUCCESS && step.to != MPI_PROC_NULL && kasuri_bytes(out, step.to) > 0) {
        error = send(plan, out, step.to, &window->requests[window->count]);
        kasuri_begun(window, 0, error);
    }
    return error;
}

int kasuri_waits(const struct kasuri_plan *plan, struct kasuri_step step, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    return (step.to != MPI_PROC_NULL && kasuri_bytes(out, step.to) >= plan->least) ||
           (step.from != MPI_PROC_NULL && kasuri_bytes(in, step.from) >= plan->least);
}

/* All steps. A rank that waits has begun all that others wait for before, so whoever is furthest behind can go on. They go on after a
 * message that was longer than awaited, too: the other ranks need theirs. */
int kasuri_run_steps(const struct kasuri_plan *plan, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    struct window window;
    clear(&window);
    int result = MPI_SUCCESS;
    for (int i = 0; i < plan->steps; i++) {
        const int error = begin(plan, plan->step[i], out, in, &window.open);
        if (error != MPI_SUCCESS) {
            kasuri_give_up(&window.open);
            kasuri_keep_first(&result, error);
            return result;
        }
        if (window.open.count + 2 > WINDOW || kasuri_waits(plan, plan->step[i], out, in))
            kasuri_keep_first(&result, kasuri_finish(&window.open));
    }
    kasuri_keep_first(&result, kasuri_finish(&window.open));
    return result;
}

/* The message to oneself. */
static int copy_own(const struct kasuri_plan *plan, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    struct window window;
    const struct kasuri_step step = {plan->rank, plan->rank};
    clear(&window);
    /* Where one buffer is given for both, it is there already. */
    if (kasuri_address(out, plan->rank) == kasuri_address(in, plan->rank) && kasuri_type(out, plan->rank) == kasuri_type(in, plan->rank))
        return MPI_SUCCESS;
    const int error = begin(plan, step, out, in, &window.open);
    if (error != MPI_SUCCESS)
        kasuri_give_up(&window.open);
    return error != MPI_SUCCESS ? error : kasuri_finish(&window.open);
}

int kasuri_run(const struct kasuri_plan *plan, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    int result = copy_own(plan, out, in);
    kasuri_keep_first(&result, kasuri_run_steps(plan, out, in));
    return result;
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

/* What arrives would overwrite what is still to be sent: a packed copy is sent. */
int kasuri_run_in_place(const struct kasuri_plan *plan, const struct kasuri_blocks *in, kasuri_way *run)
{
    int *counts = calloc((size_t)plan->size, sizeof *counts);
    MPI_Aint *offsets = calloc((size_t)plan->size, sizeof *offsets);
    struct kasuri_blocks copy = {.type = MPI_PACKED, .extent = 1, .size = 1, .is_plain = 1, .counts = counts, .offsets = offsets};
    int error = counts && offsets ? pack(plan, in, &copy, counts, offsets) : MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS)
        error = run(plan, &copy, in);
    free(counts);
    free(offsets);
    free(copy.buffer);
    return error;
}
