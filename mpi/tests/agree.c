/* Where ranks could decide differently, or by what was true of another communicator: communicators one after the other, each of other
 * ranks, whose handles may be the same; blocks that are short for many calls, then long; and blocks of nothing, for which one rank gives
 * one buffer and the others two. The same of sums, of which one rank may get nothing and have no buffer for it.
 *
 *     agree
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 16, MOST = 5000 };

static unsigned value(int turn, int from, int to)
{
    return (unsigned)(1000 * turn + 100 * from + to);
}

/* Blocks of so many numbers, as MPI_Alltoall or MPI_Alltoallv. Are they right? */
static int exchange(MPI_Comm comm, int turn, int length, int is_vector)
{
    int rank, size, counts[RANKS], places[RANKS], is_right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned *out = malloc((size_t)(size * length) * sizeof *out), *in = calloc((size_t)(size * length), sizeof *in);
    for (int i = 0; i < size * length; i++)
        out[i] = value(turn, rank, i / length);
    for (int i = 0; i < size; i++) {
        counts[i] = length;
        places[i] = i * length;
    }
    if (is_vector)
        MPI_Alltoallv(out, counts, places, MPI_UNSIGNED, in, counts, places, MPI_UNSIGNED, comm);
    else
        MPI_Alltoall(out, length, MPI_UNSIGNED, in, length, MPI_UNSIGNED, comm);
    for (int i = 0; i < size * length; i++)
        is_right &= in[i] == value(turn, i / length, rank);
    free(out);
    free(in);
    return is_right;
}

/* A sum of vectors, and one of which each rank gets as many numbers but for rank 1, which gets none. Are they right? */
static int add(MPI_Comm comm, int turn, int length)
{
    int rank, size, counts[RANKS], is_right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned *out = malloc((size_t)(size * length) * sizeof *out), *in = calloc((size_t)(size * length), sizeof *in);
    for (int i = 0; i < size * length; i++)
        out[i] = value(turn, rank, i);
    for (int i = 0; i < size; i++)
        counts[i] = i == 1 ? 0 : length;
    const unsigned base = (unsigned)size * value(turn, 0, 0) + 100 * (unsigned)(size * (size - 1) / 2);
    MPI_Allreduce(out, in, length, MPI_UNSIGNED, MPI_SUM, comm);
    for (int i = 0; i < length; i++)
        is_right &= in[i] == base + (unsigned)(size * i);
    MPI_Reduce_scatter(out, rank == 1 ? NULL : in, counts, MPI_UNSIGNED, MPI_SUM, comm);
    for (int i = 0; i < counts[rank]; i++)
        is_right &= in[i] == base + (unsigned)(size * ((rank > 1 ? rank - 1 : 0) * length + i));
    MPI_Allgather(out, length, MPI_UNSIGNED, in, length, MPI_UNSIGNED, comm);
    for (int i = 0; i < size * length; i++)
        is_right &= in[i] == value(turn, i / length, i % length);
    free(out);
    free(in);
    return is_right;
}

static int one_after_the_other(int rank)
{
    enum { COMMUNICATORS = 24, CALLS = 6 };
    int is_right = 1;
    for (int turn = 0; turn < COMMUNICATORS; turn++) {
        MPI_Comm part;
        MPI_Comm_split(MPI_COMM_WORLD, rank % (1 + turn % 3), turn % 2 ? rank : -rank, &part);
        for (int call = 0; call < CALLS; call++)
            is_right &= exchange(part, turn, 1, call % 2) & add(part, turn, 1 + call);
        MPI_Comm_free(&part);
    }
    return is_right;
}

static int short_then_long(void)
{
    int is_right = 1;
    for (int turn = 0; turn < 400; turn++)
        is_right &= exchange(MPI_COMM_WORLD, turn, turn < 200 ? 1 + turn % 3 : MOST, turn % 5 > 0);
    for (int turn = 0; turn < 100; turn++)
        is_right &= add(MPI_COMM_WORLD, turn, turn < 50 ? 1 + turn % 3 : 4 * MOST);
    return is_right;
}

static int nothing(int rank)
{
    char one[1], other[1];
    int is_right = 1;
    for (int call = 0; call < 100; call++)
        is_right &= MPI_Alltoall(one, 0, MPI_BYTE, rank == 0 ? one : other, 0, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS &&
                    MPI_Allreduce(one, rank == 0 ? one : other, 0, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD) == MPI_SUCCESS;
    return is_right;
}

int main(int argc, char **argv)
{
    int rank, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int is_right = one_after_the_other(rank);
    is_right &= short_then_long();
    is_right &= nothing(rank);
    PMPI_Allreduce(&is_right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\n", all ? "as it should be" : "WRONG");
    MPI_Finalize();
    return all ? 0 : 1;
}
