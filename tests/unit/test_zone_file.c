/* TZif files, good and hostile, and the list of names. */
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

#include "civil.h"
#include "fixture_zone.h"

static int64_t start_of_year(int32_t year)
{
    return civil_days_of(year, 1, 1) * SECONDS_A_DAY;
}

/* A file built by hand: version, 64-bit transitions to types, types, footer. */
struct sketch {
    char version;
    size_t time_count;
    int64_t at[4];
    unsigned char type_of[4];
    size_t type_count;
    int32_t offset[4];
    uint32_t leap_count;
    const char *footer;
};

static void put_u32(unsigned char **p, uint32_t v)
{
    for (int i = 3; i >= 0; i--) {
        *(*p)++ = (unsigned char)(v >> (8 * i));
    }
}

static void put_header(unsigned char **p, char version, const uint32_t counts[6])
{
    memcpy(*p, "TZif", 4);
    (*p)[4] = (unsigned char)version;
    memset(*p + 5, 0, 15);
    *p += 20;
    for (int i = 0; i < 6; i++) {
        put_u32(p, counts[i]);
    }
}

static size_t sketch_write(const struct sketch *s, unsigned char out[1024])
{
    unsigned char *p = out;
    put_header(&p, s->version, (const uint32_t[6]){0, 0, 0, 0, 1, 1});
    memset(p, 0, 7);
    p += 7;
    put_header(&p, s->version,
               (const uint32_t[6]){0, 0, s->leap_count, (uint32_t)s->time_count,
                                   (uint32_t)s->type_count, 4});
    for (size_t i = 0; i < s->time_count; i++) {
        put_u32(&p, (uint32_t)((uint64_t)s->at[i] >> 32));
        put_u32(&p, (uint32_t)s->at[i]);
    }
    for (size_t i = 0; i < s->time_count; i++) {
        *p++ = s->type_of[i];
    }
    for (size_t i = 0; i < s->type_count; i++) {
        put_u32(&p, (uint32_t)s->offset[i]);
        *p++ = 0;
        *p++ = 0;
    }
    memcpy(p, "XYZ", 4);
    p += 4;
    memset(p, 0, (size_t)s->leap_count * 12);
    p += (size_t)s->leap_count * 12;
    size_t length = strlen(s->footer);
    memcpy(p, s->footer, length);
    return (size_t)(p + length - out);
}

static struct zone *sketch_parse(const struct sketch *s, struct error *err)
{
    unsigned char bytes[1024];
    size_t size = sketch_write(s, bytes);
    struct zone *z = NULL;
    enum status status = zone_parse("Test/Sketch", bytes, size, &z, err);
    assert_true(status == STATUS_OK ? z != NULL : z == NULL && status == STATUS_INVALID);
    return z;
}

static void check_refused(const struct sketch *s, const char *why)
{
    struct error err = {.text = ""};
    struct zone *z = sketch_parse(s, &err);
    if (z != NULL || strstr(err.text, why) == NULL || strstr(err.text, "Test/Sketch") == NULL) {
        zone_free(z);
        fail_msg("wanted \"%s\", got \"%s\"", why, err.text);
    }
}

static void test_files_that_contradict_rfc_9636_are_refused_by_name(void **state)
{
    (void)state;
    const struct sketch good = {
        .version = '2',
        .time_count = 2,
        .at = {1000000, 9000000},
        .type_of = {1, 0},
        .type_count = 2,
        .offset = {0, 3600},
        .footer = "\nXYZ0\n",
    };
    struct error err;
    struct zone *z = sketch_parse(&good, &err);
    assert_non_null(z);
    assert_int_equal(zone_offset_at(z, 999999), 0);
    assert_int_equal(zone_offset_at(z, 1000000), 3600);
    assert_int_equal(zone_offset_at(z, INT64_MAX), 0);
    assert_int_equal(zone_offset_at(z, INT64_MIN), 0);
    zone_free(z);
    struct sketch s = good;
    s.version = 0;
    check_refused(&s, "version 1");
    s = good;
    s.leap_count = 1;
    check_refused(&s, "leap seconds");
    s = good;
    s.type_of[1] = 2;
    check_refused(&s, "transition 1");
    s = good;
    s.at[1] = s.at[0];
    check_refused(&s, "transition 1");
    s = good;
    s.at[1] = s.at[0] + 10;
    check_refused(&s, "too close");
    s = good;
    s.at[0] = INT64_MIN;
    check_refused(&s, "transition 0");
    s = good;
    s.offset[1] = 93600;
    check_refused(&s, "type 1");
    s = good;
    s.type_count = 0;
    check_refused(&s, "header");
}

