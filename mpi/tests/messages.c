/* Single messages in many ways, for their trace: every rank sends, by tag,
 *
 *     1   100 ints to the next rank, received from any
 *     2   10 doubles to the rank before, by MPI_Sendrecv
 *     3   as many ints as its rank to rank 0, which receives them from any
 *     4   nothing to its partner (rank xor 1), tested for
 *     5   7 chars to the next of the same parity, in a communicator that is gone when the message is waited for
 *     6   1 int to its partner, one of two requests that are waited for one by one
 */
#include <mpi.h>
#include <stdio.h>

enum { RING = 100 };

int main(int argc, char **argv)
{
    int rank, size, out[RING] = {0}, in[RING], index, flag = 0;
    double there[10] = {0}, back[10];
    char word[7] = "abcdef", read[7];
    MPI_Request requests[2];
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Irecv(in, RING, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, RING, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(there, 10, MPI_DOUBLE, (rank + size - 1) % size, 2, back, 10, MPI_DOUBLE, (rank + 1) % size, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 1; i < size && rank == 0; i++)
        MPI_Recv(in, RING, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank > 0)
        MPI_Send(out, rank, MPI_INT, 0, 3, MPI_COMM_WORLD);
    MPI_Irecv(NULL, 0, MPI_INT, rank ^ 1, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(NULL, 0, MPI_INT, rank ^ 1, 4, MPI_COMM_WORLD);
    while (!flag)
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Irecv(read, 7, MPI_CHAR, MPI_ANY_SOURCE, 5, half, &requests[0]);
    MPI_Isend(word, 7, MPI_CHAR, (rank / 2 + 1) % (size / 2), 5, half, &requests[1]);
    MPI_Comm_free(&half);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Irecv(in, 1, MPI_INT, rank ^ 1, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1, MPI_INT, rank ^ 1, 6, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 7, NULL, 0, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
