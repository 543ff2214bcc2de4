/* Inside of Kafka in memory. */
#ifndef RS_SIMULATE_DISPATCH_TOPIC_H
#define RS_SIMULATE_DISPATCH_TOPIC_H

#include "dispatch.h"
#include "kernel.h"

#define PARTITIONS   4
#define MESSAGES_MAX 2048

/* A message that holds its own text. */
struct parcel {
    int partition;
    int64_t offset, from; /* fetched from then on */
    uint64_t job;
    struct message_text text;
};

struct topic {
    bool up, exists;
    unsigned repeats;
    int64_t delay;
    int64_t ends[PARTITIONS], committed[PARTITIONS];
    struct parcel messages[MESSAGES_MAX];
    size_t count;
};
extern struct topic topic;

void parcel_pack(struct parcel *p, const char *key, const struct message_text *text);
void topic_append(struct parcel *p);
void consumers_reset(void);
void consumers_wake(void);
void consumers_forget(struct process *p);

#endif
