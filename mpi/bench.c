/* How long a collective takes by the schedule and by the MPI library's own, size by size.
 *
 *     bench [--max BYTES] [--pairs NUMBER] [--vector | --allgather | --reduce-scatter | --allreduce]
 *
 * An all-to-all, one of blocks of their own lengths, or another collective. Sizes are those of a block; of a sum, of a vector's part for
 * each rank.
 *
 * To be run with the preloaded library. A pair is a few calls of one kind, then as many of the other, in turns, so that both see the
 * same machine; a time is that of the slowest rank. Times are the shortest over the pairs, for what else the machine does makes calls
 * longer, never shorter; `ratio` is that of these times, `median_ratio` the median over the pairs. Of all-to-alls with
 * KASURI_MPI_MIN_BYTES=0 the last line names the size from which on the schedule takes at most a tenth longer: a value for that variable.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the preloaded library, if there is one: how many calls of a collective have gone by the schedule. */
unsigned long long kasuri_scheduled(int collective) __attribute__((weak));

/* By the library's numbers, and one more. */
enum kind { EQUAL, GATHER, SCATTER, REDUCE, VECTOR };

enum { SLOWER_PERCENT = 10 };

/* Shorter than a time slice, so that some are not interrupted. */
static const double SECONDS_OF_TURN = 1e-3;

/* Calls before the first pair: as many as the preloaded library needs to find out what is faster. */
enum { WARM_UP = 64 };

struct arguments {
    int max, pairs;
    enum kind kind;
};

/* The buffers of a rank; those of MPI_Alltoallv name every block. */
struct exchange {
    MPI_Comm comm;
    int ranks, bytes;
    enum kind kind;
    char *out, *in;
    int *counts, *places;
};

/* Calls of the preloaded library. */
static unsigned long long calls_of_ours;

static void call(const struct exchange *exchange, int is_own)
{
    calls_of_ours += !is_own;
    const struct exchange *e = exchange;
    const int part = e->bytes / (int)sizeof(double);
    switch (e->kind) {
    case VECTOR:
        (is_own ? PMPI_Alltoallv : MPI_Alltoallv)(e->out, e->counts, e->places, MPI_BYTE, e->in, e->counts, e->places, MPI_BYTE, e->comm);
        break;
    case GATHER: (is_own ? PMPI_Allgather : MPI_Allgather)(e->out, e->bytes, MPI_BYTE, e->in, e->bytes, MPI_BYTE, e->comm); break;
    case SCATTER: (is_own ? PMPI_Reduce_scatter_block : MPI_Reduce_scatter_block)(e->out, e->in, part, MPI_DOUBLE, MPI_SUM, e->comm); break;
    case REDUCE: (is_own ? PMPI_Allreduce : MPI_Allreduce)(e->out, e->in, part * e->ranks, MPI_DOUBLE, MPI_SUM, e->comm); break;
    default: (is_own ? PMPI_Alltoall : MPI_Alltoall)(e->out, e->bytes, MPI_BYTE, e->in, e->bytes, MPI_BYTE, e->comm);
    }
}

/* Seconds of a call: the mean of some, on the slowest rank. All ranks are told the same. */
static double seconds(const struct exchange *exchange, int is_own, int calls)
{
    PMPI_Barrier(exchange->comm);
    const double begin = PMPI_Wtime();
    for (int i = 0; i < calls; i++)
        call(exchange, is_own);
    double mine = (PMPI_Wtime() - begin) / calls, slowest = 0;
    PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, exchange->comm);
    return slowest;
}

