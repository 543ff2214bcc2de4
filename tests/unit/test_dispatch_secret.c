/* Secret properties of Kafka clients: in files only, and never shown. No broker is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch.h"

static char path[64];

static void secret_write(const char *text, mode_t mode)
{
    (void)unlink(path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static int group_setup(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/test_dispatch_secret.%ld", (long)getpid());
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    return 0;
}

/* A publisher with one more property and one secret file; the words its refusal must have. */
static void check_refused(const char *property, const char *secret_file, const char *words)
{
    const char *properties[] = {property, NULL};
    const char *secret_files[] = {secret_file, NULL};
    struct publisher_options options = {.dispatch = {.brokers = "127.0.0.1:1",
                                                     .client_id = "test",
                                                     .properties = properties,
                                                     .secret_files = secret_files},
                                        .topic = "t",
                                        .window = 1,
                                        .message_timeout_ms = 1000};
    struct publisher *p = NULL;
    struct error err = {.text = ""};
    assert_int_equal(publisher_new(&options, &p, &err), STATUS_INVALID);
    assert_null(p);
    assert_null(strstr(err.text, "hush"));
    if (strstr(err.text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    }
}

static void test_secrets_among_the_properties_are_refused_with_the_remedy(void **state)
{
    (void)state;
    static const char *const properties[] = {
        "sasl.password=hush",    "sasl.oauthbearer.client.secret=hush", "ssl.key.pem=hush",
        "ssl.key.password=hush", "ssl.keystore.password=hush",
    };
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
        struct error err = {.text = ""};
        check_refused(properties[i], NULL, "kafka_secret_files");
        assert_int_equal(dispatch_property_check(properties[i], &err), STATUS_INVALID);
        assert_null(strstr(err.text, "hush"));
    }
}

static void test_item_names_a_secret_property_and_a_path(void **state)
{
    (void)state;
    static const struct {
        const char *item, *words;
    } cases[] = {
        {"sasl.password=hush", "absolute path"},
        {"sasl.password", "absolute path"},
        {"=/hush", "absolute path"},
        {"sasl.username=/etc/name", "kafka_properties"},
        {"sasl.pasword=/etc/name", "no secret property"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {.text = ""};
        assert_int_equal(dispatch_secret_file_check(cases[i].item, &err), STATUS_INVALID);
        assert_null(strstr(err.text, "hush"));
        if (strstr(err.text, cases[i].words) == NULL) {
            fail_msg("%s: \"%s\"", cases[i].item, err.text);
        }
        check_refused(NULL, cases[i].item, cases[i].words);
    }
    assert_int_equal(dispatch_secret_file_check("sasl.password=/a", NULL), STATUS_OK);
}

static void test_file_that_others_may_read_is_refused(void **state)
{
    (void)state;
    char item[96];
    struct error err = {.text = ""};
    (void)snprintf(item, sizeof item, "sasl.password=%s", path);
    secret_write("hush\n", 0640);
    check_refused(NULL, item, "chmod 600");
    assert_int_equal(dispatch_secret_file_around(item, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "chmod 600"));
    (void)unlink(path);
    check_refused(NULL, item, "cannot be read");
    assert_int_equal(dispatch_secret_file_around(item, &err), STATUS_INVALID);
    secret_write("hush\n", 0600);
    assert_int_equal(dispatch_secret_file_around(item, &err), STATUS_OK);
}

static void test_secret_that_the_library_does_not_take_is_not_shown(void **state)
{
    (void)state;
    char item[96];
    (void)snprintf(item, sizeof item, "ssl.key.pem=%s", path);
    secret_write("hush is no key\n", 0600);
    check_refused("security.protocol=SSL", item, "Kafka");
}

static void test_secret_from_a_file_makes_a_client(void **state)
{
    (void)state;
    char item[96];
    const char *properties[] = {"security.protocol=SASL_SSL", "sasl.mechanism=PLAIN",
                                "sasl.username=report", NULL};
    const char *secret_files[] = {item, NULL};
    struct publisher_options options = {.dispatch = {.brokers = "127.0.0.1:1",
                                                     .client_id = "test",
                                                     .properties = properties,
                                                     .secret_files = secret_files},
                                        .topic = "t",
                                        .window = 1,
                                        .message_timeout_ms = 1000};
    struct publisher *p = NULL;
    struct error err = {.text = ""};
    (void)snprintf(item, sizeof item, "sasl.password=%s", path);
    secret_write("hush\n", 0600);
    assert_int_equal(publisher_new(&options, &p, &err), STATUS_OK);
    publisher_free(p);
    /* Without it librdkafka itself refuses: so the file was read above. */
    secret_files[0] = NULL;
    assert_int_equal(publisher_new(&options, &p, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "sasl.password"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets_among_the_properties_are_refused_with_the_remedy),
        cmocka_unit_test(test_item_names_a_secret_property_and_a_path),
        cmocka_unit_test(test_file_that_others_may_read_is_refused),
        cmocka_unit_test(test_secret_that_the_library_does_not_take_is_not_shown),
        cmocka_unit_test(test_secret_from_a_file_makes_a_client),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
