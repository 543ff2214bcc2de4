/* The port scheduler/store/store_outbox.h on the database in memory. */
#include <stdio.h>
#include <string.h>

#include "store_fake.h"
#include "store_outbox.h"
#include "world.h"

static enum status status_of(enum call_verdict verdict)
{
    return verdict == VERDICT_OK ? STATUS_OK : STATUS_FENCED;
}

static void register_execute(struct request *q, struct transaction *t)
{
    enum call_verdict verdict = register_backend(t, "");
    request_answer(q, verdict, verdict == VERDICT_ERROR ? STATUS_CONFLICT : status_of(verdict));
}

enum status store_outbox_register(const struct store_call *call, struct error *err)
{
    struct request *q = request_new(sizeof *q, OP_REGISTER, register_execute);
    request_authority(q, call->authority);
    enum status status = exchange(call->store, call->deadline, q, err);
    request_end(q);
    return status;
}

struct fetch_request {
    struct request q;
    int64_t low;
    size_t limit, count;
    struct outbox_row *rows;
};

static void fetch_done(struct request *q)
{
    kernel_free(((struct fetch_request *)q)->rows);
}

static void row_fill(const struct db_outbox *o, struct outbox_row *row)
{
    const struct db_job *j = &db.jobs[o->job];
    const struct db_occurrence *oc = &db.occurrences[o->job];
    struct message *m = &row->message;
    *row = (struct outbox_row){.id = o->id, .created_at = {o->created_at}};
    memcpy(m->job_id, j->id, sizeof m->job_id);
    m->dispatch_number = o->dispatch_number;
    schedule_name(oc->schedule, m->schedule);
    memcpy(m->occurrence_key, oc->key, sizeof m->occurrence_key);
    m->scheduled_for = (utc_us){oc->scheduled_for};
    (void)snprintf(m->scope, sizeof m->scope, "%s", world_scope_name(o->scope));
    m->generation = o->generation;
    (void)snprintf(m->queue, sizeof m->queue, "queue-%d", j->queue);
}

static const struct db_outbox *row_after(int scope, int64_t low)
{
    const struct db_outbox *first = NULL;
    for (size_t i = 0; i < db.outbox_count; i++) {
        const struct db_outbox *o = &db.outbox[i];
        if (o->used && o->scope == scope && o->id > low && (first == NULL || o->id < first->id)) {
            first = o;
        }
    }
    return first;
}

static void fetch_execute(struct request *q, struct transaction *t)
{
    struct fetch_request *r = (struct fetch_request *)q;
    int64_t low = r->low;
    (void)t;
    while (r->count < r->limit) {
        const struct db_outbox *o = row_after(q->scope, low);
        if (o == NULL) {
            break;
        }
        row_fill(o, &r->rows[r->count++]);
        low = o->id;
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_outbox_fetch_send(const struct store_call *call, int64_t low, size_t limit,
                                    struct error *err)
{
    struct fetch_request *r = request_new(sizeof *r, OP_NONE, fetch_execute);
    request_authority(&r->q, call->authority);
    r->low = low;
    r->limit = limit < 64 ? limit : 64;
    r->rows = kernel_new(r->limit * sizeof r->rows[0]);
    r->q.done = fetch_done;
    return request_begin(call->store, &r->q, err);
}

enum status store_outbox_fetch_take(const struct store_call *call, size_t limit,
                                    struct outbox_row *ret_rows, size_t *ret_count,
                                    struct error *err)
{
    (void)limit;
    struct fetch_request *r = (struct fetch_request *)request_begun(call->store);
    enum status status = request_wait(call->store, &r->q, call->deadline, err);
    if (status == STATUS_OK) {
        memcpy(ret_rows, r->rows, r->count * sizeof r->rows[0]);
        *ret_count = r->count;
    }
    request_end(&r->q);
    return status;
}

enum status store_outbox_fetch(const struct store_call *call, int64_t low, size_t limit,
                               struct outbox_row *ret_rows, size_t *ret_count, struct error *err)
{
    enum status s = store_outbox_fetch_send(call, low, limit, err);
    return s == STATUS_OK ? store_outbox_fetch_take(call, limit, ret_rows, ret_count, err) : s;
}

bool store_outbox_is_answered(struct store *store)
{
    return request_is_answered(store);
}

struct ack_request {
    struct request q;
    size_t count;
    int64_t ids[OUTBOX_ACK_MAX];
};

static void ack_execute(struct request *q, struct transaction *t)
{
    struct ack_request *r = (struct ack_request *)q;
    enum call_verdict verdict = outbox_ack(t, r->ids, r->count);
    request_answer(q, verdict, status_of(verdict));
}

enum status store_outbox_ack_send(const struct store_call *call, const int64_t *ids, size_t count,
                                  struct error *err)
{
    struct ack_request *r = request_new(sizeof *r, OP_OUTBOX_ACK, ack_execute);
    request_authority(&r->q, call->authority);
    r->count = count;
    memcpy(r->ids, ids, count * sizeof ids[0]);
    return request_begin(call->store, &r->q, err);
}

enum status store_outbox_ack_take(const struct store_call *call, int64_t *ids, size_t *count,
                                  struct error *err)
{
    (void)ids;
    struct request *q = request_begun(call->store);
    enum status status = request_wait(call->store, q, call->deadline, err);
    if (status == STATUS_OK) {
        *count = 0; /* none is locked */
    }
    request_end(q);
    return status;
}

enum status store_outbox_ack(const struct store_call *call, int64_t *ids, size_t *count,
                             struct error *err)
{
    enum status s = store_outbox_ack_send(call, ids, *count, err);
    return s == STATUS_OK ? store_outbox_ack_take(call, ids, count, err) : s;
}

struct bury_request {
    struct request q;
    int64_t id;
    bool buried;
};

static void bury_execute(struct request *q, struct transaction *t)
{
    struct bury_request *r = (struct bury_request *)q;
    enum call_verdict verdict = outbox_bury(t, r->id, &r->buried);
    request_answer(q, verdict, status_of(verdict));
}

enum status store_outbox_bury(const struct store_call *call, int64_t id, const char *reason,
                              bool *ret_buried, struct error *err)
{
    (void)reason;
    struct bury_request *r = request_new(sizeof *r, OP_OUTBOX_BURY, bury_execute);
    request_authority(&r->q, call->authority);
    r->id = id;
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    if (status == STATUS_OK) {
        *ret_buried = r->buried;
    }
    request_end(&r->q);
    return status;
}

static void trim_execute(struct request *q, struct transaction *t)
{
    enum call_verdict verdict = fence_holds(t) ? VERDICT_OK : VERDICT_FENCED;
    request_answer(q, verdict, status_of(verdict)); /* never so many rows that one is dropped */
}

enum status store_outbox_trim(const struct store_call *call, int64_t keep, int64_t *ret_dropped,
                              struct error *err)
{
    (void)keep;
    struct request *q = request_new(sizeof *q, OP_OUTBOX_TRIM, trim_execute);
    request_authority(q, call->authority);
    enum status status = exchange(call->store, call->deadline, q, err);
    if (status == STATUS_OK) {
        *ret_dropped = 0;
    }
    request_end(q);
    return status;
}
