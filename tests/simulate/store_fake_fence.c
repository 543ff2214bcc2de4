/* The port scheduler/store/store_fence.h on the database in memory. */
#include <stdio.h>
#include <string.h>

#include "store_fake.h"
#include "store_fence.h"
#include "world.h"

static enum status status_of(enum call_verdict verdict)
{
    switch (verdict) {
    case VERDICT_OK:
        return STATUS_OK;
    case VERDICT_FENCED:
        return STATUS_FENCED;
    case VERDICT_HELD:
        return STATUS_HELD;
    case VERDICT_ERROR:
    case VERDICT_TERMINATED:
        return STATUS_INVALID;
    }
    return STATUS_INVALID;
}

struct meet_request {
    struct request q;
    char ensemble[128];
    enum db_meeting meeting;
    int64_t incarnation;
};

static void meet_execute(struct request *q, struct transaction *t)
{
    struct meet_request *r = (struct meet_request *)q;
    r->meeting = ensemble_meet(t, r->ensemble, &r->incarnation);
    request_answer(q, VERDICT_OK, STATUS_OK);
}

static enum fence_ensemble meeting_of(enum db_meeting meeting)
{
    switch (meeting) {
    case MEETING_KNOWN:
        return FENCE_ENSEMBLE_KNOWN;
    case MEETING_ADOPTED:
        return FENCE_ENSEMBLE_ADOPTED;
    case MEETING_UNKNOWN:
        return FENCE_ENSEMBLE_UNKNOWN;
    case MEETING_RETIRED:
        return FENCE_ENSEMBLE_RETIRED;
    }
    return FENCE_ENSEMBLE_UNKNOWN;
}

enum status fence_meet(struct store *store, const char *ensemble, const char *member,
                       instant deadline, enum fence_ensemble *ret_meeting, int64_t *ret_incarnation,
                       struct error *err)
{
    (void)member;
    struct meet_request *r = request_new(sizeof *r, OP_ENSEMBLE_MEET, meet_execute);
    (void)snprintf(r->ensemble, sizeof r->ensemble, "%s", ensemble);
    enum status status = exchange(store, deadline, &r->q, err);
    if (status == STATUS_OK) {
        *ret_meeting = meeting_of(r->meeting);
        *ret_incarnation = r->incarnation != 0 ? r->incarnation : *ret_incarnation;
    }
    request_end(&r->q);
    return status;
}

