/* Collectives with arguments that are wrong, or look it. All ranks make the same mistake, and the error handlers return. Printed for each
 * case: the class of the error, and a sum of what the receive buffers hold. Without and with the preloaded library the lines must be the
 * same, to a crash.
 *
 *     wrong FIRST CASES
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mistake {
    NONE,
    RECEIVE_IN_PLACE,
    NO_SEND_BUFFER,
    NO_RECEIVE_BUFFER,
    ONE_BUFFER,
    NO_SEND_TYPE,
    NO_RECEIVE_TYPE,
    SEND_TYPE_NOT_COMMITTED,
    RECEIVE_TYPE_NOT_COMMITTED,
    NEGATIVE_SEND_COUNT,
    NEGATIVE_RECEIVE_COUNT,
    NO_COUNTS,
    NOTHING_AND_NO_BUFFERS,
    NO_COMMUNICATOR,
    NOT_A_TYPE_IN_PLACE,
    NO_OPERATION,
    WRONG_OPERATION,
    MISTAKES
};

static const char *const NAMES[] = {
    "none",
    "recvbuf in place",
    "sendbuf NULL",
    "recvbuf NULL",
    "one buffer",
    "sendtype NULL",
    "recvtype NULL",
    "sendtype not committed",
    "recvtype not committed",
    "negative sendcount",
    "negative recvcount",
    "counts NULL",
    "nothing, buffers NULL",
    "comm NULL",
    "sendtype NULL, in place",
    "op NULL",
    "op not for the type",
};

static uint64_t state;

static unsigned draw(unsigned bound)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ z >> 31) % bound);
}

/* MPI_Alltoall, MPI_Alltoallv, and both with long counts where there are such; reductions, and an all-gather. */
enum form { EQUAL, LISTS, LONG_EQUAL, LONG_LISTS, SUM, SUM_BLOCKS, SUM_LISTS, GATHER, FORMS };

struct call {
    enum form form;
    void *out, *in;
    int has_counts, sendcount, recvcount, rank, size;
    MPI_Datatype sendtype, recvtype;
    MPI_Op op;
    MPI_Comm comm;
};

static int reduce(const struct call *c, const int *counts)
{
    if (c->form == SUM)
        return MPI_Allreduce(c->out, c->in, c->recvcount, c->recvtype, c->op, c->comm);
    if (c->form == SUM_BLOCKS)
        return MPI_Reduce_scatter_block(c->out, c->in, c->recvcount, c->recvtype, c->op, c->comm);
    if (c->form == SUM_LISTS)
        return MPI_Reduce_scatter(c->out, c->in, c->has_counts ? counts : NULL, c->recvtype, c->op, c->comm);
    return MPI_Allgather(c->out, c->sendcount, c->sendtype, c->in, c->recvcount, c->recvtype, c->comm);
}

static int make(const struct call *c)
{
    enum { MAX_RANKS = 64 };
    int sent[MAX_RANKS], received[MAX_RANKS], places[MAX_RANKS];
    for (int i = 0; i < c->size; i++) {
        /* A negative count is one among right ones. */
        sent[i] = c->sendcount < 0 && i != 1 ? 1 : c->sendcount;
        received[i] = c->recvcount < 0 && i != 1 ? 1 : c->recvcount;
        places[i] = i * (c->recvcount > 0 ? c->recvcount : 1);
    }
    if (c->form >= SUM)
        return reduce(c, received);
#if MPI_VERSION >= 4
    MPI_Count long_sent[MAX_RANKS], long_received[MAX_RANKS];
    MPI_Aint long_places[MAX_RANKS];
    for (int i = 0; i < c->size; i++) {
        long_sent[i] = sent[i];
        long_received[i] = received[i];
        long_places[i] = places[i];
    }
    if (c->form == LONG_EQUAL)
        return MPI_Alltoall_c(c->out, c->sendcount, c->sendtype, c->in, c->recvcount, c->recvtype, c->comm);
    if (c->form == LONG_LISTS)
        return MPI_Alltoallv_c(c->out, c->has_counts ? long_sent : NULL, long_places, c->sendtype, c->in,
                               c->has_counts ? long_received : NULL, long_places, c->recvtype, c->comm);
#endif
    if (c->form % 2 == EQUAL)
        return MPI_Alltoall(c->out, c->sendcount, c->sendtype, c->in, c->recvcount, c->recvtype, c->comm);
    return MPI_Alltoallv(c->out, c->has_counts ? sent : NULL, places, c->sendtype, c->in, c->has_counts ? received : NULL, places,
                         c->recvtype, c->comm);
}

