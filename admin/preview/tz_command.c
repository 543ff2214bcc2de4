/* reportctl tz status, tz drift: this machine's time zone data against what the leaders stored. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "civil.h"
#include "firing_move.h"
#include "session.h"
#include "store_firings.h"

#define PAGE_ROWS 2000

/* Whether this machine would compute what is stored: the words of `standing`. */
static const char *standing_word(const struct due_row *row, struct zone_set *zones)
{
    const struct zone *zone = NULL;
    if (zone_set_find(zones, row->rule.time_zone, &zone, NULL) != STATUS_OK) {
        return "unreadable";
    }
    if (row->zone_digest[0] == '\0') {
        return "unknown";
    }
    switch (zone_standing_of(row, zones)) {
    case ZONE_SAME:
        return "same";
    case ZONE_MOVES:
        return tzdata_is_newer(zone_set_version(zones), row->tzdata) ? "older" : "other";
    case ZONE_STAYS:
        return "newer";
    }
    return "";
}

static bool change_add(struct table *t, const struct zone *zone, utc_us now)
{
    struct zone_change change;
    char before[OFFSET_TEXT_MAX];
    char after[OFFSET_TEXT_MAX];
    char text[2 * OFFSET_TEXT_MAX + 8];
    if (zone == NULL || !zone_change_after(zone, utc_seconds(now), &change)) {
        return table_cell_add(t, NULL) && table_cell_add(t, NULL);
    }
    offset_format(change.before, before);
    offset_format(change.after, after);
    (void)snprintf(text, sizeof text, "%s -> %s", before, after);
    return cell_instant_add(t, utc_from_seconds(change.at)) && table_cell_add(t, text);
}

/* A row of the database and what this machine says to it. */
static bool zone_add(struct table *t, const struct table *from, size_t row, struct zone_set *zones,
                     utc_us now)
{
    struct due_row stored = {.version = 0};
    const struct zone *zone = NULL;
    const char *name = table_value(from, row, "time_zone");
    (void)snprintf(stored.rule.time_zone, sizeof stored.rule.time_zone, "%s", name);
    (void)snprintf(stored.tzdata, sizeof stored.tzdata, "%s", table_value(from, row, "tzdata"));
    (void)snprintf(stored.zone_digest, sizeof stored.zone_digest, "%s",
                   table_value(from, row, "zone_digest"));
    const char *standing = standing_word(&stored, zones);
    if (zone_set_find(zones, name, &zone, NULL) != STATUS_OK) {
        zone = NULL;
    }
    return table_cell_add(t, table_value(from, row, "scope")) && table_cell_add(t, name) &&
           table_cell_add(t, table_value(from, row, "schedules")) &&
           table_cell_add(t, stored.tzdata) && table_cell_add(t, stored.zone_digest) &&
           table_cell_add(t, zone_set_version(zones)) &&
           table_cell_add(t, zone_set_digest(zones, name)) && table_cell_add(t, standing) &&
           table_cell_add(t, table_value(from, row, "leader_tzdata")) &&
           table_cell_add(t, table_value(from, row, "settled")) && change_add(t, zone, now);
}

static struct table *zones_make(const struct table *from, struct zone_set *zones, utc_us now)
{
    static const struct column columns[] = {
        {.name = "scope", .kind = COLUMN_TEXT},
        {.name = "time_zone", .kind = COLUMN_TEXT},
        {.name = "schedules", .kind = COLUMN_INT},
        {.name = "tzdata", .title = "STORED BY", .kind = COLUMN_TEXT},
        {.name = "digest", .kind = COLUMN_TEXT, .show = SHOW_PROGRAMS},
        {.name = "here_tzdata", .title = "HERE", .kind = COLUMN_TEXT},
        {.name = "here_digest", .kind = COLUMN_TEXT, .show = SHOW_PROGRAMS},
        {.name = "standing", .kind = COLUMN_TEXT},
        {.name = "leader_tzdata", .title = "LEADER", .kind = COLUMN_TEXT},
        {.name = "settled", .kind = COLUMN_BOOL},
        {.name = "next_change_at", .title = "NEXT CHANGE", .kind = COLUMN_INSTANT},
        {.name = "next_change", .title = "OFFSET", .kind = COLUMN_TEXT},
    };
    struct table *t = table_make(columns, sizeof columns / sizeof columns[0]);
    for (size_t row = 0; t != NULL && row < table_rows(from); row++) {
        if (!zone_add(t, from, row, zones, now)) {
            table_free(t);
            t = NULL;
        }
    }
    return t;
}

static enum exit_code zones_open(struct invocation *in, struct zone_set **ret_zones)
{
    struct error err = {.text = ""};
    return zone_set_open(NULL, ret_zones, &err) == STATUS_OK
               ? EXIT_DONE
               : command_fail(in, EXIT_FAILED, "%s", err.text);
}

enum exit_code tz_status_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT z.scope, z.time_zone, z.schedules, z.tzdata, z.zone_digest, s.tzdata AS"
        " leader_tzdata, s.settled FROM reports.v_zone z LEFT JOIN reports.v_zone_state s ON "
        "s.scope"
        " = z.scope AND s.time_zone = z.time_zone ORDER BY z.scope, z.time_zone, z.tzdata,"
        " z.zone_digest LIMIT $1";
    struct session s;
    struct zone_set *zones = NULL;
    struct table *stored = NULL;
    char limit[24];
    char empty[160];
    const char *values[] = {limit};
    session_limit(in, limit);
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = zones_open(in, &zones);
    }
    if (code == EXIT_DONE) {
        code = session_select(&s, sql, 1, values, &stored);
    }
    if (code == EXIT_DONE) {
        struct table *t = zones_make(stored, zones, s.now);
        (void)snprintf(empty, sizeof empty,
                       "No schedule has a next firing. This machine has tzdata %s.",
                       zone_set_version(zones));
        code = t == NULL ? command_fail(in, EXIT_FAILED, "out of memory")
                         : session_print_list(&s, t, command_int(in, "--limit"), empty);
    }
    table_free(stored);
    zone_set_close(zones);
    session_close(&s);
    return code;
}

