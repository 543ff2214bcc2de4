/* What became of one firing, and why: from the rule to the file, or why there is none. */
#include "commands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "schedule_names.h"
#include "why.h"

#define AROUND_US ((int64_t)26 * 3600 * MICROS_A_SECOND)     /* of the ledger, either way */
#define NEAR_US   ((int64_t)SECONDS_A_DAY * MICROS_A_SECOND) /* of it that is read surely */
#define LATEST_US ((int64_t)40 * 366 * SECONDS_A_DAY * MICROS_A_SECOND)

void why_answer(struct why *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(w->answer, sizeof w->answer, format, args);
    va_end(args);
    text_trim(w->answer);
}

void why_add(struct why *w, const char *format, ...)
{
    va_list args;
    size_t used = strlen(w->answer);
    va_start(args, format);
    (void)vsnprintf(w->answer + used, sizeof w->answer - used, format, args);
    va_end(args);
    text_trim(w->answer);
}

const char *why_value(const struct table *t, const char *name)
{
    const char *cell = table_value(t, 0, name);
    return cell != NULL ? cell : "";
}

struct why_text why_utc(utc_us at)
{
    struct why_text t;
    if (utc_is_finite(at)) {
        rfc3339_format_utc(at, t.text);
    } else {
        (void)snprintf(t.text, sizeof t.text, at.us > 0 ? "infinity" : "-infinity");
    }
    return t;
}

struct why_text why_local(const struct firing *f)
{
    struct why_text t;
    rfc3339_format(f->at, f->offset_s, t.text);
    return t;
}

enum exit_code why_hops_select(struct why *w, const char *sql, int count, const char *const *values)
{
    struct table *t = NULL;
    enum exit_code code = session_select(w->s, sql, count, values, &t);
    for (size_t i = 0; code == EXIT_DONE && i < table_rows(t); i++) {
        utc_us at = UTC_NONE;
        const char *place = table_value(t, i, "place");
        const char *step = table_value(t, i, "step");
        const char *cell = table_value(t, i, "at");
        const char *what = table_value(t, i, "what");
        if (cell == NULL || !cell_instant_parse(cell, &at)) {
            at = UTC_NONE;
        }
        why_hop_add(&w->hops, place != NULL ? (int)strtol(place, NULL, 10) : 0,
                    step != NULL ? step : "", at, "%s", what != NULL ? what : "");
    }
    table_free(t);
    return code;
}

/* ---- the occurrence ---- */

static enum exit_code occurrence_select(struct why *w, struct table **ret_table)
{
    const char *values[] = {w->ask.schedule, w->key};
    return session_select(
        w->s,
        "SELECT o.cause, o.scheduled_for, o.planned_at, o.version, j.state::text AS state, "
        "j.waits_on,"
        " j.attempt, j.max_attempts, j.finished_at, j.error, j.worker, j.queue, v.rule, v.kind,"
        " CASE WHEN j.state = 'running' AND j.lease_until < statement_timestamp() THEN"
        " extract(epoch FROM statement_timestamp() - j.lease_until) END AS lapsed_s,"
        " v.time_zone, v.recorded_by, o.nominal_local, CASE WHEN (o.scheduled_for AT TIME ZONE"
        " v.time_zone)::date <> o.nominal_local::date THEN (SELECT format('%s (nonbusiness %s%s)"
        " moved from %s to %s', x.calendar, x.nonbusiness, CASE WHEN x.business_day_offset <> 0 "
        "THEN"
        " ', business_day_offset ' || x.business_day_offset END, to_char(o.nominal_local, "
        "'YYYY-MM-DD'),"
        " to_char(o.scheduled_for AT TIME ZONE v.time_zone, 'YYYY-MM-DD HH24:MI')) FROM"
        " reports.schedule_version x WHERE x.schedule = o.schedule AND x.version = o.version AND"
        " x.calendar IS NOT NULL) END AS moved FROM reports.v_occurrence o"
        " LEFT JOIN reports.v_job j ON j.id = o.job_id"
        " LEFT JOIN reports.v_schedule_version v ON v.schedule = o.schedule AND v.version ="
        " o.version WHERE o.schedule = $1 AND o.occurrence_key = $2",
        2, values, ret_table);
}

