/* Finds out, for a communicator, whether the schedule applies to its ranks where they run, and what this rank does in each phase.
 *
 * Every rank tells all others what it has read and where it runs; all then decide from the same facts, so all decide the same. */
#include "plan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schedule.h"
#include "settings.h"
#include "trace.h"

/* An MPI library has some 2,000 communicators (MPICH); so many may have a second one for the messages of schedules. */
enum { NAME = 256, REASON = 512, MAX_PLANS = 128 };

/* What a rank tells the others. */
struct facts {
    /* Could it read the file, and is the file for as many ranks as the program has? */
    int32_t usable;
    uint32_t checksum;
    /* Its rank in MPI_COMM_WORLD. */
    int32_t world_rank;
    /* Has it a communicator to spare? */
    int32_t has_room;
    struct kasuri_settings settings;
    /* Where it runs. */
    char host[NAME];
};

static struct kasuri_schedule schedule;
static struct kasuri_settings settings;
static char unusable[REASON];
static char host[NAME];
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Comm alone = MPI_COMM_NULL;
static int own_world_rank, plans;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Changes whenever a plan is freed. */
static atomic_uint age = 1;

/* The communicator of the thread's last all-to-all, and its plan: to ask MPI for an attribute takes a twentieth of a short call. The handle
 * of a freed communicator may come back as that of another, so nothing is remembered beyond the end of any plan. */
static KASURI_OWN_OF_THREAD struct {
    MPI_Comm comm;
    struct kasuri_plan *plan;
    unsigned age;
} last;

void kasuri_say(const char *reason)
{
    static int has_spoken;
    if (own_world_rank == 0 && !has_spoken) {
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
    atomic_fetch_add(&age, 1);
    /* The communicators of MPI itself end with MPI, which frees what is left. */
    if (plan->messages != MPI_COMM_NULL && comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF) {
        PMPI_Comm_free(&plan->messages);
        plans--;
    }
    free_plan(plan);
    return MPI_SUCCESS;
}

/* A second communicator of the same ranks: a new one, for a duplicate would call the program's own functions for its attributes. That
 * there is none left is no error of the program. */
static MPI_Comm second(MPI_Comm comm)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Group group;
    MPI_Errhandler handler;
    if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS)
        return MPI_COMM_NULL;
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    PMPI_Comm_group(comm, &group);
    if (PMPI_Comm_create(comm, group, &made) != MPI_SUCCESS)
        made = MPI_COMM_NULL;
    else
        PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    PMPI_Group_free(&group);
    PMPI_Comm_set_errhandler(comm, handler);
    PMPI_Errhandler_free(&handler);
    return made;
}

/* The schedule's file, as this process sees it. */
static void read_schedule(void)
{
    const char *path = getenv("KASURI_MPI_SCHEDULE");
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
    else if (kasuri_settings_read(&settings, schedule.min_bytes, reason, sizeof reason) != 0)
        snprintf(unusable, sizeof unusable, "%s", reason);
}

/* What does not change, once in a process. */
static void start(void)
{
    PMPI_Comm_rank(MPI_COMM_WORLD, &own_world_rank);
    alone = second(MPI_COMM_SELF);
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
    const char *given = getenv("KASURI_MPI_HOST");
    if (given)
        snprintf(host, sizeof host, "%s", given);
    else if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "?");
    read_schedule();
    if (!*unusable && alone == MPI_COMM_NULL)
        snprintf(unusable, sizeof unusable, "the MPI library has no communicator left");
}

int kasuri_is_valid(MPI_Datatype type)
{
    /* Nothing is read from it: the message goes nowhere. But of no elements a type may be anything. */
    static const char somewhere;
    return type != MPI_DATATYPE_NULL && alone != MPI_COMM_NULL && PMPI_Send(&somewhere, 1, type, MPI_PROC_NULL, 0, alone) == MPI_SUCCESS;
}

