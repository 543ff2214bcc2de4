/* The state of a scheduler process as its HTTP server shows it: gathered once a request from
 * snapshots, judged here, formatted in http_view_json.c and http_page.c. Only view_take looks at
 * what runs. */
#ifndef RS_HTTP_VIEW_H
#define RS_HTTP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "http_scheduler.h"
#include "scope.h"
#include "store_figures.h"
#include "store_request.h"

#define VIEW_LOOPS_MAX (COORD_SCOPES_MAX + 3)

/* A loop that must turn. */
struct view_loop {
    const char *name;           /* loop_name.h */
    char scope[NAME_MAX_BYTES]; /* whose loop it is; "": of the process */
    int64_t silent_ms;          /* since its last turn */
    int64_t allowed_ms;
};

/* What the observer last read of a scope (docs/metrics.md says what each is). */
struct view_facts {
    bool known; /* false: not read yet, or so long ago that it has vanished */
    double due_lag_s, queued, running, waiting, problems, holds, queue_holds, outbox,
        outbox_oldest_s;
};

struct view {
    instant now;
    char member[NAME_MAX_BYTES];
    struct scope_snapshot scopes[COORD_SCOPES_MAX];
    size_t count;
    struct view_facts facts[COORD_SCOPES_MAX]; /* by scope */
    struct view_loop loops[VIEW_LOOPS_MAX];
    size_t loop_count;
    struct request_leader leaders[COORD_SCOPES_MAX]; /* by the database, at leaders_at */
    size_t leader_count;
    instant leaders_at;  /* ns 0: not known yet */
    bool problems_known; /* by the observer, of late */
    struct problem_list problems;
};

/* Owns: free(). NULL: no memory. Thread: any. Blocks: never for long. */
struct view *view_take(const struct scheduler_http_options *options, const char *member);

/* From the metrics of the process, which the observer keeps. Thread: any. */
struct view_facts view_facts_read(const char *scope);

/* One more loop. The name is of loop_name.h; scope: "" or whose it is. */
struct view_turn {
    const char *name, *scope;
    instant turned;
    int64_t allowed_ms;
};
void view_loop_add(struct view *view, const struct view_turn *turn);

bool view_loop_turns(const struct view_loop *loop);
bool view_is_live(const struct view *view); /* every loop turns */

enum view_readiness {
    VIEW_READY_ANY,    /* leads, or can take over at once: what a load balancer asks */
    VIEW_READY_ACTIVE, /* leads */
};

/* Is the scope ready, and if not, why not: one sentence in *ret_why (static text). */
bool view_scope_is_ready(const struct scope_snapshot *scope, enum view_readiness readiness,
                         const char **ret_why);

/* Index in view->scopes, or SIZE_MAX. */
size_t view_find(const struct view *view, const char *scope);

/* {"live": ..., "loops": [...]}; malloc'ed, NULL: no memory. */
char *view_livez_json(const struct view *view);

/* {"ready": ..., "scopes": [...]}: all scopes, or the one named. */
char *view_readyz_json(const struct view *view, const char *scope, bool *ret_ready);

/* The page for people: HTML without script or anything from elsewhere. malloc'ed, NULL: no memory.
 */
char *view_page(const struct view *view, const char *version, size_t *ret_size);

#endif
