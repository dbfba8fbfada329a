/* A distributed three-dimensional Fourier transform with the sizes and the structure of FT of the NAS Parallel Benchmarks: a heat
 * equation, solved in the frequency domain, with one all-to-all for each transform.
 *
 *     ft CLASS [--no-check]
 *
 * Classes S, W, A to E. One that does not fit into memory ends with the bytes that it needs.
 *
 * The grid is cut into slabs along z; a transform works along x and y, exchanges by one all-to-all, so that slabs along x hold whole
 * lines of z, and works along z. Checksums are compared with those of a serial transform on rank 0 unless --no-check is given. Source
 * of the problem, its sizes and its checksum: Bailey et al., The NAS Parallel Benchmarks, RNR-94-007, section 2.5. */
#include <complex.h>
#include <fftw3.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHECKED = 1024, MAX_ITERATIONS = 25 };

static const double ALPHA = 1e-6, PI = 3.14159265358979323846, TOLERANCE = 1e-12;
static const uint64_t SEED = 314159265, FACTOR = 1220703125, MASK = ((uint64_t)1 << 46) - 1;

/* Points along x, y and z, and time steps. */
struct problem {
    char class;
    int nx, ny, nz, iterations;
};

static const struct problem PROBLEMS[] = {
    {'S', 64, 64, 64, 6},     {'W', 128, 128, 32, 6},   {'A', 256, 256, 128, 6},
    {'B', 512, 256, 256, 20}, {'C', 512, 512, 512, 20},   {'D', 2048, 1024, 1024, 25}, {'E', 4096, 2048, 2048, 25},
};

/* Arrays of a rank, and of the serial transform that rank 0 compares with. */
enum { ARRAYS = 5, ARRAYS_OF_CHECK = 2 };

/* The part of one rank. */
struct slab {
    struct problem problem;
    int rank, ranks;
    /* Planes of z, and of x after the exchange. */
    int nz, nx;
    size_t points;
    double complex *space, *frequency, *evolved, *out, *in;
    fftw_plan forward_xy, forward_z, backward_xy, backward_z;
};

static size_t points_of(const struct problem *problem)
{
    return (size_t)problem->nx * (size_t)problem->ny * (size_t)problem->nz;
}

