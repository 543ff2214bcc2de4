/* The commands behind `reportctl next --cron` and `--rrule`: they print coming firings and need no
 * server and no clock.
 * Output depends on the installed tzdata only, not on TZ or the locale of the process. */
#ifndef RS_NEXT_COMMAND_H
#define RS_NEXT_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

#define NEXT_COUNT_MAX 100000

/* Option values as written on the command line; NULL where an option was not given. */
struct next_cron_arguments {
    const char *cron;        /* --cron EXPR; needed */
    const char *time_zone;   /* --time-zone ZONE; needed */
    const char *after;       /* --after INSTANT, RFC 3339; needed; strictly after it */
    const char *count;       /* --count N, 1 to NEXT_COUNT_MAX; default 1 */
    const char *dialect;     /* --dialect std|quartz; default std */
    const char *dst_gap;     /* --dst-gap auto|after|shift|skip */
    const char *dst_overlap; /* --dst-overlap auto|first|second|both */
    bool utc;                /* --utc: print in UTC with Z */
    bool explain;            /* --explain: what it says, below the instants */
};

/* Print one RFC 3339 local instant with offset a line, fewer than asked for if fewer exist.
 * With `explain` an empty line follows, then sentences for people: the rule in words, its std text
 * if it was given in another dialect, the policies, and notes (rule_notes.h). Returns the exit
 * code: 0; 2 for invalid input, with nothing on `out` and one line on `err`; 1 when tzdata cannot
 * be read or `out` not be written. Blocks: on reading zone files. */
int next_command_cron(const struct next_cron_arguments *arguments, FILE *out, FILE *err);

struct next_rrule_arguments {
    const char *rrule;       /* --rrule RULE, as rrule.h says; needed */
    const char *start;       /* --start LOCAL, DTSTART: 1997-09-02T09:00:00; needed */
    const char *time_zone;   /* --time-zone ZONE; needed */
    const char *after;       /* --after INSTANT; strictly after it; NULL: from the start on */
    const char *count;       /* --count N, 1 to NEXT_COUNT_MAX; default 1 */
    const char *exdate;      /* --exdate LOCAL,...; default none */
    const char *rdate;       /* --rdate LOCAL,...; default none */
    const char *dst_gap;     /* --dst-gap auto|after|shift|skip; auto is shift */
    const char *dst_overlap; /* --dst-overlap auto|first|second|both; auto is first */
    bool utc;                /* --utc: print in UTC with Z */
    bool explain;            /* --explain: what it says, below the instants */
};

/* As next_command_cron. */
int next_command_rrule(const struct next_rrule_arguments *arguments, FILE *out, FILE *err);

#endif
