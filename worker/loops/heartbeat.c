#include "heartbeat.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "incarnation_file.h"
#include "log.h"
#include "loop_name.h"
#include "mutant.h"
#include "release_claims.h"
#include "version.h"
#include "worker.h"
#include "thread_join.h"

#define TURN_MS  1000 /* the loop turns at least this often, so that /livez sees it */
#define RETRY_MS 200  /* after a failed heartbeat: the claims' deadlines are running */

#define LEFTOVER_TRIES 5 /* with five seconds at most for each, and two in between */

struct heart {
    struct worker *w;
    struct connection connection;
    bool drain_told;
    int leftover_tries; /* LEFTOVER_TRIES: it is seen to */
    struct trouble register_trouble, beat_trouble;
};

static bool is_registered(struct heart *h)
{
    struct incarnation_copy ignored;
    return worker_incarnation(h->w, &ignored);
}

/* What a killed predecessor left, where the supervisor only starts the daemon again. Before the
 * file names this incarnation: a statement that fails is tried again first, and what stays after
 * some tries lapses. False: to be tried again. */
static bool leftover_release(struct heart *h)
{
    char id[UUID_TEXT_MAX];
    struct released_claims released;
    struct error err = {.text = ""};
    if (h->leftover_tries == LEFTOVER_TRIES || h->w->life == NULL) {
        return true;
    }
    enum status s = incarnation_file_read(h->w->life, id, &err);
    bool may_repeat = s == STATUS_OK && ++h->leftover_tries < LEFTOVER_TRIES;
    if (s == STATUS_OK) {
        s = claims_release(h->connection.store, id, instant_add_ms(clock_now(), STATEMENT_MS),
                           &released, &err);
    }
    if (s != STATUS_OK && may_repeat) {
        return false;
    }
    h->leftover_tries = LEFTOVER_TRIES;
    if (s == STATUS_NOT_FOUND) {
        return true;
    }
    if (s != STATUS_OK) {
        log_event(LOG_LEVEL_WARN, "claims of a killed predecessor not released, they lapse",
                  "error=%s", log_quote(err.text).text);
    } else if (released.jobs > 0 || !released.ended_before) {
        log_event(LOG_LEVEL_INFO, "claims of a killed predecessor released",
                  "worker=%s jobs=%lld remaining=%lld", id, (long long)released.jobs,
                  (long long)released.remaining);
    }
    return true;
}

/* Before it can claim anything. */
static void incarnation_keep(struct heart *h, const char *id)
{
    struct error err = {.text = ""};
    if (h->w->life != NULL && incarnation_file_write(h->w->life, id, &err) != STATUS_OK) {
        life_file_remove(h->w->life); /* an older one in it is none to release for */
        log_event(LOG_LEVEL_WARN,
                  "incarnation not kept: if this process is killed, its claims lapse only",
                  "error=%s", log_quote(err.text).text);
    }
}

static enum status incarnation_begin(struct heart *h)
{
    struct worker *w = h->w;
    char id[UUID_TEXT_MAX];
    struct worker_agreement agreement;
    struct error err = {.text = ""};
    uuid_random(id);
    if (!leftover_release(h)) {
        return STATUS_AGAIN;
    }
    incarnation_keep(h, id);
    struct worker_identity identity = {.id = id,
                                       .name = w->settings->name,
                                       .pid = getpid(),
                                       .version = RS_VERSION,
                                       .queues = &w->settings->queues,
                                       .slots = (size_t)w->settings->slots};
    enum status s =
        store_worker_register(h->connection.store, &identity,
                              instant_add_ms(clock_now(), STATEMENT_MS), &agreement, &err);
    if (s != STATUS_OK) {
        if (trouble_is_told(&h->register_trouble, err.text)) {
            log_event(s == STATUS_INVALID ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN,
                      "worker cannot register, trying again", "status=%s error=%s", status_name(s),
                      log_quote(err.text).text);
        }
        return s;
    }
    (void)pthread_mutex_lock(&w->incarnation.mutex);
    memcpy(w->incarnation.id, id, sizeof w->incarnation.id);
    w->incarnation.agreement = agreement;
    w->incarnation.alive = true;
    (void)pthread_mutex_unlock(&w->incarnation.mutex);
    atomic_store(&w->ended, false);
    h->drain_told = false;
    counter_add(&w->counters, COUNT_INCARNATIONS, 1);
    log_event(LOG_LEVEL_INFO, "worker registered", "worker=%s name=%s slots=%lld lease_ms=%lld", id,
              log_quote(w->settings->name).text, (long long)w->settings->slots,
              (long long)agreement.lease_ms);
    wake_up(w->intake_wake);
    return STATUS_OK;
}

