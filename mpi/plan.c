/* Finds out, for a communicator, whether the schedule applies to its ranks where they run, and what this rank does in each phase.
 *
 * Every rank tells all others what it has read and where it runs; all then decide from the same facts, so all decide the same. */
#include "own.h"
#include "plan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "background.h"
#include "schedule.h"
#include "settings.h"
#include "trace.h"

/* An MPI library has some 2,000 communicators (MPICH); so many may have a second one for the messages of schedules. */
enum { NAME = 256, REASON = 512, MAX_COMMUNICATORS = 128 };

/* What a rank tells the others. */
struct facts {
    uint32_t checksum;
    /* Its rank in MPI_COMM_WORLD. */
    int32_t world_rank;
    /* Has it a communicator to spare? */
    int32_t has_room;
    int32_t unused;
    struct kasuri_settings settings;
    /* Where it runs. */
    char host[NAME];
};

/* The plans of a communicator: its attribute. */
struct kasuri_plans {
    /* MPI_COMM_NULL when the program has freed it. */
    MPI_Comm comm;
    /* Operations in the background. The plans stay until the last has ended. */
    int held;
    /* MPI_COMM_NULL until the first that needs it. */
    MPI_Comm messages;
    struct kasuri_plan *of[KASURI_COLLECTIVES];
};

static struct kasuri_schedule schedules[KASURI_COLLECTIVES];
static struct kasuri_settings settings[KASURI_COLLECTIVES];
static char unusable[REASON];
static char host[NAME];
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Comm alone = MPI_COMM_NULL;
static int own_world_rank, own_world_size;
static atomic_int communicators;
/* Of what a program's thread and the background change: `comm` and `held` of plans. */
static pthread_mutex_t holding = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Changes whenever plans are freed. */
static atomic_uint age = 1;

/* The communicator of the thread's last collective, and its plans: to ask MPI for an attribute takes a twentieth of a short call. The
 * handle of a freed communicator may come back as that of another, so nothing is remembered beyond the end of any plan. */
static KASURI_OWN_OF_THREAD struct {
    MPI_Comm comm;
    struct kasuri_plans *plans;
    unsigned age;
} last;

void kasuri_say(enum kasuri_collective collective, const char *reason)
{
    static int has_spoken[KASURI_COLLECTIVES];
    if (own_world_rank == 0 && !has_spoken[collective]) {
        has_spoken[collective] = 1;
        /* What is wrong with the file is wrong for all. */
        for (int i = 0; i < KASURI_COLLECTIVES && *unusable; i++)
            has_spoken[i] = 1;
        fprintf(stderr, "kasuri: the MPI library's own %s is used: %s\n", kasuri_name_of(collective), reason);
    }
}

struct kasuri_counts kasuri_calls[KASURI_COLLECTIVES], kasuri_background_calls[KASURI_COLLECTIVES];

/* How many calls have gone by a schedule. For tests. */
unsigned long long kasuri_alltoall_scheduled(void)
{
    return kasuri_calls[KASURI_ALLTOALL].scheduled;
}

/* The same for a collective by its number in files. */
unsigned long long kasuri_scheduled(int collective)
{
    return collective >= 0 && collective < KASURI_COLLECTIVES ? kasuri_calls[collective].scheduled : 0;
}

/* The same of calls in the background. */
unsigned long long kasuri_background_scheduled(int collective)
{
    return collective >= 0 && collective < KASURI_COLLECTIVES ? kasuri_background_calls[collective].scheduled : 0;
}

/* How many calls that do not wait went by the schedule, and why none did. */
static void report_background(void)
{
    const char *reason = "";
    if (!kasuri_wants_background())
        reason = ": KASURI_MPI_NONBLOCKING is not set";
    else if (!kasuri_has_background())
        reason = ": MPI has no MPI_THREAD_MULTIPLE";
    for (int i = KASURI_COLLECTIVES; i-- > 0;) {
        const struct kasuri_counts *calls = &kasuri_background_calls[i];
        if (calls->scheduled + calls->left > 0)
            fprintf(stderr, "kasuri: non-blocking %ss of rank 0: %llu by the schedule, %llu by the MPI library%s\n",
                    kasuri_name_of((enum kasuri_collective)i), calls->scheduled, calls->left, reason);
    }
}