/* DONE: *ret_found says whether it exists and was told. */
static enum exit_code occurrence_tell(struct why *w, bool *ret_found)
{
    struct table *t = NULL;
    utc_us at;
    *ret_found = false;
    enum exit_code code = w->key[0] != '\0' ? occurrence_select(w, &t) : EXIT_DONE;
    if (code == EXIT_DONE && t != NULL && table_rows(t) > 0) {
        *ret_found = true;
        if (cell_instant_parse(table_value(t, 0, "scheduled_for"), &at)) {
            w->due = at;
        }
        w->version = (int32_t)strtol(table_value(t, 0, "version"), NULL, 10);
        if (w->local[0] == '\0' && table_value(t, 0, "nominal_local") != NULL) {
            (void)snprintf(w->local, sizeof w->local, "%.16s", table_value(t, 0, "nominal_local"));
        }
        code = why_chain_tell(w, t);
    }
    table_free(t);
    return code;
}

/* Where no version names it, a firing can only have been asked for; of the time asked about, or,
 * where none was, the newest. */
static enum exit_code manual_tell(struct why *w, bool *ret_found)
{
    static const char sql[] =
        "SELECT o.occurrence_key FROM reports.v_occurrence o LEFT JOIN reports.v_schedule_version v"
        " ON v.schedule = o.schedule AND v.version = o.version WHERE o.schedule = $1 AND o.cause IN"
        " ('manual', 'backfill') AND (coalesce($2, $3) IS NULL OR o.occurrence_key IN ($2,"
        " left($2, 10)) OR o.cause = 'backfill' AND (o.scheduled_for = $3::timestamptz OR $2 IN"
        " (left(to_char(o.nominal_local, 'YYYY-MM-DD\"T\"HH24:MI'), length($2)),"
        " left(to_char(o.scheduled_for AT TIME ZONE v.time_zone, 'YYYY-MM-DD\"T\"HH24:MI'),"
        " length($2))))) ORDER BY o.planned_at DESC, o.scheduled_for LIMIT 1";
    char text[DATE_TEXT_MAX + 8] = "";
    const struct why_text at = why_utc(w->asked.at);
    int64_t s = w->asked.local.s;
    int64_t days = floor_divide(s, SECONDS_A_DAY);
    date_format(days, text);
    if (w->asked.form == WHY_LOCAL) {
        unsigned minute = (unsigned)((s - days * SECONDS_A_DAY) / 60) % (24 * 60);
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "T%02u:%02u", minute / 60, minute % 60);
    }
    bool latest = w->ask.form == WHY_LATEST;
    bool instant_asked = w->asked.form == WHY_INSTANT;
    const char *values[] = {w->ask.schedule, latest || instant_asked ? NULL : text,
                            !latest && instant_asked ? at.text : NULL};
    struct table *t = NULL;
    enum exit_code code = session_select(w->s, sql, 3, values, &t);
    bool some = code == EXIT_DONE && table_rows(t) > 0;
    if (some) {
        (void)snprintf(w->key, sizeof w->key, "%s", table_cell(t, 0, 0));
        code = occurrence_tell(w, ret_found);
    }
    table_free(t);
    return code;
}

/* ---- the ledger around it ---- */

struct around {
    struct verify_page *page;
    struct zone_set *zones;
    struct plan_candidates *candidates;
    struct verify_chunk *chunk;
};

static enum exit_code around_read(struct why *w, struct around *a, utc_us near)
{
    struct error err = {0};
    a->page = calloc(1, sizeof *a->page);
    a->candidates = calloc(1, sizeof *a->candidates);
    if (a->page == NULL || a->candidates == NULL) {
        return command_fail(w->s->in, EXIT_FAILED, "out of memory");
    }
    (void)snprintf(a->page->names[0], NAME_MAX_BYTES, "%s", w->ask.schedule);
    a->page->count = 1;
    struct verify_part part = {a->page, 0, 1, {{near.us - AROUND_US}, {near.us + AROUND_US}}};
    enum status s = zone_set_open(NULL, &a->zones, &err);
    if (s != STATUS_OK) {
        return command_fail(w->s->in, EXIT_FAILED, "%s", err.text);
    }
    s = store_verify_chunk(w->s->store, &part, a->zones, w->s->deadline, &a->chunk, &err);
    if (s != STATUS_OK) {
        return session_fail(w->s, s, &err);
    }
    ledger_reigns_find(&a->chunk->subjects[0], a->candidates);
    w->subject = &a->chunk->subjects[0];
    return EXIT_DONE;
}

static void around_free(struct around *a)
{
    verify_chunk_free(a->chunk);
    zone_set_close(a->zones);
    free(a->candidates);
    free(a->page);
}

