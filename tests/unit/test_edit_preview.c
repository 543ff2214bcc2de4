/* What `reportctl plan` foretells is what a leader does: firings that are listed are compared with
 * those that the planner makes, with an edit and without, for rules, zones, instants and policies
 * at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "edit_preview.h"
#include "fixture_subject.h"
#include "fixture_zone.h"

#define CASES       1500
#define FIRINGS_MAX 8000
#define HOUR_US     INT64_C(3600000000)
#define DAY_US      (24 * HOUR_US)

static struct plan_window window;
static struct plan_candidates candidates;

/* What a leader did under one course. */
struct made {
    struct planned_firing firings[FIRINGS_MAX];
    size_t count;
    char problem[ERROR_TEXT_MAX];
};
static struct made with, without;

static struct planned_gap gaps[10];

static struct rule rule_random(const char *zone)
{
    char text[80];
    const char *kind = "cron";
    int minute = fixture_random_in(0, 59);
    int hour = fixture_random_in(0, 23);
    switch (fixture_random_in(0, 8)) {
    case 0:
    case 1:
        (void)snprintf(text, sizeof text, "%d %d * * *", minute, hour);
        break;
    case 2:
        (void)snprintf(text, sizeof text, "%d %d * * 1-%d", minute, fixture_random_in(0, 4),
                       fixture_random_in(2, 5));
        break;
    case 3:
        (void)snprintf(text, sizeof text, "*/%d * * * *", fixture_random_in(5, 59));
        break;
    case 4:
        (void)snprintf(text, sizeof text, "%d */%d * * *", minute, fixture_random_in(1, 12));
        break;
    case 5:
        (void)snprintf(text, sizeof text, "0,%d %d-23 * * *", fixture_random_in(1, 59), hour);
        break;
    case 6:
        (void)snprintf(text, sizeof text, "%d %d LW * *", minute, hour);
        break;
    case 7:
        kind = "interval";
        (void)snprintf(text, sizeof text, "%d minutes", fixture_random_in(20, 3000));
        break;
    default:
        kind = "once";
        (void)snprintf(text, sizeof text, "2026-%02d-%02dT%02d:%02dZ", fixture_random_in(10, 11),
                       fixture_random_in(20, 30), hour, minute);
        break;
    }
    static const char *const jitters[] = {"", "sales-daily", "invoices"};
    int jitter = fixture_random_in(0, 2);
    struct rule_source source = {.kind = kind,
                                 .text = text,
                                 .zone = zone,
                                 .anchor = fixture_instant("2026-01-01T00:00:00Z"),
                                 .gap = (enum dst_gap_policy)fixture_random_in(0, 3),
                                 .overlap = (enum dst_overlap_policy)fixture_random_in(0, 3)};
    if (jitter > 0) {
        source.jitter_us = rule_jitter_us(jitters[jitter], 3600);
    }
    struct rule r = {.zone = NULL};
    struct error err = {.text = ""};
    if (rule_parse(&source, fixture_zones(), &r, &err) != STATUS_OK) {
        fail_msg("%s \"%s\": %s", kind, text, err.text);
    }
    return r;
}

/* Plan on until an instant; everything that is due then is on time. */
static struct plan_result plan_on(struct plan_subject *s, utc_us now, struct made *m)
{
    struct plan_result r = {.moved = false};
    struct error err = {.text = ""};
    struct plan_sink sink = {m->firings, m->count, FIRINGS_MAX, gaps, 0, 10};
    s->misfire = MISFIRE_RUN_ALL;
    s->misfire_grace_us = 1000 * DAY_US;
    s->misfire_age_us = 1000 * DAY_US;
    enum status status = plan_schedule(s, now, 0, &window, &sink, &r, &err);
    if (status != STATUS_OK) {
        fail_msg("%s: %s", status_name(status), err.text);
    }
    assert_int_equal(sink.gap_count, 0);
    assert_false(r.more);
    m->count = sink.firing_count;
    if (r.moved) {
        s->last_fire_at = r.last.at;
    }
    return r;
}

struct story {
    struct rule old, new;
    struct rule_bounds bounds; /* of the new one */
    bool paused;               /* the new one */
    utc_us began, now, edit, end;
    bool once;
};

static void highest_key_find(const struct made *m, char ret[KEY_MAX_BYTES])
{
    ret[0] = '\0';
    for (size_t i = 0; i < m->count; i++) {
        if (strcmp(m->firings[i].key, ret) > 0) {
            memcpy(ret, m->firings[i].key, KEY_MAX_BYTES);
        }
    }
}

