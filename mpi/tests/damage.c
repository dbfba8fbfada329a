/* Reads a schedule file in every state of damage: cut off anywhere, and with each byte changed in several ways, with the old checksum and
 * with a right one. Built with the sanitizers, which end it where the reader reads outside its memory. Prints how many damaged files
 * were accepted: with the old checksum none.
 *
 *     damage FILE SCRATCH
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../schedule.h"

enum { CHECKSUM = 4 };

static unsigned char *load(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        exit(2);
    *length = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*length + 1);
    if (!bytes || fread(bytes, 1, *length, file) != *length)
        exit(2);
    fclose(file);
    return bytes;
}

/* Is a file of these bytes accepted? */
static int is_accepted(const char *path, const unsigned char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
        exit(2);
    struct kasuri_schedule schedule;
    char reason[200] = "";
    if (kasuri_schedule_read(path, &schedule, reason, sizeof reason) != 0) {
        if (!*reason)
            exit(3);
        return 0;
    }
    kasuri_schedule_free(&schedule);
    return 1;
}

static void sign(unsigned char *bytes, size_t length)
{
    const uint32_t sum = kasuri_crc32(bytes, length - CHECKSUM);
    for (int i = 0; i < CHECKSUM; i++)
        bytes[length - CHECKSUM + (size_t)i] = (unsigned char)(sum >> 8 * i);
}

int main(int argc, char **argv)
{
    static const unsigned char changes[] = {0x01, 0x80, 0xff, 0x0a};
    size_t length = 0;
    if (argc != 3)
        return 2;
    unsigned char *whole = load(argv[1], &length), *bytes = malloc(length);
    int accepted = 0, signed_and_accepted = 0;
    if (!is_accepted(argv[2], whole, length))
        return 4;
    for (size_t cut = 0; cut < length; cut++)
        accepted += is_accepted(argv[2], whole, cut);
    for (size_t at = 0; at < length; at++) {
        for (size_t i = 0; i < sizeof changes; i++) {
            memcpy(bytes, whole, length);
            bytes[at] ^= changes[i];
            accepted += is_accepted(argv[2], bytes, length);
            /* A change of the checksum itself would be mended. */
            if (at + CHECKSUM >= length)
                continue;
            sign(bytes, length);
            signed_and_accepted += is_accepted(argv[2], bytes, length);
        }
    }
    printf("%d damaged files accepted; with a right checksum %d\n", accepted, signed_and_accepted);
    free(whole);
    free(bytes);
    return accepted > 0;
}
