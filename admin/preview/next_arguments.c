#include "next_arguments.h"

#include <string.h>

#include "cron.h"
#include "next_command.h"
#include "rule_notes.h"
#include "zone_file.h"

enum status next_require(const char *value, const char *option, const char *example,
                         struct error *err)
{
    if (value != NULL) {
        return STATUS_OK;
    }
    return error_set(err, STATUS_INVALID, "%s is needed; write for example %s %s", option, option,
                     example);
}

enum status next_count_parse(const char *text, long *ret_count, struct error *err)
{
    if (text == NULL) {
        *ret_count = 1;
        return STATUS_OK;
    }
    long count = 0;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && count <= NEXT_COUNT_MAX; i++) {
        count = count * 10 + (text[i] - '0');
    }
    if (text[digits] != '\0' || count < 1 || count > NEXT_COUNT_MAX) {
        return error_set(err, STATUS_INVALID, "--count: write a number from 1 to %d",
                         NEXT_COUNT_MAX);
    }
    *ret_count = count;
    return STATUS_OK;
}

enum status next_policies_parse(const char *gap, const char *overlap, enum dst_gap_policy *ret_gap,
                                enum dst_overlap_policy *ret_overlap, struct error *err)
{
    enum dst_gap_policy g = DST_GAP_AUTO;
    enum dst_overlap_policy o = DST_OVERLAP_AUTO;
    if (gap != NULL && !dst_gap_policy_parse(gap, &g)) {
        return error_set(err, STATUS_INVALID, "--dst-gap: write auto, after, shift or skip");
    }
    if (overlap != NULL && !dst_overlap_policy_parse(overlap, &o)) {
        return error_set(err, STATUS_INVALID, "--dst-overlap: write auto, first, second or both");
    }
    *ret_gap = g;
    *ret_overlap = o;
    return STATUS_OK;
}

int next_fail(enum status s, const struct error *e, FILE *err)
{
    (void)fprintf(err, "reportctl next: %s\n", e->text);
    return s == STATUS_INVALID ? 2 : 1;
}

static void firings_print(const struct next_request *r, const struct zone *z, FILE *out)
{
    utc_us after = r->after;
    for (long i = 0; i < r->count; i++) {
        struct firing f = r->next(r->rule, z, after);
        if (!f.found) {
            return;
        }
        char text[RFC3339_TEXT_MAX];
        if (r->utc) {
            rfc3339_format_utc(f.at, text);
        } else {
            rfc3339_format(f.at, f.offset_s, text);
        }
        (void)fprintf(out, "%s\n", text);
        after = f.at;
    }
}

int next_print(const struct next_request *request, FILE *out, FILE *err)
{
    struct error e = {.text = ""};
    struct zone_set *zones = NULL;
    enum status s = zone_set_open(NULL, &zones, &e);
    if (s != STATUS_OK) {
        return next_fail(STATUS_NOT_FOUND, &e, err);
    }
    const struct zone *z = NULL;
    s = zone_set_find(zones, request->time_zone, &z, &e);
    if (s != STATUS_OK) {
        if (s == STATUS_INVALID) {
            (void)error_prefix(&e, s, "--time-zone");
        }
        zone_set_close(zones);
        return next_fail(s, &e, err);
    }
    firings_print(request, z, out);
    if (request->explain != NULL) {
        request->explain(request->rule, z, request->after, out);
    }
    zone_set_close(zones);
    if (fflush(out) != 0 || ferror(out) != 0) {
        (void)fprintf(err, "reportctl next: the output could not be written\n");
        return 1;
    }
    return 0;
}

/* `text` begins in lower case. */
static void sentence_print(const char *before, const char *text, FILE *out)
{
    char first = text[0] >= 'a' && text[0] <= 'z' ? (char)(text[0] - 'a' + 'A') : text[0];
    (void)fprintf(out, "%s%c%s.\n", before, before[0] == '\0' ? first : text[0], text + 1);
}

void next_explain(const struct rule *r, const char *std, utc_us from, FILE *out)
{
    const struct rule_around alone = {.bounds = {UTC_NONE, UTC_NONE}};
    char text[RULE_PLAIN_MAX];
    struct notes notes;
    (void)fputc('\n', out);
    for (int i = 0; i < RULE_SENTENCES; i++) {
        if (rule_sentence_write(r, &alone, (enum rule_sentence)i, from, text)) {
            sentence_print("", text, out);
        }
        if (i == SENTENCE_RULE && std != NULL) {
            (void)fprintf(out, "In dialect std: %s\n", std);
        }
    }
    rule_notes_make(r, &alone, from, &notes);
    for (int i = 0; i < notes.count; i++) {
        sentence_print("Note: ", notes.text[i], out);
    }
}