static const char *const BAD_FOOTERS[] = {
    "",
    "\n",
    "XYZ0\n",
    "\nXYZ0",
    "\nXYZ0\n\n",
    "\nXY0\n",
    "\nXYZ\n",
    "\nXYZ25\n",
    "\nXYZ0ABC\n",
    "\nXYZ0ABC,M3.2.0\n",
    "\nXYZ0ABC,M13.1.0,M11.1.0\n",
    "\nXYZ0ABC,M3.6.0,M11.1.0\n",
    "\nXYZ0ABC,M3.1.7,M11.1.0\n",
    "\nXYZ0ABC,J0,J100\n",
    "\nXYZ0ABC,366,100\n",
    "\nXYZ0ABC,M3.2.0/168,M11.1.0\n",
    "\n<+03-3\n",
    "\nXYZ0ABC,M3.2.0,M11.1.0x\n",
    "\n:Europe/Berlin\n",
};

static void test_footers_that_are_no_rule_are_refused(void **state)
{
    (void)state;
    struct sketch s = {.version = '2', .type_count = 1};
    for (size_t i = 0; i < sizeof BAD_FOOTERS / sizeof BAD_FOOTERS[0]; i++) {
        s.footer = BAD_FOOTERS[i];
        check_refused(&s, "footer");
    }
}

static void test_footers_of_every_form_are_followed_for_ever(void **state)
{
    (void)state;
    struct sketch s = {.version = '3', .type_count = 1, .footer = "\n<+0330>-3:30\n"};
    struct error err;
    struct zone *z = sketch_parse(&s, &err);
    assert_non_null(z);
    assert_int_equal(zone_offset_at(z, 0), 12600);
    zone_free(z);
    /* Daylight time all the year, as RFC 9636 writes it: nothing ever changes after the first. */
    s.footer = "\nXXX3EDT4,0/0,J365/23\n";
    z = sketch_parse(&s, &err);
    assert_non_null(z);
    assert_int_equal(zone_offset_at(z, start_of_year(2030)), -14400);
    assert_int_equal(zone_offset_at(z, start_of_year(9000) + 180 * SECONDS_A_DAY), -14400);
    zone_free(z);
    /* Jn never counts February 29, n does: March 1 is J60 and 59, or 60 in a leap year. */
    s.footer = "\nXYZ0ABC,J60/0,J300/0\n";
    z = sketch_parse(&s, &err);
    assert_non_null(z);
    int64_t march = civil_days_of(2028, 3, 1) * SECONDS_A_DAY;
    assert_int_equal(zone_offset_at(z, march - 1), 0);
    assert_int_equal(zone_offset_at(z, march), 3600);
    march = civil_days_of(7031, 3, 1) * SECONDS_A_DAY;
    assert_int_equal(zone_offset_at(z, march - 1), 0);
    assert_int_equal(zone_offset_at(z, march), 3600);
    zone_free(z);
    s.footer = "\nXYZ0ABC,59/0,300/0\n";
    z = sketch_parse(&s, &err);
    assert_non_null(z);
    assert_int_equal(zone_offset_at(z, civil_days_of(2028, 2, 29) * SECONDS_A_DAY), 3600);
    assert_int_equal(zone_offset_at(z, civil_days_of(2029, 2, 28) * SECONDS_A_DAY + 86399), 0);
    zone_free(z);
}

static size_t file_bytes(const char *name, unsigned char *to, size_t size)
{
    const char *directory = getenv("RS_TZDIR");
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s",
                   directory != NULL && directory[0] != '\0' ? directory : ZONE_DIRECTORY_USUAL,
                   name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(to, 1, size, f);
    (void)fclose(f);
    assert_true(n > 100 && n < size);
    return n;
}

