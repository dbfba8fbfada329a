/* Records a GOAL program. Its ranks are those of MPI_COMM_WORLD; the time between two calls is a computation. */
#include "trace.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 26, TAG = 2 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *path;
static char *text;
static size_t used, room;
static int has_failed;
/* Operations are labelled 1, 2, …; those from `before` up to `stage` must end before those from `stage` on begin. */
static long long next = 1, stage = 1, before = 1;
static double last_end;
/* The rank in MPI_COMM_WORLD of each rank of the communicator of the call. */
static int *world_ranks;

static void start(void)
{
    path = getenv("KASURI_MPI_TRACE");
    if (path && !*path)
        path = NULL;
    last_end = PMPI_Wtime();
}

static void append(const char *format, ...)
{
    char line[128];
    va_list arguments;
    va_start(arguments, format);
    const size_t length = (size_t)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (used + length > room) {
        char *larger = realloc(text, 2 * room + sizeof line);
        if (!larger) {
            has_failed = 1;
            return;
        }
        text = larger;
        room = 2 * room + sizeof line;
    }
    memcpy(text + used, line, length);
    used += length;
}

/* An operation has been written; what it waits for. */
static void wait_for_stage(void)
{
    for (long long label = before; label < stage; label++)
        append("l%lld requires l%lld\n", next, label);
    next++;
}

void kasuri_trace_stage(void)
{
    if (next > stage) {
        before = stage;
        stage = next;
    }
}

int kasuri_trace_enter(MPI_Comm comm)
{
    pthread_once(&once, start);
    int is_between = 0, size = 0;
    if (!path || PMPI_Comm_test_inter(comm, &is_between) != MPI_SUCCESS || is_between)
        return 0;
    PMPI_Comm_size(comm, &size);
    int *ranks = malloc((size_t)size * sizeof *ranks);
    free(world_ranks);
    world_ranks = malloc((size_t)size * sizeof *world_ranks);
    if (!ranks || !world_ranks) {
        free(ranks);
        has_failed = 1;
        return 0;
    }
    for (int rank = 0; rank < size; rank++)
        ranks[rank] = rank;
    MPI_Group world, group;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, size, ranks, world, world_ranks);
    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    free(ranks);
    kasuri_trace_stage();
    append("l%lld: calc %.0f\n", next, 1e9 * (PMPI_Wtime() - last_end));
    wait_for_stage();
    kasuri_trace_stage();
    return 1;
}

static void message(const char *verb, const char *preposition, int peer, MPI_Count bytes)
{
    if (bytes > 0 && world_ranks[peer] != MPI_UNDEFINED) {
        append("l%lld: %s %lldb %s %d tag 0\n", next, verb, (long long)bytes, preposition, world_ranks[peer]);
        wait_for_stage();
    }
}

void kasuri_trace_send(int to, MPI_Count bytes)
{
    message("send", "to", to, bytes);
}

void kasuri_trace_receive(int from, MPI_Count bytes)
{
    message("recv", "from", from, bytes);
}

void kasuri_trace_leave(void)
{
    last_end = PMPI_Wtime();
}

/* Rank 0 writes the block of a rank. */
static void write_block(FILE *file, int rank, long long length)
{
    char *piece = malloc(CHUNK);
    fprintf(file, "\nrank %d {\n", rank);
    if (rank == 0)
        fwrite(text, 1, used, file);
    for (long long left = rank == 0 ? 0 : length; piece && left > 0;) {
        MPI_Status status;
        int got = 0;
        PMPI_Recv(piece, CHUNK, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, &status);
        PMPI_Get_count(&status, MPI_BYTE, &got);
        fwrite(piece, 1, (size_t)got, file);
        left -= got;
    }
    fprintf(file, "}\n");
    free(piece);
}

void kasuri_trace_write(void)
{
    pthread_once(&once, start);
    if (!path)
        return;
    int rank, size, begin = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    long long length = has_failed ? -1 : (long long)used;
    long long *lengths = rank == 0 ? calloc((size_t)size, sizeof *lengths) : NULL;
    PMPI_Gather(&length, 1, MPI_LONG_LONG, lengths, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    FILE *file = NULL;
    if (rank == 0 && lengths) {
        for (int i = 0; i < size; i++)
            has_failed |= lengths[i] < 0;
        file = has_failed ? NULL : fopen(path, "w");
        begin = file != NULL;
        if (!file)
            fprintf(stderr, "kasuri: no trace is written: %s %s\n", path, has_failed ? "does not fit into memory" : "cannot be opened");
    }
    PMPI_Bcast(&begin, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (begin && rank == 0) {
        fprintf(file, "num_ranks %d\n", size);
        for (int i = 0; i < size; i++)
            write_block(file, i, lengths[i]);
        if (fclose(file) != 0)
            fprintf(stderr, "kasuri: the trace %s could not be written whole\n", path);
    } else if (begin) {
        for (long long at = 0; at < length; at += CHUNK)
            PMPI_Send(text + at, (int)(length - at < CHUNK ? length - at : CHUNK), MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
    free(lengths);
}
