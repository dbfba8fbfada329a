/* Random collectives that do not wait, and persistent all-to-alls where MPI has them, several at a time, on several communicators, in
 * another order on each rank, with messages of the program and blocking all-to-alls between, and ended by every call that takes requests.
 * Each must give what the MPI library's own blocking one gives, every byte of the receive buffers, gaps of the types included.
 *
 *     nonblocking CASES SEED [all]
 *
 * `all`: with persistent calls, which start in another order on each rank, and communicators that end before their calls; that is right,
 * but more than the own calls of MPICH 4.0 and of Open MPI 4.1 stand.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the preloaded library, if there is one. */
unsigned long long kasuri_background_scheduled(int collective) __attribute__((weak));

/* All-to-alls of equal blocks, of blocks of unlike lengths, and of such of types; other collectives; then persistent all-to-alls. */
enum { EQUAL, UNLIKE, OF_TYPES, REDUCE, GATHER, SCATTER, SCATTER_BLOCK, PERSISTENT };
#if MPI_VERSION >= 4
enum { KINDS = PERSISTENT + 3 };
#else
enum { KINDS = PERSISTENT };
#endif

enum { TYPES = 4, MAX_COUNT = 300, COMMUNICATORS = 6, PENDING = 6, MAX_RANKS = 64, WAYS = 9 };

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* All ranks draw the same numbers from `common`, and others from `own`. */
static uint64_t common, own;

static int does_all;

static unsigned draw(uint64_t *state, unsigned bound)
{
    *state += 0x9e3779b97f4a7c15u;
    return (unsigned)(mix(*state) % bound);
}

static MPI_Datatype make_type(unsigned kind)
{
    MPI_Datatype type = kind == 0 ? MPI_INT : MPI_DOUBLE;
    if (kind == 2)
        PMPI_Type_vector(3, 2, 5, MPI_INT, &type);
    if (kind == 3)
        PMPI_Type_create_resized(MPI_SHORT, 0, 12, &type);
    if (kind > 1)
        PMPI_Type_commit(&type);
    return type;
}

/* A call that has begun, and what the MPI library's own gives. */
struct pending {
    unsigned kind, type_kind;
    int is_in_place, count;
    MPI_Comm comm;
    unsigned char *from, *to, *expected;
    size_t bytes;
    /* As many bytes are the same for sure. */
    size_t compared;
    int counts[2][MAX_RANKS], places[2][MAX_RANKS], offsets[2][MAX_RANKS];
    /* And one that may get the handle of a type that the program has freed. */
    MPI_Datatype types[MAX_RANKS], other;
    uint64_t key;
};

/* What one rank has for another, of which both know. */
static int count_of(uint64_t key, int from, int to)
{
    const uint64_t z = mix(key + (uint64_t)from * 977 + (uint64_t)to * 31337);
    return z % 4 == 0 ? 0 : (int)(z / 4 % MAX_COUNT);
}

/* Draws a call. All ranks draw, those outside the communicator too. */
static void draw_call(struct pending *call, MPI_Comm comm)
{
    *call = (struct pending){.kind = draw(&common, does_all ? KINDS : PERSISTENT), .type_kind = draw(&common, TYPES), .comm = comm};
    call->is_in_place = draw(&common, 4) == 0;
    if (call->kind >= REDUCE && call->kind < PERSISTENT && call->kind != GATHER)
        call->type_kind = 0;
    call->count = draw(&common, 6) == 0 ? 0 : (int)draw(&common, MAX_COUNT);
    /* Open MPI 4.1 may wait for ever for lists in place. */
    call->is_in_place &= call->kind != UNLIKE && call->kind != OF_TYPES && call->kind <= PERSISTENT;
    call->key = common;
}

/* Gives the receive buffer what it has before the call. */
static void refill(struct pending *call)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < call->bytes; i++)
        call->to[i] = (unsigned char)mix(call->key + i + 7 * (size_t)rank);
}

