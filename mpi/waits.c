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

/* One by one: MPICH 4.0 fails to test several persistent collectives of its own. */
int kasuri_wait_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    int result = MPI_SUCCESS;
    if (!kasuri_has_background() || count <= 0 || !requests)
        return PMPI_Waitall(count, requests, statuses);
    for (int i = 0; i < count; i++) {
        const int is_told = statuses != MPI_STATUSES_IGNORE;
        const int error = kasuri_wait_Wait(&requests[i], is_told ? &statuses[i] : MPI_STATUS_IGNORE);
        /* Statuses have errors only where one is told. */
        for (int j = 0; is_told && error != MPI_SUCCESS && result == MPI_SUCCESS && j < i; j++)
            statuses[j].MPI_ERROR = MPI_SUCCESS;
        if (error != MPI_SUCCESS)
            result = MPI_ERR_IN_STATUS;
        if (is_told && result != MPI_SUCCESS)
            statuses[i].MPI_ERROR = error;
    }
    return result;
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