/* What the database does: a firing from `begin` on whose key is there already makes nothing. */
static void used_drop(struct made *m, size_t begin)
{
    size_t kept = begin;
    for (size_t i = begin; i < m->count; i++) {
        bool used = false;
        for (size_t k = 0; k < begin && !used; k++) {
            used = strcmp(m->firings[k].key, m->firings[i].key) == 0;
        }
        if (!used) {
            m->firings[kept++] = m->firings[i];
        }
    }
    m->count = kept;
}

/* As the leader does it: the old version until the edit, the edit, then the new one. */
static void engine_edit(const struct story *y, struct plan_subject s,
                        struct local_time last_nominal, bool has_last, struct made *m)
{
    s.until = y->edit;
    struct plan_result r = plan_on(&s, y->edit, m);
    struct plan_edit e = {
        .rule = &y->new,
        .once = y->once,
        .paused = y->paused,
        .has_form = true,
        .form = s.form,
        .effective_from = y->edit,
        .last_fire_at = s.last_fire_at,
        .has_last = has_last || r.moved,
        .last_nominal = r.moved ? r.last.nominal : last_nominal,
        .starts_at = y->bounds.starts_at,
        .ends_at = y->bounds.ends_at,
        .has_next = r.next.found,
        .next_nominal = r.next.nominal,
        .shift_us = y->new.jitter_us - y->old.jitter_us,
    };
    highest_key_find(m, e.highest_key);
    struct plan_switch w;
    struct error err = {.text = ""};
    enum status status = plan_switch_find(&e, &w, &err);
    if (status == STATUS_OK && w.doubtful) {
        plan_candidates_fill(&e, &w, &candidates);
        for (size_t k = 0; k < candidates.count; k++) {
            for (size_t i = 0; i < m->count; i++) {
                candidates.taken[k] =
                    candidates.taken[k] || strcmp(candidates.keys[k], m->firings[i].key) == 0;
            }
        }
        status = plan_candidates_settle(&e, &candidates, &w, &err);
    }
    (void)snprintf(m->problem, sizeof m->problem, "%s", status == STATUS_OK ? "" : err.text);
    if (status != STATUS_OK || y->paused) {
        return;
    }
    struct plan_subject n = fixture_subject(&y->new, "2026-01-01T00:00:00Z");
    n.form = w.form;
    n.last_fire_at = w.shifted ? w.last_fire_at : s.last_fire_at;
    n.switched_at = w.switched_at;
    n.effective_from = y->edit;
    n.starts_at = y->bounds.starts_at;
    n.ends_at = y->bounds.ends_at;
    size_t before = m->count;
    (void)plan_on(&n, (utc_us){y->end.us - 1}, m);
    used_drop(m, before);
}

static void progress_make(const struct plan_subject *s, const struct plan_result *r,
                          const struct made *m, struct preview_progress *ret)
{
    *ret = (struct preview_progress){
        .has_form = true,
        .form = s->form,
        .last_fire_at = s->last_fire_at,
        .planned_to = r->moved ? s->last_fire_at : (utc_us){s->switched_at.us - 1},
        .has_last = r->moved,
        .last_nominal = r->last.nominal,
    };
    highest_key_find(m, ret->highest_key);
}

/* The list is the firings that were made from `begin` on. */
static void assert_list_is(const struct preview_list *l, const struct made *m, size_t begin,
                           const char *which)
{
    if (l->count != m->count - begin) {
        fail_msg("%s: %zu firings were foretold and %zu made", which, l->count, m->count - begin);
    }
    for (size_t i = 0; i < l->count; i++) {
        assert_string_equal(l->firings[i].key, m->firings[begin + i].key);
        assert_int_equal(l->firings[i].at.us, m->firings[begin + i].firing.at.us);
    }
}

static void pairs_check(struct preview_list *before, struct preview_list *after)
{
    assert_int_equal(preview_lists_pair(before, after), STATUS_OK);
    int64_t counts[4] = {0};
    int64_t expected[4] = {0};
    struct preview_walk walk = {.before = before, .after = after, .until = UTC_UNBOUNDED};
    struct preview_pair pair;
    utc_us last = UTC_NONE;
    while (preview_walk_next(&walk, &pair)) {
        counts[pair.change]++;
        const struct preview_firing *first = pair.before;
        if (first == NULL || (pair.after != NULL && pair.after->at.us < first->at.us)) {
            first = pair.after;
        }
        assert_true(first->at.us >= last.us);
        last = first->at;
    }
    for (size_t i = 0; i < before->count; i++) {
        enum preview_change change = PREVIEW_REMOVED;
        for (size_t j = 0; j < after->count; j++) {
            if (strcmp(before->firings[i].key, after->firings[j].key) == 0) {
                change = before->firings[i].at.us == after->firings[j].at.us ? PREVIEW_KEPT
                                                                             : PREVIEW_MOVED;
            }
        }
        expected[change]++;
    }
    expected[PREVIEW_ADDED] =
        (int64_t)after->count - expected[PREVIEW_KEPT] - expected[PREVIEW_MOVED];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(counts[i], expected[i]);
    }
}

