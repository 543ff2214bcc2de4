#include "planning_zone.h"

#include <stdlib.h>
#include <string.h>

#include "firing_move.h"
#include "log.h"
#include "scheduler_metrics.h"

#define WALK_AGAIN_MS 1000 /* a row was locked: the zone is gone through again */

/* Zones whose stored firings are gone through. */
struct zone_walk {
    struct zone_uses uses;     /* as last read */
    bool wanted[ZONE_SET_MAX]; /* uses.rows[i] is still to be gone through */
    struct zone_page page;
    char after[NAME_MAX_BYTES]; /* within the zone that is gone through */
    bool left;                  /* a row of it was passed over */
    bool stale;                 /* a zone was met that is not among the uses */
    instant at;                 /* not before */
    size_t outdated;            /* zones that another replica computed by newer data */
    size_t faults;              /* zones whose present file is no good */
    struct zone_move moves[PLAN_SCHEDULES_MAX];
    size_t move_count;
};

enum status planning_zones_open(struct planning *p, struct error *err)
{
    if (p->zone_walk == NULL) {
        zone_watch_begin(&p->zone_watch, p->options.tz_poll_ms);
        p->zone_walk = calloc(1, sizeof *p->zone_walk);
        if (p->zone_walk == NULL) {
            return error_set(err, STATUS_FATAL, "time zones: out of memory");
        }
    }
    enum status s = zone_watch_open(&p->zone_watch, p->options.tz_directory, clock_now(), err);
    p->zones = p->zone_watch.set;
    return s;
}

void planning_warm(struct planning *p)
{
    if (planning_zones_open(p, NULL) != STATUS_OK) {
        p->zones = NULL;
    }
}

void planning_zones_close(struct planning *p)
{
    zone_watch_end(&p->zone_watch);
    free(p->zone_walk);
    p->zone_walk = NULL;
    p->zones = NULL;
}

/* What people see: how many zones are not as they should be. */
static void standing_tell(struct planning *p, size_t outdated, const struct zone_use *first)
{
    struct zone_walk *w = p->zone_walk;
    const char *scope = p->authority->scope;
    if (outdated > 0 && outdated != w->outdated) {
        log_event(LOG_LEVEL_WARN,
                  "time zone data are older than another replica's: what it computed stays",
                  "scope=%s tzdata=%s newest=%s zones=%zu first=%s", scope,
                  zone_set_version(p->zones), first->newest_tzdata, outdated, first->time_zone);
    }
    w->outdated = outdated;
}

/* Compare what the database has with this replica's files: which zones are to be gone through, and
 * what is to be said of them. A zone that cannot be read here is left as it is. */
static size_t uses_compare(struct planning *p, struct zone_use *ret_notes)
{
    struct zone_walk *w = p->zone_walk;
    const char *version = zone_set_version(p->zones);
    const struct zone_use *first = NULL;
    size_t notes = 0;
    size_t outdated = 0;
    for (size_t i = 0; i < w->uses.count; i++) {
        struct zone_use *u = &w->uses.rows[i];
        const struct zone *zone = NULL;
        w->wanted[i] = false;
        if (zone_set_find(p->zones, u->time_zone, &zone, NULL) != STATUS_OK) {
            continue;
        }
        const char *digest = zone_set_digest(p->zones, u->time_zone);
        bool same = strcmp(digest, u->digest) == 0;
        if (tzdata_is_newer(u->newest_tzdata, version) && strcmp(u->newest_digest, digest) != 0) {
            first = first == NULL ? u : first;
            outdated++;
        }
        if (!same && u->digest[0] != '\0' && strcmp(u->tzdata, version) == 0) {
            log_event(LOG_LEVEL_WARN,
                      "time zone file is another than the one that counted, of the same tzdata",
                      "scope=%s time_zone=%s tzdata=%s digest=%s before=%s", p->authority->scope,
                      u->time_zone, version, digest, u->digest);
        }
        w->wanted[i] = !same || !u->settled;
        u->settled = same && u->settled;
        if (!same || strcmp(u->tzdata, version) != 0) {
            memcpy(u->digest, digest, strlen(digest) + 1);
            memcpy(u->tzdata, version, strlen(version) + 1);
            ret_notes[notes++] = *u;
        }
    }
    standing_tell(p, outdated, first);
    return notes;
}

/* Read anew which zones are in use. The walk begins with the first of those it finds. */
static enum status uses_take(struct planning *p, struct error *err)
{
    struct zone_walk *w = p->zone_walk;
    struct store_call call;
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_zones_in_use(&call, &w->uses, err);
    }
    w->after[0] = '\0';
    w->left = w->stale = false;
    w->at = (instant){0};
    if (s != STATUS_OK) {
        w->uses.count = 0;
        return s;
    }
    struct zone_use *notes = calloc(w->uses.count + 1, sizeof *notes);
    if (notes == NULL) {
        return error_set(err, STATUS_AGAIN, "out of memory");
    }
    size_t count = uses_compare(p, notes);
    if (count > 0) {
        s = planning_call(p, &call, err);
        s = s == STATUS_OK ? store_note_zones(&call, notes, count, err) : s;
    }
    free(notes);
    return s;
}

