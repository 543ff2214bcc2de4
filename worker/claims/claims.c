#include "claims.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "claim_list.h"
#include "token_memory.h"

#define SAFETY_LEAST_MS 200
#define WAIT_SLICE_MS   1000 /* conditions wait in MONOTONIC time, deadlines are BOOTTIME */

enum claim_state {
    CLAIM_FREE,
    CLAIM_WAITING,
    CLAIM_RUNNING,
    CLAIM_DONE,
    CLAIM_RECORDING,
    CLAIM_RESTING /* as DONE, but not before its rest is over */
};

#define STATES 6

struct claims {
    pthread_mutex_t mutex; /* protects all below, and the `own` part of each entry */
    pthread_cond_t waiting_changed;
    pthread_cond_t done_changed;
    pthread_cond_t room_changed;
    size_t slots;
    size_t capacity;
    /* Every entry is in the list of its state; moving it is the only way to change the state. */
    struct claim_list lists[STATES];
    size_t collect_most; /* so many DONE end the collector's wait for company */
    size_t idle;         /* runners that wait for a claim */
    bool waking;         /* one of them was woken and has not looked yet: it wakes the next */
    bool stopped;
    struct token_memory begun;
    struct claim *entries;
};

/* A condition variable that is not touched by steps of the wall clock. */
static void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

struct claims *claims_new(size_t slots, size_t backlog)
{
    struct claims *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->slots = slots;
    c->capacity = slots + backlog;
    c->entries = calloc(c->capacity, sizeof *c->entries);
    (void)pthread_mutex_init(&c->mutex, NULL);
    condition_init(&c->waiting_changed);
    condition_init(&c->done_changed);
    condition_init(&c->room_changed);
    if (c->entries == NULL) {
        claims_free(c);
        return NULL;
    }
    for (size_t i = 0; i < c->capacity; i++) {
        c->entries[i].own.state = CLAIM_FREE;
        claim_list_append(&c->lists[CLAIM_FREE], &c->entries[i]);
    }
    return c;
}

void claims_free(struct claims *c)
{
    if (c == NULL) {
        return;
    }
    for (size_t i = 0; c->entries != NULL && i < c->capacity; i++) {
        job_free(c->entries[i].job);
    }
    free(c->entries);
    (void)pthread_cond_destroy(&c->waiting_changed);
    (void)pthread_cond_destroy(&c->done_changed);
    (void)pthread_cond_destroy(&c->room_changed);
    (void)pthread_mutex_destroy(&c->mutex);
    free(c);
}

instant claim_deadline(instant sent, int64_t lease_ms)
{
    int64_t safety = lease_ms / 4 > SAFETY_LEAST_MS ? lease_ms / 4 : SAFETY_LEAST_MS;
    return instant_add_ms(sent, lease_ms - safety);
}

/* Wait for a change, at most a slice; false once the deadline has passed. With the mutex held. */
static bool wait_change(struct claims *c, pthread_cond_t *condition, instant deadline)
{
    int64_t ms = instant_ms_between(clock_now(), deadline);
    if (ms < 0) {
        return false;
    }
    ms = ms >= WAIT_SLICE_MS ? WAIT_SLICE_MS : ms + 1;
    struct timespec until = clock_wait_end(ms);
    (void)pthread_cond_timedwait(condition, &c->mutex, &until);
    return true;
}

/* With the mutex held. One runner is woken, and wakes the next when it has taken its claim; one
 * that was awake wakes nobody. So a batch of short jobs is done by few, and long ones all begin. */
static void runner_wake(struct claims *c)
{
    if (!c->waking && c->idle > 0 && c->lists[CLAIM_WAITING].count > 0) {
        c->waking = true;
        (void)pthread_cond_signal(&c->waiting_changed);
    }
}

