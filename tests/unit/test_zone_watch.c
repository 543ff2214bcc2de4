/* tzdata that changes while a process lives: marks, digests, the watch. */
#include <fcntl.h>
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

#include "fixture_zone.h"
#include "zone_watch.h"

#define POLL_MS   12000
#define SETTLE_MS 1001

static char directory[64];
static instant now;

static void path_of(const char *name, char ret_path[128])
{
    (void)snprintf(ret_path, 128, "%s/%s", directory, name);
}

/* As a package does: a new file takes the place of the old one. */
static void file_put(const char *name, const void *bytes, size_t size)
{
    char path[128];
    char fresh[128];
    path_of(name, path);
    path_of("fresh", fresh);
    FILE *f = fopen(fresh, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(fresh, path), 0);
}

/* A zone without changes: hours east of UTC. */
static void zone_put(const char *name, int hours)
{
    unsigned char b[128] = "TZif2";
    memcpy(b + 51, "TZif2", 5);
    b[39] = b[43] = 1;
    b[51 + 39] = 1;
    b[51 + 43] = 4;
    int32_t offset = hours * 3600;
    for (int i = 0; i < 4; i++) {
        b[95 + i] = (unsigned char)((uint32_t)offset >> (24 - 8 * i));
    }
    memcpy(b + 101, "XYZ", 4);
    int n = snprintf((char *)b + 105, 20, "\n<XYZ>%d\n", -hours);
    file_put(name, b, 105 + (size_t)n);
}

static void list_put(const char *version, const char *zones)
{
    char text[256];
    int n = snprintf(text, sizeof text, "# version %s\n%s", version, zones);
    file_put("tzdata.zi", text, (size_t)n);
}

static int directory_make(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof directory, "/tmp/zone-watch-XXXXXX");
    assert_non_null(mkdtemp(directory));
    list_put("2030a", "Z A 0 - X\nZ B 0 - X\nZ C 0 - X\n");
    zone_put("A", 1);
    zone_put("B", 2);
    zone_put("C", 3);
    now = (instant){INT64_C(1000000000000)};
    return 0;
}

static int directory_remove(void **state)
{
    (void)state;
    static const char *const names[] = {"tzdata.zi", "A", "B", "C", "fresh"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        path_of(names[i], path);
        (void)unlink(path);
    }
    return rmdir(directory);
}

