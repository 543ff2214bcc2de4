#include "history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct history {
    struct setup setup;
    struct fact *facts;
    size_t count, room;
    struct recipe **recipes; /* owned copies; facts point to them */
    size_t recipe_count, recipe_room;
};

static void must(const void *memory)
{
    if (memory == NULL) {
        (void)fprintf(stderr, "simulate: out of memory\n");
        abort();
    }
}

struct history *history_new(const struct setup *setup)
{
    struct history *h = calloc(1, sizeof *h);
    must(h);
    h->setup = *setup;
    return h;
}

void history_free(struct history *h)
{
    if (h == NULL) {
        return;
    }
    for (size_t i = 0; i < h->recipe_count; i++) {
        free(h->recipes[i]);
    }
    free(h->recipes);
    free(h->facts);
    free(h);
}

const struct setup *history_setup(const struct history *h)
{
    return &h->setup;
}

static const struct recipe *keep_recipe(struct history *h, const struct recipe *recipe)
{
    if (h->recipe_count == h->recipe_room) {
        h->recipe_room = h->recipe_room == 0 ? 64 : h->recipe_room * 2;
        h->recipes = realloc(h->recipes, h->recipe_room * sizeof *h->recipes);
        must(h->recipes);
    }
    struct recipe *copy = malloc(sizeof *copy);
    must(copy);
    *copy = *recipe;
    h->recipes[h->recipe_count++] = copy;
    return copy;
}

void history_add(struct history *h, const struct fact *fact)
{
    if (h->count > 0 && fact->at_us < h->facts[h->count - 1].at_us) {
        (void)fprintf(stderr, "simulate: true time went back with %s\n",
                      fact_kind_name(fact->kind));
        abort();
    }
    if (h->count == h->room) {
        h->room = h->room == 0 ? 4096 : h->room * 2;
        h->facts = realloc(h->facts, h->room * sizeof *h->facts);
        must(h->facts);
    }
    struct fact *f = &h->facts[h->count++];
    *f = *fact;
    if (f->recipe != NULL) {
        f->recipe = keep_recipe(h, f->recipe);
    }
}

size_t history_count(const struct history *h)
{
    return h->count;
}

const struct fact *history_at(const struct history *h, size_t index)
{
    return &h->facts[index];
}

/* Text ----------------------------------------------------------------------------------------- */

/* table: exempt from the length limit */
static const char *const kind_names[] = {
    [FACT_STARTED] = "started",
    [FACT_CRASHED] = "crashed",
    [FACT_STOPPED] = "stopped",
    [FACT_PAUSED] = "paused",
    [FACT_WOKE] = "woke",
    [FACT_SESSION_MADE] = "session made",
    [FACT_SESSION_ENDED] = "session ended",
    [FACT_CANDIDATE_MADE] = "candidate made",
    [FACT_CANDIDATE_GONE] = "candidate gone",
    [FACT_ENSEMBLE_REBUILT] = "ensemble rebuilt",
    [FACT_ENSEMBLE_REWOUND] = "ensemble rewound",
    [FACT_SESSION_UP] = "session up",
    [FACT_SESSION_LOST] = "session lost",
    [FACT_DISCONNECTED] = "disconnected",
    [FACT_BEAT_SENT] = "beat sent",
    [FACT_BEAT_ANSWERED] = "beat answered",
    [FACT_LEASE] = "lease",
    [FACT_STATE] = "state",
    [FACT_DECIDED] = "decided",
    [FACT_SENT] = "sent",
    [FACT_VANISHED] = "vanished",
    [FACT_CALL] = "call",
    [FACT_ANSWERED] = "answered",
    [FACT_ROW_ENSEMBLE] = "row ensemble",
    [FACT_ROW_FENCE] = "row fence",
    [FACT_ROW_VERSION] = "row version",
    [FACT_ROW_PROGRESS] = "row progress",
    [FACT_ROW_OCCURRENCE] = "row occurrence",
    [FACT_ROW_GAP] = "row gap",
    [FACT_ROW_JOB] = "row job",
    [FACT_ROW_OUTBOX] = "row outbox",
    [FACT_ROW_OUTBOX_GONE] = "row outbox gone",
    [FACT_ROW_ATTEMPT] = "row attempt",
    [FACT_ROW_ARTIFACT] = "row artifact",
    [FACT_ROW_HOLD] = "row hold",
    [FACT_ROW_PULSE] = "row pulse",
    [FACT_RENEWED] = "renewed",
    [FACT_FAILOVER] = "failover",
    [FACT_LOST] = "commit lost",
    [FACT_CLOCK_STEP] = "clock step",
    [FACT_MARK_BEHIND] = "mark behind",
    [FACT_PRODUCED] = "produced",
    [FACT_REPORTED] = "reported",
    [FACT_DELIVERED] = "delivered",
    [FACT_TOPIC_LOST] = "topic lost",
    [FACT_RENEW_ASKED] = "renew asked",
    [FACT_RUN_BEGUN] = "run begun",
    [FACT_RUN_ENDED] = "run ended",
    [FACT_FAULT_BEGUN] = "fault begun",
    [FACT_FAULT_HEALED] = "fault healed",
    [FACT_FAULTS_OVER] = "faults over",
    [FACT_END] = "end",
};
_Static_assert(sizeof kind_names / sizeof kind_names[0] == FACT_KINDS, "a fact has no name");

