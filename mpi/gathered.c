/* An all-to-all of short blocks where several ranks share a place of the schedule: what goes from one place to another is one message.
 *
 * The first rank of a place acts for it. For some phases at a time it gathers what the ranks of its place send in them, exchanges messages
 * with the other places phase by phase, and hands out what has come. A message holds, by sender and by receiver, one block of each pair. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "waits.h"

/* Bytes that the acting rank gathers at a time; more if one phase has more. */
enum { BATCH = 1 << 24 };

/* Phases that are done at a time. */
struct batch {
    const struct kasuri_plan *plan;
    const struct kasuri_step *step;
    int steps;
    /* Of a block. */
    size_t bytes;
    /* Blocks that each rank of the place sends and receives. */
    size_t sent, received;
    /* The ranks of the place. */
    size_t ranks;
};

static size_t members(const struct batch *batch, int place)
{
    return place < 0 ? 0 : (size_t)kasuri_members(&batch->plan->groups, place);
}

static int member(const struct batch *batch, int place, size_t number)
{
    const struct kasuri_groups *groups = &batch->plan->groups;
    return groups->member[(size_t)groups->first[place] + number];
}

static int pack_block(const struct batch *batch, const struct kasuri_blocks *out, int rank, char *to)
{
    int position = 0, error = MPI_SUCCESS;
    if (out->is_plain)
        memcpy(to, kasuri_address(out, rank), batch->bytes);
    else
        error = PMPI_Pack(kasuri_address(out, rank), (int)kasuri_count(out, rank), out->type, to, (int)batch->bytes, &position,
                          batch->plan->messages);
    return error;
}

static int unpack_block(const struct batch *batch, const struct kasuri_blocks *in, int rank, const char *from)
{
    int position = 0, error = MPI_SUCCESS;
    if (in->is_plain)
        memcpy(kasuri_address(in, rank), from, batch->bytes);
    else
        error = PMPI_Unpack(from, (int)batch->bytes, &position, kasuri_address(in, rank), (int)kasuri_count(in, rank), in->type,
                            batch->plan->messages);
    return error;
}

/* What this rank sends in the phases, block by block. */
static int pack(const struct batch *batch, const struct kasuri_blocks *out, char *to)
{
    int error = MPI_SUCCESS;
    for (int i = 0; i < batch->steps; i++)
        for (size_t number = 0; number < members(batch, batch->step[i].to) && error == MPI_SUCCESS; number++, to += batch->bytes)
            error = pack_block(batch, out, member(batch, batch->step[i].to, number), to);
    return error;
}

static int unpack(const struct batch *batch, const struct kasuri_blocks *in, const char *from)
{
    int error = MPI_SUCCESS;
    for (int i = 0; i < batch->steps; i++)
        for (size_t number = 0; number < members(batch, batch->step[i].from) && error == MPI_SUCCESS; number++, from += batch->bytes)
            error = unpack_block(batch, in, member(batch, batch->step[i].from, number), from);
    return error;
}

/* One phase of the acting rank: `message` is sent and `answer` received. */
static int exchange(const struct batch *batch, struct kasuri_step step, const char *message, char *answer)
{
    const struct kasuri_plan *plan = batch->plan;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const size_t sent = batch->ranks * members(batch, step.to) * batch->bytes,
                 received = batch->ranks * members(batch, step.from) * batch->bytes;
    int error = MPI_SUCCESS;
    if (received > 0)
        error = PMPI_Irecv(answer, (int)received, MPI_BYTE, member(batch, step.from, 0), kasuri_tag(plan), plan->messages, &requests[0]);
    if (sent > 0 && error == MPI_SUCCESS)
        error = PMPI_Isend(message, (int)sent, MPI_BYTE, member(batch, step.to, 0), kasuri_tag(plan), plan->messages, &requests[1]);
    const int other = kasuri_wait_Waitall(2, requests, MPI_STATUSES_IGNORE);
    return error != MPI_SUCCESS ? error : other;
}

