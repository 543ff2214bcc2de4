#include "intake.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "admission.h"
#include "adoption.h"
#include "dispatch.h"
#include "ident.h"
#include "log.h"
#include "loop_name.h"
#include "message.h"
#include "moved.h"
#include "worker.h"
#include "thread_join.h"

#define BATCH_MAX     200
#define COLLECT_MS    1   /* more may join a batch for so long; others come while it is claimed */
#define POLL_MS       250 /* longest wait for a message: a stop or a pull must not wait longer */
#define FULL_POLL_MS  50  /* longest wait for a free slot before the consumer is served again */
#define CLOSE_MS      5000
#define REOPEN_MS     5000
#define POISON_LOG_MS 10000

struct intake {
    struct worker *w;
    struct connection connection;
    struct admission admission;
    struct consumer *consumer; /* NULL: none, by setting or for now */
    instant consumer_retry_at;
    struct adoption adoption;
    instant poison_log_at;
    struct trouble claim_trouble;
    struct moved moved;
    struct incarnation_copy me;
    char ids[BATCH_MAX][UUID_TEXT_MAX];
    struct message_position positions[BATCH_MAX];
    size_t count;
};

/* ---- claimed jobs into the table ---- */

static size_t jobs_add(struct intake *in, struct job_list *jobs, instant sent)
{
    size_t added = 0;
    instant deadline = claim_deadline(sent, in->me.agreement.lease_ms);
    for (size_t i = 0; i < jobs->count; i++) {
        if (claims_add(in->w->claims, jobs->jobs[i], deadline) == STATUS_OK) {
            jobs->jobs[i] = NULL;
            added++;
        } else {
            log_event(LOG_LEVEL_ERROR, "no room for a claimed job, its claim lapses", "job=%s",
                      jobs->jobs[i]->id);
        }
    }
    job_list_free(jobs);
    counter_add(&in->w->counters, COUNT_CLAIMED, added);
    return added;
}

/* A claim failed. Unless the database is known to have refused it, it may have happened. */
static void claim_failed(struct intake *in, enum status s, const struct error *err)
{
    if (strcmp(err->code, STORE_ENDED) == 0) {
        worker_incarnation_ended(in->w, in->me.id);
        return;
    }
    if (trouble_is_told(&in->claim_trouble, err->text)) {
        log_event(LOG_LEVEL_WARN, "claim failed", "status=%s error=%s", status_name(s),
                  log_quote(err->text).text);
    }
    if (s == STATUS_TIMEOUT || s == STATUS_AGAIN) {
        adoption_doubt(&in->adoption);
    }
}

static void claims_adopt(struct intake *in)
{
    struct job_list jobs = {0};
    instant sent = {0};
    adoption_look(&in->adoption, in->connection.store, in->me.id, &jobs, &sent);
    struct claim_names names = claim_names(jobs.jobs, jobs.count);
    size_t adopted = jobs_add(in, &jobs, sent);
    counter_add(&in->w->counters, COUNT_ADOPTED, adopted);
    if (adopted > 0) {
        log_event(LOG_LEVEL_INFO, "adopted claims whose answer was lost", "jobs=%zu claims=%s",
                  adopted, names.text);
    }
}

/* ---- the pull path ---- */

static void pull(struct intake *in, size_t limit)
{
    struct worker *w = in->w;
    struct job_list jobs = {0};
    struct error err = {0};
    size_t asked = limit < BATCH_MAX ? limit : BATCH_MAX;
    struct claim_request request = {
        .worker = in->me.id, .queues = &w->settings->queues, .count = asked};
    instant sent = clock_now();
    enum status s = store_claim_ready(in->connection.store, &request,
                                      instant_add_ms(sent, STATEMENT_MS), &jobs, &err);
    size_t got = 0;
    if (s == STATUS_OK) {
        got = jobs_add(in, &jobs, sent);
        counter_add(&w->counters, COUNT_PULLED, got);
        if (got == 0) {
            moved_tell(&in->moved, in->connection.store);
        }
    } else {
        claim_failed(in, s, &err);
    }
    admission_pulled(&in->admission, clock_now(), asked, got, random_number());
}

