#include "rounds.h"

#include <stdlib.h>

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

static char *place_of(const struct kasuri_rounds *rounds, MPI_Count element)
{
    return rounds->vector->buffer + element * rounds->vector->extent;
}

/* Begins to send or receive a piece. `*added`: elements that have a place in the room. */
static int begin(struct kasuri_rounds *rounds, struct kasuri_piece piece, struct kasuri_step step, int is_receive, MPI_Count *added)
{
    const struct kasuri_vector *vector = rounds->vector;
    int error = MPI_SUCCESS, part = piece.first;
    for (struct stretch stretch; error == MPI_SUCCESS && (stretch = next(vector, piece, &part)).count > 0;) {
        MPI_Request *request = &rounds->window.requests[rounds->window.count];
        char *place = place_of(rounds, stretch.first);
        if (is_receive && piece.is_added) {
            place = rounds->room + *added * vector->extent;
            *added += stretch.count;
        }
        if (is_receive)
            error = PMPI_Irecv(place, (int)stretch.count, vector->type, step.from, rounds->tag, rounds->plan->messages, request);
        else
            error = PMPI_Isend(place, (int)stretch.count, vector->type, step.to, rounds->tag, rounds->plan->messages, request);
        kasuri_begun(&rounds->window, is_receive, error);
    }
    return error;
}

/* Adds what has arrived of a piece. */
static int add(const struct kasuri_rounds *rounds, struct kasuri_piece piece, MPI_Count *added)
{
    const struct kasuri_vector *vector = rounds->vector;
    int error = MPI_SUCCESS, part = piece.first;
    for (struct stretch stretch; error == MPI_SUCCESS && (stretch = next(vector, piece, &part)).count > 0;) {
        error = PMPI_Reduce_local(rounds->room + *added * vector->extent, place_of(rounds, stretch.first), (int)stretch.count, vector->type,
                                  vector->op);
        *added += stretch.count;
    }
    return error;
}

/* Begins the messages of a round. */
static void begin_round(struct kasuri_rounds *rounds)
{
    const struct kasuri_round *round = &rounds->plan->round[rounds->round];
    const struct kasuri_piece *sent = rounds->plan->piece + round->first, *received = sent + round->sent;
    MPI_Count arriving = 0;
    int error = MPI_SUCCESS;
    for (int i = 0; i < round->received && error == MPI_SUCCESS; i++)
        error = begin(rounds, received[i], round->step, 1, &arriving);
    for (int i = 0; i < round->sent && error == MPI_SUCCESS; i++)
        error = begin(rounds, sent[i], round->step, 0, NULL);
    rounds->is_open = error == MPI_SUCCESS;
    rounds->is_lost = error != MPI_SUCCESS;
    rounds->round_error = error;
    if (rounds->is_lost)
        kasuri_give_up(&rounds->window);
    kasuri_keep_first(&rounds->error, error);
}

/* The messages of a round have ended. */
static void end_round(struct kasuri_rounds *rounds)
{
    const struct kasuri_round *round = &rounds->plan->round[rounds->round];
    const struct kasuri_piece *received = rounds->plan->piece + round->first + round->sent;
    MPI_Count added = 0;
    int error = rounds->round_error;
    for (int i = 0; i < round->received && error == MPI_SUCCESS; i++)
        if (received[i].is_added)
            error = add(rounds, received[i], &added);
    kasuri_keep_first(&rounds->error, error);
    rounds->is_open = 0;
    rounds->round++;
}

void kasuri_prepare_rounds(struct kasuri_rounds *rounds, const struct kasuri_plan *plan, const struct kasuri_vector *vector, char *room,
                           int tag)
{
    const size_t messages = kasuri_needs(plan, vector).messages + 1;
    *rounds = (struct kasuri_rounds){.plan = plan, .vector = vector, .tag = tag, .room = room ? room - vector->low : NULL};
    rounds->window.requests = malloc(messages * sizeof *rounds->window.requests);
    rounds->window.statuses = malloc(messages * sizeof *rounds->window.statuses);
    rounds->window.is_receive = malloc(messages * sizeof *rounds->window.is_receive);
    rounds->is_lost = !rounds->window.requests || !rounds->window.statuses || !rounds->window.is_receive;
    rounds->error = rounds->is_lost ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

/* After an error of what has arrived the others still need this rank's messages. After a message that was not begun they would take the
 * next one for it. */
int kasuri_go_on_rounds(struct kasuri_rounds *rounds, int waits)
{
    for (;;) {
        if (rounds->is_open) {
            if (!kasuri_finish(&rounds->window, waits, &rounds->round_error))
                return 0;
            end_round(rounds);
        }
        if (rounds->is_lost || rounds->round == rounds->plan->rounds)
            return 1;
        begin_round(rounds);
    }
}

void kasuri_free_rounds(struct kasuri_rounds *rounds)
{
    free(rounds->window.requests);
    free(rounds->window.statuses);
    free(rounds->window.is_receive);
    rounds->window = (struct kasuri_window){0};
}

int kasuri_run_rounds(const struct kasuri_plan *plan, const struct kasuri_vector *vector, char *room)
{
    struct kasuri_rounds rounds;
    kasuri_prepare_rounds(&rounds, plan, vector, room, kasuri_tag(plan));
    kasuri_go_on_rounds(&rounds, 1);
    kasuri_free_rounds(&rounds);
    return rounds.error;
}
