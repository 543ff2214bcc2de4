/* PostgreSQL: samples of its clock. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store_clock.h"
#include "store_pg.h"

#define INT_TEXT_MAX 24

static enum status ruling_parse(const char *word, enum clock_ruling *ret_ruling, struct error *err)
{
    for (size_t i = 0; i < CLOCK_RULINGS; i++) {
        if (strcmp(word, clock_ruling_name((enum clock_ruling)i)) == 0) {
            *ret_ruling = (enum clock_ruling)i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_CORRUPT, "note_clock answered \"%s\"", word);
}

enum status store_note_clock(struct store *store, const struct clock_note *note, instant deadline,
                             struct clock_answer *ret_answer, struct error *err)
{
    static const char sql[] =
        "SELECT verdict, step_us, hold, lifted FROM reports.note_clock($1::text, $2::text, "
        "$3::timestamptz, $4::bigint, $5::bigint, $6::bigint, $7::boolean)";
    char at[STORE_PG_TIME_MAX], boot_us[INT_TEXT_MAX], offset[INT_TEXT_MAX], trip[INT_TEXT_MAX];
    store_pg_time_format(note->sample.said, at);
    (void)snprintf(boot_us, sizeof boot_us, "%" PRId64, clock_sample_boot_us(&note->sample));
    (void)snprintf(offset, sizeof offset, "%" PRId64, note->offset_us);
    (void)snprintf(trip, sizeof trip, "%" PRId64, clock_sample_round_trip_us(&note->sample));
    const char *kept = note->kept == CLOCK_KEPT_UNKNOWN ? NULL
                       : note->kept == CLOCK_KEPT       ? "t"
                                                        : "f";
    const char *values[] = {note->member, note->boot, at, boot_us, offset, trip, kept};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 7, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    struct clock_answer answer = {.ruling = CLOCK_STALE};
    char word[16];
    store_pg_text(r, 0, 0, word, sizeof word);
    s = ruling_parse(word, &answer.ruling, err);
    answer.step_us = store_pg_int(r, 0, 1);
    answer.hold = store_pg_int(r, 0, 2);
    answer.lifted = store_pg_bool(r, 0, 3);
    PQclear(r);
    if (s == STATUS_OK) {
        *ret_answer = answer;
    }
    return s;
}
