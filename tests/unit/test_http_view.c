/* What the scheduler's probes and page say about a state that no real process could be brought into
 * at will. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "http_view.h"
#include "loop_name.h"

static struct scope_snapshot scope(const char *name, enum lifecycle_state state, bool database)
{
    struct scope_snapshot s = {.state = state, .has_database = database, .generation = 42};
    (void)snprintf(s.name, sizeof s.name, "%s", name);
    return s;
}

static struct view *view_of(struct scope_snapshot first, struct scope_snapshot second)
{
    struct view *v = calloc(1, sizeof *v);
    assert_non_null(v);
    v->now = (instant){INT64_C(3600) * 1000000000};
    (void)snprintf(v->member, sizeof v->member, "one");
    v->scopes[0] = first;
    v->scopes[1] = second;
    v->count = 2;
    view_loop_add(v, &(struct view_turn){LOOP_MAIN, "", v->now, 1000});
    return v;
}

static json_t *parsed(char *text)
{
    json_error_t trouble;
    assert_non_null(text);
    json_t *object = json_loads(text, 0, &trouble);
    if (object == NULL) {
        fail_msg("%s: %s", trouble.text, text);
    }
    free(text);
    return object;
}

static void test_every_state_but_active_and_a_connected_follower_is_unready(void **state)
{
    (void)state;
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        for (int database = 0; database < 2; database++) {
            enum lifecycle_state s = (enum lifecycle_state)i;
            struct scope_snapshot scope_now = scope("main", s, database == 1);
            const char *why = NULL;
            bool active = s == LIFECYCLE_ACTIVE;
            bool follows = s == LIFECYCLE_FOLLOWING && database == 1;
            assert_int_equal(view_scope_is_ready(&scope_now, VIEW_READY_ANY, &why),
                             active || follows);
            assert_int_equal(why[0] == '\0', active || follows);
            assert_int_equal(view_scope_is_ready(&scope_now, VIEW_READY_ACTIVE, &why), active);
            assert_int_equal(why[0] == '\0', active);
        }
    }
}

static void test_follower_without_zookeeper_is_unready_and_says_so(void **state)
{
    (void)state;
    const char *why = NULL;
    struct scope_snapshot follower = scope("main", LIFECYCLE_FOLLOWING, true);
    follower.suspended = true;
    assert_false(view_scope_is_ready(&follower, VIEW_READY_ANY, &why));
    assert_non_null(strstr(why, "ZooKeeper"));
}

static void test_one_unready_scope_makes_the_replica_unready(void **state)
{
    bool ready = true;
    (void)state;
    struct view *v =
        view_of(scope("main", LIFECYCLE_ACTIVE, true), scope("other", LIFECYCLE_HELD, true));
    json_t *object = parsed(view_readyz_json(v, NULL, &ready));
    assert_false(ready);
    assert_false(json_is_true(json_object_get(object, "ready")));
    assert_int_equal(json_array_size(json_object_get(object, "scopes")), 2);
    json_decref(object);
    object = parsed(view_readyz_json(v, "main", &ready));
    assert_true(ready);
    assert_int_equal(json_array_size(json_object_get(object, "scopes")), 1);
    json_decref(object);
    free(v);
}

static void test_live_is_every_loop_and_the_late_one_is_named(void **state)
{
    (void)state;
    struct view *v =
        view_of(scope("main", LIFECYCLE_ACTIVE, true), scope("other", LIFECYCLE_FOLLOWING, true));
    assert_true(view_is_live(v));
    instant late = instant_add_ms(v->now, -30000);
    instant meanwhile = instant_add_ms(v->now, 5);
    view_loop_add(v, &(struct view_turn){LOOP_SCOPE, "main", late, 30000});
    view_loop_add(v, &(struct view_turn){LOOP_SCOPE, "other", meanwhile, 30000});
    view_loop_add(v, &(struct view_turn){LOOP_REQUESTS, "", {0}, 30000}); /* starting */
    assert_false(view_is_live(v));
    json_t *object = parsed(view_livez_json(v));
    json_t *loops = json_object_get(object, "loops");
    for (size_t i = 0; i < json_array_size(loops); i++) {
        json_t *loop = json_array_get(loops, i);
        const char *of = json_string_value(json_object_get(loop, "scope"));
        assert_int_equal(json_is_true(json_object_get(loop, "turns")), strcmp(of, "main") != 0);
    }
    json_decref(object);
    free(v);
}

static void test_scope_that_is_not_ours_is_not_found(void **state)
{
    (void)state;
    struct view *v =
        view_of(scope("main", LIFECYCLE_ACTIVE, true), scope("other", LIFECYCLE_FOLLOWING, true));
    assert_int_equal(view_find(v, "other"), 1);
    assert_true(view_find(v, "mai") == SIZE_MAX);
    free(v);
}

