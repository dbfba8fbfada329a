/* Messages that are under way. */
#ifndef KASURI_WINDOW_H
#define KASURI_WINDOW_H

#include <mpi.h>

/* Who makes one has room for as many as it begins. */
struct kasuri_window {
    MPI_Request *requests;
    MPI_Status *statuses;
    int *is_receive;
    int count;
};

/* Counts a message that has been begun without an error. */
static inline void kasuri_begun(struct kasuri_window *window, int is_receive, int error)
{
    window->is_receive[window->count] = is_receive;
    window->count += error == MPI_SUCCESS;
}

/* Keeps the first of two errors. */
static inline void kasuri_keep_first(int *error, int other)
{
    if (*error == MPI_SUCCESS)
        *error = other;
}

/* Has all ended that is under way? If it may wait, it has. `*error` becomes the first real error among theirs, if it is none yet. */
int kasuri_finish(struct kasuri_window *window, int waits, int *error);

/* After a message that could not be begun, the others would wait for ever. */
void kasuri_give_up(struct kasuri_window *window);

#endif
