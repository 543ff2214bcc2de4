#include "due_count.h"

#include <inttypes.h>
#include <stdio.h>

#include "cell.h"
#include "command.h"
#include "store_firings.h"

enum {
    SCHEDULE,
    LAST,
    NEXT,
    MISFIRE
};

/* Returns: as store_definition; INVALID too when nobody can tell. */
static enum status firings_count(struct session *s, struct zone_set *zones, const char *schedule,
                                 const char *next, int64_t *ret_count)
{
    struct due_row row[2]; /* the version in force, and one that is announced */
    struct due_rows rows = {.rows = row, .max = sizeof row / sizeof row[0]};
    struct rule rule;
    utc_us from;
    enum status status = store_definition(s->store, schedule, s->deadline, &rows, NULL);
    if (status == STATUS_OK) {
        status = rows.count > 0 && next != NULL && cell_instant_parse(next, &from)
                     ? stored_rule_parse(&row[0].rule, zones, &rule, NULL)
                     : STATUS_INVALID;
    }
    if (status == STATUS_OK) {
        const struct rule_bounds bounds = {row[0].rule.starts_at, row[0].rule.ends_at};
        *ret_count =
            rule_count_within(&rule, (utc_us){from.us - 1}, (utc_us){s->now.us + 1}, bounds);
    }
    stored_dates_free(&rows.dates);
    return status;
}

static bool row_add(struct session *s, struct zone_set *zones, const struct table *from, size_t i,
                    struct table *to)
{
    char text[24];
    int64_t count = 0;
    const char *next = table_cell(from, i, NEXT);
    bool known = zones != NULL &&
                 firings_count(s, zones, table_cell(from, i, SCHEDULE), next, &count) == STATUS_OK;
    (void)snprintf(text, sizeof text, "%" PRId64, count);
    return table_cell_add(to, table_cell(from, i, SCHEDULE)) &&
           table_cell_add(to, table_cell(from, i, LAST)) && table_cell_add(to, next) &&
           table_cell_add(to, known ? text : NULL) &&
           table_cell_add(to, table_cell(from, i, MISFIRE));
}

enum exit_code due_count_add(struct session *s, struct table **table)
{
    static const struct column columns[] = {
        {.name = "schedule", .kind = COLUMN_TEXT},
        {.name = "last_fire_at", .kind = COLUMN_INSTANT},
        {.name = "next_fire_at", .kind = COLUMN_INSTANT},
        {.name = "firings", .kind = COLUMN_INT},
        {.name = "misfire", .kind = COLUMN_TEXT},
    };
    struct zone_set *zones = NULL;
    struct table *t = table_make(columns, sizeof columns / sizeof columns[0]);
    bool ok = t != NULL;
    /* Without time zone data here the rest is told all the same. */
    if (zone_set_open(NULL, &zones, NULL) != STATUS_OK) {
        zones = NULL;
    }
    for (size_t i = 0; ok && i < table_rows(*table); i++) {
        ok = row_add(s, zones, *table, i, t);
    }
    zone_set_close(zones);
    if (!ok) {
        table_free(t);
        return command_fail(s->in, EXIT_FAILED, "out of memory");
    }
    table_free(*table);
    *table = t;
    return EXIT_DONE;
}
