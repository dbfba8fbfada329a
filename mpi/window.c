#include "window.h"

#include "own.h"
#include "waits.h"

/* The error of one of the messages, where a call has failed for one. */
static int real_error(const struct kasuri_window *window, int error)
{
    int class = error;
    PMPI_Error_class(error, &class);
    for (int i = 0; class == MPI_ERR_IN_STATUS && i < window->count; i++) {
        const int own = window->statuses[i].MPI_ERROR;
        if (own != MPI_SUCCESS && own != MPI_ERR_PENDING)
            return own;
    }
    return error;
}

/* After an error: what has neither failed nor ended stays under way. */
static void keep_pending(struct kasuri_window *window, int error)
{
    int class = error, kept = 0;
    PMPI_Error_class(error, &class);
    for (int i = 0; class == MPI_ERR_IN_STATUS && i < window->count; i++) {
        if (window->requests[i] == MPI_REQUEST_NULL || window->statuses[i].MPI_ERROR != MPI_ERR_PENDING)
            continue;
        window->requests[kept] = window->requests[i];
        window->is_receive[kept++] = window->is_receive[i];
    }
    window->count = kept;
}

int kasuri_finish(struct kasuri_window *window, int waits, int *error)
{
    while (window->count > 0) {
        int has_ended = 1;
        const int own = waits ? kasuri_wait_Waitall(window->count, window->requests, window->statuses)
                              : PMPI_Testall(window->count, window->requests, &has_ended, window->statuses);
        if (own != MPI_SUCCESS) {
            kasuri_keep_first(error, real_error(window, own));
            keep_pending(window, own);
        } else if (has_ended) {
            window->count = 0;
        } else {
            return 0;
        }
    }
    return 1;
}

void kasuri_give_up(struct kasuri_window *window)
{
    for (int i = 0; i < window->count; i++) {
        if (window->is_receive[i]) {
            PMPI_Cancel(&window->requests[i]);
            PMPI_Wait(&window->requests[i], MPI_STATUS_IGNORE);
        } else {
            PMPI_Request_free(&window->requests[i]);
        }
    }
    window->count = 0;
}
