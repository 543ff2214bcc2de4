/* Values on their way to and from PostgreSQL: array literals, instants, typed cells. */
#include "store_pg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- array literals ------------------------------------------------------------------------ */

static bool array_reserve(struct store_pg_array *a, size_t more)
{
    if (a->failed) {
        return false;
    }
    if (a->size - a->used >= more) {
        return true;
    }
    size_t size = a->size == 0 ? 256 : a->size;
    while (size - a->used < more) {
        if (size > SIZE_MAX / 2) {
            a->failed = true;
            return false;
        }
        size *= 2;
    }
    char *text = realloc(a->text, size);
    if (text == NULL) {
        a->failed = true;
        return false;
    }
    a->text = text;
    a->size = size;
    return true;
}

void store_pg_array_reset(struct store_pg_array *a)
{
    a->used = 0;
    a->failed = false;
}

static void array_begin_element(struct store_pg_array *a)
{
    a->text[a->used] = a->used == 0 ? '{' : ',';
    a->used++;
}

void store_pg_array_add(struct store_pg_array *a, const char *value)
{
    if (value == NULL) {
        if (array_reserve(a, 8)) {
            array_begin_element(a);
            memcpy(a->text + a->used, "NULL", 4);
            a->used += 4;
        }
        return;
    }
    size_t n = strlen(value);
    if (n > (SIZE_MAX - 8) / 2 || !array_reserve(a, 2 * n + 8)) {
        a->failed = true;
        return;
    }
    array_begin_element(a);
    a->text[a->used++] = '"';
    for (size_t i = 0; i < n; i++) {
        if (value[i] == '"' || value[i] == '\\') {
            a->text[a->used++] = '\\';
        }
        a->text[a->used++] = value[i];
    }
    a->text[a->used++] = '"';
}

void store_pg_array_add_int(struct store_pg_array *a, int64_t value)
{
    if (!array_reserve(a, 32)) {
        return;
    }
    array_begin_element(a);
    int n = snprintf(a->text + a->used, a->size - a->used, "%" PRId64, value);
    a->used += (size_t)n;
}

const char *store_pg_array_text(struct store_pg_array *a)
{
    if (!array_reserve(a, 3)) {
        return NULL;
    }
    if (a->used == 0) {
        memcpy(a->text, "{}", 3);
        return a->text;
    }
    /* The closing brace is not counted as used, so that more elements may follow. */
    a->text[a->used] = '}';
    a->text[a->used + 1] = '\0';
    return a->text;
}

void store_pg_array_free(struct store_pg_array *a)
{
    free(a->text);
    *a = (struct store_pg_array){0};
}

/* --- instants ------------------------------------------------------------------------------ */

#define US_PER_SECOND   INT64_C(1000000)
#define SECONDS_PER_DAY INT64_C(86400)
/* End of the year 9999, as far as our calendar goes; PostgreSQL's goes further than an int64_t of
 * microseconds. */
#define SECONDS_MAX INT64_C(253402300799)

/* Days since 1970-01-01 of a proleptic Gregorian date (Howard Hinnant, "chrono-Compatible
 * Low-Level Date Algorithms"); kept here so that the adapter needs no calendar module. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static void date_of(int64_t days, int64_t *y, int64_t *m, int64_t *d)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *d = doy - (153 * mp + 2) / 5 + 1;
    *m = mp < 10 ? mp + 3 : mp - 9;
    *y = yoe + era * 400 + (*m <= 2);
}

void store_pg_time_format(utc_us t, char ret_text[STORE_PG_TIME_MAX])
{
    int64_t us = t.us % US_PER_SECOND;
    int64_t s = t.us / US_PER_SECOND;
    if (us < 0) {
        us += US_PER_SECOND;
        s--;
    }
    int64_t day = s / SECONDS_PER_DAY;
    int64_t in_day = s % SECONDS_PER_DAY;
    if (in_day < 0) {
        in_day += SECONDS_PER_DAY;
        day--;
    }
    int64_t y = 0;
    int64_t m = 0;
    int64_t d = 0;
    date_of(day, &y, &m, &d);
    (void)snprintf(ret_text, STORE_PG_TIME_MAX,
                   "%04" PRId64 "-%02" PRId64 "-%02" PRId64 " %02" PRId64 ":%02" PRId64
                   ":%02" PRId64 ".%06" PRId64 "+00",
                   y, m, d, in_day / 3600, in_day / 60 % 60, in_day % 60, us);
}

static const char *read_digits(const char *p, int max, int64_t *ret_value)
{
    int64_t v = 0;
    int n = 0;
    while (n < max && p[n] >= '0' && p[n] <= '9') {
        v = v * 10 + (p[n] - '0');
        n++;
    }
    *ret_value = v;
    return n == 0 ? NULL : p + n;
}

static const char *read_after(const char *p, char separator, int64_t *ret_value)
{
    return p == NULL || *p != separator ? NULL : read_digits(p + 1, 2, ret_value);
}

/* ".5" is 500000 us; digits beyond the sixth are dropped. */
static const char *read_fraction(const char *p, int64_t *ret_us)
{
    *ret_us = 0;
    if (p == NULL || *p != '.') {
        return p;
    }
    p++;
    for (int64_t unit = US_PER_SECOND / 10; *p >= '0' && *p <= '9'; p++, unit /= 10) {
        *ret_us += unit * (*p - '0');
    }
    return p;
}

bool store_pg_time_parse(const char *text, utc_us *ret_time)
{
    int64_t y = 0;
    int64_t m = 0;
    int64_t d = 0;
    int64_t hh = 0;
    int64_t mm = 0;
    int64_t ss = 0;
    int64_t us = 0;
    const char *p = read_digits(text, 6, &y);
    p = read_after(p, '-', &m);
    p = read_after(p, '-', &d);
    p = read_after(p, ' ', &hh);
    p = read_after(p, ':', &mm);
    p = read_after(p, ':', &ss);
    p = read_fraction(p, &us);
    if (p == NULL || strcmp(p, "+00") != 0) {
        return false;
    }
    int64_t seconds = days_of(y, m, d) * SECONDS_PER_DAY + hh * 3600 + mm * 60 + ss;
    if (seconds > SECONDS_MAX) {
        return false;
    }
    ret_time->us = seconds * US_PER_SECOND + us;
    return true;
}

/* --- cells --------------------------------------------------------------------------------- */

int64_t store_pg_int(const PGresult *r, int row, int column)
{
    return PQgetisnull(r, row, column) != 0 ? 0 : strtoll(PQgetvalue(r, row, column), NULL, 10);
}

bool store_pg_bool(const PGresult *r, int row, int column)
{
    return PQgetisnull(r, row, column) == 0 && PQgetvalue(r, row, column)[0] == 't';
}

void store_pg_text(const PGresult *r, int row, int column, char *ret_text, size_t size)
{
    (void)snprintf(ret_text, size, "%s",
                   PQgetisnull(r, row, column) != 0 ? "" : PQgetvalue(r, row, column));
}