void kasuri_report(void)
{
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!getenv("KASURI_MPI_REPORT") || rank != 0)
        return;
    for (int i = KASURI_COLLECTIVES; i-- > 0;)
        if (i == KASURI_ALLTOALL || kasuri_has_schedule((enum kasuri_collective)i))
            fprintf(stderr, "kasuri: %ss of rank 0: %llu by the schedule, %llu by the MPI library\n",
                    kasuri_name_of((enum kasuri_collective)i), kasuri_calls[i].scheduled, kasuri_calls[i].left);
    report_background();
    if (kasuri_calls[KASURI_ALLTOALL].gathered > 0)
        fprintf(stderr, "kasuri: of those by the schedule %llu were gathered within the hosts\n", kasuri_calls[KASURI_ALLTOALL].gathered);
}

int kasuri_has_schedule(enum kasuri_collective collective)
{
    return schedules[collective].bytes != NULL;
}

static void free_plan(struct kasuri_plan *plan)
{
    if (!plan)
        return;
    free(plan->groups.first);
    free(plan->groups.member);
    free(plan->groups.place);
    free(plan->step);
    free(plan->place_step);
    free(plan->round);
    free(plan->piece);
    free(plan->room);
    free(plan);
}

/* Frees the plans of a communicator. Those of MPI itself end with MPI, which frees what is left. */
static void free_plans(struct kasuri_plans *plans, int is_of_mpi)
{
    for (int i = 0; i < KASURI_COLLECTIVES; i++) {
        if (!is_of_mpi && plans->of[i] && plans->of[i]->node != MPI_COMM_NULL)
            PMPI_Comm_free(&plans->of[i]->node);
        free_plan(plans->of[i]);
    }
    if (!is_of_mpi && plans->messages != MPI_COMM_NULL) {
        PMPI_Comm_free(&plans->messages);
        communicators--;
    }
    free(plans);
}

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    struct kasuri_plans *plans = value;
    (void)key;
    (void)extra;
    atomic_fetch_add(&age, 1);
    pthread_mutex_lock(&holding);
    plans->comm = MPI_COMM_NULL;
    const int is_held = plans->held > 0;
    pthread_mutex_unlock(&holding);
    if (!is_held)
        free_plans(plans, comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF);
    return MPI_SUCCESS;
}

void kasuri_hold(struct kasuri_plan *plan)
{
    pthread_mutex_lock(&holding);
    plan->plans->held++;
    pthread_mutex_unlock(&holding);
}

void kasuri_release(struct kasuri_plan *plan)
{
    struct kasuri_plans *plans = plan->plans;
    pthread_mutex_lock(&holding);
    const int is_over = --plans->held == 0 && plans->comm == MPI_COMM_NULL;
    pthread_mutex_unlock(&holding);
    if (is_over)
        free_plans(plans, 0);
}

void kasuri_call_error_handler(const struct kasuri_plan *plan, int error)
{
    pthread_mutex_lock(&holding);
    const MPI_Comm comm = plan->plans->comm;
    pthread_mutex_unlock(&holding);
    if (comm != MPI_COMM_NULL)
        PMPI_Comm_call_errhandler(comm, error);
}

