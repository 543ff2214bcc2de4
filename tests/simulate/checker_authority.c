/* Who may write, who leads: I1, I2, I8, I11, and the order of candidates. */
#include <inttypes.h>

#include "checker_state.h"

#define MS INT64_C(1000)

/* Protected writes that only a leader makes. */
static bool is_leaders(enum call_op op)
{
    return op == OP_ACTIVATE || op == OP_TERMINATE_OLDER || op == OP_REGISTER || op == OP_TAKE_IN ||
           op == OP_PLAN_BATCH || op == OP_MARK_PROBLEM || op == OP_TEND || op == OP_OUTBOX_ACK ||
           op == OP_OUTBOX_BURY || op == OP_OUTBOX_TRIM || op == OP_ANSWER_REQUEST;
}

static bool is_schedulers(enum call_op op)
{
    return is_leaders(op) || op == OP_ESTABLISH || op == OP_RELEASE_FENCE;
}

/* Of these, what the relay's thread makes. Both threads register. */
static bool is_relays(enum call_op op)
{
    return op == OP_OUTBOX_ACK || op == OP_OUTBOX_BURY || op == OP_OUTBOX_TRIM;
}

static bool later(int64_t incarnation, int64_t generation, const struct fence_row *f)
{
    return incarnation > f->incarnation ||
           (incarnation == f->incarnation && generation > f->generation);
}

static bool same(const struct fact *f, const struct fence_row *fence)
{
    return f->incarnation == fence->incarnation && f->generation == fence->generation &&
           f->owner == fence->owner;
}

static struct candidate_row *candidate_find(struct checker *c, int scope, int64_t czxid)
{
    for (size_t i = c->candidate_count; i-- > 0;) {
        if (c->candidates[i].scope == scope && c->candidates[i].czxid == czxid) {
            return &c->candidates[i];
        }
    }
    return NULL;
}

/* Calls in the store -----------------------------------------------------------------------------
 */

static void judge_establish(struct checker *c, const struct fact *f)
{
    const struct fence_row *fence = &c->tables.fences[f->scope];
    bool again = same(f, fence) && !fence->released;
    bool newer = later(f->incarnation, f->generation, fence);
    if (f->verdict == VERDICT_FENCED && (again || newer)) {
        blame(c, "I1", "generation %" PRId64 " was refused although the fence holds %" PRId64,
              f->generation, fence->generation);
    }
    if (f->verdict != VERDICT_OK) {
        return;
    }
    if (!again && !newer) {
        blame(c, "I2",
              "generation %" PRId64 ".%" PRId64 " was accepted after %" PRId64 ".%" PRId64
              " of another owner or released",
              f->incarnation, f->generation, fence->incarnation, fence->generation);
    }
    const struct candidate_row *own = candidate_find(c, f->scope, f->generation);
    if (own == NULL || own->node != f->node) {
        blame(c, "I1", "node %d established generation %" PRId64 ", which is not its candidate's",
              f->node, f->generation);
    }
    c->tally.establishes++;
    c->tally.takeovers += newer && fence->generation != 0;
}

void authority_before(struct checker *c, const struct transaction *x)
{
    const struct fact *f = x->call;
    if (f->op == OP_ESTABLISH) {
        judge_establish(c, f);
        return;
    }
    if (!is_leaders(f->op) && f->op != OP_RELEASE_FENCE) {
        return;
    }
    const struct fence_row *fence = &c->tables.fences[f->scope];
    /* To release again what was released is harmless: the first answer may have been lost. */
    bool holds = same(f, fence) && (!fence->released || f->op == OP_RELEASE_FENCE);
    if (f->verdict == VERDICT_OK && !holds) {
        blame(c, "I1",
              "%s of generation %" PRId64 ".%" PRId64 " owner %" PRIx64
              " was accepted; the fence holds %" PRId64 ".%" PRId64 " owner %" PRIx64 "%s",
              call_op_name(f->op), f->incarnation, f->generation, f->owner, fence->incarnation,
              fence->generation, fence->owner, fence->released ? ", released" : "");
    }
    if (f->verdict == VERDICT_FENCED && holds) {
        blame(c, "I1", "%s of the accepted generation %" PRId64 " was refused", call_op_name(f->op),
              f->generation);
    }
}

