/* What a communicator does with the schedule of a collective. Made at the first call of the collective and kept as its attribute. */
#ifndef KASURI_PLAN_H
#define KASURI_PLAN_H

#include <mpi.h>

#include "choice.h"
#include "schedule.h"

/* A variable that each thread has for itself. A preloaded library reaches it without a call. */
#define KASURI_OWN_OF_THREAD _Thread_local __attribute__((tls_model("initial-exec")))

/* What a rank does in a phase: ranks of the communicator, or MPI_PROC_NULL. */
struct kasuri_step {
    int to;
    int from;
};

/* Parts of the data that follow each other in the schedule, by its numbers of parts. The receiver adds them to what it has, or puts them in
 * its place. */
struct kasuri_piece {
    int first, count, is_added;
};

/* What a rank does in a phase of a collective other than the all-to-all. The pieces that it sends are followed by those that it receives.
 */
struct kasuri_round {
    struct kasuri_step step;
    size_t first;
    int sent, received;
};

/* Which ranks of the communicator share a place of the schedule: those of a host with more ranks than terminals. The first is the one that
 * acts for them. */
struct kasuri_groups {
    int places;
    /* By place and one beyond, where its ranks begin in the list. By rank, its place. */
    int *first, *member, *place;
    /* Ranks of a place at most. */
    int most;
};

static inline int kasuri_members(const struct kasuri_groups *groups, int place)
{
    return groups->first[place + 1] - groups->first[place];
}

/* Calls that are timed apart: of equal blocks and of blocks of their own lengths, from one buffer to another and in place. */
enum { KASURI_CALLS = 4 };

/* The plans of a communicator. */
struct kasuri_plans;

struct kasuri_plan {
    enum kasuri_collective collective;
    struct kasuri_plans *plans;
    /* For the messages of schedules, so that no receive of the program can take one. MPI_COMM_NULL where the schedule does not apply. */
    MPI_Comm messages;
    int size;
    int rank;
    struct kasuri_groups groups;
    /* The ranks of the place. MPI_COMM_NULL where each has a place of its own. */
    MPI_Comm node;
    /* Phases in which this rank does anything. Of an all-to-all, steps between ranks, and such between places that share messages. */
    int steps;
    struct kasuri_step *step;
    int place_steps;
    struct kasuri_step *place_step;
    /* Of other collectives: rounds, and how many parts the data have, and a message at most. */
    int rounds, parts, most_parts;
    struct kasuri_round *round;
    struct kasuri_piece *piece;
    /* Memory for calls, kept for the next. */
    char *room;
    size_t room_bytes;
    /* Messages of fewer bytes, and of more, are left to the MPI library. All ranks have the same numbers. Blocks of fewer bytes than
     * `gathered` share the message of their place. */
    MPI_Count least, most, gathered;
    /* Calls of fewer bytes are the MPI library's, and nobody need be told: 0 on a rank that writes a trace. Of blocks of their own lengths,
     * which share no message, and of others. */
    MPI_Count least_seen, least_list_seen;
    /* Is the faster way found out by trial? */
    int is_tried;
    struct kasuri_choice choices[KASURI_CALLS][KASURI_LENGTHS];
    /* May calls go on in the background? */
    int has_background;
    /* Calls so far, of this rank as of all others; and calls that go on in the background. */
    unsigned calls, background_calls;
    /* Persistent calls that were prepared. */
    int persistent_calls;
    /* All-to-alls of blocks of their own lengths so far, and the longest message of any rank when they last told each other. */
    unsigned vectors;
    /* The number of the one at which they tell each other next. */
    unsigned tells_at;
    MPI_Count longest;
};

/* The plan of a communicator for a collective; NULL where the schedule does not apply. Collective at the first call for a communicator. */
struct kasuri_plan *kasuri_plan_of(MPI_Comm comm, enum kasuri_collective collective);

/* The plan if there is one already; never collective. */
struct kasuri_plan *kasuri_known_plan(MPI_Comm comm, enum kasuri_collective collective);

/* Makes the plans of a communicator for calls that cannot, since they must not wait. Collective; MPI_COMM_NULL has none. */
void kasuri_prepare(MPI_Comm comm);

/* Keeps a plan, though its communicator may be freed, until it is released as often. */
void kasuri_hold(struct kasuri_plan *plan);
void kasuri_release(struct kasuri_plan *plan);

/* Calls the error handler of the plan's communicator, if the program has not freed that. */
void kasuri_call_error_handler(const struct kasuri_plan *plan, int error);

/* A communicator of this rank alone, for messages to itself. */
MPI_Comm kasuri_alone(void);

/* Has this process read a schedule for the collective? */
int kasuri_has_schedule(enum kasuri_collective collective);

/* The tags of the messages of calls. Messages of schedules have a communicator of their own. What a call that failed has left there must
 * not be taken for a message of the next one: each has its own tag. MPI has 32,768 at least; those of each collective are divided among
 * calls, calls in the background and persistent ones. The latter keep theirs, and may be under way in any order. */
enum { KASURI_TAGS = 1 << 13, KASURI_CALL_TAGS = 1 << 11, KASURI_PERSISTENT_TAGS = 1 << 12 };

static inline int kasuri_tag(const struct kasuri_plan *plan)
{
    return (int)(plan->collective * KASURI_TAGS + plan->calls % KASURI_CALL_TAGS);
}

/* The tag of the next call in the background, which is counted. */
static inline int kasuri_background_tag(struct kasuri_plan *plan)
{
    return (int)(plan->collective * KASURI_TAGS + KASURI_CALL_TAGS + plan->background_calls++ % KASURI_CALL_TAGS);
}

/* The tag of another persistent call, which is counted; -1 if there is none left. */
static inline int kasuri_persistent_tag(struct kasuri_plan *plan)
{
    if (plan->persistent_calls == KASURI_PERSISTENT_TAGS)
        return -1;
    return (int)plan->collective * KASURI_TAGS + 2 * KASURI_CALL_TAGS + plan->persistent_calls++;
}

/* Would the MPI library take messages of this type? Asked without the program's error handlers. */
int kasuri_is_valid(MPI_Datatype type);

/* Is it a reduction that MPI takes, and may its order be changed? */
int kasuri_is_commutative(MPI_Op op, MPI_Datatype type);

/* Says on standard error why the library's own collective is used: once in a job, by rank 0 of MPI_COMM_WORLD. */
void kasuri_say(enum kasuri_collective collective, const char *reason);

/* How many calls have gone by a schedule, how many by the MPI library, and how many of the former with messages that ranks share. */
struct kasuri_counts {
    unsigned long long scheduled, left, gathered;
};
extern struct kasuri_counts kasuri_calls[KASURI_COLLECTIVES];

/* The same of calls that do not wait, and of persistent ones. */
extern struct kasuri_counts kasuri_background_calls[KASURI_COLLECTIVES];

/* With KASURI_MPI_REPORT set, says how many calls went by the schedule. */
void kasuri_report(void);

/* Before MPI ends: frees what is not a communicator's own. */
void kasuri_end(void);

#endif
