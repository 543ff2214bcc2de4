/* Time zone data that change under a leader, and leaders with different data, on a real
 * PostgreSQL. */
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

#include "fixture_leader.h"

/* Two machines' data. The zone is a real name, which SQL checks; what it is, we say. */
#define ZONE    "America/Vancouver"
#define SHIFTED "Asia/Tokyo"
static char here[64];
static char there[64];

static void path_of(const char *directory, const char *name, char ret_path[160])
{
    (void)snprintf(ret_path, 160, "%s/%s", directory, name);
}

static void file_put(const char *directory, const char *name, const void *bytes, size_t size)
{
    char path[160];
    char fresh[160];
    path_of(directory, name, path);
    path_of(directory, "fresh", fresh);
    FILE *f = fopen(fresh, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(fresh, path), 0);
}

/* A TZif file without changes. */
static void zone_put(const char *directory, const char *name, int hours)
{
    unsigned char b[128] = "TZif2";
    int32_t offset = hours * 3600;
    memcpy(b + 51, "TZif2", 5);
    b[39] = b[43] = 1;
    b[51 + 39] = 1;
    b[51 + 43] = 4;
    for (int i = 0; i < 4; i++) {
        b[95 + i] = (unsigned char)((uint32_t)offset >> (24 - 8 * i));
    }
    memcpy(b + 101, "XYZ", 4);
    int n = snprintf((char *)b + 105, 20, "\n<XYZ>%d\n", -hours);
    file_put(directory, name, b, 105 + (size_t)n);
}

static void data_put(const char *directory, const char *version, int hours)
{
    char list[128];
    zone_put(directory, ZONE, hours);
    int n = snprintf(list, sizeof list, "# version %s\nZ UTC 0 - X\nZ %s 0 - X\nZ %s 0 - X\n",
                     version, ZONE, SHIFTED);
    file_put(directory, "tzdata.zi", list, (size_t)n);
}

static void directory_make(char directory[64])
{
    char path[160];
    (void)snprintf(directory, 64, "/tmp/test-planning-zones-XXXXXX");
    assert_non_null(mkdtemp(directory));
    path_of(directory, "America", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_of(directory, "Asia", path);
    assert_int_equal(mkdir(path, 0700), 0);
    zone_put(directory, "UTC", 0);
    zone_put(directory, SHIFTED, 0);
}

static void directory_remove(const char *directory)
{
    static const char *const names[] = {"tzdata.zi", "UTC", ZONE, SHIFTED};
    char path[160];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        path_of(directory, names[i], path);
        assert_int_equal(unlink(path), 0);
    }
    path_of(directory, "America", path);
    assert_int_equal(rmdir(path), 0);
    path_of(directory, "Asia", path);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static void leader_begin(struct leader *l, const char *directory)
{
    *l = leader_make();
    l->tz_directory = directory;
    l->tz_poll_ms = 100;
    leader_prepare(l);
}

static void write_daily(const char *name, const char *rule, const char *zone)
{
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) "
                      "VALUES ('%s', 'nothing', 'cron', '%s', '%s')",
                      name, rule, zone);
}

#define STORED                                                                                     \
    "SELECT concat_ws(' ', to_char(next_fire_at AT TIME ZONE 'UTC', 'HH24'), to_char("             \
    "next_nominal, 'HH24:MI'), next_offset_s / 3600, tzdata) FROM reports.schedule_progress "      \
    "WHERE schedule = 'daily'"

static void test_changed_data_move_the_next_firing_and_keep_its_nominal_time(void **state)
{
    (void)state;
    data_put(here, "2030a", -8);
    write_daily("daily", "0 6 * * *", ZONE);
    write_daily("other", "0 6 * * *", "UTC");
    struct leader l;
    leader_begin(&l, here);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql(STORED), "14 06:00 -8 2030a");
    char digest[32];
    (void)snprintf(digest, sizeof digest, "%s",
                   fixture_sql("SELECT zone_digest FROM reports.schedule_progress WHERE schedule "
                               "= 'daily'"));
    assert_int_equal(strlen(digest), 16);
    int64_t step = fixture_count("SELECT step FROM reports.schedule_progress WHERE schedule = "
                                 "'other'");
    char nominal[40];
    (void)snprintf(nominal, sizeof nominal, "%s",
                   fixture_sql("SELECT next_nominal FROM reports.schedule_progress WHERE "
                               "schedule = 'daily'"));
    data_put(here, "2030b", -7);
    assert_true(leader_step_until(&l, STORED, "13 06:00 -7 2030b", 20000));
    assert_string_equal(nominal, fixture_sql("SELECT next_nominal FROM reports.schedule_progress "
                                             "WHERE schedule = 'daily'"));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE "
                                   "zone_digest = '%s'",
                                   digest),
                     0);
    (void)leader_settle(&l);
    assert_int_equal(step, fixture_count("SELECT step FROM reports.schedule_progress WHERE "
                                         "schedule = 'other'"));
    assert_string_equal(fixture_sql("SELECT string_agg(concat_ws(' ', time_zone, tzdata, settled), "
                                    "',' ORDER BY time_zone) FROM reports.zone_state"),
                        ZONE " 2030b t,UTC 2030b t");
    leader_leave(&l);
}

