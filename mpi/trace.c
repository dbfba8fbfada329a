/* Records a GOAL program. Its ranks are those of MPI_COMM_WORLD; the time between two calls is a computation. Not for programs of which
 * several threads call MPI at once. */
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
/* Operations are labelled 1, 2, ... */
static long long next = 1;
/* Labels of operations: what the next one waits for, and what has begun since. */
struct labels {
    long long *list;
    size_t count, room;
};
static struct labels before, now;
static double last_end;
/* The rank in MPI_COMM_WORLD of each rank of the communicator of the call. */
static int *world_ranks;

/* A send or receive that the program has not waited for yet. */
struct open {
    MPI_Request request;
    int is_receive;
    /* Of a receive: the ranks among which its source is. The communicator may be gone when it ends. */
    MPI_Group group;
    /* The send; or the operation after which the receive was posted. */
    long long label;
};
static struct open *opened;
static size_t open_count, open_room;

static void start(void)
{
    path = getenv("KASURI_MPI_TRACE");
    if (path && !*path)
        path = NULL;
    last_end = PMPI_Wtime();
}

int kasuri_trace_is_on(void)
{
    pthread_once(&once, start);
    return path != NULL;
}

/* Room for one more element. */
static int grow(void **list, size_t count, size_t *have, size_t size)
{
    if (count < *have)
        return 1;
    void *larger = realloc(*list, (2 * *have + 16) * size);
    if (!larger) {
        has_failed = 1;
        return 0;
    }
    *list = larger;
    *have = 2 * *have + 16;
    return 1;
}

static void add(struct labels *labels, long long label)
{
    if (grow((void **)&labels->list, labels->count, &labels->room, sizeof *labels->list))
        labels->list[labels->count++] = label;
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

/* The operation just written waits for what was before. Returns its label. */
static long long wait_for_stage(void)
{
    for (size_t i = 0; i < before.count; i++)
        append("l%lld requires l%lld\n", next, before.list[i]);
    return next++;
}

void kasuri_trace_stage(void)
{
    if (now.count > 0) {
        const struct labels old = before;
        before = now;
        now = old;
        now.count = 0;
    }
}

/* The computation between two calls. */
static void compute(double until)
{
    const double seconds = until > last_end ? until - last_end : 0;
    kasuri_trace_stage();
    append("l%lld: calc %.0f\n", next, 1e9 * seconds);
    add(&now, wait_for_stage());
    kasuri_trace_stage();
}

/* Finds the ranks in MPI_COMM_WORLD of those of a communicator. */
static int translate(MPI_Comm comm)
{
    int size = 0;
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
    return 1;
}

int kasuri_trace_enter(MPI_Comm comm)
{
    int is_between = 0;
    if (!kasuri_trace_is_on() || PMPI_Comm_test_inter(comm, &is_between) != MPI_SUCCESS || is_between || !translate(comm))
        return 0;
    compute(PMPI_Wtime());
    return 1;
}

/* Writes a message to or from a rank of MPI_COMM_WORLD; 0 if there is none. */
static int write_message(const char *verb, const char *preposition, int peer, MPI_Count bytes, int tag)
{
    if (peer < 0)
        return 0;
    append("l%lld: %s %lldb %s %d tag %u\n", next, verb, (long long)bytes, preposition, peer, (unsigned)tag);
    return 1;
}

/* The rank in MPI_COMM_WORLD of a rank of the communicator; -1 for none. */
static int in_world(int rank)
{
    return rank < 0 || world_ranks[rank] == MPI_UNDEFINED ? -1 : world_ranks[rank];
}

void kasuri_trace_send(int to, MPI_Count bytes)
{
    if (bytes > 0 && write_message("send", "to", in_world(to), bytes, KASURI_COLLECTIVE))
        add(&now, wait_for_stage());
}

void kasuri_trace_receive(int from, MPI_Count bytes)
{
    if (bytes > 0 && write_message("recv", "from", in_world(from), bytes, KASURI_COLLECTIVE))
        add(&now, wait_for_stage());
}

void kasuri_trace_own_send(int to, MPI_Count bytes, int tag)
{
    if (write_message("send", "to", in_world(to), bytes, tag + 1))
        add(&now, wait_for_stage());
}

/* A receive that has ended; the status tells how much has come. */
static int write_received(int from, const MPI_Status *status)
{
    int bytes = 0;
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    return write_message("recv", "from", from, bytes > 0 ? bytes : 0, status->MPI_TAG + 1);
}

void kasuri_trace_own_receive(const MPI_Status *status)
{
    if (write_received(in_world(status->MPI_SOURCE), status))
        add(&now, wait_for_stage());
}

static void remember(struct open open)
{
    if (grow((void **)&opened, open_count, &open_room, sizeof *opened))
        opened[open_count++] = open;
}

void kasuri_trace_start_send(int to, MPI_Count bytes, int tag, MPI_Request request)
{
    if (write_message("send", "to", in_world(to), bytes, tag + 1))
        remember((struct open){.request = request, .label = wait_for_stage()});
}

void kasuri_trace_start_receive(MPI_Comm comm, MPI_Request request)
{
    /* A call begins with one operation, its computation. */
    struct open open = {.request = request, .is_receive = 1, .label = before.list[0]};
    if (PMPI_Comm_group(comm, &open.group) == MPI_SUCCESS)
        remember(open);
}

static struct open *find(MPI_Request request)
{
    for (size_t i = open_count; i-- > 0 && request != MPI_REQUEST_NULL;)
        if (opened[i].request == request)
            return &opened[i];
    return NULL;
}

/* Forgets a send or receive. */
static void close_request(struct open *open)
{
    if (open->is_receive)
        PMPI_Group_free(&open->group);
    *open = opened[--open_count];
}

void kasuri_trace_forget(MPI_Request request)
{
    struct open *open = find(request);
    if (open)
        close_request(open);
}

/* The rank in MPI_COMM_WORLD from which a receive has its message. */
static int source_of(const struct open *open, const MPI_Status *status)
{
    MPI_Group world;
    int from = status->MPI_SOURCE, found = -1;
    if (from < 0)
        return -1;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(open->group, 1, &from, world, &found);
    PMPI_Group_free(&world);
    return found == MPI_UNDEFINED ? -1 : found;
}

/* What waits for the end of a send or receive waits for this operation. 0 if there is none. */
static long long end_of(const struct open *open, const MPI_Status *status)
{
    int was_cancelled = 0;
    if (!open->is_receive)
        return open->label;
    PMPI_Test_cancelled(status, &was_cancelled);
    if (was_cancelled || !write_received(source_of(open, status), status))
        return 0;
    append("l%lld requires l%lld\n", next, open->label);
    return next++;
}

void kasuri_trace_end(const MPI_Request *requests, const MPI_Status *statuses, const int *ended, int count, double begin)
{
    struct labels ends = {0};
    for (int i = 0; i < count; i++) {
        struct open *open = !ended || ended[i] ? find(requests[i]) : NULL;
        const long long end = open ? end_of(open, &statuses[i]) : 0;
        if (open)
            close_request(open);
        if (end > 0)
            add(&ends, end);
    }
    if (ends.count > 0) {
        compute(begin);
        /* What follows waits for the computation and the messages. */
        add(&now, before.list[0]);
        for (size_t i = 0; i < ends.count; i++)
            add(&now, ends.list[i]);
        kasuri_trace_stage();
    }
    free(ends.list);
    kasuri_trace_leave();
}

void kasuri_trace_leave(void)
{
    if (path)
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
