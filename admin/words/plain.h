/* Pieces of plain English for the texts about rules: lists, ordinals, times of day. Pure.
 * A text is cut at its end, never overrun; who writes one gives it room for all there can be. */
#ifndef RS_PLAIN_H
#define RS_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "civil.h"
#include "firing.h"
#include "status.h"

struct plain {
    char *text;
    size_t max; /* with NUL */
    size_t used;
    const char *before_last; /* between the last two of a list: " and ", " or " */
};

struct plain plain_of(char *text, size_t max);
void plain_add(struct plain *t, const char *format, ...) PRINTF_LIKE(2, 3);

/* "st" of 1st. */
const char *plain_ordinal_end(int n);

/* Values in ascending order, and what they are called. */
#define PLAIN_LIST_MAX 400
struct plain_list {
    int values[PLAIN_LIST_MAX];
    int count;
    const char *const *names; /* of value 0 on; NULL: numbers */
    bool ordinals;            /* numbers as 1st, 2nd */
};
struct plain_list plain_list_of(uint64_t bits);
void plain_list_add_bits(struct plain_list *l, uint64_t bits, int base);

/* "1, 5 to 8 and 12", or "0 to 22 in steps of 2". */
void plain_add_list(struct plain *t, const struct plain_list *l);

/* What stands before one of `count` phrases; *n have been written. */
void plain_add_between(struct plain *t, int *n, int count);

/* January is 0; Sunday is 0; Monday is 1 to Sunday 7, a week that begins as people say it. */
extern const char *const PLAIN_MONTHS[12];
extern const char *const PLAIN_WEEKDAYS[7];
extern const char *const PLAIN_MONDAY_FIRST[8];
uint64_t plain_monday_first(uint8_t weekdays);

/* Times of day: each of the hours with each of the minutes and seconds; none of the sets is empty.
 */
struct plain_clock {
    uint32_t hours;
    uint64_t minutes, seconds;
};

/* Is it a list of times, which needs a day behind it: "at 06:30 and 18:30"? */
bool plain_clock_is_listed(const struct plain_clock *c);
void plain_add_clock(struct plain *t, const struct plain_clock *c);

/* "2030-04-12 06:00", with seconds where there are any. */
void plain_add_local(struct plain *t, struct local_time time);

/* What policies make of the two changes of the clock. AUTO is read as AFTER and FIRST. */
void plain_add_policies(struct plain *t, enum dst_gap_policy gap, enum dst_overlap_policy overlap);

#endif
