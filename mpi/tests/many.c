/* As many communicators as the MPI library has for a program without us, alive at once, each with an all-to-all.
 *
 *     many NUMBER
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    enum { MOST = 4096, MAX_RANKS = 64 };
    static MPI_Comm comms[MOST];
    int rank, size, made = 0, is_right = 1, all = 0, out[MAX_RANKS], in[MAX_RANKS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int wanted = argc > 1 && atoi(argv[1]) < MOST ? atoi(argv[1]) : MOST;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    while (made < wanted && MPI_Comm_dup(MPI_COMM_WORLD, &comms[made]) == MPI_SUCCESS) {
        for (int i = 0; i < size; i++)
            out[i] = 1000 * made + 10 * rank + i;
        is_right &= MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comms[made]) == MPI_SUCCESS;
        for (int i = 0; i < size; i++)
            is_right &= in[i] == 1000 * made + 10 * i + rank;
        made++;
    }
    for (int i = 0; i < made; i++)
        MPI_Comm_free(&comms[i]);
    /* Those that are free again may have a schedule again. */
    MPI_Comm one;
    is_right &= MPI_Comm_dup(MPI_COMM_WORLD, &one) == MPI_SUCCESS;
    is_right &= MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, one) == MPI_SUCCESS;
    MPI_Comm_free(&one);
    PMPI_Allreduce(&is_right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d communicators: %s\n", made, all && made == wanted ? "as it should be" : "WRONG");
    MPI_Finalize();
    return all && made == wanted ? 0 : 1;
}
