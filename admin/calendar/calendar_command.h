/* The commands behind `reportctl roll` and `reportctl business-day`: need no server, no clock and
 * no locale. */
#ifndef RS_CALENDAR_COMMAND_H
#define RS_CALENDAR_COMMAND_H

#include <stdio.h>

/* Option values as written on the command line; NULL where an option was not given. */
struct roll_arguments {
    const char *calendar;   /* --calendar FILE.csv|NAME; needed */
    const char *convention; /* --convention C; needed */
    const char *date;       /* DATE; needed */
};

struct business_day_arguments {
    const char *calendar; /* --calendar FILE.csv|NAME; needed */
    const char *add;      /* --add N, with DATE; one of these three is needed */
    const char *first;    /* --first MONTH */
    const char *last;     /* --last MONTH */
    const char *date;     /* DATE, with --add only */
};

/* Print one date; with the convention skip and a date that is no business day, none. A date that
 * the calendar does not vouch for gets a warning on `err`. Returns the exit code: 0; 2 for invalid
 * input, with nothing on `out` and one line on `err`; 1 when `out` cannot be written or memory is
 * out. Blocks: on reading the calendar. */
int roll_command_run(const struct roll_arguments *arguments, FILE *out, FILE *err);
int business_day_command_run(const struct business_day_arguments *arguments, FILE *out, FILE *err);

#endif