/* There is one installation only; nothing is recorded for people. */
static void root_execute(struct request *q, struct transaction *t)
{
    (void)t;
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status fence_root_refused(struct store *store, const struct fence_root *root, instant deadline,
                               struct error *err)
{
    (void)root;
    struct request *q = request_new(sizeof *q, OP_NONE, root_execute);
    enum status status = exchange(store, deadline, q, err);
    request_end(q);
    return status;
}

struct read_request {
    struct request q;
    struct fence_row row;
};

static void read_execute(struct request *q, struct transaction *t)
{
    const struct db_fence *f = &db.fences[q->scope];
    (void)t;
    ((struct read_request *)q)->row = (struct fence_row){.incarnation = f->incarnation,
                                                         .generation = f->generation,
                                                         .released = f->released,
                                                         .held = is_held(q->scope)};
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status fence_read(struct store *store, const char *scope, instant deadline,
                       struct fence_row *ret_row, struct error *err)
{
    struct authority a = {.incarnation = 0};
    struct read_request *r = request_new(sizeof *r, OP_NONE, read_execute);
    (void)snprintf(a.scope, sizeof a.scope, "%s", scope);
    request_authority(&r->q, &a);
    enum status status = exchange(store, deadline, &r->q, err);
    if (status == STATUS_OK) {
        *ret_row = r->row;
    }
    request_end(&r->q);
    return status;
}

/* Calls that bring an authority and answer one word. */
static enum status guarded(struct store *store, enum call_op op, const struct authority *a,
                           void (*execute)(struct request *, struct transaction *),
                           instant deadline, struct error *err)
{
    struct request *q = request_new(sizeof *q, op, execute);
    request_authority(q, a);
    enum status status = exchange(store, deadline, q, err);
    request_end(q);
    return status;
}

struct marks_request {
    struct request q;
    char mark[UUID_TEXT_MAX], acknowledged[UUID_TEXT_MAX];
};

static void establish_execute(struct request *q, struct transaction *t)
{
    const struct marks_request *r = (const struct marks_request *)q;
    const char *marks[] = {r->mark, r->acknowledged};
    world_mark_looked_at(t);
    enum call_verdict verdict = establish(t, marks);
    if (verdict == VERDICT_ERROR) {
        request_fail(q, STATUS_INVALID, "RS003", "incarnation is not that of a known ensemble");
    } else {
        request_answer(q, verdict, status_of(verdict));
    }
}

enum status fence_establish(struct store *store, const struct authority *a,
                            const struct fence_member *member, instant deadline, struct error *err)
{
    struct marks_request *r = request_new(sizeof *r, OP_ESTABLISH, establish_execute);
    request_authority(&r->q, a);
    (void)snprintf(r->mark, sizeof r->mark, "%s", member->mark == NULL ? "" : member->mark);
    (void)snprintf(r->acknowledged, sizeof r->acknowledged, "%s",
                   member->acknowledged == NULL ? "" : member->acknowledged);
    enum status status = exchange(store, deadline, &r->q, err);
    request_end(&r->q);
    return status;
}

bool fence_is_busy(const struct error *err)
{
    return strcmp(err->code, "55P03") == 0;
}

static void terminate_execute(struct request *q, struct transaction *t)
{
    (void)t; /* calls are serial here: none of an older generation holds a lock */
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status fence_terminate(struct store *store, const struct authority *a, instant deadline,
                            int64_t *ret_ended, struct error *err)
{
    enum status status = guarded(store, OP_TERMINATE_OLDER, a, terminate_execute, deadline, err);
    if (status == STATUS_OK) {
        *ret_ended = 0;
    }
    return status;
}

static void register_execute(struct request *q, struct transaction *t)
{
    enum call_verdict verdict =
        register_backend(t, ((const struct marks_request *)q)->acknowledged);
    request_answer(q, verdict, verdict == VERDICT_ERROR ? STATUS_CONFLICT : status_of(verdict));
}

enum status fence_register(struct store *store, const struct authority *a, const char *acknowledged,
                           instant deadline, struct error *err)
{
    struct marks_request *r = request_new(sizeof *r, OP_REGISTER, register_execute);
    request_authority(&r->q, a);
    (void)snprintf(r->acknowledged, sizeof r->acknowledged, "%s",
                   acknowledged == NULL ? "" : acknowledged);
    enum status status = exchange(store, deadline, &r->q, err);
    request_end(&r->q);
    return status;
}

struct proof_request {
    struct request q;
    int64_t read;
};

static void proof_execute(struct request *q, struct transaction *t)
{
    bool proved = prove_regressed(t, ((const struct proof_request *)q)->read);
    request_answer(q, VERDICT_OK, proved ? STATUS_OK : STATUS_CONFLICT);
}

enum status fence_prove_regressed(struct store *store, const struct authority *a,
                                  const struct fence_proof *proof, instant deadline,
                                  struct error *err)
{
    struct proof_request *r = request_new(sizeof *r, OP_RAISE_HOLD, proof_execute);
    request_authority(&r->q, a);
    r->read = proof->read;
    enum status status = exchange(store, deadline, &r->q, err);
    request_end(&r->q);
    return status;
}

static void activated_execute(struct request *q, struct transaction *t)
{
    enum call_verdict verdict = activated(t);
    request_answer(q, verdict, status_of(verdict));
}

enum status fence_activated(struct store *store, const struct authority *a, int64_t prepared_ms,
                            instant deadline, struct error *err)
{
    (void)prepared_ms;
    return guarded(store, OP_ACTIVATE, a, activated_execute, deadline, err);
}

static void release_execute(struct request *q, struct transaction *t)
{
    enum call_verdict verdict = release(t);
    request_answer(q, verdict, status_of(verdict));
}

enum status fence_release(struct store *store, const struct authority *a, const char *reason,
                          instant deadline, struct error *err)
{
    (void)reason;
    return guarded(store, OP_RELEASE_FENCE, a, release_execute, deadline, err);
}

static void note_execute(struct request *q, struct transaction *t)
{
    (void)t; /* the diary is for people */
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status fence_note(struct store *store, const struct authority *a,
                       const struct fence_note *note, instant deadline, struct error *err)
{
    (void)note;
    return guarded(store, OP_NONE, a, note_execute, deadline, err);
}