static void test_page_escapes_every_text_and_shows_each_scope(void **state)
{
    size_t size = 0;
    (void)state;
    struct view *v =
        view_of(scope("a\"b<i>", LIFECYCLE_FOLLOWING, false), scope("led", LIFECYCLE_ACTIVE, true));
    (void)snprintf(v->member, sizeof v->member, "<one>");
    (void)snprintf(v->scopes[0].problem, sizeof v->scopes[0].problem,
                   "<script>alert('x' & \"y\")</script>");
    v->leaders[0] = (struct request_leader){
        .scope = "a\"b<i>", .incarnation = 3, .generation = 77, .leads = true};
    (void)snprintf(v->leaders[0].member, sizeof v->leaders[0].member, "<boss>");
    v->leader_count = 1;
    v->leaders_at = instant_add_ms(v->now, -60000);
    v->scopes[1].has_relay = true;
    v->scopes[1].relay.published = 12345;
    v->scopes[1].since = instant_add_ms(v->now, -3 * 60 * 1000);
    char *page = view_page(v, "1.2.3<", &size);
    assert_non_null(page);
    assert_int_equal(strlen(page), size);
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<i>"));
    assert_null(strstr(page, "<one>"));
    assert_non_null(
        strstr(page, "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;"));
    assert_non_null(strstr(page, "<td data-l=\"scope\">a&quot;b&lt;i&gt;</td>"));
    assert_non_null(strstr(page, "report-scheduler 1.2.3&lt;"));
    assert_non_null(strstr(page, ">3 min</td>"));
    assert_non_null(strstr(page, "12345"));
    assert_non_null(strstr(page, "<td data-l=\"leader\">&lt;boss&gt;</td>"
                                 "<td class=\"n\" data-l=\"generation\">3:77</td>"));
    assert_non_null(strstr(page, "as the database named them 1 min ago"));
    assert_non_null(strstr(page, "<td data-l=\"leader\">&lt;one&gt;</td>" /* led here */
                                 "<td class=\"n\" data-l=\"generation\">0:42</td>"));
    assert_null(strstr(page, "http://")); /* nothing from elsewhere */
    free(page);
    free(v);
}

/* The page of a view, which is freed. */
static char *page_of(struct view *v)
{
    size_t size = 0;
    char *page = view_page(v, "1.2.3", &size);
    assert_non_null(page);
    free(v);
    return page;
}

static void assert_shown(const char *page, const char *text, bool shown)
{
    if ((strstr(page, text) != NULL) != shown) {
        fail_msg("\"%s\" is %s in %s", text, shown ? "not" : "there", page);
    }
}

static struct view *healthy_view(void)
{
    struct view *v =
        view_of(scope("main", LIFECYCLE_ACTIVE, true), scope("other", LIFECYCLE_FOLLOWING, true));
    v->leaders[0] = (struct request_leader){.scope = "other", .member = "two", .leads = true};
    v->leader_count = 1;
    v->leaders_at = v->now;
    v->facts[0] = (struct view_facts){.known = true, .queued = 4};
    v->facts[1] = (struct view_facts){.known = true};
    return v;
}

static void test_page_of_a_healthy_replica_says_first_that_nothing_is_wrong(void **state)
{
    (void)state;
    char *page = page_of(healthy_view());
    assert_shown(page, "Nothing is known to be wrong", true);
    assert_shown(page, "class=\"wrong\"", false);
    assert_shown(page, "ACTIVE: leads", true);
    assert_shown(page, "FOLLOWING: can take over", true);
    assert_shown(page, "<details>", true); /* the loops, folded */
    assert_shown(page, "name=\"viewport\"", true);
    assert_shown(page, "prefers-color-scheme: dark", true);
    free(page);
}

