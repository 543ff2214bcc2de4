/* Topic and consumer group of Kafka in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch_fake.h"
#include "dispatch_topic.h"
#include "world.h"

#define COMMIT_NS    KERNEL_S
#define SESSION_MS   6000 /* a member that is gone without a word is missed after so long */
#define REBALANCE_MS 300

struct consumer {
    struct consumer *next;
    struct process *process;
    bool paused, over;
    int64_t position[PARTITIONS], stored[PARTITIONS];
    unsigned assigned; /* bit set */
    int64_t committed_at;
    struct fiber *waiter;
    struct parcel last; /* what the caller has borrowed */
};

static struct consumer *members;
static int64_t settled_at; /* a rebalance goes on until then */

void parcel_pack(struct parcel *p, const char *key, const struct message_text *text)
{
    p->text = *text;
    p->job = world_identity(key);
    p->partition = (int)(p->job % PARTITIONS);
    for (size_t i = 0; i < text->header_count; i++) {
        const char *at = text->headers[i].value;
        ptrdiff_t from = at - &text->header_values[0][0];
        if (from >= 0 && (size_t)from < sizeof text->header_values) {
            p->text.headers[i].value = &p->text.header_values[0][0] + from;
        }
    }
}

/* The same after a copy: pointers into the old place. */
static void parcel_move(struct parcel *to, const struct parcel *from)
{
    *to = *from;
    for (size_t i = 0; i < from->text.header_count; i++) {
        ptrdiff_t at = from->text.headers[i].value - &from->text.header_values[0][0];
        if (at >= 0 && (size_t)at < sizeof from->text.header_values) {
            to->text.headers[i].value = &to->text.header_values[0][0] + at;
        }
    }
}

static void on_available(void *context, uint64_t number)
{
    (void)context;
    (void)number;
    consumers_wake();
}

void topic_append(struct parcel *p)
{
    int times = chance_hits(kernel_chance(), topic.repeats) ? 2 : 1;
    for (int i = 0; i < times && topic.count < MESSAGES_MAX; i++) {
        struct parcel *m = &topic.messages[topic.count++];
        parcel_move(m, p);
        m->offset = topic.ends[m->partition]++;
        m->from = kernel_now() + chance_in(kernel_chance(), 300, 4000) * KERNEL_US +
                  (topic.delay > 0 ? chance_in(kernel_chance(), 0, topic.delay) : 0);
        kernel_at(m->from, on_available, NULL, 0);
    }
}

/* The group --------------------------------------------------------------------------------------
 */

static void assign(void)
{
    size_t count = 0;
    for (struct consumer *c = members; c != NULL; c = c->next) {
        c->assigned = 0;
        count += c->over ? 0 : 1;
    }
    for (int partition = 0; count > 0 && partition < PARTITIONS; partition++) {
        size_t wanted = (size_t)partition % count;
        for (struct consumer *c = members; c != NULL; c = c->next) {
            if (!c->over && wanted-- == 0) {
                c->assigned |= 1u << partition;
                c->position[partition] = c->stored[partition] = topic.committed[partition];
                break;
            }
        }
    }
    settled_at = kernel_now() + REBALANCE_MS * KERNEL_MS;
    kernel_at(settled_at, on_available, NULL, 0);
}

static void on_missed(void *context, uint64_t number)
{
    (void)context;
    (void)number;
    assign();
}

void dispatch_rebalance(void)
{
    assign();
}

void consumers_reset(void)
{
    members = NULL;
    settled_at = 0;
}

void consumers_wake(void)
{
    for (struct consumer *c = members; c != NULL; c = c->next) {
        if (!c->over && c->waiter != NULL) {
            fiber_wake(c->waiter);
        }
    }
}

void consumers_forget(struct process *p)
{
    for (struct consumer *c = members; c != NULL; c = c->next) {
        if (c->process == p && !c->over) {
            c->over = true;
            kernel_in(SESSION_MS * KERNEL_MS, on_missed, NULL, 0);
        }
    }
}

