#include "settings_scan.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (1024 * 1024) /* beyond this it is some other file */

#define KEYS_MAX    1024 /* beyond these bounds a repeated key is libconfig's to find */
#define DEPTH_MAX   16
#define AGAIN_BYTES 24

struct key_seen {
    const char *text;
    size_t size;
    unsigned group;
};

struct scan {
    const char *path;
    const char *in;
    char *out;
    int line;
    unsigned groups[DEPTH_MAX]; /* the open ones, numbered as they come; [0] is the file */
    unsigned group_count, depth;
    struct key_seen keys[KEYS_MAX];
    size_t key_count, again_count;
    struct error *err;
};

static void copy(struct scan *s, size_t n)
{
    for (size_t i = 0; i < n && *s->in != '\0'; i++) {
        s->line += *s->in == '\n' ? 1 : 0;
        *s->out++ = *s->in++;
    }
}

static void copy_text(struct scan *s)
{
    copy(s, 1);
    while (*s->in != '\0' && *s->in != '"') {
        copy(s, *s->in == '\\' ? 2 : 1);
    }
    copy(s, 1);
}

static void copy_comment(struct scan *s)
{
    if (s->in[0] == '/' && s->in[1] == '*') {
        const char *end = strstr(s->in + 2, "*/");
        copy(s, end != NULL ? (size_t)(end + 2 - s->in) : strlen(s->in));
    } else {
        copy(s, strcspn(s->in, "\n"));
    }
}

static unsigned group_now(const struct scan *s)
{
    return s->depth < DEPTH_MAX ? s->groups[s->depth] : UINT_MAX;
}

static void copy_brace(struct scan *s)
{
    if (*s->in == '{' && ++s->depth < DEPTH_MAX) {
        s->groups[s->depth] = ++s->group_count;
    } else if (*s->in == '}' && s->depth > 0) {
        s->depth--;
    }
    copy(s, 1);
}

static bool key_was_seen(const struct scan *s, const struct key_seen *key)
{
    for (size_t i = 0; i < s->key_count; i++) {
        const struct key_seen *k = &s->keys[i];
        if (k->group == key->group && k->size == key->size &&
            memcmp(k->text, key->text, k->size) == 0) {
            return true;
        }
    }
    return false;
}

/* A key, or a word such as true. */
static void copy_word(struct scan *s)
{
    struct key_seen key = {.text = s->in, .group = group_now(s)};
    while (isalnum((unsigned char)*s->in) || (*s->in != '\0' && strchr("-_*", *s->in))) {
        copy(s, 1);
    }
    key.size = (size_t)(s->in - key.text);
    const char *behind = s->in + strspn(s->in, " \t\r\n");
    if ((*behind != '=' && *behind != ':') || key.group == UINT_MAX) {
        return;
    }
    if (!key_was_seen(s, &key)) {
        if (s->key_count < KEYS_MAX) {
            s->keys[s->key_count++] = key;
        }
    } else if (s->again_count < KEYS_MAX) {
        int n = snprintf(s->out, AGAIN_BYTES, SETTINGS_AGAIN "%zu", ++s->again_count);
        s->out += n > 0 ? n : 0;
    }
}

static enum status copy_number(struct scan *s)
{
    size_t sign = *s->in == '-' || *s->in == '+' ? 1 : 0;
    bool hex = s->in[sign] == '0' && (s->in[sign + 1] | 0x20) == 'x';
    char *end = NULL;
    errno = 0;
    int64_t value = strtoll(s->in, &end, hex ? 16 : 10);
    bool fraction = !hex && (*end == '.' || *end == 'e' || *end == 'E');
    if (errno == ERANGE && !fraction) {
        return error_set(s->err, STATUS_INVALID,
                         "%s:%d: %.*s: is too large for a number; write a "
                         "smaller one",
                         s->path, s->line, (int)(end - s->in < 40 ? end - s->in : 40), s->in);
    }
    copy(s, (size_t)(end - s->in));
    if (fraction) {
        copy(s, strspn(s->in, "0123456789.eE+-"));
    } else if (*s->in == 'L') {
        copy(s, strspn(s->in, "L"));
    } else if (value > INT32_MAX || value < INT32_MIN) {
        *s->out++ = 'L';
    }
    return STATUS_OK;
}

static enum status prepare(struct scan *s)
{
    while (*s->in != '\0') {
        char c = *s->in;
        bool sign = (c == '-' || c == '+') && isdigit((unsigned char)s->in[1]);
        if (c == '"') {
            copy_text(s);
        } else if (c == '#' || (c == '/' && (s->in[1] == '/' || s->in[1] == '*'))) {
            copy_comment(s);
        } else if (isalpha((unsigned char)c) || c == '*' || c == '_') {
            copy_word(s);
        } else if (c == '{' || c == '}') {
            copy_brace(s);
        } else if (isdigit((unsigned char)c) || sign) {
            enum status status = copy_number(s);
            if (status != STATUS_OK) {
                return status;
            }
        } else if (c == '@') {
            return error_set(s->err, STATUS_INVALID,
                             "%s:%d: @include: is not supported; write all settings into one file",
                             s->path, s->line);
        } else {
            copy(s, 1);
        }
    }
    *s->out = '\0';
    return STATUS_OK;
}

/* Owns: *ret_text is freed by the caller. */
static enum status file_take(int fd, const char *path, char **ret_text, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX) {
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: is not a settings file (a regular file of at most 1 MiB)", path);
    }
    size_t size = (size_t)st.st_size;
    char *text = calloc(1, size + 1);
    if (text == NULL) {
        return error_set(err, STATUS_NOT_FOUND, "%s: out of memory", path);
    }
    size_t used = 0;
    while (used < size) {
        ssize_t n = read(fd, text + used, size - used);
        if (n > 0) {
            used += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            break; /* it shrank, or it cannot be read: what is there will be judged */
        }
    }
    if (strlen(text) != used) {
        free(text);
        return error_set(err, STATUS_INVALID, "%s:1: has a NUL byte; write it as plain text", path);
    }
    *ret_text = text;
    return STATUS_OK;
}

enum status settings_text_read(const char *path, struct settings_text *ret, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return error_set(err, STATUS_NOT_FOUND, "%s: cannot be read: %s", path, strerror(errno));
    }
    char *raw = NULL;
    enum status status = file_take(fd, path, &raw, err);
    (void)close(fd);
    if (status != STATUS_OK) {
        return status;
    }
    size_t n = strlen(raw);
    struct scan *s = calloc(1, sizeof *s);
    /* An L for each literal is less than twice. */
    char *out = malloc(2 * n + 1 + (size_t)KEYS_MAX * AGAIN_BYTES);
    if (out == NULL || s == NULL) {
        free(raw);
        free(out);
        free(s);
        return error_set(err, STATUS_NOT_FOUND, "%s: out of memory", path);
    }
    *s = (struct scan){.path = path, .in = raw, .out = out, .line = 1, .err = err};
    status = prepare(s);
    int lines = n > 0 && raw[n - 1] == '\n' && s->line > 1 ? s->line - 1 : s->line;
    free(raw);
    free(s);
    if (status != STATUS_OK) {
        free(out);
        return status;
    }
    *ret = (struct settings_text){.text = out, .lines = lines};
    return STATUS_OK;
}
