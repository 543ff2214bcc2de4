#include "lifecycle.h"

#include <assert.h>

#include "lifecycle_table.h"

static const char *const state_names[LIFECYCLE_STATES] = {
    [LIFECYCLE_DOWN] = "DOWN",           [LIFECYCLE_CONNECTING] = "CONNECTING",
    [LIFECYCLE_HELD] = "HELD",           [LIFECYCLE_ENROLLING] = "ENROLLING",
    [LIFECYCLE_FOLLOWING] = "FOLLOWING", [LIFECYCLE_ESTABLISHING] = "ESTABLISHING",
    [LIFECYCLE_PREPARING] = "PREPARING", [LIFECYCLE_ACTIVE] = "ACTIVE",
    [LIFECYCLE_SUSPENDED] = "SUSPENDED", [LIFECYCLE_DRAINING] = "DRAINING",
    [LIFECYCLE_RELEASING] = "RELEASING", [LIFECYCLE_STOPPED] = "STOPPED",
};

static const char *const event_names[LIFECYCLE_EVENTS] = {
    [LIFECYCLE_EV_BACKOFF_OVER] = "backoff over",
    [LIFECYCLE_EV_SESSION_UP] = "session up",
    [LIFECYCLE_EV_SESSION_LOST] = "session lost",
    [LIFECYCLE_EV_SUSPENDED] = "suspended",
    [LIFECYCLE_EV_RESUMED] = "resumed",
    [LIFECYCLE_EV_ENSEMBLE_KNOWN] = "ensemble known",
    [LIFECYCLE_EV_HOLD_FOUND] = "hold found",
    [LIFECYCLE_EV_LIFTED] = "lifted",
    [LIFECYCLE_EV_ENROLLED] = "enrolled",
    [LIFECYCLE_EV_ENROLL_FAILED] = "enroll failed",
    [LIFECYCLE_EV_RANK_FIRST] = "rank first",
    [LIFECYCLE_EV_RANK_BEHIND] = "rank behind",
    [LIFECYCLE_EV_NODE_LOST] = "node lost",
    [LIFECYCLE_EV_ESTABLISHED] = "established",
    [LIFECYCLE_EV_SUPERSEDED] = "superseded",
    [LIFECYCLE_EV_PREPARED] = "prepared",
    [LIFECYCLE_EV_PREPARE_FAILED] = "prepare failed",
    [LIFECYCLE_EV_FENCED] = "fenced",
    [LIFECYCLE_EV_LEASE_EXPIRED] = "lease expired",
    [LIFECYCLE_EV_DATABASE_UNHEALTHY] = "database unhealthy",
    [LIFECYCLE_EV_DATABASE_MOVED] = "database moved",
    [LIFECYCLE_EV_CLOCK_SUSPECT] = "clock suspect",
    [LIFECYCLE_EV_STUCK] = "stuck",
    [LIFECYCLE_EV_HANDOFF] = "handoff",
    [LIFECYCLE_EV_STAND_ASIDE] = "stand aside",
    [LIFECYCLE_EV_STOP] = "stop",
    [LIFECYCLE_EV_DRAINED] = "drained",
    [LIFECYCLE_EV_RELEASED] = "released",
};

static const char *const reason_names[LIFECYCLE_REASONS] = {
    [LIFECYCLE_REASON_NONE] = "none",
    [LIFECYCLE_REASON_STOPPED] = "stopped",
    [LIFECYCLE_REASON_HANDOFF] = "handoff",
    [LIFECYCLE_REASON_SUSPENDED] = "suspended",
    [LIFECYCLE_REASON_SESSION_EXPIRED] = "session_expired",
    [LIFECYCLE_REASON_NODE_LOST] = "node_lost",
    [LIFECYCLE_REASON_LEASE_EXPIRED] = "lease_expired",
    [LIFECYCLE_REASON_FENCED] = "fenced",
    [LIFECYCLE_REASON_DATABASE_UNHEALTHY] = "database_unhealthy",
    [LIFECYCLE_REASON_STUCK] = "stuck",
    [LIFECYCLE_REASON_CLOCK_SUSPECT] = "clock_suspect",
    [LIFECYCLE_REASON_PREPARE_FAILED] = "prepare_failed",
    [LIFECYCLE_REASON_DATABASE_MOVED] = "database_moved",
    [LIFECYCLE_REASON_HELD] = "held",
};