/* Two hours from now by a clock that turns out to be three hours ahead. */
static void test_a_firing_that_the_new_data_put_into_the_past_is_due_at_once(void **state)
{
    (void)state;
    data_put(here, "2030a", 0);
    (void)fixture_sql(
        "INSERT INTO reports.schedule (name, report, kind, rule, time_zone) SELECT "
        "'daily', 'nothing', 'cron', format('%%s %%s * * *', extract(minute FROM t), "
        "extract(hour FROM t)), '%s' FROM (SELECT now() AT TIME ZONE 'UTC' + interval "
        "'2 hours' AS t) x",
        ZONE);
    struct leader l;
    leader_begin(&l, here);
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    char key[40];
    (void)snprintf(key, sizeof key, "%s 1",
                   fixture_sql("SELECT to_char(next_nominal, 'YYYY-MM-DD') FROM "
                               "reports.schedule_progress"));
    data_put(here, "2030b", 3);
    assert_true(leader_step_until(&l,
                                  "SELECT concat_ws(' ', min(occurrence_key), count(*)) FROM "
                                  "reports.occurrence",
                                  key, 20000));
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT concat_ws(' ', o.scheduled_for < now(), p.next_nominal "
                                    "- o.nominal_local, p.next_fire_at - o.scheduled_for) FROM "
                                    "reports.occurrence o, reports.schedule_progress p"),
                        "t 1 day 1 day");
    leader_leave(&l);
}

/* The clock is set back by an hour between two firings of a schedule that has had this hour. */
static void test_a_clock_set_back_repeats_no_key_and_loses_none(void **state)
{
    (void)state;
    data_put(here, "2030a", 1);
    fixture_schedule("quarters", "cron", "*/15 * * * *", "4 hours", "time_zone = '" ZONE "'");
    (void)fixture_sql("UPDATE reports.schedule_version SET misfire = 'run_all'");
    struct leader l;
    leader_begin(&l, here);
    assert_true(leader_settle(&l) >= 15);
    int64_t made = fixture_count("SELECT count(*) FROM reports.occurrence");
    data_put(here, "2030b", 0);
    assert_true(leader_step_until(
        &l, "SELECT bool_and(tzdata = '2030b') FROM reports.schedule_progress", "t", 20000));
    (void)leader_settle(&l);
    /* Its next time is an hour and less than a quarter away, and nothing came twice meanwhile. */
    assert_string_equal(fixture_sql("SELECT p.next_nominal - max(o.nominal_local) FROM "
                                    "reports.occurrence o, reports.schedule_progress p GROUP BY "
                                    "p.next_nominal"),
                        "00:15:00");
    assert_string_equal(fixture_sql("SELECT p.next_fire_at - max(o.scheduled_for) FROM "
                                    "reports.occurrence o, reports.schedule_progress p GROUP BY "
                                    "p.next_fire_at"),
                        "01:15:00");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), made);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_gap"), 0);
    /* Set forward by two hours: what it has not had is caught up. */
    data_put(here, "2030c", 2);
    assert_true(leader_step_until(
        &l, "SELECT bool_and(tzdata = '2030c') FROM reports.schedule_progress", "t", 20000));
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence") - made, 4);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM (SELECT nominal_local - lag(nominal_local) "
                      "OVER (ORDER BY nominal_local) AS apart FROM "
                      "reports.occurrence) x WHERE apart <> interval '15 minutes'"),
        0);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_gap"), 0);
    leader_leave(&l);
}

static void test_older_data_neither_move_nor_lose_what_newer_data_computed(void **state)
{
    (void)state;
    data_put(here, "2030b", -7);
    data_put(there, "2030a", -8);
    write_daily("daily", "0 6 * * *", ZONE);
    struct leader l;
    leader_begin(&l, here);
    (void)leader_settle(&l);
    leader_leave(&l);
    leader_begin(&l, there);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql(STORED), "13 06:00 -7 2030b");
    assert_string_equal(fixture_sql("SELECT problem FROM reports.v_problem WHERE kind = 'time "
                                    "zones'"),
                        "the leader computes " ZONE
                        " by tzdata 2030a, older than 2030b that another leader had");
    /* It comes due: by the older data an hour too early, so that a plan by them would put it off.
     */
    (void)fixture_sql("UPDATE reports.schedule_progress SET next_nominal = date_trunc('day', now() "
                      "AT TIME ZONE 'UTC') + interval '6 hours', next_fire_at = now() - interval "
                      "'1 minute', switched_at = now() - interval '1 day'");
    leader_leave(&l);
    leader_begin(&l, there);
    assert_int_equal(leader_settle(&l), 1);
    assert_string_equal(fixture_sql("SELECT concat_ws(' ', occurrence_key = to_char(now() AT TIME "
                                    "ZONE 'UTC', 'YYYY-MM-DD'), offset_s / 3600, now() - "
                                    "scheduled_for < interval '3 minutes') FROM "
                                    "reports.occurrence"),
                        "t -7 t");
    assert_string_equal(fixture_sql(STORED), "14 06:00 -8 2030a"); /* under its own name */
    assert_string_equal(fixture_sql("SELECT next_nominal - (SELECT nominal_local FROM "
                                    "reports.occurrence) FROM reports.schedule_progress"),
                        "1 day");
    leader_leave(&l);
    leader_begin(&l, here);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql(STORED), "13 06:00 -7 2030b");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.v_problem WHERE kind = 'time "
                                   "zones'"),
                     0);
    leader_leave(&l);
}