void kasuri_end(void)
{
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Rank 0 speaks for all, though it may have taken part in none. */
    if (rank == 0 && getenv("KASURI_MPI_SCHEDULE")) {
        pthread_once(&once, start);
        if (*unusable)
            kasuri_say(unusable);
    }
    if (alone != MPI_COMM_NULL)
        PMPI_Comm_free(&alone);
}

/* The rank of each process of a communicator in MPI_COMM_WORLD. Fails if one is of another world: it was spawned, or has connected. Then
 * every process of the communicator finds one. */
static int find_in_world(MPI_Comm comm, int size, int *world_ranks)
{
    MPI_Group world, group;
    int *ranks = malloc((size_t)size * sizeof *ranks), is_inside = ranks != NULL;
    if (!ranks)
        return 0;
    for (int rank = 0; rank < size; rank++)
        ranks[rank] = rank;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, size, ranks, world, world_ranks);
    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    for (int rank = 0; rank < size; rank++)
        is_inside &= world_ranks[rank] != MPI_UNDEFINED;
    free(ranks);
    return is_inside;
}

/* Are these names of one host? One of them may have its domain behind it. */
static int is_same_host(const char *one, const char *other)
{
    const size_t length = strcspn(one, "."), other_length = strcspn(other, ".");
    if (one[length] && other[other_length])
        return strcmp(one, other) == 0;
    return length == other_length && strncmp(one, other, length) == 0;
}

/* The place of a rank in the schedule that is free: that of its host, or that of its number. schedule.ranks for none. */
static uint32_t place_of(const struct facts *facts, const int32_t *placed)
{
    const uint32_t number = (uint32_t)facts->world_rank;
    if (!schedule.hosts)
        return number < schedule.ranks && placed[number] < 0 ? number : schedule.ranks;
    /* A host with several ranks gives them its places in the order in which they stand in the communicator. */
    uint32_t place = 0;
    while (place < schedule.ranks && (placed[place] >= 0 || !is_same_host(schedule.hosts[place], facts->host)))
        place++;
    return place;
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
        const uint32_t found = place_of(&facts[rank], placed);
        if (found >= schedule.ranks) {
            snprintf(reason, length, "rank %d runs on %s, where the schedule has no place for it", rank, facts[rank].host);
            return -1;
        }
        placed[found] = rank;
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

/* Does the schedule apply by what the ranks say? Fills in what follows from it: places, and the settings, on which all must agree. */
static int is_agreed(const struct facts *facts, struct kasuri_plan *plan, int32_t *placed, char *reason, size_t length)
{
    plan->least = facts[0].settings.least;
    plan->most = facts[0].settings.most;
    plan->is_tried = facts[0].settings.is_tried;
    plan->least_seen = plan->least <= plan->most ? plan->least : plan->most + 1;
    if (kasuri_trace_is_on())
        plan->least_seen = 0;
    for (int rank = 0; rank < plan->size; rank++) {
        if (!facts[rank].usable) {
            snprintf(reason, length, "rank %d cannot use the schedule", rank);
            if (*unusable)
                snprintf(reason, length, "%s", unusable);
            return 0;
        }
        if (!facts[rank].has_room) {
            snprintf(reason, length, "%d communicators have a schedule already", MAX_PLANS);
            return 0;
        }
        if (memcmp(&facts[rank].settings, &facts[0].settings, sizeof facts->settings) != 0) {
            snprintf(reason, length, "ranks 0 and %d have other settings (KASURI_MPI_MIN_BYTES, KASURI_MPI_MAX_BYTES)", rank);
            return 0;
        }
    }
    return place(facts, plan->size, placed, reason, length) == 0;
}

/* Have all ranks of the communicator what they need? */
static int have_all(MPI_Comm comm, int have)
{
    int all = 0;
    return PMPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all;
}

/* Fills in the plan of a communicator of one world; it stays without messages where the schedule does not apply. */
static void agree(MPI_Comm comm, struct kasuri_plan *plan, int world_rank)
{
    struct facts mine;
    memset(&mine, 0, sizeof mine);
    mine = (struct facts){.usable = !*unusable,
                          .checksum = schedule.checksum,
                          .world_rank = world_rank,
                          .has_room = plans < MAX_PLANS,
                          .settings = settings};
    snprintf(mine.host, sizeof mine.host, "%s", host);
    struct facts *facts = malloc((size_t)plan->size * sizeof *facts);
    int32_t *placed = malloc((schedule.ranks + 1) * sizeof *placed);
    char reason[REASON] = "there is not enough memory";
    int applies = have_all(comm, facts && placed) &&
                  PMPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, facts, (int)sizeof mine, MPI_BYTE, comm) == MPI_SUCCESS &&
                  is_agreed(facts, plan, placed, reason, sizeof reason);
    if (applies) {
        snprintf(reason, sizeof reason, "there is not enough memory");
        applies = have_all(comm, list_steps(plan, placed) == 0);
    }
    if (applies) {
        snprintf(reason, sizeof reason, "the MPI library has no communicator left");
        plan->messages = second(comm);
        applies = have_all(comm, plan->messages != MPI_COMM_NULL);
        plans += plan->messages != MPI_COMM_NULL;
    }
    if (!applies) {
        kasuri_say(reason);
        if (plan->messages != MPI_COMM_NULL) {
            PMPI_Comm_free(&plan->messages);
            plans--;
        }
    }
    free(facts);
    free(placed);
}

