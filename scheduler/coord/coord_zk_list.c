/* The candidates of one scope: list, look at new ones, judge, watch, delete what is ours and left
 * over. Every event only starts another reading of the list; the decisions are election.h's. */
#include <stdio.h>
#include <string.h>

#include "coord_zk.h"
#include "log.h"
#include "mutant.h"

#define RETRY_MS 200 /* after a request that was not sent or not answered */

/* Deleting --------------------------------------------------------------------------------- */

/* Remember a node of ours that must go; deleted until the server says it is gone, or the session
 * is given up. An undeleted one would stand before us as long as this session lives. */
void seat_doom(struct coord *c, unsigned scope, const char *name)
{
    struct seat *seat = &c->seats[scope];
    struct doomed_node *slot = NULL;
    for (size_t i = 0; i < SEAT_NODES_DOOMED_MAX; i++) {
        if (strcmp(seat->doomed[i].name, name) == 0) {
            return;
        }
        if (slot == NULL && seat->doomed[i].name[0] == '\0') {
            slot = &seat->doomed[i];
        }
    }
    if (slot == NULL) {
        return; /* the next list finds it again as an orphan */
    }
    (void)snprintf(slot->name, sizeof slot->name, "%s", name);
    slot->asked = false;
}

void seat_send_deletes(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    for (size_t i = 0; i < SEAT_NODES_DOOMED_MAX; i++) {
        struct doomed_node *d = &seat->doomed[i];
        if (d->name[0] == '\0' || d->asked) {
            continue;
        }
        struct op *op = coord_op_new(c, OP_SEAT_DELETE, scope);
        if (op == NULL) {
            return;
        }
        char path[NODE_PATH_MAX];
        seat_node_path(seat, d->name, path);
        (void)snprintf(op->node, sizeof op->node, "%s", d->name);
        if (zk_client_delete(c->client, &op->ticket, path) == STATUS_OK) {
            d->asked = true;
        } else {
            coord_op_drop(op);
        }
    }
}

void list_on_deleted(struct coord *c, const struct op *op, const struct zk_message *m)
{
    struct seat *seat = &c->seats[op->scope];
    if (m->answer == ZK_FORBIDDEN) {
        /* Somebody has changed the access list. Our nodes go with the session; asking again and
         * again would not remove them. */
        char text[ACCESS_TEXT_MAX];
        session_abandon(c, access_refusal(c, m, seat->parent, text), clock_now());
        return;
    }
    for (size_t i = 0; i < SEAT_NODES_DOOMED_MAX; i++) {
        if (strcmp(seat->doomed[i].name, op->node) != 0) {
            continue;
        }
        seat->doomed[i].asked = false;
        if (m->answer == ZK_OK || m->answer == ZK_NO_NODE) {
            seat->doomed[i].name[0] = '\0';
        }
    }
}

bool seat_has_doomed(const struct seat *seat)
{
    for (size_t i = 0; i < SEAT_NODES_DOOMED_MAX; i++) {
        if (seat->doomed[i].name[0] != '\0') {
            return true;
        }
    }
    return false;
}

/* Listing ---------------------------------------------------------------------------------- */

void list_start(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    if (seat->list != SEAT_LIST_IDLE) {
        seat->list_again = true;
        return;
    }
    /* A server that lags could hide a create that the leader has ordered already: after an
     * ambiguous create, sync first. */
    bool sync = seat->step == SEAT_UNSURE;
    seat->synced = false;
    struct op *op = coord_op_new(c, sync ? OP_SEAT_SYNC : OP_SEAT_LIST, scope);
    seat->relist_at = instant_add_ms(clock_now(), RETRY_MS);
    if (op == NULL) {
        return;
    }
    enum status s = sync ? zk_client_sync(c->client, &op->ticket, seat->parent)
                         : zk_client_children(c->client, &op->ticket, seat->parent);
    if (s != STATUS_OK) {
        coord_op_drop(op);
        return;
    }
    seat->list = sync ? SEAT_LIST_SYNCING : SEAT_LIST_NAMES;
    seat->list_again = false;
}

