/* What the tests of calendars share. */
#ifndef RS_FIXTURE_CALENDAR_H
#define RS_FIXTURE_CALENDAR_H

#include "calendar.h"

#define SAT_SUN 0x41 /* weekends as bits, Sunday first */
#define FRI_SAT 0x60

/* "2026-01-01"; fails the test when it is no date. */
int64_t day_of(const char *text);

/* Saturday and Sunday, these days, known for ever. Borrows `days`. */
struct calendar_rules rules_of(const struct calendar_special *days, size_t count);

/* Owns: calendar_free. */
struct calendar *calendar_of(const struct calendar_rules *rules);

#endif
