/* Random all-to-alls by MPI_Alltoall(v, w), called from C or from Fortran, which the preloaded library takes over, and by PMPI_Alltoall(v,
 * w), the MPI library's own: every byte of the receive buffers must agree, gaps of the types included.
 *
 *     compare CASES SEED
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the preloaded library, if there is one. */
unsigned long long kasuri_alltoall_scheduled(void) __attribute__((weak));

/* compare_calls.f90 */
void alltoall_in_fortran(int in_place, const void *sendbuf, int count, MPI_Fint type, void *recvbuf, MPI_Fint comm, int *error);
void alltoallv_in_fortran(int in_place, const void *sendbuf, const int *sendcounts, const int *sdispls, MPI_Fint type, void *recvbuf,
                          const int *recvcounts, const int *rdispls, MPI_Fint comm, int *error);

enum { KINDS = 6, MAX_COUNT = 40, COMMUNICATORS = 6 };

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

/* Basic and derived types; `*extent` is how far elements lie apart. */
static MPI_Datatype make_type(unsigned kind, int *extent)
{
    MPI_Datatype type, resized;
    MPI_Aint low, length;
    switch (kind) {
    case 0: type = MPI_CHAR; break;
    case 1: type = MPI_INT; break;
    case 2: type = MPI_DOUBLE; break;
    case 3: PMPI_Type_vector(3, 2, 5, MPI_INT, &type); break;
    case 4: {
        int lengths[] = {1, 3}, places[] = {4, 0};
        PMPI_Type_indexed(2, lengths, places, MPI_SHORT, &type);
        break;
    }
    default: {
        int lengths[] = {1, 2};
        MPI_Aint places[] = {0, 8};
        MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE};
        PMPI_Type_create_struct(2, lengths, places, types, &resized);
        PMPI_Type_create_resized(resized, 0, 32, &type);
        PMPI_Type_free(&resized);
    }
    }
    if (kind > 2)
        PMPI_Type_commit(&type);
    PMPI_Type_get_extent(type, &low, &length);
    *extent = (int)length;
    return type;
}

/* What belongs to the pair of ranks, so that all know all counts. */
static int count_of_pair(uint64_t key, int from, int to)
{
    uint64_t saved = state;
    state = key ^ (uint64_t)(from * 1000 + to) * 0x2545f4914f6cdd1du;
    const int is_empty = draw(4) == 0, count = (int)draw(MAX_COUNT);
    state = saved;
    return is_empty ? 0 : count;
}

static void fill(unsigned char *bytes, size_t length, unsigned salt)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (unsigned char)(salt + i * 31 + i / 251);
}

struct layout {
    int counts[64];
    int displacements[64];
    int elements;
};

/* Counts to or from each rank, blocks in another order than the ranks' and with gaps between them. */
static void lay_out(struct layout *layout, uint64_t key, int rank, int size, int is_sender, int is_symmetric, unsigned turn)
{
    layout->elements = 1;
    for (int i = 0; i < size; i++) {
        /* 3 and a size that it does not divide: every rank comes once. */
        const int peer = (int)((i * (size % 3 ? 3u : 1u) + turn) % (unsigned)size);
        int from = is_sender ? rank : peer, to = is_sender ? peer : rank;
        if (is_symmetric && from > to) {
            const int swap = from;
            from = to;
            to = swap;
        }
        layout->counts[peer] = count_of_pair(key, from, to);
        layout->displacements[peer] = layout->elements;
        layout->elements += layout->counts[peer] + (int)(turn % 3);
    }
}

/* A call from C or from Fortran. */
struct request {
    MPI_Comm comm;
    MPI_Datatype type;
    int is_vector, is_of_types, is_in_place, is_fortran, count;
    struct layout out, in;
};

/* MPI_Alltoallw or the MPI library's own, of the same blocks. */
static int exchange_of_types(const struct request *request, const void *from, void *to, int is_own)
{
    const void *source = request->is_in_place ? MPI_IN_PLACE : from;
    struct layout out = request->out, in = request->in;
    MPI_Datatype types[64];
    MPI_Aint low, extent;
    PMPI_Type_get_extent(request->type, &low, &extent);
    for (int i = 0; i < 64; i++) {
        types[i] = request->type;
        out.displacements[i] *= (int)extent;
        in.displacements[i] *= (int)extent;
    }
    return (is_own ? PMPI_Alltoallw : MPI_Alltoallw)(source, out.counts, out.displacements, types, to, in.counts, in.displacements, types,
                                                     request->comm);
}

