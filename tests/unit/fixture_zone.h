/* For tests of the time modules: the installed zones, and random numbers with a printed seed. */
#ifndef RS_FIXTURE_ZONE_H
#define RS_FIXTURE_ZONE_H

#include "rule.h"
#include "zone_file.h"

/* Group set-up and teardown. */
int fixture_zones_open(void **state);
int fixture_zones_close(void **state);

struct zone_set *fixture_zones(void);

/* These fail the test with the module's own words. */
const struct zone *fixture_zone(const char *name);
struct rule fixture_rule(const char *kind, const char *text, const char *zone, const char *anchor);
struct rule fixture_rule_of(const struct rule_source *source);
struct rule fixture_recurrence(const char *text, const char *zone, const char *start);
utc_us fixture_instant(const char *rfc3339);

/* Starts from $RS_TEST_SEED or a fixed seed, which fixture_zones_open prints. */
uint64_t fixture_random(void);
int fixture_random_in(int low, int high); /* both included */

#endif