static int pair_order(const void *a, const void *b)
{
    const struct claim_pair *x = a;
    const struct claim_pair *y = b;
    int by_id = strcmp(x->job_id, y->job_id);
    return by_id != 0 ? by_id : (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

/* Two attempts of one job: this worker was given it again, so the older claim is lost. In id order
 * afterwards, each job once. */
static size_t pairs_settle(struct worker *w, struct claim_pair *pairs, size_t count)
{
    size_t kept = 0;
    qsort(pairs, count, sizeof *pairs, pair_order);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && strcmp(pairs[i].job_id, pairs[i + 1].job_id) == 0) {
            claims_lost(w->claims, &pairs[i]);
        } else {
            pairs[kept++] = pairs[i];
        }
    }
    return kept;
}

static void replies_apply(struct worker *w, const struct claim_pair *pairs,
                          const struct heartbeat_reply *replies, size_t count, instant deadline)
{
    for (size_t i = 0; i < count; i++) {
        if (!replies[i].held) {
            claims_lost(w->claims, &pairs[i]);
        } else if (replies[i].renewed) {
            (void)claims_renewed(w->claims, &pairs[i], deadline, replies[i].cancel);
        } else if (claims_renewed(w->claims, &pairs[i], (instant){0}, replies[i].cancel)) {
            log_event(
                LOG_LEVEL_WARN,
                "claim not renewed, another session has its job row locked; its job is killed "
                "if that goes on",
                "job=%s attempt=%lld", pairs[i].job_id, (long long)pairs[i].attempt);
        }
    }
}

static enum status beat(struct heart *h, const struct incarnation_copy *me)
{
    struct worker *w = h->w;
    struct claim_pair *pairs = NULL;
    size_t count = 0;
    struct error err = {0};
    if (claims_pairs(w->claims, &pairs, &count) != STATUS_OK) {
        return STATUS_AGAIN;
    }
    count = pairs_settle(w, pairs, count);
    struct heartbeat_reply *replies = calloc(count + 1, sizeof *replies);
    /* Stamped before it is sent: the lease in the database begins no earlier. */
    instant sent = clock_now();
    enum status s = replies == NULL
                        ? STATUS_AGAIN
                        : store_heartbeat(h->connection.store, me->id, pairs, count,
                                          instant_add_ms(sent, STATEMENT_MS), replies, &err);
    if (s == STATUS_OK) {
        int64_t lease_ms = me->agreement.lease_ms * (MUTANT("works_beyond_claim") ? 3 : 1);
        replies_apply(w, pairs, replies, count, claim_deadline(sent, lease_ms));
        counter_add(&w->counters, COUNT_HEARTBEATS, 1);
        atomic_store(&w->beat_ns, clock_now().ns);
    } else if (strcmp(err.code, STORE_ENDED) == 0) {
        worker_incarnation_ended(w, me->id);
    } else {
        counter_add(&w->counters, COUNT_HEARTBEATS_FAILED, 1);
        if (trouble_is_told(&h->beat_trouble, err.text)) {
            log_event(LOG_LEVEL_WARN, "heartbeat failed, trying again",
                      "status=%s claims=%zu error=%s", status_name(s), count,
                      log_quote(replies == NULL ? "out of memory" : err.text).text);
        }
    }
    free(pairs);
    free(replies);
    return s;
}

