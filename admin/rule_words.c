#include "rule_words.h"

#include <stdio.h>
#include <string.h>

#include "cron_notes.h"
#include "cron_quartz.h"
#include "cron_text.h"
#include "zone_file.h"

static bool row_add(struct table *t, const char *about, const char *text)
{
    return table_cell_add(t, about) && table_cell_add(t, text);
}

/* OK; INVALID when the rule cannot be computed; FATAL without memory. */
static enum status words_add(const struct session *s, const struct table *row, struct table *t)
{
    const char *text = table_value(row, 0, "rule");
    char std[CRON_TEXT_MAX];
    bool quartz = strcmp(table_value(row, 0, "dialect"), "quartz") == 0;
    struct cron c = {.seconds = 0};
    enum dst_gap_policy gap = DST_GAP_AUTO;
    enum dst_overlap_policy overlap = DST_OVERLAP_AUTO;
    enum status status = quartz ? cron_quartz_to_std(text, std, NULL) : STATUS_OK;
    if (status == STATUS_OK) {
        status = cron_parse(quartz ? std : text, &c, NULL);
    }
    if (status != STATUS_OK || !dst_gap_policy_parse(table_value(row, 0, "dst_gap"), &gap) ||
        !dst_overlap_policy_parse(table_value(row, 0, "dst_overlap"), &overlap)) {
        return STATUS_INVALID;
    }
    cron_set_policies(&c, gap, overlap);
    struct zone_set *zones = NULL;
    const struct zone *zone = NULL;
    status = zone_set_open(NULL, &zones, NULL);
    if (status == STATUS_OK) {
        status = zone_set_find(zones, table_value(row, 0, "time_zone"), &zone, NULL);
    }
    if (status == STATUS_OK) {
        char words[CRON_PLAIN_MAX];
        struct cron_notes notes;
        cron_text_write(&c, words);
        bool added = row_add(t, "rule", words) && (!quartz || row_add(t, "std", std));
        struct zone_change change;
        if (zone_change_after(zone, utc_seconds(s->now), &change)) {
            cron_text_write_policies(&c, words);
            added = added && row_add(t, "clock", words);
        }
        cron_notes_make(&c, zone, s->now, &notes);
        for (int i = 0; i < notes.count && added; i++) {
            added = row_add(t, "note", notes.text[i]);
        }
        status = added ? STATUS_OK : STATUS_FATAL;
    }
    zone_set_close(zones);
    return status;
}

enum exit_code rule_words_make(struct session *s, const char *schedule, struct table **ret_table)
{
    static const char sql[] = "SELECT rule, dialect, time_zone, dst_gap, dst_overlap"
                              " FROM reports.schedule WHERE name = $1 AND kind = 'cron'";
    static const struct column columns[] = {{.name = "about", .kind = COLUMN_TEXT},
                                            {.name = "text", .kind = COLUMN_TEXT}};
    const char *values[] = {schedule};
    struct table *row = NULL;
    enum exit_code code = session_select(s, sql, 1, values, &row);
    struct table *t = code == EXIT_DONE ? table_new() : NULL;
    if (code != EXIT_DONE) {
        return code;
    }
    if (t == NULL || !table_column_add(t, &columns[0]) || !table_column_add(t, &columns[1]) ||
        (table_rows(row) > 0 && words_add(s, row, t) == STATUS_FATAL)) {
        code = command_fail(s->in, EXIT_FAILED, "out of memory");
        table_free(t);
        t = NULL;
    }
    table_free(row);
    *ret_table = t;
    return code;
}

void rule_words_print(const struct table *t, FILE *out)
{
    for (size_t i = 0; i < table_rows(t); i++) {
        const char *about = table_value(t, i, "about");
        const char *text = table_value(t, i, "text");
        bool rule = strcmp(about, "rule") == 0 || strcmp(about, "clock") == 0;
        if (strcmp(about, "std") == 0) {
            (void)fprintf(out, "In dialect std: %s\n", text);
        } else if (rule && text[0] >= 'a' && text[0] <= 'z') {
            (void)fprintf(out, "%c%s.\n", text[0] - 'a' + 'A', text + 1);
        } else {
            (void)fprintf(out, "%s%s.\n", rule ? "" : "Note: ", text);
        }
    }
}
