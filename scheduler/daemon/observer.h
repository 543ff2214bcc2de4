/* The observer: a thread that reads the facts of the database about this replica's scopes and
 * publishes them as metrics, whoever leads. So losing the leader, or one replica, loses no sight.
 * It has a connection of its own, asks two bounded statements each period, and decides nothing. It
 * is also the replica's witness of the database's clock (clock_witness.h).
 *
 * Facts that could not be read for three periods vanish from the metrics; how old the last reading
 * is can always be seen. */
#ifndef RS_OBSERVER_H
#define RS_OBSERVER_H

#include "clock_watch.h"
#include "problem_board.h"
#include "settings.h"
#include "status.h"
#include "store.h"

struct observer;

struct observer_options {
    const char *conninfo, *password_file;
    const struct setting_list *scopes;
    struct clock_watch *watch;   /* settled by this thread; NULL: the clock is not watched */
    const char *member;          /* this replica */
    struct problem_board *board; /* shown on; NULL: none */
    int64_t observe_ms;          /* between two readings */
    int64_t connect_ms, statement_ms;
};

/* Options are borrowed until it has stopped. Owns: observer_stop. Returns: OK; FATAL. Thread: main.
 */
MUST_USE enum status observer_start(const struct observer_options *options,
                                    struct observer **ret_observer, struct error *err);

/* Collector of metrics.h: the age of the last reading. Thread: any. Blocks: never. */
void observer_collect(void *observer);

/* End and free it; NULL is fine. Returns: OK; TIMEOUT: it hangs, nothing is freed. Blocks: until
 * deadline. */
MUST_USE enum status observer_stop(struct observer *observer, instant deadline);

#endif