/* ---- messages ---- */

static void poison(struct intake *in, const struct incoming *message, const struct error *err)
{
    counter_add(&in->w->counters, COUNT_POISON, 1);
    instant now = clock_now();
    if (!instant_before(now, in->poison_log_at)) {
        in->poison_log_at = instant_add_ms(now, POISON_LOG_MS);
        log_event(LOG_LEVEL_WARN, "message cannot be read, skipped",
                  "partition=%d offset=%" PRId64 " skipped=%" PRIu64 " error=%s",
                  message->position.partition, message->position.offset,
                  counter_read(&in->w->counters, COUNT_POISON), log_quote(err->text).text);
    }
}

static void consumer_end(struct intake *in)
{
    if (in->consumer != NULL &&
        consumer_close(in->consumer, instant_add_ms(clock_now(), CLOSE_MS)) != STATUS_OK) {
        log_event(LOG_LEVEL_WARN, "Kafka consumer does not end, left behind", NULL);
    }
    in->consumer = NULL;
}

static void consumer_drop(struct intake *in, const char *why)
{
    log_event(LOG_LEVEL_WARN, "Kafka consumer failed, opening another; jobs are pulled meanwhile",
              "error=%s", log_quote(why).text);
    consumer_end(in);
    in->consumer_retry_at = instant_add_ms(clock_now(), REOPEN_MS);
}

/* One message into the batch. False: none came in time. */
static bool message_take(struct intake *in, int timeout_ms)
{
    struct incoming incoming;
    struct message message;
    struct error err = {0};
    enum status s = consumer_poll(in->consumer, timeout_ms, &incoming, &err);
    if (s == STATUS_FATAL) {
        consumer_drop(in, err.text);
    } else if (s == STATUS_AGAIN) {
        log_event(LOG_LEVEL_WARN, "Kafka", "error=%s", log_quote(err.text).text);
    }
    if (s != STATUS_OK) {
        return false;
    }
    counter_add(&in->w->counters, COUNT_MESSAGES, 1);
    if (message_decode(incoming.value, incoming.size, incoming.headers, incoming.header_count,
                       &message, &err) != STATUS_OK) {
        /* An empty id keeps its place: offsets of a partition are stored in order. */
        poison(in, &incoming, &err);
        message.job_id[0] = '\0';
    }
    memcpy(in->ids[in->count], message.job_id, sizeof in->ids[0]);
    in->positions[in->count] = incoming.position;
    in->count++;
    return true;
}

static void batch_take(struct intake *in, size_t most, int timeout_ms)
{
    in->count = 0;
    if (!message_take(in, timeout_ms)) {
        return;
    }
    instant end = instant_add_ms(clock_now(), COLLECT_MS);
    while (in->count < most && in->consumer != NULL) {
        int left = instant_poll_timeout(clock_now(), end);
        if (!message_take(in, left) || left == 0) {
            return;
        }
    }
}

static void offsets_store(struct intake *in)
{
    for (size_t i = 0; i < in->count && in->consumer != NULL; i++) {
        consumer_store(in->consumer, &in->positions[i]);
    }
}

