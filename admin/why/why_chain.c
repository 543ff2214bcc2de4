/* From the rule to the file: each step of a firing that has its occurrence. */
#include "why.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"

#define LATE_S 5.0 /* planned later than that: who led meanwhile is told */

static struct why_text duration(double seconds)
{
    struct why_text d;
    cell_duration_format(seconds, d.text, sizeof d.text);
    return d;
}

/* Seconds from due until an instant of the job; negative: it has none. */
static double since_due(const struct why *w, const struct table *t, const char *name)
{
    utc_us at;
    const char *cell = table_value(t, 0, name);
    return cell != NULL && cell_instant_parse(cell, &at)
               ? (double)(at.us - w->due.us) / MICROS_A_SECOND
               : -1;
}

/* What a queued job has to wait for. */
static enum exit_code queue_tell(struct why *w, const struct table *job)
{
    const char *values[] = {why_value(job, "queue")};
    struct table *t = NULL;
    enum exit_code code = session_select(
        w->s,
        "SELECT workers, slots, running, held, hold_reason FROM reports.v_queue WHERE queue = $1",
        1, values, &t);
    if (code != EXIT_DONE) {
        return code;
    }
    if (table_rows(t) == 0) {
        why_add(w, "; the queue does not exist any more: insert it again into reports.queue");
    } else if (strcmp(why_value(t, "held"), "t") == 0) {
        why_add(w, "; the queue is held: %s", why_value(t, "hold_reason"));
    } else if (strcmp(why_value(t, "workers"), "0") == 0) {
        why_add(w, "; no living worker serves it");
    } else {
        why_add(w, "; its %s worker(s) have %s slots, of which %s run jobs",
                why_value(t, "workers"), why_value(t, "slots"), why_value(t, "running"));
    }
    table_free(t);
    return EXIT_DONE;
}

static enum exit_code state_tell(struct why *w, const struct table *t)
{
    const char *state = why_value(t, "state");
    bool manual = strcmp(why_value(t, "cause"), "manual") == 0;
    const char *lapsed = why_value(t, "lapsed_s");
    if (strcmp(state, "succeeded") == 0) {
        why_answer(w, "It was run, and was done %s after it was %s",
                   duration(since_due(w, t, "finished_at")).text, manual ? "asked for" : "due");
    } else if (strcmp(state, "failed") == 0) {
        why_answer(w, "It was run and has failed after %s attempt(s): %s", why_value(t, "attempt"),
                   why_value(t, "error"));
    } else if (strcmp(state, "cancelled") == 0) {
        why_answer(w, "Its job was cancelled%s%s", why_value(t, "error")[0] != '\0' ? ": " : "",
                   why_value(t, "error"));
    } else if (lapsed[0] != '\0') {
        why_answer(w,
                   "Its job was begun, attempt %s of %s, by worker %s, whose claim has lapsed %s "
                   "ago: the worker died, hung or was cut off, and a leader gives the job to "
                   "another",
                   why_value(t, "attempt"), why_value(t, "max_attempts"), why_value(t, "worker"),
                   duration(strtod(lapsed, NULL)).text);
    } else if (strcmp(state, "running") == 0) {
        why_answer(w, "Its job is running: attempt %s of %s, on worker %s", why_value(t, "attempt"),
                   why_value(t, "max_attempts"), why_value(t, "worker"));
    } else if (strcmp(state, "retry_wait") == 0) {
        why_answer(w, "Its job has failed %s time(s) and will be tried again: %s",
                   why_value(t, "attempt"), why_value(t, "error"));
    } else if (strcmp(state, "waiting") == 0) {
        why_answer(w, "Its job waits for %s", why_value(t, "waits_on"));
    } else if (strcmp(state, "queued") == 0) {
        why_answer(w, "Its job waits for a worker, in queue \"%s\"", why_value(t, "queue"));
        return queue_tell(w, t);
    } else {
        why_answer(w, "Its job is %s%s%s", state[0] != '\0' ? state : "not there: reportctl verify",
                   why_value(t, "error")[0] != '\0' ? ": " : "", why_value(t, "error"));
    }
    return EXIT_DONE;
}

/* Why it was planned late: who led, and what was held. */
static enum exit_code delay_tell(struct why *w, const struct table *t)
{
    double late = since_due(w, t, "planned_at");
    const char *cause = why_value(t, "cause");
    if (late <= LATE_S || strcmp(cause, "manual") == 0) {
        return EXIT_DONE;
    }
    if (strcmp(cause, "backfill") == 0) {
        why_add(w, "; a backfill that an operator asked for made it, %s after it was due",
                duration(late).text);
        return EXIT_DONE;
    }
    if (strcmp(cause, "edit") == 0) {
        why_add(w,
                "; it was planned %s after its time, since the edit that named this time came then",
                duration(late).text);
        return EXIT_DONE;
    }
    why_add(w, "; it was planned %s after it was due%s", duration(late).text,
            strcmp(cause, "misfire") == 0 ? ", as a missed firing" : "");
    const struct why_text from = why_utc(w->due);
    const char *values[] = {w->scope, from.text, why_value(t, "planned_at")};
    return why_hops_select(w,
                           "SELECT place, step, at, what FROM reports.why_around($1,"
                           " $2::timestamptz, $3::timestamptz)",
                           3, values);
}

static void due_tell(struct why *w, const struct table *t)
{
    if (strcmp(why_value(t, "cause"), "manual") == 0) {
        return; /* its first step is that it was asked for */
    }
    const char *moved = why_value(t, "moved");
    why_hop_add(
        &w->hops, WHY_PLACE_DUE, "due", w->due, "%s%s%s in %s, by %s \"%s\" of version %s%s%s",
        w->local, moved[0] != '\0' ? ", by its calendar " : "", moved, why_value(t, "time_zone"),
        why_value(t, "kind"), why_value(t, "rule"), why_value(t, "version"),
        why_value(t, "recorded_by")[0] != '\0' ? ", written by " : "", why_value(t, "recorded_by"));
}

enum exit_code why_chain_tell(struct why *w, const struct table *occurrence)
{
    const char *values[] = {w->ask.schedule, w->key};
    due_tell(w, occurrence);
    enum exit_code code = why_hops_select(
        w, "SELECT place, step, at, what FROM reports.why_chain($1, $2)", 2, values);
    if (code == EXIT_DONE) {
        code = state_tell(w, occurrence);
    }
    if (code == EXIT_DONE && strcmp(why_value(occurrence, "cause"), "manual") == 0) {
        struct why_ask time;
        bool of_a_firing =
            w->story.firing.found || (w->ask.form == WHY_KEY && why_ask_of_key(&w->ask, &time));
        why_add(w, "; an operator had asked for it, %s",
                of_a_firing ? "with the key of this time: the rule does not run it once more"
                            : "it is no firing of the rule");
    }
    return code == EXIT_DONE ? delay_tell(w, occurrence) : code;
}
