/* A relay under test, the outbox that it empties, and what reached the topic. Needs what
 * fixture_plan.h needs. Failures are the test's failures. */
#ifndef RS_FIXTURE_RELAY_H
#define RS_FIXTURE_RELAY_H

#include "dispatch.h"
#include "fixture_plan.h"
#include "relay.h"

extern struct lease relay_lease; /* that of the relay; ten minutes at the begin of each test */
void relay_before_each(void);

struct relay_place {
    const char *brokers, *topic;
    const char *const *properties; /* NULL: the usual ones */
};

struct relay *relay_run(struct authority a, struct relay_place where);
/* Put so many rows into the outbox; their keys begin with `key`. */
void relay_rows(int count, const char *key);

/* For fixture_wait. */
bool relay_outbox_is_empty(void *unused);
bool relay_says_fenced(void *relay);
bool relay_has_kafka(void *relay);
bool relay_lost_kafka(void *relay);

/* Read the topic from its beginning until `want` messages came, or none comes any more. Each is a
 * row of public.came (job_id, ce_id). Returns how many. */
int relay_read_back(const char *topic, int want);
/* The same until the messages of so many jobs came, however often; false if they do not. */
bool relay_read_jobs(const char *topic, int want);

#endif
