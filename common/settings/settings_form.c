#include "settings_form.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ident.h"
#include "log.h"
#include "settings.h"

#define TOPIC_MAX 249 /* bytes; Kafka's own bound */

enum status form_name(const char *value, struct error *err)
{
    return name_is_valid(value)
               ? STATUS_OK
               : error_set(err, STATUS_INVALID,
                           "\"%s\" cannot be a name; write at most 63 of a-z 0-9 _ . -, the first "
                           "one a letter or digit",
                           value);
}

enum status form_log_level(const char *value, struct error *err)
{
    enum log_level ignored;
    return log_level_parse(value, &ignored)
               ? STATUS_OK
               : error_set(err, STATUS_INVALID,
                           "\"%s\" is no level; write error, warn, info or debug", value);
}

enum status form_absolute_path(const char *value, struct error *err)
{
    return value[0] == '/'
               ? STATUS_OK
               : error_set(err, STATUS_INVALID,
                           "\"%s\" is no absolute path; write one that begins with /", value);
}

enum status form_url(const char *value, struct error *err)
{
    size_t scheme = strncmp(value, "http://", 7) == 0    ? 7
                    : strncmp(value, "https://", 8) == 0 ? 8
                                                         : 0;
    if (scheme == 0 || value[scheme] == '\0' || strpbrk(value, " \t\"") != NULL ||
        strchr(value + scheme, '/') != NULL) {
        return error_set(err, STATUS_INVALID,
                         "\"%s\" is no address; write it as \"http://host:port\", without a path",
                         value);
    }
    return STATUS_OK;
}

enum status form_address(const char *value, struct error *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, value, address) != 1 && inet_pton(AF_INET6, value, address) != 1) {
        return error_set(err, STATUS_INVALID,
                         "\"%s\" is no address; write one as numbers, for example \"127.0.0.1\", "
                         "\"::1\" or \"0.0.0.0\"",
                         value);
    }
    return STATUS_OK;
}

/* The value may be a secret: only the name is said. */
enum status form_variable(const char *value, struct error *err)
{
    size_t n = strcspn(value, "=");
    bool named = n > 0 && value[n] == '=' && !isdigit((unsigned char)value[0]);
    for (size_t i = 0; named && i < n; i++) {
        named = isalnum((unsigned char)value[i]) || value[i] == '_';
    }
    if (!named) {
        return error_set(err, STATUS_INVALID,
                         "an item is no variable; write each as \"NAME=value\" with a name of "
                         "letters, digits and _");
    }
    if (strncmp(value, "REPORT_", 7) == 0) {
        return error_set(err, STATUS_INVALID,
                         "%.*s: names that begin with REPORT_ are the job's own; write another",
                         (int)(n < 64 ? n : 64), value);
    }
    return STATUS_OK;
}

/* ---- lists of servers ---- */

struct server_form {
    bool brackets;       /* IPv6 stands in [ ]; otherwise it stands bare */
    const char *example; /* of a whole list */
};

static bool port_is_valid(const char *text, size_t n)
{
    long port = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)text[i])) {
            return false;
        }
        port = port * 10 + (text[i] - '0');
        if (port > 65535) {
            return false;
        }
    }
    return n > 0 && port > 0;
}

static bool host_is_valid(const char *text, size_t n, bool brackets)
{
    bool inside = brackets && n > 2 && text[0] == '[' && text[n - 1] == ']';
    const char *p = inside ? text + 1 : text;
    size_t length = inside ? n - 2 : n;
    bool address = inside || (!brackets && memchr(text, ':', n) != NULL);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)p[i];
        bool good = address ? isxdigit(c) || c == ':' || c == '.' || c == '%' || isalnum(c)
                            : isalnum(c) || c == '.' || c == '-' || c == '_';
        if (!good) {
            return false;
        }
    }
    return length > 0;
}

static enum status server_check(const char *text, size_t n, const struct server_form *f,
                                struct error *err)
{
    size_t colon = n;
    while (colon > 0 && text[colon - 1] != ':') {
        colon--;
    }
    bool good = colon > 1 && port_is_valid(text + colon, n - colon) &&
                host_is_valid(text, colon - 1, f->brackets);
    int shown = (int)(n < 100 ? n : 100);
    return good ? STATUS_OK
                : error_set(err, STATUS_INVALID,
                            n == 0 ? "%.*shas an empty item; write \"%s\""
                                   : "\"%.*s\" is no host:port; write \"%s\"",
                            shown, text, f->example);
}

static enum status servers_check(const char *value, const struct server_form *f, struct error *err)
{
    const char *p = value;
    for (;;) {
        size_t n = strcspn(p, ",");
        const char *first = p;
        size_t length = n;
        while (length > 0 && first[0] == ' ') { /* blanks around an item are harmless to both */
            first++;
            length--;
        }
        enum status s = server_check(first, length, f, err);
        if (s != STATUS_OK || p[n] == '\0') {
            return s;
        }
        p += n + 1;
    }
}