static void test_page_says_first_what_is_wrong(void **state)
{
    (void)state;
    struct view *v = healthy_view();
    v->scopes[1].state = LIFECYCLE_HELD;
    (void)snprintf(v->scopes[1].problem, sizeof v->scopes[1].problem, "a hold stands <here>");
    v->leaders[0].leads = false;
    v->facts[0] = (struct view_facts){
        .known = true, .due_lag_s = 125, .problems = 2, .queue_holds = 1, .outbox_oldest_s = 90};
    v->facts[1] = (struct view_facts){.known = true, .holds = 1};
    view_loop_add(v,
                  &(struct view_turn){LOOP_SCOPE, "main", instant_add_ms(v->now, -45000), 30000});
    v->scopes[2] = scope("led", LIFECYCLE_ACTIVE, true);
    (void)snprintf(v->scopes[2].problem, sizeof v->scopes[2].problem, "planning: no such function");
    v->facts[2] = (struct view_facts){.known = true, .queue_holds = 1};
    v->count = 3;
    char *page = page_of(v);
    assert_shown(page, "Nothing is known to be wrong", false);
    assert_shown(page, "nobody leads it", false); /* the hold is why */
    const char *const wrong[] = {
        "<li>main: firings have been due for 2 min 5 s and are not planned</li>",
        "<li>main: schedules with a problem: 2</li>",
        "<li>queues that are held: 1</li>",
        "<li>led: planning: no such function</li>",
        "<li>main: messages have waited for Kafka for 1 min 30 s</li>",
        "<li>other: HELD on this replica: a hold stands &lt;here&gt;</li>",
        "<li>other: holds that stand: 1</li>",
        "<li>loop scope of main has not turned for 45 s</li>",
        "<details open>"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_shown(page, wrong[i], true);
    }
    free(page);
}

static void test_page_lists_the_problems_that_status_lists_with_their_remedies(void **state)
{
    (void)state;
    struct view *v = healthy_view();
    v->facts[0].problems = 2;
    v->problems_known = true;
    v->problems.count = 1;
    v->problems.rows[0] = (struct problem){.kind = "schedule",
                                           .subject = "sales",
                                           .text = "calendar \"<x>\" is empty",
                                           .remedy = "mend the row"};
    char *page = page_of(v);
    assert_shown(page, "Nothing is known to be wrong", false);
    assert_shown(page,
                 "<li>schedule sales: calendar &quot;&lt;x&gt;&quot; is empty<br>"
                 "<span class=\"note\">mend the row</span></li>",
                 true);
    assert_shown(page, "<li>main: schedules with a problem", false); /* once */
    assert_shown(page, "and more", false);
    free(page);
    v = healthy_view();
    v->problems_known = true;
    v->problems.count = PROBLEMS_MAX;
    v->problems.more = true;
    page = page_of(v);
    assert_shown(page, "<li>and more: <code>reportctl status</code></li>", true);
    free(page);
    v = healthy_view();
    v->problems_known = true;
    page = page_of(v);
    assert_shown(page, "Nothing is known to be wrong", true);
    free(page);
}

/* What is not known is not told as if it were nothing. */
static void test_page_without_figures_of_the_database_says_so(void **state)
{
    (void)state;
    struct view *v = healthy_view();
    v->facts[0].known = false;
    v->leaders[0].leads = false;
    char *page = page_of(v);
    assert_shown(page, "Nothing is known to be wrong", false);
    assert_shown(page, "<li>main: the database tells nothing of it</li>", true);
    assert_shown(page, "<li>other: nobody leads it</li>", true);
    free(page);
    v = healthy_view();
    v->facts[0].known = v->facts[1].known = false;
    page = page_of(v);
    assert_shown(page, "<li>the database has not been read of late: what waits is not known</li>",
                 true);
    assert_shown(page, "tells nothing", false);
    free(page);
}

/* A server's error text may be in any encoding. */
static void test_problem_that_is_not_utf8_does_not_spoil_the_answer(void **state)
{
    bool ready = false;
    (void)state;
    struct view *v =
        view_of(scope("main", LIFECYCLE_ACTIVE, true), scope("other", LIFECYCLE_ACTIVE, true));
    (void)snprintf(v->scopes[0].problem, sizeof v->scopes[0].problem, "caf\xe9");
    json_t *object = parsed(view_readyz_json(v, NULL, &ready));
    assert_true(ready);
    assert_int_equal(json_array_size(json_object_get(object, "scopes")), 2);
    json_decref(object);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_state_but_active_and_a_connected_follower_is_unready),
        cmocka_unit_test(test_follower_without_zookeeper_is_unready_and_says_so),
        cmocka_unit_test(test_one_unready_scope_makes_the_replica_unready),
        cmocka_unit_test(test_live_is_every_loop_and_the_late_one_is_named),
        cmocka_unit_test(test_scope_that_is_not_ours_is_not_found),
        cmocka_unit_test(test_page_escapes_every_text_and_shows_each_scope),
        cmocka_unit_test(test_page_of_a_healthy_replica_says_first_that_nothing_is_wrong),
        cmocka_unit_test(test_page_says_first_what_is_wrong),
        cmocka_unit_test(test_page_lists_the_problems_that_status_lists_with_their_remedies),
        cmocka_unit_test(test_page_without_figures_of_the_database_says_so),
        cmocka_unit_test(test_problem_that_is_not_utf8_does_not_spoil_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
