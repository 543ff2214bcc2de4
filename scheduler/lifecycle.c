#include "lifecycle.h"

#include <assert.h>

#include "lifecycle_table.h"

static const char *const state_names[LIFECYCLE_STATES] = {
    "DOWN",      "CONNECTING", "HELD",      "ENROLLING", "FOLLOWING", "ESTABLISHING",
    "PREPARING", "ACTIVE",     "SUSPENDED", "DRAINING",  "RELEASING", "STOPPED",
};

static const char *const event_names[LIFECYCLE_EVENTS] = {
    "backoff over",   "session up",     "session lost", "suspended",     "resumed",
    "ensemble known", "hold found",     "lifted",       "enrolled",      "enroll failed",
    "rank first",     "rank behind",    "node lost",    "established",   "superseded",
    "prepared",       "prepare failed", "fenced",       "lease expired", "database unhealthy",
    "database moved", "clock suspect",  "stuck",        "handoff",       "stand aside",
    "stop",           "drained",        "released",
};

static const char *const reason_names[LIFECYCLE_REASONS] = {
    "none",
    "stopped",
    "handoff",
    "suspended",
    "session_expired",
    "node_lost",
    "lease_expired",
    "fenced",
    "database_unhealthy",
    "stuck",
    "clock_suspect",
    "prepare_failed",
    "database_moved",
    "held",
};

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
