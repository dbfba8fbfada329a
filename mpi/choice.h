/* Which is faster for messages of a length: the schedule, or the MPI library's own way? Both are tried. */
#ifndef KASURI_CHOICE_H
#define KASURI_CHOICE_H

#include <mpi.h>

/* Lengths that are tried apart: powers of two. */
enum { KASURI_LENGTHS = 64 };

/* What is known of one length. Begins as zeros. The same on all ranks but for `best`. */
struct kasuri_choice {
    /* Calls so far, and those from which and before which both are tried next. */
    unsigned calls, from, until;
    /* The shortest times in seconds on this rank so far, of the MPI library's own and of the schedule; and those of the slowest ranks. */
    double best[2], slowest[2];
};

/* The length to which a message belongs. */
int kasuri_length(MPI_Count bytes);

/* Goes the next call by the schedule? All ranks have the same answer. */
int kasuri_choose(const struct kasuri_choice *choice);

/* Counts a call, and how long it took on this rank. Collective after the last of some trials. */
void kasuri_learn(struct kasuri_choice *choice, MPI_Comm comm, double seconds);

#endif
