#include "http_view.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop_name.h"
#include "problem_board.h"

#define LOOK_LATE_MS                                                                               \
    10000 /* the main loop looks every second, and does nothing that takes long                    \
           */

void view_loop_add(struct view *view, const struct view_turn *turn)
{
    struct view_loop *loop = &view->loops[view->loop_count++];
    size_t length = strnlen(turn->scope, sizeof loop->scope - 1);
    loop->name = turn->name;
    memmove(loop->scope, turn->scope, length); /* not printf: the name may lie in the view itself */
    loop->scope[length] = '\0';
    loop->silent_ms = instant_ms_between(turn->turned, view->now);
    if (turn->turned.ns == 0 || loop->silent_ms < 0) {
        loop->silent_ms = 0; /* its thread is just starting; it turned while we looked */
    }
    loop->allowed_ms = turn->allowed_ms;
}

struct view *view_take(const struct scheduler_http_options *options, const char *member)
{
    struct view *v = calloc(1, sizeof *v);
    if (v == NULL) {
        return NULL;
    }
    v->now = clock_now();
    v->problems_known = problem_board_read(options->board, &v->problems);
    (void)snprintf(v->member, sizeof v->member, "%s", member);
    view_loop_add(
        v, &(struct view_turn){LOOP_MAIN, "", {atomic_load(options->looked_ns)}, LOOK_LATE_MS});
    view_loop_add(v, &(struct view_turn){LOOP_COORDINATION, "", coord_last_turn(options->coord),
                                         options->coord_late_ms});
    for (size_t i = 0; i < options->count; i++) {
        v->scopes[v->count] = scope_read(options->scopes[i]);
        v->facts[v->count] = view_facts_read(v->scopes[v->count].name);
        const struct scope_snapshot *scope = &v->scopes[v->count++];
        if (scope->state != LIFECYCLE_STOPPED) {
            view_loop_add(v, &(struct view_turn){LOOP_SCOPE, scope->name,
                                                 scope_last_turn(options->scopes[i]),
                                                 options->stuck_ms});
        }
    }
    return v;
}

bool view_loop_turns(const struct view_loop *loop)
{
    return loop->silent_ms < loop->allowed_ms;
}

bool view_is_live(const struct view *view)
{
    for (size_t i = 0; i < view->loop_count; i++) {
        if (!view_loop_turns(&view->loops[i])) {
            return false;
        }
    }
    return true;
}

bool view_scope_is_ready(const struct scope_snapshot *scope, enum view_readiness readiness,
                         const char **ret_why)
{
    *ret_why = "";
    if (scope->state == LIFECYCLE_ACTIVE) {
        return true;
    }
    if (readiness == VIEW_READY_ACTIVE) {
        *ret_why = "this replica does not lead the scope";
        return false;
    }
    if (scope->state == LIFECYCLE_FOLLOWING && scope->suspended) {
        *ret_why = "it follows, but ZooKeeper does not answer: it cannot take over";
        return false;
    }
    if (scope->state == LIFECYCLE_FOLLOWING) {
        *ret_why = scope->has_database ? "" : "it follows, but has no connection to the database";
        return scope->has_database;
    }
    *ret_why = scope->problem[0] == '\0' ? "it neither leads nor follows yet: see state"
                                         : "it neither leads nor follows: see state and problem";
    return false;
}

size_t view_find(const struct view *view, const char *scope)
{
    for (size_t i = 0; i < view->count; i++) {
        if (strcmp(view->scopes[i].name, scope) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}
