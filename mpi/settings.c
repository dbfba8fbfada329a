#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads a number of bytes; `*value` stays where the variable is not set. */
static int read_bytes(const char *name, int64_t lowest, int64_t *value, char *reason, size_t size)
{
    const char *text = getenv(name);
    if (!text)
        return 0;
    char *end = NULL;
    errno = 0;
    const long long given = strtoll(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || given < lowest || given > INT_MAX) {
        snprintf(reason, size, "%s is `%.64s`; it must be a number of bytes, %lld to %d", name, text, (long long)lowest, INT_MAX);
        return -1;
    }
    *value = given;
    return 1;
}

int kasuri_settings_read(struct kasuri_settings *settings, uint32_t least, char *reason, size_t size)
{
    *settings = (struct kasuri_settings){.least = least, .most = INT_MAX, .gathered = least, .is_tried = 1};
    const int is_set = read_bytes("KASURI_MPI_MIN_BYTES", 0, &settings->least, reason, size);
    settings->is_tried = is_set == 0;
    if (is_set < 0 || read_bytes("KASURI_MPI_GATHER_BYTES", 0, &settings->gathered, reason, size) < 0)
        return -1;
    return read_bytes("KASURI_MPI_MAX_BYTES", 1, &settings->most, reason, size) < 0 ? -1 : 0;
}
