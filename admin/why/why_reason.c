/* Why a firing has no occurrence. */
#include "why.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cell.h"

/* The story's version as the tables have it: who wrote it, when, why; "" where there is none. */
static enum exit_code version_select(struct why *w, int32_t version, struct table **ret_table)
{
    char number[16];
    (void)snprintf(number, sizeof number, "%" PRId32, version);
    const char *values[] = {w->ask.schedule, number};
    return session_select(
        w->s,
        "SELECT version, effective_from, recorded_by, change_reason, ended, rule, kind, time_zone,"
        " to_char(effective_from AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS since"
        " FROM reports.v_schedule_version WHERE schedule = $1 AND version = $2::integer",
        2, values, ret_table);
}

static enum exit_code around_tell(struct why *w, utc_us from, utc_us to)
{
    const struct why_text a = why_utc(from);
    const struct why_text b = why_utc(to);
    const char *values[] = {w->scope, a.text, b.text};
    return why_hops_select(w,
                           "SELECT place, step, at, what FROM reports.why_around($1,"
                           " $2::timestamptz, $3::timestamptz)",
                           3, values);
}

static void version_hop(struct why *w, const char *step, const struct table *t)
{
    utc_us at;
    if (table_rows(t) > 0 && cell_instant_parse(why_value(t, "effective_from"), &at)) {
        why_hop_add(&w->hops, 0, step, at, "version %s, by %s%s%s", why_value(t, "version"),
                    why_value(t, "recorded_by"),
                    why_value(t, "change_reason")[0] != '\0' ? ": " : "",
                    why_value(t, "change_reason"));
    }
}

/* ---- in a gap ---- */

static const struct {
    const char *reason, *words;
} GAPS[] = {
    {"misfire_skip", "it was missed, planned later than misfire_grace allows, and its misfire is "
                     "skip"},
    {"misfire_latest", "it was missed, and of missed firings only the latest is run (misfire "
                       "run_latest)"},
    {"misfire_max", "it was missed, and there were more missed firings than misfire_max: the older "
                    "ones are not run"},
    {"misfire_age", "it was missed, and when it could be planned it was older than misfire_age"},
    {"coalesced", "it was missed, and of missed firings one is run whose window covers all of them "
                  "(misfire coalesce)"},
    {"problem_mended", "the schedule could not be planned then; a later version has mended it"},
    {"paused", "the schedule was paused"},
    {"overlap_forbid", "a job of the schedule was still open, and its overlap is forbid"},
    {"circuit_open",
     "jobs of the schedule had failed one after another, and its circuit breaker was "
     "open"},
    {"passed_over", "an edit of business_date moved what the firings are about past this period: "
                    "the version before had not reported it yet, and the new one never does; "
                    "reportctl backfill makes it"},
    {"key_taken", "an occurrence with its key was there already"},
};

static enum exit_code blocker_tell(struct why *w)
{
    const struct why_text at = why_utc(w->story.at);
    const char *values[] = {w->ask.schedule, at.text};
    struct table *t = NULL;
    enum exit_code code = session_select(
        w->s,
        "SELECT j.occurrence_key AS key, j.state, j.created_at, j.finished_at"
        " FROM reports.v_occurrence o JOIN reports.v_job j ON j.id = o.job_id"
        " WHERE o.schedule = $1 AND o.occurrence_key >= to_char(($2::timestamptz - CASE WHEN EXISTS"
        " (SELECT FROM reports.schedule_version v WHERE v.schedule = $1 AND v.business_day_offset "
        "> 0)"
        " THEN interval '400 days' ELSE interval '8 days' END) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
        " AND j.created_at <= $2::timestamptz + interval '1 minute'"
        " AND coalesce(j.finished_at, 'infinity') >= $2::timestamptz"
        " ORDER BY j.created_at DESC LIMIT 1",
        2, values, &t);
    if (code == EXIT_DONE && table_rows(t) > 0) {
        utc_us made;
        why_add(w, ": that of %s", why_value(t, "key"));
        if (cell_instant_parse(why_value(t, "created_at"), &made)) {
            why_hop_add(&w->hops, 1, "open job", made, "%s:%s was made", w->ask.schedule,
                        why_value(t, "key"));
        }
        if (cell_instant_parse(why_value(t, "finished_at"), &made)) {
            why_hop_add(&w->hops, 1, "open job", made, "%s:%s ended: %s", w->ask.schedule,
                        why_value(t, "key"), why_value(t, "state"));
        }
    }
    table_free(t);
    return code;
}

