#include "measure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

PGconn *super;

void stop(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

const char *sql(const char *format, ...)
{
    static char value[256];
    char text[4096];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    PGresult *r = PQexec(super, text);
    if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK) {
        stop(text, PQerrorMessage(super));
    }
    (void)snprintf(value, sizeof value, "%s", PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    return value;
}

double seconds_since(instant begin)
{
    return (double)(clock_now().ns - begin.ns) / 1e9;
}

static int double_order(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return *x < *y ? -1 : *x > *y ? 1 : 0;
}

double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof values[0], double_order);
    return values[count / 2];
}