/* The one place where an entry changes its state. With the mutex held. */
static void state_set(struct claims *c, struct claim *e, enum claim_state state)
{
    claim_list_remove(&c->lists[e->own.state], e);
    claim_list_append(&c->lists[state], e);
    e->own.state = (int)state;
    switch (state) {
    case CLAIM_WAITING:
        runner_wake(c);
        break;
    case CLAIM_DONE:
        /* Not for each of them: the collector waits for the first, and then for a full batch. */
        if (c->lists[CLAIM_DONE].count == 1 || c->lists[CLAIM_DONE].count >= c->collect_most) {
            (void)pthread_cond_broadcast(&c->done_changed);
        }
        (void)pthread_cond_broadcast(&c->room_changed);
        break;
    case CLAIM_FREE:
        (void)pthread_cond_broadcast(&c->room_changed);
        break;
    case CLAIM_RUNNING:
    case CLAIM_RECORDING:
    case CLAIM_RESTING:
        break;
    }
}

static void entry_forget(struct claims *c, struct claim *e)
{
    job_free(e->job);
    e->job = NULL;
    state_set(c, e, CLAIM_FREE);
}

static struct claim *entry_find(struct claims *c, const char *job_id, const char *token)
{
    for (int state = CLAIM_WAITING; state < STATES; state++) {
        for (struct claim *e = c->lists[state].first; e != NULL; e = e->own.behind) {
            if (strcmp(e->job->token, token) == 0 && strcmp(e->job->id, job_id) == 0) {
                return e;
            }
        }
    }
    return NULL;
}