/* Giving leadership up (I11) ---------------------------------------------------------------------
 */

/* Calls of this generation that its node still waits for. One that it gave up on is either done or
 * will find the fence released: the server refuses it. */
static void judge_nothing_under_way(struct checker *c, int scope, int64_t generation,
                                    const char *what)
{
    for (size_t i = 0; i < c->call_count; i++) {
        const struct call_record *call = &c->calls[i];
        if (call->sent && !call->done && !call->answered && call->scope == scope &&
            call->generation == generation && is_leaders(call->op)) {
            blame(c, "I11", "generation %" PRId64 " %s while its %s (call %zu) is still under way",
                  generation, what, call_op_name(call->op), i);
        }
    }
}

static void candidate_gone(struct checker *c, const struct fact *f)
{
    struct candidate_row *own = candidate_find(c, f->scope, f->generation);
    if (own == NULL) {
        return;
    }
    own->gone = true;
    own->ended = own->ended || f->candidate_end != CANDIDATE_REWOUND;
    if (f->candidate_end == CANDIDATE_DELETED) {
        judge_nothing_under_way(c, f->scope, f->generation, "deleted its node");
        struct node *n = &c->nodes[own->node];
        n->scopes[f->scope].withdrawn_generation = f->generation;
    }
}

static bool gave_up(struct checker *c, const struct fact *f)
{
    const struct fence_row *fence = &c->tables.fences[f->scope];
    return c->nodes[f->node].scopes[f->scope].withdrawn_generation == f->generation ||
           (same(f, fence) && fence->released);
}

/* The lease (I8) ---------------------------------------------------------------------------------
 */

static void beat_sent(struct node *n, const struct fact *f)
{
    n->beats[n->beat_count++ % BEATS_MAX] =
        (struct beat){.number = f->number, .sent_us = f->node_us};
}

static void beat_answered(struct checker *c, struct node *n, const struct fact *f)
{
    const struct setup *s = c->setup;
    for (size_t i = 0; i < BEATS_MAX && i < n->beat_count; i++) {
        if (n->beats[i].number == f->number) {
            int64_t until =
                n->beats[i].sent_us + (s->session_ms - s->tick_ms - s->beat_ms - s->margin_ms) * MS;
            if (n->disconnected) {
                n->lapsed = n->deadline_us != HISTORY_NONE && f->node_us >= n->deadline_us;
            }
            if (n->deadline_us == HISTORY_NONE || until > n->deadline_us) {
                n->deadline_us = until;
            }
            n->disconnected = false;
            return;
        }
    }
}

static bool lease_holds_at(const struct node *n, int64_t node_us)
{
    return n->deadline_us != HISTORY_NONE && node_us < n->deadline_us &&
           (!n->disconnected || node_us < n->disconnected_us);
}

/* The code's own deadline is never later than what the sending of its last answered beat allows. */
static void lease_set_to(struct checker *c, const struct fact *f)
{
    const struct node *n = &c->nodes[f->node];
    if (f->until_us != HISTORY_NONE &&
        (n->deadline_us == HISTORY_NONE || f->until_us > n->deadline_us)) {
        blame(c, "I8", "node %d counts its lease until %" PRId64 "; its beats allow %" PRId64,
              f->node, f->until_us, n->deadline_us == HISTORY_NONE ? 0 : n->deadline_us);
    }
}

/* The relay's thread goes by the lease. Its scope ends it when it leaves ACTIVE, a moment after the
 * state says so, and by then the session may be confirmed and the lease given back. */