static int exchange(const struct request *request, const void *from, void *to)
{
    const void *source = request->is_in_place ? MPI_IN_PLACE : from;
    const struct layout *out = &request->out, *in = &request->in;
    const MPI_Fint comm = MPI_Comm_c2f(request->comm), type = MPI_Type_c2f(request->type);
    int error = MPI_SUCCESS;
    if (request->is_of_types)
        return exchange_of_types(request, from, to, 0);
    if (request->is_fortran && request->is_vector)
        alltoallv_in_fortran(request->is_in_place, from, out->counts, out->displacements, type, to, in->counts, in->displacements, comm,
                             &error);
    else if (request->is_fortran)
        alltoall_in_fortran(request->is_in_place, from, request->count, type, to, comm, &error);
    else if (request->is_vector)
        error = MPI_Alltoallv(source, out->counts, out->displacements, request->type, to, in->counts, in->displacements, request->type,
                              request->comm);
    else
        error = MPI_Alltoall(source, request->count, request->type, to, request->count, request->type, request->comm);
    return error;
}

static int exchange_by_library(const struct request *request, const void *from, void *to)
{
    const void *source = request->is_in_place ? MPI_IN_PLACE : from;
    const struct layout *out = &request->out, *in = &request->in;
    if (request->is_of_types)
        return exchange_of_types(request, from, to, 1);
    if (request->is_vector)
        return PMPI_Alltoallv(source, out->counts, out->displacements, request->type, to, in->counts, in->displacements, request->type,
                              request->comm);
    return PMPI_Alltoall(source, request->count, request->type, to, request->count, request->type, request->comm);
}

/* One case; returns whether all ranks have the same twice. */
static int compare(MPI_Comm comm, int number)
{
    int rank, size, extent;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    const unsigned kind = draw(KINDS), turn = draw(7);
    struct request request = {.comm = comm, .is_vector = (int)draw(2), .is_in_place = draw(3) == 0, .is_fortran = (int)draw(2)};
    /* Of one rank alone, Open MPI's takes displacements for elements. */
    request.is_of_types = request.is_vector && draw(3) == 0 && size > 1;
    request.count = draw(6) == 0 ? 0 : (int)draw(MAX_COUNT);
    const uint64_t key = (uint64_t)number << 20 ^ draw(1u << 20);
    request.type = make_type(kind, &extent);
    lay_out(&request.out, key, rank, size, 1, request.is_in_place, turn);
    lay_out(&request.in, key, rank, size, 0, request.is_in_place, turn + 1);
    const size_t padding = 64, equal = (size_t)(request.count * size);
    const size_t sent = (request.is_vector ? (size_t)request.out.elements : equal) * (size_t)extent + padding;
    const size_t received = (request.is_vector ? (size_t)request.in.elements : equal) * (size_t)extent + padding;
    unsigned char *from = malloc(sent), *ours = malloc(received), *theirs = malloc(received);
    fill(from, sent, (unsigned)rank * 17 + (unsigned)number);
    fill(ours, received, request.is_in_place ? (unsigned)rank * 13 : 200);
    memcpy(theirs, ours, received);
    int is_same = exchange(&request, from, ours) == MPI_SUCCESS;
    is_same &= exchange_by_library(&request, from, theirs) == MPI_SUCCESS && memcmp(ours, theirs, received) == 0;
    if (!is_same)
        fprintf(stderr, "case %d, rank %d of %d: kind %u, %s%s in %s, count %d: differ\n", number, rank, size, kind,
                request.is_of_types ? "alltoallw"
                : request.is_vector ? "alltoallv"
                                    : "alltoall",
                request.is_in_place ? " in place" : "", request.is_fortran ? "Fortran" : "C", request.count);
    free(from);
    free(ours);
    free(theirs);
    if (kind > 2)
        PMPI_Type_free(&request.type);
    return is_same;
}

/* The world, a copy, the world backwards, halves, the even ones and pairs. MPI_COMM_NULL for ranks outside. */
static void make_communicators(MPI_Comm *comms)
{
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    comms[0] = MPI_COMM_WORLD;
    PMPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    PMPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    PMPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &comms[3]);
    PMPI_Comm_split(MPI_COMM_WORLD, rank % 2 == 0 ? 0 : MPI_UNDEFINED, rank, &comms[4]);
    PMPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[5]);
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
    for (int number = 0; number < cases; number++) {
        MPI_Comm comm = comms[draw(COMMUNICATORS)];
        const uint64_t before = state;
        if (comm != MPI_COMM_NULL)
            same &= compare(comm, number);
        state = before + 1;
    }
    PMPI_Allreduce(&same, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d cases, %llu of them by the schedule on rank 0: %s\n", cases, kasuri_alltoall_scheduled ? kasuri_alltoall_scheduled() : 0,
               all ? "no difference" : "DIFFERENT");
    for (int i = 1; i < COMMUNICATORS; i++)
        if (comms[i] != MPI_COMM_NULL)
            MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return all ? 0 : 1;
}
