/* Who may take part in the election: an identity in a file, and access lists on the nodes, on a
 * real ensemble. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture_coord.h"
#include "fixture_database.h"
#include "fixture_proxy.h"
#include "log.h"

#define SOON_MS 15000
#define UP_MS   15000

static const char ours[] = "reports:right-hush";
static char digest_file[64];

static void digest_write(const char *digest, mode_t mode)
{
    int fd = open(digest_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, digest, strlen(digest)), (ssize_t)strlen(digest));
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static int group_setup(void **state)
{
    (void)state;
    (void)test_environment("RS_ZK");
    log_open("test_coord_access", LOG_LEVEL_WARN);
    (void)snprintf(digest_file, sizeof digest_file, "/tmp/rs-test-digest-%ld", (long)getpid());
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    (void)unlink(digest_file);
    return 0;
}

/* A member with the right identity, in line. */
static void join_and_enroll(struct member *m, const char *root, const char *servers)
{
    digest_write(ours, 0600);
    member_try(m, root, servers, digest_file);
    assert_true(expect_event(m, COORD_SESSION_UP, UP_MS));
    assert_int_equal(coord_enroll(m->coord, m->scope, m->last.session, 1), STATUS_OK);
    assert_true(expect_event(m, COORD_ENROLLED, SOON_MS));
}

/* Attempts fail until one fails for that reason: those before may have seen an older file. */
static void expect_no_session(struct member *m, const char *words, const char *more_words)
{
    instant end = instant_add_ms(clock_now(), UP_MS);
    do {
        assert_true(expect_event(m, COORD_SESSION_LOST, UP_MS));
        assert_null(strstr(m->last.text, "hush"));
        if (strstr(m->last.text, words) != NULL && strstr(m->last.text, more_words) != NULL) {
            return;
        }
    } while (instant_before(clock_now(), end));
    fail_msg("\"%s\" does not say \"%s\" and \"%s\"", m->last.text, words, more_words);
}

static void test_members_with_one_identity_elect_and_hand_over(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct member b;
    test_root(root);
    join_and_enroll(&a, root, NULL);
    assert_true(expect_rank(&a, 0, SOON_MS));
    join_and_enroll(&b, root, NULL);
    assert_true(expect_rank(&b, 1, SOON_MS));
    assert_int_equal(coord_withdraw(a.coord, a.scope, 1), STATUS_OK);
    assert_true(expect_event(&a, COORD_WITHDRAWN, SOON_MS));
    assert_true(expect_rank(&b, 0, SOON_MS));
    member_leave(&a);
    member_leave(&b);
}

static void test_outsider_reads_but_changes_nothing(void **state)
{
    (void)state;
    char root[64];
    char parent[128];
    char path[256];
    struct member a;
    test_root(root);
    join_and_enroll(&a, root, NULL);
    (void)snprintf(parent, sizeof parent, "%s/scopes/main/candidates", root);
    struct operator_link *outsider = operator_connect();
    assert_int_equal(operator_count(outsider, parent), 1);
    (void)snprintf(path, sizeof path, "%s/%.100s", parent, a.last.text);
    assert_int_equal(operator_delete(outsider, path), ZK_FORBIDDEN);
    assert_int_equal(operator_write(outsider, path), ZK_FORBIDDEN);
    (void)snprintf(path, sizeof path, "%s/00000000-0000-4000-8000-000000000000-n-0000000000",
                   parent);
    assert_int_equal(operator_create(outsider, path), ZK_FORBIDDEN);
    static const char *const nodes[] = {
        "", "/members", "/scopes", "/scopes/main", "/ensemble-id", "/scopes/main/candidates"};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", root, nodes[i]);
        assert_false(operator_sees_open(outsider, path));
        assert_int_equal(operator_write(outsider, path), ZK_FORBIDDEN);
    }
    /* Another identity is an outsider, too. */
    operator_identify(outsider, "reports:other");
    (void)snprintf(path, sizeof path, "%s/scopes/main/candidates/x", root);
    assert_int_equal(operator_create(outsider, path), ZK_FORBIDDEN);
    operator_leave(outsider);
    member_leave(&a);
}

