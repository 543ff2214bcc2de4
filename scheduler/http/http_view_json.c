#include "http_view.h"

#include <jansson.h>
#include <string.h>

char *view_livez_json(const struct view *view)
{
    json_t *loops = json_array();
    for (size_t i = 0; i < view->loop_count; i++) {
        const struct view_loop *loop = &view->loops[i];
        (void)json_array_append_new(loops,
                                    json_pack("{s:s, s:s, s:b, s:f, s:f}", "loop", loop->name,
                                              "scope", loop->scope, "turns", view_loop_turns(loop),
                                              "silent_s", (double)loop->silent_ms / 1e3,
                                              "allowed_s", (double)loop->allowed_ms / 1e3));
    }
    json_t *object = json_pack("{s:b, s:s, s:o}", "live", view_is_live(view), "member",
                               view->member, "loops", loops);
    char *text = json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    json_decref(object);
    return text;
}

/* `problem` may quote what a server said, in whatever encoding. */
static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    return value == NULL ? json_string("(not UTF-8)") : value;
}

static json_t *scope_json(const struct view *view, const struct scope_snapshot *scope,
                          enum view_readiness readiness, bool *ret_ready)
{
    const char *why = "";
    *ret_ready = view_scope_is_ready(scope, readiness, &why);
    double since_s = (double)instant_ms_between(scope->since, view->now) / 1e3;
    return json_pack("{s:s, s:b, s:s, s:s, s:f, s:I, s:I, s:i, s:b, s:s, s:o}", "scope",
                     scope->name, "ready", *ret_ready, "why", why, "state",
                     lifecycle_state_name(scope->state), "since_s", since_s, "incarnation",
                     (json_int_t)scope->incarnation, "generation", (json_int_t)scope->generation,
                     "ahead", (int)scope->ahead, "database", scope->has_database, "left_because",
                     lifecycle_reason_name(scope->reason), "problem", text_json(scope->problem));
}

char *view_readyz_json(const struct view *view, const char *scope, bool *ret_ready)
{
    json_t *scopes = json_array();
    bool all = view->count > 0;
    for (size_t i = 0; i < view->count; i++) {
        bool ready = false;
        if (scope != NULL && strcmp(scope, view->scopes[i].name) != 0) {
            continue;
        }
        (void)json_array_append_new(
            scopes, scope_json(view, &view->scopes[i],
                               scope == NULL ? VIEW_READY_ANY : VIEW_READY_ACTIVE, &ready));
        all = all && ready;
    }
    json_t *object =
        json_pack("{s:b, s:s, s:o}", "ready", all, "member", view->member, "scopes", scopes);
    char *text = json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    json_decref(object);
    *ret_ready = all;
    return text;
}
