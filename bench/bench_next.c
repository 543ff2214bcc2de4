/* bench/next: how fast the time engine is, each figure a line `name value` for bench/next to read.
 * Rates are by processor time of this one thread, the median of five rounds, from random instants
 * of 2020 to 2040. Needs the installed tzdata and nothing else.
 *
 * Usage: bench_next [--quick] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cron.h"
#include "measure.h"
#include "rrule.h"
#include "zone_file.h"

#define INSTANTS  65536
#define ROUNDS    5
#define SCHEDULES 1000000

static utc_us instants[INSTANTS];
static struct zone_set *zones;
static int64_t calls = 2000000; /* of each round */
static volatile int64_t sink;   /* so that nothing is left out as unused */

static uint64_t random_next(void)
{
    static uint64_t state = 20261130;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static const struct zone *zone_of(const char *name)
{
    const struct zone *z = NULL;
    struct error err;
    if (zone_set_find(zones, name, &z, &err) != STATUS_OK) {
        stop(name, err.text);
    }
    return z;
}

static struct cron cron_of(const char *text)
{
    struct cron c = {.seconds = 0};
    struct error err;
    if (cron_parse(text, &c, &err) != STATUS_OK) {
        stop(text, err.text);
    }
    return c;
}

static void print_rate(const char *name, double *seconds, int64_t count)
{
    (void)printf("%s %.0f\n", name, (double)count / median(seconds, ROUNDS));
    (void)fflush(stdout);
}

static void bench_cron(const char *name, const char *text, const char *zone)
{
    struct cron c = cron_of(text);
    const struct zone *z = zone_of(zone);
    double seconds[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double begin = cpu_s();
        for (int64_t i = 0; i < calls; i++) {
            sink += cron_next(&c, z, instants[i % INSTANTS]).at.us;
        }
        seconds[round] = cpu_s() - begin;
    }
    print_rate(name, seconds, calls);
}

static void bench_parse(void)
{
    static const char *const texts[] = {"30 9 * * 1-5", "*/15 8-18 * * MON-FRI", "0 0 1 */3 *",
                                        "0 18 LW * *"};
    double seconds[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double begin = cpu_s();
        for (int64_t i = 0; i < calls; i++) {
            sink += (int64_t)cron_of(texts[i % 4]).hours;
        }
        seconds[round] = cpu_s() - begin;
    }
    print_rate("parse", seconds, calls);
}

static void bench_rrule(const char *name, const char *text)
{
    struct rrule_source source = {.text = text};
    source.start.s = civil_days_of(2019, 1, 7) * SECONDS_A_DAY + 9 * 3600 + 1800; /* a Monday */
    struct rrule r;
    struct error err;
    if (rrule_parse(&source, &r, &err) != STATUS_OK) {
        stop(text, err.text);
    }
    const struct zone *z = zone_of("America/New_York");
    double seconds[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double begin = cpu_s();
        for (int64_t i = 0; i < calls; i++) {
            sink += rrule_next(&r, z, instants[i % INSTANTS]).at.us;
        }
        seconds[round] = cpu_s() - begin;
    }
    print_rate(name, seconds, calls);
}

/* What a change of tzdata costs: each schedule's rule is compiled from its text, its zone looked up
 * and its next firing computed, one after the other as rows come. Making the texts is in it. */
static void bench_recompute(int count)
{
    static const char *const names[] = {
        "America/New_York",  "Europe/Berlin", "Asia/Tokyo",       "Europe/London",
        "America/Sao_Paulo", "Africa/Cairo",  "Australia/Sydney", "UTC"};
    static const char *const dates[] = {"* * 1-5", "* * *", "1 * *", "LW * *"};
    double begin = cpu_s();
    for (int i = 0; i < count; i++) {
        char text[CRON_TEXT_MAX];
        (void)snprintf(text, sizeof text, "%d %d %s", (int)(random_next() % 60),
                       (int)(random_next() % 24), dates[i % 4]);
        struct cron c = cron_of(text);
        sink += cron_next(&c, zone_of(names[i / 4 % 8]), instants[i % INSTANTS]).at.us;
    }
    (void)printf("recompute_s %.3f\n", cpu_s() - begin);
}

int main(int count, char **arguments)
{
    struct error err;
    bool quick = count > 1 && strcmp(arguments[1], "--quick") == 0;
    if (zone_set_open(NULL, &zones, &err) != STATUS_OK) {
        stop("tzdata", err.text);
    }
    calls = quick ? 100000 : calls;
    int64_t low = civil_days_of(2020, 1, 1) * SECONDS_A_DAY;
    int64_t high = civil_days_of(2040, 1, 1) * SECONDS_A_DAY;
    for (int i = 0; i < INSTANTS; i++) {
        instants[i] = utc_from_seconds(low + (int64_t)(random_next() % (uint64_t)(high - low)));
    }
    bench_cron("weekday_new_york", "30 9 * * 1-5", "America/New_York");
    bench_cron("weekday_utc", "30 9 * * 1-5", "UTC");
    bench_cron("quarter_new_york", "*/15 * * * *", "America/New_York");
    bench_cron("leap_day_new_york", "0 0 29 2 *", "America/New_York");
    bench_parse();
    bench_rrule("rrule_weekly", "FREQ=WEEKLY;BYDAY=MO,WE,FR");
    bench_rrule("rrule_monthly", "FREQ=MONTHLY;BYDAY=-1FR");
    bench_recompute(quick ? SCHEDULES / 20 : SCHEDULES);
    zone_set_close(zones);
    return 0;
}
