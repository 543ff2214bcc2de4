/* When the poll thread claims, pulls, pauses Kafka or lets messages pass. Pure: counts and times
 * in, a decision out.
 *
 * No free slot: wait for one, leaving the consumer as it is, for short jobs free theirs within
 * milliseconds and resuming after a pause costs a fetch (librdkafka drops what it had fetched).
 * After PAUSE_AFTER_MS without one: pause the topic; after SHED_AFTER_MS let the messages pass
 * unclaimed: their jobs stay queued and are pulled by whoever is free. A free slot and no message
 * for pull_idle_ms (up to twice it): pull, and now and then under steady messages as well, for a
 * job whose own message was lost. A pull that came back full means more is waiting: pull again at
 * once. */
#ifndef RS_ADMISSION_H
#define RS_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"

#define PAUSE_AFTER_MS 500
#define SHED_AFTER_MS  5000
#define PULL_OFF_MAX   5 /* times pull_idle_ms: messages put a pull off no longer than that */

enum admission_mode {
    ADMISSION_CLAIM, /* take messages and claim them */
    ADMISSION_WAIT,  /* leave Kafka alone until there is a slot */
    ADMISSION_PAUSE, /* fetch nothing */
    ADMISSION_SHED,  /* take messages and let them go */
};

struct admission {
    int64_t pull_idle_ms;
    instant full_since; /* INSTANT_NEVER: there is a free slot */
    instant pull_at;
    instant pulled_at; /* the last one */
};

struct admission_step {
    enum admission_mode mode;
    bool pull;    /* claim_ready first, for up to the free slots */
    instant wake; /* decide again then at the latest */
};

/* The first decision with a free slot pulls: what waits from before the start is not announced
 * again. */
struct admission admission_start(instant now, int64_t pull_idle_ms);

struct admission_step admission_decide(struct admission *a, instant now, size_t free_slots);

/* Messages came in CLAIM mode. `random`: any evenly distributed number, for the jitter. */
void admission_took(struct admission *a, instant now, uint64_t random);

/* Messages passed in SHED mode: pull as soon as there is a slot. */
void admission_shed(struct admission *a, instant now);

/* A pull for `asked` jobs came back with `got` of them (0 when it failed). */
void admission_pulled(struct admission *a, instant now, size_t asked, size_t got, uint64_t random);

#endif