static bool job_was_claimed(const struct job_list *jobs, const char *id)
{
    for (size_t i = 0; i < jobs->count; i++) {
        if (strcmp(jobs->jobs[i]->id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* Count why the others did not come back. Their messages are done with all the same. */
static void leftovers_count(struct intake *in, const char (*ids)[UUID_TEXT_MAX], size_t count)
{
    struct claim_leftovers n;
    if (count == 0 ||
        store_claim_leftovers(in->connection.store, ids, count,
                              instant_add_ms(clock_now(), STATEMENT_MS), &n, NULL) != STATUS_OK) {
        return;
    }
    struct counters *c = &in->w->counters;
    counter_add(c, COUNT_DUPLICATE, (uint64_t)n.duplicate);
    counter_add(c, COUNT_STALE, (uint64_t)n.stale);
    counter_add(c, COUNT_UNCLAIMED, (uint64_t)n.unclaimed);
    counter_add(c, COUNT_UNKNOWN, (uint64_t)n.unknown);
    if (n.unknown > 0) {
        log_event(LOG_LEVEL_WARN, "messages for jobs the database does not know",
                  "messages=%" PRId64, n.unknown);
    }
}

static void batch_claim(struct intake *in)
{
    static const char none[1][UUID_TEXT_MAX];
    struct worker *w = in->w;
    char wanted[BATCH_MAX][UUID_TEXT_MAX];
    size_t count = 0;
    for (size_t i = 0; i < in->count; i++) {
        if (in->ids[i][0] != '\0') {
            memcpy(wanted[count++], in->ids[i], sizeof wanted[0]);
        }
    }
    struct job_list jobs = {0};
    struct error err = {0};
    instant sent = clock_now();
    enum status s = STATUS_OK;
    const char(*ids)[UUID_TEXT_MAX] = count == 0 ? none : (const char(*)[UUID_TEXT_MAX])wanted;
    if (count > 0) {
        struct claim_request request = {
            .worker = in->me.id, .queues = &w->settings->queues, .ids = ids, .count = count};
        s = store_claim_ids(in->connection.store, &request, instant_add_ms(sent, STATEMENT_MS),
                            &jobs, &err);
    }
    if (s != STATUS_OK) {
        /* Offsets stay behind; the jobs themselves wait in the database and are pulled, soon: the
         * next messages' offsets would carry these away. */
        claim_failed(in, s, &err);
        admission_shed(&in->admission, clock_now());
        return;
    }
    offsets_store(in);
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (!job_was_claimed(&jobs, wanted[i])) {
            memcpy(wanted[left++], wanted[i], sizeof wanted[0]);
        }
    }
    (void)jobs_add(in, &jobs, sent);
    leftovers_count(in, ids, left);
    admission_took(&in->admission, clock_now(), random_number());
}

/* ---- the loop ---- */

static void consumer_ensure(struct intake *in)
{
    const struct worker_settings *s = in->w->settings;
    if (in->consumer != NULL || s->kafka_brokers[0] == '\0' ||
        instant_before(clock_now(), in->consumer_retry_at)) {
        return;
    }
    const char *properties[SETTING_LIST_MAX + 1] = {NULL};
    for (size_t i = 0; i < s->kafka_properties.count; i++) {
        properties[i] = s->kafka_properties.items[i];
    }
    const char *secret_files[SETTING_LIST_MAX + 1] = {NULL};
    for (size_t i = 0; i < s->kafka_secret_files.count; i++) {
        secret_files[i] = s->kafka_secret_files.items[i];
    }
    const char *topics[] = {s->kafka_topic, NULL};
    struct consumer_options options = {.dispatch = {.brokers = s->kafka_brokers,
                                                    .client_id = "report-worker",
                                                    .properties = properties,
                                                    .secret_files = secret_files},
                                       .group = s->kafka_group,
                                       .topics = topics};
    struct error err;
    if (consumer_open(&options, &in->consumer, &err) != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "Kafka consumer cannot start; jobs are pulled", "error=%s",
                  log_quote(err.text).text);
        in->consumer = NULL;
        in->consumer_retry_at = instant_add_ms(clock_now(), 60000);
    }
}

/* No slot: wait for one. A pause or a shed serves the consumer meanwhile; polling twice a second is
 * far more often than staying in the group needs. */
static void wait_full(struct intake *in, enum admission_mode mode)
{
    if (in->consumer != NULL && mode == ADMISSION_PAUSE) {
        consumer_pause(in->consumer);
        in->count = 0;
        if (message_take(in, 0)) {
            /* Fetched before the pause. It is let go: the job stays queued. */
            offsets_store(in);
            counter_add(&in->w->counters, COUNT_SHED, 1);
            admission_shed(&in->admission, clock_now());
        }
    } else if (in->consumer != NULL && mode == ADMISSION_SHED) {
        consumer_resume(in->consumer);
        batch_take(in, BATCH_MAX, 0);
        if (in->count > 0) {
            offsets_store(in);
            counter_add(&in->w->counters, COUNT_SHED, in->count);
            admission_shed(&in->admission, clock_now());
        }
    }
    (void)claims_wait_free(in->w->claims, instant_add_ms(clock_now(), FULL_POLL_MS));
}

static void take_messages(struct intake *in, size_t most, instant wake)
{
    int timeout = instant_poll_timeout(clock_now(), wake);
    timeout = timeout < POLL_MS ? timeout : POLL_MS;
    if (in->consumer == NULL) {
        wake_wait(in->w->intake_wake, timeout);
        return;
    }
    consumer_resume(in->consumer);
    batch_take(in, most < BATCH_MAX ? most : BATCH_MAX, timeout);
    if (in->count > 0) {
        batch_claim(in);
    }
}

/* Jobs of a killed worker are queued again without a message: pull now. That nothing was heard for
 * want of a connection costs the time to the next pull. */
static void released_hear(struct intake *in)
{
    unsigned count = 0;
    if (store_take_notifications(in->connection.store, &count) == STATUS_OK && count > 0) {
        admission_shed(&in->admission, clock_now());
    }
}

static enum status database_ensure(struct intake *in)
{
    bool fresh = in->connection.store == NULL || store_is_broken(in->connection.store);
    enum status s = connection_ensure(&in->connection, in->w);
    if (s == STATUS_OK && fresh) {
        s = store_listen(in->connection.store, "report_released",
                         instant_add_ms(clock_now(), STATEMENT_MS), NULL);
    }
    return s;
}

static void turn(struct intake *in)
{
    consumer_ensure(in);
    if (!worker_incarnation(in->w, &in->me) || database_ensure(in) != STATUS_OK) {
        /* Nothing can be claimed; keep the place in the group. */
        if (in->consumer != NULL) {
            in->count = 0;
            consumer_pause(in->consumer);
            (void)message_take(in, 0);
        }
        wake_wait(in->w->intake_wake, FULL_POLL_MS);
        return;
    }
    released_hear(in);
    if (adoption_is_due(&in->adoption)) {
        claims_adopt(in);
    }
    size_t free_slots = claims_count(in->w->claims).free;
    struct admission_step step = admission_decide(&in->admission, clock_now(), free_slots);
    if (step.mode != ADMISSION_CLAIM) {
        wait_full(in, step.mode);
    } else if (step.pull) {
        pull(in, free_slots);
    } else {
        take_messages(in, free_slots, step.wake);
    }
}

static void intake_run(struct intake *in)
{
    in->admission = admission_start(clock_now(), in->w->settings->pull_idle_ms);
    while (!atomic_load(&in->w->draining)) {
        stall_turn(&in->w->claims_stall, clock_now());
        atomic_store(&in->w->intake_turned_ns, clock_now().ns);
        in->admission.pull_idle_ms = atomic_load(&in->w->pull_idle_ms);
        turn(in);
    }
}

void *intake_main(void *worker)
{
    struct worker *w = worker;
    struct intake *in = malloc(sizeof *in); /* some kilobytes: not on the stack */
    thread_name(LOOP_CLAIMS);
    if (in == NULL) {
        log_event(LOG_LEVEL_ERROR, "the claims loop cannot start, out of memory", NULL);
    } else {
        *in = (struct intake){.w = w,
                              .connection = {.what = "report-worker claims"},
                              .adoption = {.w = w, .look_at = INSTANT_NEVER}};
        intake_run(in);
    }
    atomic_store(&w->intake_over, true);
    stall_wait(&w->claims_stall, clock_now(), INSTANT_NEVER);
    if (in != NULL) {
        connection_close(&in->connection);
        consumer_end(in);
        free(in);
    }
    return NULL;
}
