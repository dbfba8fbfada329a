/* Random all-reduces, reduce-scatters and all-gathers by MPI_*, called from C or from Fortran, which the preloaded library takes over, and
 * by PMPI_*, the MPI library's own: all elements must agree, and nothing else may be written. Sums are of numbers that are exact in any
 * order.
 *
 *     reduce CASES SEED
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the preloaded library, if there is one: calls by the schedule of an all-gather (1), a reduce-scatter (2), an all-reduce (3). */
unsigned long long kasuri_scheduled(int collective) __attribute__((weak));

/* reduce_calls.f90 */
void allreduce_in_fortran(int in_place, const void *sendbuf, void *recvbuf, int count, MPI_Fint type, MPI_Fint op, MPI_Fint comm,
                          int *error);
void reduce_scatter_block_in_fortran(int in_place, const void *sendbuf, void *recvbuf, int count, MPI_Fint type, MPI_Fint op, MPI_Fint comm,
                                     int *error);
void reduce_scatter_in_fortran(int in_place, const void *sendbuf, void *recvbuf, const int *counts, MPI_Fint type, MPI_Fint op,
                               MPI_Fint comm, int *error);
void allgather_in_fortran(int in_place, const void *sendbuf, int count, MPI_Fint type, void *recvbuf, MPI_Fint comm, int *error);

enum { KINDS = 8, MAX_COUNT = 60, COMMUNICATORS = 5, MAX_RANKS = 64, PADDING = 64, SPAN = 48 };
enum operation { ALLREDUCE, BLOCK, LIST, GATHER, OPERATIONS };
static const char *const NAMES[] = {"allreduce", "reduce_scatter_block", "reduce_scatter", "allgather"};

/* All ranks draw the same numbers. */
static uint64_t state;

static unsigned draw(unsigned bound)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((z ^ z >> 31) % bound);
}

/* A vector of three numbers in elements of 48 bytes that begin with a gap: the greatest, the sum, and the bits that differ. */
static void combine(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *length; i++) {
        double *from = (double *)((char *)in + i * SPAN + 8), *to = (double *)((char *)inout + i * SPAN + 8);
        int *bits = (int *)((char *)inout + i * SPAN + 32), *other = (int *)((char *)in + i * SPAN + 32);
        to[0] = from[0] > to[0] ? from[0] : to[0];
        to[1] += from[1];
        *bits ^= *other;
    }
}

/* Of matrices of two rows, modulo 2^32: the order matters. */
static void multiply(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *length; i++) {
        const unsigned *a = (unsigned *)in + 4 * i;
        unsigned *b = (unsigned *)inout + 4 * i;
        const unsigned product[] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                                    a[2] * b[1] + a[3] * b[3]};
        memcpy(b, product, sizeof product);
    }
}

static MPI_Datatype with_gap, matrix;
static MPI_Op combining, multiplying;

static void make_types(void)
{
    int lengths[] = {2, 1};
    MPI_Aint places[] = {8, 32};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT}, raw;
    PMPI_Type_create_struct(2, lengths, places, types, &raw);
    PMPI_Type_create_resized(raw, 0, SPAN, &with_gap);
    PMPI_Type_free(&raw);
    PMPI_Type_commit(&with_gap);
    PMPI_Type_contiguous(4, MPI_UNSIGNED, &matrix);
    PMPI_Type_commit(&matrix);
    PMPI_Op_create(combine, 1, &combining);
    PMPI_Op_create(multiply, 0, &multiplying);
}

/* The type of the elements, and how they are combined. */
static void choose(unsigned kind, MPI_Datatype *type, MPI_Op *op)
{
    static const MPI_Op whole[] = {MPI_SUM, MPI_MAX, MPI_BXOR, MPI_LAND, MPI_MIN, MPI_BAND};
    switch (kind) {
    case 0:
        *type = MPI_INT;
        *op = whole[draw(6)];
        break;
    case 1:
        *type = MPI_DOUBLE;
        *op = draw(2) ? MPI_SUM : MPI_MAX;
        break;
    /* Sums of bytes are beyond their range: Open MPI then takes the greatest number. */
    case 2:
        *type = MPI_UNSIGNED_CHAR;
        *op = whole[1 + draw(5)];
        break;
    case 3:
        *type = MPI_DOUBLE_INT;
        *op = draw(2) ? MPI_MINLOC : MPI_MAXLOC;
        break;
    case 4:
        *type = MPI_2INT;
        *op = draw(2) ? MPI_MINLOC : MPI_MAXLOC;
        break;
    case 5:
        *type = MPI_LONG_LONG;
        *op = whole[draw(6)];
        break;
    case 6:
        *type = with_gap;
        *op = combining;
        break;
    default: *type = matrix; *op = multiplying;
    }
}

