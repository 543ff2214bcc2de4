/* Points at which a process can be made to stop or crash: named by what it is about to do or has
 * just done, so that a fault meets what no timer would. */
#ifndef RS_SIMULATE_ARMED_H
#define RS_SIMULATE_ARMED_H

#include <stdbool.h>
#include <stdint.h>

enum armed_place {
    ARMED_BEFORE_CALL, /* of a protected or claim-guarded function: decided, not sent */
    ARMED_AFTER_CALL,  /* its answer is in the process's memory and nothing was done with it */
    ARMED_READ,        /* of anything else in the database */
    ARMED_BEFORE_SEND, /* a message is about to be handed to Kafka */
    ARMED_AFTER_REPORT,
    ARMED_BEFORE_ESTABLISH,
};

enum armed_act {
    ARMED_PAUSE,
    ARMED_CRASH,
};

/* The `after`-th time from now that the node comes to that place. One a node: the last counts. */
void armed_set(int node, enum armed_place place, unsigned after, enum armed_act act,
               int64_t pause_ns);
void armed_clear(int node);
void armed_reset(void);
/* Called where it happens, by the process that runs. */
void armed_point(enum armed_place place);

#endif