/* When it opened, and what it came to. */
static enum exit_code circuit_tell(struct why *w)
{
    const struct why_text at = why_utc(w->story.at);
    const char *values[] = {w->ask.schedule, at.text};
    struct table *t = NULL;
    enum exit_code code = session_select(
        w->s,
        "SELECT x.event, x.at, concat_ws(', ', 'job ' || x.occurrence_key, x.detail) AS what FROM"
        " (SELECT e.* FROM reports.v_circuit_event e, (SELECT max(o.id) AS id FROM"
        " reports.v_circuit_event o WHERE o.schedule = $1 AND o.event = 'opened'"
        " AND o.at <= $2::timestamptz + interval '1 minute') o"
        " WHERE e.schedule = $1 AND e.id >= o.id ORDER BY e.id LIMIT 20) x ORDER BY x.id",
        2, values, &t);
    for (size_t i = 0; code == EXIT_DONE && i < table_rows(t); i++) {
        utc_us when;
        const char *event = table_value(t, i, "event");
        bool later = i > 0 && strcmp(event, "opened") == 0;
        if (later) {
            break;
        }
        if (cell_instant_parse(table_value(t, i, "at"), &when)) {
            why_hop_add(&w->hops, 2, "circuit", when, "%s: %s", event, table_value(t, i, "what"));
        }
    }
    table_free(t);
    return code;
}

static enum exit_code gap_record_tell(struct why *w, utc_us *ret_at)
{
    const struct ledger_gap *g = w->story.gap;
    const struct why_text from = why_utc(g->from);
    const char *values[] = {w->ask.schedule, from.text, g->reason};
    struct table *t = NULL;
    enum exit_code code = session_select(
        w->s,
        "SELECT g.recorded_at, g.firings, g.from_key, g.to_key, (SELECT e.member FROM"
        " reports.v_leadership_event e WHERE e.scope = x.scope AND e.event = 'established' AND"
        " e.incarnation = x.incarnation AND e.generation = x.generation ORDER BY e.id DESC LIMIT 1)"
        " AS member FROM reports.v_gap g JOIN reports.schedule_gap x ON x.id = g.id"
        " WHERE g.schedule = $1 AND g.from_fire_at = $2::timestamptz AND g.reason = $3"
        " ORDER BY g.id DESC LIMIT 1",
        3, values, &t);
    *ret_at = w->story.at;
    if (code == EXIT_DONE && table_rows(t) > 0 &&
        cell_instant_parse(why_value(t, "recorded_at"), ret_at)) {
        why_hop_add(&w->hops, 3, "gap", *ret_at, "%s, %s firing(s) from %s to %s%s%s", g->reason,
                    why_value(t, "firings"), why_value(t, "from_key"), why_value(t, "to_key"),
                    why_value(t, "member")[0] != '\0' ? ", recorded by leader " : "",
                    why_value(t, "member"));
    }
    table_free(t);
    return code;
}

static enum exit_code gap_versions_tell(struct why *w)
{
    struct table *t = NULL;
    enum exit_code code = version_select(w, w->story.gap->version, &t);
    if (code == EXIT_DONE) {
        version_hop(w, strcmp(w->story.gap->reason, "paused") == 0 ? "paused" : "edit", t);
        if (why_value(t, "change_reason")[0] != '\0') {
            why_add(w, " (%s)", why_value(t, "change_reason"));
        }
    }
    table_free(t);
    t = NULL;
    if (code == EXIT_DONE) {
        code = version_select(w, w->story.gap->version + 1, &t);
    }
    if (code == EXIT_DONE) {
        version_hop(w, "edit", t);
    }
    table_free(t);
    return code;
}

static enum exit_code gap_tell(struct why *w)
{
    const struct ledger_gap *g = w->story.gap;
    const char *words = g->reason;
    utc_us recorded = UTC_NONE;
    for (size_t i = 0; i < sizeof GAPS / sizeof GAPS[0]; i++) {
        words = strcmp(GAPS[i].reason, g->reason) == 0 ? GAPS[i].words : words;
    }
    why_answer(w, "It was not run, and lies in a recorded gap: %s", words);
    enum exit_code code = gap_record_tell(w, &recorded);
    if (code == EXIT_DONE && strcmp(g->reason, "overlap_forbid") == 0) {
        code = blocker_tell(w);
    } else if (code == EXIT_DONE && strcmp(g->reason, "circuit_open") == 0) {
        code = circuit_tell(w);
    } else if (code == EXIT_DONE && strncmp(g->reason, "misfire", 7) == 0) {
        code = around_tell(w, w->story.at, recorded);
    } else if (code == EXIT_DONE && strcmp(g->reason, "key_taken") != 0) {
        code = gap_versions_tell(w);
    }
    return code;
}