/* By bit, as they are carried out. */
static const char *const command_names[LIFECYCLE_COMMANDS] = {
    "cancel statement", "stop relay", "note",   "withdraw", "back off",
    "await session",    "meet",       "enroll", "warm",     "establish",
    "prepare",          "lead",       "drain",  "release",
};

const char *lifecycle_state_name(enum lifecycle_state state)
{
    return (size_t)state < LIFECYCLE_STATES ? state_names[state] : "?";
}

const char *lifecycle_event_name(enum lifecycle_event event)
{
    return (size_t)event < LIFECYCLE_EVENTS ? event_names[event] : "?";
}

const char *lifecycle_reason_name(enum lifecycle_reason reason)
{
    return (size_t)reason < LIFECYCLE_REASONS ? reason_names[reason] : "?";
}

const char *lifecycle_guard_name(enum lifecycle_guard guard)
{
    switch (guard) {
    case LIFECYCLE_ALWAYS:
        return "";
    case LIFECYCLE_WITH_NODE:
        return "with a node";
    case LIFECYCLE_WITHOUT_NODE:
        return "without a node";
    case LIFECYCLE_WITH_SESSION:
        return "with a session";
    case LIFECYCLE_WITHOUT_SESSION:
        return "without a session";
    case LIFECYCLE_STOPPING:
        return "stopping";
    case LIFECYCLE_HOLDING:
        return "held";
    }
    return "?";
}

const char *lifecycle_write_name(enum lifecycle_write write)
{
    switch (write) {
    case LIFECYCLE_WRITES_NOTHING:
        return "no";
    case LIFECYCLE_WRITES_ESTABLISH:
        return "only establish";
    case LIFECYCLE_WRITES_FENCED:
        return "fenced, until lease_until";
    case LIFECYCLE_WRITES_RELEASE:
        return "only release";
    }
    return "?";
}

const struct lifecycle_row *lifecycle_row_at(size_t index)
{
    return index < lifecycle_row_count ? &lifecycle_rows[index] : NULL;
}

const struct lifecycle_meaning *lifecycle_meaning_of(enum lifecycle_state state)
{
    assert((size_t)state < LIFECYCLE_STATES && lifecycle_meanings[state].state == state);
    return &lifecycle_meanings[state];
}

bool lifecycle_may_write(enum lifecycle_state state)
{
    return lifecycle_meaning_of(state)->write == LIFECYCLE_WRITES_FENCED;
}

static bool guard_holds(const struct lifecycle *l, enum lifecycle_guard guard)
{
    switch (guard) {
    case LIFECYCLE_ALWAYS:
        return true;
    case LIFECYCLE_WITH_NODE:
        return l->node;
    case LIFECYCLE_WITHOUT_NODE:
        return !l->node;
    case LIFECYCLE_WITH_SESSION:
        return l->session;
    case LIFECYCLE_WITHOUT_SESSION:
        return !l->session;
    case LIFECYCLE_STOPPING:
        return l->stopping;
    case LIFECYCLE_HOLDING:
        return l->holding;
    }
    return false;
}

/* What an event means whatever the state: facts, not decisions. */
static void remember(struct lifecycle *l, enum lifecycle_event event)
{
    if (event == LIFECYCLE_EV_SESSION_UP) {
        l->session = true;
    } else if (event == LIFECYCLE_EV_SESSION_LOST) {
        /* Its ephemeral nodes go with it. A hold is looked for anew with the next session. */
        l->session = false;
        l->node = false;
        l->holding = false;
    } else if (event == LIFECYCLE_EV_STOP) {
        l->stopping = true;
    } else if (event == LIFECYCLE_EV_HOLD_FOUND) {
        l->holding = true;
    } else if (event == LIFECYCLE_EV_LIFTED) {
        l->holding = false;
    } else if (event == LIFECYCLE_EV_ENROLLED) {
        l->node = true;
    } else if (event == LIFECYCLE_EV_ENROLL_FAILED || event == LIFECYCLE_EV_NODE_LOST ||
               event == LIFECYCLE_EV_RELEASED) {
        l->node = false;
    }
}