/* By the MPI library's own. */
static void expect(struct pending *call, MPI_Datatype type, int rank)
{
    const void *source = call->is_in_place ? MPI_IN_PLACE : call->from;
    unsigned char *to = call->expected;
    switch (call->kind) {
    case REDUCE: PMPI_Allreduce(source, to, call->count, type, MPI_SUM, call->comm); break;
    case GATHER: PMPI_Allgather(source, call->count, type, to, call->count, type, call->comm); break;
    case SCATTER:
        PMPI_Reduce_scatter(source, to, call->counts[0], type, MPI_MAX, call->comm);
        call->compared = (size_t)call->counts[0][rank] * sizeof(int);
        break;
    case SCATTER_BLOCK:
        PMPI_Reduce_scatter_block(source, to, call->count, type, MPI_SUM, call->comm);
        call->compared = (size_t)call->count * sizeof(int);
        break;
    case EQUAL:
    case PERSISTENT: PMPI_Alltoall(source, call->count, type, to, call->count, type, call->comm); break;
    default: PMPI_Alltoallv(source, call->counts[0], call->places[0], type, to, call->counts[1], call->places[1], type, call->comm);
    }
}

/* Buffers and counts of a call of this rank, and what is to come out. */
static void prepare(struct pending *call)
{
    int rank, size;
    MPI_Aint low, extent;
    PMPI_Comm_rank(call->comm, &rank);
    PMPI_Comm_size(call->comm, &size);
    MPI_Datatype type = make_type(call->type_kind);
    PMPI_Type_get_extent(type, &low, &extent);
    for (int i = 0; i < size; i++) {
        /* In place a pair exchanges equally many. */
        const int less = rank < i ? rank : i, more = rank < i ? i : rank;
        call->counts[0][i] = call->is_in_place ? count_of(call->key, less, more) : count_of(call->key, rank, i);
        if (call->kind == SCATTER)
            call->counts[0][i] = count_of(call->key, i, i);
        call->counts[1][i] = call->is_in_place ? count_of(call->key, less, more) : count_of(call->key, i, rank);
        /* With gaps between them. */
        call->places[0][i] = i * (MAX_COUNT + 3) + 1;
        call->places[1][i] = (size - 1 - i) * (MAX_COUNT + 1);
        for (int j = 0; j < 2; j++)
            call->offsets[j][i] = call->places[j][i] * (int)extent;
    }
    call->bytes = call->compared = (size_t)(size + 1) * (MAX_COUNT + 4) * (size_t)extent;
    call->from = malloc(call->bytes);
    call->to = malloc(call->bytes);
    call->expected = malloc(call->bytes);
    for (size_t i = 0; i < call->bytes; i++)
        call->from[i] = (unsigned char)mix(call->key + i * 64 + (size_t)rank);
    refill(call);
    memcpy(call->expected, call->to, call->bytes);
    expect(call, type, rank);
    if (call->type_kind > 1)
        PMPI_Type_free(&type);
}

#if MPI_VERSION >= 4
static void prepare_persistent(struct pending *call, const void *source, MPI_Datatype type, MPI_Request *request)
{
    if (call->kind == PERSISTENT)
        MPI_Alltoall_init(source, call->count, type, call->to, call->count, type, call->comm, MPI_INFO_NULL, request);
    else if (call->kind == PERSISTENT + 1)
        MPI_Alltoallv_init(source, call->counts[0], call->places[0], type, call->to, call->counts[1], call->places[1], type, call->comm,
                           MPI_INFO_NULL, request);
    else
        MPI_Alltoallw_init(source, call->counts[0], call->offsets[0], call->types, call->to, call->counts[1], call->offsets[1],
                           call->types, call->comm, MPI_INFO_NULL, request);
}
#endif