/* table: exempt from the length limit */
static const char *const op_names[] = {
    [OP_NONE] = "-",
    [OP_ENSEMBLE_MEET] = "ensemble_meet",
    [OP_ESTABLISH] = "establish",
    [OP_ACTIVATE] = "activate",
    [OP_TERMINATE_OLDER] = "terminate_older",
    [OP_REGISTER] = "register",
    [OP_RELEASE_FENCE] = "release_fence",
    [OP_TAKE_IN] = "take_in",
    [OP_PLAN_BATCH] = "plan_batch",
    [OP_MARK_PROBLEM] = "mark_problem",
    [OP_TEND] = "tend",
    [OP_OUTBOX_ACK] = "outbox_ack",
    [OP_OUTBOX_BURY] = "outbox_bury",
    [OP_OUTBOX_TRIM] = "outbox_trim",
    [OP_ANSWER_REQUEST] = "answer_request",
    [OP_WORKER_REGISTER] = "worker_register",
    [OP_CLAIM_IDS] = "claim_ids",
    [OP_CLAIM_READY] = "claim_ready",
    [OP_HEARTBEAT] = "heartbeat",
    [OP_RECORD_OUTCOMES] = "record_outcomes",
    [OP_RELEASE_CLAIMS] = "release_claims",
    [OP_RAISE_HOLD] = "raise_hold",
    [OP_LIFT_HOLD] = "lift_hold",
    [OP_EDIT] = "edit",
};

static const char *const state_names[] = {
    "DOWN",      "CONNECTING", "HELD",      "ENROLLING", "FOLLOWING", "ESTABLISHING",
    "PREPARING", "ACTIVE",     "SUSPENDED", "DRAINING",  "RELEASING", "STOPPED",
};
static const char *const job_names[] = {
    "waiting", "queued", "running", "retry_wait", "succeeded", "failed", "cancelled", "quarantined",
};
static const char *const verdict_names[] = {"ok", "fenced", "held", "error", "terminated"};

const char *fact_kind_name(enum fact_kind kind)
{
    return kind_names[kind];
}

const char *call_op_name(enum call_op op)
{
    return op_names[op];
}

const char *node_state_name(enum node_state state)
{
    return state_names[state];
}

const char *job_state_name(enum job_state state)
{
    return job_names[state];
}

struct line {
    char *text;
    size_t size, used;
};

static void put(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct line *l, const char *format, ...)
{
    if (l->used >= l->size) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(l->text + l->used, l->size - l->used, format, arguments);
    va_end(arguments);
    l->used += n < 0 ? 0 : (size_t)n;
}

static void put_number(struct line *l, const char *name, int64_t value)
{
    if (value != 0 && value != HISTORY_NONE) {
        put(l, " %s=%" PRId64, name, value);
    }
}

static void put_identity(struct line *l, const char *name, uint64_t value)
{
    if (value != 0) {
        put(l, " %s=%" PRIx64, name, value);
    }
}

static void put_kind_specific(struct line *l, const struct fact *f)
{
    if (f->kind == FACT_STATE) {
        put(l, " %s -> %s", state_names[f->was], state_names[f->state]);
    }
    if (f->kind == FACT_CALL) {
        put(l, " verdict=%s", verdict_names[f->verdict]);
    }
    if (f->kind == FACT_ROW_JOB || f->kind == FACT_ROW_ATTEMPT) {
        put(l, " job_state=%s waits=%d overlap=%d", job_names[f->job_state], (int)f->waits,
            (int)f->overlap);
    }
    if (f->kind == FACT_ROW_GAP) {
        put(l, " gap=%d", (int)f->gap);
    }
    if (f->kind == FACT_ANSWERED || f->kind == FACT_REPORTED) {
        put(l, " known=%d", f->known);
    }
    if (f->kind == FACT_ROW_FENCE) {
        put(l, " released=%d", f->released);
    }
}

void fact_format(const struct fact *f, char *ret_text, size_t size)
{
    struct line l = {.text = ret_text, .size = size};
    put(&l, "%10.6f %-16s node=%d scope=%d", (double)f->at_us / 1e6, kind_names[f->kind], f->node,
        f->scope);
    put_number(&l, "node_us", f->node_us);
    put_number(&l, "db_us", f->db_us);
    put_number(&l, "call", f->call);
    if (f->op != OP_NONE) {
        put(&l, " op=%s", op_names[f->op]);
    }
    put_kind_specific(&l, f);
    put_number(&l, "incarnation", f->incarnation);
    put_number(&l, "generation", f->generation);
    put_identity(&l, "owner", f->owner);
    put_number(&l, "session", f->session);
    put_number(&l, "number", f->number);
    if (f->kind >= FACT_ROW_VERSION && f->kind <= FACT_ROW_JOB) {
        put(&l, " schedule=%d version=%d", f->schedule, f->version);
    }
    if (f->key[0] != '\0') {
        put(&l, " key=%s", f->key);
    }
    put_number(&l, "id", f->id);
    put_identity(&l, "job", f->job);
    put_identity(&l, "token", f->token);
    put_identity(&l, "worker", f->worker);
    put_number(&l, "step", f->step);
    put_number(&l, "fire", f->fire_us);
    put_number(&l, "last", f->last_us);
    put_number(&l, "next", f->next_us);
    put_number(&l, "switched", f->switched_us);
    put_number(&l, "from", f->from_us);
    put_number(&l, "to", f->to_us);
    put_number(&l, "firings", f->firings);
    put_number(&l, "until", f->until_us);
    put_number(&l, "lease", f->lease_us);
    put_number(&l, "by", f->by_us);
    if (f->name != NULL) {
        put(&l, " %s", f->name);
    }
}
