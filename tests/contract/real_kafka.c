#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "contract.h"
#include "fixture_database.h"
#include "ident.h"

#define SOON_MS 20000

static char topic[64];

struct dispatch_options contract_kafka_options(const char *client_id)
{
    return (struct dispatch_options){.brokers = test_environment("RS_KAFKA"),
                                     .client_id = client_id};
}

const char *contract_kafka_topic(void)
{
    return topic;
}

/* A name that was deleted just now may be refused for a while. */
void contract_kafka_make_topic(void)
{
    const struct dispatch_options options = contract_kafka_options("contract");
    const struct topic_spec spec = {.name = topic, .partitions = 4, .replication = 1};
    struct error err = {.text = ""};
    instant end = instant_add_ms(clock_now(), SOON_MS);
    enum status s = topic_create(&options, &spec, end, &err);
    while (s != STATUS_OK && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 50);
        s = topic_create(&options, &spec, end, &err);
    }
    if (s != STATUS_OK) {
        fail_msg("%s", err.text);
    }
}

void contract_kafka_lose_topic(void)
{
    const struct dispatch_options options = contract_kafka_options("contract");
    struct topic_facts facts;
    struct error err = {.text = ""};
    instant end = instant_add_ms(clock_now(), SOON_MS);
    if (topic_delete(&options, topic, end, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    while (topic_read(&options, topic, end, &facts, &err) != STATUS_NOT_FOUND) {
        assert_true(instant_before(clock_now(), end));
        (void)poll(NULL, 0, 50);
    }
}

void contract_kafka_begin(void)
{
    char id[UUID_TEXT_MAX];
    uuid_random(id);
    (void)snprintf(topic, sizeof topic, "contract-%s", id);
    contract_kafka_make_topic();
}
