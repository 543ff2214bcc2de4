/* sql/0006_tending.sql. */
#include <string.h>

#include "database.h"
#include "mutant.h"
#include "world.h"

#define SECOND_US  INT64_C(1000000)
#define FURTHER_US 10000000 /* what lies further ahead was made by another clock */

int64_t retry_delay(int64_t base, int64_t cap, int attempt)
{
    int64_t wait = base;
    for (int i = 1; i < attempt && i < 30 && wait < cap; i++) {
        wait *= 2;
    }
    wait = wait < cap ? wait : cap;
    int64_t low = wait * 3 / 4;
    int64_t high = wait * 5 / 4 < cap ? wait * 5 / 4 : cap;
    return high > low ? chance_in(kernel_chance(), low, high) : low;
}

struct db_outbox *outbox_add(struct transaction *t, size_t job)
{
    for (size_t i = 0; i < OUTBOX_MAX; i++) {
        struct db_outbox *o = &db.outbox[i];
        if (o->used) {
            continue;
        }
        *o = (struct db_outbox){.used = true,
                                .id = ++db.next_outbox,
                                .scope = db.jobs[job].scope,
                                .job = job,
                                .dispatch_number = db.jobs[job].dispatch_number,
                                .generation = t->authority.generation,
                                .created_at = t->now};
        db.outbox_count = i + 1 > db.outbox_count ? i + 1 : db.outbox_count;
        tell_outbox(t, o);
        return o;
    }
    return NULL;
}

static bool is_open(const struct db_job *j)
{
    return j->state == JOB_WAITING || j->state == JOB_QUEUED || j->state == JOB_RUNNING ||
           j->state == JOB_RETRY_WAIT || j->state == JOB_QUARANTINED;
}

static bool is_active(const struct db_job *j)
{
    /* As a call sees it that has decided before it waited for its locks. */
    if (MUTANT("overlap_without_lock") &&
        db.occurrences[j - db.jobs].scheduled_for > database_now() - 3000000) {
        return false;
    }
    return is_open(j) && j->overlap != OVERLAP_ALLOW && j->waits != WAITS_FOR_OVERLAP;
}

static bool has_active_job(int schedule)
{
    for (size_t i = 0; i < db.job_count; i++) {
        if (db.occurrences[i].schedule == schedule && is_active(&db.jobs[i])) {
            return true;
        }
    }
    return false;
}

size_t open_jobs(int schedule, size_t *ret_jobs, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < db.job_count && n < most; i++) {
        const struct db_job *j = &db.jobs[i];
        bool waits = j->state == JOB_WAITING && j->waits == WAITS_FOR_OVERLAP;
        if (db.occurrences[i].schedule == schedule && (is_active(j) || waits)) {
            ret_jobs[n++] = i;
        }
    }
    return n;
}

void replace_jobs(struct transaction *t, size_t newest)
{
    size_t open[64];
    size_t n = open_jobs(db.occurrences[newest].schedule, open, 64);
    for (size_t i = 0; i < n; i++) {
        struct db_job *j = &db.jobs[open[i]];
        if (open[i] == newest) {
            continue;
        }
        if (j->state == JOB_RUNNING) {
            j->cancel_requested = true;
        } else {
            j->state = JOB_CANCELLED;
        }
        j->waits = WAITS_FOR_NOTHING;
        tell_job(t, open[i]);
    }
}

void adopt_overlap(struct transaction *t, int schedule, enum overlap_policy overlap)
{
    for (size_t i = 0; i < db.job_count; i++) {
        struct db_job *j = &db.jobs[i];
        if (db.occurrences[i].schedule != schedule || j->overlap == overlap || !is_open(j)) {
            continue;
        }
        bool was_free = j->overlap == OVERLAP_ALLOW;
        if (was_free && (j->state == JOB_WAITING || j->state == JOB_QUEUED)) {
            j->state = JOB_WAITING;
            j->waits = WAITS_FOR_OVERLAP;
        } else if (overlap == OVERLAP_ALLOW && j->state == JOB_WAITING) {
            j->waits = WAITS_FOR_CAPACITY;
        }
        j->overlap = overlap;
        tell_job(t, i);
    }
}

