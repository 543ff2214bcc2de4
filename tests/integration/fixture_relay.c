#include "fixture_relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "message.h"

#define READ_MS 30000

struct lease relay_lease;

void relay_before_each(void)
{
    fixture_lease(&relay_lease, 600000);
}

struct relay *relay_run(struct authority a, struct relay_place where)
{
    struct relay_options options = {
        .authority = a,
        .lease = &relay_lease,
        .store = {.conninfo = fixture_plan_conninfo(),
                  .application_name = "test-relay",
                  .role = STORE_SCHEDULER},
        .brokers = where.brokers,
        .topic = where.topic,
        .properties = where.properties,
        .window = 1000,
        .statement_ms = 3000,
    };
    struct relay *r = NULL;
    struct error err = {.text = ""};
    if (relay_start(&options, &r, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return r;
}

void relay_rows(int count, const char *key)
{
    (void)fixture_sql(
        "INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
        "occurrence_key, queue, scheduled_for, generation) "
        "SELECT 'main', gen_random_uuid(), 1, 'daily', '%s' || g, 'default', now(), 1 "
        "FROM generate_series(1, %d) g",
        key, count);
}

bool relay_outbox_is_empty(void *unused)
{
    (void)unused;
    return fixture_count("SELECT count(*) FROM reports.outbox") == 0;
}

bool relay_says_fenced(void *relay)
{
    return relay_is_fenced(relay);
}

bool relay_lost_kafka(void *relay)
{
    return !relay_read(relay).kafka_reachable;
}

bool relay_has_kafka(void *relay)
{
    return relay_read(relay).kafka_reachable;
}

static struct consumer *consumer_from_the_beginning(const char *topic)
{
    const char *topics[] = {topic, NULL};
    char group[80];
    char id[UUID_TEXT_MAX];
    uuid_random(id);
    (void)snprintf(group, sizeof group, "g-%s", id);
    struct consumer_options options = {
        .dispatch = {.brokers = fixture_environment("RS_KAFKA"), .client_id = "test"},
        .group = group,
        .topics = topics,
    };
    struct consumer *c = NULL;
    assert_int_equal(consumer_open(&options, &c, NULL), STATUS_OK);
    return c;
}

static void came(const struct incoming *in)
{
    struct message m;
    struct error err = {.text = ""};
    if (message_decode(in->value, in->size, in->headers, in->header_count, &m, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    (void)fixture_sql("INSERT INTO public.came VALUES ('%s', '%.*s')", m.job_id,
                      (int)in->headers[2].size, in->headers[2].value);
}

static int read_once(const char *topic, int want, bool of_jobs)
{
    struct consumer *c = consumer_from_the_beginning(topic);
    (void)fixture_sql("DROP TABLE IF EXISTS public.came");
    (void)fixture_sql("CREATE TABLE public.came (job_id uuid, ce_id text)");
    instant end = instant_add_ms(clock_now(), READ_MS);
    int got = 0;
    while (got < want && instant_before(clock_now(), end)) {
        struct incoming in;
        if (consumer_poll(c, 100, &in, NULL) != STATUS_OK) {
            continue;
        }
        came(&in);
        got = of_jobs ? (int)fixture_count("SELECT count(DISTINCT job_id) FROM public.came")
                      : got + 1;
    }
    assert_int_equal(consumer_close(c, instant_add_ms(clock_now(), 30000)), STATUS_OK);
    return got;
}

/* The topic is the question here, not the group: one that got no assignment in time on a busy
 * machine is tried again by another group, from the beginning. */
static int read_twice(const char *topic, int want, bool of_jobs)
{
    int got = read_once(topic, want, of_jobs);
    if (got < want) {
        print_message("read %d of %d, reading again\n", got, want);
        got = read_once(topic, want, of_jobs);
    }
    return got;
}

int relay_read_back(const char *topic, int want)
{
    return read_twice(topic, want, false);
}

bool relay_read_jobs(const char *topic, int want)
{
    return read_twice(topic, want, true) == want;
}
