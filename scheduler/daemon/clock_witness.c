#include "clock_witness.h"

#include <inttypes.h>
#include <stdio.h>

#include "ident.h"
#include "log.h"
#include "scheduler_metrics.h"

#define SAMPLE_MS 5000  /* three of them over ten seconds lift a hold */
#define LEADER_MS 6000  /* an idle leader's rounds of care are samples, 5 seconds apart */
#define NOTE_MS   15000 /* sql/0017_clock.sql counts on one in that time */
#define AGAIN_MS  1100  /* a sample sooner than a second after the last is not taken */

const char *clock_ruling_name(enum clock_ruling ruling)
{
    static const char *const names[CLOCK_RULINGS] = {"noted",  "stale", "waits",
                                                     "raised", "known", "own"};
    return (size_t)ruling < CLOCK_RULINGS ? names[ruling] : "?";
}

void clock_witness_begin(struct clock_witness *w, struct clock_watch *watch, const char *member)
{
    *w = (struct clock_witness){.watch = watch, .member = member, .sample_at = INSTANT_NEVER};
    if (watch == NULL) {
        return;
    }
    w->sample_at = w->note_at = clock_now();
    if (!boot_id_read(w->boot, sizeof w->boot)) {
        (void)snprintf(w->boot, sizeof w->boot, "unknown");
    }
    metric_set(scheduler_metric(SCHEDULER_CLOCK_SUSPECT, NULL, NULL), 0);
    for (size_t i = CLOCK_RAISED; i < CLOCK_RULINGS; i++) {
        (void)scheduler_metric(SCHEDULER_CLOCK_STEPS, clock_ruling_name((enum clock_ruling)i),
                               NULL);
    }
}

void clock_witness_hurry(struct clock_witness *w)
{
    w->sample_at = w->note_at = clock_now();
}

static void ruling_tell(const struct clock_answer *a)
{
    static const char *const said[CLOCK_RULINGS] = {
        [CLOCK_NOTED] = "by the samples in the database neither clock was stepped",
        [CLOCK_STALE] = "",
        [CLOCK_WAITS] = "other machines are asked whether the database's clock was stepped",
        [CLOCK_RAISED] = "the database's clock was stepped: the installation is held",
        [CLOCK_KNOWN] = "the database's clock was stepped, as was known",
        [CLOCK_OWN] = "other machines saw no step of the database's clock: this one was stopped",
    };
    log_event(LOG_LEVEL_WARN, said[a->ruling], "verdict=%s step_ms=%" PRId64 " hold=%" PRId64,
              clock_ruling_name(a->ruling), a->step_us / 1000, a->hold);
    if (a->ruling >= CLOCK_RAISED) {
        metric_add(scheduler_metric(SCHEDULER_CLOCK_STEPS, clock_ruling_name(a->ruling), NULL), 1);
    }
}

static void answer_take(struct clock_witness *w, const struct clock_answer *a,
                        struct clock_sample sample)
{
    bool suspect = clock_watch_is_suspect(w->watch);
    bool waits = a->ruling == CLOCK_WAITS;
    bool news = a->step_us != 0 ? a->ruling != w->last : suspect;
    if (a->ruling != CLOCK_STALE && news) {
        ruling_tell(a);
    }
    if (a->lifted) {
        log_event(LOG_LEVEL_INFO, "the database's clock is consistent: its hold is lifted", NULL);
    }
    w->last = waits ? CLOCK_WAITS : CLOCK_NOTED;
    w->hold = a->hold;
    if (suspect && a->ruling != CLOCK_STALE && !waits) {
        clock_watch_settle(w->watch, sample);
    } else if (waits && !suspect) {
        clock_watch_doubt(w->watch, a->step_us);
    }
    bool soon = a->ruling == CLOCK_STALE || waits;
    w->sample_at = instant_add_ms(clock_now(), soon ? AGAIN_MS : SAMPLE_MS);
    w->note_at = soon || a->hold != 0 ? w->sample_at : instant_add_ms(clock_now(), NOTE_MS);
}

/* A leader's work brings samples enough: an idle one asks the server less than once a second. */
static bool is_sampled(struct clock_witness *w)
{
    instant now = clock_now();
    instant next = instant_add_ms(clock_watch_taken_at(w->watch), LEADER_MS);
    if (!instant_before(now, w->note_at) || !instant_before(now, next) ||
        clock_watch_is_suspect(w->watch)) {
        return false;
    }
    w->sample_at = instant_min(next, w->note_at);
    return true;
}

enum status clock_witness_turn(struct clock_witness *w, struct store *store, int64_t statement_ms,
                               struct error *err)
{
    enum clock_kept kept = CLOCK_KEPT_UNKNOWN;
    if (is_sampled(w)) {
        return STATUS_OK;
    }
    struct clock_sample sample = {.before = clock_now()};
    w->sample_at = instant_add_ms(sample.before, SAMPLE_MS);
    enum status s =
        store_clock(store, instant_add_ms(sample.before, statement_ms), &sample.said, err);
    if (s != STATUS_OK) {
        return s;
    }
    sample.after = clock_now();
    struct clock_note note = {.member = w->member, .boot = w->boot, .sample = sample};
    note.offset_us = clock_sample_offset_us(&sample, clock_wall(&kept));
    note.kept = kept;
    bool good = clock_watch_take(w->watch, sample.said, sample.before);
    metric_set(scheduler_metric(SCHEDULER_CLOCK_OFFSET, NULL, NULL), (double)note.offset_us / 1e6);
    metric_set(scheduler_metric(SCHEDULER_CLOCK_ROUND_TRIP, NULL, NULL),
               (double)clock_sample_round_trip_us(&sample) / 1e6);
    if (!good || !instant_before(clock_now(), w->note_at)) {
        struct clock_answer answer;
        s = store_note_clock(store, &note, instant_add_ms(clock_now(), statement_ms), &answer, err);
        if (s == STATUS_OK) {
            answer_take(w, &answer, sample);
        } else {
            w->sample_at = instant_add_ms(clock_now(), AGAIN_MS);
        }
    }
    metric_set(scheduler_metric(SCHEDULER_CLOCK_SUSPECT, NULL, NULL),
               clock_watch_is_suspect(w->watch));
    return s;
}