/* Earlier by (run_after, id). */
static bool comes_before(size_t a, size_t b)
{
    const struct db_job *x = &db.jobs[a];
    const struct db_job *y = &db.jobs[b];
    return x->run_after != y->run_after ? x->run_after < y->run_after : strcmp(x->id, y->id) < 0;
}

static void give_turns(struct transaction *t)
{
    for (int s = 0; s < db.schedules; s++) {
        size_t first = db.job_count;
        if (db.schedule_scope[s] != t->scope || has_active_job(s)) {
            continue;
        }
        for (size_t i = 0; i < db.job_count; i++) {
            const struct db_job *j = &db.jobs[i];
            if (db.occurrences[i].schedule == s && j->state == JOB_WAITING &&
                j->waits == WAITS_FOR_OVERLAP &&
                (first == db.job_count || comes_before(i, first))) {
                first = i;
            }
        }
        if (first < db.job_count) {
            db.jobs[first].waits = WAITS_FOR_CAPACITY;
            tell_job(t, first);
        }
    }
}

static int64_t room_in(int scope, int queue)
{
    int64_t bound = world.setup.queue_bound[queue];
    int64_t used = 0;
    if (MUTANT("capacity_ignored")) {
        return INT64_MAX;
    }
    for (size_t i = 0; bound > 0 && i < db.job_count; i++) {
        const struct db_job *j = &db.jobs[i];
        used += j->scope == scope && j->queue == queue &&
                        (j->state == JOB_QUEUED || j->state == JOB_RUNNING)
                    ? 1
                    : 0;
    }
    return bound == 0 ? INT64_MAX : bound > used ? bound - used : 0;
}

static int fill_room(struct transaction *t, bool catch_up, int limit)
{
    int filled = 0;
    while (filled < limit) {
        size_t first = db.job_count;
        for (size_t i = 0; i < db.job_count; i++) {
            const struct db_job *j = &db.jobs[i];
            if (j->scope == t->scope && j->state == JOB_WAITING && j->waits == WAITS_FOR_CAPACITY &&
                j->catch_up == catch_up && (first == db.job_count || comes_before(i, first)) &&
                room_in(t->scope, j->queue) > 0) {
                first = i;
            }
        }
        if (first == db.job_count) {
            return filled;
        }
        struct db_job *j = &db.jobs[first];
        j->state = JOB_QUEUED;
        j->waits = WAITS_FOR_NOTHING;
        j->dispatch_number++;
        tell_job(t, first);
        if (!MUTANT("queued_without_message")) {
            (void)outbox_add(t, first);
        }
        filled++;
    }
    return filled;
}

/* May a retry go on, or does another job of its schedule come first? */
static bool turn_is_others(size_t job, const bool *ready)
{
    for (size_t i = 0; i < db.job_count; i++) {
        const struct db_job *o = &db.jobs[i];
        if (i == job || db.occurrences[i].schedule != db.occurrences[job].schedule ||
            !is_active(o)) {
            continue;
        }
        if (o->state != JOB_RETRY_WAIT || (comes_before(i, job) && ready[i])) {
            return true;
        }
    }
    return false;
}

static void release_retries(struct transaction *t)
{
    static bool ready[OCCURRENCES_MAX];
    static bool turns[OCCURRENCES_MAX];
    for (size_t i = 0; i < db.job_count; i++) {
        const struct db_job *j = &db.jobs[i];
        ready[i] = j->scope == t->scope && j->state == JOB_RETRY_WAIT && j->run_after <= t->now;
    }
    for (size_t i = 0; i < db.job_count; i++) {
        turns[i] = ready[i] && db.jobs[i].overlap != OVERLAP_ALLOW && turn_is_others(i, ready);
    }
    for (size_t i = 0; i < db.job_count; i++) {
        struct db_job *j = &db.jobs[i];
        if (!ready[i]) {
            continue;
        }
        j->state = j->cancel_requested ? JOB_CANCELLED : JOB_WAITING;
        j->waits = j->cancel_requested ? WAITS_FOR_NOTHING
                   : turns[i]          ? WAITS_FOR_OVERLAP
                                       : WAITS_FOR_CAPACITY;
        tell_job(t, i);
    }
}