static bool may_decide_in(enum call_op op, enum node_state state)
{
    if ((is_relays(op) || op == OP_REGISTER) &&
        (state == STATE_SUSPENDED || state == STATE_ESTABLISHING)) {
        return true;
    }
    if (op == OP_ESTABLISH) {
        return state == STATE_ESTABLISHING;
    }
    if (op == OP_TERMINATE_OLDER) { /* on the way to establish */
        return state == STATE_ESTABLISHING;
    }
    if (op == OP_RELEASE_FENCE) {
        return state == STATE_RELEASING;
    }
    bool is_relays =
        op == OP_REGISTER || op == OP_OUTBOX_ACK || op == OP_OUTBOX_BURY || op == OP_OUTBOX_TRIM;
    if (state == STATE_RELEASING && is_relays) {
        return true; /* its own thread ends first of all there: what it may not do is outlive the
                        release (gave_up) or the lease */
    }
    return state == STATE_PREPARING || state == STATE_ACTIVE || state == STATE_DRAINING;
}

static void judge_decision(struct checker *c, const struct fact *f)
{
    const struct node *n = &c->nodes[f->node];
    enum node_state state = f->node_us < n->scopes[f->scope].since_us ? n->scopes[f->scope].before
                                                                      : n->scopes[f->scope].state;
    if (!is_schedulers(f->op)) {
        return;
    }
    if (!may_decide_in(f->op, state)) {
        blame(c, "I8", "node %d decides %s in state %s", f->node, call_op_name(f->op),
              node_state_name(state));
    }
    if (f->op != OP_RELEASE_FENCE && f->op != OP_TERMINATE_OLDER &&
        !lease_holds_at(n, f->node_us)) {
        blame(c, "I8", "node %d decides %s at %" PRId64 " of its clock; its lease %s %" PRId64,
              f->node, call_op_name(f->op), f->node_us,
              n->disconnected ? "ended with the connection; it was until" : "ended at",
              n->deadline_us == HISTORY_NONE ? 0 : n->deadline_us);
    }
    const struct candidate_row *own = candidate_find(c, f->scope, f->generation);
    if (f->op != OP_RELEASE_FENCE && f->op != OP_TERMINATE_OLDER && own != NULL &&
        n->session != 0 && own->session != n->session && f->node_us >= n->session_since_us) {
        blame(c, "I8",
              "node %d decides %s for generation %" PRId64 " of a session that it has no more",
              f->node, call_op_name(f->op), f->generation);
    }
    if (is_leaders(f->op) && f->op != OP_REGISTER &&
        n->scopes[f->scope].fenced[is_relays(f->op)] == f->generation) {
        blame(c, "I1", "node %d goes on with %s although generation %" PRId64 " was refused",
              f->node, call_op_name(f->op), f->generation);
    }
    if (f->op != OP_RELEASE_FENCE && gave_up(c, f)) {
        blame(c, "I11", "node %d decides %s for generation %" PRId64 ", which it has given up",
              f->node, call_op_name(f->op), f->generation);
    }
}

/* The ensemble ends a session no sooner than its owner has stopped deciding. */
static void session_ended(struct checker *c, const struct fact *f)
{
    const struct node *n = &c->nodes[f->node];
    if (f->candidate_end == CANDIDATE_EXPIRED && n->alive && n->session == f->session &&
        lease_holds_at(n, f->node_us)) {
        blame(c, "I8", "the session of node %d expired %" PRId64 " us before its lease", f->node,
              n->deadline_us - f->node_us);
    }
}

/* The order of candidates ------------------------------------------------------------------------
 */

