/* The schedule file: a collective in phases, and the hosts that it is for. Nothing here knows MPI. */
#ifndef KASURI_SCHEDULE_H
#define KASURI_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

/* Where a rank sends or receives nothing. */
#define KASURI_NOBODY 0xffffu

/* What a schedule is for; the numbers stand in files. */
enum kasuri_collective { KASURI_ALLTOALL, KASURI_ALLGATHER, KASURI_REDUCE_SCATTER, KASURI_ALLREDUCE, KASURI_COLLECTIVES };

struct kasuri_schedule {
    enum kasuri_collective collective;
    uint32_t ranks;
    uint32_t phases;
    /* Shorter messages are better left to the MPI library. */
    uint32_t min_bytes;
    uint32_t checksum;
    /* The host of each rank; NULL if ranks are known by their numbers. */
    char **hosts;
    /* The file's bytes, into which `hosts` and `table` point. */
    unsigned char *bytes;
    /* Of an all-to-all: by phase and rank, the rank to which it sends. Of others: by phase and rank, its message; see kasuri_next. */
    const unsigned char *table;
    /* Of others: where the table ends, into how many parts the data are cut, and how many of them a message has at most. */
    const unsigned char *end;
    uint32_t parts, most_parts;
};

/* Of an all-to-all: the rank to which a rank sends in a phase, or KASURI_NOBODY. */
static inline uint32_t kasuri_destination(const struct kasuri_schedule *schedule, uint32_t phase, uint32_t rank)
{
    const unsigned char *cell = schedule->table + 2 * ((size_t)phase * schedule->ranks + rank);
    return cell[0] | (uint32_t)cell[1] << 8;
}

/* A message of another collective: runs of parts. */
struct kasuri_message {
    uint32_t phase, from, to, runs;
    const unsigned char *run;
};

/* Parts that follow each other; the receiver adds them to what it has, or puts them in its place. */
struct kasuri_run {
    uint32_t first, count;
    int is_added;
};

/* Where the next message is looked for. Begins as zeros. */
struct kasuri_cursor {
    uint32_t phase, rank;
    size_t read;
};

/* The next message in the order of phases and senders. Returns 1; 0 at the end, -1 where the table is cut off. */
int kasuri_next(const struct kasuri_schedule *schedule, struct kasuri_cursor *cursor, struct kasuri_message *message);

/* A run of a message. */
struct kasuri_run kasuri_run_of(const struct kasuri_message *message, uint32_t number);

/* What the collective is called in messages. */
const char *kasuri_name_of(enum kasuri_collective collective);

/* Reads and checks a file. Returns 0; or -1 and, in `reason`, what is wrong with it. */
int kasuri_schedule_read(const char *path, struct kasuri_schedule *schedule, char *reason, size_t size);

void kasuri_schedule_free(struct kasuri_schedule *schedule);

/* CRC-32 as in zip files. */
uint32_t kasuri_crc32(const unsigned char *bytes, size_t length);

#endif
