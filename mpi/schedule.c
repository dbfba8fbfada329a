/* Reads the schedule file. Its layout stands in docs/reference/file-formats.md; the writer is kasuri_config, format::mpi. */
#include "schedule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char MAGIC[8] = {'K', 'A', 'S', 'U', 'R', 'I', '\r', '\n'};

enum { VERSION = 2, HEAD = 28, CHECKSUM = 4, MAX_RANKS = 16384 };

uint32_t kasuri_crc32(const unsigned char *bytes, size_t length)
{
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? 0xedb88320u ^ value >> 1 : value >> 1;
        table[i] = value;
    }
    uint32_t sum = 0xffffffffu;
    for (size_t i = 0; i < length; i++)
        sum = table[(sum ^ bytes[i]) & 0xff] ^ sum >> 8;
    return ~sum;
}

static uint32_t number(const unsigned char *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* The bytes of a file, or NULL and the reason. */
static unsigned char *contents(const char *path, size_t *length, char *reason, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(reason, size, "cannot be opened: %s", strerror(errno));
        return NULL;
    }
    unsigned char *bytes = NULL;
    size_t room = 0, used = 0, got = 1;
    while (got > 0) {
        if (used == room) {
            room = room ? 2 * room : 1 << 16;
            unsigned char *larger = realloc(bytes, room);
            if (!larger) {
                snprintf(reason, size, "does not fit into memory");
                goto failed;
            }
            bytes = larger;
        }
        got = fread(bytes + used, 1, room - used, file);
        used += got;
    }
    if (ferror(file)) {
        snprintf(reason, size, "cannot be read: %s", strerror(errno));
        goto failed;
    }
    fclose(file);
    *length = used;
    return bytes;
failed:
    fclose(file);
    free(bytes);
    return NULL;
}

/* Cuts the placement into names, one a rank, and ends each with a zero in place of its line feed. */
static int read_hosts(struct kasuri_schedule *schedule, char *text, size_t length, char *reason, size_t size)
{
    schedule->hosts = calloc(schedule->ranks, sizeof *schedule->hosts);
    if (!schedule->hosts) {
        snprintf(reason, size, "does not fit into memory");
        return -1;
    }
    uint32_t rank = 0;
    for (char *end = text + length; text < end && rank < schedule->ranks; rank++) {
        char *line = memchr(text, '\n', (size_t)(end - text));
        if (!line)
            break;
        *line = '\0';
        schedule->hosts[rank] = text;
        text = line + 1;
        if (rank + 1 == schedule->ranks && text == end)
            return 0;
    }
    snprintf(reason, size, "has a placement of other than %u ranks", (unsigned)schedule->ranks);
    return -1;
}

/* Is every ordered pair served once, and receives a rank from at most one in a phase? */
static int check_table(const struct kasuri_schedule *schedule, char *reason, size_t size)
{
    const size_t ranks = schedule->ranks;
    unsigned char *served = calloc(ranks * ranks, 1);
    uint32_t *received = calloc(ranks, sizeof *received);
    size_t count = 0;
    int status = -1;
    if (!served || !received) {
        snprintf(reason, size, "does not fit into memory");
        goto done;
    }
    for (uint32_t phase = 0; phase < schedule->phases; phase++) {
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const uint32_t peer = kasuri_destination(schedule, phase, rank);
            if (peer == KASURI_NOBODY)
                continue;
            if (peer >= ranks || peer == rank || served[rank * ranks + peer] || received[peer] == phase + 1) {
                snprintf(reason, size, "is no all-to-all: phase %u, rank %u", (unsigned)phase, (unsigned)rank);
                goto done;
            }
            served[rank * ranks + peer] = 1;
            received[peer] = phase + 1;
            count++;
        }
    }
    if (count != ranks * (ranks - 1))
        snprintf(reason, size, "is no all-to-all: %zu of %zu messages", count, ranks * (ranks - 1));
    else
        status = 0;
done:
    free(served);
    free(received);
    return status;
}

/* What the bytes say, without their meaning. */
static int check_bytes(const unsigned char *bytes, size_t length, char *reason, size_t size)
{
    if (length < HEAD + CHECKSUM || memcmp(bytes, MAGIC, sizeof MAGIC) != 0) {
        snprintf(reason, size, "is no schedule for MPI, or is cut off");
        return -1;
    }
    if (number(bytes + 8) != VERSION) {
        snprintf(reason, size, "has layout %u; this library reads layout %d", (unsigned)number(bytes + 8), VERSION);
        return -1;
    }
    const uint64_t ranks = number(bytes + 12), phases = number(bytes + 16), placement = number(bytes + 20);
    if (number(bytes + 24) > INT32_MAX) {
        snprintf(reason, size, "begins with messages of %u bytes, at most %d", (unsigned)number(bytes + 24), INT32_MAX);
        return -1;
    }
    if (ranks < 2 || ranks > MAX_RANKS || phases > ranks * ranks) {
        snprintf(reason, size, "has %u ranks and %u phases", (unsigned)ranks, (unsigned)phases);
        return -1;
    }
    const uint64_t expected = HEAD + placement + 2 * ranks * phases + CHECKSUM;
    if (length != expected) {
        snprintf(reason, size, "has %zu bytes in place of %llu: is it cut off?", length, (unsigned long long)expected);
        return -1;
    }
    if (number(bytes + length - CHECKSUM) != kasuri_crc32(bytes, length - CHECKSUM)) {
        snprintf(reason, size, "has a wrong checksum");
        return -1;
    }
    return 0;
}

int kasuri_schedule_read(const char *path, struct kasuri_schedule *schedule, char *reason, size_t size)
{
    memset(schedule, 0, sizeof *schedule);
    size_t length = 0;
    unsigned char *bytes = schedule->bytes = contents(path, &length, reason, size);
    if (!bytes || check_bytes(bytes, length, reason, size) != 0)
        goto failed;
    schedule->ranks = number(bytes + 12);
    schedule->phases = number(bytes + 16);
    schedule->min_bytes = number(bytes + 24);
    schedule->checksum = number(bytes + length - CHECKSUM);
    const size_t placement = number(bytes + 20);
    schedule->table = bytes + HEAD + placement;
    if (check_table(schedule, reason, size) != 0)
        goto failed;
    if (placement > 0 && read_hosts(schedule, (char *)bytes + HEAD, placement, reason, size) != 0)
        goto failed;
    return 0;
failed:
    kasuri_schedule_free(schedule);
    return -1;
}

void kasuri_schedule_free(struct kasuri_schedule *schedule)
{
    free(schedule->hosts);
    free(schedule->bytes);
    memset(schedule, 0, sizeof *schedule);
}
