/* Sessions of the coordination thread: open, set up, beat, suspend, confirm, give up. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coord_zk.h"
#include "log.h"
#include "mutant.h"
#include "scheduler_metrics.h"
#include "version.h"

#define CONNECTING_MIN_MS                                                                          \
    30000 /* bear CONNECTING at least this long (a rebuilt ensemble refuses                        \
             an old handle for ever, a fresh one connects at once) */
#define SETUP_RETRY_MS 500

static const struct backoff session_backoff = {.base_ms = 200, .most_ms = 5000};

static int64_t beat_ms(const struct coord *c)
{
    return lease_beat_ms(c->negotiated_ms);
}

/* Give up ---------------------------------------------------------------------------------- */

void session_abandon(struct coord *c, const char *why, instant now)
{
    log_event(LOG_LEVEL_WARN, "session given up", "session=%u id=0x%llx reason=%s", c->session,
              (unsigned long long)c->session_id, log_quote(why).text);
    /* Order matters (I8, I11): no lease, then the scopes and whoever cancels their statements,
     * and only then the close that lets a successor in. What still runs in the database after
     * that is what the establish barrier covers. */
    session_lease_set(c, (instant){0});
    c->phase = PHASE_NONE;
    coord_tell_all(c, COORD_SESSION_LOST, why);
    zk_client_close(c->client);
    c->client = NULL;
    memset(c->ops, 0, sizeof c->ops);
    for (unsigned i = 0; i < c->seat_count; i++) {
        seat_reset(&c->seats[i]);
    }
    c->failures = c->told_up ? 1 : c->failures + 1;
    c->told_up = false;
    c->was_ready = false;
    c->heartbeat_sent = false;
    c->setup_running = false;
    c->session_at = instant_add_ms(now, backoff_ms(&session_backoff, c->failures, random_number()));
}

/* Open ------------------------------------------------------------------------------------- */

static void session_open(struct coord *c, instant now)
{
    struct error err = {.text = ""};
    c->session++;
    c->session_id = 0;
    c->member[0] = '\0'; /* a fresh identity a session: never adopt a dying one's node */
    c->negotiated_ms = c->session_ms;
    const struct zk_client_options options = {.servers = c->servers,
                                              .session_ms = (int)c->session_ms,
                                              .session = c->session,
                                              .inbox = c->inbox};
    if (access_read_digest(c, &err) != STATUS_OK ||
        zk_client_open(&options, &c->client, &err) != STATUS_OK) {
        c->client = NULL;
        c->failures++;
        c->session_at =
            instant_add_ms(now, backoff_ms(&session_backoff, c->failures, random_number()));
        log_event(LOG_LEVEL_WARN, "no session", "reason=%s", log_quote(err.text).text);
        coord_tell_all(c, COORD_SESSION_LOST, err.text);
        return;
    }
    c->phase = PHASE_OPENING;
    c->disconnected_at = now;
}

/* Set up ----------------------------------------------------------------------------------- */

static void add_setup_path(struct coord *c, const char *path)
{
    size_t n = strlen(path);
    if (c->setup_count < SETUP_PATHS_MAX && n < sizeof c->setup_paths[0]) {
        memcpy(c->setup_paths[c->setup_count++], path, n + 1);
    }
}

/* Parents are made one by one: the server does not make missing ones. */
static void plan_setup(struct coord *c)
{
    char path[sizeof c->setup_paths[0]];
    c->setup_count = 0;
    for (const char *slash = strchr(c->root + 1, '/'); slash != NULL && c->setup_count < 14;
         slash = strchr(slash + 1, '/')) {
        (void)snprintf(path, sizeof path, "%.*s", (int)(slash - c->root), c->root);
        add_setup_path(c, path);
    }
    add_setup_path(c, c->root);
    (void)snprintf(path, sizeof path, "%s/members", c->root);
    add_setup_path(c, path);
    (void)snprintf(path, sizeof path, "%s/scopes", c->root);
    add_setup_path(c, path);
    for (unsigned i = 0; i < c->seat_count; i++) {
        (void)snprintf(path, sizeof path, "%s/scopes/%s", c->root, c->seats[i].scope);
        add_setup_path(c, path);
        add_setup_path(c, c->seats[i].parent);
    }
}