/* Begins a call, or prepares a persistent one. The program need not keep the type. */
static void begin(struct pending *call, MPI_Request *request)
{
    MPI_Datatype type = make_type(call->type_kind);
    const void *source = call->is_in_place ? MPI_IN_PLACE : call->from;
    for (int i = 0; i < MAX_RANKS; i++)
        call->types[i] = type;
    if (call->kind == REDUCE)
        MPI_Iallreduce(source, call->to, call->count, type, MPI_SUM, call->comm, request);
    else if (call->kind == GATHER)
        MPI_Iallgather(source, call->count, type, call->to, call->count, type, call->comm, request);
    else if (call->kind == SCATTER)
        MPI_Ireduce_scatter(source, call->to, call->counts[0], type, MPI_MAX, call->comm, request);
    else if (call->kind == SCATTER_BLOCK)
        MPI_Ireduce_scatter_block(source, call->to, call->count, type, MPI_SUM, call->comm, request);
    else if (call->kind == EQUAL)
        MPI_Ialltoall(source, call->count, type, call->to, call->count, type, call->comm, request);
    else if (call->kind == UNLIKE)
        MPI_Ialltoallv(source, call->counts[0], call->places[0], type, call->to, call->counts[1], call->places[1], type, call->comm,
                       request);
    else if (call->kind == OF_TYPES)
        MPI_Ialltoallw(source, call->counts[0], call->offsets[0], call->types, call->to, call->counts[1], call->offsets[1], call->types,
                       call->comm, request);
#if MPI_VERSION >= 4
    else
        prepare_persistent(call, source, type, request);
#endif
    if (call->type_kind > 1)
        PMPI_Type_free(&type);
    /* mpi4py frees counts at once, where it has made them for an older MPI library. */
    if (does_all && (call->kind == UNLIKE || call->kind == OF_TYPES)) {
        memset(call->counts, 1, sizeof call->counts);
        memset(call->places, 1, sizeof call->places);
        memset(call->offsets, 1, sizeof call->offsets);
    }
    PMPI_Type_contiguous(1, MPI_CHAR, &call->other);
    PMPI_Type_commit(&call->other);
}

static int is_right(const struct pending *call, int number)
{
    const int right = memcmp(call->to, call->expected, call->compared) == 0;
    if (!right)
        fprintf(stderr, "case %d: kind %u of type %u%s, count %d: differs\n", number, call->kind, call->type_kind,
                call->is_in_place ? " in place" : "", call->count);
    return right;
}

static void free_call(struct pending *call)
{
    free(call->from);
    free(call->to);
    free(call->expected);
    PMPI_Type_free(&call->other);
}

/* Starts the persistent calls among these, perhaps the last first, one by one or all at once. */
static void start(const struct pending *calls, MPI_Request *requests, int count)
{
    MPI_Request started[PENDING];
    int number = 0, at[PENDING];
    const int is_reversed = (int)draw(&own, 2), all = (int)draw(&own, 2);
    for (int i = 0; i < count; i++) {
        const int which = is_reversed ? count - 1 - i : i;
        if (calls[which].kind < PERSISTENT)
            continue;
        at[number] = which;
        started[number++] = requests[which];
    }
    for (int i = 0; i < number && !all; i++)
        MPI_Start(&started[i]);
    if (all)
        MPI_Startall(number, started);
    for (int i = 0; i < number; i++)
        requests[at[i]] = started[i];
}