/* An element: numbers that are small enough for exact sums. */
static void fill(char *element, unsigned kind, unsigned salt)
{
    const int value = (int)(salt * 2654435761u % 2039u) - 1000;
    const double real = value;
    const long long wide = value * 1000003LL;
    switch (kind) {
    case 0: memcpy(element, &value, sizeof value); break;
    case 1: memcpy(element, &real, sizeof real); break;
    case 2: *element = (char)value; break;
    case 3:
        memcpy(element, &real, sizeof real);
        memcpy(element + 8, &value, sizeof value);
        break;
    case 4: {
        const int both[] = {value % 7, value};
        memcpy(element, both, sizeof both);
        break;
    }
    case 5: memcpy(element, &wide, sizeof wide); break;
    case 6:
        memcpy(element + 8, &real, sizeof real);
        memcpy(element + 16, &real, sizeof real);
        memcpy(element + 32, &value, sizeof value);
        break;
    default: {
        const unsigned entries[] = {salt, salt * 3 + 1, salt * 7, 1};
        memcpy(element, entries, sizeof entries);
    }
    }
}

struct request {
    enum operation operation;
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Op op;
    int is_in_place, form, count, counts[MAX_RANKS], rank, size;
};

enum form { OF_C, OF_FORTRAN, LONG };

static int call_fortran(const struct request *r, const void *from, void *to)
{
    const MPI_Fint comm = MPI_Comm_c2f(r->comm), type = MPI_Type_c2f(r->type), op = MPI_Op_c2f(r->op);
    int error = MPI_SUCCESS;
    if (r->operation == ALLREDUCE)
        allreduce_in_fortran(r->is_in_place, from, to, r->count, type, op, comm, &error);
    else if (r->operation == BLOCK)
        reduce_scatter_block_in_fortran(r->is_in_place, from, to, r->count, type, op, comm, &error);
    else if (r->operation == LIST)
        reduce_scatter_in_fortran(r->is_in_place, from, to, r->counts, type, op, comm, &error);
    else
        allgather_in_fortran(r->is_in_place, from, r->count, type, to, comm, &error);
    return error;
}

static int call(const struct request *r, const void *from, void *to)
{
    const void *source = r->is_in_place ? MPI_IN_PLACE : from;
    if (r->form == OF_FORTRAN)
        return call_fortran(r, from, to);
#if MPI_VERSION >= 4
    MPI_Count counts[MAX_RANKS];
    for (int i = 0; i < r->size; i++)
        counts[i] = r->counts[i];
    if (r->form == LONG && r->operation == ALLREDUCE)
        return MPI_Allreduce_c(source, to, r->count, r->type, r->op, r->comm);
    if (r->form == LONG && r->operation == BLOCK)
        return MPI_Reduce_scatter_block_c(source, to, r->count, r->type, r->op, r->comm);
    if (r->form == LONG && r->operation == LIST)
        return MPI_Reduce_scatter_c(source, to, counts, r->type, r->op, r->comm);
    if (r->form == LONG)
        return MPI_Allgather_c(source, r->count, r->type, to, r->count, r->type, r->comm);
#endif
    if (r->operation == ALLREDUCE)
        return MPI_Allreduce(source, to, r->count, r->type, r->op, r->comm);
    if (r->operation == BLOCK)
        return MPI_Reduce_scatter_block(source, to, r->count, r->type, r->op, r->comm);
    if (r->operation == LIST)
        return MPI_Reduce_scatter(source, to, r->counts, r->type, r->op, r->comm);
    return MPI_Allgather(source, r->count, r->type, to, r->count, r->type, r->comm);
}

static int call_library(const struct request *r, const void *from, void *to)
{
    const void *source = r->is_in_place ? MPI_IN_PLACE : from;
    if (r->operation == ALLREDUCE)
        return PMPI_Allreduce(source, to, r->count, r->type, r->op, r->comm);
    if (r->operation == BLOCK)
        return PMPI_Reduce_scatter_block(source, to, r->count, r->type, r->op, r->comm);
    if (r->operation == LIST)
        return PMPI_Reduce_scatter(source, to, r->counts, r->type, r->op, r->comm);
    return PMPI_Allgather(source, r->count, r->type, to, r->count, r->type, r->comm);
}