/* One JSON object. name and url were checked when the settings were read; what JSON would have to
 * escape is left out rather than escaped: this is for people. */
static void describe_member(struct coord *c)
{
    char guid[UUID_TEXT_MAX];
    char host[128] = "";
    char url[sizeof c->url];
    uuid_random(guid);
    (void)gethostname(host, sizeof host - 1);
    size_t n = 0;
    for (const char *p = c->url; *p != '\0'; p++) {
        if (*p != '"' && *p != '\\' && (unsigned char)*p >= 0x20) {
            url[n++] = *p;
        }
    }
    url[n] = '\0';
    (void)snprintf(c->member, sizeof c->member, "%s/members/%s", c->root, guid);
    (void)snprintf(
        c->member_data, sizeof c->member_data,
        "{\"name\":\"%s\",\"host\":\"%s\",\"pid\":%ld,\"version\":\"%s\",\"url\":\"%s\"}", c->name,
        host, (long)getpid(), RS_VERSION, url);
}

/* Send the request of the current set-up step: parents, then the ensemble's identity, then the
 * member node, then the first heartbeat. Each step is idempotent, so a lost answer is asked for
 * again. */
static void send_setup(struct coord *c)
{
    char path[COORD_PATH_MAX + 64];
    if (!c->identified) {
        access_send_identity(c);
        return;
    }
    (void)snprintf(path, sizeof path, "%s/ensemble-id", c->root);
    size_t extra =
        c->setup_next - (c->setup_next < c->setup_count ? c->setup_next : c->setup_count);
    enum op_kind kind = c->setup_next < c->setup_count ? OP_SETUP_CREATE
                        : extra == 0                   ? OP_SETUP_ENSEMBLE
                        : extra == 1                   ? OP_SETUP_READ
                                                       : OP_SETUP_MEMBER;
    struct op *op = coord_op_new(c, kind, 0);
    if (op == NULL) {
        return;
    }
    enum status s = STATUS_AGAIN;
    if (kind == OP_SETUP_CREATE) {
        const char *parent = c->setup_paths[c->setup_next];
        bool above = strlen(parent) < strlen(c->root);
        s = zk_client_create(c->client, &op->ticket, parent, "", above ? ZK_SHARED : ZK_PERSISTENT);
    } else if (kind == OP_SETUP_ENSEMBLE) {
        char id[UUID_TEXT_MAX];
        uuid_random(id);
        s = zk_client_create(c->client, &op->ticket, path, id, ZK_PERSISTENT);
    } else if (kind == OP_SETUP_READ) {
        s = zk_client_get(c->client, &op->ticket, path);
    } else {
        s = zk_client_create(c->client, &op->ticket, c->member, c->member_data, ZK_EPHEMERAL);
    }
    if (s == STATUS_OK) {
        c->setup_running = true;
    } else {
        coord_op_drop(op);
    }
}

void session_setup_again(struct coord *c)
{
    if (c->setup_next > c->setup_count + 2) { /* not running already */
        c->setup_next = 0;
    }
}

static bool setup_is_done(const struct coord *c)
{
    return c->setup_next > c->setup_count + 2;
}

/* Lease ------------------------------------------------------------------------------------ */

static void send_heartbeat(struct coord *c, instant now)
{
    struct op *op = coord_op_new(c, OP_HEARTBEAT, 0); /* stamps sent_at before the request leaves */
    c->heartbeat_at = instant_add_ms(now, beat_ms(c));
    if (op == NULL) {
        return;
    }
    if (zk_client_set(c->client, &op->ticket, c->member, c->member_data) == STATUS_OK) {
        c->heartbeat_sent = true;
    } else {
        coord_op_drop(op);
    }
}

