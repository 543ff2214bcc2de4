/* A planned handoff, from the side of those who do not lead (docs/architecture.md, "Handoff"). The
 * wish is read from the database; who leads stays with ZooKeeper's order alone. */
#include <inttypes.h>

#include "log.h"
#include "scope_shell.h"

#define LOOK_MS 20 /* the successor: has the lease been renewed? */

void scope_follow_anew(struct scope *s)
{
    s->wish = CANDIDATE_WISH_NONE;
    s->wish_confirmed = false;
    s->follow_at = clock_now();
}

/* A quorum write of ours was answered since we were named: ZooKeeper's majority and we see each
 * other now, so that the leader's going will be told to us at once. */
static bool lease_is_fresh(const struct scope *s)
{
    instant until = lease_until(s->lease);
    return s->wish == CANDIDATE_WISH_SUCCESSOR && until.ns > s->wish_lease.ns &&
           lease_holds(s->lease, clock_now());
}

static bool has_news(struct scope *s)
{
    bool heard = store_heard(s->store, CANDIDATE_CHANNEL);
    bool changed = s->follow_ahead != s->ahead || s->follow_suspended != s->suspended;
    bool fresh = !s->wish_confirmed && lease_is_fresh(s);
    return heard || changed || fresh || !instant_before(clock_now(), s->follow_at);
}

/* To lead next: while the leader leads on there is time for what would take long later. */
static void become_successor(struct scope *s)
{
    struct error err = {.text = ""};
    instant began = clock_now();
    s->wish_lease = lease_until(s->lease);
    s->wish_confirmed = false;
    scope_warm_planning(s);
    enum status status = candidate_rehearse(s->store, &s->authority, s->options.member,
                                            scope_statement_deadline(s), &err);
    log_event(
        status == STATUS_OK ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "handoff: named as successor",
        "scope=%s generation=%" PRId64 " ahead=%u rehearsed_ms=%lld%s%s", s->options.name,
        s->authority.generation, s->ahead, (long long)instant_ms_between(began, clock_now()),
        status == STATUS_OK ? "" : " error=", status == STATUS_OK ? "" : log_quote(err.text).text);
}

static void take_wish(struct scope *s, enum candidate_wish wish)
{
    enum candidate_wish before = s->wish;
    s->wish = wish;
    switch (wish) {
    case CANDIDATE_WISH_NONE:
        s->wish_confirmed = false;
        return;
    case CANDIDATE_WISH_ASIDE:
        scope_feed(s, LIFECYCLE_EV_STAND_ASIDE);
        return;
    case CANDIDATE_WISH_SUCCESSOR:
        if (before != CANDIDATE_WISH_SUCCESSOR) {
            become_successor(s);
        }
        return;
    case CANDIDATE_WISH_READY:
        if (before != CANDIDATE_WISH_READY) {
            log_event(LOG_LEVEL_INFO, "handoff: ready to lead next", "scope=%s generation=%" PRId64,
                      s->options.name, s->authority.generation);
        }
        return;
    }
}

instant scope_follow(struct scope *s)
{
    struct error err = {.text = ""};
    enum candidate_wish wish = CANDIDATE_WISH_NONE;
    if (!has_news(s)) {
        return s->wish == CANDIDATE_WISH_SUCCESSOR ? scope_in_ms(LOOK_MS) : s->follow_at;
    }
    const struct candidate_stand stand = {.member = s->options.member,
                                          .state =
                                              s->suspended ? CANDIDATE_SUSPENDED : CANDIDATE_READY,
                                          .ahead = s->ahead,
                                          .confirmed = lease_is_fresh(s),
                                          .url = s->options.url};
    s->follow_at = scope_in_ms(SCOPE_PING_MS);
    enum status status =
        candidate_follow(s->store, &s->authority, &stand, scope_statement_deadline(s), &wish, &err);
    if (status != STATUS_OK) {
        scope_statement_failed(s, "cannot tell how this replica stands", &err);
        s->follow_at = scope_in_ms(SCOPE_RETRY_MS);
        return s->follow_at;
    }
    s->follow_ahead = stand.ahead;
    s->follow_suspended = stand.state == CANDIDATE_SUSPENDED;
    s->wish_confirmed = stand.confirmed;
    take_wish(s, wish);
    return s->wish == CANDIDATE_WISH_SUCCESSOR ? scope_in_ms(LOOK_MS) : s->follow_at;
}

void scope_tell_held(struct scope *s, const char *why)
{
    struct error err = {.text = ""};
    struct authority nobody = s->authority;
    enum candidate_wish none = CANDIDATE_WISH_NONE;
    const struct candidate_stand stand = {
        .member = s->options.member, .state = CANDIDATE_HELD, .why = why, .url = s->options.url};
    if (instant_before(clock_now(), s->follow_at)) {
        return;
    }
    s->follow_at = scope_in_ms(SCOPE_PING_MS);
    nobody.generation = 0;
    if (candidate_follow(s->store, &nobody, &stand, scope_statement_deadline(s), &none, &err) !=
        STATUS_OK) {
        log_event(LOG_LEVEL_DEBUG, "not told that this replica is held", "scope=%s error=%s",
                  s->options.name, log_quote(err.text).text);
    }
}
