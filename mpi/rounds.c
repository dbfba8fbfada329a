#include "rounds.h"

#include <stdlib.h>

#include "window.h"

size_t kasuri_bytes_of(const struct kasuri_vector *vector, MPI_Count elements)
{
    return (size_t)(elements * vector->extent + vector->span) + 1;
}

struct kasuri_need kasuri_needs(const struct kasuri_plan *plan, const struct kasuri_vector *vector)
{
    struct kasuri_need need = {0};
    for (int i = 0; i < plan->rounds; i++) {
        const struct kasuri_round *round = &plan->round[i];
        struct kasuri_need here = {0};
        for (int j = 0; j < round->sent + round->received; j++) {
            const struct kasuri_piece piece = plan->piece[round->first + (size_t)j];
            here.messages += (size_t)piece.count;
            for (int part = piece.first; part < piece.first + piece.count && j >= round->sent && piece.is_added; part++)
                here.added += vector->count[part];
        }
        need.messages = here.messages > need.messages ? here.messages : need.messages;
        need.added = here.added > need.added ? here.added : need.added;
    }
    return need;
}

/* Elements that lie one behind the other: one message. */
struct stretch {
    MPI_Count first, count;
};

/* The next stretch of a piece from `*part` on; empty at the end. */
static struct stretch next(const struct kasuri_vector *vector, struct kasuri_piece piece, int *part)
{
    struct stretch stretch = {0};
    for (; *part < piece.first + piece.count; ++*part) {
        const MPI_Count first = vector->first[*part], count = vector->count[*part];
        if (count == 0)
            continue;
        if (stretch.count > 0 && (!vector->is_common || first != stretch.first + stretch.count))
            break;
        if (stretch.count == 0)
            stretch.first = first;
        stretch.count += count;
    }
    return stretch;
}

/* What is done with the stretches of a phase. */
struct run {
    const struct kasuri_plan *plan;
    const struct kasuri_vector *vector;
    struct kasuri_window window;
    /* What arrives to be added. It begins where an element would, so its bytes may begin later. */
    char *room;
};

static char *place_of(const struct run *run, MPI_Count element)
{
    return run->vector->buffer + element * run->vector->extent;
}

/* Begins to send or receive a piece. `*added`: elements that have a place in the room. */
static int begin(struct run *run, struct kasuri_piece piece, struct kasuri_step step, int is_receive, MPI_Count *added)
{
    const struct kasuri_vector *vector = run->vector;
    int error = MPI_SUCCESS, part = piece.first;
    for (struct stretch stretch; error == MPI_SUCCESS && (stretch = next(vector, piece, &part)).count > 0;) {
        MPI_Request *request = &run->window.requests[run->window.count];
        char *place = place_of(run, stretch.first);
        if (is_receive && piece.is_added) {
            place = run->room + *added * vector->extent;
            *added += stretch.count;
        }
        if (is_receive)
            error = PMPI_Irecv(place, (int)stretch.count, vector->type, step.from, kasuri_tag(run->plan), run->plan->messages, request);
        else
            error = PMPI_Isend(place, (int)stretch.count, vector->type, step.to, kasuri_tag(run->plan), run->plan->messages, request);
        kasuri_begun(&run->window, is_receive, error);
    }
    return error;
}

/* Adds what has arrived of a piece. */
static int add(const struct run *run, struct kasuri_piece piece, MPI_Count *added)
{
    const struct kasuri_vector *vector = run->vector;
    int error = MPI_SUCCESS, part = piece.first;
    for (struct stretch stretch; error == MPI_SUCCESS && (stretch = next(vector, piece, &part)).count > 0;) {
        error = PMPI_Reduce_local(run->room + *added * vector->extent, place_of(run, stretch.first), (int)stretch.count, vector->type,
                                  vector->op);
        *added += stretch.count;
    }
    return error;
}

/* Runs a phase. `*is_lost`: a message could not be begun. */
static int run_round(struct run *run, const struct kasuri_round *round, int *is_lost)
{
    const struct kasuri_piece *sent = run->plan->piece + round->first, *received = sent + round->sent;
    MPI_Count arriving = 0, added = 0;
    int error = MPI_SUCCESS;
    for (int i = 0; i < round->received && error == MPI_SUCCESS; i++)
        error = begin(run, received[i], round->step, 1, &arriving);
    for (int i = 0; i < round->sent && error == MPI_SUCCESS; i++)
        error = begin(run, sent[i], round->step, 0, NULL);
    if (error != MPI_SUCCESS) {
        kasuri_give_up(&run->window);
        *is_lost = 1;
        return error;
    }
    kasuri_finish(&run->window, 1, &error);
    for (int i = 0; i < round->received && error == MPI_SUCCESS; i++)
        if (received[i].is_added)
            error = add(run, received[i], &added);
    return error;
}

int kasuri_run_rounds(const struct kasuri_plan *plan, const struct kasuri_vector *vector, char *room)
{
    const size_t messages = kasuri_needs(plan, vector).messages + 1;
    struct run run = {.plan = plan, .vector = vector, .room = room ? room - vector->low : NULL};
    run.window.requests = malloc(messages * sizeof *run.window.requests);
    run.window.statuses = malloc(messages * sizeof *run.window.statuses);
    run.window.is_receive = malloc(messages * sizeof *run.window.is_receive);
    int error = run.window.requests && run.window.statuses && run.window.is_receive ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    int is_lost = error != MPI_SUCCESS;
    /* After an error of what has arrived the others still need this rank's messages. After a message that was not begun they would take the
     * next one for it. */
    for (int i = 0; i < plan->rounds && !is_lost; i++)
        kasuri_keep_first(&error, run_round(&run, &plan->round[i], &is_lost));
    free(run.window.requests);
    free(run.window.statuses);
    free(run.window.is_receive);
    return error;
}
