/* All-to-alls among processes of several worlds, which are the MPI library's: a schedule knows the ranks of one world only.
 *
 *     spawn merge      as many processes are spawned and merged with their parents
 *     spawn connect    as many are spawned; the two worlds then meet at a port, and are merged
 *
 * The program spawns itself. Prints `cannot` where the MPI library cannot do that even without us. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 3 };

/* Do all receive what the others have sent, by both calls? */
static int exchange(MPI_Comm comm)
{
    int rank, size, is_right = 1, all = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *out = calloc((size_t)size * BLOCK, sizeof *out), *counts = calloc((size_t)size, sizeof *counts);
    int *in = calloc((size_t)size * BLOCK, sizeof *in), *places = calloc((size_t)size, sizeof *places);
    for (int i = 0; i < size * BLOCK; i++)
        out[i] = 100000 * rank + i;
    for (int i = 0; i < size; i++) {
        counts[i] = BLOCK;
        places[i] = i * BLOCK;
    }
    for (int turn = 0; turn < 2; turn++) {
        memset(in, 0, (size_t)size * BLOCK * sizeof *in);
        if (turn == 0)
            MPI_Alltoall(out, BLOCK, MPI_INT, in, BLOCK, MPI_INT, comm);
        else
            MPI_Alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, comm);
        for (int i = 0; i < size * BLOCK; i++)
            is_right &= in[i] == 100000 * (i / BLOCK) + rank * BLOCK + i % BLOCK;
    }
    free(out);
    free(in);
    free(counts);
    free(places);
    PMPI_Allreduce(&is_right, &all, 1, MPI_INT, MPI_LAND, comm);
    return all;
}

/* Parents open a port, which they tell their children over `link`; both sides then meet there. */
static MPI_Comm meet(MPI_Comm link, int is_parent)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm met;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (is_parent && rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, is_parent ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, link);
    if (is_parent)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &met);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &met);
    if (is_parent && rank == 0)
        MPI_Close_port(port);
    return met;
}

static int spawn(int argc, char **argv)
{
    MPI_Comm parent, link, both;
    int rank, size, is_right = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    const int is_parent = parent == MPI_COMM_NULL, connects = argc > 1 && strcmp(argv[1], "connect") == 0;
    link = parent;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (is_parent && MPI_Comm_spawn(argv[0], argv + 1, size, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &link, MPI_ERRCODES_IGNORE) != MPI_SUCCESS)
        return -1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    /* Each world by itself, too. */
    is_right &= exchange(MPI_COMM_WORLD);
    MPI_Comm between = connects ? meet(link, is_parent) : link;
    MPI_Intercomm_merge(between, !is_parent, &both);
    is_right &= exchange(both);
    /* Children first: ranks of the merged communicator and of the worlds then differ for both. */
    MPI_Comm backwards;
    int place;
    MPI_Comm_rank(both, &place);
    MPI_Comm_split(both, 0, -place, &backwards);
    is_right &= exchange(backwards);
    MPI_Comm_free(&backwards);
    MPI_Comm_free(&both);
    if (connects)
        MPI_Comm_disconnect(&between);
    MPI_Comm_disconnect(&link);
    return is_right;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    const char *mode = argc > 1 ? argv[1] : "merge";
    const int is_right = spawn(argc, argv);
    if (parent == MPI_COMM_NULL && rank == 0)
        printf("%s: %s\n", mode, is_right > 0 ? "as it should be" : is_right < 0 ? "cannot" : "WRONG");
    MPI_Finalize();
    return is_right ? 0 : 1;
}