static bool some_seat_leads(const struct coord *c)
{
    for (unsigned i = 0; i < c->seat_count; i++) {
        if (c->seats[i].step == SEAT_IN && c->seats[i].first) {
            return true;
        }
    }
    return false;
}

static void become_ready(struct coord *c)
{
    c->phase = PHASE_READY;
    c->was_ready = true;
    c->told_up = true;
    c->failures = 0;
    metric_add(scheduler_metric(SCHEDULER_SESSIONS, NULL, NULL), 1);
    log_event(c->negotiated_ms == c->session_ms ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "session up",
              "session=%u id=0x%llx session_ms=%lld configured_ms=%lld ensemble=%s", c->session,
              (unsigned long long)c->session_id, (long long)c->negotiated_ms,
              (long long)c->session_ms, log_quote(c->ensemble).text);
    coord_tell_all(c, COORD_SESSION_UP, "");
    access_audit_start(c);
}

static void become_resumed(struct coord *c)
{
    c->phase = PHASE_READY;
    log_event(LOG_LEVEL_INFO, "session resumed", "session=%u", c->session);
    coord_tell_all(c, COORD_RESUMED, "");
    for (unsigned i = 0; i < c->seat_count; i++) {
        seat_resume(c, i);
    }
}

static void on_heartbeat(struct coord *c, const struct op *op, const struct zk_message *m,
                         instant now)
{
    c->heartbeat_sent = false;
    if (m->answer == ZK_NO_NODE) { /* an operator deleted it; the session is alive */
        session_setup_again(c);
        return;
    }
    if (m->answer == ZK_FORBIDDEN) {
        char text[ACCESS_TEXT_MAX];
        session_abandon(c, access_refusal(c, m, c->member, text), now);
        return;
    }
    if (m->answer != ZK_OK) {
        return;
    }
    metric_observe(scheduler_metric(SCHEDULER_HEARTBEAT_SECONDS, NULL, NULL),
                   metric_seconds_since(op->sent_at, now));
    instant sent_at = MUTANT("lease_from_reply") ? now : op->sent_at;
    instant until = lease_after_write(sent_at, c->negotiated_ms, c->tick_ms, c->margin_ms);
    log_event(LOG_LEVEL_DEBUG, "quorum write answered",
              "session=%u sent_ns=%" PRId64 " answered_ns=%" PRId64 " negotiated_ms=%" PRId64,
              c->session, op->sent_at.ns, now.ns, c->negotiated_ms);
    switch (c->phase) {
    case PHASE_SETUP:
        session_lease_set(c, until);
        become_ready(c);
        return;
    case PHASE_CONFIRMING:
        /* One node, one activation: it goes on only if its lease never ran out. */
        if (some_seat_leads(c) && !instant_before(now, c->lease_before) &&
            !MUTANT("resumes_after_lease")) {
            session_abandon(c, "confirmed only after the lease had run out", now);
            return;
        }
        session_lease_set(c, until);
        become_resumed(c);
        return;
    case PHASE_READY:
        session_lease_set(c, instant_max(until, lease_until(&c->lease)));
        return;
    case PHASE_NONE:
    case PHASE_OPENING:
    case PHASE_SUSPENDED:
        return;
    }
}

/* Events ----------------------------------------------------------------------------------- */

