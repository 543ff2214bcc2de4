#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digest.h"

/* FIPS 180-2, appendix B, and the well-known digest of nothing. */
static const char *const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
static const char *const ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char *const MILLION_A =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

static void test_known_answers_come_out(void **state)
{
    (void)state;
    char text[DIGEST_TEXT_MAX];
    assert_int_equal(digest_memory("", 0, text), STATUS_OK);
    assert_string_equal(text, EMPTY);
    assert_int_equal(digest_memory(NULL, 0, text), STATUS_OK);
    assert_string_equal(text, EMPTY);
    assert_int_equal(digest_memory("abc", 3, text), STATUS_OK);
    assert_string_equal(text, ABC);
}

static void test_a_stream_in_pieces_equals_the_whole_and_starts_afresh(void **state)
{
    (void)state;
    char text[DIGEST_TEXT_MAX];
    char piece[997];
    memset(piece, 'a', sizeof piece);
    struct digest *d = digest_new();
    assert_non_null(d);
    size_t left = 1000000;
    while (left > 0) {
        size_t n = left < sizeof piece ? left : sizeof piece;
        assert_int_equal(digest_add(d, piece, n), STATUS_OK);
        left -= n;
    }
    assert_int_equal(digest_finish(d, text), STATUS_OK);
    assert_string_equal(text, MILLION_A);
    assert_int_equal(digest_add(d, "abc", 3), STATUS_OK);
    assert_int_equal(digest_finish(d, text), STATUS_OK);
    assert_string_equal(text, ABC);
    digest_free(d);
}

static void test_a_file_larger_than_a_block_is_read_whole(void **state)
{
    (void)state;
    char path[] = "/tmp/test_digest.XXXXXX";
    char text[DIGEST_TEXT_MAX];
    char piece[1000];
    memset(piece, 'a', sizeof piece);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(write(fd, piece, sizeof piece), sizeof piece);
    }
    assert_int_equal(close(fd), 0);
    assert_int_equal(digest_file(path, text, NULL), STATUS_OK);
    assert_string_equal(text, MILLION_A);
    assert_int_equal(unlink(path), 0);
}

static void test_a_file_that_cannot_be_read_is_named_and_leaves_the_output(void **state)
{
    (void)state;
    char text[DIGEST_TEXT_MAX] = "untouched";
    struct error err = {0};
    assert_int_equal(digest_file("/nonexistent/file", text, &err), STATUS_NOT_FOUND);
    assert_string_equal(err.text, "/nonexistent/file: cannot be read: No such file or directory");
    assert_int_equal(digest_file("/tmp", text, &err), STATUS_NOT_FOUND);
    assert_string_equal(err.text, "/tmp: cannot be read: Is a directory");
    assert_string_equal(text, "untouched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers_come_out),
        cmocka_unit_test(test_a_stream_in_pieces_equals_the_whole_and_starts_afresh),
        cmocka_unit_test(test_a_file_larger_than_a_block_is_read_whole),
        cmocka_unit_test(test_a_file_that_cannot_be_read_is_named_and_leaves_the_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
