/* Places at which a test lets a process die, to see that the next one goes on (`dev/soak crashes`).
 *
 * CRASH_POINT("name") does nothing in every build but one configured with -DRS_CRASH_POINTS=ON;
 * there the process whose environment says RS_CRASH_AT=name kills itself by SIGKILL when it comes
 * there, or with RS_CRASH_AT=name:n when it comes there the n-th time.
 * tests/system/chaos/crash_points.py reads the names from the source, and fails for one that it
 * cannot reach. Names are words with dots; each stands in one place. Header only: the keeper links
 * nothing.
 *
 * CRASH_POINT_CALL("before", sql) is the point `function.before` of the function in schema reports
 * that the statement calls: so each call to the database has three without a line of its own. */
#ifndef RS_CRASH_POINT_H
#define RS_CRASH_POINT_H

#ifdef RS_CRASH_POINTS
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is `name` the one that RS_CRASH_AT says, for the last of the times it asks for? */
static inline void crash_point(const char *name)
{
    static atomic_long passed;
    const char *at = getenv("RS_CRASH_AT");
    size_t n = strlen(name);
    if (at == NULL || strncmp(at, name, n) != 0 || (at[n] != '\0' && at[n] != ':')) {
        return;
    }
    long wanted = at[n] == ':' ? strtol(at + n + 1, NULL, 10) : 1;
    if (atomic_fetch_add(&passed, 1) + 1 == wanted) {
        (void)dprintf(STDERR_FILENO, "crash point %s\n", name);
        (void)raise(SIGKILL);
    }
}

static inline void crash_point_call(const char *when, const char *sql)
{
    static const char schema[] = "reports.";
    for (const char *f = strstr(sql, schema); f != NULL; f = strstr(f, schema)) {
        f += sizeof schema - 1;
        size_t n = strspn(f, "abcdefghijklmnopqrstuvwxyz_");
        if (n > 0 && f[n] == '(') {
            char name[96];
            (void)snprintf(name, sizeof name, "%.*s.%s", (int)n, f, when);
            crash_point(name);
            return;
        }
    }
}

#define CRASH_POINT(name)           crash_point(name)
#define CRASH_POINT_CALL(when, sql) crash_point_call(when, sql)
#else
#define CRASH_POINT(name)           ((void)0)
#define CRASH_POINT_CALL(when, sql) ((void)0)
#endif

#endif