static void on_connected(struct coord *c, instant now)
{
    c->negotiated_ms = zk_client_session_ms(c->client);
    c->session_id = zk_client_session_id(c->client);
    if (c->negotiated_ms - c->tick_ms - beat_ms(c) - c->margin_ms <= 0) {
        session_abandon(c,
                        "the negotiated session leaves no lease: check minSessionTimeout and "
                        "maxSessionTimeout of the servers against zookeeper_session_ms",
                        now);
        return;
    }
    if (c->was_ready) {
        c->phase = PHASE_CONFIRMING;
        c->heartbeat_sent = false;
        send_heartbeat(c, now);
        return;
    }
    if (c->phase == PHASE_OPENING) {
        life_keep_session(c);
        plan_setup(c);
        if (c->member[0] == '\0') {
            describe_member(c);
        }
        c->setup_next = 0;
    }
    c->phase = PHASE_SETUP;
    c->setup_running = false;
    c->heartbeat_sent = false;
    c->heartbeat_at = now;
    c->setup_at = now;
}

static void on_disconnected(struct coord *c, instant now)
{
    if (c->phase == PHASE_READY || c->phase == PHASE_CONFIRMING) {
        if (c->phase == PHASE_READY && !MUTANT("leads_on_when_cut")) {
            c->lease_before = lease_until(&c->lease);
            session_lease_set(c, (instant){0});
            log_event(LOG_LEVEL_WARN, "session suspended", "session=%u at_ns=%" PRId64, c->session,
                      clock_now().ns);
            coord_tell_all(c, COORD_SUSPENDED, "");
        }
        c->phase = PHASE_SUSPENDED;
        c->disconnected_at = now;
    } else if (c->phase == PHASE_SETUP) {
        c->phase = PHASE_OPENING; /* every step is idempotent: set up from the start */
        c->disconnected_at = now;
    }
}

void session_on_link(struct coord *c, enum zk_link link, instant now)
{
    switch (link) {
    case ZK_LINK_ENDED:
        session_abandon(c, "session expired", now);
        return;
    case ZK_LINK_REFUSED:
        session_abandon(c, "the servers refuse the identity in zookeeper_digest_file", now);
        return;
    case ZK_LINK_DOWN:
        on_disconnected(c, now);
        return;
    case ZK_LINK_UP:
        if (c->phase == PHASE_OPENING || c->phase == PHASE_SUSPENDED) {
            on_connected(c, now);
        }
        return;
    }
}

static void give_up_setup(struct coord *c, const struct op *op, const struct zk_message *m,
                          instant now)
{
    char node[NODE_PATH_MAX];
    char text[ACCESS_TEXT_MAX];
    bool parent = op->kind == OP_SETUP_CREATE && c->setup_next < c->setup_count;
    if (parent) {
        (void)snprintf(node, sizeof node, "%s", c->setup_paths[c->setup_next]);
    } else if (op->kind == OP_SETUP_MEMBER) {
        (void)snprintf(node, sizeof node, "%s", c->member);
    } else {
        (void)snprintf(node, sizeof node, "%s/ensemble-id", c->root);
    }
    session_abandon(c, access_refusal(c, m, node, text), now);
}

void session_on_reply(struct coord *c, const struct op *op, const struct zk_message *m, instant now)
{
    if (op->kind == OP_HEARTBEAT) {
        on_heartbeat(c, op, m, now);
        return;
    }
    c->setup_running = false;
    if (op->kind == OP_SETUP_IDENTIFY) {
        /* When the connection was lost meanwhile, the library says it again on the next one. */
        c->identified = m->answer == ZK_OK || m->answer == ZK_UNSURE;
        return;
    }
    bool done = m->answer == ZK_OK || (m->answer == ZK_NODE_EXISTS && op->kind != OP_SETUP_READ);
    if (!done) {
        c->setup_at = instant_add_ms(now, SETUP_RETRY_MS);
        if (m->answer == ZK_NO_NODE) {
            c->setup_next = 0; /* a parent went away meanwhile */
        } else if (m->answer == ZK_FORBIDDEN || m->answer == ZK_REFUSED) {
            /* Another session after a backoff: it reads zookeeper_digest_file again. */
            give_up_setup(c, op, m, now);
        }
        return;
    }
    if (op->kind == OP_SETUP_READ) {
        if (c->was_ready && strcmp(c->ensemble, m->text) != 0) {
            session_abandon(c, "the ensemble's identity changed", now);
            return;
        }
        (void)snprintf(c->ensemble, sizeof c->ensemble, "%s", m->text);
    }
    c->setup_next++;
    c->setup_at = now;
}