/* Ends all requests, in one of the ways that MPI has. */
static void finish(MPI_Request *requests, int count, unsigned way)
{
    int done = 0, at, ended, indices[PENDING];
    MPI_Status statuses[PENDING];
    switch (way) {
    case 0:
        for (int i = count; i-- > 0;)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        break;
    case 1:
        for (int i = 0; i < count; i++)
            for (done = 0; !done;)
                MPI_Test(&requests[i], &done, &statuses[0]);
        break;
    case 2: MPI_Waitall(count, requests, statuses); break;
    case 3:
        while (!done)
            MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        break;
    case 4:
        do
            MPI_Waitany(count, requests, &at, MPI_STATUS_IGNORE);
        while (at != MPI_UNDEFINED);
        break;
    case 5:
        do
            MPI_Testany(count, requests, &at, &done, &statuses[0]);
        while (!done || at != MPI_UNDEFINED);
        break;
    case 6:
        do
            MPI_Waitsome(count, requests, &ended, indices, statuses);
        while (ended != MPI_UNDEFINED);
        break;
    case 7:
        do
            MPI_Testsome(count, requests, &ended, indices, statuses);
        while (ended != MPI_UNDEFINED);
        break;
    default:
        for (int i = 0; i < count; i++) {
            for (done = 0; !done;)
                MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    }
    /* Open MPI's own of nothing have ended from the beginning. */
    for (int i = 0; i < count; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
}

/* Even ranks end their calls only after they have heard from odd ones, which end theirs first. */
static void talk(int is_before)
{
    int rank, size, word = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int other = rank ^ 1;
    if (other >= size || (rank % 2 == 0) != is_before)
        return;
    if (rank % 2 == 0)
        MPI_Recv(&word, 1, MPI_INT, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&word, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
}

/* A blocking all-to-all while others are under way. */
static int block(MPI_Comm comm)
{
    int rank, size, from[MAX_RANKS], to[MAX_RANKS], is_right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++)
        from[i] = 100 * rank + i;
    MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
    for (int i = 0; i < size; i++)
        is_right &= to[i] == 100 * i + rank;
    return is_right;
}

/* Some calls at a time. Those of one communicator begin in their order, others as the rank likes. */
static int run_case(int number, const MPI_Comm *comms)
{
    struct pending calls[PENDING];
    MPI_Request requests[PENDING];
    MPI_Comm copy = MPI_COMM_NULL;
    int count = 0, right = 1;
    const int drawn = 1 + (int)draw(&common, PENDING), is_copied = draw(&common, 8) == 0 && does_all, blocks = draw(&common, 3) == 0;
    const unsigned order = draw(&own, COMMUNICATORS);
    if (is_copied)
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int i = 0; i < drawn; i++) {
        const unsigned which = draw(&common, COMMUNICATORS);
        draw_call(&calls[count], is_copied ? copy : comms[which]);
        if (calls[count].comm == MPI_COMM_NULL)
            continue;
        /* Those that may be the MPI library's own do not outlive it. */
        if (is_copied && calls[count].kind >= REDUCE && calls[count].kind < PERSISTENT)
            calls[count].kind = EQUAL;
        prepare(&calls[count++]);
    }
    for (unsigned turn = 0; turn < COMMUNICATORS; turn++)
        for (int i = 0; i < count; i++)
            if (is_copied ? turn == 0 : calls[i].comm == comms[(turn + order) % COMMUNICATORS])
                begin(&calls[i], &requests[i]);
    start(calls, requests, count);
    /* The copy may end before the calls do. */
    if (is_copied)
        MPI_Comm_free(&copy);
    if (blocks)
        right &= block(comms[0]);
    talk(1);
    finish(requests, count, draw(&own, WAYS));
    talk(0);
    for (int i = 0; i < count; i++) {
        right &= (requests[i] == MPI_REQUEST_NULL) == (calls[i].kind < PERSISTENT) && is_right(&calls[i], number);
        if (calls[i].kind >= PERSISTENT)
            refill(&calls[i]);
    }
    /* Persistent ones again. */
    start(calls, requests, count);
    finish(requests, count, draw(&own, WAYS));
    for (int i = 0; i < count; i++) {
        right &= is_right(&calls[i], number);
        if (calls[i].kind >= PERSISTENT)
            MPI_Request_free(&requests[i]);
        free_call(&calls[i]);
    }
    return right;
}

/* The world, a copy, the world backwards, halves, the even ones and pairs. MPI_COMM_NULL for ranks outside. */
static void make_communicators(MPI_Comm *comms)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &comms[3]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 == 0 ? 0 : MPI_UNDEFINED, rank, &comms[4]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[5]);
}

int main(int argc, char **argv)
{
    /* No level of threads is asked for. */
    MPI_Init(&argc, &argv);
    const int cases = argc > 1 ? atoi(argv[1]) : 50;
    common = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    does_all = argc > 3 && strcmp(argv[3], "all") == 0;
    int rank, right = 1, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    own = mix((uint64_t)rank + 1);
    MPI_Comm comms[COMMUNICATORS];
    make_communicators(comms);
    for (int number = 0; number < cases; number++)
        right &= run_case(number, comms);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    unsigned long long counts[4] = {0};
    for (int i = 0; i < 4 && kasuri_background_scheduled; i++)
        counts[i] = kasuri_background_scheduled(i);
    if (rank == 0)
        printf("%d cases, calls by the schedule on rank 0: %llu %llu %llu %llu: %s\n", cases, counts[0], counts[1], counts[2], counts[3],
               all ? "no difference" : "DIFFERENT");
    for (int i = 1; i < COMMUNICATORS; i++)
        if (comms[i] != MPI_COMM_NULL)
            MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return all ? 0 : 1;
}