static void faults_tell(const struct planning *p)
{
    size_t faults = 0;
    for (size_t i = 0; i < zone_set_count(p->zones); i++) {
        faults += zone_set_facts(p->zones, i).fault[0] != '\0' ? 1 : 0;
    }
    metric_set(scheduler_metric(SCHEDULER_ZONE_FAULTS, p->authority->scope, NULL), (double)faults);
}

/* Another set of zones counts from now on: nothing that was computed with the old one is used. */
static void fresh_take(struct planning *p, struct zone_set *fresh)
{
    const char *scope = p->authority->scope;
    size_t changed = 0;
    size_t faults = 0;
    for (size_t i = 0; i < zone_set_count(fresh); i++) {
        struct zone_facts f = zone_set_facts(fresh, i);
        if (f.zone == NULL) {
            continue;
        }
        if (f.fault[0] != '\0') {
            faults++;
            log_event(LOG_LEVEL_ERROR, "time zone file is no good: its old data go on counting",
                      "scope=%s time_zone=%s error=%s", scope, f.name, log_quote(f.fault).text);
        } else if (strcmp(f.digest, zone_set_digest(p->zones, f.name)) != 0) {
            changed++;
        }
    }
    log_event(LOG_LEVEL_INFO, "time zone data have changed and count from now on",
              "scope=%s tzdata=%s before=%s zones_changed=%zu faults=%zu", scope,
              zone_set_version(fresh), zone_set_version(p->zones), changed, faults);
    metric_add(scheduler_metric(SCHEDULER_ZONE_RELOADS, scope, NULL), 1);
    planning_batch_clear(p);
    rest_clear(&p->zone_rest);
    zone_watch_take(&p->zone_watch, fresh);
    p->zones = p->zone_watch.set;
    faults_tell(p);
}

/* Where their time has come: the files, and the zones in use, of which new schedules bring more. */
static enum status files_look(struct planning *p, struct error *err)
{
    struct zone_set *fresh = NULL;
    struct error why = {.text = ""};
    instant now = clock_now();
    if (instant_before(now, p->zone_watch.look_at)) {
        return p->zone_walk->stale ? uses_take(p, err) : STATUS_OK;
    }
    if (zone_watch_look(&p->zone_watch, now, &fresh, &why) != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "time zone data are no good: the old ones go on counting",
                  "scope=%s error=%s", p->authority->scope, log_quote(why.text).text);
        metric_set(scheduler_metric(SCHEDULER_ZONE_FAULTS, p->authority->scope, NULL), 1);
    }
    if (fresh != NULL) {
        fresh_take(p, fresh);
    }
    return uses_take(p, err);
}

static struct zone_use *walk_zone(struct zone_walk *w, size_t *ret_index)
{
    for (size_t i = 0; i < w->uses.count; i++) {
        if (w->wanted[i]) {
            *ret_index = i;
            return &w->uses.rows[i];
        }
    }
    return NULL;
}

/* Compute one. Returns: OK; INVALID (the rule names no firing by these data: the text is the
 * schedule's problem); CORRUPT; FATAL. */
static enum status move_fill(struct planning *p, const struct due_row *row, struct zone_move *m,
                             struct error *err)
{
    struct rule rule;
    struct rule_bounds bounds = {row->rule.starts_at, row->rule.ends_at};
    enum status s = stored_rule_parse(&row->rule, p->zones, &rule, err);
    if (s != STATUS_OK) {
        return s;
    }
    *m = (struct zone_move){.step = row->step,
                            .old = row->next,
                            .next = firing_move(&rule, bounds, &row->next),
                            .switched_at = UTC_NONE};
    if (m->next.held) {
        return error_set(err, STATUS_INVALID, "its calendar does not know the day");
    }
    memcpy(m->schedule, row->schedule, sizeof m->schedule);
    memcpy(m->time_zone, row->rule.time_zone, sizeof m->time_zone);
    memcpy(m->old_tzdata, row->tzdata, sizeof m->old_tzdata);
    memcpy(m->digest, zone_set_digest(p->zones, row->rule.time_zone), sizeof m->digest);
    /* Planning finds the next firing behind the last one. Where the clock was set back, times
     * behind that come again that have had their firing; where it was set forward, this one may lie
     * before it. */
    utc_us base = {row->switched_at.us - 1};
    base = row->last_fire_at.us > base.us ? row->last_fire_at : base;
    struct firing found = rule_next_within(&rule, base, bounds);
    if (m->next.found && (!found.found || found.at.us != m->next.at.us)) {
        m->switched_at = m->next.at;
    }
    return STATUS_OK;
}

