/* Finds out, for a communicator, whether the schedule applies to its ranks where they run, and what this rank does in each phase.
 *
 * Every rank tells all others what it has read and where it runs; all then decide from the same facts, so all decide the same. */
#include "plan.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schedule.h"

enum { NAME = 256, REASON = 512 };

/* What a rank tells the others. */
struct facts {
    /* Could it read the file, and is the file for as many ranks as the program has? */
    int32_t usable;
    uint32_t checksum;
    /* Its rank in MPI_COMM_WORLD, -1 outside. */
    int32_t world_rank;
    /* Where it runs. */
    char host[NAME];
};

static struct kasuri_schedule schedule;
static char unusable[REASON];
static char host[NAME];
static int keyval = MPI_KEYVAL_INVALID;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void kasuri_say(int rank, const char *reason)
{
    static int has_spoken;
    if (rank == 0 && !has_spoken) {
        has_spoken = 1;
        fprintf(stderr, "kasuri: the MPI library's own all-to-all is used: %s\n", reason);
    }
}

static void free_plan(struct kasuri_plan *plan)
{
    free(plan->step);
    free(plan);
}

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    struct kasuri_plan *plan = value;
    (void)key;
    (void)extra;
    /* The communicators of MPI itself end with MPI, which frees what is left. */
    if (plan->messages != MPI_COMM_NULL && comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF)
        PMPI_Comm_free(&plan->messages);
    free_plan(plan);
    return MPI_SUCCESS;
}

/* The file and the host's name, once in a process. */
static void start(void)
{
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
    const char *given = getenv("KASURI_MPI_HOST"), *path = getenv("KASURI_MPI_SCHEDULE");
    if (given)
        snprintf(host, sizeof host, "%s", given);
    else if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "?");
    if (!path || !*path) {
        snprintf(unusable, sizeof unusable, "KASURI_MPI_SCHEDULE names no schedule");
        return;
    }
    char reason[REASON - NAME];
    if (kasuri_schedule_read(path, &schedule, reason, sizeof reason) != 0) {
        snprintf(unusable, sizeof unusable, "%.*s %s", NAME - 1, path, reason);
        return;
    }
    int ranks = 0;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((uint32_t)ranks != schedule.ranks)
        snprintf(unusable, sizeof unusable, "%.*s is for %u ranks; the program has %d", NAME - 1, path, (unsigned)schedule.ranks, ranks);
}

static int world_rank(MPI_Comm comm, int rank)
{
    MPI_Group world, group;
    int found = MPI_UNDEFINED;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, 1, &rank, world, &found);
    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    return found == MPI_UNDEFINED ? -1 : found;
}

/* Are these names of one host? One of them may have its domain behind it. */
static int is_same_host(const char *one, const char *other)
{
    const size_t length = strcspn(one, "."), other_length = strcspn(other, ".");
    if (one[length] && other[other_length])
        return strcmp(one, other) == 0;
    return length == other_length && strncmp(one, other, length) == 0;
}

/* The rank of the communicator for each rank of the schedule, -1 for none; or the reason why not. */
static int place(const struct facts *facts, int size, int32_t *placed, char *reason, size_t length)
{
    for (uint32_t i = 0; i < schedule.ranks; i++)
        placed[i] = -1;
    for (int rank = 0; rank < size; rank++) {
        if (facts[rank].checksum != schedule.checksum) {
            snprintf(reason, length, "rank %d has read another schedule", rank);
            return -1;
        }
        uint32_t place = schedule.ranks;
        if (!schedule.hosts && facts[rank].world_rank >= 0)
            place = (uint32_t)facts[rank].world_rank;
        /* A host with several ranks gives them its places in the order in which they stand in the communicator. */
        for (uint32_t i = 0; schedule.hosts && place == schedule.ranks && i < schedule.ranks; i++)
            if (placed[i] < 0 && is_same_host(schedule.hosts[i], facts[rank].host))
                place = i;
        if (place >= schedule.ranks) {
            snprintf(reason, length, "rank %d runs on %s, where the schedule has no place for it", rank, facts[rank].host);
            return -1;
        }
        placed[place] = rank;
    }
    return 0;
}

