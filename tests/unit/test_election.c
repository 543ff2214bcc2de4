/* The order of candidates, and what an ambiguous create came to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "election.h"

#define A "0a000000-0000-4000-8000-000000000000"
#define B "0b000000-0000-4000-8000-000000000000"
#define C "0c000000-0000-4000-8000-000000000000"

static void test_lowest_czxid_is_first_whatever_the_suffix_says(void **state)
{
    (void)state;
    /* The suffix overflowed: as text, and as a number, it sorts before. */
    const struct candidate list[] = {{A "-n--2147483648", 900, 7}, {B "-n-2147483647", 800, 8}};
    assert_int_equal(election_judge(list, 2, B "-n-2147483647", 8).verdict, ELECTION_FIRST);
    struct election e = election_judge(list, 2, A "-n--2147483648", 7);
    assert_int_equal(e.verdict, ELECTION_BEHIND);
    assert_int_equal(e.predecessor, 1);
    assert_int_equal(e.ahead, 1);
}

static void test_predecessor_is_the_one_directly_ahead(void **state)
{
    (void)state;
    const struct candidate list[] = {
        {C "-n-0000000003", 30, 3}, {A "-n-0000000001", 10, 1}, {B "-n-0000000002", 20, 2}};
    struct election e = election_judge(list, 3, C "-n-0000000003", 3);
    assert_int_equal(e.verdict, ELECTION_BEHIND);
    assert_int_equal(e.predecessor, 2);
    assert_int_equal(e.ahead, 2);
}

static void test_middle_candidate_stays_behind_when_the_one_between_dies(void **state)
{
    (void)state;
    const struct candidate list[] = {{A "-n-0000000001", 10, 1}, {C "-n-0000000003", 30, 3}};
    struct election e = election_judge(list, 2, C "-n-0000000003", 3);
    assert_int_equal(e.verdict, ELECTION_BEHIND);
    assert_int_equal(e.predecessor, 0);
}

static void test_own_node_is_missing_when_not_listed(void **state)
{
    (void)state;
    const struct candidate list[] = {{A "-n-0000000001", 10, 1}};
    assert_int_equal(election_judge(list, 1, B "-n-0000000002", 2).verdict, ELECTION_MISSING);
    assert_int_equal(election_judge(list, 0, B "-n-0000000002", 2).verdict, ELECTION_MISSING);
}

static void test_own_name_of_another_session_is_not_the_own_node(void **state)
{
    (void)state;
    const struct candidate list[] = {{A "-n-0000000001", 10, 99}};
    assert_int_equal(election_judge(list, 1, A "-n-0000000001", 1).verdict, ELECTION_MISSING);
}

static void test_other_node_of_the_same_session_is_an_orphan(void **state)
{
    (void)state;
    const struct candidate left = {A "-n-0000000001", 10, 5};
    assert_true(election_is_orphan(&left, B "-n-0000000002", 5));
    assert_false(election_is_orphan(&left, A "-n-0000000001", 5));
    assert_false(election_is_orphan(&left, B "-n-0000000002", 6));
}

static void test_ambiguous_create_that_happened_is_found_by_its_guid(void **state)
{
    (void)state;
    size_t own = 77;
    const struct candidate list[] = {{A "-n-0000000001", 10, 1}, {B "-n-0000000002", 20, 5}};
    assert_int_equal(election_resolve(list, 2, B, 5, &own), ELECTION_CREATED);
    assert_int_equal(own, 1);
}

static void test_ambiguous_create_that_did_not_happen_leaves_the_output_alone(void **state)
{
    (void)state;
    size_t own = 77;
    const struct candidate list[] = {{A "-n-0000000001", 10, 1}};
    assert_int_equal(election_resolve(list, 1, B, 5, &own), ELECTION_NOT_CREATED);
    assert_int_equal(own, 77);
}

static void test_node_of_a_dying_session_is_never_adopted(void **state)
{
    (void)state;
    size_t own = 77;
    const struct candidate list[] = {{B "-n-0000000001", 10, 4}, {B "-n-0000000002", 20, 5}};
    assert_int_equal(election_resolve(list, 2, B, 5, &own), ELECTION_FOREIGN);
    assert_int_equal(own, 77);
}

static void
test_of_two_nodes_of_one_attempt_the_older_is_kept_and_the_other_is_an_orphan(void **state)
{
    (void)state;
    size_t own = 77;
    const struct candidate list[] = {{B "-n-0000000009", 90, 5}, {B "-n-0000000002", 20, 5}};
    assert_int_equal(election_resolve(list, 2, B, 5, &own), ELECTION_CREATED);
    assert_int_equal(own, 1);
    assert_true(election_is_orphan(&list[0], list[own].name, 5));
}

static void test_what_is_not_a_candidate_is_not_taken_for_one(void **state)
{
    (void)state;
    assert_true(candidate_name_is_valid(A "-n-0000000001"));
    assert_true(candidate_name_is_valid(A "-n--2147483648"));
    assert_false(candidate_name_is_valid(A "-n-"));
    assert_false(candidate_name_is_valid(A));
    assert_false(candidate_name_is_valid("note-to-self"));
    assert_false(candidate_name_is_valid(""));
    assert_false(candidate_has_guid(A "-n-0000000001", B));
    assert_false(candidate_has_guid(A "-n-0000000001", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lowest_czxid_is_first_whatever_the_suffix_says),
        cmocka_unit_test(test_predecessor_is_the_one_directly_ahead),
        cmocka_unit_test(test_middle_candidate_stays_behind_when_the_one_between_dies),
        cmocka_unit_test(test_own_node_is_missing_when_not_listed),
        cmocka_unit_test(test_own_name_of_another_session_is_not_the_own_node),
        cmocka_unit_test(test_other_node_of_the_same_session_is_an_orphan),
        cmocka_unit_test(test_ambiguous_create_that_happened_is_found_by_its_guid),
        cmocka_unit_test(test_ambiguous_create_that_did_not_happen_leaves_the_output_alone),
        cmocka_unit_test(test_node_of_a_dying_session_is_never_adopted),
        cmocka_unit_test(
            test_of_two_nodes_of_one_attempt_the_older_is_kept_and_the_other_is_an_orphan),
        cmocka_unit_test(test_what_is_not_a_candidate_is_not_taken_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
