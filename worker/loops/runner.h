/* Runners: the threads that run jobs. Each takes one claim at a time, runs it by its kind, and
 * leaves the outcome in the table of claims; none of them talks to the scheduler's database. */
#ifndef RS_RUNNER_H
#define RS_RUNNER_H

#include "claims.h"
#include "source.h"
#include "worker.h"

/* One runner; everything in it belongs to its thread. */
struct runner {
    struct worker *w;
    struct claim *claim;                    /* what runs now */
    const struct worker_settings *settings; /* in force when it began; valid while it runs */
    uint64_t settings_number;               /* which the kept connections were made by */
    instant timeout_at;                     /* of the schedule, for what runs now */
    int wake_fd;                            /* eventfd: the claim was killed */
    char installation[UUID_TEXT_MAX];
    struct source *sources[DATA_SOURCES_MAX]; /* kept open between jobs, by index in the settings */
    instant source_used[DATA_SOURCES_MAX];
    char *buffer; /* RUNNER_BUFFER bytes for output on its way to the artifact */
};

#define RUNNER_BUFFER 65536

/* Thread function; argument: struct worker *. Ends at claims_stop. */
void *runner_main(void *worker);

/* Run the claim by its kind; fill in claim->outcome. In runner_sql.c, runner_program.c. */
void runner_sql(struct runner *r);
void runner_program(struct runner *r);

#define RUNNER_EXPIRED "killed: its claim could not be renewed in time, or it hung"

/* Has the claim been killed or its time run out? Then the outcome is filled in, whatever it was. */
bool runner_is_stopped(struct runner *r);

/* Where new files go: the first store of the settings. NULL: there is none, and the outcome says
 * so. */
const struct artifact_store *runner_store(struct runner *r);

#endif