enum status claims_add(struct claims *c, struct job *job, instant deadline)
{
    (void)pthread_mutex_lock(&c->mutex);
    struct claim *e = c->lists[CLAIM_FREE].first;
    if (e != NULL) {
        e->job = job;
        e->own.kill = KILL_NONE;
        e->locked = 0;
        e->own.deadline = deadline;
        e->own.end = INSTANT_NEVER;
        e->own.wake_fd = e->own.source_fd = -1;
        token_memory_add(&c->begun, job->token);
        state_set(c, e, CLAIM_WAITING);
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return e == NULL ? STATUS_FULL : STATUS_OK;
}

enum claim_known claims_knows(struct claims *c, const char *job_id, const char *token)
{
    (void)pthread_mutex_lock(&c->mutex);
    enum claim_known known = CLAIM_UNKNOWN;
    if (entry_find(c, job_id, token) != NULL) {
        known = CLAIM_HELD;
    } else if (token_memory_has(&c->begun, token)) {
        known = CLAIM_ENDED;
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return known;
}

/* With the mutex held. Outcomes that wait to be recorded are not touched: the database decides. */
static bool entry_kill(struct claim *e, enum claim_kill why)
{
    if (e == NULL || e->own.state > CLAIM_RUNNING || e->own.kill >= why) {
        return false;
    }
    e->own.kill = why;
    if (why >= KILL_EXPIRED && e->own.source_fd >= 0) {
        /* The runner may hang in a write to disk; the server must not go on for nobody. */
        (void)shutdown(e->own.source_fd, SHUT_RDWR);
    }
    if (e->own.wake_fd >= 0) {
        uint64_t one = 1;
        ssize_t ignored = write(e->own.wake_fd, &one, sizeof one);
        (void)ignored;
    }
    return true;
}

struct claim *claims_take(struct claims *c, int wake_fd, instant deadline)
{
    (void)pthread_mutex_lock(&c->mutex);
    bool in_time = true;
    while (!c->stopped && c->lists[CLAIM_WAITING].count == 0 && in_time) {
        c->idle++;
        in_time = wait_change(c, &c->waiting_changed, deadline);
        c->idle--;
        c->waking = false; /* if another one was meant, at worst one too many is woken */
    }
    struct claim *e = c->stopped ? NULL : c->lists[CLAIM_WAITING].first;
    if (e != NULL) {
        uint64_t ignored_value = 0;
        ssize_t ignored = read(wake_fd, &ignored_value, sizeof ignored_value);
        (void)ignored;
        e->own.wake_fd = wake_fd;
        e->outcome = (struct outcome){.kind = OUTCOME_FAILED, .rows = -1};
        e->own.end =
            instant_add_ms(instant_add_ms(clock_now(), e->job->timeout_ms), CLAIM_OVERTIME_MS);
        state_set(c, e, CLAIM_RUNNING);
        if (!instant_before(clock_now(), e->own.deadline)) {
            /* Stopped since the commit, unseen by the guard so far: another worker may run it. */
            (void)entry_kill(e, KILL_EXPIRED);
        }
        runner_wake(c);
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return e;
}

struct claim_watch claims_watch(struct claims *c, const struct claim *claim)
{
    (void)pthread_mutex_lock(&c->mutex);
    struct claim_watch w = {.kill = claim->own.kill, .deadline = claim->own.deadline};
    (void)pthread_mutex_unlock(&c->mutex);
    return w;
}

void claims_source(struct claims *c, struct claim *claim, int fd)
{
    (void)pthread_mutex_lock(&c->mutex);
    claim->own.source_fd = fd;
    if (fd >= 0 && claim->own.kill >= KILL_EXPIRED) {
        (void)shutdown(fd, SHUT_RDWR);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

bool claims_report(struct claims *c, struct claim *claim)
{
    (void)pthread_mutex_lock(&c->mutex);
    bool mine = claim->own.kill != KILL_LOST;
    claim->own.wake_fd = claim->own.source_fd = -1;
    if (mine) {
        state_set(c, claim, CLAIM_DONE);
    } else {
        entry_forget(c, claim);
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return mine;
}

static bool is_among(struct claim *const *claims, size_t count, const char *job_id)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(claims[i]->job->id, job_id) == 0) {
            return true;
        }
    }
    return false;
}

/* With the mutex held. All rest equally long, so the first to go on is the first. */
static bool has_done(struct claims *c)
{
    struct claim *e = c->lists[CLAIM_RESTING].first;
    while (e != NULL && !instant_before(clock_now(), e->own.rest_until)) {
        state_set(c, e, CLAIM_DONE);
        e = c->lists[CLAIM_RESTING].first;
    }
    return c->lists[CLAIM_DONE].count > 0;
}

size_t claims_collect(struct claims *c, struct claim **ret_claims, size_t most, int linger_ms,
                      instant deadline)
{
    size_t n = 0;
    (void)pthread_mutex_lock(&c->mutex);
    c->collect_most = most;
    while (!has_done(c) && wait_change(c, &c->done_changed, deadline)) {
    }
    instant end = instant_add_ms(clock_now(), linger_ms);
    while (c->lists[CLAIM_DONE].count > 0 && c->lists[CLAIM_DONE].count < most &&
           instant_before(clock_now(), end)) {
        (void)wait_change(c, &c->done_changed, end);
    }
    struct claim *behind = NULL;
    for (struct claim *e = c->lists[CLAIM_DONE].first; e != NULL && n < most; e = behind) {
        behind = e->own.behind;
        /* Two attempts of one job may end here in a row; one statement takes one of them. */
        if (!is_among(ret_claims, n, e->job->id)) {
            state_set(c, e, CLAIM_RECORDING);
            ret_claims[n++] = e;
        }
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return n;
}

void claims_put_back(struct claims *c, struct claim *claim, bool rests)
{
    (void)pthread_mutex_lock(&c->mutex);
    claim->own.rest_until = instant_add_ms(clock_now(), CLAIM_REST_MS);
    state_set(c, claim, rests ? CLAIM_RESTING : CLAIM_DONE);
    (void)pthread_mutex_unlock(&c->mutex);
}

void claims_close(struct claims *c, struct claim *claim)
{
    (void)pthread_mutex_lock(&c->mutex);
    entry_forget(c, claim);
    (void)pthread_mutex_unlock(&c->mutex);
}

enum status claims_pairs(struct claims *c, struct claim_pair **ret_pairs, size_t *ret_count)
{
    size_t n = 0;
    struct claim_pair *pairs = calloc(c->capacity, sizeof *pairs);
    if (pairs == NULL) {
        return STATUS_FATAL;
    }
    (void)pthread_mutex_lock(&c->mutex);
    for (int state = CLAIM_WAITING; state < STATES; state++) {
        for (const struct claim *e = c->lists[state].first; e != NULL; e = e->own.behind) {
            if (e->own.kill < KILL_EXPIRED) {
                memcpy(pairs[n].job_id, e->job->id, sizeof pairs[n].job_id);
                memcpy(pairs[n].token, e->job->token, sizeof pairs[n].token);
                pairs[n].attempt = e->job->attempt;
                n++;
            }
        }
    }
    (void)pthread_mutex_unlock(&c->mutex);
    *ret_pairs = pairs;
    *ret_count = n;
    return STATUS_OK;
}

bool claims_renewed(struct claims *c, const struct claim_pair *pair, instant deadline, bool cancel)
{
    (void)pthread_mutex_lock(&c->mutex);
    struct claim *e = entry_find(c, pair->job_id, pair->token);
    bool needed = e != NULL && (e->own.state == CLAIM_WAITING || e->own.state == CLAIM_RUNNING);
    if (e != NULL) {
        e->own.deadline = instant_max(e->own.deadline, deadline);
        if (cancel) {
            (void)entry_kill(e, KILL_CANCELLED);
        }
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return needed;
}

void claims_lost(struct claims *c, const struct claim_pair *pair)
{
    (void)pthread_mutex_lock(&c->mutex);
    (void)entry_kill(entry_find(c, pair->job_id, pair->token), KILL_LOST);
    (void)pthread_mutex_unlock(&c->mutex);
}

void claims_kill_all(struct claims *c, enum claim_kill why)
{
    (void)pthread_mutex_lock(&c->mutex);
    for (int state = CLAIM_WAITING; state <= CLAIM_RUNNING; state++) {
        for (struct claim *e = c->lists[state].first; e != NULL; e = e->own.behind) {
            (void)entry_kill(e, why);
        }
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

/* With the mutex held: kill or find the next deadline in one list. */
static size_t list_expire(struct claim_list *list, instant now, instant *next)
{
    size_t killed = 0;
    for (struct claim *e = list->first; e != NULL; e = e->own.behind) {
        instant until = instant_min(e->own.deadline, e->own.end);
        if (instant_before(now, until)) {
            *next = instant_min(*next, until);
        } else if (entry_kill(e, KILL_EXPIRED)) {
            killed++;
        }
    }
    return killed;
}

size_t claims_expire(struct claims *c, instant now, instant *ret_next)
{
    instant next = INSTANT_NEVER;
    (void)pthread_mutex_lock(&c->mutex);
    size_t killed = list_expire(&c->lists[CLAIM_WAITING], now, &next) +
                    list_expire(&c->lists[CLAIM_RUNNING], now, &next);
    (void)pthread_mutex_unlock(&c->mutex);
    *ret_next = next;
    return killed;
}

/* With the mutex held. */
static size_t room(const struct claims *c)
{
    size_t busy = c->lists[CLAIM_WAITING].count + c->lists[CLAIM_RUNNING].count;
    size_t slots = busy >= c->slots ? 0 : c->slots - busy;
    return slots < c->lists[CLAIM_FREE].count ? slots : c->lists[CLAIM_FREE].count;
}

struct claim_counts claims_count(struct claims *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    struct claim_counts n = {.waiting = c->lists[CLAIM_WAITING].count,
                             .running = c->lists[CLAIM_RUNNING].count,
                             .unrecorded = c->lists[CLAIM_DONE].count +
                                           c->lists[CLAIM_RECORDING].count +
                                           c->lists[CLAIM_RESTING].count,
                             .free = room(c)};
    (void)pthread_mutex_unlock(&c->mutex);
    return n;
}

static bool has_room(const struct claims *c)
{
    return room(c) > 0;
}

static bool is_quiet(const struct claims *c)
{
    return c->lists[CLAIM_WAITING].count + c->lists[CLAIM_RUNNING].count == 0;
}

static bool is_empty(const struct claims *c)
{
    return c->lists[CLAIM_FREE].count == c->capacity;
}

static bool wait_until(struct claims *c, bool (*holds)(const struct claims *), instant deadline)
{
    (void)pthread_mutex_lock(&c->mutex);
    while (!holds(c) && wait_change(c, &c->room_changed, deadline)) {
    }
    bool good = holds(c);
    (void)pthread_mutex_unlock(&c->mutex);
    return good;
}

bool claims_wait_free(struct claims *c, instant deadline)
{
    return wait_until(c, has_room, deadline);
}

bool claims_wait_quiet(struct claims *c, instant deadline)
{
    return wait_until(c, is_quiet, deadline);
}

bool claims_wait_empty(struct claims *c, instant deadline)
{
    return wait_until(c, is_empty, deadline);
}

void claims_stop(struct claims *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    c->stopped = true;
    (void)pthread_cond_broadcast(&c->waiting_changed);
    (void)pthread_mutex_unlock(&c->mutex);
}