/* Timers ----------------------------------------------------------------------------------- */

static bool op_timer_fired(const struct coord *c, instant now)
{
    for (size_t i = 0; i < OPS_MAX; i++) {
        if (c->ops[i].used && !instant_before(now, c->ops[i].deadline)) {
            return true;
        }
    }
    return false;
}

static instant connecting_until(const struct coord *c)
{
    int64_t bear_ms = 2 * c->negotiated_ms;
    return instant_add_ms(c->disconnected_at,
                          bear_ms > CONNECTING_MIN_MS ? bear_ms : CONNECTING_MIN_MS);
}

/* The library tells its state by events; the state itself is looked at too, in case one was lost
 * in a full inbox. */
static bool look_at_link(struct coord *c, instant now)
{
    enum zk_link link = zk_client_link(c->client);
    bool thinks_up =
        c->phase == PHASE_SETUP || c->phase == PHASE_READY || c->phase == PHASE_CONFIRMING;
    bool dead = link == ZK_LINK_ENDED || link == ZK_LINK_REFUSED;
    if (dead || (link == ZK_LINK_UP) != thinks_up) {
        session_on_link(c, link, now);
    }
    return c->client != NULL && link == ZK_LINK_UP;
}

void session_tick(struct coord *c, instant now)
{
    if (c->client == NULL) {
        if (!instant_before(now, c->session_at)) {
            session_open(c, now);
        }
        return;
    }
    bool up = look_at_link(c, now);
    if (c->client == NULL) {
        return;
    }
    if (op_timer_fired(c, now)) {
        /* The library should have said something within two thirds of T. Its I/O thread may be
         * stuck; nothing it says about the session can be relied on. */
        session_abandon(c, "an operation was not answered in time", now);
        return;
    }
    if (!up) {
        if ((c->phase == PHASE_OPENING || c->phase == PHASE_SUSPENDED) &&
            !instant_before(now, connecting_until(c))) {
            session_abandon(c, "no server could be reached for too long", now);
        }
        return;
    }
    if (c->phase != PHASE_SUSPENDED && c->phase != PHASE_OPENING && !setup_is_done(c) &&
        !c->setup_running && !instant_before(now, c->setup_at)) {
        send_setup(c);
    }
    access_tick(c);
    bool beats = c->phase == PHASE_READY || c->phase == PHASE_CONFIRMING ||
                 (c->phase == PHASE_SETUP && setup_is_done(c));
    if (beats && !c->heartbeat_sent && !instant_before(now, c->heartbeat_at)) {
        send_heartbeat(c, now);
    }
}

instant session_wake_at(const struct coord *c)
{
    if (c->client == NULL) {
        return c->session_at;
    }
    instant wake = INSTANT_NEVER;
    if (!setup_is_done(c) && !c->setup_running && c->phase != PHASE_OPENING) {
        wake = instant_min(wake, c->setup_at);
    }
    if (!c->heartbeat_sent &&
        (c->phase == PHASE_READY || c->phase == PHASE_CONFIRMING || c->phase == PHASE_SETUP)) {
        wake = instant_min(wake, c->heartbeat_at);
    }
    for (unsigned i = 0; i < c->seat_count && c->phase == PHASE_READY; i++) {
        const struct seat *seat = &c->seats[i];
        if (seat->list == SEAT_LIST_IDLE && (seat->step == SEAT_IN || seat->step == SEAT_UNSURE)) {
            wake = instant_min(wake, seat->relist_at);
        }
    }
    /* A wake in the past with nothing to send (disconnected, an operation table full) must not
     * spin; everything that ends such a state also posts to the inbox. */
    return instant_max(wake, instant_add_ms(clock_now(), 10));
}