/* All phases of the acting rank, from what the ranks of its place send to what they receive. */
static int act(const struct batch *batch, const char *gathered, char *handed, char *message, char *answer)
{
    const size_t bytes = batch->bytes;
    size_t before_sent = 0, before_received = 0;
    for (int i = 0; i < batch->steps; i++) {
        const struct kasuri_step step = batch->step[i];
        const size_t sent = members(batch, step.to), received = members(batch, step.from);
        const int is_own = step.to >= 0 && step.to == step.from && step.to == batch->plan->groups.place[batch->plan->rank];
        char *come = is_own ? message : answer;
        for (size_t from = 0; from < batch->ranks; from++)
            memcpy(message + from * sent * bytes, gathered + (from * batch->sent + before_sent) * bytes, sent * bytes);
        const int error = is_own ? MPI_SUCCESS : exchange(batch, step, message, answer);
        if (error != MPI_SUCCESS)
            return error;
        for (size_t to = 0; to < batch->ranks; to++)
            for (size_t from = 0; from < received; from++)
                memcpy(handed + (to * batch->received + before_received + from) * bytes, come + (from * batch->ranks + to) * bytes, bytes);
        before_sent += sent;
        before_received += received;
    }
    return MPI_SUCCESS;
}

/* Memory of a batch, of which the acting rank needs more. */
struct room {
    char *out, *in, *gathered, *handed, *message, *answer;
};

static int make_room(const struct batch *batch, int acts, struct room *room)
{
    const size_t message = batch->ranks * (size_t)batch->plan->groups.most * batch->bytes + 1;
    *room = (struct room){.out = malloc(batch->sent * batch->bytes + 1), .in = malloc(batch->received * batch->bytes + 1)};
    if (acts) {
        room->gathered = malloc(batch->ranks * batch->sent * batch->bytes + 1);
        room->handed = malloc(batch->ranks * batch->received * batch->bytes + 1);
        room->message = malloc(message);
        room->answer = malloc(message);
    }
    return room->out && room->in && (!acts || (room->gathered && room->handed && room->message && room->answer));
}

static void free_room(const struct room *room)
{
    free(room->out);
    free(room->in);
    free(room->gathered);
    free(room->handed);
    free(room->message);
    free(room->answer);
}

static int run_batch(const struct batch *batch, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    const struct kasuri_plan *plan = batch->plan;
    const int acts = member(batch, plan->groups.place[plan->rank], 0) == plan->rank;
    const int sent = (int)(batch->sent * batch->bytes), received = (int)(batch->received * batch->bytes);
    struct room room;
    int error = make_room(batch, acts, &room) ? pack(batch, out, room.out) : MPI_ERR_NO_MEM;
    if (error == MPI_SUCCESS)
        error = PMPI_Gather(room.out, sent, MPI_BYTE, room.gathered, sent, MPI_BYTE, 0, plan->node);
    if (error == MPI_SUCCESS && acts)
        error = act(batch, room.gathered, room.handed, room.message, room.answer);
    if (error == MPI_SUCCESS)
        error = PMPI_Scatter(room.handed, received, MPI_BYTE, room.in, received, MPI_BYTE, 0, plan->node);
    if (error == MPI_SUCCESS)
        error = unpack(batch, in, room.in);
    free_room(&room);
    return error;
}

int kasuri_run_gathered(const struct kasuri_plan *plan, const struct kasuri_blocks *out, const struct kasuri_blocks *in)
{
    struct batch batch = {.plan = plan, .bytes = (size_t)kasuri_bytes(in, plan->rank)};
    int error = MPI_SUCCESS;
    batch.ranks = members(&batch, plan->groups.place[plan->rank]);
    /* The same phases for all ranks of a place; other places may take others. */
    for (int first = 0; first < plan->place_steps && error == MPI_SUCCESS; first += batch.steps) {
        batch.step = &plan->place_step[first];
        batch.steps = 0;
        batch.sent = batch.received = 0;
        while (first + batch.steps < plan->place_steps) {
            const struct kasuri_step step = batch.step[batch.steps];
            const size_t sent = batch.sent + members(&batch, step.to), received = batch.received + members(&batch, step.from);
            if (batch.steps > 0 && batch.ranks * (sent > received ? sent : received) * batch.bytes > BATCH)
                break;
            batch.sent = sent;
            batch.received = received;
            batch.steps++;
        }
        error = run_batch(&batch, out, in);
    }
    return error;
}
