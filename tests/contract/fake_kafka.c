#include "dispatch_fake.h"
#include "fake.h"

void contract_kafka_begin(void)
{
    dispatch_reset();
}

const char *contract_kafka_topic(void)
{
    return "jobs";
}

struct dispatch_options contract_kafka_options(const char *client_id)
{
    return (struct dispatch_options){.brokers = "kafka", .client_id = client_id};
}

void contract_kafka_lose_topic(void)
{
    dispatch_lose_topic();
}

void contract_kafka_make_topic(void)
{
    dispatch_make_topic();
}
