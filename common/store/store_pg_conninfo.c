/* Connection strings as people write them into settings, judged before anything is connected. */
#include "store_pg.h"

#include <stdlib.h>
#include <string.h>

static const char *option_value(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++) {
        if (strcmp(o->keyword, keyword) == 0) {
            return o->val != NULL ? o->val : "";
        }
    }
    return "";
}

/* libpq quotes what it did not understand, which may be a part of a password with a blank in it. */
static enum status syntax_error(const char *conninfo, const char *message, struct error *err)
{
    if (strstr(conninfo, "password") != NULL || strstr(conninfo, "://") != NULL ||
        message == NULL) {
        return error_set(err, STATUS_INVALID,
                         "is no connection string of libpq; write keyword=value pairs: "
                         "\"host=db.example.org dbname=reports\", passwords into a file");
    }
    return error_set(err, STATUS_INVALID,
                     "is no connection string of libpq: %.*s; write keyword=value pairs: "
                     "\"host=db.example.org dbname=reports\"",
                     (int)strcspn(message, "\n"), message);
}

static enum status secrets_check(const PQconninfoOption *options, struct error *err)
{
    if (option_value(options, "password")[0] != '\0') {
        return error_set(err, STATUS_INVALID,
                         "has a password in it; write it into a file of mode 0600 and that file's "
                         "path into the *_file setting beside this one");
    }
    if (option_value(options, "sslpassword")[0] != '\0') {
        return error_set(err, STATUS_INVALID,
                         "has sslpassword in it; use a key file without a passphrase, mode 0600");
    }
    return STATUS_OK;
}

/* Several hosts are separated by commas; a path or an @name is a socket of this machine. */
static enum status hosts_check(const PQconninfoOption *options, struct error *err)
{
    const char *host = option_value(options, "host");
    if (option_value(options, "hostaddr")[0] != '\0' ||
        (host[0] == '\0' && (option_value(options, "service")[0] != '\0' ||
                             getenv("PGHOST") != NULL || getenv("PGHOSTADDR") != NULL))) {
        return STATUS_OK;
    }
    if (host[0] == '\0') {
        return error_set(err, STATUS_INVALID,
                         "names no host; write host=... (TCP: a socket has no timeout)");
    }
    for (const char *p = host; p != NULL; p = strchr(p, ',') == NULL ? NULL : strchr(p, ',') + 1) {
        if (*p == '/' || *p == '@') {
            return error_set(err, STATUS_INVALID,
                             "names a socket as host; write a name or an address (TCP: a socket "
                             "has no timeout)");
        }
    }
    return STATUS_OK;
}

static enum status conninfo_check(const char *conninfo, bool tcp, struct error *err)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &message);
    if (options == NULL) {
        enum status s = syntax_error(conninfo, message, err);
        PQfreemem(message);
        return s;
    }
    enum status s = secrets_check(options, err);
    if (s == STATUS_OK && tcp) {
        s = hosts_check(options, err);
    }
    PQconninfoFree(options);
    return s;
}

enum status store_conninfo_check(const char *conninfo, struct error *err)
{
    return conninfo_check(conninfo, false, err);
}

enum status store_tcp_conninfo_check(const char *conninfo, struct error *err)
{
    return conninfo_check(conninfo, true, err);
}
