#include "observe.h"

#include <stddef.h>
#include <string.h>

/* The adapter's own name for its quorum write is a call of the store in history.h. */
#define OP_HEARTBEAT COORD_OP_HEARTBEAT
#include "coord_zk.h"
#include "faults.h"
#undef OP_HEARTBEAT
#include "lifecycle.h"
#include "node.h"
#include "scope_shell.h"
#include "world.h"
#include "zk_fake.h"

/* The linker's names. */
struct lifecycle_outcome __real_lifecycle_step(struct lifecycle *l, enum lifecycle_event event);
struct lifecycle_outcome __wrap_lifecycle_step(struct lifecycle *l, enum lifecycle_event event);
enum status __real_coord_new(const struct coord_options *options, struct coord **ret_coord,
                             struct error *err);
enum status __wrap_coord_new(const struct coord_options *options, struct coord **ret_coord,
                             struct error *err);
void __real_coord_tell_all(struct coord *c, enum coord_event_type type, const char *text);
void __wrap_coord_tell_all(struct coord *c, enum coord_event_type type, const char *text);
void __real_session_on_link(struct coord *c, enum zk_link link, instant now);
void __wrap_session_on_link(struct coord *c, enum zk_link link, instant now);
void __real_session_on_reply(struct coord *c, const struct op *op, const struct zk_message *m,
                             instant now);
void __wrap_session_on_reply(struct coord *c, const struct op *op, const struct zk_message *m,
                             instant now);

static struct {
    const struct lease *lease;
    int64_t until; /* as last told */
} seen[HISTORY_SCHEDULERS];

void observe_reset(void)
{
    memset(seen, 0, sizeof seen);
}

void observe_forget(int node)
{
    if (!node_is_worker(node)) {
        seen[node].lease = NULL;
        seen[node].until = 0;
    }
}

void nodes_look(void)
{
    for (int i = 0; i < world.setup.schedulers; i++) {
        if (seen[i].lease == NULL || lease_until(seen[i].lease).ns == seen[i].until) {
            continue;
        }
        seen[i].until = lease_until(seen[i].lease).ns;
        world_fact((struct fact){.kind = FACT_LEASE,
                                 .node = i,
                                 .node_us = process_clock(kernel_process(i)) / KERNEL_US,
                                 .until_us = seen[i].until == 0 ? HISTORY_NONE
                                                                : seen[i].until / KERNEL_US});
    }
}

enum status __wrap_coord_new(const struct coord_options *options, struct coord **ret_coord,
                             struct error *err)
{
    enum status status = __real_coord_new(options, ret_coord, err);
    if (status == STATUS_OK) {
        seen[process_current()->node].lease = coord_lease(*ret_coord);
    }
    return status;
}

static enum node_state state_of(enum lifecycle_state state)
{
    switch (state) {
    case LIFECYCLE_DOWN:
        return STATE_DOWN;
    case LIFECYCLE_CONNECTING:
        return STATE_CONNECTING;
    case LIFECYCLE_HELD:
        return STATE_HELD;
    case LIFECYCLE_ENROLLING:
        return STATE_ENROLLING;
    case LIFECYCLE_FOLLOWING:
        return STATE_FOLLOWING;
    case LIFECYCLE_ESTABLISHING:
        return STATE_ESTABLISHING;
    case LIFECYCLE_PREPARING:
        return STATE_PREPARING;
    case LIFECYCLE_ACTIVE:
        return STATE_ACTIVE;
    case LIFECYCLE_SUSPENDED:
        return STATE_SUSPENDED;
    case LIFECYCLE_DRAINING:
        return STATE_DRAINING;
    case LIFECYCLE_RELEASING:
        return STATE_RELEASING;
    case LIFECYCLE_STOPPED:
        return STATE_STOPPED;
    }
    return STATE_DOWN;
}

struct lifecycle_outcome __wrap_lifecycle_step(struct lifecycle *l, enum lifecycle_event event)
{
    struct lifecycle_outcome outcome = __real_lifecycle_step(l, event);
    if (process_current() == NULL || outcome.row == NULL || outcome.from == l->state) {
        return outcome;
    }
    const struct scope *s = (const struct scope *)((const char *)l - offsetof(struct scope, life));
    world_own_fact((struct fact){.kind = FACT_STATE,
                                 .scope = world_scope(s->options.name),
                                 .was = state_of(outcome.from),
                                 .state = state_of(l->state),
                                 .generation = l->node ? s->authority.generation : 0});
    return outcome;
}

void __wrap_coord_tell_all(struct coord *c, enum coord_event_type type, const char *text)
{
    enum fact_kind kind = type == COORD_SESSION_LOST ? FACT_SESSION_LOST : FACT_DISCONNECTED;
    if (type == COORD_SESSION_LOST || type == COORD_SUSPENDED) {
        world_own_fact((struct fact){.kind = kind, .session = c->session_id});
    }
    __real_coord_tell_all(c, type, text);
}

/* As the process hears of it; that it tells its scopes comes after (and is told again). */
void __wrap_session_on_link(struct coord *c, enum zk_link link, instant now)
{
    if (link == ZK_LINK_DOWN && c->phase == PHASE_READY) {
        world_own_fact((struct fact){.kind = FACT_DISCONNECTED, .session = c->session_id});
    }
    __real_session_on_link(c, link, now);
}

void __wrap_session_on_reply(struct coord *c, const struct op *op, const struct zk_message *m,
                             instant now)
{
    if (op->kind == COORD_OP_HEARTBEAT && m->answer == ZK_OK) {
        world_own_fact((struct fact){
            .kind = FACT_BEAT_ANSWERED, .session = c->session_id, .number = c->client->beat});
    }
    bool confirming = c->phase == PHASE_CONFIRMING;
    __real_session_on_reply(c, op, m, now);
    if (confirming && c->phase == PHASE_READY) {
        fault_session_confirmed(process_current()->node);
    }
}
