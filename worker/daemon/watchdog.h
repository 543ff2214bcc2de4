/* systemd's watchdog of report-worker: fed by the main thread, and only while the loops that claim,
 * renew and record turn. Runners are not among them (a job may take hours; its claim has deadlines
 * of its own), nor is the sweeper (a large tree takes its time). Thread: main. Blocks: never. */
#ifndef RS_WATCHDOG_H
#define RS_WATCHDOG_H

#include "worker.h"

#define WATCHDOG_LOOPS 3

struct watchdog {
    int64_t period_ms; /* what systemd allows; 0: it does not watch */
    instant fed_at;
    bool told[WATCHDOG_LOOPS]; /* that the loop is stuck */
};

/* Before the loops start: nobody is late who has not begun. */
struct watchdog watchdog_start(struct worker *w);

/* A look at the loops: tells once which of them is stuck and when it turns again, and feeds. Call
 * it at least three times in a period. */
void watchdog_look(struct watchdog *dog, const struct worker *w, instant now);

#endif
