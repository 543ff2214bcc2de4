#include "coord_zk_client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without THREADED the header hides half of the API and the calls compile as implicit
 * declarations. zookeeper_log.h is not included: it clashes with syslog's names. */
#define THREADED
#include <zookeeper/zookeeper.h>

#include "crash_point.h"
#include "log.h"

#define COMPLAINT_MS 10000

struct watch_ticket {
    struct zk_client *client;
    unsigned scope;
};

struct zk_client {
    zhandle_t *handle;
    struct inbox *inbox;
    uint32_t session;
    bool identified; /* nodes are made ours; set and read by the owner thread */
    /* One per scope, at a fixed address: the library then recognises a watch set twice. */
    struct watch_ticket watches[COORD_SCOPES_MAX];
};

static enum zk_answer answer_of(int rc)
{
    switch (rc) {
    case ZOK:
        return ZK_OK;
    case ZNONODE:
        return ZK_NO_NODE;
    case ZNODEEXISTS:
        return ZK_NODE_EXISTS;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZSESSIONMOVED:
        return ZK_UNSURE;
    case ZSESSIONEXPIRED:
    case ZCLOSING:
    case ZAUTHFAILED:
    case ZINVALIDSTATE:
        return ZK_ENDED;
    case ZNOAUTH:
        return ZK_FORBIDDEN;
    default:
        return ZK_REFUSED;
    }
}

static enum zk_link link_of(int state)
{
    if (state == ZOO_CONNECTED_STATE) {
        return ZK_LINK_UP;
    }
    /* Every other value, 0 among them, is on the way to a new connection of the same session. */
    if (state == ZOO_EXPIRED_SESSION_STATE) {
        return ZK_LINK_ENDED;
    }
    if (state == ZOO_AUTH_FAILED_STATE) {
        return ZK_LINK_REFUSED;
    }
    return ZK_LINK_DOWN;
}

/* Below: library threads. They post and return. A message that does not fit is counted by the
 * inbox; the operation's own timer, the polled state and the slow re-listing make up for it. */

static void post(struct inbox *inbox, const struct zk_message *m)
{
    enum status counted = inbox_post(inbox, m);
    (void)counted;
}

static void post_reply(const void *data, int rc, const struct Stat *stat, const char *text,
                       size_t length)
{
    const struct zk_ticket *ticket = data;
    struct zk_message m = {.type = ZK_MESSAGE_REPLY,
                           .session = ticket->session,
                           .op = ticket->op,
                           .answer = answer_of(rc),
                           .rc = rc};
    if (rc == ZOK && stat != NULL) {
        m.czxid = stat->czxid;
        m.owner = stat->ephemeralOwner;
        m.version = stat->version;
    }
    if (rc == ZOK && text != NULL && length < sizeof m.text) {
        memcpy(m.text, text, length);
    }
    post(ticket->inbox, &m);
}

static void on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
    const char *last = path == NULL ? NULL : strrchr(path, '/');
    post_reply(data, rc, stat, last == NULL ? NULL : last + 1, last == NULL ? 0 : strlen(last + 1));
}

static void on_data(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    post_reply(data, rc, stat, value, length > 0 ? (size_t)length : 0);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    post_reply(data, rc, stat, NULL, 0);
}

static void on_void(int rc, const void *data)
{
    post_reply(data, rc, NULL, NULL, 0);
}

static void on_access(int rc, struct ACL_vector *list, struct Stat *stat, const void *data)
{
    (void)stat;
    const struct zk_ticket *ticket = data;
    struct zk_message m = {.type = ZK_MESSAGE_REPLY,
                           .session = ticket->session,
                           .op = ticket->op,
                           .answer = answer_of(rc),
                           .rc = rc};
    for (int32_t i = 0; rc == ZOK && list != NULL && i < list->count; i++) {
        const struct ACL *entry = &list->data[i];
        m.open = m.open ||
                 (strcmp(entry->id.scheme, "world") == 0 && (entry->perms & ~ZOO_PERM_READ) != 0);
    }
    post(ticket->inbox, &m);
}

static void on_synced(int rc, const char *value, const void *data)
{
    (void)value;
    post_reply(data, rc, NULL, NULL, 0);
}

