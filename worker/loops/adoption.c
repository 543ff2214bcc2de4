#include "adoption.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define RECHECK_MS 5000 /* behind the role's statement_timeout: a lost claim is visible then */
#define HELD_MS    1000 /* as HELD schedulers look at the row of their hold */
#define RETRY_MS   200

/* What was found, sorted: each list owns its jobs. */
struct found {
    struct job_list fresh; /* never begun here */
    struct job_list ended; /* ended here: whoever says that it runs is mistaken */
    struct job_list held;  /* a hold stands on it */
};

void adoption_doubt(struct adoption *a)
{
    a->look_at = clock_now();
    a->look_again = true;
}

bool adoption_is_due(const struct adoption *a)
{
    return !instant_before(clock_now(), a->look_at);
}

struct claim_names claim_names(struct job *const *jobs, size_t count)
{
    struct claim_names names = {""};
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        char more[32];
        char one[NAME_MAX_BYTES + KEY_MAX_BYTES + 2];
        (void)snprintf(more, sizeof more, ",+%zu", count - i);
        (void)snprintf(one, sizeof one, "%s%s:%s", i > 0 ? "," : "", jobs[i]->schedule,
                       jobs[i]->occurrence_key);
        if (used + strlen(one) + sizeof more > sizeof names.text) {
            (void)snprintf(names.text + used, sizeof names.text - used, "%s", more);
            break;
        }
        (void)snprintf(names.text + used, sizeof names.text - used, "%s", one);
        used += strlen(one);
    }
    return names;
}

static bool is_among(const struct claim_pair *pairs, size_t count, const struct job *job)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(pairs[i].job_id, job->id) == 0 &&
            (job->token[0] == '\0' || strcmp(pairs[i].token, job->token) == 0)) {
            return true;
        }
    }
    return false;
}

/* Room in each list for all. Returns: OK; AGAIN (memory). */
static enum status found_room(struct found *f, size_t count, struct error *err)
{
    f->fresh.jobs = calloc(count + 1, sizeof *f->fresh.jobs);
    f->ended.jobs = calloc(count + 1, sizeof *f->ended.jobs);
    f->held.jobs = calloc(count + 1, sizeof *f->held.jobs);
    bool good = f->fresh.jobs != NULL && f->ended.jobs != NULL && f->held.jobs != NULL;
    return good ? STATUS_OK : error_set(err, STATUS_AGAIN, "out of memory");
}

static void found_free(struct found *f)
{
    job_list_free(&f->fresh);
    job_list_free(&f->ended);
    job_list_free(&f->held);
}

/* A claim that was closed between the question and the look into the table was held before it:
 * `before` is what the table held when the database was asked. */
static void found_sort(struct found *f, struct claims *claims, struct job_list *jobs,
                       const struct claim_pair *before, size_t known)
{
    for (size_t i = 0; i < jobs->count; i++) {
        struct job *j = jobs->jobs[i];
        enum claim_known here =
            j->token[0] == '\0' ? CLAIM_UNKNOWN : claims_knows(claims, j->id, j->token);
        jobs->jobs[i] = NULL;
        if (here == CLAIM_HELD || is_among(before, known, j)) {
            job_free(j);
        } else if (here == CLAIM_ENDED) {
            f->ended.jobs[f->ended.count++] = j;
        } else if (j->token[0] == '\0') {
            f->held.jobs[f->held.count++] = j;
        } else {
            f->fresh.jobs[f->fresh.count++] = j;
        }
    }
}

static void found_tell(struct adoption *a, const struct found *f)
{
    struct claim_names ended = claim_names(f->ended.jobs, f->ended.count);
    struct claim_names held = claim_names(f->held.jobs, f->held.count);
    if (f->ended.count > 0 && trouble_is_told(&a->ended_told, ended.text)) {
        log_event(LOG_LEVEL_WARN,
                  "the database gives back claims that have ended here, they are left to lapse; "
                  "was a dump restored?",
                  "jobs=%zu claims=%s", f->ended.count, ended.text);
    }
    if (f->held.count > 0 && trouble_is_told(&a->held_told, held.text)) {
        log_event(LOG_LEVEL_INFO, "claims under a hold are not adopted until it is lifted",
                  "jobs=%zu claims=%s", f->held.count, held.text);
    }
}

