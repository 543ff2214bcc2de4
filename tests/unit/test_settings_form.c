/* Forms of values: what people get wrong, and the text they read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "dispatch.h"
#include "settings_form.h"
#include "store.h"

typedef enum status form(const char *value, struct error *err);

static void assert_taken(form *f, const char *value)
{
    struct error err = {.text = ""};
    enum status s = f(value, &err);
    if (s != STATUS_OK) {
        fail_msg("\"%s\" was refused: %s", value, err.text);
    }
}

static void assert_refused(form *f, const char *value, const char *part)
{
    struct error err = {.text = ""};
    assert_int_equal(f(value, &err), STATUS_INVALID);
    if (strstr(err.text, part) == NULL) {
        fail_msg("\"%s\": \"%s\" does not say \"%s\"", value, err.text, part);
    }
}

static void test_lists_of_zookeeper_servers_are_host_and_port(void **state)
{
    (void)state;
    assert_taken(form_zookeeper_servers, "zk1:2181");
    assert_taken(form_zookeeper_servers, "zk1.example.org:2181, 10.0.0.2:2182");
    assert_taken(form_zookeeper_servers, "::1:2181,fe80::1%eth0:2181");
    assert_refused(form_zookeeper_servers, "zk1", "\"zk1\" is no host:port; write \"zk1:2181");
    assert_refused(form_zookeeper_servers, "zk1:0", "no host:port");
    assert_refused(form_zookeeper_servers, "zk1:65536", "no host:port");
    assert_refused(form_zookeeper_servers, "zk1:21 81", "no host:port");
    assert_refused(form_zookeeper_servers, "zk 1:2181", "no host:port");
    assert_refused(form_zookeeper_servers, "zk1:2181,", "has an empty item");
    assert_refused(form_zookeeper_servers, "zk1:2181;zk2:2181", "no host:port");
    assert_refused(form_zookeeper_servers, "zk1:2181/reports", "the path as zookeeper_root");
    assert_refused(form_zookeeper_servers, "[::1]:2181", "write IPv6 as ::1:2181");
}

static void test_lists_of_brokers_are_host_and_port_without_a_protocol(void **state)
{
    (void)state;
    assert_taken(form_kafka_brokers, "kafka1:9092,kafka2:9092");
    assert_taken(form_kafka_brokers, "[::1]:9092");
    assert_refused(form_kafka_brokers, "::1:9092", "no host:port");
    assert_refused(form_kafka_brokers, "kafka1", "no host:port");
    assert_refused(form_kafka_brokers, "SSL://kafka1:9092", "security.protocol=");
}

static void test_names_topics_paths_and_urls_have_their_forms(void **state)
{
    (void)state;
    char long_topic[251];
    memset(long_topic, 't', 250);
    long_topic[250] = '\0';
    assert_taken(form_kafka_topic, "report.dispatch.v1");
    assert_taken(form_kafka_topic, long_topic + 1);
    assert_refused(form_kafka_topic, long_topic, "at most 249");
    assert_refused(form_kafka_topic, "a topic", "cannot be a topic");
    assert_refused(form_kafka_topic, "..", "cannot be a topic");
    assert_taken(form_zookeeper_path, "/a/b.c");
    for (size_t i = 0; i < 7; i++) {
        const char *const bad[] = {"/", "a", "/a/", "//a", "/a/../b", "/a/./b", "/a b"};
        assert_refused(form_zookeeper_path, bad[i], "is no node's path");
    }
    assert_taken(form_url, "https://scheduler-1.example.org:8443");
    assert_refused(form_url, "scheduler-1:8080", "write it as \"http://host:port\"");
    assert_refused(form_url, "http://", "is no address");
    assert_refused(form_url, "http://scheduler-1:8080/", "without a path");
    assert_taken(form_address, "0.0.0.0");
    assert_taken(form_address, "::1");
    assert_refused(form_address, "localhost", "write one as numbers");
    assert_refused(form_address, "127.0.0.1:80", "write one as numbers");
    assert_refused(form_name, "Main", "\"Main\" cannot be a name");
    assert_refused(form_log_level, "trace", "write error, warn, info or debug");
}

static void test_a_variable_has_a_name_that_is_not_the_jobs_own(void **state)
{
    (void)state;
    assert_taken(form_variable, "TZ=UTC");
    assert_taken(form_variable, "EMPTY=");
    assert_refused(form_variable, "TZ", "write each as \"NAME=value\"");
    assert_refused(form_variable, "=x", "NAME=value");
    assert_refused(form_variable, "1A=x", "NAME=value");
    assert_refused(form_variable, "REPORT_KEY=secret-value", "REPORT_KEY: names that begin with");
    struct error err = {.text = ""};
    assert_int_equal(form_variable("REPORT_KEY=secret-value", &err), STATUS_INVALID);
    assert_null(strstr(err.text, "secret-value"));
}

static void test_a_connection_string_is_parsed_and_carries_no_password(void **state)
{
    (void)state;
    assert_taken(store_conninfo_check, "host=db dbname=x sslmode=verify-full sslrootcert=/ca.pem");
    assert_taken(store_conninfo_check, "host=/run/postgresql dbname=x");
    assert_refused(store_conninfo_check, "hots=db", "invalid connection option \"hots\"");
    assert_refused(store_conninfo_check, "host=db dbname", "missing \"=\"");
    assert_refused(store_conninfo_check, "host=db password=s3cret", "has a password in it");
    assert_refused(store_conninfo_check, "postgresql://u:s3cret@db/x", "has a password in it");
    assert_refused(store_conninfo_check, "host=db sslpassword=s3cret", "has sslpassword in it");
    assert_refused(store_tcp_conninfo_check, "dbname=x", "names no host");
    assert_refused(store_tcp_conninfo_check, "host=/run/postgresql", "names a socket");
    assert_refused(store_tcp_conninfo_check, "host=db1,/run/postgresql", "names a socket");
    assert_taken(store_tcp_conninfo_check, "host=db1,db2 dbname=x target_session_attrs=read-write");
}

static void test_no_part_of_a_password_is_in_an_error_text(void **state)
{
    (void)state;
    const char *const wrong[] = {"host=db password=open sesame", "host=db password='open sesame",
                                 "postgresql://u:open%zzsesame@db/x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct error err = {.text = ""};
        assert_int_equal(store_conninfo_check(wrong[i], &err), STATUS_INVALID);
        assert_null(strstr(err.text, "sesame"));
    }
}

static void test_kafka_properties_are_judged_by_the_library_itself(void **state)
{
    (void)state;
    assert_taken(dispatch_property_check, "security.protocol=SASL_SSL");
    assert_taken(dispatch_property_check, "linger.ms=5");
    assert_refused(dispatch_property_check, "linger", "not of the form name=value");
    assert_refused(dispatch_property_check, "lingerms=5", "No such configuration property");
    assert_refused(dispatch_property_check, "linger.ms=900001", "linger.ms");
    assert_refused(dispatch_property_check, "security.protocol=TLS", "security.protocol");
}

static void
test_kafka_properties_that_correctness_rests_on_are_refused_with_the_reason(void **state)
{
    (void)state;
    const char *const ours[] = {"enable.idempotence=false", "acks=1", "group.id=x",
                                "enable.auto.commit=false", "enable.auto.offset.store=true"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        assert_refused(dispatch_property_check, ours[i], "is set by this program (");
        assert_refused(dispatch_property_check, ours[i], "; remove it");
    }
    assert_refused(dispatch_property_check, "acks=1", "in-sync replicas");
}

static void test_surroundings_that_are_missing_are_said_with_the_remedy(void **state)
{
    (void)state;
    char directory[] = "/tmp/test_settings_form.XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/file", directory);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("secret\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_taken(around_writable_directory, directory);
    assert_refused(around_directory, path, "is no directory");
    assert_refused(around_writable_directory, "/nonexistent/x", "No such file");
    assert_refused(around_own_file, "/nonexistent/x", "/nonexistent: No such file");
    assert_taken(around_own_file, path); /* there or not: it is the daemon that makes it */
    assert_taken(around_own_file, "/tmp/not-there-yet");
    assert_refused(around_secret_file, path, "run: chmod 600");
    assert_refused(around_secret_file, "/nonexistent/x", "cannot be read");
    assert_refused(around_program, path, "is no program this user may execute");
    assert_refused(around_program, "/nonexistent/x", "No such file");
    assert_refused(around_program, "/tmp", "is no program");
    assert_taken(around_program, "/bin/sh");
    assert_int_equal(chmod(path, 0600), 0);
    assert_taken(around_secret_file, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_of_zookeeper_servers_are_host_and_port),
        cmocka_unit_test(test_lists_of_brokers_are_host_and_port_without_a_protocol),
        cmocka_unit_test(test_names_topics_paths_and_urls_have_their_forms),
        cmocka_unit_test(test_a_variable_has_a_name_that_is_not_the_jobs_own),
        cmocka_unit_test(test_a_connection_string_is_parsed_and_carries_no_password),
        cmocka_unit_test(test_no_part_of_a_password_is_in_an_error_text),
        cmocka_unit_test(test_kafka_properties_are_judged_by_the_library_itself),
        cmocka_unit_test(
            test_kafka_properties_that_correctness_rests_on_are_refused_with_the_reason),
        cmocka_unit_test(test_surroundings_that_are_missing_are_said_with_the_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