/* Those who were spawned leave it to their parents. */
static void say_of_worlds(void)
{
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        kasuri_say("processes of several worlds take part, which were spawned or have connected");
}

/* Makes the plan of a communicator. */
static struct kasuri_plan *make(MPI_Comm comm)
{
    struct kasuri_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->messages = MPI_COMM_NULL;
    PMPI_Comm_size(comm, &plan->size);
    PMPI_Comm_rank(comm, &plan->rank);
    int *world_ranks = malloc((size_t)plan->size * sizeof *world_ranks);
    if (plan->size > 1) {
        if (world_ranks && find_in_world(comm, plan->size, world_ranks))
            agree(comm, plan, world_ranks[plan->rank]);
        else
            say_of_worlds();
    }
    free(world_ranks);
    PMPI_Comm_set_attr(comm, keyval, plan);
    return plan;
}

/* The plan that the communicator has as its attribute, NULL if it has none yet. */
static struct kasuri_plan *find(MPI_Comm comm)
{
    struct kasuri_plan *plan = NULL;
    int is_known = 0;
    if (keyval == MPI_KEYVAL_INVALID || PMPI_Comm_get_attr(comm, keyval, &plan, &is_known) != MPI_SUCCESS || !is_known)
        return NULL;
    return plan;
}

/* Makes the plan at the communicator's first all-to-all, if it may have one. */
static struct kasuri_plan *begin(MPI_Comm comm)
{
    int is_between = 0, has_world = 0;
    /* Communicators of sessions (MPI 4) may have no world. */
    if (PMPI_Initialized(&has_world) != MPI_SUCCESS || !has_world || PMPI_Comm_test_inter(comm, &is_between) != MPI_SUCCESS || is_between)
        return NULL;
    pthread_once(&once, start);
    return keyval != MPI_KEYVAL_INVALID ? make(comm) : NULL;
}

struct kasuri_plan *kasuri_plan_of(MPI_Comm comm)
{
    const unsigned now = atomic_load(&age);
    if (last.comm == comm && last.age == now)
        return last.plan;
    struct kasuri_plan *found = find(comm), *plan = found ? found : begin(comm);
    if (plan && plan->messages == MPI_COMM_NULL)
        plan = NULL;
    /* One just made is found at the next call, unless MPI could not keep it. */
    if (found) {
        last.comm = comm;
        last.plan = plan;
        last.age = now;
    }
    return plan;
}
