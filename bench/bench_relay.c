/* outbox -> Kafka -> deleted: rows a second of one relay, beside the two limits, measured in the
 * same run while both of them work at once, as they do in the relay:
 *   producer   a bare idempotent producer (acks=all) of messages like ours, every report read
 *   delete     outbox_ack in a loop, 1 000 ready-made ids a call
 * Usage: bench_relay SUPERUSER-CONNINFO SCHEDULER-CONNINFO BROKERS TOPIC ROWS ROUNDS (run by
 * bench/relay). */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>

#include "ident.h"
#include "measure.h"
#include "message.h"
#include "relay.h"
#include "store_outbox.h"

#define ROUNDS_MAX 15
#define ROWS_MAX   90000 /* the relay drops what is beyond 100 000 */
#define WAIT_S     120
#define WINDOW     2000 /* the setting's default */
#define SPARE      4 /* rows in store for the delete while the producer is not through yet, times */
#define WARM_UP    64 /* messages before the clock starts: producer id, connections, partitions */

static struct lease lease;

struct where {
    const char *scheduler, *brokers, *topic;
    struct authority authority;
    int rows;
};

static void rows_make(int rows)
{
    (void)sql("TRUNCATE reports.outbox");
    (void)sql("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
              "occurrence_key, queue, scheduled_for, generation) SELECT 'main', gen_random_uuid(), "
              "1, 's' || lpad(g::text, 7, '0'), '2030-04-12', 'default', now(), 1 FROM "
              "generate_series(1, %d) g",
              rows);
    (void)sql("VACUUM ANALYZE reports.outbox");
    (void)sql("CHECKPOINT");
}

/* ---- The limits --------------------------------------------------------------------------------
 */

struct limits {
    const struct where *where;
    int64_t first_id;
    atomic_int begun, produced, deleted;
    /* Both have done what the relay does; until then who is through goes on, so that neither ever
     * works alone. */
    atomic_bool over;
};

static void reported(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
    (void)rk;
    struct limits *l = opaque;
    if (atomic_load(&l->over)) {
        return; /* purged, or too late to count */
    }
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        stop("producer", rd_kafka_message_errstr(m));
    }
    (void)atomic_fetch_add(&l->produced, 1);
}

static rd_kafka_t *producer_make(struct limits *l)
{
    static const char *const settings[][2] = {{"enable.idempotence", "true"},
                                              {"acks", "all"},
                                              {"linger.ms", "5"},
                                              {"batch.size", "57344"},
                                              {"queue.buffering.max.messages", "1000000"}};
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", l->where->brokers, why, sizeof why);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof why) !=
            RD_KAFKA_CONF_OK) {
            stop("producer", why);
        }
    }
    rd_kafka_conf_set_opaque(conf, l);
    rd_kafka_conf_set_dr_msg_cb(conf, reported);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (rk == NULL) {
        stop("producer", why);
    }
    return rk;
}

static struct message_text text_of_one(void)
{
    struct message m = {.dispatch_number = 1,
                        .schedule = "s0000001",
                        .occurrence_key = "2030-04-12",
                        .scheduled_for = {INT64_C(1900000000000000)},
                        .scope = "main",
                        .generation = 4294967299,
                        .queue = "default"};
    struct message_text text;
    uuid_random(m.job_id);
    if (message_encode(&m, 1, m.scheduled_for, &text, NULL) != STATUS_OK) {
        stop("message", "cannot be encoded");
    }
    return text;
}

static void begin_together(struct limits *l)
{
    (void)atomic_fetch_add(&l->begun, 1);
    while (atomic_load(&l->begun) < 2) {
        (void)poll(NULL, 0, 1);
    }
}

static void *produce(void *argument)
{
    struct limits *l = argument;
    rd_kafka_t *rk = producer_make(l);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, l->where->topic, NULL);
    const struct rd_kafka_metadata *facts = NULL;
    if (rd_kafka_metadata(rk, 0, topic, &facts, 10000) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        stop("producer", "no metadata");
    }
    rd_kafka_metadata_destroy(facts);
    struct message_text text = text_of_one();
    char key[UUID_TEXT_MAX];
    uuid_random(key);
    for (int i = 0; !atomic_load(&l->over); i++) {
        if (i == WARM_UP) {
            (void)rd_kafka_flush(rk, 10000);
            begin_together(l);
        }
        /* Differing keys spread over the partitions as job ids do; the headers are in the size. */
        (void)snprintf(key, sizeof key, "%08d", i);
        char padded[2 * MESSAGE_VALUE_MAX] = "";
        size_t size = text.value_size + 300;
        memcpy(padded, text.value, text.value_size);
        while (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, padded, size,
                                key, strlen(key), NULL) != 0) {
            (void)rd_kafka_poll(rk, 1);
        }
        (void)rd_kafka_poll(rk, 0);
    }
    (void)rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    (void)rd_kafka_flush(rk, 5000);
    rd_kafka_topic_destroy(topic);
    return rk; /* destroyed after the clock has stopped */
}

