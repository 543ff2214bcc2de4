#include "http_backfill_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backfill_span.h"
#include "store_firings.h"

/* What ask says of a backfill that it does not know and that comes without firings. */
#define FEATURE_NOT_SUPPORTED   "0A000"
#define INVALID_PARAMETER_VALUE "22023"
#define LOOK_MAX                500000 /* firings: others wait meanwhile */

/* The rule in force, and its firings. All zero: nothing yet. */
struct search {
    struct due_row row[2]; /* behind it one that is announced */
    struct due_rows rows;
    struct zone_set *zones;
    struct rule rule;
    struct backfill_firings firings;
};

static void search_free(struct search *s)
{
    if (s != NULL) {
        stored_dates_free(&s->rows.dates);
        zone_set_close(s->zones);
        free(s);
    }
}

static enum status rule_read(struct search *x, struct store *store, const struct request_wish *w,
                             instant deadline, struct error *err)
{
    struct error why = {.text = ""};
    x->rows.rows = x->row;
    x->rows.max = sizeof x->row / sizeof x->row[0];
    enum status s = store_definition(store, w->subject, deadline, &x->rows, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (x->rows.count == 0) {
        return error_set(err, STATUS_NOT_FOUND,
                         "schedule \"%s\" does not exist; reportctl schedules lists them",
                         w->subject);
    }
    s = zone_set_open(NULL, &x->zones, err);
    if (s == STATUS_OK) {
        s = stored_rule_parse(&x->row[0].rule, x->zones, &x->rule, &why);
    }
    return s == STATUS_OK ? s
                          : error_set(err, STATUS_CONFLICT, "schedule \"%s\": %s", w->subject,
                                      why.text[0] != '\0' ? why.text : err->text);
}

static enum status firings_find(struct search *x, const struct request_wish *w, struct error *err)
{
    struct backfill_subject subject = {
        .row = &x->row[0],
        .rule = &x->rule,
        .span = {.from = w->from, .to = w->to, .from_name = "from", .to_name = "to"},
        .now = x->rows.now,
        .look_max = LOOK_MAX,
    };
    struct error why = {.text = ""};
    enum status s = backfill_span_read(&subject.span, &why);
    if (s == STATUS_OK) {
        s = backfill_firings_find(&subject, &x->firings, &why);
    }
    if (s != STATUS_OK) {
        *err = why;
        (void)snprintf(err->code, sizeof err->code, "%s",
                       s == STATUS_INVALID ? INVALID_PARAMETER_VALUE : "");
    }
    return s;
}

/* Owns: search_free, when it is OK. */
static enum status search_make(struct store *store, const struct request_wish *w, instant deadline,
                               struct search **ret_search, struct error *err)
{
    struct search *x = calloc(1, sizeof *x);
    enum status s = x != NULL ? rule_read(x, store, w, deadline, err)
                              : error_set(err, STATUS_AGAIN, "out of memory");
    if (s == STATUS_OK) {
        s = firings_find(x, w, err);
    }
    if (s != STATUS_OK) {
        search_free(x);
        return s;
    }
    *ret_search = x;
    return STATUS_OK;
}

enum status http_backfill_ask(struct store *store, const struct request_wish *wish,
                              instant deadline, struct request_standing *ret_answer,
                              struct error *err)
{
    struct error first = {.text = ""};
    struct search *x = NULL;
    enum status s = request_ask(store, wish, deadline, ret_answer, &first);
    if (s != STATUS_INVALID || strcmp(first.code, FEATURE_NOT_SUPPORTED) != 0) {
        *err = first;
        return s;
    }
    s = search_make(store, wish, deadline, &x, err);
    if (s != STATUS_OK) {
        return s;
    }
    char *array = backfill_firings_json(&x->firings.list, x->firings.windows);
    const struct request_firings firings = {.version = x->row[0].version, .array = array};
    s = array != NULL ? request_ask_backfill(store, wish, &firings, deadline, ret_answer, err)
                      : error_set(err, STATUS_AGAIN, "out of memory");
    free(array);
    search_free(x);
    return s;
}

/* NULL: out of memory. */
static char *firings_json(const struct search *x, const struct request_wish *w)
{
    const struct plan_candidates *list = &x->firings.list;
    json_t *all = json_array();
    for (size_t i = 0; all != NULL && i < list->count; i++) {
        const struct firing *f = &list->firings[i];
        char local[RFC3339_TEXT_MAX];
        char at[RFC3339_TEXT_MAX];
        rfc3339_format(f->at, f->offset_s, local);
        rfc3339_format_utc(f->at, at);
        json_t *one =
            json_pack("{s:s,s:s,s:s,s:s}", "occurrence_key", list->keys[i], "local", local,
                      "fire_at", at, "becomes", backfill_becomes(&x->firings, i, &x->row[0]));
        if (one == NULL || json_array_append_new(all, one) != 0) {
            json_decref(all);
            all = NULL;
        }
    }
    json_t *object = all != NULL ? json_pack("{s:s,s:s,s:s,s:o}", "id", w->id, "state", "dry_run",
                                             "subject", w->subject, "firings", all)
                                 : NULL;
    char *text = object != NULL ? json_dumps(object, 0) : NULL;
    json_decref(object);
    return text;
}

enum status http_backfill_show(struct store *store, const struct request_wish *wish,
                               instant deadline, struct http_response *response, struct error *err)
{
    struct search *x = NULL;
    enum status s = search_make(store, wish, deadline, &x, err);
    if (s != STATUS_OK) {
        return s;
    }
    s = request_backfill_check(store, wish, x->row[0].version, deadline, err);
    if (s == STATUS_OK) {
        s = store_keys_used(store, wish->subject, deadline, &x->firings.list, err);
    }
    if (s == STATUS_OK) {
        http_respond_json(response, 200, firings_json(x, wish));
    }
    search_free(x);
    return s;
}
