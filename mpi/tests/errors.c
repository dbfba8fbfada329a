/* Errors inside an all-to-all come out as MPI's own, and the program goes on.
 *
 *     errors send        the library of fail_send.c is preloaded: every rank is told MPI_ERR_OTHER
 *     errors truncate    rank 1 awaits less than rank 0 sends: it is told MPI_ERR_TRUNCATE
 *     errors handler     as `send`; the error handler of the communicator is called, and only it
 *     errors reduce      as `send`, of an all-reduce
 *     errors later       as `truncate`, of an all-to-all that does not wait: the request says so, and others go on
 *     errors between     an all-to-all between two groups is left to the MPI library
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 64 };

static int handled;

static void handler(MPI_Comm *comm, int *error, ...)
{
    (void)comm;
    MPI_Error_class(*error, &handled);
}

static int class_of(int error)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    return class;
}

/* Is `condition` true on all ranks? */
static int all(int condition)
{
    int result = 0;
    PMPI_Allreduce(&condition, &result, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return result;
}

static int fail_to_send(int size)
{
    int out[MAX_RANKS] = {0}, in[MAX_RANKS];
    (void)size;
    return all(class_of(MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD)) == MPI_ERR_OTHER);
}

static int fail_to_reduce(void)
{
    int out[4 * MAX_RANKS] = {0}, in[4 * MAX_RANKS];
    return all(class_of(MPI_Allreduce(out, in, 4 * MAX_RANKS, MPI_INT, MPI_SUM, MPI_COMM_WORLD)) == MPI_ERR_OTHER);
}

static int truncate_message(int rank, int size)
{
    int out[4 * MAX_RANKS] = {0}, in[4 * MAX_RANKS], sent[MAX_RANKS], received[MAX_RANKS], places[MAX_RANKS];
    for (int i = 0; i < size; i++) {
        sent[i] = received[i] = 2;
        places[i] = 4 * i;
    }
    sent[1] = rank == 0 ? 4 : 2;
    const int error = MPI_Alltoallv(out, sent, places, MPI_INT, in, received, places, MPI_INT, MPI_COMM_WORLD);
    return all(class_of(error) == (rank == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
}

static int truncate_later(int rank, int size)
{
    int out[4 * MAX_RANKS] = {0}, in[2][4 * MAX_RANKS], sent[MAX_RANKS], received[MAX_RANKS], places[MAX_RANKS];
    MPI_Request requests[2];
    MPI_Status statuses[2] = {{.MPI_ERROR = MPI_SUCCESS}, {.MPI_ERROR = MPI_SUCCESS}};
    for (int i = 0; i < size; i++) {
        sent[i] = received[i] = 2;
        places[i] = 4 * i;
    }
    sent[1] = rank == 0 ? 4 : 2;
    MPI_Ialltoallv(out, sent, places, MPI_INT, in[0], received, places, MPI_INT, MPI_COMM_WORLD, &requests[0]);
    MPI_Ialltoall(out, 2, MPI_INT, in[1], 2, MPI_INT, MPI_COMM_WORLD, &requests[1]);
    const int error = MPI_Waitall(2, requests, statuses);
    /* MPI may leave it to the program to wait for those that did not fail. */
    if (class_of(error) == MPI_ERR_IN_STATUS && class_of(statuses[1].MPI_ERROR) == MPI_ERR_PENDING)
        statuses[1].MPI_ERROR = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    return all(rank == 1 ? class_of(error) == MPI_ERR_IN_STATUS && class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE &&
                               class_of(statuses[1].MPI_ERROR) == MPI_SUCCESS
                         : error == MPI_SUCCESS);
}

static int call_handler(int size)
{
    MPI_Errhandler mine;
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
    const int is_told = fail_to_send(size) && all(handled == MPI_ERR_OTHER);
    MPI_Errhandler_free(&mine);
    return is_told;
}

static int between_groups(int rank, int size)
{
    MPI_Comm half, both;
    int out[MAX_RANKS], in[MAX_RANKS], others, is_right = 1;
    const int is_low = rank < size / 2, first = is_low ? size / 2 : 0;
    MPI_Comm_split(MPI_COMM_WORLD, is_low, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first, 7, &both);
    MPI_Comm_remote_size(both, &others);
    for (int i = 0; i < others; i++)
        out[i] = 100 * rank + first + i;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, both);
    for (int i = 0; i < others; i++)
        is_right &= in[i] == 100 * (first + i) + rank;
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
    return all(is_right);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const char *mode = argc > 1 ? argv[1] : "";
    int is_right = 0;
    if (strcmp(mode, "send") == 0)
        is_right = fail_to_send(size);
    else if (strcmp(mode, "reduce") == 0)
        is_right = fail_to_reduce();
    else if (strcmp(mode, "truncate") == 0)
        is_right = truncate_message(rank, size);
    else if (strcmp(mode, "later") == 0)
        is_right = truncate_later(rank, size);
    else if (strcmp(mode, "handler") == 0)
        is_right = call_handler(size);
    else if (strcmp(mode, "between") == 0)
        is_right = between_groups(rank, size);
    if (rank == 0)
        printf("%s: %s\n", mode, is_right ? "as it should be" : "WRONG");
    MPI_Finalize();
    return is_right ? 0 : 1;
}