/* What this rank does in each phase. */
static int list_steps(struct kasuri_plan *plan, const int32_t *placed)
{
    uint32_t self = 0;
    while (placed[self] != plan->rank)
        self++;
    plan->step = malloc((schedule.phases + 1) * sizeof *plan->step);
    if (!plan->step)
        return -1;
    for (uint32_t phase = 0; phase < schedule.phases; phase++) {
        const uint32_t to = kasuri_destination(&schedule, phase, self);
        struct kasuri_step step = {MPI_PROC_NULL, MPI_PROC_NULL};
        if (to != KASURI_NOBODY && placed[to] >= 0)
            step.to = placed[to];
        for (uint32_t rank = 0; rank < schedule.ranks; rank++)
            if (placed[rank] >= 0 && kasuri_destination(&schedule, phase, rank) == self)
                step.from = placed[rank];
        if (step.to != MPI_PROC_NULL || step.from != MPI_PROC_NULL)
            plan->step[plan->steps++] = step;
    }
    return 0;
}

/* Fills in the plan of a communicator; it stays without messages where the schedule does not apply. */
static void agree(MPI_Comm comm, struct kasuri_plan *plan)
{
    struct facts mine = {!*unusable, schedule.checksum, world_rank(comm, plan->rank), ""};
    snprintf(mine.host, sizeof mine.host, "%s", host);
    struct facts *facts = malloc((size_t)plan->size * sizeof *facts);
    int32_t *placed = malloc((schedule.ranks + 1) * sizeof *placed);
    char reason[REASON];
    int has_memory = facts && placed, all = 0;
    PMPI_Allreduce(&has_memory, &all, 1, MPI_INT, MPI_MIN, comm);
    if (!all) {
        kasuri_say(plan->rank, "there is not enough memory");
        goto done;
    }
    if (PMPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, facts, (int)sizeof mine, MPI_BYTE, comm) != MPI_SUCCESS)
        goto done;
    for (int rank = 0; rank < plan->size; rank++) {
        if (!facts[rank].usable) {
            snprintf(reason, sizeof reason, "rank %d cannot use the schedule", rank);
            kasuri_say(plan->rank, *unusable ? unusable : reason);
            goto done;
        }
    }
    if (place(facts, plan->size, placed, reason, sizeof reason) != 0) {
        kasuri_say(plan->rank, reason);
        goto done;
    }
    int is_ready = list_steps(plan, placed) == 0;
    PMPI_Allreduce(&is_ready, &all, 1, MPI_INT, MPI_MIN, comm);
    MPI_Group group;
    PMPI_Comm_group(comm, &group);
    /* Not a duplicate: that would call the program's own functions for its attributes. */
    if (!all || PMPI_Comm_create(comm, group, &plan->messages) != MPI_SUCCESS)
        plan->messages = MPI_COMM_NULL;
    else
        PMPI_Comm_set_errhandler(plan->messages, MPI_ERRORS_RETURN);
    PMPI_Group_free(&group);
done:
    free(facts);
    free(placed);
}

const struct kasuri_plan *kasuri_plan_of(MPI_Comm comm)
{
    pthread_once(&once, start);
    struct kasuri_plan *plan = NULL;
    int is_known = 0, is_between = 0;
    PMPI_Comm_test_inter(comm, &is_between);
    if (is_between || keyval == MPI_KEYVAL_INVALID)
        return NULL;
    PMPI_Comm_get_attr(comm, keyval, &plan, &is_known);
    if (!is_known) {
        plan = calloc(1, sizeof *plan);
        if (!plan)
            return NULL;
        plan->messages = MPI_COMM_NULL;
        PMPI_Comm_size(comm, &plan->size);
        PMPI_Comm_rank(comm, &plan->rank);
        if (plan->size > 1)
            agree(comm, plan);
        PMPI_Comm_set_attr(comm, keyval, plan);
    }
    return plan->messages == MPI_COMM_NULL ? NULL : plan;
}