bool planning_zones_take(struct planning *p, const struct due_row *row)
{
    struct zone_walk *w = p->zone_walk;
    const struct zone *zone = NULL;
    if (zone_set_find(p->zones, row->rule.time_zone, &zone, NULL) != STATUS_OK ||
        !row->next.found || zone_standing_of(row, p->zones) != ZONE_MOVES) {
        return false;
    }
    /* One that has no place now has its turn with the next batch, and one whose rule names no
     * firing by these data is planned: that says what its problem is. */
    if (w->move_count == PLAN_SCHEDULES_MAX) {
        return true;
    }
    if (move_fill(p, row, &w->moves[w->move_count], NULL) != STATUS_OK) {
        return false;
    }
    w->move_count++;
    return true;
}

const struct zone_move *planning_zone_moves(const struct planning *p)
{
    return p->zone_walk->moves;
}

enum status planning_zones_move(struct planning *p, struct error *err)
{
    struct zone_walk *w = p->zone_walk;
    size_t count = w->move_count;
    w->move_count = 0;
    if (count == 0) {
        return STATUS_OK;
    }
    p->result.more = true;
    return planning_write_moves(p, count, err);
}

/* The rows of a page: what may move is moved. A row in the way of planning is not blamed here: when
 * it is due, planning says what is wrong with it. */
static enum status page_move(struct planning *p, struct error *err)
{
    struct zone_walk *w = p->zone_walk;
    const char *names[ZONE_PAGE_MAX];
    struct store_call call;
    for (size_t i = 0; i < w->page.count; i++) {
        names[i] = w->page.names[i];
    }
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_progress_of(&call, names, w->page.count, &p->ahead, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    for (size_t i = 0; i < p->ahead.count; i++) {
        const struct due_row *row = &p->ahead.rows[i];
        if (!row->next.found) {
            continue;
        }
        if (rest_is_on(&p->rest, row->schedule, clock_now())) {
            w->left = true;
        } else if (row->zone_digest[0] == '\0' || zone_standing_of(row, p->zones) == ZONE_MOVES) {
            s = move_fill(p, row, &w->moves[w->move_count], NULL);
            w->move_count += s == STATUS_OK ? 1 : 0;
        }
    }
    size_t sent = w->move_count;
    size_t before = p->moved;
    s = planning_zones_move(p, err);
    w->left = w->left || p->moved - before < sent;
    return s;
}

/* A zone is gone through. Rows that were in use are looked at again soon, with all of the zone. */
static enum status zone_finish(struct planning *p, size_t index, struct error *err)
{
    struct zone_walk *w = p->zone_walk;
    struct store_call call;
    w->after[0] = '\0';
    if (w->left) {
        w->left = false;
        w->at = instant_add_ms(clock_now(), WALK_AGAIN_MS);
        return STATUS_OK;
    }
    struct zone_use note = w->uses.rows[index];
    note.settled = true;
    enum status s = planning_call(p, &call, err);
    s = s == STATUS_OK ? store_note_zones(&call, &note, 1, err) : s;
    if (s == STATUS_OK) {
        w->uses.rows[index].settled = true;
        w->wanted[index] = false;
    }
    return s;
}

static enum status page_walk(struct planning *p, struct error *err)
{
    struct zone_walk *w = p->zone_walk;
    struct store_call call;
    size_t index = 0;
    const struct zone_use *u = walk_zone(w, &index);
    if (u == NULL || instant_before(clock_now(), w->at)) {
        return STATUS_OK;
    }
    const struct zone_asked asked = {
        .time_zone = u->time_zone, .digest = u->digest, .after = w->after};
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_of_zone(&call, asked, &w->page, err);
    }
    if (s == STATUS_OK && w->page.count > 0) {
        s = page_move(p, err);
    }
    if (s == STATUS_OK && w->page.looked_at[0] == '\0') {
        s = zone_finish(p, index, err);
    } else if (s == STATUS_OK) {
        memcpy(w->after, w->page.looked_at, sizeof w->after);
    }
    p->result.more =
        p->result.more || (walk_zone(w, &index) != NULL && !instant_before(clock_now(), w->at));
    return s;
}

void planning_zones_met(struct planning *p, const char *time_zone)
{
    struct zone_walk *w = p->zone_walk;
    size_t i = 0;
    while (i < w->uses.count && strcmp(w->uses.rows[i].time_zone, time_zone) != 0) {
        i++;
    }
    w->stale = w->stale || i == w->uses.count;
}

enum status planning_zones_prepare(struct planning *p, struct error *err)
{
    p->zone_walk->move_count = 0;
    p->zone_walk->outdated = 0;
    struct zone_set *fresh = zone_watch_refresh(&p->zone_watch, clock_now());
    if (fresh != NULL) {
        fresh_take(p, fresh); /* a follower looks at no files: they may have changed long ago */
    }
    faults_tell(p);
    return uses_take(p, err);
}

enum status planning_zones_step(struct planning *p, struct error *err)
{
    enum status s = files_look(p, err);
    return s == STATUS_OK ? page_walk(p, err) : s;
}

instant planning_zones_at(const struct planning *p)
{
    size_t index = 0;
    bool walks = walk_zone(p->zone_walk, &index) != NULL;
    instant at =
        walks ? instant_min(p->zone_walk->at, p->zone_watch.look_at) : p->zone_watch.look_at;
    return p->zone_walk->stale ? (instant){0} : at;
}
