#include "process_parent.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pid_t process_parent(const char *pid)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* the name may hold anything, blanks too */
    return name_end == NULL || strlen(name_end) < 5 ? 0 : (pid_t)strtol(name_end + 4, NULL, 10);
}
