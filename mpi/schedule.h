/* The schedule file: an all-to-all in phases, and the hosts that it is for. Nothing here knows MPI. */
#ifndef KASURI_SCHEDULE_H
#define KASURI_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

/* Where a rank sends or receives nothing. */
#define KASURI_NOBODY 0xffffu

struct kasuri_schedule {
    uint32_t ranks;
    uint32_t phases;
    /* Shorter messages are better left to the MPI library. */
    uint32_t min_bytes;
    uint32_t checksum;
    /* The host of each rank; NULL if ranks are known by their numbers. */
    char **hosts;
    /* The file's bytes, into which `hosts` and `table` point. */
    unsigned char *bytes;
    const unsigned char *table;
};

/* The rank to which a rank sends in a phase, or KASURI_NOBODY. */
static inline uint32_t kasuri_destination(const struct kasuri_schedule *schedule, uint32_t phase, uint32_t rank)
{
    const unsigned char *cell = schedule->table + 2 * ((size_t)phase * schedule->ranks + rank);
    return cell[0] | (uint32_t)cell[1] << 8;
}

/* Reads and checks a file. Returns 0; or -1 and, in `reason`, what is wrong with it. */
int kasuri_schedule_read(const char *path, struct kasuri_schedule *schedule, char *reason, size_t size);

void kasuri_schedule_free(struct kasuri_schedule *schedule);

/* CRC-32 as in zip files. */
uint32_t kasuri_crc32(const unsigned char *bytes, size_t length);

#endif
