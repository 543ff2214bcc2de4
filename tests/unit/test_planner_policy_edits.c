/* Edits of dst_overlap between the two passes of an overlap: what docs/schedules.md promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_pass.h"
#include "fixture_subject.h"
#include "fixture_zone.h"
#include "planner.h"

static struct plan_candidates candidates;

static struct rule rule_of(const char *text, enum dst_overlap_policy overlap)
{
    const struct rule_source source = {
        .kind = "cron", .text = text, .zone = "Europe/Berlin", .overlap = overlap};
    struct rule r = {.zone = NULL};
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    return r;
}

static struct plan_subject subject_of(const struct rule *r, enum key_form form, utc_us from)
{
    struct plan_subject s = fixture_subject(r, "2026-10-24T12:00:00Z");
    s.form = form;
    s.switched_at = from;
    s.misfire = MISFIRE_RUN_ALL;
    return s;
}

/* As a leader does it, who looks the keys up among those used. */
static enum status edit_settle(const struct plan_edit *e, char (*used)[KEY_MAX_BYTES], size_t count,
                               struct plan_switch *w, struct error *err)
{
    enum status status = plan_switch_find(e, w, err);
    if (status != STATUS_OK || !w->doubtful) {
        return status;
    }
    plan_candidates_fill(e, w, &candidates);
    for (size_t k = 0; k < candidates.count; k++) {
        for (size_t i = 0; i < count; i++) {
            candidates.taken[k] = candidates.taken[k] || strcmp(candidates.keys[k], used[i]) == 0;
        }
    }
    return plan_candidates_settle(e, &candidates, w, err);
}

/* The overlap of 25 October 2026 in Berlin: 02:30 is at 00:30Z and at 01:30Z. The edit is made at
 * 01:00Z. Keys of the day before the edit, "|", and behind it until the next noon; "problem: why"
 * where the edit is one. */
static void keys_across(const char *text, enum dst_overlap_policy before,
                        enum dst_overlap_policy after, char *ret, size_t size)
{
    struct rule old = rule_of(text, before);
    struct rule new = rule_of(text, after);
    struct plan_subject s =
        subject_of(&old, key_form_of_rule(&old), fixture_instant("2026-10-24T12:00:00Z"));
    s.until = fixture_instant("2026-10-25T01:00:00Z");
    struct plan_result result = plan_at(&s, "2026-10-25T01:00:00Z");
    struct plan_edit e = {
        .rule = &new,
        .has_form = true,
        .form = s.form,
        .effective_from = s.until,
        .last_fire_at = result.last.at,
        .has_last = result.moved,
        .last_nominal = result.last.nominal,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
        .has_next = result.next.found,
        .next_nominal = result.next.nominal,
    };
    char used[100][KEY_MAX_BYTES];
    size_t count = sink.firing_count;
    ret[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        memcpy(used[i], firings[i].key, KEY_MAX_BYTES);
        if (strcmp(used[i], e.highest_key) > 0) {
            memcpy(e.highest_key, used[i], KEY_MAX_BYTES);
        }
        (void)snprintf(ret + strlen(ret), size - strlen(ret), "%s ", used[i]);
    }
    (void)snprintf(ret + strlen(ret), size - strlen(ret), "|");
    struct plan_switch w;
    struct error err = {.text = ""};
    enum status status = edit_settle(&e, used, count, &w, &err);
    if (status != STATUS_OK) {
        (void)snprintf(ret + strlen(ret), size - strlen(ret), " problem: %s", err.text);
        return;
    }
    struct plan_subject n = subject_of(&new, s.form, w.switched_at);
    n.last_fire_at = e.last_fire_at;
    n.effective_from = e.effective_from;
    (void)plan_at(&n, "2026-10-26T03:00:00Z");
    for (size_t i = 0; i < sink.firing_count; i++) {
        (void)snprintf(ret + strlen(ret), size - strlen(ret), " %s", firings[i].key);
        for (size_t k = 0; k < count; k++) {
            assert_string_not_equal(firings[i].key, used[k]);
        }
    }
    assert_int_equal(sink.gap_count, 0);
}

static void test_no_key_comes_twice_when_the_policy_changes_between_the_passes(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        enum dst_overlap_policy before, after;
        const char *want;
    } cases[] = {
        {"30 2 * * *", DST_OVERLAP_FIRST, DST_OVERLAP_BOTH,
         "2026-10-25 | 2026-10-25+01:00 2026-10-26"},
        {"30 2 * * *", DST_OVERLAP_BOTH, DST_OVERLAP_FIRST, "2026-10-25+02:00 | 2026-10-26"},
        {"30 2 * * *", DST_OVERLAP_FIRST, DST_OVERLAP_SECOND, "2026-10-25 | 2026-10-26"},
        {"30 2 * * *", DST_OVERLAP_SECOND, DST_OVERLAP_FIRST, "| 2026-10-25 2026-10-26"},
        {"30 2 * * *", DST_OVERLAP_SECOND, DST_OVERLAP_BOTH,
         "| 2026-10-25+02:00 2026-10-25+01:00 2026-10-26"},
        {"30 2,12 * * *", DST_OVERLAP_FIRST, DST_OVERLAP_BOTH,
         "2026-10-25T02:30 | 2026-10-25T02:30+01:00 2026-10-25T12:30 2026-10-26T02:30"},
        {"30 2,12 * * *", DST_OVERLAP_BOTH, DST_OVERLAP_FIRST,
         "2026-10-25T02:30+02:00 | 2026-10-25T12:30 2026-10-26T02:30"},
        {"30 2,12 * * *", DST_OVERLAP_FIRST, DST_OVERLAP_SECOND,
         "2026-10-25T02:30 | problem: the new rule would fire again under keys that exist, from "
         "2026-10-25T02:30 to 2026-10-25T02:30; make a new schedule for it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char keys[600];
        keys_across(cases[i].rule, cases[i].before, cases[i].after, keys, sizeof keys);
        if (strcmp(keys, cases[i].want) != 0) {
            fail_msg("case %zu: \"%s\", wanted \"%s\"", i, keys, cases[i].want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_key_comes_twice_when_the_policy_changes_between_the_passes),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
