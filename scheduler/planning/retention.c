#include "retention.h"

#include "log.h"
#include "scheduler_metrics.h"
#include "store_retention.h"

/* True when a table has more to forget. */
static bool count_all(const struct pruned *tables, size_t count, size_t limit)
{
    bool more = false;
    for (size_t i = 0; i < count; i++) {
        metric_add(scheduler_metric(SCHEDULER_PRUNED, tables[i].table, NULL),
                   (double)tables[i].rows);
        if (tables[i].rows > 0) {
            log_event(LOG_LEVEL_DEBUG, "rows pruned", "table=%s rows=%zu", tables[i].table,
                      tables[i].rows);
        }
        more = more || tables[i].rows >= limit;
    }
    return more;
}

enum status retention_round(struct retention *r, const struct store_call *call, struct error *err)
{
    struct pruned tables[RETENTION_TABLES];
    size_t count = 0;
    if (instant_before(clock_now(), r->at)) {
        return STATUS_OK;
    }
    if (r->rows == 0) {
        r->rows = RETENTION_ROWS;
    }
    enum status s = store_prune(call, r->rows, tables, &count, err);
    if (s == STATUS_OK) {
        bool more = count_all(tables, count, r->rows);
        r->at = instant_add_ms(clock_now(), more ? RETENTION_MORE_MS : RETENTION_MS);
        r->rows = r->rows * 2 < RETENTION_ROWS ? r->rows * 2 : RETENTION_ROWS;
        return s;
    }
    r->at = instant_add_ms(clock_now(), RETENTION_MS);
    r->rows = r->rows / 2 > RETENTION_ROWS_MIN ? r->rows / 2 : RETENTION_ROWS_MIN;
    if (s == STATUS_FENCED || s == STATUS_AGAIN) {
        return s;
    }
    log_event(LOG_LEVEL_WARN, "nothing could be pruned", "scope=%s next_rows=%zu error=%s",
              call->authority->scope, r->rows, log_quote(err->text).text);
    return STATUS_OK;
}
