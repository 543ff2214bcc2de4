/* What the benchmark programs share: SQL as superuser that ends the program when it fails, seconds,
 * medians. */
#ifndef RS_BENCH_MEASURE_H
#define RS_BENCH_MEASURE_H

#include <libpq-fe.h>

#include "clock.h"
#include "status.h"

extern PGconn *super; /* opened by the program; for `sql` */

/* Says what failed and why, and ends the program. */
_Noreturn void stop(const char *what, const char *why);

/* The first cell, "" when there is none; valid until the next call. */
const char *sql(const char *format, ...) PRINTF_LIKE(1, 2);

double seconds_since(instant begin);
double median(double *values, int count); /* sorts them */

#endif