/* When a claim without an answer was made nobody knows, so neither how long its lease still is:
 * renewed, it begins no earlier than *ret_sent. Leaves out what has moved on, and for now what
 * could not be renewed, since another session holds the row. */
static enum status fresh_renew(struct adoption *a, struct store *store, const char *incarnation,
                               struct job_list *jobs, instant *ret_sent)
{
    struct claim_pair *pairs = calloc(jobs->count + 1, sizeof *pairs);
    struct heartbeat_reply *replies = calloc(jobs->count + 1, sizeof *replies);
    enum status s = pairs == NULL || replies == NULL ? STATUS_AGAIN : STATUS_OK;
    for (size_t i = 0; s == STATUS_OK && i < jobs->count; i++) {
        memcpy(pairs[i].job_id, jobs->jobs[i]->id, sizeof pairs[i].job_id);
        memcpy(pairs[i].token, jobs->jobs[i]->token, sizeof pairs[i].token);
        pairs[i].attempt = jobs->jobs[i]->attempt;
    }
    *ret_sent = clock_now();
    if (s == STATUS_OK && jobs->count > 0) {
        s = store_heartbeat(store, incarnation, pairs, jobs->count,
                            instant_add_ms(*ret_sent, STATEMENT_MS), replies, NULL);
    }
    size_t kept = 0;
    for (size_t i = 0; s == STATUS_OK && i < jobs->count; i++) {
        if (replies[i].renewed) {
            jobs->jobs[kept++] = jobs->jobs[i];
        } else {
            a->look_again = a->look_again || replies[i].held;
            job_free(jobs->jobs[i]);
        }
    }
    jobs->count = s == STATUS_OK ? kept : jobs->count;
    free(pairs);
    free(replies);
    return s;
}

static enum status found_ask(struct adoption *a, struct store *store, const char *incarnation,
                             struct found *f)
{
    struct job_list jobs = {0};
    struct claim_pair *before = NULL;
    size_t known = 0;
    if (claims_pairs(a->w->claims, &before, &known) != STATUS_OK) {
        return STATUS_AGAIN;
    }
    enum status s =
        store_claims_of(store, incarnation, instant_add_ms(clock_now(), STATEMENT_MS), &jobs, NULL);
    if (s == STATUS_OK) {
        s = found_room(f, jobs.count, NULL);
    }
    if (s == STATUS_OK) {
        found_sort(f, a->w->claims, &jobs, before, known);
        found_tell(a, f);
    }
    job_list_free(&jobs);
    free(before);
    return s;
}

void adoption_look(struct adoption *a, struct store *store, const char *incarnation,
                   struct job_list *ret_jobs, instant *ret_sent)
{
    struct found f = {0};
    *ret_jobs = (struct job_list){0};
    *ret_sent = clock_now();
    enum status s = found_ask(a, store, incarnation, &f);
    if (s == STATUS_OK) {
        s = fresh_renew(a, store, incarnation, &f.fresh, ret_sent);
    }
    if (s == STATUS_OK) {
        int64_t rest = f.held.count > 0 ? HELD_MS : RECHECK_MS;
        bool again = a->look_again || f.held.count > 0;
        a->look_at = again ? instant_add_ms(clock_now(), rest) : INSTANT_NEVER;
        a->look_again = a->look_again && f.held.count > 0;
        *ret_jobs = f.fresh;
        f.fresh = (struct job_list){0};
    } else {
        a->look_at = instant_add_ms(clock_now(), RETRY_MS);
    }
    found_free(&f);
}