static void list_end(struct seat *seat, int64_t next_ms)
{
    seat->list = SEAT_LIST_IDLE;
    seat->stats_pending = 0;
    seat->relist_at = instant_add_ms(clock_now(), seat->list_again ? 0 : next_ms);
    seat->list_again = false;
}

static bool send_stat(struct coord *c, unsigned scope, const char *name)
{
    struct seat *seat = &c->seats[scope];
    struct op *op = coord_op_new(c, OP_SEAT_STAT, scope);
    if (op == NULL) {
        return false;
    }
    char path[NODE_PATH_MAX];
    seat_node_path(seat, name, path);
    (void)snprintf(op->node, sizeof op->node, "%s", name);
    if (zk_client_get(c->client, &op->ticket, path) != STATUS_OK) {
        coord_op_drop(op);
        return false;
    }
    seat->stats_pending++;
    return true;
}

static void judge(struct coord *c, unsigned scope);

static void list_finish(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    if (seat->list_again || (seat->step == SEAT_UNSURE && !seat->synced)) {
        /* Something happened after it was asked for, such as the create of the own node: never
         * judge by an older list. */
        list_end(seat, 0);
        return;
    }
    memcpy(seat->candidates, seat->next, sizeof seat->candidates);
    seat->count = seat->next_count;
    list_end(seat, RELIST_MS);
    judge(c, scope);
}

/* Names are fresh GUIDs, so what was once seen of a name (czxid, owner) stays true of it. */
static void list_on_names(struct coord *c, unsigned scope, const struct zk_names *names)
{
    struct seat *seat = &c->seats[scope];
    if (names == NULL || names->count > CANDIDATES_MAX) {
        log_event(LOG_LEVEL_ERROR, "cannot judge the candidates", "scope=%s count=%zu most=%d",
                  seat->scope, names == NULL ? 0 : names->count, CANDIDATES_MAX);
        list_end(seat, RELIST_MS);
        return;
    }
    seat->next_count = 0;
    seat->list = SEAT_LIST_STATS;
    for (size_t i = 0; i < names->count; i++) {
        if (!candidate_name_is_valid(names->names[i])) {
            continue; /* somebody's note must not stand in the line for ever */
        }
        struct candidate *next = &seat->next[seat->next_count++];
        *next = (struct candidate){.czxid = 0};
        (void)snprintf(next->name, sizeof next->name, "%s", names->names[i]);
        for (size_t k = 0; k < seat->count; k++) {
            if (strcmp(seat->candidates[k].name, next->name) == 0) {
                *next = seat->candidates[k];
            }
        }
        if (next->czxid == 0 && !send_stat(c, scope, next->name)) {
            seat->list_again = true; /* incomplete: do not judge by it */
        }
    }
    if (seat->stats_pending == 0) {
        if (seat->list_again) {
            list_end(seat, RETRY_MS);
        } else {
            list_finish(c, scope);
        }
    }
}

void list_on_stat(struct coord *c, const struct op *op, const struct zk_message *m)
{
    struct seat *seat = &c->seats[op->scope];
    if (seat->list != SEAT_LIST_STATS || seat->stats_pending == 0) {
        return;
    }
    seat->stats_pending--;
    for (size_t i = 0; i < seat->next_count; i++) {
        if (strcmp(seat->next[i].name, op->node) != 0) {
            continue;
        }
        if (m->answer == ZK_OK && m->owner != 0) {
            seat->next[i].czxid = m->czxid;
            seat->next[i].owner = m->owner;
        } else if (m->answer == ZK_OK || m->answer == ZK_NO_NODE) { /* not ephemeral, or gone */
            seat->next[i] = seat->next[--seat->next_count];
        } else {
            seat->list_again = true;
        }
        break;
    }
    if (seat->stats_pending > 0) {
        return;
    }
    for (size_t i = 0; i < seat->next_count; i++) {
        if (seat->next[i].czxid == 0) { /* not all are known: read again rather than guess */
            list_end(seat, RETRY_MS);
            return;
        }
    }
    list_finish(c, op->scope);
}