/* ---- due and not planned ---- */

static enum exit_code leader_tell(struct why *w)
{
    const char *values[] = {w->scope};
    struct table *t = NULL;
    enum exit_code code = session_select(
        w->s,
        "SELECT l.state, l.leader, l.release_reason, to_char(l.since_at AT TIME ZONE 'UTC',"
        " 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS since, (SELECT h.reason FROM reports.v_hold h WHERE"
        " h.queue IS NULL AND (h.scope IS NULL OR h.scope = l.scope) ORDER BY h.id LIMIT 1) AS held"
        " FROM reports.v_leader l WHERE l.scope = $1",
        1, values, &t);
    if (code != EXIT_DONE) {
        return code;
    }
    const char *state = why_value(t, "state");
    if (why_value(t, "held")[0] != '\0') {
        why_add(w, "its scope is held: %s; reportctl holds", why_value(t, "held"));
    } else if (strcmp(state, "no leader") == 0) {
        why_add(w, "scope \"%s\" has had no leader since %s%s%s%s", w->scope, why_value(t, "since"),
                why_value(t, "release_reason")[0] != '\0' ? " (" : "",
                why_value(t, "release_reason"),
                why_value(t, "release_reason")[0] != '\0' ? ")" : "");
    } else if (strcmp(state, "never led") == 0) {
        why_add(w, "scope \"%s\" was never led: no scheduler.conf names it, or none runs",
                w->scope);
    } else if (strcmp(state, "active") == 0) {
        why_add(w,
                "leader %s is active and has not come to it: it does within a second, unless a "
                "row is locked or its log says why",
                why_value(t, "leader"));
    } else {
        why_add(w, "leader %s is %s", why_value(t, "leader"), state);
    }
    table_free(t);
    return around_tell(w, w->story.at, w->s->now);
}

static enum exit_code waits_tell(struct why *w)
{
    why_answer(w, "It is due and not planned yet%s: ",
               w->story.version->taken ? "" : ", since the edit that names it is not taken in");
    return leader_tell(w);
}

static enum exit_code withheld_select(struct why *w, struct table **ret_table)
{
    const char *values[] = {w->ask.schedule};
    return session_select(
        w->s,
        "SELECT s.paused, s.pause_reason, p.problem, to_char(coalesce(s.paused_since_at,"
        " p.problem_since) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS since,"
        " to_char(s.paused_until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS until"
        " FROM reports.v_schedule s LEFT JOIN reports.schedule_progress p ON p.schedule = s.name"
        " WHERE s.name = $1",
        1, values, ret_table);
}

/* What is to come under a pause or a problem is not promised. */
static enum exit_code not_yet_tell(struct why *w)
{
    const struct ledger_version *v = w->story.version;
    struct table *t = NULL;
    utc_us until;
    why_answer(w, "It is not due yet");
    if (!v->paused && !(w->subject->has_problem && v->version == w->subject->version)) {
        return EXIT_DONE;
    }
    enum exit_code code = withheld_select(w, &t);
    if (code == EXIT_DONE && why_value(t, "problem")[0] != '\0') {
        why_add(w, ", and will not be run unless the problem of the schedule is mended before: %s",
                why_value(t, "problem"));
    } else if (code == EXIT_DONE) {
        bool ends = rfc3339_parse(why_value(t, "until"), &until, NULL) == STATUS_OK;
        why_add(w, ", and will %s: it has been paused since %s%s%s%s%s%s",
                ends && until.us <= w->story.at.us
                    ? "be run, since the schedule goes on before"
                    : "not be run unless the schedule is resumed before",
                why_value(t, "since"), ends ? " until " : "", why_value(t, "until"),
                why_value(t, "pause_reason")[0] != '\0' ? " (" : "", why_value(t, "pause_reason"),
                why_value(t, "pause_reason")[0] != '\0' ? ")" : "");
    }
    table_free(t);
    return code;
}

