/* What people ask of the leader: carried out and answered one call each, so that one request that
 * is locked, slow or poisonous stops neither the others nor planning (invariant I12). */
#include "planning_state.h"

#include <stdio.h>
#include <string.h>

#include "ident.h"
#include "log.h"

#define REQUESTS_STEP_MAX 100 /* answered in one step */
_Static_assert(REQUESTS_STEP_MAX + REST_MAX <= REQUESTS_MAX, "those that rest are read, too");
#define STEP_MS 500 /* of one step: what is left is answered by the next, after planning */

enum course {
    COURSE_ANSWERED,
    COURSE_LATER, /* it rests and is tried again until its deadline */
    COURSE_STOP,  /* the step ends with the status */
};

/* Whose fault is it that answering fails? */
enum fault {
    FAULT_NOT_ITS, /* the lease, the fence, the connection, the server */
    FAULT_MAYBE,   /* it waited or was slow: told by trying again while others are answered */
    FAULT_ITS,     /* data the server refuses */
};

static enum fault fault_of(enum status s, const struct error *why)
{
    switch (s) {
    case STATUS_INVALID:
        return store_blames_a_row(why) ? FAULT_ITS : FAULT_MAYBE;
    case STATUS_AGAIN:
        return store_is_a_wait(why) ? FAULT_MAYBE : FAULT_NOT_ITS;
    case STATUS_TIMEOUT:
    case STATUS_NOT_FOUND:
    case STATUS_CONFLICT:
    case STATUS_FULL:
        return FAULT_MAYBE;
    case STATUS_OK:
    case STATUS_FENCED:
    case STATUS_HELD:
    case STATUS_CORRUPT:
    case STATUS_FATAL:
        break;
    }
    return FAULT_NOT_ITS;
}

/* It is to blame: who asked is told why, instead of "nobody carried it out". */
static enum status request_refuse(struct planning *p, const struct request_row *q,
                                  const struct error *why, struct error *err)
{
    struct store_call call;
    char text[ERROR_TEXT_MAX + 64];
    (void)snprintf(text, sizeof text, "it cannot be carried out: %s", why->text);
    enum status s = planning_call(p, &call, err);
    return s == STATUS_OK ? store_refuse_request(&call, q->id, text, err) : s;
}

/* It failed: not tried again at once, and each time later. */
static enum course request_failed(struct planning *p, const struct request_row *q, enum status *s,
                                  struct error *err)
{
    struct error why = *err;
    enum fault fault = fault_of(*s, &why);
    if (fault == FAULT_NOT_ITS) {
        return COURSE_STOP;
    }
    bool struck = rest_fail(&p->request_rest, q->id, clock_now(), p->writes);
    bool refuse = (struck || fault == FAULT_ITS) && !store_is_broken(p->store);
    log_event(LOG_LEVEL_WARN, refuse ? "request fails and is refused" : "request failed",
              "scope=%s request=%s kind=%s subject=%s status=%s error=%s", p->authority->scope,
              q->id, q->kind, log_quote(q->subject).text, status_name(*s),
              log_quote(why.text).text);
    if (refuse) {
        *s = request_refuse(p, q, &why, err);
        return *s == STATUS_OK || fault_of(*s, err) != FAULT_NOT_ITS ? COURSE_LATER : COURSE_STOP;
    }
    /* Our own deadline broke the connection: the caller opens another, and this one rests. */
    return store_is_broken(p->store) ? COURSE_STOP : COURSE_LATER;
}

static enum status request_answer(struct planning *p, const struct request_row *q,
                                  enum course *ret_course, struct error *err)
{
    struct store_call call;
    struct request_verdict answer;
    char job[UUID_TEXT_MAX];
    enum status s = planning_call(p, &call, err);
    if (s != STATUS_OK) {
        *ret_course = COURSE_STOP;
        return s;
    }
    uuid_time_ordered(q->now, job);
    err->code[0] = '\0';
    s = store_answer_request(&call, q->id, job, &answer, err);
    if (s != STATUS_OK) {
        *ret_course = request_failed(p, q, &s, err);
        return s;
    }
    if (answer.waits || answer.leaves) {
        p->result.leave = p->result.leave || answer.leaves;
        p->handing_over = true;
        *ret_course = COURSE_LATER;
        return STATUS_OK;
    }
    if (answer.skipped) {
        rest_skip(&p->request_rest, q->id, clock_now());
        *ret_course = COURSE_LATER;
        return STATUS_OK;
    }
    rest_forget(&p->request_rest, q->id);
    p->writes++;
    p->result.outbox = true; /* it may have let something go, or made something that waits */
    p->may_wait = true;
    p->look_at = clock_now(); /* a pause is an edit */
    p->result.more = true;
    log_event(LOG_LEVEL_INFO, "request answered",
              "scope=%s request=%s kind=%s subject=%s answer=%s", p->authority->scope, q->id,
              q->kind, log_quote(q->subject).text, log_quote(answer.text).text);
    *ret_course = COURSE_ANSWERED;
    return STATUS_OK;
}

/* The pending ones, oldest first. As many more are read as rest, or these would hide the others. */
static enum status requests_read(struct planning *p, size_t *ret_limit, struct error *err)
{
    struct store_call call;
    instant sent = clock_now();
    enum status s = planning_call(p, &call, err);
    *ret_limit = REQUESTS_STEP_MAX + rest_count(&p->request_rest, sent);
    if (s == STATUS_OK) {
        s = store_pending_requests(&call, *ret_limit, p->requests, err);
    }
    if (s == STATUS_OK && p->requests->count > 0) {
        s = planning_clock_saw(p, p->requests->rows[0].now, sent, err);
    }
    return s;
}

enum status planning_answer_requests(struct planning *p, bool *ret_more, struct error *err)
{
    struct error local = {.text = ""};
    struct error *why = err != NULL ? err : &local;
    size_t limit = 0;
    enum status s = requests_read(p, &limit, why);
    instant until = instant_add_ms(clock_now(), STEP_MS);
    size_t tried = 0;
    bool cut = false;
    p->handing_over = false;
    for (size_t i = 0; s == STATUS_OK && i < p->requests->count && !cut; i++) {
        const struct request_row *q = &p->requests->rows[i];
        enum course course = COURSE_LATER;
        if (rest_is_on(&p->request_rest, q->id, clock_now())) {
            continue;
        }
        s = request_answer(p, q, &course, why);
        tried++;
        if (course == COURSE_STOP) {
            return s;
        }
        s = STATUS_OK;
        cut = !instant_before(clock_now(), until);
    }
    if (s == STATUS_OK) {
        /* Also when all of these failed: the next step reads beyond them, since they rest. */
        *ret_more = cut || (tried > 0 && p->requests->count == limit);
    }
    return s;
}