static void err(struct call *c, enum mistake mistake, MPI_Datatype raw)
{
    switch (mistake) {
    case RECEIVE_IN_PLACE: c->in = MPI_IN_PLACE; break;
    case NO_SEND_BUFFER: c->out = NULL; break;
    case NO_RECEIVE_BUFFER: c->in = NULL; break;
    case ONE_BUFFER:
        /* Of an all-gather, its own place. */
        c->out = c->form == GATHER ? (int *)c->in + c->rank * c->recvcount : c->in;
        break;
    case NO_SEND_TYPE: c->sendtype = MPI_DATATYPE_NULL; break;
    case NO_RECEIVE_TYPE: c->recvtype = MPI_DATATYPE_NULL; break;
    case SEND_TYPE_NOT_COMMITTED: c->sendtype = raw; break;
    case RECEIVE_TYPE_NOT_COMMITTED: c->recvtype = raw; break;
    case NEGATIVE_SEND_COUNT: c->sendcount = -1; break;
    case NEGATIVE_RECEIVE_COUNT: c->recvcount = -1; break;
    case NO_COUNTS: c->has_counts = 0; break;
    case NOTHING_AND_NO_BUFFERS:
        c->out = c->in = NULL;
        c->sendcount = c->recvcount = 0;
        break;
    case NO_COMMUNICATOR: c->comm = MPI_COMM_NULL; break;
    case NOT_A_TYPE_IN_PLACE:
        c->out = MPI_IN_PLACE;
        c->sendtype = MPI_DATATYPE_NULL;
        break;
    case NO_OPERATION: c->op = MPI_OP_NULL; break;
    case WRONG_OPERATION:
        c->op = MPI_BAND;
        c->sendtype = c->recvtype = MPI_FLOAT;
        break;
    default: break;
    }
}

/* One case; the sums of all ranks come to rank 0. */
static void run(int number, MPI_Comm half, MPI_Comm whole, MPI_Datatype raw)
{
    int rank, size, class = MPI_SUCCESS;
    state = (uint64_t)number * 0x2545f4914f6cdd1du;
    const enum form form = (enum form)draw(FORMS);
    const MPI_Comm comm = form >= SUM ? whole : half;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const enum mistake mistake = (enum mistake)(number % MISTAKES);
    const int count = 1 + (int)draw(draw(2) ? 4000 : 40);
    const size_t elements = (size_t)count * (size_t)size;
    int *out = malloc(elements * sizeof *out), *in = malloc(elements * sizeof *in);
    for (size_t i = 0; i < elements; i++) {
        out[i] = 1000003 * rank + (int)i;
        in[i] = -rank - (int)i;
    }
    struct call call = {.form = form,
                        .out = out,
                        .in = in,
                        .has_counts = 1,
                        .sendcount = count,
                        .recvcount = count,
                        .rank = rank,
                        .size = size,
                        .sendtype = MPI_INT,
                        .recvtype = MPI_INT,
                        .op = MPI_SUM,
                        .comm = comm};
    err(&call, mistake, raw);
    MPI_Error_class(make(&call), &class);
    unsigned long long sum = 0, all = 0;
    /* What one buffer for both holds, nobody promises. */
    const size_t held = form == SUM || form == SUM_BLOCKS || form == SUM_LISTS ? (size_t)count : elements;
    for (size_t i = 0; i < held && mistake != ONE_BUFFER; i++)
        sum += (unsigned long long)(unsigned)in[i] * (i + 1) * (unsigned)(rank + 1);
    int worst = 0;
    PMPI_Reduce(&sum, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&class, &worst, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("%d: %s, form %d, %d elements: error class %d, sum %llx\n", number, NAMES[mistake], (int)call.form, count, worst, all);
        fflush(stdout);
    }
    free(out);
    free(in);
    PMPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Datatype raw;
    MPI_Comm half, whole;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int first = argc > 1 ? atoi(argv[1]) : 0, cases = argc > 2 ? atoi(argv[2]) : MISTAKES;
    MPI_Type_vector(2, 1, 2, MPI_INT, &raw);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &whole);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(whole, MPI_ERRORS_RETURN);
    for (int number = first; number < first + cases; number++) {
        /* That of the world is called where there is no communicator; else it would end the program. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, number % MISTAKES == NO_COMMUNICATOR ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
        run(number, half, whole, raw);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&half);
    MPI_Comm_free(&whole);
    MPI_Type_free(&raw);
    MPI_Finalize();
    return 0;
}
