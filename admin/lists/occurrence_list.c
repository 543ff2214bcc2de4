#include "occurrence_list.h"

#include <inttypes.h>
#include <stdio.h>

#include "civil.h"

/* The ledger is kept for ever and has no index in the order of time over all schedules: recent rows
 * are looked for in growing spans, each found by block ranges. */
static const int64_t span_h[] = {1, 48, 24 * 60};
#define SPANS (sizeof span_h / sizeof span_h[0])

enum exit_code recent_select(struct session *s, const struct recent_query *q,
                             struct table **ret_table)
{
    char from[RFC3339_TEXT_MAX];
    enum exit_code code = EXIT_DONE;
    struct table *t = NULL;
    for (size_t i = 0; i <= SPANS; i++) {
        utc_us start = {s->now.us - (i < SPANS ? span_h[i] : 0) * 3600 * MICROS_A_SECOND};
        rfc3339_format_utc(start, from);
        q->values[q->from] = i < SPANS ? from : "-infinity";
        table_free(t);
        t = NULL;
        code = session_select(s, q->sql, q->count, q->values, &t);
        if (code != EXIT_DONE || table_rows(t) >= (size_t)q->limit) {
            break;
        }
    }
    q->values[q->from] = NULL;
    if (code == EXIT_DONE) {
        *ret_table = t;
    }
    return code;
}

enum exit_code occurrence_list_make(struct session *s, const struct occurrence_range *range,
                                    struct table **ret_table)
{
    static const char sql[] =
        "SELECT schedule, occurrence_key AS key, state, attempt, cause, scheduled_for,"
        " planned_after_s AS \"planned_after_s?\", nominal_local AS \"local?\", job_id AS "
        "\"job_id?\","
        " version AS \"version-\", generation AS \"generation-\", planned_at AS \"planned_at-\","
        " finished_at AS \"finished_at-\", business_date::text AS \"business_date-\""
        " FROM reports.v_occurrence WHERE ($2::text IS NULL OR schedule = $2)"
        " AND scheduled_for >= $3 AND scheduled_for < $4"
        " ORDER BY scheduled_for DESC, schedule, occurrence_key LIMIT $1";
    char limit[24];
    (void)snprintf(limit, sizeof limit, "%" PRId64, range->limit);
    const char *values[] = {limit, range->schedule, range->from,
                            range->to != NULL ? range->to : "infinity"};
    const struct recent_query recent = {
        .sql = sql, .count = 4, .values = values, .from = 2, .limit = range->limit};
    struct table *t = NULL;
    enum exit_code code = EXIT_DONE;
    if (range->from == NULL && range->to == NULL) {
        code = recent_select(s, &recent, &t);
    } else {
        values[2] = range->from != NULL ? range->from : "-infinity";
        code = session_select(s, sql, 4, values, &t);
    }
    if (code == EXIT_DONE) {
        if (range->schedule != NULL) {
            table_hide(t, "schedule");
        }
        *ret_table = t;
    }
    return code;
}
