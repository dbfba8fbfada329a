/* Reads the schedule file. Its layout stands in docs/reference/file-formats.md; the writer is kasuri_formats::mpi. */
#include "schedule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char MAGIC[8] = {'K', 'A', 'S', 'U', 'R', 'I', '\r', '\n'};

/* The layout of all-to-alls, and that of other collectives, which has a longer head. */
enum { VERSION = 2, HEAD = 28, ROUNDS_VERSION = 3, ROUNDS_HEAD = 40, CHECKSUM = 4, MAX_RANKS = 16384 };
/* Of a word that says how many parts a run has: they are added. */
enum { ADDED = 0x8000 };

const char *kasuri_name_of(enum kasuri_collective collective)
{
    static const char *const names[] = {"all-to-all", "all-gather", "reduce-scatter", "all-reduce"};
    return collective < KASURI_COLLECTIVES ? names[collective] : "?";
}

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

static uint32_t word(const unsigned char *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8;
}

int kasuri_next(const struct kasuri_schedule *schedule, struct kasuri_cursor *cursor, struct kasuri_message *message)
{
    while (cursor->phase < schedule->phases) {
        const unsigned char *at = schedule->table + cursor->read;
        const size_t left = (size_t)(schedule->end - at);
        *message = (struct kasuri_message){.phase = cursor->phase, .from = cursor->rank};
        if (left < 2)
            return -1;
        if (++cursor->rank == schedule->ranks) {
            cursor->rank = 0;
            cursor->phase++;
        }
        cursor->read += 2;
        message->to = word(at);
        if (message->to == KASURI_NOBODY)
            continue;
        if (left < 4 || left < 4 + 4 * (size_t)word(at + 2))
            return -1;
        message->runs = word(at + 2);
        message->run = at + 4;
        cursor->read += 2 + 4 * (size_t)message->runs;
        return 1;
    }
    return schedule->table + cursor->read == schedule->end ? 0 : -1;
}

struct kasuri_run kasuri_run_of(const struct kasuri_message *message, uint32_t number)
{
    const unsigned char *at = message->run + 4 * (size_t)number;
    const uint32_t count = word(at + 2);
    return (struct kasuri_run){.first = word(at), .count = count & ~(uint32_t)ADDED, .is_added = (count & ADDED) != 0};
}

/* What is known while the messages are followed. What a rank holds of a part is the sum of numbers, one for each rank that has contributed
 * to it: numbers of 64 bits at random, so that no other sum is right. */
struct proof {
    uint64_t *held, *moving;
    /* By rank and part, the last phase in which it sent the part; by rank, that in which it received; by part, the last message with it. */
    uint32_t *sent, *received;
    uint64_t *seen, messages;
};