static int compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double shortest(const double *values, int count)
{
    double least = values[0];
    for (int i = 1; i < count; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

/* The shortest times of the MPI library's own and of ours, and the median ratio of a pair. */
static void measure(struct exchange *exchange, int pairs, double *result)
{
    double *times[3];
    for (int i = 0; i < 3; i++)
        times[i] = malloc((size_t)pairs * sizeof *times[i]);
    for (int i = 0; i < exchange->ranks; i++) {
        exchange->counts[i] = exchange->bytes;
        exchange->places[i] = i * exchange->bytes;
    }
    seconds(exchange, 0, WARM_UP);
    const double one = seconds(exchange, 1, WARM_UP);
    const int calls = one < SECONDS_OF_TURN ? (int)(SECONDS_OF_TURN / one) + 1 : 1;
    for (int pair = 0; pair < pairs; pair++) {
        /* Each kind is the first of every second pair. */
        for (int turn = 0; turn < 2; turn++) {
            const int is_own = (pair + turn) % 2;
            times[is_own ? 0 : 1][pair] = seconds(exchange, is_own, calls);
        }
        times[2][pair] = times[1][pair] / times[0][pair];
    }
    result[0] = shortest(times[0], pairs);
    result[1] = shortest(times[1], pairs);
    result[2] = result[1] / result[0];
    result[3] = median(times[2], pairs);
    for (int i = 0; i < 3; i++)
        free(times[i]);
}

static struct arguments parse(int argc, char **argv)
{
    struct arguments arguments = {.max = 1 << 18, .pairs = 101};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--vector") == 0)
            arguments.kind = VECTOR;
        else if (strcmp(argv[i], "--allgather") == 0)
            arguments.kind = GATHER;
        else if (strcmp(argv[i], "--reduce-scatter") == 0)
            arguments.kind = SCATTER;
        else if (strcmp(argv[i], "--allreduce") == 0)
            arguments.kind = REDUCE;
        else if (strcmp(argv[i], "--max") == 0 && i + 1 < argc)
            arguments.max = atoi(argv[++i]);
        else if (strcmp(argv[i], "--pairs") == 0 && i + 1 < argc)
            arguments.pairs = atoi(argv[++i]);
        else
            arguments.pairs = 0;
    }
    return arguments;
}

static void *room(size_t bytes)
{
    void *memory = calloc(bytes, 1);
    if (!memory) {
        fprintf(stderr, "bench: %zu bytes do not fit into memory\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static unsigned long long scheduled(enum kind kind)
{
    return kasuri_scheduled ? kasuri_scheduled(kind == VECTOR ? EQUAL : (int)kind) : 0;
}

/* How the calls of a size went. */
static const char *by(unsigned long long by_schedule, unsigned long long all)
{
    if (by_schedule == 0)
        return "library";
    return by_schedule == all ? "schedule" : "either";
}

/* A line for each size. Returns the size from which on the schedule is not slower; 0 if there is none. */
static int run(const struct arguments *arguments, int rank, int ranks)
{
    struct exchange exchange = {.comm = MPI_COMM_WORLD, .ranks = ranks, .kind = arguments->kind};
    const size_t many = (size_t)ranks;
    exchange.out = room(many * (size_t)arguments->max);
    exchange.in = room(many * (size_t)arguments->max);
    exchange.counts = room(many * sizeof(int));
    exchange.places = room(many * sizeof(int));
    int from = 0;
    for (exchange.bytes = 8; exchange.bytes <= arguments->max && exchange.bytes > 0; exchange.bytes *= 4) {
        double result[4];
        const unsigned long long before = scheduled(exchange.kind), calls_before = calls_of_ours;
        measure(&exchange, arguments->pairs, result);
        if (result[2] > 1 + SLOWER_PERCENT / 100.0)
            from = 0;
        else if (from == 0)
            from = exchange.bytes;
        if (rank == 0)
            printf("%d,%.3f,%.3f,%.3f,%.3f,%s\n", exchange.bytes, 1e6 * result[0], 1e6 * result[1], result[2], result[3],
                   by(scheduled(exchange.kind) - before, calls_of_ours - calls_before));
    }
    free(exchange.out);
    free(exchange.in);
    free(exchange.counts);
    free(exchange.places);
    return from;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const struct arguments arguments = parse(argc, argv);
    const char *given = getenv("KASURI_MPI_MIN_BYTES");
    const int is_right = arguments.pairs > 0 && arguments.max >= 8 && arguments.max <= (1 << 30) / ranks;
    if (!is_right && rank == 0)
        fprintf(stderr, "usage: bench [--max BYTES] [--pairs NUMBER] [--vector | --allgather | --reduce-scatter | --allreduce]\n");
    if (is_right) {
        if (rank == 0)
            printf("bytes,library_us,preloaded_us,ratio,median_ratio,by\n");
        const int is_alltoall = arguments.kind == EQUAL || arguments.kind == VECTOR;
        const int from = run(&arguments, rank, ranks), is_forced = is_alltoall && given && strcmp(given, "0") == 0;
        if (rank == 0 && is_forced && from > 0)
            printf("# KASURI_MPI_MIN_BYTES=%d\n", from);
        else if (rank == 0 && is_forced)
            printf("# at no size the schedule is not slower\n");
    }
    MPI_Finalize();
    return is_right ? 0 : 2;
}