static void test_a_file_cut_off_at_any_byte_is_refused(void **state)
{
    (void)state;
    static unsigned char bytes[ZONE_FILE_MAX_BYTES];
    static const char *const names[] = {"Europe/Dublin", "Africa/Casablanca", "UTC"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size = file_bytes(names[i], bytes, sizeof bytes);
        for (size_t n = 0; n < size; n++) {
            /* A copy of the exact size lets the sanitizer see a read beyond it. */
            unsigned char *cut = malloc(n + (n == 0 ? 1 : 0));
            assert_non_null(cut);
            memcpy(cut, bytes, n);
            struct zone *z = NULL;
            struct error err;
            if (zone_parse(names[i], cut, n, &z, &err) != STATUS_INVALID) {
                fail_msg("%s cut to %zu bytes was accepted", names[i], n);
            }
            assert_null(z);
            free(cut);
        }
    }
}

/* Each of the six counts of either header, as large as it can be and one too large. */
static void test_counts_beyond_the_file_are_refused(void **state)
{
    (void)state;
    const struct sketch sketch = {.version = '2', .type_count = 1, .footer = "\nXYZ0\n"};
    static const uint32_t counts[] = {0xffffffff, 0x80000000, 0x7fffffff, 0x15555556, 1000};
    unsigned char good[1024];
    size_t size = sketch_write(&sketch, good);
    for (size_t header = 20; header <= 20 + 51; header += 51) {
        for (size_t field = 0; field < 6; field++) {
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                unsigned char *bytes = malloc(size);
                assert_non_null(bytes);
                memcpy(bytes, good, size);
                unsigned char *p = bytes + header + field * 4;
                put_u32(&p, counts[i]);
                struct zone *z = NULL;
                struct error err = {.text = ""};
                if (zone_parse("Test/Counts", bytes, size, &z, &err) != STATUS_INVALID ||
                    strstr(err.text, "cut off") == NULL) {
                    fail_msg("%zu.%zu = %u: \"%s\"", header, field, counts[i], err.text);
                }
                free(bytes);
            }
        }
    }
}

static void test_damaged_bytes_never_do_harm(void **state)
{
    (void)state;
    static unsigned char bytes[ZONE_FILE_MAX_BYTES];
    size_t size = file_bytes("Europe/Dublin", bytes, sizeof bytes);
    unsigned accepted = 0;
    for (int i = 0; i < 20000; i++) {
        unsigned char *damaged = malloc(size);
        assert_non_null(damaged);
        memcpy(damaged, bytes, size);
        for (uint64_t k = fixture_random() % 4 + 1; k > 0; k--) {
            size_t at =
                fixture_random() % 3 == 0 ? fixture_random() % 100 : fixture_random() % size;
            damaged[at] = (unsigned char)fixture_random();
        }
        struct zone *z = NULL;
        struct error err;
        if (zone_parse("Test/Damaged", damaged, size, &z, &err) == STATUS_OK) {
            accepted++;
            for (int k = 0; k < 20; k++) {
                int64_t t = (int64_t)(fixture_random() % 20000000000u) - 5000000000;
                struct zone_span span = zone_resolve(z, (struct local_time){t});
                assert_true(span.start <= t && t < span.until);
                (void)zone_offset_at(z, t);
            }
            zone_free(z);
        }
        free(damaged);
    }
    print_message("%u of 20000 damaged files were still sane\n", accepted);
}

static void check_name_refused(const char *name, const char *why)
{
    const struct zone *z = NULL;
    struct error err = {.text = ""};
    enum status s = zone_set_find(fixture_zones(), name, &z, &err);
    if (s != STATUS_INVALID || z != NULL || strstr(err.text, why) == NULL) {
        fail_msg("\"%s\": %s \"%s\"", name, status_name(s), err.text);
    }
    assert_null(strchr(err.text, '\n'));
}

static void test_only_listed_names_are_zones(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "../../../etc/passwd",
        "/etc/localtime",
        "Europe/../Europe/Berlin",
        "right/Europe/Paris",
        "posix/Europe/Paris",
        "localtime",
        "posixrules",
        "Factory",
        "Europe",
        "Europe/",
        "Europe/Berlin ",
        "UTC+3",
        "+05:30",
        "EST5EDT4,M3.2.0,M11.1.0",
        "tzdata.zi",
        "zone.tab",
        "Nope/Zone",
        "CEST",
        "Europe/Berlin\n",
        "A\x01\x7f\xff",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_name_refused(names[i], "unknown time zone \"");
    }
    check_name_refused("europe/berlin", "write \"Europe/Berlin\"");
    check_name_refused("AMERICA/NEW YORK", "write \"America/New_York\"");
    check_name_refused("utc", "write \"UTC\"");
}

