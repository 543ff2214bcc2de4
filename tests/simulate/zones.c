#include "zones.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A TZif file of version 2 without transitions: its footer rules for ever. */
static size_t tzif(unsigned char *to, int offset_s, const char *abbreviation, const char *footer)
{
    size_t n = 0;
    size_t letters = strlen(abbreviation) + 1;
    for (int block = 0; block < 2; block++) {
        unsigned char header[44] = {'T', 'Z', 'i', 'f', '2'};
        header[39] = 1; /* one type */
        header[43] = (unsigned char)letters;
        memcpy(to + n, header, sizeof header);
        n += sizeof header;
        for (int shift = 24; shift >= 0; shift -= 8) {
            to[n++] = (unsigned char)((unsigned)offset_s >> shift);
        }
        to[n++] = 0; /* standard time */
        to[n++] = 0; /* first abbreviation */
        memcpy(to + n, abbreviation, letters);
        n += letters;
    }
    int written = snprintf((char *)to + n, 64, "\n%s\n", footer);
    return n + (size_t)written;
}

static bool file_write(const char *directory, const char *name, const void *content, size_t size)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        return false;
    }
    bool good = fwrite(content, 1, size, f) == size;
    return fclose(f) == 0 && good;
}

bool zones_make(char *ret_directory, size_t size)
{
    static const char list[] = "# version simulated\nZ UTC 0 - UTC\nZ Europe/Berlin 1 - CET\n";
    unsigned char content[256];
    char europe[512];
    const char *base = getenv("TMPDIR");
    (void)snprintf(ret_directory, size, "%s/simulate-XXXXXX", base == NULL ? "/tmp" : base);
    if (mkdtemp(ret_directory) == NULL) {
        return false;
    }
    (void)snprintf(europe, sizeof europe, "%s/Europe", ret_directory);
    bool good = mkdir(europe, 0700) == 0;
    good = good && file_write(ret_directory, "tzdata.zi", list, sizeof list - 1);
    size_t n = tzif(content, 0, "UTC", "UTC0");
    good = good && file_write(ret_directory, "UTC", content, n);
    n = tzif(content, 3600, "CET", "CET-1CEST,M3.5.0,M10.5.0/3");
    return good && file_write(ret_directory, "Europe/Berlin", content, n);
}

void zones_remove(const char *directory)
{
    static const char *const names[] = {"tzdata.zi", "UTC", "Europe/Berlin"};
    char path[512];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/Europe", directory);
    (void)rmdir(path);
    (void)rmdir(directory);
}
