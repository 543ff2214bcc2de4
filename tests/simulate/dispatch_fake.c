#include "dispatch_fake.h"

#include <stdio.h>
#include <string.h>

#include "armed.h"
#include "dispatch.h"
#include "dispatch_topic.h"
#include "world.h"

struct topic topic;
static struct publisher *publishers;

void dispatch_reset(void)
{
    topic.up = topic.exists = true; /* not as a whole: the messages are many and large */
    topic.repeats = 0;
    topic.delay = 0;
    topic.count = 0;
    memset(topic.ends, 0, sizeof topic.ends);
    memset(topic.committed, 0, sizeof topic.committed);
    publishers = NULL;
    consumers_reset();
}

void dispatch_stop(void)
{
    topic.up = false;
}

void dispatch_start(void)
{
    topic.up = true;
    consumers_wake();
}

void dispatch_lose_topic(void)
{
    topic.exists = false;
    topic.count = 0;
    memset(topic.ends, 0, sizeof topic.ends);
    memset(topic.committed, 0, sizeof topic.committed);
    world_fact((struct fact){.kind = FACT_TOPIC_LOST, .node = -1});
    dispatch_rebalance();
}

void dispatch_make_topic(void)
{
    topic.exists = true;
}

void dispatch_repeat(unsigned in_a_thousand)
{
    topic.repeats = in_a_thousand;
}

void dispatch_delay(int64_t ns)
{
    topic.delay = ns;
}

/* ---- Publisher ---- */

#define REPORTS_MAX 2048
#define RETRY_MS    100

struct publisher {
    struct publisher *next;
    struct process *process;
    int fd;
    bool stopped, over;
    int scope; /* whose relay's */
    size_t window, in_flight;
    int64_t timeout;
    struct publish_report reports[REPORTS_MAX];
    uint64_t jobs[REPORTS_MAX]; /* of each report */
    size_t head, count;
    uint64_t purge;              /* grows when what is in flight was given up */
    int64_t out_at;              /* first in, first out */
    uint64_t numbered, produced; /* of its messages: the next to be made, and to reach the topic */
    struct sending *flight;      /* not reported yet, newest first */
};

struct sending {
    struct publisher *p;
    struct sending *next; /* in flight */
    uint64_t number;
    uint64_t purge;
    int64_t id, until;
    uint64_t job;
    struct parcel parcel;
    bool appended;
};

