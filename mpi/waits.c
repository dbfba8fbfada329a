/* A thread that only waits would take the core from the one in the background. And with several threads not all waits of MPI libraries end:
 * MPICH 4.0 does not wake a thread for a message that another one of the process has sent, and Open MPI 4.1 waits for ever for several
 * requests of which one has failed already. So the thread asks again and again. */
#include "waits.h"

#include "background.h"
#include "own.h"

int kasuri_wait_Wait(MPI_Request *request, MPI_Status *status)
{
    int has_ended = 0, error = MPI_SUCCESS;
    while (kasuri_has_background()) {
        error = PMPI_Test(request, &has_ended, status);
        if (has_ended || error != MPI_SUCCESS)
            return error;
        kasuri_help();
    }
    return PMPI_Wait(request, status);
}

int kasuri_wait_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    int has_ended = 0, error = MPI_SUCCESS;
    while (kasuri_has_background()) {
        error = PMPI_Testany(count, requests, index, &has_ended, status);
        if (has_ended || error != MPI_SUCCESS)
            return error;
        kasuri_help();
    }
    return PMPI_Waitany(count, requests, index, status);
}

int kasuri_wait_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int have_ended = 0, error = MPI_SUCCESS;
    while (kasuri_has_background()) {
        error = PMPI_Testall(count, requests, &have_ended, statuses);
        if (have_ended || error != MPI_SUCCESS)
            return error;
        kasuri_help();
    }
    return PMPI_Waitall(count, requests, statuses);
}

int kasuri_wait_Waitsome(int count, MPI_Request requests[], int *ended, int indices[], MPI_Status statuses[])
{
    int error = MPI_SUCCESS;
    while (kasuri_has_background()) {
        error = PMPI_Testsome(count, requests, ended, indices, statuses);
        if (error != MPI_SUCCESS || *ended != 0)
            return error;
        kasuri_help();
    }
    return PMPI_Waitsome(count, requests, ended, indices, statuses);
}
