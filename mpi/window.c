#include "window.h"

int kasuri_finish(struct kasuri_window *window)
{
    int error = window->count > 0 ? PMPI_Waitall(window->count, window->requests, window->statuses) : MPI_SUCCESS, class = error;
    PMPI_Error_class(error, &class);
    for (int i = 0; class == MPI_ERR_IN_STATUS && i < window->count; i++) {
        const int own = window->statuses[i].MPI_ERROR;
        if (own != MPI_SUCCESS && own != MPI_ERR_PENDING) {
            error = own;
            break;
        }
    }
    window->count = 0;
    return error;
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