/* Are these elements the same, and the bytes behind them as they were? */
static int is_same(const struct request *r, const char *ours, const char *theirs, int elements, size_t extent)
{
    const size_t room = (size_t)(elements + 1) * SPAN;
    char *one = calloc(room, 1), *other = calloc(room, 1);
    int at = 0, same;
    PMPI_Pack(ours, elements, r->type, one, (int)room, &at, r->comm);
    at = 0;
    PMPI_Pack(theirs, elements, r->type, other, (int)room, &at, r->comm);
    same = memcmp(one, other, (size_t)at) == 0;
    free(one);
    free(other);
    const int is_all = !r->is_in_place || r->operation == ALLREDUCE || r->operation == GATHER;
    return same && (!is_all || memcmp(ours + (size_t)elements * extent, theirs + (size_t)elements * extent, PADDING) == 0);
}

/* One case; returns whether this rank has the same twice. */
static int compare(MPI_Comm comm, int number)
{
    struct request r = {.comm = comm, .operation = (enum operation)draw(OPERATIONS), .is_in_place = draw(3) == 0, .form = (int)draw(3)};
    const unsigned kind = draw(KINDS);
    PMPI_Comm_rank(comm, &r.rank);
    PMPI_Comm_size(comm, &r.size);
    choose(kind, &r.type, &r.op);
    r.count = draw(8) == 0 ? 0 : (int)draw(draw(8) == 0 ? 40 * MAX_COUNT : MAX_COUNT);
    int sum = 0;
    for (int i = 0; i < r.size; i++) {
        r.counts[i] = draw(4) == 0 ? 0 : (int)draw(MAX_COUNT);
        sum += r.counts[i];
    }
    const int is_gather = r.operation == GATHER, is_list = r.operation == LIST;
    const int all = is_list ? sum : r.operation == ALLREDUCE ? r.count : r.count * r.size;
    const int sent = is_gather ? r.count : all, received = is_list ? r.counts[r.rank] : r.operation == BLOCK ? r.count : all;
    const int held = r.is_in_place && all > received ? all : received;
    MPI_Aint low, extent;
    PMPI_Type_get_extent(r.type, &low, &extent);
    char *from = calloc((size_t)sent * (size_t)extent + PADDING, 1), *ours = malloc((size_t)held * (size_t)extent + PADDING);
    char *theirs = malloc((size_t)held * (size_t)extent + PADDING);
    for (int i = 0; i < sent; i++)
        fill(from + i * extent, kind, (unsigned)(number * 131 + r.rank * 1009 + i));
    memset(ours, 0x5a, (size_t)held * (size_t)extent + PADDING);
    for (int i = 0; i < held && r.is_in_place; i++)
        fill(ours + i * extent, kind, (unsigned)(number * 37 + r.rank * 1013 + i));
    memcpy(theirs, ours, (size_t)held * (size_t)extent + PADDING);
    int same = call(&r, from, ours) == MPI_SUCCESS;
    same &= call_library(&r, from, theirs) == MPI_SUCCESS && is_same(&r, ours, theirs, received, (size_t)extent);
    if (!same)
        fprintf(stderr, "case %d, rank %d of %d: %s%s, kind %u, form %d, count %d: differ\n", number, r.rank, r.size, NAMES[r.operation],
                r.is_in_place ? " in place" : "", kind, r.form, received);
    free(from);
    free(ours);
    free(theirs);
    return same;
}

/* The world, a copy, the world backwards, halves and pairs. */
static void make_communicators(MPI_Comm *comms)
{
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    comms[0] = MPI_COMM_WORLD;
    PMPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    PMPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    PMPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &comms[3]);
    PMPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[4]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int cases = argc > 1 ? atoi(argv[1]) : 50;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int rank, same = 1, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm comms[COMMUNICATORS];
    make_communicators(comms);
    make_types();
    for (int number = 0; number < cases; number++) {
        const unsigned which = draw(2 * COMMUNICATORS);
        const uint64_t before = state;
        same &= compare(comms[which < COMMUNICATORS ? which : 0], number);
        state = before + 1;
    }
    PMPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d cases, by the schedule on rank 0:", cases);
        for (int i = 1; i <= 3; i++)
            printf(" %llu", kasuri_scheduled ? kasuri_scheduled(i) : 0);
        printf(": %s\n", all ? "no difference" : "DIFFERENT");
    }
    for (int i = 1; i < COMMUNICATORS; i++)
        MPI_Comm_free(&comms[i]);
    PMPI_Type_free(&with_gap);
    PMPI_Type_free(&matrix);
    PMPI_Op_free(&combining);
    PMPI_Op_free(&multiplying);
    MPI_Finalize();
    return all ? 0 : 1;
}
