/* What a user sets by variables of the environment. Nothing here knows MPI. */
#ifndef KASURI_SETTINGS_H
#define KASURI_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

struct kasuri_settings {
    /* Messages of fewer bytes, and of more, are left to the MPI library. */
    int64_t least, most;
    /* Of several ranks a terminal: blocks of fewer bytes are gathered. */
    int64_t gathered;
    /* Is the faster way found out by trial? Not where KASURI_MPI_MIN_BYTES says from where on the schedule is used. */
    int64_t is_tried;
    /* Is there a thread for calls that do not wait? */
    int64_t has_background;
};

/* Reads KASURI_MPI_MIN_BYTES and KASURI_MPI_GATHER_BYTES, in place of which stands what the schedule's file says, and KASURI_MPI_MAX_BYTES.
 * Returns 0; or -1 and, in
 * `reason`, what is wrong. */
int kasuri_settings_read(struct kasuri_settings *settings, uint32_t least, char *reason, size_t size);

#endif
