/* PostgreSQL: figures of scopes, and problems. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_figures.h"
#include "store_pg.h"

enum status store_figures(struct store *store, const struct figure_request *request,
                          instant deadline, struct figure_list *ret_figures, struct error *err)
{
    static const char sql[] =
        "SELECT s.name, f.figure, f.label, f.value FROM unnest($1::text[]) AS s (name)"
        " CROSS JOIN LATERAL reports.scope_figures(s.name) f WHERE f.value IS NOT NULL";
    struct store_pg_array scopes = {0};
    PGresult *r = NULL;
    store_pg_array_reset(&scopes);
    for (size_t i = 0; i < request->scope_count; i++) {
        store_pg_array_add(&scopes, request->scopes[i]);
    }
    const char *values[] = {store_pg_array_text(&scopes)};
    enum status s = values[0] == NULL ? error_set(err, STATUS_AGAIN, "out of memory")
                                      : store_pg_query(store, sql, 1, values, deadline, &r, err);
    store_pg_array_free(&scopes);
    if (s != STATUS_OK) {
        return s;
    }
    size_t n = (size_t)PQntuples(r);
    ret_figures->count = n < ret_figures->max ? n : ret_figures->max;
    for (size_t i = 0; i < ret_figures->count; i++) {
        struct figure *f = &ret_figures->rows[i];
        store_pg_text(r, (int)i, 0, f->scope, sizeof f->scope);
        store_pg_text(r, (int)i, 1, f->name, sizeof f->name);
        store_pg_text(r, (int)i, 2, f->label, sizeof f->label);
        f->value = strtod(PQgetvalue(r, (int)i, 3), NULL);
    }
    PQclear(r);
    return STATUS_OK;
}

enum status store_problems(struct store *store, instant deadline, struct problem_list *ret_problems,
                           struct error *err)
{
    char limit[16];
    const char *values[] = {limit};
    PGresult *r = NULL;
    (void)snprintf(limit, sizeof limit, "%d", PROBLEMS_MAX + 1);
    enum status s =
        store_pg_query(store, "SELECT kind, subject, problem, remedy FROM reports.problem_list($1)",
                       1, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    size_t n = (size_t)PQntuples(r);
    ret_problems->more = n > PROBLEMS_MAX;
    ret_problems->count = ret_problems->more ? PROBLEMS_MAX : n;
    for (size_t i = 0; i < ret_problems->count; i++) {
        struct problem *p = &ret_problems->rows[i];
        store_pg_text(r, (int)i, 0, p->kind, sizeof p->kind);
        store_pg_text(r, (int)i, 1, p->subject, sizeof p->subject);
        store_pg_text(r, (int)i, 2, p->text, sizeof p->text);
        store_pg_text(r, (int)i, 3, p->remedy, sizeof p->remedy);
    }
    PQclear(r);
    return s;
}