/* The latest firing that is due, by the version that was in force then. */
static bool latest_find(struct why *w)
{
    const struct ledger_subject *s = w->subject;
    const struct ledger_version *v = why_version_at(s, w->s->now);
    struct firing f = {.found = false};
    int64_t before = w->s->now.us + 1;
    if (v == NULL || v->ended) {
        return false;
    }
    for (size_t i = (size_t)(v - s->versions) + 1; i-- > 0;) {
        v = &s->versions[i];
        before = v->end.us < before ? v->end.us : before;
        if (v->ended || v->namer->parsed != STATUS_OK) {
            break;
        }
        f = rule_last_within(&v->namer->rule, (utc_us){w->s->now.us - LATEST_US}, (utc_us){before},
                             v->namer->bounds);
        if (f.found && f.at.us > v->base.us) {
            break;
        }
        /* Of a version further back nothing is known here. */
        f.found = f.found && i == 0 && v->version > 1;
    }
    if (f.found) {
        w->asked.form = WHY_INSTANT;
        w->asked.at = f.at;
    }
    return f.found;
}

static void story_take(struct why *w)
{
    const struct why_story *y = &w->story;
    w->due = y->at;
    if (y->version != NULL) {
        w->version = y->version->version;
    }
    if (y->firing.found) {
        memcpy(w->key, y->key, sizeof w->key);
        (void)snprintf(w->local, sizeof w->local, "%s", why_local(&y->firing).text);
    }
}

/* ---- printing ---- */

static enum exit_code facts_select(struct why *w, struct table **ret_table)
{
    char number[16];
    /* A time that is no firing is not due. */
    bool named = w->key[0] != '\0';
    struct why_text at = why_utc(w->due);
    (void)snprintf(number, sizeof number, "%" PRId32, w->version);
    const char *values[] = {w->answer,
                            w->ask.schedule,
                            named ? w->key : NULL,
                            named && !utc_is_none(w->due) ? at.text : NULL,
                            !named && !utc_is_none(w->due) ? at.text : NULL,
                            w->local[0] != '\0' ? w->local : NULL,
                            number};
    return session_select(
        w->s,
        "SELECT $1::text AS answer, $2::text AS schedule, $3::text AS key, $4::timestamptz AS "
        "due_at,"
        " $5::timestamptz AS asked_at, $6::text AS local, v.rule, v.kind AS \"kind-\", "
        "v.time_zone, v.version, v.effective_from AS"
        " version_since_at, v.recorded_by AS version_by, v.change_reason AS version_reason"
        " FROM (SELECT) x LEFT JOIN reports.v_schedule_version v ON v.schedule = $2 AND v.version ="
        " $7::integer",
        7, values, ret_table);
}

static enum exit_code why_print(struct why *w)
{
    struct section sections[] = {
        {.key = "why", .facts = true},
        {.key = "steps", .title = "STEPS", .table = why_hops_table(&w->hops)},
    };
    enum exit_code code = sections[1].table != NULL
                              ? facts_select(w, &sections[0].table)
                              : command_fail(w->s->in, EXIT_FAILED, "out of memory");
    if (code == EXIT_DONE) {
        session_print(w->s, sections, 2);
    }
    table_free(sections[0].table);
    table_free(sections[1].table);
    return code;
}

/* ---- the run ---- */

static enum exit_code scope_select(struct why *w)
{
    const char *values[] = {w->ask.schedule};
    struct table *t = NULL;
    enum exit_code code = session_select(
        w->s, "SELECT scope FROM reports.schedule_version WHERE schedule = $1 LIMIT 1", 1, values,
        &t);
    if (code == EXIT_DONE && table_rows(t) == 0) {
        code = schedule_name_fail(w->s, w->ask.schedule);
    } else if (code == EXIT_DONE) {
        (void)snprintf(w->scope, sizeof w->scope, "%s", table_cell(t, 0, 0));
    }
    table_free(t);
    return code;
}

static enum exit_code none_due_tell(struct why *w)
{
    const struct ledger_subject *s = w->subject;
    const struct ledger_version *v = why_version_at(s, w->s->now);
    struct firing f = {.found = false};
    if (v != NULL && !v->ended && !v->paused && v->namer->parsed == STATUS_OK) {
        f = rule_next_within(&v->namer->rule, w->s->now, v->namer->bounds);
    }
    why_answer(w, "No firing of it was ever due%s%s; reportctl next %s",
               f.found ? ", the first is that of " : "", f.found ? why_local(&f).text : "",
               w->ask.schedule);
    return EXIT_DONE;
}

