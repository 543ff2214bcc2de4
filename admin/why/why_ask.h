/* What `reportctl why` is asked about: SCHEDULE, SCHEDULE@TIME or SCHEDULE:KEY. Pure. */
#ifndef RS_WHY_ASK_H
#define RS_WHY_ASK_H

#include "civil.h"
#include "ident.h"
#include "status.h"
#include "zone.h"

enum why_form {
    WHY_LATEST,  /* the latest firing that was due */
    WHY_INSTANT, /* @2030-04-12T06:00:00Z */
    WHY_LOCAL,   /* @2030-04-12T06:00, in the schedule's zone */
    WHY_DATE,    /* @2030-04-12: its firing on that date */
    WHY_KEY,     /* :KEY */
};

struct why_ask {
    char schedule[NAME_MAX_BYTES];
    enum why_form form;
    utc_us at;               /* INSTANT; else UTC_NONE */
    struct local_time local; /* LOCAL, DATE */
    char key[KEY_MAX_BYTES]; /* KEY */
    bool of_key;             /* LOCAL, DATE: the nominal one, which a key names */
};

/* Returns: OK; INVALID (the text says how to write it). */
MUST_USE enum status why_ask_parse(const char *text, struct why_ask *ret_ask, struct error *err);

/* A key as a time that it may name: an instant, a local time or a date. False: it names none, as
 * one that an operator made up. */
bool why_ask_of_key(const struct why_ask *ask, struct why_ask *ret_time);

/* The instants at which the zone's clock shows a local time: two in an overlap, the later in
 * ret_second; in a gap the first instant behind it. */
enum local_kind why_instants(const struct zone *z, struct local_time local, utc_us *ret_first,
                             utc_us *ret_second);

#endif
