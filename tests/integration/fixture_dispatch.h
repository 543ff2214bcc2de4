/* For tests of the Kafka port: publishers, numbered messages, and counting of their reports. */
#ifndef RS_FIXTURE_DISPATCH_H
#define RS_FIXTURE_DISPATCH_H

#include "dispatch.h"

#define MESSAGES 300

instant in_ms(int64_t ms); /* from now */

/* These fail the test. */
struct publisher *publisher_of(struct dispatch_options dispatch, const char *topic, size_t window);
void warm(struct publisher *p, int want_partitions);
void publish_number(struct publisher *p, int n);
void publish_numbers(struct publisher *p); /* MESSAGES of them */

/* A dispatch whose job id ends in n. */
struct message message_number(int n);

/* Take reports until none is in flight: each id exactly once. counts[] is by publish_result. */
void reports_collect(struct publisher *p, unsigned char *seen, size_t counts[3], int64_t ms);

#endif