static void judge_first(struct checker *c, const struct fact *f)
{
    const struct candidate_row *own = candidate_find(c, f->scope, f->generation);
    if (own == NULL || own->gone) {
        return; /* it will find out: its session ended, or somebody removed the node */
    }
    for (size_t i = 0; i < c->candidate_count; i++) {
        const struct candidate_row *o = &c->candidates[i];
        if (!o->gone && !o->revived && o->scope == f->scope && o->incarnation == own->incarnation &&
            o->czxid < own->czxid) {
            blame(c, "order",
                  "node %d takes itself for the first with czxid %" PRId64
                  " while node %d is ahead with %" PRId64,
                  f->node, own->czxid, o->node, o->czxid);
        }
    }
}

static void state_changed(struct checker *c, const struct fact *f)
{
    struct node *n = &c->nodes[f->node];
    /* What it was told may be old when it is disconnected by then: it decides nothing on it. */
    if (f->state == STATE_ESTABLISHING && f->was != STATE_ESTABLISHING && !n->disconnected) {
        judge_first(c, f);
    }
    if (f->state == STATE_ESTABLISHING && f->was == STATE_SUSPENDED) {
        c->tally.resumes++;
        /* Told of an earlier confirmation, when the session is given up by then: as above. */
        if (n->lapsed && n->session != 0) {
            blame(c, "I8", "node %d resumes, and its lease had run out meanwhile", f->node);
        }
    }
    if (f->state == STATE_ACTIVE && n->scopes[f->scope].behind &&
        !scope_held(&c->tables, f->scope)) {
        blame(c, "hold", "node %d leads scope %d on a database that is behind the mark", f->node,
              f->scope);
    }
    n->scopes[f->scope].before = n->scopes[f->scope].state;
    n->scopes[f->scope].since_us = f->node_us;
    n->scopes[f->scope].state = f->state;
    n->scopes[f->scope].generation = f->generation;
}

/* Facts ------------------------------------------------------------------------------------------
 */

static void node_fact(struct checker *c, const struct fact *f)
{
    if (f->node < 0) {
        return; /* nobody's: an operator, the database */
    }
    struct node *n = &c->nodes[f->node];
    if (f->kind == FACT_STARTED) {
        *n = (struct node){.alive = true, .deadline_us = HISTORY_NONE, .woke_us = HISTORY_NONE};
    } else if (f->kind == FACT_CRASHED || f->kind == FACT_STOPPED) {
        n->alive = false;
        for (size_t i = 0; i < HISTORY_SCOPES; i++) {
            n->scopes[i].state = STATE_STOPPED;
        }
    } else if (f->kind == FACT_PAUSED) {
        n->paused = true;
    } else if (f->kind == FACT_WOKE) {
        n->paused = false;
        n->woke_us = f->at_us;
    } else if (f->kind == FACT_SESSION_UP) {
        n->session = f->session;
        n->session_since_us = f->node_us;
        n->deadline_us = HISTORY_NONE;
        n->disconnected = n->lapsed = false;
    } else if (f->kind == FACT_SESSION_LOST) {
        n->session = 0;
        n->deadline_us = HISTORY_NONE;
    } else if (f->kind == FACT_DISCONNECTED) {
        n->disconnected_us = n->disconnected ? n->disconnected_us : f->node_us;
        n->disconnected = true;
    } else if (f->kind == FACT_BEAT_SENT) {
        beat_sent(n, f);
    } else if (f->kind == FACT_BEAT_ANSWERED) {
        beat_answered(c, n, f);
    } else if (f->kind == FACT_LEASE) {
        lease_set_to(c, f);
    } else if (f->kind == FACT_STATE) {
        state_changed(c, f);
    } else if (f->kind == FACT_MARK_BEHIND && c->setup->expect_mark) {
        n->scopes[f->scope].behind = true;
    }
}

