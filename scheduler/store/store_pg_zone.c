/* PostgreSQL adapter of store_zone.h. */
#include "store_zone.h"

#include <stdio.h>
#include <string.h>

#include "store_pg_plan.h"

enum status store_zones_in_use(const struct store_call *call, struct zone_uses *ret_uses,
                               struct error *err)
{
    const char *values[] = {call->authority->scope};
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store,
                                   "SELECT time_zone, tzdata, digest, settled, newest_tzdata, "
                                   "newest_digest FROM reports.zones_in_use($1)",
                                   1, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    ret_uses->count = 0;
    for (int i = 0; i < PQntuples(r) && ret_uses->count < ZONE_SET_MAX; i++) {
        struct zone_use *u = &ret_uses->rows[ret_uses->count++];
        store_pg_text(r, i, 0, u->time_zone, sizeof u->time_zone);
        store_pg_text(r, i, 1, u->tzdata, sizeof u->tzdata);
        store_pg_text(r, i, 2, u->digest, sizeof u->digest);
        u->settled = store_pg_bool(r, i, 3);
        store_pg_text(r, i, 4, u->newest_tzdata, sizeof u->newest_tzdata);
        store_pg_text(r, i, 5, u->newest_digest, sizeof u->newest_digest);
    }
    PQclear(r);
    return STATUS_OK;
}

/* All rows are by one version of the data. */
enum status store_note_zones(const struct store_call *call, const struct zone_use *rows,
                             size_t count, struct error *err)
{
    struct arrays a = {0};
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 4];
    for (size_t i = 0; i < count; i++) {
        store_pg_array_add(&a.array[0], rows[i].time_zone);
        store_pg_array_add(&a.array[1], rows[i].digest);
        store_pg_array_add(&a.array[2], rows[i].settled ? "true" : "false");
    }
    authority_values(call->authority, &text, values);
    values[AUTHORITY_VALUES] = count > 0 ? rows[0].tzdata : "";
    enum status s = STATUS_OK;
    if (!arrays_values(&a, 3, &values[AUTHORITY_VALUES + 1])) {
        s = error_set(err, STATUS_AGAIN, "out of memory");
    } else {
        s = verdict_query(call,
                          "SELECT reports.note_zones($1, $2::bigint, $3::bigint, $4::uuid, $5, "
                          "$6::text[], $7::text[], $8::boolean[])",
                          AUTHORITY_VALUES + 4, values, err);
    }
    arrays_free(&a);
    return s;
}

/* {a,b,"null"}: names need no other quoting. */
static void names_fill(const char *list, struct zone_page *page)
{
    page->count = 0;
    list += *list == '{' ? 1 : 0;
    while (*list != '\0' && *list != '}' && page->count < ZONE_PAGE_MAX) {
        size_t n = strcspn(list, ",}");
        bool quoted = *list == '"' && n >= 2;
        (void)snprintf(page->names[page->count++], NAME_MAX_BYTES, "%.*s",
                       (int)(quoted ? n - 2 : n), quoted ? list + 1 : list);
        list += n + (list[n] == ',' ? 1 : 0);
    }
}

enum status store_of_zone(const struct store_call *call, struct zone_asked asked,
                          struct zone_page *ret_page, struct error *err)
{
    char limit[24];
    (void)snprintf(limit, sizeof limit, "%d", ZONE_PAGE_MAX);
    const char *values[] = {call->authority->scope, asked.time_zone, asked.digest, asked.after,
                            limit};
    PGresult *r = NULL;
    enum status s = store_pg_query(
        call->store,
        "SELECT looked_at, schedules FROM reports.of_zone($1, $2, $3, $4, $5::integer)", 5, values,
        call->deadline, &r, err);
    if (s == STATUS_OK) {
        store_pg_text(r, 0, 0, ret_page->looked_at, sizeof ret_page->looked_at);
        names_fill(PQgetvalue(r, 0, 1), ret_page);
        PQclear(r);
    }
    return s;
}

static void move_add(struct store_pg_array *a, const struct zone_move *m)
{
    store_pg_array_add(&a[0], m->schedule);
    store_pg_array_add_int(&a[1], m->step);
    if (m->next.found) {
        arrays_add_time(&a[2], m->next.at);
        arrays_add_local(&a[3], m->next.nominal);
        store_pg_array_add_int(&a[4], m->next.offset_s);
    } else {
        store_pg_array_add(&a[2], NULL);
        store_pg_array_add(&a[3], NULL);
        store_pg_array_add(&a[4], NULL);
    }
    arrays_add_time(&a[5], m->switched_at);
    store_pg_array_add(&a[6], m->digest);
}

static bool list_has(const struct zone_page *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

#define MOVE_ARRAYS 7

enum status store_rezone(const struct store_call *call, const struct zone_move *moves, size_t count,
                         const char *tzdata, struct written_rows *ret_written, struct error *err)
{
    static const char sql[] =
        "SELECT verdict, moved, cardinality(moved) FROM reports.rezone($1, $2::bigint, "
        "$3::bigint, $4::uuid, $5, $6::text[], $7::bigint[], $8::timestamptz[], $9::timestamp[], "
        "$10::integer[], $11::timestamptz[], $12::text[])";
    struct arrays a = {0};
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 1 + MOVE_ARRAYS];
    for (size_t i = 0; i < count; i++) {
        move_add(a.array, &moves[i]);
    }
    authority_values(call->authority, &text, values);
    values[AUTHORITY_VALUES] = tzdata;
    enum status s = STATUS_OK;
    PGresult *r = NULL;
    if (!arrays_values(&a, MOVE_ARRAYS, &values[AUTHORITY_VALUES + 1])) {
        s = error_set(err, STATUS_AGAIN, "out of memory");
    } else {
        s = store_pg_query(call->store, sql, AUTHORITY_VALUES + 1 + MOVE_ARRAYS, values,
                           call->deadline, &r, err);
    }
    if (s == STATUS_OK) {
        s = verdict_status(PQgetvalue(r, 0, 0), err);
        if (s == STATUS_OK) {
            struct zone_page moved;
            bool all = (size_t)store_pg_int(r, 0, 2) == count; /* as a rule */
            names_fill(PQgetvalue(r, 0, 1), &moved);
            ret_written->count = 0;
            for (size_t i = 0; i < count; i++) {
                ret_written->written[i] = all || list_has(&moved, moves[i].schedule);
                ret_written->count += ret_written->written[i] ? 1 : 0;
            }
        }
        PQclear(r);
    }
    arrays_free(&a);
    return s;
}
