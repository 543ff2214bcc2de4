/* Calendar arithmetic: the proleptic Gregorian calendar without leap seconds, and the texts of
 * dates, local times and instants. Pure: no I/O, no clock, no locale, no TZ.
 *
 * Three kinds of time: `utc_us` (clock.h) is an instant; `struct local_time` is what a wall clock
 * in some zone reads, and names an instant only together with an offset; a day number counts days
 * since 1970-01-01. Offsets are seconds east of UTC: local = UTC + offset. */
#ifndef RS_CIVIL_H
#define RS_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "status.h"

#define SECONDS_A_DAY    86400
#define MICROS_A_SECOND  1000000
#define CIVIL_YEAR_MIN   1 /* the range that texts may name */
#define CIVIL_YEAR_MAX   9999
#define DATE_TEXT_MAX    16 /* "2030-04-12" and NUL, with room for a stray year */
#define OFFSET_TEXT_MAX  16 /* "+02:00", or "-00:44:30" before 1972 */
#define RFC3339_TEXT_MAX 48 /* "2030-04-12T06:00:00.123456+02:00" and NUL */

struct civil_date {
    int32_t year;
    int32_t month; /* 1 to 12 */
    int32_t day;   /* 1 to 31 */
};

/* Seconds since 1970-01-01T00:00:00 as read from a wall clock. */
struct local_time {
    int64_t s;
};

/* A date and time as written, before anybody decided what instant it is. */
struct date_time {
    struct local_time local;
    int32_t micros;   /* fraction of the second; digits after the sixth are cut */
    int32_t offset_s; /* when has_offset */
    bool has_seconds;
    bool has_fraction;
    bool has_offset;
};

/* Quotient rounded towards minus infinity; b > 0. */
int64_t floor_divide(int64_t a, int64_t b);

/* Day number of a date; month 1 to 12, any day (day 0 is the last day of the month before). */
int64_t civil_days_of(int32_t year, int32_t month, int32_t day);
struct civil_date civil_date_of(int64_t days);

int32_t civil_weekday(int64_t days); /* 0 = Sunday ... 6 = Saturday */
int32_t civil_days_in_month(int32_t year, int32_t month);
bool civil_year_is_leap(int32_t year);

/* The whole second an instant lies in, rounded down; and the start of a second. */
int64_t utc_seconds(utc_us t);
utc_us utc_from_seconds(int64_t s);

/* "YYYY-MM-DDTHH:MM[:SS[.f...]][Z|+HH:MM|-HH:MM]", years 0001 to 9999; 24:00 and second 60 are
 * refused. Returns: OK, INVALID (the text says what is wrong and how to write it). */
MUST_USE enum status date_time_parse(const char *text, struct date_time *ret_time,
                                     struct error *err);

/* An RFC 3339 instant: seconds and an offset are required. Returns: OK, INVALID. */
MUST_USE enum status rfc3339_parse(const char *text, utc_us *ret_instant, struct error *err);

/* The instant as a clock at `offset_s` reads it, with the offset ("2025-03-09T03:00:00-07:00"); a
 * fraction only when it is not zero. An offset with seconds, which RFC 3339 cannot write, gets
 * them as a third pair. */
void rfc3339_format(utc_us t, int32_t offset_s, char ret_text[RFC3339_TEXT_MAX]);

/* The same in UTC with Z. */
void rfc3339_format_utc(utc_us t, char ret_text[RFC3339_TEXT_MAX]);

/* "2030-04-12" and nothing else, years 0001 to 9999. Returns: OK, INVALID (as date_time_parse). */
MUST_USE enum status date_parse(const char *text, int64_t *ret_days, struct error *err);

/* "2030-04-12"; "+02:00". */
void date_format(int64_t days, char ret_text[DATE_TEXT_MAX]);
void offset_format(int32_t offset_s, char ret_text[OFFSET_TEXT_MAX]);

#endif