void list_on_reply(struct coord *c, const struct op *op, const struct zk_message *m)
{
    struct seat *seat = &c->seats[op->scope];
    if (m->answer == ZK_NO_NODE && seat->step != SEAT_UNSURE) {
        session_setup_again(c);
        seat->next_count = 0;
        list_finish(c, op->scope); /* no parent, no candidates: the own node is gone, too */
        return;
    }
    if (m->answer != ZK_OK) {
        list_end(seat, RETRY_MS);
        return;
    }
    if (op->kind == OP_SEAT_LIST) {
        list_on_names(c, op->scope, m->names);
        return;
    }
    struct op *next = coord_op_new(c, OP_SEAT_LIST, op->scope);
    seat->list = SEAT_LIST_NAMES;
    seat->synced = true;
    if (next == NULL || zk_client_children(c->client, &next->ticket, seat->parent) != STATUS_OK) {
        if (next != NULL) {
            coord_op_drop(next);
        }
        list_end(seat, RETRY_MS);
    }
}

/* Watching --------------------------------------------------------------------------------- */

static void send_watch(struct coord *c, unsigned scope, const char *name)
{
    struct seat *seat = &c->seats[scope];
    struct op *op = coord_op_new(c, OP_SEAT_WATCH, scope);
    if (op == NULL) {
        return; /* the slow timer reads the list again and asks again */
    }
    char path[NODE_PATH_MAX];
    seat_node_path(seat, name, path);
    (void)snprintf(op->node, sizeof op->node, "%s", name);
    /* get, not exists: exists on a vanished node leaves a watch behind. */
    if (zk_client_get_and_watch(c->client, &op->ticket, path, scope) != STATUS_OK) {
        coord_op_drop(op);
        return;
    }
    if (strcmp(name, seat->own.name) == 0) {
        seat->own_watched = true;
    } else {
        (void)snprintf(seat->watched, sizeof seat->watched, "%s", name);
    }
}

void list_on_watched(struct coord *c, const struct op *op, const struct zk_message *m)
{
    if (m->answer != ZK_OK) {
        seat_on_watch(c, op->scope); /* gone before the watch was set */
    }
}

void seat_on_watch(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    seat->watched[0] = '\0';
    seat->own_watched = false;
    if (seat->list != SEAT_LIST_IDLE) {
        seat->list_again = true;
    }
    seat->relist_at = clock_now();
    if (MUTANT("first_without_relist") && seat->step == SEAT_IN) {
        struct coord_event rank = {.type = COORD_RANK, .attempt = seat->attempt};
        coord_tell(c, scope, &rank);
    }
}

/* Judging ---------------------------------------------------------------------------------- */

static void judge_own(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    struct election e =
        election_judge(seat->candidates, seat->count, seat->own.name, c->session_id);
    if (e.verdict == ELECTION_MISSING) {
        seat_empty(seat);
        seat_tell(c, scope, COORD_NODE_LOST, seat->own.name);
        return;
    }
    if (e.verdict == ELECTION_BEHIND &&
        strcmp(seat->watched, seat->candidates[e.predecessor].name) != 0) {
        send_watch(c, scope, seat->candidates[e.predecessor].name);
    }
    if (!seat->own_watched) {
        send_watch(c, scope, seat->own.name);
    }
    if (!seat->told || seat->told_ahead != e.ahead) {
        struct coord_event rank = {
            .type = COORD_RANK, .attempt = seat->attempt, .ahead = (unsigned)e.ahead};
        coord_tell(c, scope, &rank);
        seat->told = true;
        seat->told_ahead = (unsigned)e.ahead;
        seat->first =
            seat->first || e.ahead == 0; /* a leader stays one when a node comes back ahead of it */
    }
}

static void judge(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    if (seat->step == SEAT_UNSURE) {
        seat_resolve(c, scope);
        return;
    }
    if (seat->step == SEAT_CREATING) {
        return; /* the own node may be in the list without being known by name yet */
    }
    const char *own = seat->step == SEAT_IN ? seat->own.name : "";
    for (size_t i = 0; i < seat->count; i++) {
        if (election_is_orphan(&seat->candidates[i], own, c->session_id)) {
            seat_doom(c, scope, seat->candidates[i].name);
        }
    }
    if (seat->step == SEAT_IN) {
        judge_own(c, scope);
    }
}