/* One run of tz drift. */
struct drift {
    struct session *session;
    struct zone_set *zones;
    struct due_rows rows;
    struct table *table;
    size_t most; /* rows of the table */
};

static bool drift_add(struct table *t, const struct due_row *row, const struct firing *here)
{
    char old[RFC3339_TEXT_MAX];
    char next[RFC3339_TEXT_MAX] = "none";
    char moves[24];
    rfc3339_format(row->next.at, row->next.offset_s, old);
    if (here->found) {
        rfc3339_format(here->at, here->offset_s, next);
    }
    (void)snprintf(moves, sizeof moves, "%lld",
                   here->found ? (long long)((here->at.us - row->next.at.us) / MICROS_A_SECOND)
                               : 0LL);
    return table_cell_add(t, row->schedule) && table_cell_add(t, row->rule.time_zone) &&
           table_cell_add(t, old) && table_cell_add(t, here->found ? next : NULL) &&
           table_cell_add(t, here->found ? moves : NULL) && table_cell_add(t, row->tzdata);
}

/* False: out of memory. A rule that cannot be read here is planning's to name. */
static bool drift_compare(struct drift *d, const struct due_row *row)
{
    struct rule rule;
    struct rule_bounds bounds = {row->rule.starts_at, row->rule.ends_at};
    if (!row->next.found || stored_rule_parse(&row->rule, d->zones, &rule, NULL) != STATUS_OK) {
        return true;
    }
    struct firing here = firing_move(&rule, bounds, &row->next);
    return (here.found && here.at.us == row->next.at.us) || drift_add(d->table, row, &here);
}

static enum exit_code drift_read(struct drift *d, const char *time_zone)
{
    char after[NAME_MAX_BYTES] = "";
    struct session *s = d->session;
    do {
        struct error err = {.text = ""};
        enum status status = store_firings(s->store, after, time_zone, s->deadline, &d->rows, &err);
        if (status != STATUS_OK) {
            return session_fail(s, status, &err);
        }
        for (size_t i = 0; i < d->rows.count && table_rows(d->table) < d->most; i++) {
            if (!drift_compare(d, &d->rows.rows[i])) {
                return command_fail(s->in, EXIT_FAILED, "out of memory");
            }
        }
        if (d->rows.count > 0) {
            memcpy(after, d->rows.rows[d->rows.count - 1].schedule, sizeof after);
        }
    } while (d->rows.count == d->rows.max && table_rows(d->table) < d->most);
    return EXIT_DONE;
}

/* No firing is stored in a zone that there is not: that must not read as "none has drifted". */
static enum exit_code zone_check(struct drift *d, const char *time_zone)
{
    const struct zone *zone = NULL;
    struct error err = {.text = ""};
    enum status status =
        time_zone == NULL ? STATUS_OK : zone_set_find(d->zones, time_zone, &zone, &err);
    if (status == STATUS_OK) {
        return EXIT_DONE;
    }
    return command_fail(d->session->in, status == STATUS_INVALID ? EXIT_USAGE : EXIT_FAILED,
                        "--time-zone: %s", err.text);
}

static enum exit_code drift_run(struct drift *d, struct invocation *in)
{
    static const struct column columns[] = {
        {.name = "schedule", .kind = COLUMN_TEXT},
        {.name = "time_zone", .kind = COLUMN_TEXT},
        {.name = "stored", .kind = COLUMN_TEXT},
        {.name = "here", .kind = COLUMN_TEXT},
        {.name = "later_s", .title = "LATER", .kind = COLUMN_INT},
        {.name = "tzdata", .title = "STORED BY", .kind = COLUMN_TEXT},
    };
    int64_t limit = command_int(in, "--limit");
    d->most = (size_t)limit + 1;
    d->rows.max = PAGE_ROWS;
    d->rows.rows = calloc(PAGE_ROWS, sizeof d->rows.rows[0]);
    d->table = table_make(columns, sizeof columns / sizeof columns[0]);
    if (d->rows.rows == NULL || d->table == NULL) {
        return command_fail(in, EXIT_FAILED, "out of memory");
    }
    enum exit_code code = drift_read(d, command_text(in, "--time-zone"));
    if (code == EXIT_DONE) {
        char empty[160];
        (void)snprintf(empty, sizeof empty,
                       "Every stored firing is where tzdata %s of this machine puts it.",
                       zone_set_version(d->zones));
        code = session_print_list(d->session, d->table, limit, empty);
        d->table = NULL;
    }
    return code;
}

enum exit_code tz_drift_command(struct invocation *in)
{
    struct session s;
    struct drift d = {.session = &s};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = zones_open(in, &d.zones);
    }
    if (code == EXIT_DONE) {
        code = zone_check(&d, command_text(in, "--time-zone"));
    }
    if (code == EXIT_DONE) {
        code = drift_run(&d, in);
    }
    table_free(d.table);
    stored_dates_free(&d.rows.dates);
    free(d.rows.rows);
    zone_set_close(d.zones);
    session_close(&s);
    return code;
}