static enum exit_code withheld_tell(struct why *w)
{
    struct table *t = NULL;
    enum exit_code code = withheld_select(w, &t);
    if (code == EXIT_DONE && why_value(t, "problem")[0] != '\0') {
        why_answer(
            w,
            "Nothing of the schedule has been planned since %s, it has a problem: %s. When it is "
            "mended this becomes a gap",
            why_value(t, "since"), why_value(t, "problem"));
    } else if (code == EXIT_DONE && w->story.version->paused) {
        why_answer(
            w,
            "The schedule has been paused since %s%s%s%s%s%s. When it goes on this becomes a gap",
            why_value(t, "since"), why_value(t, "until")[0] != '\0' ? " until " : "",
            why_value(t, "until"), why_value(t, "pause_reason")[0] != '\0' ? " (" : "",
            why_value(t, "pause_reason"), why_value(t, "pause_reason")[0] != '\0' ? ")" : "");
    } else if (code == EXIT_DONE) {
        why_answer(w, "Its version could not be planned: %s", w->story.version->problem);
    }
    table_free(t);
    return code;
}

/* ---- nothing is due ---- */

static enum exit_code ended_tell(struct why *w)
{
    struct table *t = NULL;
    enum exit_code code = version_select(w, w->story.version->version, &t);
    if (code == EXIT_DONE) {
        why_answer(w, "The schedule was deleted at %s by %s", why_value(t, "since"),
                   why_value(t, "recorded_by"));
        version_hop(w, "deleted", t);
    }
    table_free(t);
    return code;
}

static enum exit_code not_made_tell(struct why *w)
{
    struct table *t = NULL;
    enum exit_code code = version_select(w, 1, &t);
    if (code == EXIT_DONE) {
        why_answer(w, "The schedule was not there yet: it was written at %s by %s",
                   why_value(t, "since"), why_value(t, "recorded_by"));
        version_hop(w, "written", t);
    }
    table_free(t);
    return code;
}

static enum exit_code unnamed_tell(struct why *w)
{
    const struct why_story *y = &w->story;
    enum exit_code code = EXIT_DONE;
    if (y->kind != WHY_NOT_NAMED) {
        code = why_day_tell(w);
    } else if (y->clock == LOCAL_GAP) {
        why_answer(w,
                   "The clock of %s jumps over this time, so it does not exist, and the rule does "
                   "not make up for it",
                   zone_name(y->version->namer->rule.zone));
    } else {
        why_answer(w, "The rule of version %" PRId32 " does not name this time",
                   y->version->version);
    }
    if (y->before.found) {
        why_add(w, "; the nearest before is %s", why_local(&y->before).text);
    }
    if (y->after.found) {
        why_add(w, "%s the nearest after %s", y->before.found ? "," : ";",
                why_local(&y->after).text);
    }
    if (y->other != NULL) {
        why_add(w, ". Version %" PRId32 " names it, and is in force %s", y->other->version,
                y->other->version < y->version->version ? "before only" : "since later only");
    }
    return code;
}

enum exit_code why_reason_tell(struct why *w)
{
    const struct why_story *y = &w->story;
    if (y->firing.found) {
        why_hop_add(&w->hops, WHY_PLACE_DUE, "due", y->at, "%s, by the rule of version %" PRId32,
                    w->local, w->version);
    }
    switch (y->kind) {
    case WHY_LOST:
        why_answer(w,
                   "This must never be: it was due, and has neither an occurrence nor a gap; "
                   "reportctl verify --schedule %s",
                   w->ask.schedule);
        return around_tell(w, y->at, w->s->now);
    case WHY_NOT_YET:
        return not_yet_tell(w);
    case WHY_IN_GAP:
        return gap_tell(w);
    case WHY_WAITS:
        return waits_tell(w);
    case WHY_WITHHELD:
        return withheld_tell(w);
    case WHY_NOT_NAMED:
    case WHY_SKIPPED:
    case WHY_UNKNOWN_DAY:
    case WHY_JOINED:
        return unnamed_tell(w);
    case WHY_BEFORE_START:
        why_answer(w, "It lies before the schedule's starts_at, %s",
                   why_utc(y->version->namer->bounds.starts_at).text);
        return EXIT_DONE;
    case WHY_AFTER_END:
        why_answer(w, "It lies at or after the schedule's ends_at, %s",
                   why_utc(y->version->namer->bounds.ends_at).text);
        return EXIT_DONE;
    case WHY_NOT_MADE:
        return not_made_tell(w);
    case WHY_DELETED:
        return ended_tell(w);
    case WHY_UNREADABLE:
        why_answer(w, "The rule of version %" PRId32 " cannot be read here: %s",
                   y->version->version, y->version->problem);
        return EXIT_DONE;
    case WHY_SEVERAL:
        why_answer(w,
                   "The schedule fires %" PRId64 " times on that date, first at %s; ask for one of "
                   "them by its time",
                   y->on_date, why_local(&y->after).text);
        return EXIT_DONE;
    }
    return EXIT_DONE;
}
