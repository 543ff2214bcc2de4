#include "http_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings.h"

#define PEM_MAX (256 * 1024)

static bool is_given(const char *path)
{
    return path != NULL && path[0] != '\0';
}

static enum status bytes_take(int fd, size_t size, char **ret_text)
{
    char *text = malloc(size + 1);
    size_t used = 0;
    while (text != NULL && used < size) {
        ssize_t n = read(fd, text + used, size - used);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        used += (size_t)n;
    }
    if (text == NULL || used < size) {
        free(text);
        return STATUS_INVALID;
    }
    text[size] = '\0';
    *ret_text = text;
    return STATUS_OK;
}

static enum status pem_read(const char *setting, const char *path, bool secret, char **ret_text,
                            struct error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    enum status s = STATUS_OK;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        s = error_set(err, STATUS_INVALID, "%s: %s cannot be read: %s", setting, path,
                      fd < 0 ? strerror(errno) : "it is no regular file");
    } else if (secret && !secret_is_private(path, st.st_mode)) {
        s = error_set(err, STATUS_INVALID,
                      "%s: others may read or change %s (mode %04o); run: chmod 600 %s", setting,
                      path, (unsigned)(st.st_mode & 07777), path);
    } else if (st.st_size == 0 || st.st_size > PEM_MAX) {
        s = error_set(err, STATUS_INVALID, "%s: %s has %lld bytes; write a PEM file into it",
                      setting, path, (long long)st.st_size);
    } else if (bytes_take(fd, (size_t)st.st_size, ret_text) != STATUS_OK) {
        s = error_set(err, STATUS_INVALID, "%s: %s cannot be read whole", setting, path);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return s;
}

enum status http_files_read(struct http_files *files, const char *certificate_file,
                            const char *key_file, struct error *err)
{
    if (!is_given(certificate_file) && !is_given(key_file)) {
        return STATUS_OK;
    }
    if (!is_given(certificate_file) || !is_given(key_file)) {
        return error_set(err, STATUS_INVALID,
                         "%s: is missing; TLS needs both http_tls_certificate_file and "
                         "http_tls_key_file",
                         is_given(key_file) ? "http_tls_certificate_file" : "http_tls_key_file");
    }
    enum status s =
        pem_read("http_tls_certificate_file", certificate_file, false, &files->certificate, err);
    return s == STATUS_OK ? pem_read("http_tls_key_file", key_file, true, &files->key, err) : s;
}

void http_files_free(struct http_files *files)
{
    free(files->certificate);
    if (files->key != NULL) {
        explicit_bzero(files->key, strlen(files->key));
    }
    free(files->key);
    *files = (struct http_files){0};
}