static void *delete_all(void *argument)
{
    struct limits *l = argument;
    struct error err = {.text = ""};
    struct store_options options = {.conninfo = l->where->scheduler,
                                    .application_name = "bench_relay",
                                    .role = STORE_SCHEDULER};
    struct store *store = NULL;
    if (store_open(&options, instant_add_ms(clock_now(), 10000), &store, &err) != STATUS_OK) {
        stop("connect", err.text);
    }
    int64_t ids[OUTBOX_ACK_MAX];
    begin_together(l);
    int rows = SPARE * l->where->rows;
    for (int done = 0; done < rows && !atomic_load(&l->over);) {
        size_t n = 0;
        size_t staying = 0;
        for (; n < OUTBOX_ACK_MAX && done < rows; n++, done++) {
            ids[n] = l->first_id + done;
        }
        struct store_call call = {.store = store,
                                  .authority = &l->where->authority,
                                  .deadline = instant_add_ms(clock_now(), 10000)};
        staying = n;
        if (store_outbox_ack(&call, ids, &staying, &err) != STATUS_OK) {
            stop("outbox_ack", err.text);
        }
        (void)atomic_fetch_add(&l->deleted, (int)n);
    }
    store_close(store);
    return NULL;
}

static void limits_round(const struct where *where, double *ret_produced, double *ret_deleted)
{
    struct limits l = {.where = where};
    pthread_t threads[2];
    void *producer = NULL;
    rows_make(SPARE * where->rows);
    l.first_id = strtoll(sql("SELECT min(id) FROM reports.outbox"), NULL, 10);
    if (pthread_create(&threads[0], NULL, produce, &l) != 0 ||
        pthread_create(&threads[1], NULL, delete_all, &l) != 0) {
        stop("threads", "cannot be made");
    }
    while (atomic_load(&l.begun) < 2) {
        (void)poll(NULL, 0, 1);
    }
    instant begin = clock_now();
    int before = atomic_load(&l.produced);
    while (atomic_load(&l.produced) - before < where->rows ||
           atomic_load(&l.deleted) < where->rows) {
        (void)poll(NULL, 0, 1);
    }
    double seconds = seconds_since(begin);
    *ret_produced = (atomic_load(&l.produced) - before) / seconds;
    *ret_deleted = atomic_load(&l.deleted) / seconds;
    atomic_store(&l.over, true);
    (void)pthread_join(threads[0], &producer);
    (void)pthread_join(threads[1], NULL);
    rd_kafka_destroy(producer);
}

/* ---- Ours --------------------------------------------------------------------------------------
 */

static double ours_round(const struct where *where)
{
    struct relay_options options = {
        .authority = where->authority,
        .lease = &lease,
        .store = {.conninfo = where->scheduler,
                  .application_name = "bench_relay",
                  .role = STORE_SCHEDULER},
        .brokers = where->brokers,
        .topic = where->topic,
        .window = WINDOW,
        .statement_ms = 10000,
    };
    struct relay *relay = NULL;
    struct error err = {.text = ""};
    (void)sql("TRUNCATE reports.outbox");
    if (relay_start(&options, &relay, &err) != STATUS_OK) {
        stop("relay", err.text);
    }
    instant end = instant_add_ms(clock_now(), WAIT_S * 1000);
    while (!relay_read(relay).kafka_reachable && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 1);
    }
    /* The rows come with one commit, as a burst does; its relay is woken then. */
    (void)sql("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
              "occurrence_key, queue, scheduled_for, generation) SELECT 'main', gen_random_uuid(), "
              "1, 's' || lpad(g::text, 7, '0'), '2030-04-12', 'default', now(), 1 FROM "
              "generate_series(1, %d) g",
              where->rows);
    instant begin = clock_now();
    relay_wake(relay);
    while (relay_read(relay).deleted < (uint64_t)where->rows && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 1);
    }
    double seconds = seconds_since(begin);
    struct relay_snapshot done = relay_read(relay);
    relay_stop(relay, instant_add_ms(clock_now(), 5000));
    if (done.deleted != (uint64_t)where->rows || done.failed != 0 || done.trimmed != 0 ||
        strcmp(sql("SELECT count(*) FROM reports.outbox"), "0") != 0) {
        stop("relay", "not all rows went, or not all at the first time");
    }
    return where->rows / seconds;
}

static struct authority lead(void)
{
    struct authority a = {.scope = "main", .generation = 1};
    uuid_random(a.owner);
    a.incarnation =
        strtoll(sql("SELECT incarnation FROM reports.ensemble_meet('bench', 'bench')"), NULL, 10);
    if (strcmp(sql("SELECT verdict FROM reports.establish('main', %" PRId64 ", 1, '%s', 'bench')",
                   a.incarnation, a.owner),
               "established") != 0) {
        stop("establish", "refused");
    }
    return a;
}

int main(int argc, char **argv)
{
    if (argc != 7) {
        stop("usage",
             "bench_relay SUPERUSER-CONNINFO SCHEDULER-CONNINFO BROKERS TOPIC ROWS ROUNDS");
    }
    struct where where = {.scheduler = argv[2],
                          .brokers = argv[3],
                          .topic = argv[4],
                          .rows = (int)strtol(argv[5], NULL, 10)};
    int rounds = (int)strtol(argv[6], NULL, 10);
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    where.rows = where.rows < 1 ? 1 : where.rows > ROWS_MAX ? ROWS_MAX : where.rows;
    super = PQconnectdb(argv[1]);
    if (PQstatus(super) != CONNECTION_OK) {
        stop("connect", PQerrorMessage(super));
    }
    lease_set(&lease, INSTANT_NEVER);
    where.authority = lead();
    double rates[3][ROUNDS_MAX];
    for (int i = 0; i < rounds; i++) {
        limits_round(&where, &rates[0][i], &rates[1][i]);
        rates[2][i] = ours_round(&where);
    }
    double produced = median(rates[0], rounds);
    double deleted = median(rates[1], rounds);
    (void)printf("%d %.0f %.0f %.0f\n", where.rows, produced, deleted, median(rates[2], rounds));
    PQfinish(super);
    return 0;
}