static void story_compare(const struct story *y)
{
    struct plan_subject s = fixture_subject(&y->old, "2026-01-01T00:00:00Z");
    s.switched_at = y->began;
    with.count = without.count = 0;
    with.problem[0] = '\0';
    struct plan_result r = plan_on(&s, y->now, &without);
    size_t begin = without.count;
    memcpy(&with, &without, sizeof with);
    struct preview_progress progress;
    progress_make(&s, &r, &without, &progress);
    engine_edit(y, s, r.last.nominal, r.moved, &with);
    (void)plan_on(&s, (utc_us){y->end.us - 1}, &without);

    const struct preview_version base = {.rule = &y->old,
                                         .jitter_us = y->old.jitter_us,
                                         .bounds = {UTC_NONE, UTC_NONE},
                                         .begins = y->began};
    const struct preview_version next = {.rule = &y->new,
                                         .jitter_us = y->new.jitter_us,
                                         .bounds = y->bounds,
                                         .begins = y->edit,
                                         .once = y->once,
                                         .paused = y->paused,
                                         .withheld = y->paused};
    struct preview_course course = {.base = &base};
    struct preview_list before;
    struct preview_list after;
    assert_int_equal(preview_list_make(&course, &progress, y->now, y->end, &before), STATUS_OK);
    assert_list_is(&before, &without, begin, "without the edit");

    struct error why = {.text = ""};
    struct plan_edit e = preview_edit_of(&base, &next, &progress);
    enum status status = plan_switch_find(&e, &course.where, &why);
    bool in_doubt = status == STATUS_OK && course.where.doubtful;
    if (in_doubt) {
        plan_candidates_fill(&e, &course.where, &candidates);
        for (size_t k = 0; k < candidates.count; k++) { /* the occurrences that are there already */
            for (size_t i = 0; i < begin; i++) {
                candidates.taken[k] =
                    candidates.taken[k] || strcmp(candidates.keys[k], without.firings[i].key) == 0;
            }
        }
        preview_candidates_mark(&base, &next, &progress, &candidates);
        status = plan_candidates_settle(&e, &candidates, &course.where, &why);
    }
    assert_string_equal(status == STATUS_OK ? "" : why.text, with.problem);
    if (status == STATUS_OK) {
        course.next = &next;
        course.used = in_doubt ? &candidates : NULL;
        assert_int_equal(preview_list_make(&course, &progress, y->now, y->end, &after), STATUS_OK);
        assert_list_is(&after, &with, begin, "with the edit");
        pairs_check(&before, &after);
        preview_list_free(&after);
    }
    preview_list_free(&before);
}

static void test_foretold_is_what_the_planner_makes_of_an_edit(void **state)
{
    (void)state;
    static const char *const zones[] = {"Europe/Berlin",  "America/New_York",    "UTC",
                                        "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"};
    static const char *const around[] = {"2026-10-25T01:00:00Z", "2026-11-01T06:00:00Z",
                                         "2026-10-28T12:00:00Z"};
    for (int i = 0; i < CASES; i++) {
        struct story y;
        const char *zone = zones[fixture_random_in(0, 5)];
        y.old = rule_random(zone);
        if (fixture_random_in(0, 2) == 0) {
            zone = zones[fixture_random_in(0, 5)];
        }
        y.new = rule_random(zone);
        y.once = y.new.kind == RULE_ONCE;
        y.paused = fixture_random_in(0, 19) == 0;
        y.edit.us = fixture_instant(around[fixture_random_in(0, 2)]).us +
                    fixture_random_in(-3 * 86400, 3 * 86400) * INT64_C(1000000);
        y.now.us = y.edit.us - 1; /* at once, or announced */
        if (fixture_random_in(0, 2) == 0) {
            y.now.us -= fixture_random_in(1, 5 * 86400) * INT64_C(1000000);
        }
        y.began.us = y.now.us - fixture_random_in(0, 72) * HOUR_US;
        y.end.us = y.edit.us + 12 * DAY_US;
        y.bounds = (struct rule_bounds){UTC_NONE, UTC_NONE};
        if (fixture_random_in(0, 9) == 0) {
            y.bounds.starts_at.us = y.edit.us + fixture_random_in(-40, 90) * HOUR_US;
        }
        if (fixture_random_in(0, 9) == 0) {
            y.bounds.ends_at.us = y.edit.us + fixture_random_in(100, 200) * HOUR_US;
        }
        story_compare(&y);
    }
}