static void test_identity_outlives_a_reconnection(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct proxy *p = proxy_start(test_environment("RS_ZK"));
    test_root(root);
    join_and_enroll(&a, root, proxy_address(p));
    assert_true(expect_rank(&a, 0, SOON_MS));
    proxy_cut(p);
    assert_true(expect_event(&a, COORD_RESUMED, SOON_MS));
    assert_int_equal(a.last.session, 1);
    assert_int_equal(coord_withdraw(a.coord, a.scope, 1), STATUS_OK);
    assert_true(expect_event(&a, COORD_WITHDRAWN, SOON_MS));
    assert_int_equal(coord_enroll(a.coord, a.scope, a.last.session, 2), STATUS_OK);
    assert_true(expect_event(&a, COORD_ENROLLED, SOON_MS));
    member_leave(&a);
    proxy_stop(p);
}

static void test_wrong_identity_is_told_and_a_mended_file_is_taken(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct member b;
    test_root(root);
    join_and_enroll(&a, root, NULL);
    digest_write("reports:wrong-hush\n", 0600);
    member_try(&b, root, NULL, digest_file);
    expect_no_session(&b, "/members", "zookeeper_digest_file");
    expect_no_session(&b, "another identity", digest_file); /* it tries again */
    digest_write(ours, 0600);
    assert_true(expect_event(&b, COORD_SESSION_UP, UP_MS));
    member_leave(&a);
    member_leave(&b);
}

static void test_member_without_an_identity_is_told_what_to_set(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct member b;
    test_root(root);
    join_and_enroll(&a, root, NULL);
    member_try(&b, root, NULL, NULL);
    expect_no_session(&b, "set zookeeper_digest_file", root);
    member_leave(&a);
    member_leave(&b);
}

static void test_unfit_file_is_told_with_the_remedy(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    test_root(root);
    digest_write(ours, 0644);
    member_try(&a, root, NULL, digest_file);
    expect_no_session(&a, "chmod 600", digest_file);
    digest_write("no-colon-hush", 0600);
    expect_no_session(&a, "user:password", digest_file);
    (void)unlink(digest_file);
    expect_no_session(&a, "cannot be read", digest_file);
    digest_write(ours, 0600);
    assert_true(expect_event(&a, COORD_SESSION_UP, UP_MS));
    member_leave(&a);
}

static void test_open_tree_is_joined_by_members_with_and_without_identity(void **state)
{
    (void)state;
    char root[64];
    char path[256];
    struct member plain;
    struct member a;
    test_root(root);
    member_join(&plain, root, NULL);
    join_and_enroll(&a, root, NULL);
    assert_true(expect_rank(&a, 0, SOON_MS));
    assert_int_equal(coord_enroll(plain.coord, plain.scope, plain.last.session, 1), STATUS_OK);
    assert_true(expect_event(&plain, COORD_ENROLLED, SOON_MS));
    assert_true(expect_rank(&plain, 1, SOON_MS)); /* it may read the other's node */
    struct operator_link *outsider = operator_connect();
    assert_true(operator_sees_open(outsider, root));
    (void)snprintf(path, sizeof path, "%s/scopes/main/candidates", root);
    assert_int_equal(operator_count(outsider, path), 2);
    operator_leave(outsider);
    member_leave(&a);
    assert_true(expect_rank(&plain, 0, SOON_MS));
    member_leave(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_with_one_identity_elect_and_hand_over),
        cmocka_unit_test(test_outsider_reads_but_changes_nothing),
        cmocka_unit_test(test_identity_outlives_a_reconnection),
        cmocka_unit_test(test_wrong_identity_is_told_and_a_mended_file_is_taken),
        cmocka_unit_test(test_member_without_an_identity_is_told_what_to_set),
        cmocka_unit_test(test_unfit_file_is_told_with_the_remedy),
        cmocka_unit_test(test_open_tree_is_joined_by_members_with_and_without_identity),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