/* catch_up_forget: what a clock that was set back has left in the future counts from now. */
static void catch_up_forget(struct transaction *t)
{
    int64_t now = t->now / SECOND_US * SECOND_US;
    for (size_t i = 0; i < RELEASES_MAX; i++) {
        struct db_release *r = &db.releases[t->scope][i];
        r->jobs = r->second <= now - 62 * SECOND_US ? 0 : r->jobs;
        r->second = r->second > now + SECOND_US ? now : r->second;
    }
}

static int64_t catch_up_used(const struct transaction *t)
{
    int64_t used = 0;
    for (size_t i = 0; i < RELEASES_MAX; i++) {
        const struct db_release *r = &db.releases[t->scope][i];
        used += r->second > t->now - 61 * SECOND_US ? r->jobs : 0;
    }
    return used;
}

static void catch_up_count(struct transaction *t, int jobs)
{
    struct db_release *own = NULL;
    int64_t now = t->now / SECOND_US * SECOND_US;
    for (size_t i = 0; i < RELEASES_MAX && jobs > 0; i++) {
        struct db_release *r = &db.releases[t->scope][i];
        if (r->jobs == 0 ? own == NULL : r->second == now) {
            own = r;
        }
    }
    if (own != NULL) {
        *own = (struct db_release){.second = now, .jobs = own->jobs + jobs};
    }
}

int release_waiting(struct transaction *t, int limit)
{
    release_retries(t);
    give_turns(t);
    int released = fill_room(t, false, limit);
    int64_t budget = limit - released;
    int64_t most = world.setup.catch_up_max[t->scope];
    for (size_t i = 0; most > 0 && i < db.job_count; i++) {
        const struct db_job *j = &db.jobs[i];
        most -= j->scope == t->scope && j->catch_up &&
                        (j->state == JOB_QUEUED || j->state == JOB_RUNNING)
                    ? 1
                    : 0;
    }
    if (world.setup.catch_up_max[t->scope] > 0) {
        budget = most < budget ? most : budget;
    }
    catch_up_forget(t);
    if (world.setup.catch_up_per_minute[t->scope] > 0 && !MUTANT("budget_forgotten")) {
        int64_t left = world.setup.catch_up_per_minute[t->scope] - catch_up_used(t);
        budget = left < budget ? left : budget;
    }
    int caught_up = budget > 0 ? fill_room(t, true, (int)budget) : 0;
    catch_up_count(t, caught_up);
    return released + caught_up;
}

/* tend -------------------------------------------------------------------------------------------
 */

static void job_lose(struct transaction *t, size_t i)
{
    struct db_job *j = &db.jobs[i];
    char token[UUID_TEXT_MAX];
    bool used_up = j->attempt - j->handed_back >= j->max_attempts;
    memcpy(token, j->token, sizeof token);
    int worker = j->worker;
    if (db.attempt_count < ATTEMPTS_MAX) {
        struct db_attempt *a = &db.attempts[db.attempt_count++];
        *a = (struct db_attempt){.job = i, .attempt = j->attempt, .lost = true};
        memcpy(a->token, token, sizeof a->token);
    }
    j->state = j->cancel_requested ? JOB_CANCELLED : used_up ? JOB_FAILED : JOB_RETRY_WAIT;
    j->run_after = t->now + retry_delay(j->retry_base, j->retry_cap, j->attempt - j->handed_back);
    j->token[0] = '\0';
    j->worker = -1;
    tell_attempt(t, i, j->attempt, token, db.workers[worker].id, JOB_RETRY_WAIT);
    tell_job(t, i);
}

