#include "fixture_zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct zone_set *zones;
static uint64_t random_state;

int fixture_zones_open(void **state)
{
    (void)state;
    struct error err;
    if (zone_set_open(NULL, &zones, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    const char *seed = getenv("RS_TEST_SEED");
    random_state = seed != NULL ? strtoull(seed, NULL, 10) : 20261130;
    print_message("tzdata %s, RS_TEST_SEED=%llu\n", zone_set_version(zones),
                  (unsigned long long)random_state);
    return 0;
}

int fixture_zones_close(void **state)
{
    (void)state;
    zone_set_close(zones);
    zones = NULL;
    return 0;
}

struct zone_set *fixture_zones(void)
{
    return zones;
}

const struct zone *fixture_zone(const char *name)
{
    const struct zone *z = NULL;
    struct error err;
    if (zone_set_find(zones, name, &z, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return z;
}

utc_us fixture_instant(const char *rfc3339)
{
    utc_us t = {0};
    struct error err;
    if (rfc3339_parse(rfc3339, &t, &err) != STATUS_OK) {
        fail_msg("%s: %s", rfc3339, err.text);
    }
    return t;
}

struct rule fixture_rule_of(const struct rule_source *source)
{
    struct rule r = {.zone = NULL};
    struct error err = {.text = ""};
    if (rule_parse(source, zones, &r, &err) != STATUS_OK) {
        fail_msg("%s \"%s\": %s", source->kind, source->text, err.text);
    }
    return r;
}

struct rule fixture_rule(const char *kind, const char *text, const char *zone, const char *anchor)
{
    const struct rule_source source = {
        .kind = kind, .text = text, .zone = zone, .anchor = fixture_instant(anchor)};
    return fixture_rule_of(&source);
}

struct rule fixture_recurrence(const char *text, const char *zone, const char *start)
{
    struct rule_source source = {.kind = "rrule", .text = text, .zone = zone, .has_start = true};
    struct date_time t;
    assert_int_equal(date_time_parse(start, &t, NULL), STATUS_OK);
    source.start = t.local;
    return fixture_rule_of(&source);
}

/* splitmix64 */
uint64_t fixture_random(void)
{
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t x = random_state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

int fixture_random_in(int low, int high)
{
    return low + (int)(fixture_random() % (uint64_t)(high - low + 1));
}
