/* What a communicator does with the schedule. Made at its first all-to-all and kept as its attribute. */
#ifndef KASURI_PLAN_H
#define KASURI_PLAN_H

#include <mpi.h>

/* What a rank does in a phase: ranks of the communicator, or MPI_PROC_NULL. */
struct kasuri_step {
    int to;
    int from;
};

struct kasuri_plan {
    /* For the messages of schedules, so that no receive of the program can take one. MPI_COMM_NULL where the schedule does not apply. */
    MPI_Comm messages;
    int size;
    int rank;
    /* Phases in which this rank does anything. */
    int steps;
    struct kasuri_step *step;
};

/* The plan of a communicator; NULL where the schedule does not apply. Collective at the first call for a communicator. */
const struct kasuri_plan *kasuri_plan_of(MPI_Comm comm);

/* Says on standard error, once in this process and by one rank of the communicator, why the library's own all-to-all is used. */
void kasuri_say(int rank, const char *reason);

/* With KASURI_MPI_REPORT set, says how many calls went by the schedule. */
void kasuri_report(void);

#endif