static void test_date_whose_new_time_is_past_is_told_as_due_at_once(void **state)
{
    (void)state;
    struct story y = {.old = fixture_rule("cron", "0 18 * * *", "UTC", "2030-01-01T00:00:00Z"),
                      .new = fixture_rule("cron", "0 6 * * *", "UTC", "2030-01-01T00:00:00Z"),
                      .bounds = {UTC_NONE, UTC_NONE},
                      .began = fixture_instant("2030-04-01T00:00:00Z"),
                      .now = fixture_instant("2030-04-12T12:00:00Z"),
                      .edit = {fixture_instant("2030-04-12T12:00:00Z").us + 1},
                      .end = fixture_instant("2030-04-15T00:00:00Z")};
    story_compare(&y);
    assert_string_equal(with.firings[with.count - 3].key, "2030-04-12");
    assert_int_equal(with.firings[with.count - 3].firing.at.us,
                     fixture_instant("2030-04-12T06:00:00Z").us);
}

/* Apia's Monday begins on the Sunday of New York: 26 October has fired when 25 October is to come.
 */
static void test_key_that_is_used_already_is_not_told_again(void **state)
{
    (void)state;
    struct story y = {
        .old = fixture_rule("cron", "30 0 * * MON", "Pacific/Apia", "2030-01-01T00:00:00Z"),
        .new = fixture_rule("cron", "0 18 * * *", "America/New_York", "2030-01-01T00:00:00Z"),
        .bounds = {UTC_NONE, UTC_NONE},
        .began = fixture_instant("2026-10-20T00:00:00Z"),
        .now = fixture_instant("2026-10-25T00:00:00Z"),
        .edit = fixture_instant("2026-10-25T12:00:00Z"),
        .end = fixture_instant("2026-10-29T00:00:00Z")};
    story_compare(&y);
    static const char *const keys[] = {"2026-10-26", "2026-10-25", "2026-10-27", "2026-10-28"};
    assert_int_equal(with.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(with.firings[i].key, keys[i]);
    }
}

/* Its edit was taken in behind a firing to come, whose key was taken. */
static void test_list_begins_where_the_version_in_force_does(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "0 6 5 * *", "UTC", "2030-01-01T00:00:00Z");
    const struct preview_version base = {.rule = &r,
                                         .bounds = {UTC_NONE, UTC_NONE},
                                         .begins = fixture_instant("2030-01-01T00:00:00Z")};
    const struct preview_progress progress = {.planned_to = fixture_instant("2030-02-05T06:00:00Z"),
                                              .last_fire_at = UTC_NONE};
    const struct preview_course course = {.base = &base};
    struct preview_list l;
    utc_us until = {base.begins.us + 90 * DAY_US};
    assert_int_equal(preview_list_make(&course, &progress, base.begins, until, &l), STATUS_OK);
    assert_int_equal(l.count, 1);
    assert_string_equal(l.firings[0].key, "2030-03-05");
    preview_list_free(&l);
}

/* A firing each second for 90 days would be millions: the list says how far it goes. */
static void test_list_that_would_be_too_long_is_cut_and_says_where(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "* * * * * *", "UTC", "2030-01-01T00:00:00Z");
    const struct preview_version base = {.rule = &r,
                                         .bounds = {UTC_NONE, UTC_NONE},
                                         .begins = fixture_instant("2030-01-01T00:00:00Z")};
    const struct preview_progress progress = {.planned_to = base.begins, .last_fire_at = UTC_NONE};
    const struct preview_course course = {.base = &base};
    struct preview_list l;
    utc_us until = {base.begins.us + 90 * DAY_US};
    assert_int_equal(preview_list_make(&course, &progress, base.begins, until, &l), STATUS_OK);
    assert_int_equal(l.count, PREVIEW_FIRINGS_MAX);
    assert_int_equal(l.whole_to.us - base.begins.us,
                     ((int64_t)PREVIEW_FIRINGS_MAX + 1) * INT64_C(1000000));
    preview_list_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_date_whose_new_time_is_past_is_told_as_due_at_once),
        cmocka_unit_test(test_foretold_is_what_the_planner_makes_of_an_edit),
        cmocka_unit_test(test_key_that_is_used_already_is_not_told_again),
        cmocka_unit_test(test_list_begins_where_the_version_in_force_does),
        cmocka_unit_test(test_list_that_would_be_too_long_is_cut_and_says_where),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
