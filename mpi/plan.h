/* What a communicator does with the schedule. Made at its first all-to-all and kept as its attribute. */
#ifndef KASURI_PLAN_H
#define KASURI_PLAN_H

#include <mpi.h>

#include "choice.h"

/* A variable that each thread has for itself. A preloaded library reaches it without a call. */
#define KASURI_OWN_OF_THREAD _Thread_local __attribute__((tls_model("initial-exec")))

/* What a rank does in a phase: ranks of the communicator, or MPI_PROC_NULL. */
struct kasuri_step {
    int to;
    int from;
};

/* Calls that are timed apart: of equal blocks and of blocks of their own lengths, from one buffer to another and in place. */
enum { KASURI_KINDS = 4 };

struct kasuri_plan {
    /* For the messages of schedules, so that no receive of the program can take one. MPI_COMM_NULL where the schedule does not apply. */
    MPI_Comm messages;
    int size;
    int rank;
    /* Phases in which this rank does anything. */
    int steps;
    struct kasuri_step *step;
    /* Messages of fewer bytes, and of more, are left to the MPI library. All ranks have the same numbers. */
    MPI_Count least, most;
    /* Calls of fewer bytes are the MPI library's, and nobody need be told: 0 on a rank that writes a trace. */
    MPI_Count least_seen;
    /* Is the faster way found out by trial? */
    int is_tried;
    struct kasuri_choice choices[KASURI_KINDS][KASURI_LENGTHS];
    /* All-to-alls so far, of this rank as of all others. */
    unsigned calls;
    /* All-to-alls of blocks of their own lengths so far, and the longest message of any rank when they last told each other. */
    unsigned vectors;
    /* The number of the one at which they tell each other next. */
    unsigned tells_at;
    MPI_Count longest;
};

/* The plan of a communicator; NULL where the schedule does not apply. Collective at the first call for a communicator. */
struct kasuri_plan *kasuri_plan_of(MPI_Comm comm);

/* Would the MPI library take messages of this type? Asked without the program's error handlers. */
int kasuri_is_valid(MPI_Datatype type);

/* Says on standard error why the library's own all-to-all is used: once in a job, by rank 0 of MPI_COMM_WORLD. */
void kasuri_say(const char *reason);

/* With KASURI_MPI_REPORT set, says how many calls went by the schedule. */
void kasuri_report(void);

/* Before MPI ends: frees what is not a communicator's own. */
void kasuri_end(void);

#endif
