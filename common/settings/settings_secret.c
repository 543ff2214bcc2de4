/* Secrets come from files (or systemd credentials), never from arguments or from settings. */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* systemd gives a credential to the service's user through an ACL, whose mask shows up as group
 * bits; the directory it lies in is closed to everybody else. */
static bool is_systemd_credential(const char *path)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    size_t n = directory != NULL ? strlen(directory) : 0;
    return n > 1 && directory[0] == '/' && strncmp(path, directory, n) == 0 && path[n] == '/' &&
           strstr(path, "/../") == NULL;
}

bool secret_is_private(const char *path, unsigned mode)
{
    return (mode & (S_IRWXG | S_IRWXO)) == 0 || is_systemd_credential(path);
}

static enum status file_check(int fd, const char *path, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return error_set(err, STATUS_INVALID, "%s: a secret must be in a regular file", path);
    }
    if (!secret_is_private(path, st.st_mode)) {
        return error_set(err, STATUS_INVALID,
                         "%s: others may read or change this secret (mode %04o); run: chmod 600 %s",
                         path, (unsigned)(st.st_mode & 07777), path);
    }
    return STATUS_OK;
}

/* Fill text and cut one line end off. */
static enum status text_take(int fd, const char *path, char *text, size_t size, struct error *err)
{
    size_t used = 0;
    while (used < size) {
        ssize_t n = read(fd, text + used, size - used);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return error_set(err, STATUS_NOT_FOUND, "%s: %s", path, strerror(errno));
        }
        if (n == 0) {
            break;
        }
        used += (size_t)n;
    }
    size_t length = used;
    if (length > 0 && text[length - 1] == '\n') {
        length--;
        length -= length > 0 && text[length - 1] == '\r' ? 1 : 0;
    }
    if (used == size) {
        return error_set(err, STATUS_INVALID, "%s: a secret has at most %d bytes", path,
                         SETTING_TEXT_MAX);
    }
    if (length == 0 || memchr(text, '\0', length) != NULL) {
        return error_set(err, STATUS_INVALID, "%s: %s", path,
                         length == 0 ? "is empty; write the secret into it"
                                     : "has a NUL byte; write the secret as text");
    }
    text[length] = '\0';
    return STATUS_OK;
}

enum status secret_read(const char *path, char *ret_text, size_t size, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return error_set(err, STATUS_NOT_FOUND, "%s: cannot be read: %s", path, strerror(errno));
    }
    char text[SETTING_TEXT_MAX + 3]; /* the line end, and one byte to see an excess */
    enum status s = file_check(fd, path, err);
    if (s == STATUS_OK) {
        s = text_take(fd, path, text, sizeof text, err);
    }
    (void)close(fd);
    if (s == STATUS_OK && strlen(text) >= size) {
        s = error_set(err, STATUS_INVALID, "%s: a secret has at most %zu bytes", path, size - 1);
    }
    if (s == STATUS_OK) {
        memcpy(ret_text, text, strlen(text) + 1);
    }
    explicit_bzero(text, sizeof text);
    return s;
}