enum status form_zookeeper_servers(const char *value, struct error *err)
{
    static const struct server_form form = {false, "zk1:2181,zk2:2181,zk3:2181"};
    if (strchr(value, '/') != NULL) {
        return error_set(err, STATUS_INVALID,
                         "\"%s\" has a path; write servers only, and the path as zookeeper_root",
                         value);
    }
    if (strchr(value, '[') != NULL) {
        return error_set(err, STATUS_INVALID,
                         "\"%s\" has brackets, which ZooKeeper's client does not know; write IPv6 "
                         "as ::1:2181",
                         value);
    }
    return servers_check(value, &form, err);
}

enum status form_kafka_brokers(const char *value, struct error *err)
{
    static const struct server_form form = {true, "kafka1:9092,kafka2:9092"};
    if (strstr(value, "://") != NULL) {
        return error_set(err, STATUS_INVALID,
                         "\"%s\" names a protocol; write host:port only, and "
                         "\"security.protocol=...\" into kafka_properties",
                         value);
    }
    return servers_check(value, &form, err);
}

/* ---- names of others ---- */

enum status form_zookeeper_path(const char *value, struct error *err)
{
    size_t n = strlen(value);
    bool good = n > 1 && value[0] == '/' && value[n - 1] != '/';
    for (const char *p = value; good && *p != '\0'; p++) {
        bool begins = *p == '/';
        size_t part = begins ? strcspn(p + 1, "/") : 0;
        bool dots = begins && (part == 1 || part == 2) && strspn(p + 1, ".") >= part;
        good = (unsigned char)*p > ' ' && *p != 0x7f && !dots && !(begins && part == 0);
    }
    return good ? STATUS_OK
                : error_set(err, STATUS_INVALID,
                            "\"%s\" is no node's path; write for example \"/report-scheduler\"",
                            value);
}

enum status form_kafka_topic(const char *value, struct error *err)
{
    size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    if (value[n] != '\0' || n == 0 || n > TOPIC_MAX || strcmp(value, ".") == 0 ||
        strcmp(value, "..") == 0) {
        return error_set(err, STATUS_INVALID,
                         "\"%s\" cannot be a topic; write at most %d letters, digits, . _ -", value,
                         TOPIC_MAX);
    }
    return STATUS_OK;
}

/* ---- surroundings ---- */

enum status around_secret_file(const char *value, struct error *err)
{
    char secret[SETTING_TEXT_MAX + 1];
    enum status s = secret_read(value, secret, sizeof secret, err);
    explicit_bzero(secret, sizeof secret);
    return s == STATUS_OK ? s : STATUS_INVALID;
}

static enum status file_check(const char *value, bool private, struct error *err)
{
    struct stat st;
    int fd = open(value, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool known = fd >= 0 && fstat(fd, &st) == 0;
    int reason = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!known) {
        return error_set(err, STATUS_INVALID, "%s: cannot be read: %s", value, strerror(reason));
    }
    if (!S_ISREG(st.st_mode)) {
        return error_set(err, STATUS_INVALID, "%s is no regular file; write another", value);
    }
    if (private && !secret_is_private(value, st.st_mode)) {
        return error_set(err, STATUS_INVALID,
                         "others may read or change %s (mode %04o); run: chmod 600 %s", value,
                         (unsigned)(st.st_mode & 07777), value);
    }
    return STATUS_OK;
}

enum status around_readable_file(const char *value, struct error *err)
{
    return file_check(value, false, err);
}

enum status around_private_file(const char *value, struct error *err)
{
    return file_check(value, true, err);
}

static enum status directory_check(const char *value, bool writable, struct error *err)
{
    struct stat st;
    if (stat(value, &st) != 0) {
        return error_set(err, STATUS_INVALID, "%s: %s; make it, or write another directory", value,
                         strerror(errno));
    }
    if (!S_ISDIR(st.st_mode)) {
        return error_set(err, STATUS_INVALID, "%s is no directory; write another", value);
    }
    if (access(value, writable ? W_OK | X_OK : X_OK) != 0) {
        return error_set(err, STATUS_INVALID,
                         "this user may not %s %s; give it to the daemon's user, or run this check "
                         "as that user",
                         writable ? "write into" : "enter", value);
    }
    return STATUS_OK;
}

enum status around_directory(const char *value, struct error *err)
{
    return directory_check(value, false, err);
}

enum status around_writable_directory(const char *value, struct error *err)
{
    return directory_check(value, true, err);
}

enum status around_own_file(const char *value, struct error *err)
{
    char directory[4096];
    const char *slash = strrchr(value, '/');
    if (slash == NULL || slash == value || (size_t)(slash - value) >= sizeof directory) {
        return STATUS_OK;
    }
    (void)snprintf(directory, sizeof directory, "%.*s", (int)(slash - value), value);
    return directory_check(directory, true, err);
}

enum status around_program(const char *value, struct error *err)
{
    struct stat st;
    if (value[0] != '/') {
        return STATUS_OK;
    }
    if (stat(value, &st) != 0) {
        return error_set(err, STATUS_INVALID, "%s: %s; write the path of the program", value,
                         strerror(errno));
    }
    if (!S_ISREG(st.st_mode) || access(value, X_OK) != 0) {
        return error_set(err, STATUS_INVALID,
                         "%s is no program this user may execute; run: "
                         "chmod +x, or write another path",
                         value);
    }
    return STATUS_OK;
}