struct lifecycle_outcome lifecycle_step(struct lifecycle *l, enum lifecycle_event event)
{
    struct lifecycle_outcome out = {.from = l->state, .row = NULL, .commands = 0};
    if (l->state == LIFECYCLE_STOPPED) {
        return out;
    }
    remember(l, event);
    for (size_t i = 0; i < lifecycle_row_count; i++) {
        const struct lifecycle_row *row = &lifecycle_rows[i];
        if (row->state == l->state && row->event == event && guard_holds(l, row->guard)) {
            out.row = row;
            break;
        }
    }
    if (out.row == NULL) {
        return out;
    }
    out.commands = out.row->commands;
    l->state = out.row->next;
    if (out.row->reason != LIFECYCLE_REASON_NONE) {
        l->reason = out.row->reason;
    }
    if ((out.commands & LIFECYCLE_DO_ENROLL) != 0) {
        l->node = true; /* from now on it may exist */
    } else if ((out.commands & LIFECYCLE_DO_WITHDRAW) != 0) {
        l->node = false; /* coord deletes it, however long that takes */
    }
    return out;
}

static void print_commands(FILE *to, unsigned commands)
{
    const char *between = "";
    for (unsigned i = 0; i < LIFECYCLE_COMMANDS; i++) {
        if ((commands & (1U << i)) != 0) {
            (void)fprintf(to, "%s%s", between, command_names[i]);
            between = ", ";
        }
    }
}

static void print_markdown(FILE *to)
{
    (void)fputs("# Lifecycle of a scope on one replica\n\n"
                "Printed by `reportctl lifecycle -o markdown` from the table that the scheduler "
                "runs by.\n\n"
                "## States\n\n"
                "| state | meaning | may write |\n| --- | --- | --- |\n",
                to);
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        const struct lifecycle_meaning *m = &lifecycle_meanings[i];
        (void)fprintf(to, "| %s | %s | %s |\n", state_names[i], m->meaning,
                      lifecycle_write_name(m->write));
    }
    (void)fputs("\n## Edges\n\n"
                "An event without an edge in a state leaves the state as it is.\n\n"
                "| state | event | if | next | commands | reason | comment |\n"
                "| --- | --- | --- | --- | --- | --- | --- |\n",
                to);
    for (size_t i = 0; i < lifecycle_row_count; i++) {
        const struct lifecycle_row *r = &lifecycle_rows[i];
        (void)fprintf(to, "| %s | %s | %s | %s | ", state_names[r->state], event_names[r->event],
                      lifecycle_guard_name(r->guard), state_names[r->next]);
        print_commands(to, r->commands);
        (void)fprintf(to, " | %s | %s |\n",
                      r->reason == LIFECYCLE_REASON_NONE ? "" : reason_names[r->reason],
                      r->comment);
    }
}

static void print_text(FILE *to)
{
    (void)fprintf(to, "%-13s %-26s %s\n", "STATE", "MAY WRITE", "MEANING");
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        const struct lifecycle_meaning *m = &lifecycle_meanings[i];
        (void)fprintf(to, "%-13s %-26s %s\n", state_names[i], lifecycle_write_name(m->write),
                      m->meaning);
    }
    (void)fprintf(to, "\n%-13s %-19s %-18s %-13s %s\n", "STATE", "EVENT", "IF", "NEXT",
                  "COMMENT [COMMANDS]");
    for (size_t i = 0; i < lifecycle_row_count; i++) {
        const struct lifecycle_row *r = &lifecycle_rows[i];
        (void)fprintf(to, "%-13s %-19s %-18s %-13s %s", state_names[r->state],
                      event_names[r->event], lifecycle_guard_name(r->guard), state_names[r->next],
                      r->comment);
        if (r->commands != 0) {
            (void)fprintf(to, " [");
            print_commands(to, r->commands);
            (void)fprintf(to, "]");
        }
        (void)fputc('\n', to);
    }
}

void lifecycle_print(FILE *to, enum lifecycle_format format)
{
    switch (format) {
    case LIFECYCLE_TEXT:
        print_text(to);
        return;
    case LIFECYCLE_MARKDOWN:
        print_markdown(to);
        return;
    }
}