static void on_children(int rc, const struct String_vector *strings, const void *data)
{
    const struct zk_ticket *ticket = data;
    struct zk_message m = {.type = ZK_MESSAGE_REPLY,
                           .session = ticket->session,
                           .op = ticket->op,
                           .answer = answer_of(rc),
                           .rc = rc};
    if (rc == ZOK && strings != NULL) {
        m.names = calloc(1, sizeof *m.names);
    }
    if (m.names != NULL) {
        m.names->count = strings->count > 0 ? (size_t)strings->count : 0;
        for (size_t i = 0; i < m.names->count && i < CANDIDATES_MAX; i++) {
            (void)snprintf(m.names->names[i], sizeof m.names->names[i], "%s", strings->data[i]);
        }
    }
    if (inbox_post(ticket->inbox, &m) != STATUS_OK) {
        free(m.names);
    }
}

static void on_session_event(zhandle_t *handle, int type, int state, const char *path,
                             void *context)
{
    (void)handle;
    (void)path;
    struct zk_client *client = context;
    if (type != ZOO_SESSION_EVENT) {
        return;
    }
    struct zk_message m = {
        .type = ZK_MESSAGE_LINK, .session = client->session, .link = link_of(state)};
    post(client->inbox, &m);
}

/* Session events come to every node watch too; on_session_event has told them already. */
static void on_node_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)handle;
    (void)state;
    (void)path;
    const struct watch_ticket *watch = context;
    if (type == ZOO_SESSION_EVENT) {
        return;
    }
    struct zk_message m = {
        .type = ZK_MESSAGE_WATCH, .session = watch->client->session, .scope = watch->scope};
    post(watch->client->inbox, &m);
}

/* Lines look like "2026-01-01 00:00:00,000:pid:ZOO_WARN@function@line: text". During an outage the
 * library complains at every attempt, twenty times a second: what the session came to is logged by
 * the coordination thread; of the library's own words one in ten seconds is enough. */
static void on_log(const char *message)
{
    static _Atomic int64_t quiet_until_ns;
    const char *text = strstr(message, "ZOO_");
    instant now = clock_now();
    enum log_level level = LOG_LEVEL_DEBUG;
    if (strstr(message, "ZOO_ERROR@") != NULL || strstr(message, "ZOO_WARN@") != NULL) {
        int64_t until = atomic_load(&quiet_until_ns);
        if (now.ns >= until && atomic_compare_exchange_strong(
                                   &quiet_until_ns, &until, instant_add_ms(now, COMPLAINT_MS).ns)) {
            level = LOG_LEVEL_WARN;
        }
    }
    log_event(level, "zookeeper client says", "text=%s",
              log_quote(text == NULL ? message : text).text);
}

/* Above: library threads. */

enum status zk_client_open(const struct zk_client_options *options, struct zk_client **ret_client,
                           struct error *err)
{
    struct zk_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for a ZooKeeper session");
    }
    client->inbox = options->inbox;
    client->session = options->session;
    for (unsigned i = 0; i < COORD_SCOPES_MAX; i++) {
        client->watches[i] = (struct watch_ticket){.client = client, .scope = i};
    }
    /* Debug level has a use after free in this version (ZOOKEEPER-4809). */
    zoo_set_debug_level(ZOO_LOG_LEVEL_INFO);
    clientid_t id = {.client_id = 0};
    if (options->attach != NULL) {
        id.client_id = options->attach->id;
        memcpy(id.passwd, options->attach->password, sizeof id.passwd);
    }
    /* It copies the id, and hides the password in what it logs. */
    client->handle =
        zookeeper_init2(options->servers, on_session_event, options->session_ms,
                        options->attach == NULL ? NULL : &id, client, ZOO_NO_LOG_CLIENTENV, on_log);
    explicit_bzero(&id, sizeof id);
    if (client->handle == NULL) {
        free(client);
        return error_set(err, STATUS_AGAIN,
                         "no ZooKeeper server of \"%s\" resolves; check the setting zookeeper",
                         options->servers);
    }
    /* By default names are resolved on every pass of the I/O thread, and a failing resolver stops
     * pings and timeouts without any event: leadership dies silently in a DNS outage. */
    (void)zoo_set_servers_resolution_delay(client->handle, -1);
    *ret_client = client;
    return STATUS_OK;
}

void zk_client_close(struct zk_client *client)
{
    if (client == NULL) {
        return;
    }
    (void)zookeeper_close(client->handle);
    free(client);
}

enum zk_link zk_client_link(const struct zk_client *client)
{
    return link_of(zoo_state(client->handle));
}

int64_t zk_client_session_id(const struct zk_client *client)
{
    const clientid_t *id = zoo_client_id(client->handle);
    return id == NULL ? 0 : id->client_id;
}