static int32_t offset_of(struct zone_set *set, const char *name)
{
    const struct zone *z = NULL;
    struct error err = {.text = ""};
    if (zone_set_find(set, name, &z, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return zone_offset_at(z, 0) / 3600;
}

static struct zone_watch watch_make(void)
{
    struct zone_watch w;
    zone_watch_begin(&w, POLL_MS);
    assert_int_equal(zone_watch_open(&w, directory, now, NULL), STATUS_OK);
    assert_int_equal(offset_of(w.set, "A"), 1);
    assert_int_equal(offset_of(w.set, "B"), 2);
    return w;
}

/* A look `ms` later; true: it took another set. */
static bool look_after(struct zone_watch *w, int64_t ms, enum status want)
{
    struct zone_set *fresh = NULL;
    now = instant_add_ms(now, ms);
    assert_int_equal(zone_watch_look(w, now, &fresh, NULL), want);
    if (fresh != NULL) {
        zone_watch_take(w, fresh);
    }
    return fresh != NULL;
}

static void test_a_change_counts_once_the_files_have_stood_still(void **state)
{
    (void)state;
    struct zone_watch w = watch_make();
    char before[ZONE_DIGEST_MAX];
    (void)snprintf(before, sizeof before, "%s", zone_set_digest(w.set, "A"));
    assert_int_equal(strlen(before), 16);
    assert_string_equal(zone_set_digest(w.set, "C"), ""); /* not read */
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_false(w.pending);
    zone_put("A", 5);
    assert_false(look_after(&w, POLL_MS, STATUS_OK)); /* seen */
    assert_true(w.pending);
    assert_int_equal(offset_of(w.set, "A"), 1);
    list_put("2030b", "Z A 0 - X\nZ B 0 - X\nZ C 0 - X\n");
    assert_false(look_after(&w, SETTLE_MS, STATUS_OK)); /* and more has changed since */
    assert_false(look_after(&w, SETTLE_MS - 1, STATUS_OK));
    assert_int_equal(offset_of(w.set, "A"), 1);
    assert_true(look_after(&w, 1, STATUS_OK));
    assert_int_equal(offset_of(w.set, "A"), 5);
    assert_int_equal(offset_of(w.set, "B"), 2);
    assert_string_equal(zone_set_version(w.set), "2030b");
    assert_string_not_equal(zone_set_digest(w.set, "A"), before);
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_false(w.pending);
    zone_watch_end(&w);
}

static void test_a_zone_read_later_is_no_change(void **state)
{
    (void)state;
    struct zone_watch w = watch_make();
    assert_int_equal(offset_of(w.set, "C"), 3);
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_false(w.pending);
    zone_watch_end(&w);
}

static void test_a_file_that_is_no_good_keeps_the_old_zone_and_says_so(void **state)
{
    (void)state;
    struct zone_watch w = watch_make();
    char path[128];
    file_put("A", "TZif2 and nothing else", 22);
    path_of("B", path);
    assert_int_equal(unlink(path), 0);
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_true(look_after(&w, SETTLE_MS, STATUS_OK));
    assert_int_equal(offset_of(w.set, "A"), 1);
    assert_int_equal(offset_of(w.set, "B"), 2);
    assert_non_null(strstr(zone_set_facts(w.set, 0).fault, "/A: time zone A: it is not a TZif"));
    assert_non_null(strstr(zone_set_facts(w.set, 1).fault, "B is listed but not installed"));
    assert_string_equal(zone_set_facts(w.set, 2).fault, "");
    assert_false(look_after(&w, POLL_MS, STATUS_OK)); /* once, not at every look */
    assert_false(w.pending);
    zone_put("A", 4);
    zone_put("B", 4);
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_true(look_after(&w, SETTLE_MS, STATUS_OK));
    assert_int_equal(offset_of(w.set, "A") + offset_of(w.set, "B"), 8);
    assert_string_equal(zone_set_facts(w.set, 0).fault, "");
    zone_watch_end(&w);
}

static void test_a_name_that_is_listed_no_more_keeps_its_zone_until_the_end(void **state)
{
    (void)state;
    struct zone_watch w = watch_make();
    list_put("2030b", "Z B 0 - X\n");
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_true(look_after(&w, SETTLE_MS, STATUS_OK));
    assert_int_equal(offset_of(w.set, "A"), 1);
    assert_int_equal(zone_set_count(w.set), 2);
    assert_non_null(strstr(zone_set_facts(w.set, 0).fault, "unknown time zone \"A\""));
    zone_watch_end(&w);
}

static void test_a_list_that_is_no_good_is_told_once_and_changes_nothing(void **state)
{
    (void)state;
    struct zone_watch w = watch_make();
    zone_put("A", 5);
    list_put("2030b", "");
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_false(look_after(&w, SETTLE_MS, STATUS_INVALID));
    assert_int_equal(offset_of(w.set, "A"), 1);
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_string_equal(zone_set_version(w.set), "2030a");
    list_put("2030c", "Z A 0 - X\nZ B 0 - X\n");
    assert_false(look_after(&w, POLL_MS, STATUS_OK));
    assert_true(look_after(&w, SETTLE_MS, STATUS_OK));
    assert_int_equal(offset_of(w.set, "A"), 5);
    zone_watch_end(&w);
}

static void test_a_takeover_takes_what_stands_there_without_waiting(void **state)
{
    (void)state;
    struct zone_watch w = watch_make();
    assert_null(zone_watch_refresh(&w, now));
    zone_put("A", 5);
    struct zone_set *fresh = zone_watch_refresh(&w, now);
    assert_non_null(fresh);
    zone_watch_take(&w, fresh);
    assert_int_equal(offset_of(w.set, "A"), 5);
    list_put("2030b", "");
    assert_null(zone_watch_refresh(&w, now));
    assert_int_equal(offset_of(w.set, "B"), 2);
    zone_watch_end(&w);
}

static void test_a_file_written_over_in_place_is_a_change(void **state)
{
    (void)state;
    struct zone_watch w = watch_make();
    char path[128];
    struct stat before;
    path_of("A", path);
    assert_int_equal(stat(path, &before), 0);
    uint64_t mark = 0;
    assert_true(zone_set_is_current(w.set, &mark));
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 98, SEEK_SET), 0);
    assert_int_equal(fputc(0x20, f), 0x20);
    assert_int_equal(fclose(f), 0);
    const struct timespec times[2] = {before.st_atim, {.tv_sec = 1, .tv_nsec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    uint64_t then = 0;
    assert_false(zone_set_is_current(w.set, &then));
    assert_true(then != mark);
    zone_watch_end(&w);
}

static void test_a_symbolic_link_may_not_lead_out_of_the_directory(void **state)
{
    (void)state;
    struct zone_set *set = NULL;
    const struct zone *z = NULL;
    struct error err = {.text = ""};
    char path[128];
    path_of("A", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/usr/share/zoneinfo/UTC", path), 0);
    path_of("B", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("C", path), 0);
    assert_int_equal(zone_set_open(directory, &set, &err), STATUS_OK);
    assert_int_equal(zone_set_find(set, "A", &z, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "a symbolic link out of the directory, to "));
    assert_int_equal(offset_of(set, "B"), 3);
    zone_set_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_change_counts_once_the_files_have_stood_still,
                                        directory_make, directory_remove),
        cmocka_unit_test_setup_teardown(test_a_zone_read_later_is_no_change, directory_make,
                                        directory_remove),
        cmocka_unit_test_setup_teardown(test_a_file_that_is_no_good_keeps_the_old_zone_and_says_so,
                                        directory_make, directory_remove),
        cmocka_unit_test_setup_teardown(
            test_a_name_that_is_listed_no_more_keeps_its_zone_until_the_end, directory_make,
            directory_remove),
        cmocka_unit_test_setup_teardown(
            test_a_list_that_is_no_good_is_told_once_and_changes_nothing, directory_make,
            directory_remove),
        cmocka_unit_test_setup_teardown(test_a_takeover_takes_what_stands_there_without_waiting,
                                        directory_make, directory_remove),
        cmocka_unit_test_setup_teardown(test_a_file_written_over_in_place_is_a_change,
                                        directory_make, directory_remove),
        cmocka_unit_test_setup_teardown(test_a_symbolic_link_may_not_lead_out_of_the_directory,
                                        directory_make, directory_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