static void test_data_of_one_version_with_another_digest_give_way_to_the_leaders(void **state)
{
    (void)state;
    data_put(here, "2030a", -7);
    data_put(there, "2030a", -8);
    write_daily("daily", "0 6 * * *", ZONE);
    struct leader l;
    leader_begin(&l, here);
    (void)leader_settle(&l);
    leader_leave(&l);
    leader_begin(&l, there);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql(STORED), "14 06:00 -8 2030a");
    leader_leave(&l);
}

static void test_a_row_that_is_held_is_moved_later_and_stops_no_other(void **state)
{
    (void)state;
    data_put(here, "2030a", -8);
    write_daily("daily", "0 6 * * *", ZONE);
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) SELECT "
                      "'more' || n, 'nothing', 'cron', '0 6 * * *', '%s' FROM generate_series(1, "
                      "2500) n",
                      ZONE);
    struct leader l;
    leader_begin(&l, here);
    assert_true(
        leader_step_until(&l, "SELECT count(*) FROM reports.schedule_progress", "2501", 30000));
    PGconn *held = fixture_plan_second();
    PQclear(PQexec(held, "BEGIN"));
    PQclear(PQexec(held, "SELECT FROM reports.schedule_progress WHERE schedule = 'daily' FOR "
                         "UPDATE"));
    data_put(here, "2030b", -7);
    assert_true(leader_step_until(&l,
                                  "SELECT count(*) FROM reports.schedule_progress WHERE tzdata = "
                                  "'2030b'",
                                  "2500", 30000));
    assert_string_equal(fixture_sql(STORED), "14 06:00 -8 2030a");
    PQfinish(held);
    assert_true(leader_step_until(&l, STORED, "13 06:00 -7 2030b", 20000));
    assert_true(leader_step_until(
        &l, "SELECT settled FROM reports.zone_state WHERE time_zone = '" ZONE "'", "t", 20000));
    leader_leave(&l);
}

static void test_a_file_that_is_no_good_keeps_the_old_data_until_it_is_mended(void **state)
{
    (void)state;
    data_put(here, "2030a", -8);
    write_daily("daily", "0 6 * * *", ZONE);
    write_daily("second", "0 6 * * *", SHIFTED);
    struct leader l;
    leader_begin(&l, here);
    (void)leader_settle(&l);
    data_put(here, "2030b", -7);
    zone_put(here, SHIFTED, 9);
    file_put(here, ZONE, "TZif2", 5);
    assert_true(leader_step_until(&l,
                                  "SELECT next_offset_s FROM reports.schedule_progress WHERE "
                                  "schedule = 'second' AND tzdata = '2030b'",
                                  "32400", 20000));
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql(STORED), "14 06:00 -8 2030a");
    zone_put(here, ZONE, -7);
    assert_true(leader_step_until(&l, STORED, "13 06:00 -7 2030b", 20000));
    leader_leave(&l);
}

static void test_a_follower_takes_over_with_the_data_that_stand_there_then(void **state)
{
    (void)state;
    struct error err = {.text = ""};
    data_put(here, "2030a", -8);
    write_daily("daily", "0 6 * * *", ZONE);
    struct leader l;
    leader_begin(&l, here);
    (void)leader_settle(&l);
    leader_leave(&l);
    l = leader_make();
    l.tz_directory = here;
    l.tz_poll_ms = 3600000; /* not by a look */
    leader_prepare(&l);
    (void)leader_settle(&l);
    data_put(here, "2030b", -7);
    assert_int_equal(planning_prepare(l.planning, &l.authority, l.store, &err), STATUS_OK);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql(STORED), "13 06:00 -7 2030b");
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_data_move_the_next_firing_and_keep_its_nominal_time),
        cmocka_unit_test(test_a_firing_that_the_new_data_put_into_the_past_is_due_at_once),
        cmocka_unit_test(test_a_clock_set_back_repeats_no_key_and_loses_none),
        cmocka_unit_test(test_older_data_neither_move_nor_lose_what_newer_data_computed),
        cmocka_unit_test(test_data_of_one_version_with_another_digest_give_way_to_the_leaders),
        cmocka_unit_test(test_a_row_that_is_held_is_moved_later_and_stops_no_other),
        cmocka_unit_test(test_a_file_that_is_no_good_keeps_the_old_data_until_it_is_mended),
        cmocka_unit_test(test_a_follower_takes_over_with_the_data_that_stand_there_then),
    };
    directory_make(here);
    directory_make(there);
    int failed =
        fixture_plan_run("test_planning_zones", tests, sizeof tests / sizeof tests[0], NULL);
    directory_remove(here);
    directory_remove(there);
    return failed;
}
