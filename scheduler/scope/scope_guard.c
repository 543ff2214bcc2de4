/* What a scope does against a ZooKeeper ensemble that was restored from an older state, and against
 * a database that forgot what it had acknowledged (docs/architecture.md, "Guards"). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "crash_point.h"
#include "log.h"
#include "scope_shell.h"

/* A node that is made after a number was read gets a higher one, in one life of an ensemble. Being
 * superseded is another thing: then the higher number was read after. */
bool scope_prove_regressed(struct scope *s)
{
    struct error err = {.text = ""};
    const struct fence_proof proof = {.read = s->read.generation, .member = s->options.member};
    if (s->life.state != LIFECYCLE_ENROLLING || s->read.incarnation != s->authority.incarnation ||
        s->authority.generation > s->read.generation || s->store == NULL ||
        store_is_broken(s->store)) {
        return false;
    }
    enum status status =
        fence_prove_regressed(s->store, &s->authority, &proof, scope_statement_deadline(s), &err);
    if (status != STATUS_OK) { /* it is refused as superseded then, and proved by the next node */
        log_event(LOG_LEVEL_WARN, "restored ensemble not recorded",
                  "scope=%s generation=%" PRId64 " read=%" PRId64 " error=%s", s->options.name,
                  s->authority.generation, s->read.generation, log_quote(err.text).text);
        return false;
    }
    (void)error_set(&err, STATUS_HELD,
                    "zxid_regressed: the ensemble gave number %" PRId64 " after %" PRId64
                    " had been in use, so it was restored from an older state; to go on with it: "
                    "reportctl fence rebase",
                    s->authority.generation, s->read.generation);
    scope_set_problem(s, "held", &err);
    return true;
}

bool scope_knows_root(struct scope *s)
{
    if (s->session == 0 || (s->suspended && s->root_owner[0] != '\0')) {
        return true; /* nobody can tell now: it is asked again before a node is made */
    }
    if (!s->root_here && !s->root_asked) {
        s->root_asked =
            coord_ask_root(s->options.coord, s->number, s->identity.installation) == STATUS_OK;
    }
    return s->root_here;
}

void scope_take_root(struct scope *s, const struct coord_event *e)
{
    if (e->session == s->session) {
        s->root_here = true;
        (void)snprintf(s->root_owner, sizeof s->root_owner, "%.*s", COORD_ENSEMBLE_MAX - 1,
                       e->text);
    }
}

enum status scope_root_is_taken(struct scope *s, bool *ret_taken, struct error *err)
{
    s->root_asked = s->root_here = false; /* the next look asks anew */
    if (s->session == 0 || strcmp(s->root_owner, s->identity.installation) == 0) {
        *ret_taken = false;
        return STATUS_OK;
    }
    const struct fence_root root = {
        .ensemble = s->ensemble, .owner = s->root_owner, .member = s->options.member};
    enum status status = fence_root_refused(s->store, &root, scope_statement_deadline(s), err);
    if (status != STATUS_OK) {
        return status;
    }
    (void)error_set(err, STATUS_HELD,
                    "root_taken: zookeeper_root belongs to installation %.64s, and this database "
                    "is installation %s; set zookeeper_root, another one for each installation",
                    s->root_owner, s->identity.installation);
    *ret_taken = true;
    return STATUS_OK;
}

void scope_ask_mark(struct scope *s)
{
    s->mark_here = false;
    s->mark_asked = coord_read_mark(s->options.coord, s->number) == STATUS_OK;
}

void scope_take_mark(struct scope *s, const char *mark)
{
    if (s->life.state != LIFECYCLE_ESTABLISHING || s->mark_here) {
        return;
    }
    s->mark_here = true;
    CRASH_POINT("establishing.mark_here");
    (void)snprintf(s->mark, sizeof s->mark, "%.*s", UUID_TEXT_MAX - 1, mark);
    if (s->mark[0] == '\0' && s->acknowledged[0] == '\0' && s->read.incarnation > 0) {
        log_event(LOG_LEVEL_WARN, "no high-water mark in ZooKeeper; the database is taken as it is",
                  "scope=%s generation=%" PRId64, s->options.name, s->authority.generation);
    }
}

void scope_acknowledge(struct scope *s, const char *job)
{
    (void)snprintf(s->acknowledged, sizeof s->acknowledged, "%.*s", UUID_TEXT_MAX - 1, job);
    if (coord_write_mark(s->options.coord, s->number, s->acknowledged) != STATUS_OK) {
        log_event(LOG_LEVEL_DEBUG, "high-water mark left to the next batch", "scope=%s",
                  s->options.name);
    }
}

/* Establish asks for the job that is missing. */
static void forgot(struct scope *s, const char *job)
{
    (void)snprintf(s->acknowledged, sizeof s->acknowledged, "%.*s", UUID_TEXT_MAX - 1, job);
    s->moved = true;
}

/* A dump that is restored below a connected leader changes neither server nor fence row. What is
 * due again is planned again at once: the newest job is known then, but not the one before. */
enum status scope_look_back(struct scope *s, struct error *err)
{
    enum status status = STATUS_OK;
    if (s->remembered[0] != '\0' && strcmp(s->remembered, s->acknowledged) != 0 &&
        scope_may_decide(s)) {
        status = fence_register(s->store, &s->authority, s->remembered, scope_statement_deadline(s),
                                err);
    }
    if (status == STATUS_CONFLICT) {
        forgot(s, s->remembered);
        return error_set(err, STATUS_AGAIN, "the server forgot job %s", s->remembered);
    }
    if (status == STATUS_OK) {
        memcpy(s->remembered, s->acknowledged, sizeof s->remembered);
    }
    return status;
}

void scope_tell_planning(struct scope *s)
{
    planning_know(s->planning, strcmp(s->mark, s->acknowledged) > 0 ? s->mark : s->acknowledged);
}

void scope_planning_forgot(struct scope *s)
{
    forgot(s, planning_known(s->planning));
}

bool scope_has_moved(struct scope *s)
{
    if (!s->moved) {
        return false;
    }
    s->moved = false;
    scope_feed(s, LIFECYCLE_EV_DATABASE_MOVED);
    return true;
}

bool scope_distrusts_clock(struct scope *s)
{
    struct error err;
    if (!clock_watch_is_suspect(s->options.watch)) {
        return false;
    }
    (void)error_set(&err, STATUS_AGAIN,
                    "it and this machine's went unequally far; reportctl clocks shows what other "
                    "replicas see");
    scope_set_problem(s, "the database's clock is suspect", &err);
    scope_feed(s, LIFECYCLE_EV_CLOCK_SUSPECT);
    return true;
}

enum status scope_compare_clock(struct scope *s, struct error *err)
{
    utc_us now = {0};
    instant before = clock_now();
    if (s->options.watch == NULL) {
        return STATUS_OK;
    }
    enum status status = store_clock(s->store, scope_statement_deadline(s), &now, err);
    if (status == STATUS_OK && !clock_watch_take(s->options.watch, now, before)) {
        status = error_set(err, STATUS_AGAIN, "the database's clock is suspect");
    }
    return status;
}
