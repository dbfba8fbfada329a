/* The two ways take turns for the first calls of a length; then the ranks compare the slowest rank's shortest times, for whatever else a
 * machine does makes calls longer, never shorter. Both are tried again now and then, ever more rarely: a choice that was wrong because
 * the machine was busy does not stay. A trial is an all-to-all that the program needs in any case, so it costs no more than the
 * difference of the two. */
#include "choice.h"
#include "own.h"

/* Calls that are trials: at first, and each time again; the first ones do not count, for they make connections and touch memory for the
 * first time. The next trials come after AFTER times as many calls. */
enum { FIRST = 16, AGAIN = 8, UNCOUNTED = 4, AFTER = 4 };

enum { LIBRARY = 0, SCHEDULE = 1 };

int kasuri_length(MPI_Count bytes)
{
    int length = 0;
    while (bytes > 1 && length < KASURI_LENGTHS - 1) {
        bytes /= 2;
        length++;
    }
    return length;
}

static int is_trial(const struct kasuri_choice *choice)
{
    return choice->until == 0 || choice->calls >= choice->from;
}

int kasuri_choose(const struct kasuri_choice *choice)
{
    return is_trial(choice) ? choice->calls % 2 == SCHEDULE : choice->slowest[SCHEDULE] <= choice->slowest[LIBRARY];
}

void kasuri_learn(struct kasuri_choice *choice, MPI_Comm comm, double seconds)
{
    if (choice->until == 0)
        choice->until = FIRST;
    const int by = kasuri_choose(choice);
    double *best = &choice->best[by];
    if (choice->calls < UNCOUNTED + 2 || seconds < *best)
        *best = seconds;
    if (++choice->calls == choice->until) {
        PMPI_Allreduce(choice->best, choice->slowest, 2, MPI_DOUBLE, MPI_MAX, comm);
        choice->from = AFTER * choice->until;
        choice->until = choice->from + AGAIN;
    }
}