MPI_Comm kasuri_alone(void)
{
    return alone;
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

/* Reads a schedule's file. Returns 0, or -1 and, in `unusable`, what is wrong. */
static int read_file(const char *path)
{
    struct kasuri_schedule schedule;
    char reason[REASON - NAME];
    if (kasuri_schedule_read(path, &schedule, reason, sizeof reason) != 0) {
        snprintf(unusable, sizeof unusable, "%.*s %s", NAME - 1, path, reason);
        return -1;
    }
    const enum kasuri_collective collective = schedule.collective;
    if (schedules[collective].bytes)
        snprintf(unusable, sizeof unusable, "%.*s is a second schedule of %ss", NAME - 1, path, kasuri_name_of(collective));
    else if ((uint32_t)own_world_size < schedule.ranks)
        snprintf(unusable, sizeof unusable, "%.*s is for %u ranks; the program has %d", NAME - 1, path, (unsigned)schedule.ranks,
                 own_world_size);
    else if (kasuri_settings_read(&settings[collective], schedule.min_bytes, reason, sizeof reason) != 0)
        snprintf(unusable, sizeof unusable, "%s", reason);
    if (*unusable) {
        kasuri_schedule_free(&schedule);
        return -1;
    }
    settings[collective].has_background = kasuri_has_background();
    schedules[collective] = schedule;
    return 0;
}

/* The schedules' files, as this process sees them: one, or several with colons between them. */
static void read_schedules(void)
{
    const char *paths = getenv("KASURI_MPI_SCHEDULE");
    char *copy = paths && *paths ? strdup(paths) : NULL, *rest = NULL;
    if (!copy) {
        snprintf(unusable, sizeof unusable, "KASURI_MPI_SCHEDULE names no schedule");
        return;
    }
    for (char *path = strtok_r(copy, ":", &rest); path && read_file(path) == 0; path = strtok_r(NULL, ":", &rest))
        ;
    free(copy);
}

/* What does not change, once in a process. */
static void start(void)
{
    PMPI_Comm_rank(MPI_COMM_WORLD, &own_world_rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &own_world_size);
    alone = second(MPI_COMM_SELF);
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
    const char *given = getenv("KASURI_MPI_HOST");
    if (given)
        snprintf(host, sizeof host, "%s", given);
    else if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "?");
    read_schedules();
    if (!*unusable && alone == MPI_COMM_NULL)
        snprintf(unusable, sizeof unusable, "the MPI library has no communicator left");
}

int kasuri_is_valid(MPI_Datatype type)
{
    /* Nothing is read from it: the message goes nowhere. But of no elements a type may be anything. */
    static const char somewhere;
    return type != MPI_DATATYPE_NULL && alone != MPI_COMM_NULL && PMPI_Send(&somewhere, 1, type, MPI_PROC_NULL, 0, alone) == MPI_SUCCESS;
}

int kasuri_is_commutative(MPI_Op op, MPI_Datatype type)
{
    /* Nothing is reduced; the MPI library looks at the arguments. */
    static const char sent;
    static char received;
    int is_commutative = 0;
    if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP || alone == MPI_COMM_NULL)
        return 0;
    return PMPI_Allreduce(&sent, &received, 0, type, op, alone) == MPI_SUCCESS && PMPI_Op_commutative(op, &is_commutative) == MPI_SUCCESS &&
           is_commutative;
}

