/* Calls that begin MPI and make communicators. They are the MPI library's own; in them the ranks may wait for each other, so they agree
 * on schedules for calls that must not wait. */
#include <mpi.h>
#include <stdio.h>

#include "background.h"
#include "own.h"
#include "plan.h"

/* After the beginning of MPI. */
static void begin(int level)
{
    int rank = 0;
    if (level == MPI_THREAD_MULTIPLE)
        kasuri_start_background();
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && !kasuri_has_background())
        fprintf(stderr, "kasuri: the MPI library's own non-blocking calls are used: it has no MPI_THREAD_MULTIPLE\n");
    kasuri_prepare(MPI_COMM_WORLD);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    if (!kasuri_wants_background())
        return PMPI_Init_thread(argc, argv, required, provided);
    const int error = PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
    if (error == MPI_SUCCESS)
        begin(*provided);
    return error;
}

int MPI_Init(int *argc, char ***argv)
{
    int provided;
    return kasuri_wants_background() ? MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided) : PMPI_Init(argc, argv);
}

KASURI_TAKES(Init);
KASURI_TAKES(Init_thread);

#define MAKES(name, parameters, arguments)                                                                                                 \
    int MPI_##name parameters                                                                                                              \
    {                                                                                                                                      \
        const int error = PMPI_##name arguments;                                                                                           \
        if (error == MPI_SUCCESS)                                                                                                          \
            kasuri_prepare(*made);                                                                                                         \
        return error;                                                                                                                      \
    }                                                                                                                                      \
    KASURI_TAKES(name)

MAKES(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made));
MAKES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made));
MAKES(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made));
MAKES(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made), (comm, type, key, info, made));
MAKES(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made));
MAKES(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made), (comm, group, tag, made));
MAKES(Cart_create, (MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder, MPI_Comm *made),
      (comm, dimensions, sizes, periods, reorder, made));
MAKES(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made));
