#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "token_memory.h"

static void test_token_is_remembered_while_thousands_of_others_come(void **state)
{
    (void)state;
    char token[UUID_TEXT_MAX];
    struct token_memory *m = calloc(1, sizeof *m);
    assert_non_null(m);
    assert_false(token_memory_has(m, ""));
    token_memory_add(m, "first");
    for (unsigned i = 1; i < TOKEN_MEMORY_MAX; i++) {
        (void)snprintf(token, sizeof token, "%u", i);
        token_memory_add(m, token);
    }
    assert_true(token_memory_has(m, "first"));
    assert_true(token_memory_has(m, token));
    /* Within its bound: the oldest goes. */
    token_memory_add(m, "last");
    assert_false(token_memory_has(m, "first"));
    assert_true(token_memory_has(m, "1"));
    assert_true(token_memory_has(m, "last"));
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_is_remembered_while_thousands_of_others_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