void kasuri_end(void)
{
    kasuri_end_background();
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Rank 0 speaks for all, though it may have taken part in none. */
    if (rank == 0 && getenv("KASURI_MPI_SCHEDULE")) {
        pthread_once(&once, start);
        if (*unusable)
            kasuri_say(KASURI_ALLTOALL, unusable);
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

/* Ranks of the communicator or places of the schedule, while places are given. */
struct lists {
    int *ranks, *places;
};

/* Gives the ranks of a host, of which `first` is the first, its places: each its own, in the order in which they stand in the communicator;
 * or, where the host has fewer places, equally many share each. Returns how many places it has. */
static int place_host(const struct kasuri_schedule *schedule, const struct facts *facts, int size, int first, struct lists lists,
                      int *place)
{
    int ranks = 0, places = 0;
    for (int rank = first; rank < size; rank++)
        if (is_same_host(facts[first].host, facts[rank].host))
            lists.ranks[ranks++] = rank;
    for (int i = 0; i < (int)schedule->ranks; i++)
        if (is_same_host(schedule->hosts[i], facts[first].host))
            lists.places[places++] = i;
    const int used = places < ranks ? places : ranks;
    for (int i = 0; i < ranks && places > 0; i++)
        place[lists.ranks[i]] = lists.places[(int64_t)i * used / ranks];
    return places;
}

/* Gives each rank its place by its host. */
static int place_by_host(const struct kasuri_schedule *schedule, const struct facts *facts, int size, struct lists lists, int *place,
                         char *reason, size_t length)
{
    for (int rank = 0; rank < size; rank++)
        place[rank] = -1;
    for (int rank = 0; rank < size; rank++) {
        if (place[rank] < 0 && place_host(schedule, facts, size, rank, lists, place) == 0) {
            snprintf(reason, length, "rank %d runs on %s, where the schedule has no place for it", rank, facts[rank].host);
            return -1;
        }
    }
    return 0;
}

/* Gives each rank its place by its number in MPI_COMM_WORLD; or, where the schedule has as many ranks as there are hosts, that of its host:
 * hosts count in the order of their first ranks. */
static int place_by_number(const struct kasuri_schedule *schedule, const struct facts *facts, int size, struct lists lists, int *place,
                           char *reason, size_t length)
{
    int hosts = 0;
    for (int rank = 0; rank < size; rank++)
        place[rank] = facts[rank].world_rank;
    if ((uint32_t)own_world_size == schedule->ranks)
        return 0;
    if (size < own_world_size) {
        snprintf(reason, length,
                 "the schedule names no hosts and has fewer ranks than the program: where a part of them runs, it does not say");
        return -1;
    }
    for (int rank = 0; rank < size; rank++)
        lists.ranks[facts[rank].world_rank] = rank;
    for (int i = 0; i < size; i++) {
        const int rank = lists.ranks[i];
        int at = 0;
        while (at < hosts && !is_same_host(facts[lists.places[at]].host, facts[rank].host))
            at++;
        if (at == hosts && (uint32_t)hosts++ < schedule->ranks)
            lists.places[at] = rank;
        if ((uint32_t)hosts > schedule->ranks)
            break;
        place[rank] = at;
    }
    if ((uint32_t)hosts == schedule->ranks)
        return 0;
    const int is_more = (uint32_t)hosts > schedule->ranks;
    snprintf(reason, length, "the schedule is for %u ranks or hosts; the program has %d ranks on %s%d host%s", (unsigned)schedule->ranks,
             size, is_more ? "at least " : "", hosts, hosts == 1 ? "" : "s");
    return -1;
}

/* The ranks of each place in the order of the communicator; or the reason why not. */
static int group(const struct kasuri_schedule *schedule, const struct facts *facts, struct kasuri_plan *plan, char *reason, size_t length)
{
    struct kasuri_groups *groups = &plan->groups;
    const int size = plan->size;
    for (int rank = 0; rank < size; rank++) {
        if (facts[rank].checksum != schedule->checksum) {
            snprintf(reason, length, "rank %d has read another schedule", rank);
            return -1;
        }
    }
    groups->places = (int)schedule->ranks;
    struct lists lists = {malloc((size_t)size * sizeof *lists.ranks), malloc((size_t)groups->places * sizeof *lists.places)};
    int status = -1;
    if (lists.ranks && lists.places)
        status = (schedule->hosts ? place_by_host : place_by_number)(schedule, facts, size, lists, groups->place, reason, length);
    free(lists.ranks);
    free(lists.places);
    if (status != 0)
        return -1;
    for (int rank = 0; rank < size; rank++)
        groups->first[groups->place[rank] + 1]++;
    for (int place = 0; place < groups->places; place++) {
        if (groups->first[place + 1] > groups->most)
            groups->most = groups->first[place + 1];
        groups->first[place + 1] += groups->first[place];
    }
    /* From behind; then what was the end of a place is its beginning. */
    for (int rank = size; rank-- > 0;)
        groups->member[--groups->first[groups->place[rank] + 1]] = rank;
    for (int place = 0; place < groups->places; place++)
        groups->first[place] = groups->first[place + 1];
    groups->first[groups->places] = size;
    return 0;
}

/* The rank that acts for a place, MPI_PROC_NULL for none. */
static int leader(const struct kasuri_groups *groups, int place)
{
    return kasuri_members(groups, place) > 0 ? groups->member[groups->first[place]] : MPI_PROC_NULL;
}

/* The number of a rank among those of its place. */
static int number_in_place(const struct kasuri_groups *groups, int rank)
{
    int number = 0;
    while (groups->member[groups->first[groups->place[rank]] + number] != rank)
        number++;
    return number;
}

/* Adds the steps between two pairs of places. In turn t the rank of number i meets that of number i + t, modulo the ranks of a place at
 * most: a numbering that both ends share, so that all go through the steps in one order. */
static void add_steps(struct kasuri_plan *plan, int number, int to, int from)
{
    const struct kasuri_groups *groups = &plan->groups;
    const int self = groups->place[plan->rank];
    for (int turn = to == self ? 1 : 0; turn < groups->most; turn++) {
        const int there = (number + turn) % groups->most, here = (number + groups->most - turn) % groups->most;
        struct kasuri_step step = {MPI_PROC_NULL, MPI_PROC_NULL};
        if (to >= 0 && there < kasuri_members(groups, to))
            step.to = groups->member[groups->first[to] + there];
        if (from >= 0 && here < kasuri_members(groups, from))
            step.from = groups->member[groups->first[from] + here];
        if (step.to != MPI_PROC_NULL || step.from != MPI_PROC_NULL)
            plan->step[plan->steps++] = step;
    }
}

/* What this rank does in each phase of an all-to-all, after what the ranks of its place exchange among themselves. */
static int list_steps(const struct kasuri_schedule *schedule, struct kasuri_plan *plan)
{
    const struct kasuri_groups *groups = &plan->groups;
    const int self = groups->place[plan->rank], number = number_in_place(groups, plan->rank);
    plan->step = malloc(2 * (size_t)plan->size * sizeof *plan->step);
    plan->place_step = malloc((schedule->phases + (size_t)1) * sizeof *plan->place_step);
    if (!plan->step || !plan->place_step)
        return -1;
    add_steps(plan, number, self, self);
    plan->place_step[plan->place_steps++] = (struct kasuri_step){self, self};
    for (uint32_t phase = 0; phase < schedule->phases; phase++) {
        const uint32_t to = kasuri_destination(schedule, phase, (uint32_t)self);
        struct kasuri_step step = {-1, -1};
        if (to != KASURI_NOBODY && kasuri_members(groups, (int)to) > 0)
            step.to = (int)to;
        for (int place = 0; place < groups->places; place++)
            if (kasuri_members(groups, place) > 0 && kasuri_destination(schedule, phase, (uint32_t)place) == (uint32_t)self)
                step.from = place;
        if (step.to < 0 && step.from < 0)
            continue;
        plan->place_step[plan->place_steps++] = step;
        add_steps(plan, number, step.to, step.from);
    }
    return 0;
}

/* Adds the pieces of a message to the plan, if there is room; counts them in any case. */
static int add_pieces(struct kasuri_plan *plan, const struct kasuri_message *message, size_t *pieces)
{
    for (uint32_t i = 0; i < message->runs; i++) {
        const struct kasuri_run run = kasuri_run_of(message, i);
        if (plan->piece)
            plan->piece[*pieces] = (struct kasuri_piece){(int)run.first, (int)run.count, run.is_added};
        ++*pieces;
    }
    return (int)message->runs;
}

/* Goes through the messages of this rank's place, with `round` and `piece` still NULL to count them. */
static void go_through(const struct kasuri_schedule *schedule, struct kasuri_plan *plan, size_t *pieces)
{
    const struct kasuri_groups *groups = &plan->groups;
    const uint32_t self = (uint32_t)groups->place[plan->rank];
    struct kasuri_cursor cursor = {0};
    struct kasuri_message message, received = {0};
    int is_open = 0, has_received = 0;
    uint32_t phase = 0;
    struct kasuri_round now = {0};
    *pieces = 0;
    plan->rounds = 0;
    for (int found = 1; found > 0;) {
        found = kasuri_next(schedule, &cursor, &message);
        if (is_open && (found <= 0 || message.phase != phase)) {
            /* What is received stands behind what is sent. */
            now.received = has_received ? add_pieces(plan, &received, pieces) : 0;
            if (plan->round)
                plan->round[plan->rounds] = now;
            plan->rounds++;
            is_open = has_received = 0;
        }
        if (found <= 0 || (message.from != self && message.to != self))
            continue;
        if (!is_open)
            now = (struct kasuri_round){.step = {MPI_PROC_NULL, MPI_PROC_NULL}, .first = *pieces};
        is_open = 1;
        phase = message.phase;
        if (message.from == self) {
            now.step.to = leader(groups, (int)message.to);
            now.sent = add_pieces(plan, &message, pieces);
        } else {
            now.step.from = leader(groups, (int)message.from);
            received = message;
            has_received = 1;
        }
    }
}

/* What this rank does in each phase of another collective: nothing if another acts for its place. */
static int list_rounds(const struct kasuri_schedule *schedule, struct kasuri_plan *plan)
{
    size_t pieces = 0;
    plan->parts = (int)schedule->parts;
    plan->most_parts = (int)schedule->most_parts;
    if (leader(&plan->groups, plan->groups.place[plan->rank]) != plan->rank)
        return 0;
    go_through(schedule, plan, &pieces);
    struct kasuri_round *round = malloc(((size_t)plan->rounds + 1) * sizeof *round);
    struct kasuri_piece *piece = malloc((pieces + 1) * sizeof *piece);
    plan->round = round;
    plan->piece = piece;
    if (!round || !piece)
        return -1;
    go_through(schedule, plan, &pieces);
    return 0;
}

/* Of a collective other than the all-to-all all places are needed; and where a place has a part of the data, its ranks must follow each
 * other so that the part is one piece. */
static int is_served(const struct kasuri_plan *plan, char *reason, size_t length)
{
    const struct kasuri_groups *groups = &plan->groups;
    const char *name = kasuri_name_of(plan->collective);
    if (plan->collective == KASURI_ALLTOALL)
        return 1;
    for (int place = 0; place < groups->places; place++) {
        const int members = kasuri_members(groups, place), *member = &groups->member[groups->first[place]];
        if (members == 0) {
            snprintf(reason, length, "no rank of the communicator is at place %d of the %d of the schedule; %ss need all", place,
                     groups->places, name);
            return 0;
        }
        for (int i = 1; i < members && plan->collective != KASURI_ALLREDUCE; i++) {
            if (member[i] != member[0] + i) {
                snprintf(
                    reason, length,
                    "ranks %d and %d share a terminal, and others are between them; schedules of %ss need ranks that follow each other",
                    member[0], member[i], name);
                return 0;
            }
        }
    }
    return 1;
}

/* The settings, on which all have agreed. */
static void take_settings(struct kasuri_plan *plan, const struct kasuri_settings *agreed)
{
    plan->least = agreed->least;
    plan->most = agreed->most;
    plan->gathered = agreed->gathered;
    plan->is_tried = agreed->is_tried;
    plan->has_background = agreed->has_background != 0;
    plan->least_list_seen = plan->least <= plan->most ? plan->least : plan->most + 1;
    const MPI_Count pairs = (MPI_Count)plan->groups.most * plan->groups.most;
    plan->least_seen = plan->collective == KASURI_ALLTOALL ? plan->least_list_seen / pairs : plan->least_list_seen;
    if (kasuri_trace_is_on())
        plan->least_seen = plan->least_list_seen = 0;
}

/* Does the schedule apply by what the ranks say? Fills in what follows from it. */
static int is_agreed(const struct facts *facts, struct kasuri_plan *plan, char *reason, size_t length)
{
    for (int rank = 0; rank < plan->size; rank++) {
        if (!facts[rank].has_room) {
            snprintf(reason, length, "%d communicators have a schedule already", MAX_COMMUNICATORS);
            return 0;
        }
        if (memcmp(&facts[rank].settings, &facts[0].settings, sizeof facts->settings) != 0) {
            snprintf(reason, length,
                     "ranks 0 and %d have other settings (KASURI_MPI_MIN_BYTES, KASURI_MPI_MAX_BYTES, KASURI_MPI_GATHER_BYTES, "
                     "KASURI_MPI_NONBLOCKING)",
                     rank);
            return 0;
        }
    }
    if (group(&schedules[plan->collective], facts, plan, reason, length) != 0 || !is_served(plan, reason, length))
        return 0;
    take_settings(plan, &facts[0].settings);
    return 1;
}

/* Have all ranks of the communicator what they need? */
static int have_all(MPI_Comm comm, int have)
{
    int all = 0;
    return PMPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all;
}

/* Can all ranks of the communicator use a schedule of the collective? Where none can because none is given, nothing is said: a schedule of
 * another collective is enough. */
static int can_all(MPI_Comm comm, const struct kasuri_plan *plan)
{
    const char *paths = getenv("KASURI_MPI_SCHEDULE");
    int can = *unusable || !kasuri_has_schedule(plan->collective) ? plan->rank : plan->size, first = 0;
    if (PMPI_Allreduce(&can, &first, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS || first == plan->size)
        return first == plan->size;
    char reason[REASON];
    snprintf(reason, sizeof reason, "rank %d cannot use the schedule", first);
    if (*unusable && (plan->collective == KASURI_ALLTOALL || (paths && *paths)))
        kasuri_say(plan->collective, unusable);
    else if (!*unusable && kasuri_has_schedule(plan->collective))
        kasuri_say(plan->collective, reason);
    return 0;
}

/* Memory for the groups of the communicator. */
static int make_groups(struct kasuri_plan *plan)
{
    struct kasuri_groups *groups = &plan->groups;
    groups->first = calloc((size_t)schedules[plan->collective].ranks + 1, sizeof *groups->first);
    groups->member = malloc((size_t)plan->size * sizeof *groups->member);
    groups->place = malloc((size_t)plan->size * sizeof *groups->place);
    return groups->first && groups->member && groups->place;
}

/* The communicators of a plan: one for messages, which all plans of a communicator share, and one of the ranks of each place. */
static int make_communicators(MPI_Comm comm, struct kasuri_plans *plans, struct kasuri_plan *plan)
{
    if (plans->messages == MPI_COMM_NULL) {
        plans->messages = second(comm);
        communicators += plans->messages != MPI_COMM_NULL;
    }
    if (!have_all(comm, plans->messages != MPI_COMM_NULL)) {
        if (plans->messages != MPI_COMM_NULL) {
            PMPI_Comm_free(&plans->messages);
            communicators--;
        }
        return 0;
    }
    if (plan->groups.most > 1) {
        if (PMPI_Comm_split(plans->messages, plan->groups.place[plan->rank], plan->rank, &plan->node) != MPI_SUCCESS)
            plan->node = MPI_COMM_NULL;
        else
            PMPI_Comm_set_errhandler(plan->node, MPI_ERRORS_RETURN);
        if (!have_all(comm, plan->node != MPI_COMM_NULL)) {
            if (plan->node != MPI_COMM_NULL)
                PMPI_Comm_free(&plan->node);
            return 0;
        }
    }
    plan->messages = plans->messages;
    return 1;
}

/* Fills in a plan of a communicator of one world; it stays without messages where the schedule does not apply. */
static void agree(MPI_Comm comm, struct kasuri_plans *plans, struct kasuri_plan *plan, int world_rank)
{
    if (!can_all(comm, plan))
        return;
    const struct kasuri_schedule *schedule = &schedules[plan->collective];
    struct facts mine;
    memset(&mine, 0, sizeof mine);
    mine.checksum = schedule->checksum;
    mine.world_rank = world_rank;
    mine.has_room = plans->messages != MPI_COMM_NULL || communicators < MAX_COMMUNICATORS;
    mine.settings = settings[plan->collective];
    snprintf(mine.host, sizeof mine.host, "%s", host);
    struct facts *facts = malloc((size_t)plan->size * sizeof *facts);
    char reason[REASON] = "there is not enough memory";
    int applies = have_all(comm, make_groups(plan) && facts) &&
                  PMPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, facts, (int)sizeof mine, MPI_BYTE, comm) == MPI_SUCCESS &&
                  is_agreed(facts, plan, reason, sizeof reason);
    if (applies) {
        snprintf(reason, sizeof reason, "there is not enough memory");
        applies = have_all(comm, (plan->collective == KASURI_ALLTOALL ? list_steps : list_rounds)(schedule, plan) == 0);
    }
    if (applies) {
        snprintf(reason, sizeof reason, "the MPI library has no communicator left");
        applies = make_communicators(comm, plans, plan);
    }
    if (!applies)
        kasuri_say(plan->collective, reason);
    free(facts);
}

/* Those who were spawned leave it to their parents. */
static void say_of_worlds(enum kasuri_collective collective)
{
    MPI_Comm parent = MPI_COMM_NULL;
    PMPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL && (collective == KASURI_ALLTOALL || kasuri_has_schedule(collective)))
        kasuri_say(collective, "processes of several worlds take part, which were spawned or have connected");
}

/* Makes a plan of a communicator. */
static struct kasuri_plan *make(MPI_Comm comm, struct kasuri_plans *plans, enum kasuri_collective collective)
{
    struct kasuri_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    plan->collective = collective;
    plan->plans = plans;
    plan->messages = plan->node = MPI_COMM_NULL;
    PMPI_Comm_size(comm, &plan->size);
    PMPI_Comm_rank(comm, &plan->rank);
    int *world_ranks = malloc((size_t)plan->size * sizeof *world_ranks);
    if (plan->size > 1) {
        if (world_ranks && find_in_world(comm, plan->size, world_ranks))
            agree(comm, plans, plan, world_ranks[plan->rank]);
        else
            say_of_worlds(collective);
    }
    free(world_ranks);
    return plan;
}

/* The plans that the communicator has as its attribute, NULL if it has none yet. */
static struct kasuri_plans *find(MPI_Comm comm)
{
    struct kasuri_plans *plans = NULL;
    int is_known = 0;
    if (keyval == MPI_KEYVAL_INVALID || PMPI_Comm_get_attr(comm, keyval, &plans, &is_known) != MPI_SUCCESS || !is_known)
        return NULL;
    return plans;
}

/* Makes room for the plans at the communicator's first collective, if it may have any. */
static struct kasuri_plans *begin(MPI_Comm comm)
{
    int is_between = 0, has_world = 0;
    /* Communicators of sessions (MPI 4) may have no world. */
    if (PMPI_Initialized(&has_world) != MPI_SUCCESS || !has_world || PMPI_Comm_test_inter(comm, &is_between) != MPI_SUCCESS || is_between)
        return NULL;
    pthread_once(&once, start);
    struct kasuri_plans *plans = keyval != MPI_KEYVAL_INVALID ? calloc(1, sizeof *plans) : NULL;
    if (!plans)
        return NULL;
    plans->comm = comm;
    plans->messages = MPI_COMM_NULL;
    if (PMPI_Comm_set_attr(comm, keyval, plans) == MPI_SUCCESS)
        return plans;
    free(plans);
    return NULL;
}

/* The plans that the communicator has already. */
static struct kasuri_plans *known(MPI_Comm comm)
{
    const unsigned now = atomic_load(&age);
    if (last.comm == comm && last.age == now)
        return last.plans;
    struct kasuri_plans *plans = find(comm);
    if (plans) {
        last.comm = comm;
        last.plans = plans;
        last.age = now;
    }
    return plans;
}

/* A plan that applies. */
static struct kasuri_plan *applied(struct kasuri_plan *plan)
{
    return plan && plan->messages != MPI_COMM_NULL ? plan : NULL;
}

struct kasuri_plan *kasuri_plan_of(MPI_Comm comm, enum kasuri_collective collective)
{
    struct kasuri_plans *plans = known(comm);
    if (!plans && begin(comm))
        plans = known(comm);
    if (!plans)
        return NULL;
    if (!plans->of[collective])
        plans->of[collective] = make(comm, plans, collective);
    return applied(plans->of[collective]);
}

struct kasuri_plan *kasuri_known_plan(MPI_Comm comm, enum kasuri_collective collective)
{
    struct kasuri_plans *plans = comm == MPI_COMM_NULL ? NULL : known(comm);
    return plans ? applied(plans->of[collective]) : NULL;
}

void kasuri_prepare(MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL || !kasuri_wants_background())
        return;
    for (int i = 0; i < KASURI_COLLECTIVES; i++)
        kasuri_plan_of(comm, (enum kasuri_collective)i);
}