void zk_client_session(const struct zk_client *client, struct zk_session *ret_session)
{
    const clientid_t *id = zoo_client_id(client->handle);
    _Static_assert(sizeof id->passwd == ZK_PASSWORD_BYTES, "ZooKeeper's passwords");
    ret_session->id = id == NULL ? 0 : id->client_id;
    memset(ret_session->password, 0, sizeof ret_session->password);
    if (id != NULL) {
        memcpy(ret_session->password, id->passwd, sizeof ret_session->password);
    }
}

int64_t zk_client_session_ms(const struct zk_client *client)
{
    return zoo_recv_timeout(client->handle);
}

static enum status sent(int rc)
{
    return rc == ZOK ? STATUS_OK : STATUS_AGAIN;
}

enum status zk_client_identify(struct zk_client *client, const struct zk_ticket *ticket,
                               const char *digest)
{
    enum status s =
        sent(zoo_add_auth(client->handle, "digest", digest, (int)strlen(digest), on_void, ticket));
    client->identified = client->identified || s == STATUS_OK;
    return s;
}

static int mode_of(enum zk_node_kind kind)
{
    switch (kind) {
    case ZK_SHARED:
    case ZK_PERSISTENT:
        return ZOO_PERSISTENT;
    case ZK_EPHEMERAL:
        return ZOO_EPHEMERAL;
    case ZK_CANDIDATE:
        return ZOO_EPHEMERAL_SEQUENTIAL;
    }
    return ZOO_PERSISTENT;
}

enum status zk_client_create(struct zk_client *client, const struct zk_ticket *ticket,
                             const char *path, const char *data, enum zk_node_kind kind)
{
    /* "auth" stands for whoever this session has said it is. */
    struct ACL entries[] = {{ZOO_PERM_ALL, ZOO_AUTH_IDS}, {ZOO_PERM_READ, ZOO_ANYONE_ID_UNSAFE}};
    const struct ACL_vector ours = {.count = 2, .data = entries};
    bool is_ours = client->identified && kind != ZK_SHARED;
    CRASH_POINT("zookeeper_create.before");
    enum status s = sent(zoo_acreate2(client->handle, path, data, (int)strlen(data),
                                      is_ours ? &ours : &ZOO_OPEN_ACL_UNSAFE, mode_of(kind),
                                      on_created, ticket));
    CRASH_POINT("zookeeper_create.sent");
    return s;
}

enum status zk_client_get(struct zk_client *client, const struct zk_ticket *ticket,
                          const char *path)
{
    return sent(zoo_awget(client->handle, path, NULL, NULL, on_data, ticket));
}

enum status zk_client_get_and_watch(struct zk_client *client, const struct zk_ticket *ticket,
                                    const char *path, unsigned scope)
{
    return sent(
        zoo_awget(client->handle, path, on_node_event, &client->watches[scope], on_data, ticket));
}

enum status zk_client_children(struct zk_client *client, const struct zk_ticket *ticket,
                               const char *path)
{
    return sent(zoo_aget_children(client->handle, path, 0, on_children, ticket));
}

enum status zk_client_set(struct zk_client *client, const struct zk_ticket *ticket,
                          const char *path, const char *data)
{
    CRASH_POINT("quorum_write.before");
    enum status s = zk_client_set_version(client, ticket, path, data, -1);
    CRASH_POINT("quorum_write.sent");
    return s;
}

enum status zk_client_set_version(struct zk_client *client, const struct zk_ticket *ticket,
                                  const char *path, const char *data, int32_t version)
{
    return sent(zoo_aset(client->handle, path, data, (int)strlen(data), version, on_stat, ticket));
}

enum status zk_client_delete(struct zk_client *client, const struct zk_ticket *ticket,
                             const char *path)
{
    CRASH_POINT("withdraw.before");
    enum status s = sent(zoo_adelete(client->handle, path, -1, on_void, ticket));
    CRASH_POINT("withdraw.sent");
    return s;
}

enum status zk_client_access(struct zk_client *client, const struct zk_ticket *ticket,
                             const char *path)
{
    return sent(zoo_aget_acl(client->handle, path, on_access, ticket));
}

enum status zk_client_sync(struct zk_client *client, const struct zk_ticket *ticket,
                           const char *path)
{
    return sent(zoo_async(client->handle, path, on_synced, ticket));
}

const char *zk_client_rc_name(int rc)
{
    return zerror(rc);
}