static void drain_tell(struct heart *h, const struct incarnation_copy *me)
{
    struct error err;
    if (store_worker_leave(h->connection.store, me->id, "draining",
                           instant_add_ms(clock_now(), STATEMENT_MS), &err) == STATUS_OK) {
        h->drain_told = true;
    }
}

static int64_t period_ms(const struct worker *w, int64_t lease_ms)
{
    int64_t wanted = w->settings->heartbeat_ms;
    int64_t most = lease_ms / 3; /* two may fail before a claim's deadline comes */
    return wanted == 0 ? lease_ms / 6 : wanted < most ? wanted : most;
}

/* One turn; returns for how long nothing is to be done. */
static int64_t turn(struct heart *h, instant *next_beat)
{
    struct incarnation_copy me;
    if (connection_ensure(&h->connection, h->w) != STATUS_OK) {
        return RETRY_MS;
    }
    if (!is_registered(h) && !atomic_load(&h->w->draining)) {
        if (incarnation_begin(h) != STATUS_OK) {
            return 10 * RETRY_MS;
        }
        *next_beat = clock_now();
    }
    if (!worker_incarnation(h->w, &me)) {
        return 10 * RETRY_MS;
    }
    if (atomic_load(&h->w->draining) && !h->drain_told) {
        drain_tell(h, &me);
    }
    instant now = clock_now();
    if (!instant_before(now, *next_beat)) {
        if (beat(h, &me) != STATUS_OK) {
            return RETRY_MS;
        }
        *next_beat = instant_add_ms(now, period_ms(h->w, me.agreement.lease_ms));
    }
    int64_t wait = instant_ms_between(clock_now(), *next_beat);
    return wait < 0 ? 0 : wait + 1;
}

/* Say in the database that this worker has ended. */
static enum status leave(struct heart *h, const struct incarnation_copy *me, struct error *err)
{
    h->connection.retry_at = (instant){0};
    if (connection_ensure(&h->connection, h->w) != STATUS_OK) {
        *err = h->connection.why;
        return STATUS_AGAIN;
    }
    return store_worker_leave(h->connection.store, me->id, "stopped",
                              instant_add_ms(clock_now(), STATEMENT_MS), err);
}

/* What still runs, or is not recorded, is left to be released when the process is gone. */
static bool holds_claims(const struct heart *h)
{
    struct claim_counts n = claims_count(h->w->claims);
    return n.waiting + n.running + n.unrecorded > 0;
}

static void end(struct heart *h)
{
    struct incarnation_copy me;
    struct error err = {.text = ""};
    if (!worker_incarnation(h->w, &me)) {
        log_event(LOG_LEVEL_INFO, "worker stopped, it was not registered", NULL);
    } else if (leave(h, &me, &err) == STATUS_OK) {
        if (h->w->life != NULL && !holds_claims(h)) {
            life_file_remove(h->w->life);
        }
        log_event(LOG_LEVEL_INFO, "worker stopped", "worker=%s", me.id);
    } else {
        log_event(LOG_LEVEL_WARN, "worker could not say that it stops; the leader finds out",
                  "worker=%s error=%s", me.id, log_quote(err.text).text);
    }
}

void *heartbeat_main(void *worker)
{
    struct heart h = {.w = worker, .connection = {.what = "report-worker heartbeat"}};
    instant next_beat = {0};
    thread_name(LOOP_HEARTBEAT);
    while (!atomic_load(&h.w->finishing)) {
        atomic_store(&h.w->heartbeat_turned_ns, clock_now().ns);
        stall_turn(&h.w->heartbeat_stall, clock_now());
        int64_t wait = turn(&h, &next_beat);
        stall_wait(&h.w->heartbeat_stall, clock_now(), instant_add_ms(clock_now(), wait));
        wake_wait(h.w->heartbeat_wake, (int)(wait < TURN_MS ? wait : TURN_MS));
    }
    stall_wait(&h.w->heartbeat_stall, clock_now(), INSTANT_NEVER);
    end(&h);
    connection_close(&h.connection);
    return NULL;
}
