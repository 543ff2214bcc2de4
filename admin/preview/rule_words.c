#include "rule_words.h"

#include <stdio.h>
#include <string.h>

#include "rule_notes.h"
#include "store_firings.h"

static bool row_add(struct table *t, const char *about, const char *text)
{
    return table_cell_add(t, about) && table_cell_add(t, text);
}

static bool about_add(const struct stored_rule *rule, struct table *t)
{
    char words[BUSINESS_DATE_WORDS_MAX] = "";
    struct business_date b;
    if (business_date_parse(rule->business_date, &b, NULL) == STATUS_OK) {
        business_date_words(&b, rule->calendar_name, words);
    }
    return words[0] == '\0' || row_add(t, "business_date", words);
}

/* One version of a schedule, and until when it counts. */
struct version {
    const struct due_row *row;
    struct rule rule;
    struct rule_around around;
    utc_us until; /* an announced one follows; UTC_NONE: none does */
};

static bool version_notes_add(const struct version *v, utc_us now, struct table *t)
{
    struct rule_around around = v->around;
    struct notes notes;
    if (!utc_is_none(v->until)) {
        utc_us end = around.bounds.ends_at;
        around.bounds.ends_at = utc_is_none(end) || end.us > v->until.us ? v->until : end;
        if (!rule_next_within(&v->rule, now, around.bounds).found) {
            return row_add(t, "note", "it does not fire any more until then");
        }
    }
    rule_notes_make(&v->rule, &around, now, &notes);
    bool added = true;
    for (int i = 0; i < notes.count && added; i++) {
        added = row_add(t, "note", notes.text[i]);
    }
    return added;
}

static bool sentences_add(const struct version *v, utc_us now, struct table *t)
{
    char text[RULE_PLAIN_MAX];
    char std[PLAN_RULE_MAX];
    bool added = true;
    for (int i = 0; i < RULE_SENTENCES && added; i++) {
        enum rule_sentence which = (enum rule_sentence)i;
        if (rule_sentence_write(&v->rule, &v->around, which, now, text)) {
            added = row_add(t, rule_sentence_name(which), text);
        }
        if (which == SENTENCE_RULE && strcmp(v->row->rule.dialect, "quartz") == 0 && added) {
            stored_rule_std(&v->row->rule, std);
            added = row_add(t, "std", std);
        }
    }
    return added && about_add(&v->row->rule, t) && version_notes_add(v, now, t);
}

static bool version_parse(const struct due_row *row, struct zone_set *zones,
                          const struct rule_words_about *about, struct version *ret)
{
    *ret = (struct version){
        .row = row,
        .around = {.bounds = {row->rule.starts_at, row->rule.ends_at},
                   .calendar = row->rule.calendar_name[0] != '\0' ? row->rule.calendar_name : NULL,
                   .shown_to = about->shown_to},
        .until = UTC_NONE,
    };
    return !row->ended && stored_rule_parse(&row->rule, zones, &ret->rule, NULL) == STATUS_OK;
}

/* An announced edit may be of other columns. */
static bool versions_say_the_same(const struct version *a, const struct version *b, utc_us now)
{
    char one[RULE_PLAIN_MAX];
    char other[RULE_PLAIN_MAX];
    bool same = strcmp(a->row->rule.business_date, b->row->rule.business_date) == 0;
    for (int i = 0; i < RULE_SENTENCES && same; i++) {
        (void)rule_sentence_write(&a->rule, &a->around, (enum rule_sentence)i, now, one);
        (void)rule_sentence_write(&b->rule, &b->around, (enum rule_sentence)i, now, other);
        same = strcmp(one, other) == 0;
    }
    return same;
}

static bool heading_add(const struct version *v, utc_us begins, struct table *t)
{
    char at[RFC3339_TEXT_MAX];
    char text[RFC3339_TEXT_MAX + 64];
    bool announced = utc_is_none(v->until);
    rfc3339_format(begins, zone_offset_at(v->rule.zone, utc_seconds(begins)), at);
    (void)snprintf(text, sizeof text,
                   announced ? "from %s on, as announced (version %d)" : "until %s (version %d)",
                   at, (int)v->row->version);
    return row_add(t, "version", text);
}

/* The latest version is the row as it stands. False: out of memory; a rule that cannot be computed
 * adds nothing. */
static bool words_add(const struct session *s, const struct rule_words_about *about,
                      const struct due_rows *rows, struct table *t)
{
    struct zone_set *zones = NULL;
    struct version first;
    struct version last;
    bool added = true;
    if (rows->count == 0 || zone_set_open(NULL, &zones, NULL) != STATUS_OK) {
        return true;
    }
    bool known = version_parse(&rows->rows[rows->count - 1], zones, about, &last);
    utc_us begins = last.row->effective_from;
    bool both = known && rows->count > 1 && !about->latest_only && begins.us > s->now.us &&
                version_parse(&rows->rows[0], zones, about, &first) &&
                !versions_say_the_same(&first, &last, s->now);
    if (both) {
        first.until = begins;
        added = heading_add(&first, begins, t) && sentences_add(&first, s->now, t) &&
                heading_add(&last, begins, t);
    }
    if (known && added) {
        added = sentences_add(&last, both ? (utc_us){begins.us - 1} : s->now, t);
    }
    zone_set_close(zones);
    return added;
}

enum exit_code rule_words_make(struct session *s, const struct rule_words_about *about,
                               struct table **ret_table)
{
    static const struct column columns[] = {{.name = "about", .kind = COLUMN_TEXT},
                                            {.name = "text", .kind = COLUMN_TEXT}};
    struct due_row row[2];
    struct due_rows rows = {.rows = row, .max = 2};
    struct error err = {.text = ""};
    enum exit_code code = EXIT_DONE;
    struct table *t = NULL;
    enum status status = store_definition(s->store, about->schedule, s->deadline, &rows, &err);
    if (status != STATUS_OK) {
        code = session_fail(s, status, &err);
    } else {
        t = table_make(columns, sizeof columns / sizeof columns[0]);
        if (t == NULL || !words_add(s, about, &rows, t)) {
            code = command_fail(s->in, EXIT_FAILED, "out of memory");
            table_free(t);
            t = NULL;
        }
    }
    stored_dates_free(&rows.dates);
    *ret_table = t;
    return code;
}

void rule_words_print(const struct table *t, FILE *out)
{
    for (size_t i = 0; i < table_rows(t); i++) {
        const char *about = table_value(t, i, "about");
        const char *text = table_value(t, i, "text");
        if (strcmp(about, "std") == 0) {
            (void)fprintf(out, "In dialect std: %s\n", text);
        } else if (strcmp(about, "note") == 0) {
            (void)fprintf(out, "Note: %s.\n", text);
        } else if (strcmp(about, "version") == 0) {
            (void)fprintf(out, "%s%c%s:\n", i > 0 ? "\n" : "", text[0] - 'a' + 'A', text + 1);
        } else if (text[0] >= 'a' && text[0] <= 'z') {
            (void)fprintf(out, "%c%s.\n", text[0] - 'a' + 'A', text + 1);
        } else {
            (void)fprintf(out, "%s.\n", text);
        }
    }
}
