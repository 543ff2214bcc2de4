/* Kafka in memory: one topic, one consumer group. The port is common/dispatch/dispatch.h. */
#ifndef RS_SIMULATE_DISPATCH_FAKE_H
#define RS_SIMULATE_DISPATCH_FAKE_H

#include "kernel.h"

void dispatch_reset(void);
void dispatch_forget(struct process *p); /* it crashed or ended */

/* Faults. */
void dispatch_stop(void);
void dispatch_start(void);
void dispatch_lose_topic(void);
void dispatch_make_topic(void);
void dispatch_repeat(unsigned in_a_thousand); /* messages that arrive twice */
void dispatch_delay(int64_t ns);              /* of messages, at most: they overtake one another */
void dispatch_rebalance(void);

#endif