static void workers_bury(struct transaction *t)
{
    for (size_t w = 0; w < db.worker_count; w++) {
        struct db_worker *u = &db.workers[w];
        bool lives = u->state == WORKER_ALIVE || u->state == WORKER_DRAINING;
        bool silent = u->heartbeat_at + u->claim_lease + world.setup.reap_grace_us < t->now ||
                      u->heartbeat_at > t->now + FURTHER_US;
        for (size_t i = 0; lives && silent && i < db.job_count; i++) {
            const struct db_job *j = &db.jobs[i];
            silent = !(j->state == JOB_RUNNING && j->worker == (int)w &&
                       j->lease_until + world.setup.reap_grace_us >= t->now);
        }
        u->state = lives && silent ? WORKER_DEAD : u->state;
    }
}

/* No renewal puts it there: the clock was ahead then. */
static bool is_ahead(const struct transaction *t, const struct db_job *j)
{
    return j->state == JOB_RUNNING && j->scope == t->scope &&
           j->lease_until > t->now + lease_longest() + world.setup.reap_grace_us + FURTHER_US;
}

static void leases_set_back(struct transaction *t)
{
    for (size_t i = 0; i < db.job_count; i++) {
        if (is_ahead(t, &db.jobs[i])) {
            db.jobs[i].lease_until = t->now + lease_longest();
            tell_job(t, i);
        }
    }
}

static void reap(struct transaction *t, struct tended_world *w)
{
    int64_t early = MUTANT("reap_early") ? world.setup.claim_lease_us / 2 : 0;
    for (size_t i = 0; i < db.job_count && w->reaped < w->limit; i++) {
        const struct db_job *j = &db.jobs[i];
        if (j->state == JOB_RUNNING && j->scope == t->scope &&
            (j->lease_until + world.setup.reap_grace_us < t->now + early ||
             (MUTANT("reap_from_ahead") && is_ahead(t, j)))) {
            job_lose(t, i);
            w->reaped++;
        }
    }
    workers_bury(t);
}

static void count_held_back(struct transaction *t, struct tended_world *w)
{
    w->next_release = HISTORY_NONE;
    for (size_t i = 0; i < db.job_count; i++) {
        const struct db_job *j = &db.jobs[i];
        if (j->scope != t->scope) {
            continue;
        }
        w->running += j->state == JOB_RUNNING ? 1 : 0;
        w->held_back += j->state == JOB_WAITING || j->state == JOB_RETRY_WAIT ? 1 : 0;
        if (j->state == JOB_RETRY_WAIT &&
            (w->next_release == HISTORY_NONE || j->run_after < w->next_release)) {
            w->next_release = j->run_after;
        }
    }
}

enum call_verdict tend(struct transaction *t, struct tended_world *w)
{
    if (!fence_holds(t)) {
        return VERDICT_FENCED;
    }
    const char *const marks[] = {w->known};
    if (job_not_known(t->scope, marks, 1) != NULL) {
        w->moved = true;
        return VERDICT_ERROR;
    }
    bool known = w->clock_from != HISTORY_NONE && w->clock_to != HISTORY_NONE;
    w->stepped = known && (t->now < w->clock_from - 1000000 || t->now > w->clock_to + 1000000);
    w->beaten = beat(t, t->scope, w->stepped, known);
    bool may_reap = t->now >= db.fences[t->scope].reap_not_before && !w->stepped && w->beaten;
    if (!MUTANT("reap_from_ahead")) {
        leases_set_back(t);
    }
    if (may_reap || MUTANT("reap_without_pause")) {
        reap(t, w);
    }
    if (!is_held(t->scope)) {
        w->released = release_waiting(t, w->limit);
    }
    count_held_back(t, w);
    return VERDICT_OK;
}