static uint64_t contribution(uint32_t rank)
{
    uint64_t z = (rank + (uint64_t)1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Is a message one that can be? Keeps what it carries, at `*moved`, for it was there before the phase. */
static int take(struct kasuri_schedule *schedule, struct proof *proof, const struct kasuri_message *message, size_t *moved)
{
    uint32_t parts = 0;
    if (message->to >= schedule->ranks || message->to == message->from || message->runs == 0 ||
        proof->received[message->to] == message->phase + 1)
        return 0;
    proof->received[message->to] = message->phase + 1;
    proof->messages++;
    for (uint32_t i = 0; i < message->runs; i++) {
        const struct kasuri_run run = kasuri_run_of(message, i);
        if (run.count == 0 || run.first >= schedule->parts || run.count > schedule->parts - run.first ||
            (run.is_added && schedule->collective == KASURI_ALLGATHER))
            return 0;
        for (uint32_t part = run.first; part < run.first + run.count; part++) {
            const size_t at = (size_t)message->from * schedule->parts + part;
            if (proof->held[at] == 0 || proof->seen[part] == proof->messages)
                return 0;
            proof->seen[part] = proof->messages;
            proof->sent[at] = message->phase + 1;
            proof->moving[(*moved)++] = proof->held[at];
        }
        parts += run.count;
    }
    if (parts > schedule->most_parts)
        schedule->most_parts = parts;
    return 1;
}

/* What a message does at its receiver, which must not send in the same phase what the message puts there in its place. */
static int give(const struct kasuri_schedule *schedule, struct proof *proof, const struct kasuri_message *message, size_t *moved)
{
    for (uint32_t i = 0; i < message->runs; i++) {
        const struct kasuri_run run = kasuri_run_of(message, i);
        for (uint32_t part = run.first; part < run.first + run.count; part++) {
            const size_t at = (size_t)message->to * schedule->parts + part;
            if (!run.is_added && proof->sent[at] == message->phase + 1)
                return 0;
            proof->held[at] = (run.is_added ? proof->held[at] : 0) + proof->moving[(*moved)++];
        }
    }
    return 1;
}

/* Follows all messages, phase by phase: first what is sent, then what it does. */
static int follow(struct kasuri_schedule *schedule, struct proof *proof, char *reason, size_t size)
{
    struct kasuri_cursor cursor = {0}, begin = cursor;
    struct kasuri_message message = {0}, other;
    const char *name = kasuri_name_of(schedule->collective);
    int found = kasuri_next(schedule, &cursor, &message);
    while (found > 0) {
        const uint32_t phase = message.phase;
        struct kasuri_cursor again = begin;
        size_t taken = 0, given = 0;
        for (; found > 0 && message.phase == phase; found = kasuri_next(schedule, &cursor, &message)) {
            if (!take(schedule, proof, &message, &taken)) {
                snprintf(reason, size, "is no %s: phase %u, rank %u", name, (unsigned)phase, (unsigned)message.from);
                return -1;
            }
            begin = cursor;
        }
        while (kasuri_next(schedule, &again, &other) > 0 && other.phase == phase) {
            if (!give(schedule, proof, &other, &given)) {
                snprintf(reason, size, "is no %s: in phase %u rank %u overwrites what rank %u sends", name, (unsigned)phase,
                         (unsigned)other.from, (unsigned)other.to);
                return -1;
            }
        }
    }
    if (found < 0)
        snprintf(reason, size, "is no %s: its table ends in phase %u, rank %u", name, (unsigned)message.phase, (unsigned)message.from);
    return found;
}

/* Does every rank end with what the collective promises? */
static int check_end(const struct kasuri_schedule *schedule, const struct proof *proof, char *reason, size_t size)
{
    uint64_t whole = 0;
    for (uint32_t rank = 0; rank < schedule->ranks; rank++)
        whole += contribution(rank);
    for (uint32_t rank = 0; rank < schedule->ranks; rank++) {
        for (uint32_t part = 0; part < schedule->parts; part++) {
            const uint64_t right = schedule->collective == KASURI_ALLGATHER ? contribution(part) : whole;
            if (schedule->collective == KASURI_REDUCE_SCATTER && part != rank)
                continue;
            if (proof->held[(size_t)rank * schedule->parts + part] != right) {
                snprintf(reason, size, "is no %s: rank %u does not end with the whole of part %u", kasuri_name_of(schedule->collective),
                         (unsigned)rank, (unsigned)part);
                return -1;
            }
        }
    }
    return 0;
}

/* Do the messages do what the collective promises: every block everywhere, or every contribution to a sum once? */
static int check_rounds(struct kasuri_schedule *schedule, char *reason, size_t size)
{
    const size_t cells = (size_t)schedule->ranks * schedule->parts;
    struct proof proof = {.held = calloc(cells, sizeof *proof.held),
                          .moving = calloc(cells, sizeof *proof.moving),
                          .sent = calloc(cells, sizeof *proof.sent),
                          .received = calloc(schedule->ranks, sizeof *proof.received),
                          .seen = calloc(schedule->parts, sizeof *proof.seen)};
    int status = -1;
    if (!proof.held || !proof.moving || !proof.sent || !proof.received || !proof.seen) {
        snprintf(reason, size, "does not fit into memory");
    } else {
        for (uint32_t rank = 0; rank < schedule->ranks; rank++)
            for (uint32_t part = 0; part < schedule->parts; part++)
                if (schedule->collective != KASURI_ALLGATHER || part == rank)
                    proof.held[(size_t)rank * schedule->parts + part] = contribution(rank);
        status = follow(schedule, &proof, reason, size) == 0 && check_end(schedule, &proof, reason, size) == 0 ? 0 : -1;
    }
    free(proof.held);
    free(proof.moving);
    free(proof.sent);
    free(proof.received);
    free(proof.seen);
    return status;
}

/* What the head of another collective says beyond that of an all-to-all. */
static int check_rounds_head(const unsigned char *bytes, char *reason, size_t size)
{
    const uint32_t ranks = number(bytes + 12), collective = number(bytes + 28), parts = number(bytes + 32);
    if (collective <= KASURI_ALLTOALL || collective >= KASURI_COLLECTIVES) {
        snprintf(reason, size, "is for collective %u; this library knows 1 (all-gather), 2 (reduce-scatter) and 3 (all-reduce)",
                 (unsigned)collective);
        return -1;
    }
    if (parts < 1 || parts > ranks || (collective != KASURI_ALLREDUCE && parts != ranks)) {
        snprintf(reason, size, "cuts the data of %u ranks into %u parts", (unsigned)ranks, (unsigned)parts);
        return -1;
    }
    return 0;
}

/* What the bytes say, without their meaning. */
static int check_bytes(const unsigned char *bytes, size_t length, char *reason, size_t size)
{
    if (length < HEAD + CHECKSUM || memcmp(bytes, MAGIC, sizeof MAGIC) != 0) {
        snprintf(reason, size, "is not a schedule for MPI, or truncated");
        return -1;
    }
    const uint32_t version = number(bytes + 8);
    if (version != VERSION && version != ROUNDS_VERSION) {
        snprintf(reason, size, "has layout %u; this library reads layouts %d (all-to-alls) and %d", (unsigned)version, VERSION,
                 ROUNDS_VERSION);
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
    if (version == ROUNDS_VERSION && length < ROUNDS_HEAD + CHECKSUM) {
        snprintf(reason, size, "is not a schedule for MPI, or truncated");
        return -1;
    }
    const uint64_t expected = version == VERSION ? HEAD + placement + 2 * ranks * phases + CHECKSUM
                                                 : ROUNDS_HEAD + placement + 2 * (uint64_t)number(bytes + 36) + CHECKSUM;
    if (length != expected) {
        snprintf(reason, size, "has %zu bytes instead of %llu; it may be truncated", length, (unsigned long long)expected);
        return -1;
    }
    if (number(bytes + length - CHECKSUM) != kasuri_crc32(bytes, length - CHECKSUM)) {
        snprintf(reason, size, "has a wrong checksum");
        return -1;
    }
    return version == VERSION ? 0 : check_rounds_head(bytes, reason, size);
}

int kasuri_schedule_read(const char *path, struct kasuri_schedule *schedule, char *reason, size_t size)
{
    memset(schedule, 0, sizeof *schedule);
    size_t length = 0;
    unsigned char *bytes = schedule->bytes = contents(path, &length, reason, size);
    if (!bytes || check_bytes(bytes, length, reason, size) != 0)
        goto failed;
    const int is_alltoall = number(bytes + 8) == VERSION;
    const size_t placement = number(bytes + 20), head = is_alltoall ? HEAD : ROUNDS_HEAD;
    schedule->ranks = number(bytes + 12);
    schedule->phases = number(bytes + 16);
    schedule->min_bytes = number(bytes + 24);
    schedule->checksum = number(bytes + length - CHECKSUM);
    schedule->table = bytes + head + placement;
    schedule->end = bytes + length - CHECKSUM;
    if (!is_alltoall) {
        schedule->collective = (enum kasuri_collective)number(bytes + 28);
        schedule->parts = number(bytes + 32);
    }
    if ((is_alltoall ? check_table(schedule, reason, size) : check_rounds(schedule, reason, size)) != 0)
        goto failed;
    if (placement > 0 && read_hosts(schedule, (char *)bytes + head, placement, reason, size) != 0)
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
