/* The same all-to-all or all-reduce many times, on the world and on its halves, with right data.
 *
 *     often CALLS BYTES [reduce]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int exchange(MPI_Comm comm, int calls, int bytes)
{
    int rank, size, is_right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char *out = malloc((size_t)size * (size_t)bytes), *in = malloc((size_t)size * (size_t)bytes);
    for (int call = 0; call < calls; call++) {
        for (int i = 0; i < size * bytes; i++)
            out[i] = (unsigned char)(call + 7 * rank + 3 * (i / bytes));
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
        for (int i = 0; i < size * bytes; i++)
            is_right &= in[i] == (unsigned char)(call + 7 * (i / bytes) + 3 * rank);
    }
    free(out);
    free(in);
    return is_right;
}

/* Every rank adds as much to every byte. */
static int reduce(MPI_Comm comm, int calls, int bytes)
{
    int rank, size, is_right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
    for (int call = 0; call < calls; call++) {
        for (int i = 0; i < bytes; i++)
            out[i] = (unsigned char)((call + i) % 7 + rank);
        MPI_Allreduce(out, in, bytes, MPI_UNSIGNED_CHAR, MPI_SUM, comm);
        for (int i = 0; i < bytes; i++)
            is_right &= in[i] == size * ((call + i) % 7) + size * (size - 1) / 2;
    }
    free(out);
    free(in);
    return is_right;
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    int rank, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int calls = argc > 1 ? atoi(argv[1]) : 1, bytes = argc > 2 ? atoi(argv[2]) : 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    int (*const run)(MPI_Comm, int, int) = argc > 3 ? reduce : exchange;
    int is_right = run(half, 1, 1);
    is_right &= run(MPI_COMM_WORLD, calls, bytes);
    MPI_Comm_free(&half);
    PMPI_Allreduce(&is_right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\n", all ? "as it should be" : "WRONG");
    MPI_Finalize();
    return all ? 0 : 1;
}