static void test_links_keep_their_names_and_tables_are_read_once(void **state)
{
    (void)state;
    const struct zone *z = fixture_zone("US/Eastern");
    assert_string_equal(zone_name(z), "US/Eastern");
    assert_ptr_equal(fixture_zone("US/Eastern"), z);
    assert_ptr_not_equal(fixture_zone("America/New_York"), z);
    assert_true(strlen(zone_set_version(fixture_zones())) >= 5);
    assert_true(zone_set_count(fixture_zones()) > 400);
}

static void write_file(const char *directory, const char *name, const void *bytes, size_t size)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void check_open_refused(const char *directory, enum status want, const char *why)
{
    struct zone_set *set = NULL;
    struct error err = {.text = ""};
    enum status s = zone_set_open(directory, &set, &err);
    zone_set_close(set);
    if (s != want || strstr(err.text, why) == NULL) {
        fail_msg("%s \"%s\"", status_name(s), err.text);
    }
}

static void test_faulty_installations_are_named(void **state)
{
    (void)state;
    char directory[] = "/tmp/zones-XXXXXX";
    assert_non_null(mkdtemp(directory));
    check_open_refused(directory, STATUS_NOT_FOUND, "install tzdata");
    write_file(directory, "tzdata.zi", "R A 1 2\n", 8);
    check_open_refused(directory, STATUS_INVALID, "no time zone");
    write_file(directory, "tzdata.zi", "Z\n", 2);
    check_open_refused(directory, STATUS_INVALID, "tzdata.zi");
    const char *list = "# version 2099z\nZ Good 0 - X\nZ Bad 0 - X\nZ ../Evil 0 - X\nL Good Gone\n"
                       "Zone Fifo 0 - X\n";
    write_file(directory, "tzdata.zi", list, strlen(list));
    const struct sketch sketch = {.version = '2', .type_count = 1, .footer = "\nXYZ0\n"};
    unsigned char bytes[1024];
    size_t size = sketch_write(&sketch, bytes);
    write_file(directory, "Good", bytes, size);
    write_file(directory, "Bad", bytes, size - 1);
    char fifo[64];
    (void)snprintf(fifo, sizeof fifo, "%s/Fifo", directory);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    struct zone_set *set = NULL;
    struct error err = {.text = ""};
    assert_int_equal(zone_set_open(directory, &set, &err), STATUS_OK);
    assert_string_equal(zone_set_version(set), "2099z");
    assert_int_equal(zone_set_count(set), 4);
    const struct zone *z = NULL;
    assert_int_equal(zone_set_find(set, "Good", &z, &err), STATUS_OK);
    assert_int_equal(zone_set_find(set, "Bad", &z, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "Bad"));
    assert_int_equal(zone_set_find(set, "Gone", &z, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "Gone"));
    assert_int_equal(zone_set_find(set, "Fifo", &z, &err), STATUS_CORRUPT);
    assert_int_equal(zone_set_find(set, "../Evil", &z, &err), STATUS_INVALID);
    zone_set_close(set);
    static const char *const names[] = {"tzdata.zi", "Good", "Bad", "Fifo"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_that_contradict_rfc_9636_are_refused_by_name),
        cmocka_unit_test(test_footers_that_are_no_rule_are_refused),
        cmocka_unit_test(test_footers_of_every_form_are_followed_for_ever),
        cmocka_unit_test(test_a_file_cut_off_at_any_byte_is_refused),
        cmocka_unit_test(test_counts_beyond_the_file_are_refused),
        cmocka_unit_test(test_damaged_bytes_never_do_harm),
        cmocka_unit_test(test_only_listed_names_are_zones),
        cmocka_unit_test(test_links_keep_their_names_and_tables_are_read_once),
        cmocka_unit_test(test_faulty_installations_are_named),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
