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

static bool sentences_add(const struct due_row *row, const struct rule *rule, utc_us now,
                          struct table *t)
{
    const struct rule_around around = {
        .bounds = {row->rule.starts_at, row->rule.ends_at},
        .calendar = row->rule.calendar_name[0] != '\0' ? row->rule.calendar_name : NULL,
    };
    char text[RULE_PLAIN_MAX];
    char std[PLAN_RULE_MAX];
    struct notes notes;
    bool added = true;
    for (int i = 0; i < RULE_SENTENCES && added; i++) {
        enum rule_sentence which = (enum rule_sentence)i;
        if (rule_sentence_write(rule, &around, which, now, text)) {
            added = row_add(t, rule_sentence_name(which), text);
        }
        if (which == SENTENCE_RULE && strcmp(row->rule.dialect, "quartz") == 0 && added) {
            stored_rule_std(&row->rule, std);
            added = row_add(t, "std", std);
        }
    }
    added = added && about_add(&row->rule, t);
    rule_notes_make(rule, &around, now, &notes);
    for (int i = 0; i < notes.count && added; i++) {
        added = row_add(t, "note", notes.text[i]);
    }
    return added;
}

/* The latest version is the row as it stands. False: out of memory; a rule that cannot be computed
 * adds nothing. */
static bool words_add(const struct session *s, const struct due_rows *rows, struct table *t)
{
    struct zone_set *zones = NULL;
    struct rule rule;
    bool added = true;
    if (rows->count == 0) {
        return true;
    }
    const struct due_row *row = &rows->rows[rows->count - 1];
    if (zone_set_open(NULL, &zones, NULL) == STATUS_OK &&
        stored_rule_parse(&row->rule, zones, &rule, NULL) == STATUS_OK) {
        added = sentences_add(row, &rule, s->now, t);
    }
    zone_set_close(zones);
    return added;
}

enum exit_code rule_words_make(struct session *s, const char *schedule, struct table **ret_table)
{
    static const struct column columns[] = {{.name = "about", .kind = COLUMN_TEXT},
                                            {.name = "text", .kind = COLUMN_TEXT}};
    struct due_row row[2];
    struct due_rows rows = {.rows = row, .max = 2};
    struct error err = {.text = ""};
    enum exit_code code = EXIT_DONE;
    struct table *t = NULL;
    enum status status = store_definition(s->store, schedule, s->deadline, &rows, &err);
    if (status != STATUS_OK) {
        code = session_fail(s, status, &err);
    } else {
        t = table_make(columns, sizeof columns / sizeof columns[0]);
        if (t == NULL || !words_add(s, &rows, t)) {
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
        } else if (text[0] >= 'a' && text[0] <= 'z') {
            (void)fprintf(out, "%c%s.\n", text[0] - 'a' + 'A', text + 1);
        } else {
            (void)fprintf(out, "%s.\n", text);
        }
    }
}