static void report(const struct sending *s, enum publish_result result, const char *why)
{
    struct publisher *p = s->p;
    for (struct sending **at = &p->flight; *at != NULL; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    if (p->over || p->count == REPORTS_MAX) {
        return;
    }
    size_t at = (p->head + p->count++) % REPORTS_MAX;
    struct publish_report *r = &p->reports[at];
    *r = (struct publish_report){.id = s->id, .result = result};
    p->jobs[at] = s->job;
    (void)snprintf(r->reason, sizeof r->reason, "%s", why);
    kernel_fd_raise(p->fd);
}

static void on_acknowledged(void *context, uint64_t number)
{
    struct sending *s = context;
    struct publisher *p = s->p;
    (void)number;
    if (p->over || s->purge != p->purge) {
        kernel_free(s);
        return;
    }
    if (world_is_cut(p->process->node, SERVICE_KAFKA, CUT_FROM) && kernel_now() < s->until) {
        kernel_in(RETRY_MS * KERNEL_MS, on_acknowledged, s, 0);
        return;
    }
    if (kernel_now() >= s->until) {
        report(s, PUBLISH_FAILED, "message timed out");
    } else {
        report(s, PUBLISH_DELIVERED, "");
    }
    kernel_free(s);
}

static void on_produced(void *context, uint64_t number)
{
    struct sending *s = context;
    struct publisher *p = s->p;
    int node = p->process->node;
    (void)number;
    bool away = !topic.up || world_is_cut(node, SERVICE_KAFKA, CUT_TO) || !topic.exists;
    bool given_up = p->over || s->purge != p->purge;
    if (given_up && away) {
        kernel_free(s);
        return;
    }
    bool waits = !given_up && s->number != p->produced; /* in order within the partition */
    if ((away || waits) && kernel_now() < s->until) {
        kernel_in((away ? RETRY_MS : 1) * KERNEL_MS, on_produced, s, 0);
        return;
    }
    p->produced += given_up ? 0 : 1;
    if (away || waits) {
        report(s, PUBLISH_FAILED, "message timed out");
        kernel_free(s);
        return;
    }
    topic_append(&s->parcel);
    kernel_in(world_latency(node, SERVICE_KAFKA), on_acknowledged, s, 0);
}

enum status publisher_new(const struct publisher_options *options, struct publisher **ret_publisher,
                          struct error *err)
{
    (void)err;
    struct publisher *p = kernel_new(sizeof *p);
    p->process = process_current();
    p->fd = kernel_fd_open(p->process);
    p->scope = world_scope(options->dispatch.client_id + strlen("report-relay-"));
    p->window = options->window;
    p->timeout = options->message_timeout_ms * KERNEL_MS;
    p->next = publishers;
    publishers = p;
    *ret_publisher = p;
    return STATUS_OK;
}

enum status publisher_warm(struct publisher *p, instant deadline, int *ret_partitions,
                           struct error *err)
{
    int node = p->process->node;
    int64_t until = process_true_at(p->process, deadline.ns);
    (void)fiber_wait(kernel_now() + 2 * world_latency(node, SERVICE_KAFKA));
    while (!topic.up || world_is_cut(node, SERVICE_KAFKA, CUT_TO) ||
           world_is_cut(node, SERVICE_KAFKA, CUT_FROM)) {
        if (kernel_now() >= until) {
            return error_set(err, STATUS_AGAIN, "no broker answers");
        }
        (void)fiber_wait(kernel_now() + 20 * KERNEL_MS);
    }
    if (!topic.exists) {
        return error_set(err, STATUS_NOT_FOUND, "no such topic");
    }
    *ret_partitions = PARTITIONS;
    return STATUS_OK;
}

enum status publisher_publish(struct publisher *p, int64_t id, const char *key,
                              const struct message_text *text, struct error *err)
{
    if (p->stopped) {
        return error_set(err, STATUS_FATAL, "the publisher was stopped");
    }
    if (p->in_flight >= p->window) {
        return STATUS_FULL;
    }
    /* Decided here; a process may be stopped before it leaves. */
    world_own_fact((struct fact){
        .kind = FACT_PRODUCED, .scope = p->scope, .id = id, .job = world_identity(key)});
    armed_point(ARMED_BEFORE_SEND);
    struct sending *s = kernel_new(sizeof *s);
    s->p = p;
    s->purge = p->purge;
    s->id = id;
    s->until = kernel_now() + p->timeout;
    s->job = world_identity(key);
    parcel_pack(&s->parcel, key, text);
    s->number = p->numbered++;
    s->next = p->flight;
    p->flight = s;
    p->in_flight++;
    int64_t at = kernel_now() + world_latency(p->process->node, SERVICE_KAFKA);
    p->out_at = at > p->out_at ? at : p->out_at;
    kernel_at(p->out_at, on_produced, s, 0);
    return STATUS_OK;
}

size_t publisher_poll(struct publisher *p, int timeout_ms, struct publish_report *ret_reports,
                      size_t capacity)
{
    size_t n = 0;
    (void)timeout_ms; /* nobody waits here: publisher_fd is polled */
    kernel_fd_clear(p->fd);
    while (n < capacity && p->count > 0) {
        ret_reports[n] = p->reports[p->head];
        uint64_t job = p->jobs[p->head];
        p->head = (p->head + 1) % REPORTS_MAX;
        p->count--;
        p->in_flight -= p->in_flight > 0 ? 1 : 0;
        world_own_fact((struct fact){.kind = FACT_REPORTED,
                                     .scope = p->scope,
                                     .id = ret_reports[n].id,
                                     .job = job,
                                     .known = ret_reports[n].result == PUBLISH_DELIVERED});
        n++;
    }
    if (n > 0) {
        armed_point(ARMED_AFTER_REPORT);
    }
    return n;
}

int publisher_fd(const struct publisher *p)
{
    return p->fd;
}

bool publisher_is_fatal(const struct publisher *p, struct error *err)
{
    (void)p;
    (void)err;
    return false;
}

const char *publisher_refusal(const struct publisher *p)
{
    (void)p;
    return ""; /* this one is away or answers */
}

bool publisher_is_reachable(const struct publisher *p)
{
    return topic.up && !world_is_cut(p->process->node, SERVICE_KAFKA, CUT_TO);
}

size_t publisher_in_flight(const struct publisher *p)
{
    return p->in_flight;
}

void publisher_stop(struct publisher *p, instant deadline)
{
    int64_t until = process_true_at(p->process, deadline.ns);
    p->stopped = true;
    while (p->in_flight > p->count && kernel_now() < until) {
        (void)fiber_wait(kernel_now() + 5 * KERNEL_MS);
    }
    p->purge++;
    while (p->flight != NULL) { /* what becomes of them is not known here */
        report(p->flight, PUBLISH_FAILED, "purged");
    }
}

void publisher_free(struct publisher *p)
{
    if (p != NULL) {
        p->over = true;
        kernel_fd_close(p->fd);
    }
}

void dispatch_forget(struct process *p)
{
    for (struct publisher *x = publishers; x != NULL; x = x->next) {
        x->over = x->over || x->process == p;
    }
    consumers_forget(p);
}
