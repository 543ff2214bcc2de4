/* Business calendars against a slow evaluator, on calendars drawn at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "civil.h"
#include "fixture_calendar.h"

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

#define DRAWN_DAYS 60
#define DRAWN_SPAN 400

struct drawn {
    struct calendar_weekend weekends[2];
    struct calendar_special days[DRAWN_DAYS];
    struct calendar_rules rules;
    struct calendar *c;
};

static void drawn_make(struct drawn *d, int64_t first)
{
    static const uint8_t masks[] = {0, SAT_SUN, FRI_SAT, 0x20, 0x21, 0x3f};
    d->weekends[0] = (struct calendar_weekend){CALENDAR_ALWAYS, masks[draw(6)]};
    d->weekends[1] = (struct calendar_weekend){first + draw(DRAWN_SPAN), masks[draw(6)]};
    for (int i = 0; i < DRAWN_DAYS; i++) {
        d->days[i] = (struct calendar_special){first + draw(DRAWN_SPAN), draw(4) == 0};
    }
    d->rules = rules_of(d->days, draw(DRAWN_DAYS));
    d->rules.weekends = d->weekends;
    d->rules.weekend_count = 1 + draw(2);
    d->c = calendar_of(&d->rules);
}

static bool slow_is_business_day(const struct drawn *d, int64_t day)
{
    uint8_t weekend = d->weekends[0].days;
    if (d->rules.weekend_count > 1 && day >= d->weekends[1].from) {
        weekend = d->weekends[1].days;
    }
    bool business = (weekend & 1U << civil_weekday(day)) == 0;
    for (size_t i = 0; i < d->rules.day_count; i++) {
        business = d->days[i].day == day ? d->days[i].business : business;
    }
    return business;
}

static int64_t slow_straight(const struct drawn *d, int64_t day, int step)
{
    while (!slow_is_business_day(d, day)) {
        day += step;
    }
    return day;
}

static bool same_month(int64_t a, int64_t b)
{
    return civil_date_of(a).month == civil_date_of(b).month;
}

/* As QuantLib words it. */
static int64_t slow_roll(const struct drawn *d, enum roll_convention how, int64_t day)
{
    int64_t next = slow_straight(d, day, 1);
    int64_t last = slow_straight(d, day, -1);
    if (how == ROLL_PRECEDING) {
        return last;
    }
    if (how == ROLL_MODIFIED_PRECEDING) {
        return same_month(last, day) ? last : next;
    }
    if (how == ROLL_NEAREST) {
        return next - day <= day - last ? next : last;
    }
    if (how == ROLL_FOLLOWING) {
        return next;
    }
    bool crosses = how == ROLL_HALF_MONTH_MODIFIED_FOLLOWING && civil_date_of(day).day <= 15 &&
                   civil_date_of(next).day > 15;
    return !same_month(next, day) || crosses ? last : next;
}

static void test_ten_thousand_rolls_agree_with_a_slow_evaluator(void **state)
{
    (void)state;
    seed = 20261130;
    for (int round = 0; round < 200; round++) {
        struct drawn d;
        int64_t first = day_of("2024-01-01") + draw(1000);
        drawn_make(&d, first);
        for (int i = 0; i < 50; i++) {
            enum roll_convention how = (enum roll_convention)(ROLL_FOLLOWING + draw(6));
            int64_t day = first - 40 + draw(DRAWN_SPAN + 80);
            struct calendar_answer a = {0};
            assert_int_equal(calendar_is_business_day(d.c, day), slow_is_business_day(&d, day));
            assert_int_equal(calendar_roll(d.c, how, day, &a, NULL), STATUS_OK);
            if (a.day != slow_roll(&d, how, day)) {
                fail_msg("round %d: %s of day %lld", round, roll_convention_name(how),
                         (long long)day);
            }
        }
        calendar_free(d.c);
    }
}

static void test_there_and_back_is_the_same_business_day(void **state)
{
    (void)state;
    seed = 7;
    for (int round = 0; round < 100; round++) {
        struct drawn d;
        int64_t first = day_of("2026-01-01");
        drawn_make(&d, first);
        for (int i = 0; i < 20; i++) {
            struct calendar_answer from = {0};
            struct calendar_answer there = {0};
            struct calendar_answer back = {0};
            int32_t n = 1 + (int32_t)draw(30);
            int64_t day = first + draw(DRAWN_SPAN);
            assert_int_equal(calendar_roll(d.c, ROLL_FOLLOWING, day, &from, NULL), STATUS_OK);
            assert_int_equal(calendar_add(d.c, from.day, n, &there, NULL), STATUS_OK);
            assert_int_equal(calendar_add(d.c, there.day, -n, &back, NULL), STATUS_OK);
            assert_int_equal(back.day, from.day);
        }
        calendar_free(d.c);
    }
}

static void test_union_is_open_when_all_are_and_intersection_when_any_is(void **state)
{
    (void)state;
    seed = 42;
    for (int round = 0; round < 50; round++) {
        struct drawn d[3];
        int64_t first = day_of("2026-01-01");
        const struct calendar *parts[3];
        for (int i = 0; i < 3; i++) {
            drawn_make(&d[i], first + i * 100);
            parts[i] = d[i].c;
        }
        struct calendar_special own = {first + 50, draw(2) == 0};
        struct calendar_joint joint = {
            .parts = parts, .part_count = 3, .days = &own, .day_count = 1};
        for (int which = 0; which < 2; which++) {
            struct calendar *c = NULL;
            joint.combination = which == 0 ? CALENDAR_UNION : CALENDAR_INTERSECTION;
            assert_int_equal(calendar_combine(&joint, &c, NULL), STATUS_OK);
            for (int64_t day = first - 30; day < first + 800; day++) {
                int open = 0;
                for (int i = 0; i < 3; i++) {
                    open += slow_is_business_day(&d[i], day) ? 1 : 0;
                }
                bool expected = which == 0 ? open == 3 : open > 0;
                expected = day == own.day ? own.business : expected;
                assert_int_equal(calendar_is_business_day(c, day), expected);
            }
            calendar_free(c);
        }
        for (int i = 0; i < 3; i++) {
            calendar_free(d[i].c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_thousand_rolls_agree_with_a_slow_evaluator),
        cmocka_unit_test(test_there_and_back_is_the_same_business_day),
        cmocka_unit_test(test_union_is_open_when_all_are_and_intersection_when_any_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