/* The port ---------------------------------------------------------------------------------------
 */

enum status consumer_open(const struct consumer_options *options, struct consumer **ret_consumer,
                          struct error *err)
{
    (void)options;
    (void)err;
    struct consumer *c = kernel_new(sizeof *c);
    c->process = process_current();
    c->next = members;
    members = c;
    assign();
    *ret_consumer = c;
    return STATUS_OK;
}

static void commit(struct consumer *c)
{
    if (kernel_now() - c->committed_at < COMMIT_NS ||
        world_is_cut(c->process->node, SERVICE_KAFKA, CUT_TO) || !topic.up) {
        return;
    }
    c->committed_at = kernel_now();
    for (int i = 0; i < PARTITIONS; i++) {
        bool its = (c->assigned & (1u << i)) != 0 && c->stored[i] > topic.committed[i];
        topic.committed[i] = its ? c->stored[i] : topic.committed[i];
    }
}

static const struct parcel *next_message(const struct consumer *c)
{
    const struct parcel *found = NULL;
    int node = c->process->node;
    if (c->paused || !topic.up || !topic.exists || kernel_now() < settled_at ||
        world_is_cut(node, SERVICE_KAFKA, CUT_TO) || world_is_cut(node, SERVICE_KAFKA, CUT_FROM)) {
        return NULL;
    }
    for (size_t i = 0; i < topic.count; i++) {
        const struct parcel *m = &topic.messages[i];
        bool its = (c->assigned & (1u << m->partition)) != 0 &&
                   m->offset == c->position[m->partition] && m->from <= kernel_now();
        if (its && (found == NULL || m->from < found->from)) {
            found = m;
        }
    }
    return found;
}

enum status consumer_poll(struct consumer *c, int timeout_ms, struct incoming *ret_message,
                          struct error *err)
{
    (void)err;
    struct process *p = c->process;
    int64_t until = process_true_at(p, process_clock(p) + timeout_ms * KERNEL_MS);
    until = until <= kernel_now() ? kernel_now() + KERNEL_US : until;
    commit(c);
    const struct parcel *m = next_message(c);
    while (m == NULL && kernel_now() < until) {
        c->waiter = fiber_current();
        (void)fiber_wait(until);
        c->waiter = NULL;
        m = next_message(c);
    }
    if (m == NULL) {
        return STATUS_NOT_FOUND;
    }
    parcel_move(&c->last, m);
    c->position[m->partition]++;
    *ret_message = (struct incoming){
        .position = {.partition = m->partition, .offset = m->offset},
        .value = c->last.text.value,
        .size = c->last.text.value_size,
        .header_count = c->last.text.header_count,
    };
    memcpy(ret_message->headers, c->last.text.headers, sizeof c->last.text.headers);
    world_own_fact((struct fact){.kind = FACT_DELIVERED, .job = c->last.job});
    return STATUS_OK;
}

void consumer_store(struct consumer *c, const struct message_position *position)
{
    int i = position->partition;
    if ((c->assigned & (1u << i)) != 0 && position->offset + 1 > c->stored[i]) {
        c->stored[i] = position->offset + 1;
    }
}

void consumer_pause(struct consumer *c)
{
    c->paused = true;
}

void consumer_resume(struct consumer *c)
{
    c->paused = false;
}

bool consumer_is_paused(const struct consumer *c)
{
    return c->paused;
}

size_t consumer_assigned(const struct consumer *c)
{
    return (size_t)__builtin_popcount(c->assigned);
}

enum status consumer_close(struct consumer *c, instant deadline)
{
    (void)deadline;
    if (c != NULL) {
        c->committed_at = 0;
        (void)fiber_wait(kernel_now() + 2 * world_latency(c->process->node, SERVICE_KAFKA));
        commit(c);
        c->over = true;
        assign();
    }
    return STATUS_OK;
}