/* The firing may lie far from the time that names it, and so outside of what was read. */
static enum exit_code story_find(struct why *w, struct around *a, utc_us near)
{
    enum exit_code code = EXIT_DONE;
    why_story_find(w->subject, &w->asked, w->s->now, &w->story);
    utc_us at = w->story.at;
    memcpy(w->namesake, w->story.namesake, sizeof w->namesake);
    w->namesake_at = w->story.namesake_at;
    if (at.us < near.us - NEAR_US || at.us > near.us + NEAR_US) {
        w->asked.form = WHY_INSTANT;
        w->asked.at = at;
        around_free(a);
        *a = (struct around){.page = NULL};
        code = around_read(w, a, at);
        if (code == EXIT_DONE) {
            why_story_find(w->subject, &w->asked, w->s->now, &w->story);
        }
    }
    return code;
}

/* No occurrence was found under a key: what time does it name? */
static enum exit_code time_tell(struct why *w)
{
    struct around around = {.page = NULL};
    utc_us near = w->asked.form == WHY_INSTANT  ? w->asked.at
                  : w->asked.form == WHY_LATEST ? w->s->now
                                                : utc_from_seconds(w->asked.local.s);
    bool found = false;
    enum exit_code code = around_read(w, &around, near);
    if (code == EXIT_DONE && w->asked.form == WHY_LATEST && !latest_find(w)) {
        code = manual_tell(w, &found);
        if (code == EXIT_DONE && !found) {
            code = none_due_tell(w);
        }
    } else if (code == EXIT_DONE) {
        code = story_find(w, &around, near);
        if (code == EXIT_DONE) {
            story_take(w);
            code = occurrence_tell(w, &found);
        }
        if (code == EXIT_DONE && !found && !w->story.firing.found && w->story.kind != WHY_SEVERAL) {
            code = manual_tell(w, &found);
        }
        if (code == EXIT_DONE && !found) {
            code = why_reason_tell(w);
        }
    }
    if (code == EXIT_DONE && w->story.clock == LOCAL_OVERLAP && w->story.twin.us != w->due.us) {
        why_add(w, ". The clock shows this time twice, again at %s", why_utc(w->story.twin).text);
    }
    if (code == EXIT_DONE && w->ask.form == WHY_KEY && w->key[0] != '\0' &&
        strcmp(w->key, w->ask.key) != 0) {
        why_add(w, ". The key of this firing is %s", w->key);
    }
    if (code == EXIT_DONE && w->namesake[0] != '\0') {
        why_add(w, ". The firing of this date, %s:%s, is due at %s", w->ask.schedule, w->namesake,
                why_utc(w->namesake_at).text);
    }
    around_free(&around);
    return code;
}

/* A period is due when the rule says, which may be at any time behind it. */
static enum exit_code period_take(struct why *w, bool *ret_found)
{
    struct around around = {.page = NULL};
    enum exit_code code = around_read(w, &around, w->s->now);
    *ret_found = code == EXIT_DONE && why_period_find(w->subject, w->ask.key, &w->asked.at);
    if (*ret_found) {
        w->asked.form = WHY_INSTANT;
    }
    around_free(&around);
    w->subject = NULL;
    return code;
}

static enum exit_code why_run(struct why *w)
{
    bool found = false;
    enum exit_code code = scope_select(w);
    w->asked = w->ask;
    if (code == EXIT_DONE && w->ask.form == WHY_KEY) {
        memcpy(w->key, w->ask.key, sizeof w->key);
        code = occurrence_tell(w, &found);
    }
    if (code == EXIT_DONE && w->ask.form == WHY_KEY && !found) {
        bool named = why_ask_of_key(&w->ask, &w->asked);
        w->key[0] = '\0';
        code = named ? code : period_take(w, &named);
        if (code == EXIT_DONE && !named) {
            return command_fail(w->s->in, EXIT_NOT_FOUND,
                                "no occurrence of \"%s\" has the key \"%s\", and it names no time; "
                                "reportctl occurrences %s lists them",
                                w->ask.schedule, w->ask.key, w->ask.schedule);
        }
    }
    if (code == EXIT_DONE && !found) {
        code = time_tell(w);
    }
    return code == EXIT_DONE ? why_print(w) : code;
}

enum exit_code why_command(struct invocation *in)
{
    struct session s;
    struct error err = {0};
    struct why w = {.s = &s, .due = UTC_NONE};
    if (why_ask_parse(command_text(in, "subject"), &w.ask, &err) != STATUS_OK) {
        return command_fail(in, EXIT_USAGE, "%s", err.text);
    }
    if (!why_hops_init(&w.hops)) {
        return command_fail(in, EXIT_FAILED, "out of memory");
    }
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = why_run(&w);
    }
    why_hops_done(&w.hops);
    session_close(&s);
    return code;
}