static void *room(size_t bytes)
{
    void *memory = fftw_malloc(bytes);
    if (!memory) {
        fprintf(stderr, "ft: %zu bytes do not fit into memory\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent /= 2, base = base * base & MASK)
        if (exponent % 2)
            result = result * base & MASK;
    return result;
}

/* Pseudo-random points of the planes of z from `first` on. */
static void start_values(const struct problem *problem, int first, int planes, double complex *values)
{
    const size_t plane = (size_t)problem->nx * (size_t)problem->ny;
    uint64_t x = SEED * power(FACTOR, 2 * plane * (uint64_t)first) & MASK;
    for (size_t i = 0; i < plane * (size_t)planes; i++) {
        x = x * FACTOR & MASK;
        const double real = ldexp((double)x, -46);
        x = x * FACTOR & MASK;
        values[i] = real + ldexp((double)x, -46) * I;
    }
}

/* The frequency of an index: 0 to n / 2 - 1, then -n / 2 to -1. */
static double frequency(int index, int points)
{
    return (index + points / 2) % points - points / 2;
}

static double decay(const struct problem *problem, int x, int y, int z)
{
    const double fx = frequency(x, problem->nx), fy = frequency(y, problem->ny), fz = frequency(z, problem->nz);
    return exp(-4.0 * ALPHA * PI * PI * (fx * fx + fy * fy + fz * fz));
}

/* The sum of the points that count and lie in these planes of z. */
static double complex checksum(const struct problem *problem, const double complex *values, int first, int planes)
{
    double complex sum = 0;
    for (int j = 1; j <= CHECKED; j++) {
        const int x = j % problem->nx, y = 3 * j % problem->ny, z = 5 * j % problem->nz - first;
        if (z >= 0 && z < planes)
            sum += values[((size_t)z * problem->ny + y) * problem->nx + x];
    }
    return sum / ((double)problem->nx * problem->ny * problem->nz);
}

static void make_slab(struct slab *slab)
{
    const struct problem *problem = &slab->problem;
    slab->nz = problem->nz / slab->ranks;
    slab->nx = problem->nx / slab->ranks;
    slab->points = (size_t)problem->nx * problem->ny * slab->nz;
    const size_t bytes = slab->points * sizeof(double complex);
    double complex **arrays[] = {&slab->space, &slab->frequency, &slab->evolved, &slab->out, &slab->in};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = room(bytes);
    const int plane[] = {problem->ny, problem->nx}, lines = slab->nx * problem->ny, area = problem->nx * problem->ny;
    for (int sign = 0; sign < 2; sign++) {
        fftw_plan *xy = sign ? &slab->backward_xy : &slab->forward_xy, *z = sign ? &slab->backward_z : &slab->forward_z;
        const int direction = sign ? FFTW_BACKWARD : FFTW_FORWARD;
        double complex *lines_of = sign ? slab->evolved : slab->frequency;
        *xy = fftw_plan_many_dft(2, plane, slab->nz, slab->space, NULL, 1, area, slab->space, NULL, 1, area, direction, FFTW_ESTIMATE);
        *z = fftw_plan_many_dft(1, &problem->nz, lines, lines_of, NULL, 1, problem->nz, lines_of, NULL, 1, problem->nz, direction,
                                FFTW_ESTIMATE);
    }
}

/* Every block is that of a rank's planes of x and another's planes of z; `out` and `in` hold blocks as [x][y][z]. */
static size_t block_index(const struct slab *slab, int rank, int x, int y, int z)
{
    return (((size_t)rank * slab->nx + x) * slab->problem.ny + y) * slab->nz + z;
}

static size_t line_index(const struct slab *slab, int rank, int x, int y, int z)
{
    return ((size_t)x * slab->problem.ny + y) * slab->problem.nz + (size_t)rank * slab->nz + z;
}

static size_t plane_index(const struct slab *slab, int rank, int x, int y, int z)
{
    return ((size_t)z * slab->problem.ny + y) * slab->problem.nx + (size_t)rank * slab->nx + x;
}

typedef size_t place(const struct slab *, int, int, int, int);

static void copy_blocks(const struct slab *slab, double complex *to, place *to_index, const double complex *from, place *from_index)
{
    for (int rank = 0; rank < slab->ranks; rank++)
        for (int x = 0; x < slab->nx; x++)
            for (int y = 0; y < slab->problem.ny; y++)
                for (int z = 0; z < slab->nz; z++)
                    to[to_index(slab, rank, x, y, z)] = from[from_index(slab, rank, x, y, z)];
}

static void exchange(const struct slab *slab)
{
    const int count = (int)(slab->points / (size_t)slab->ranks);
    MPI_Alltoall(slab->out, count, MPI_C_DOUBLE_COMPLEX, slab->in, count, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
}

/* From `space` to `frequency`. */
static void transform(const struct slab *slab)
{
    fftw_execute(slab->forward_xy);
    copy_blocks(slab, slab->out, block_index, slab->space, plane_index);
    exchange(slab);
    copy_blocks(slab, slab->frequency, line_index, slab->in, block_index);
    fftw_execute(slab->forward_z);
}

/* From `evolved` to `space`. */
static void transform_back(const struct slab *slab)
{
    fftw_execute(slab->backward_z);
    copy_blocks(slab, slab->out, block_index, slab->evolved, line_index);
    exchange(slab);
    copy_blocks(slab, slab->space, plane_index, slab->in, block_index);
    fftw_execute(slab->backward_xy);
}

/* One time step: what is left of each frequency. */
static void evolve(const struct slab *slab)
{
    const struct problem *problem = &slab->problem;
    for (int x = 0; x < slab->nx; x++)
        for (int y = 0; y < problem->ny; y++)
            for (int z = 0; z < problem->nz; z++)
                slab->frequency[line_index(slab, 0, x, y, z)] *= decay(problem, slab->rank * slab->nx + x, y, z);
    memcpy(slab->evolved, slab->frequency, slab->points * sizeof(double complex));
}

/* The checksums by a serial transform. */
static void solve_serially(const struct problem *problem, double complex *sums)
{
    const size_t points = points_of(problem);
    double complex *values = room(points * sizeof *values), *evolved = room(points * sizeof *evolved);
    fftw_plan forward = fftw_plan_dft_3d(problem->nz, problem->ny, problem->nx, values, values, FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_plan backward = fftw_plan_dft_3d(problem->nz, problem->ny, problem->nx, evolved, evolved, FFTW_BACKWARD, FFTW_ESTIMATE);
    start_values(problem, 0, problem->nz, values);
    fftw_execute(forward);
    for (int step = 0; step < problem->iterations; step++) {
        for (int z = 0; z < problem->nz; z++)
            for (int y = 0; y < problem->ny; y++)
                for (int x = 0; x < problem->nx; x++)
                    values[((size_t)z * problem->ny + y) * problem->nx + x] *= decay(problem, x, y, z);
        memcpy(evolved, values, points * sizeof *values);
        fftw_execute(backward);
        sums[step] = checksum(problem, evolved, 0, problem->nz);
    }
    fftw_destroy_plan(forward);
    fftw_destroy_plan(backward);
    fftw_free(values);
    fftw_free(evolved);
}

/* Prints the checksums; returns whether they are right. */
static int report(const struct problem *problem, const double complex *sums, int is_checked)
{
    double complex expected[MAX_ITERATIONS];
    double worst = 0;
    for (int step = 0; step < problem->iterations; step++)
        printf("checksum %d %.12e %.12e\n", step + 1, creal(sums[step]), cimag(sums[step]));
    if (!is_checked)
        return 1;
    solve_serially(problem, expected);
    for (int step = 0; step < problem->iterations; step++)
        worst = fmax(worst, cabs(sums[step] - expected[step]) / cabs(expected[step]));
    const int is_right = worst <= TOLERANCE;
    printf("%s: differs from a serial transform by %.1e of it, at most %.0e is allowed\n", is_right ? "right" : "WRONG", worst, TOLERANCE);
    return is_right;
}

/* Bytes of memory that this host has left; the most there are where that is not known. */
static size_t free_bytes(void)
{
    unsigned long long kibibytes = SIZE_MAX >> 10;
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1)
            break;
    if (file)
        fclose(file);
    return (size_t)kibibytes << 10;
}

/* Ends the program where the problem does not fit into the memory of a host, or a block of the exchange into one call, and says what it needs.
 * No collective call is made for that: the calls of the program are those of the benchmark. */
static void check_that_it_fits(const struct slab *slab, int is_checked)
{
    const struct problem *problem = &slab->problem;
    const size_t points = points_of(problem), of_rank = points / (size_t)slab->ranks;
    MPI_Comm host;
    int place, ranks;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, slab->rank, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &place);
    MPI_Comm_size(host, &ranks);
    MPI_Comm_free(&host);
    size_t bytes = (size_t)ranks * ARRAYS * of_rank * sizeof(double complex);
    if (slab->rank == 0 && is_checked)
        bytes += ARRAYS_OF_CHECK * points * sizeof(double complex);
    const size_t there = free_bytes();
    if (bytes > there) {
        /* The first rank of the host speaks for all, who give it the time. */
        if (place > 0)
            sleep(5);
        fprintf(stderr, "ft: class %c needs %zu bytes of memory for %d ranks of one host%s; %zu are free\n", problem->class, bytes, ranks,
                is_checked ? ", those of the check included (--no-check leaves it out)" : "", there);
        /* MPICH's launcher may drop what it has not passed on when a rank aborts. */
        sleep(1);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (slab->rank == 0 && of_rank / (size_t)slab->ranks > INT_MAX) {
        fprintf(stderr, "ft: class %c needs more than %d ranks: a block of %zu points is too long for one call\n", problem->class,
                slab->ranks, of_rank / (size_t)slab->ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static int solve(struct slab *slab, int is_checked)
{
    const struct problem *problem = &slab->problem;
    double complex sums[MAX_ITERATIONS];
    make_slab(slab);
    start_values(problem, slab->rank * slab->nz, slab->nz, slab->space);
    transform(slab);
    MPI_Barrier(MPI_COMM_WORLD);
    /* The first transform touches all memory; the time counts from here. */
    const double begin = MPI_Wtime();
    start_values(problem, slab->rank * slab->nz, slab->nz, slab->space);
    transform(slab);
    for (int step = 0; step < problem->iterations; step++) {
        evolve(slab);
        transform_back(slab);
        const double complex part = checksum(problem, slab->space, slab->rank * slab->nz, slab->nz);
        MPI_Reduce(&part, &sums[step], 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    const double seconds = MPI_Wtime() - begin;
    if (slab->rank > 0)
        return 1;
    printf("class %c, %d x %d x %d points, %d ranks, %.3f s\n", problem->class, problem->nx, problem->ny, problem->nz, slab->ranks, seconds);
    return report(problem, sums, is_checked);
}

/* The problem that is asked for; rank 0 tells the others. */
static int choose(struct slab *slab, const char *name)
{
    struct problem chosen = {0};
    for (size_t i = 0; i < sizeof PROBLEMS / sizeof *PROBLEMS; i++)
        if (name && name[0] == PROBLEMS[i].class && !name[1])
            chosen = PROBLEMS[i];
    int numbers[] = {chosen.nx, chosen.ny, chosen.nz, chosen.iterations, slab->ranks};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        MPI_Bcast(&numbers[i], 1, MPI_INT, 0, MPI_COMM_WORLD);
    slab->problem = chosen;
    const int divides = chosen.nx > 0 && chosen.nx % slab->ranks == 0 && chosen.nz % slab->ranks == 0;
    if (!divides && slab->rank == 0)
        fprintf(stderr, "usage: ft S|W|A|B|C|D|E [--no-check], with a number of ranks that divides the points along x and z\n");
    return divides;
}

int main(int argc, char **argv)
{
    struct slab slab = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &slab.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &slab.ranks);
    int status = 2;
    const int is_checked = argc < 3 || strcmp(argv[2], "--no-check") != 0;
    if (choose(&slab, argc > 1 ? argv[1] : NULL)) {
        check_that_it_fits(&slab, is_checked);
        status = solve(&slab, is_checked) ? 0 : 1;
    }
    MPI_Finalize();
    return status;
}