static void call_fact(struct checker *c, const struct fact *f)
{
    struct call_record *call = call_find(c, f->call);
    if (f->kind == FACT_DECIDED) {
        judge_decision(c, f);
    } else if (f->kind == FACT_SENT) {
        call = call_find(c, f->call);
        call->op = f->op;
        call->node = f->node;
        call->scope = f->scope;
        call->incarnation = f->incarnation;
        call->generation = f->generation;
        call->owner = f->owner;
        call->sent = true;
    } else if (f->kind == FACT_VANISHED) {
        call->done = true;
    } else if (f->kind == FACT_ANSWERED) {
        call->answered = true;
        if (call->fenced && f->known && is_leaders(call->op) && call->op != OP_REGISTER) {
            c->nodes[call->node].scopes[call->scope].fenced[is_relays(call->op)] = call->generation;
        }
    }
}

static void ensemble_fact(struct checker *c, const struct fact *f)
{
    if (f->kind == FACT_SESSION_ENDED) {
        session_ended(c, f);
    } else if (f->kind == FACT_CANDIDATE_MADE) {
        const struct candidate_row *before = candidate_find(c, f->scope, f->generation);
        bool revived = before != NULL && before->ended && before->session == f->session;
        c->candidates =
            rows_grow(c->candidates, c->candidate_count, &c->candidate_room, sizeof *c->candidates);
        c->candidates[c->candidate_count++] = (struct candidate_row){.scope = f->scope,
                                                                     .node = f->node,
                                                                     .session = f->session,
                                                                     .incarnation = f->incarnation,
                                                                     .czxid = f->generation,
                                                                     .ended = revived,
                                                                     .revived = revived};
    } else if (f->kind == FACT_CANDIDATE_GONE) {
        candidate_gone(c, f);
    } else if (f->kind == FACT_ENSEMBLE_REBUILT || f->kind == FACT_ENSEMBLE_REWOUND) {
        for (size_t i = 0; i < c->candidate_count; i++) {
            c->candidates[i].gone = true;
        }
        for (size_t i = 0; i < HISTORY_NODES * HISTORY_SCOPES; i++) {
            /* Numbers begin lower down: the same one may be given again. */
            c->nodes[i / HISTORY_SCOPES].scopes[i % HISTORY_SCOPES].withdrawn_generation = 0;
        }
    }
}

/* The relay ends before the node is given back. (It ends soon after, not at the instant of, a
 * suspension: a message is not a write, and one too many changes nothing.) */
static void judge_publishing(struct checker *c, const struct fact *f)
{
    enum node_state state = c->nodes[f->node].scopes[f->scope].state;
    struct fact own = *f;
    own.generation = c->nodes[f->node].scopes[f->scope].generation;
    own.incarnation = c->tables.fences[f->scope].incarnation;
    own.owner = c->tables.fences[f->scope].owner;
    if (state == STATE_RELEASING && !gave_up(c, &own)) {
        return; /* the relay's thread ends first of all there */
    }
    if (state != STATE_ACTIVE && state != STATE_DRAINING && state != STATE_SUSPENDED) {
        blame(c, "I11", "node %d publishes for scope %d in state %s", f->node, f->scope,
              node_state_name(state));
    }
}

/* An operator has looked at what may be repeated, and lets it go on. */
static void hold_lifted(struct checker *c, int scope)
{
    for (size_t i = 0; i < HISTORY_NODES; i++) {
        for (int s = 0; s < HISTORY_SCOPES; s++) {
            if (scope < 0 || s == scope) {
                c->nodes[i].scopes[s].behind = false;
            }
        }
    }
}

void authority_fact(struct checker *c, const struct fact *f)
{
    if (f->kind == FACT_ROW_HOLD && f->lifted) {
        hold_lifted(c, f->scope);
    }
    if (f->kind == FACT_ROW_FENCE && f->released) {
        judge_nothing_under_way(c, f->scope, f->generation, "marked the fence released");
    }
    if (f->kind >= FACT_DECIDED && f->kind <= FACT_ANSWERED) {
        call_fact(c, f);
    } else if (f->kind == FACT_PRODUCED) {
        judge_publishing(c, f);
    } else {
        ensemble_fact(c, f);
        node_fact(c, f);
    }
}
