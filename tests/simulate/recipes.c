#include "recipes.h"

#include "database.h"
#include "world.h"

#define SECOND INT64_C(1000000)

static int count;

int recipes_count(void)
{
    return count;
}

/* Local minutes of the day in Berlin or UTC at the run's begin, to put daily firings into it. */
static int minute_of_day(enum recipe_zone zone, int64_t at_us)
{
    int64_t s = at_us / SECOND + (zone == ZONE_BERLIN ? 3600 : 0);
    return (int)(s % 86400 / 60);
}

static void recipe_time(struct recipe *r, struct chance *c)
{
    int at = minute_of_day(r->zone, world.base_us) + (int)chance_in(c, 0, 3);
    r->hour = at / 60 % 24;
    r->minute = at % 60;
    r->weekday = (int)chance_in(c, 0, 6);
}

static void recipe_rule(struct recipe *r, struct chance *c)
{
    int64_t die = chance_in(c, 0, 99);
    r->zone = chance_hits(c, 500) ? ZONE_BERLIN : ZONE_UTC;
    if (die < 70) {
        r->kind = RECIPE_INTERVAL;
        r->every_us = chance_in(c, 3, 25) * SECOND;
        r->anchor_us = world.base_us / SECOND * SECOND - chance_in(c, 0, 60) * SECOND;
    } else if (die < 85) {
        r->kind = RECIPE_MINUTES;
        r->step = chance_hits(c, 700) ? 1 : 2;
    } else {
        r->kind = die < 95 ? RECIPE_DAILY : RECIPE_WEEKLY;
        recipe_time(r, c);
    }
}

static struct recipe recipe_draw(struct chance *c)
{
    struct recipe r = {.starts_at = HISTORY_NONE,
                       .ends_at = HISTORY_NONE,
                       .misfire_max = (int)chance_in(c, 1, 8),
                       .misfire_grace_us = chance_in(c, 1, 6) * SECOND,
                       .queue = (int)chance_in(c, 0, world.setup.queues - 1)};
    r.misfire_age_us = r.misfire_grace_us + chance_in(c, 1, 60) * SECOND;
    int64_t die = chance_in(c, 0, 9);
    r.overlap = die < 5   ? OVERLAP_ALLOW
                : die < 7 ? OVERLAP_FORBID
                : die < 9 ? OVERLAP_QUEUE
                          : OVERLAP_REPLACE;
    recipe_rule(&r, c);
    return r;
}

void recipes_make(uint64_t seed)
{
    struct chance c = chance_of(seed, 4);
    count = (int)chance_in(&c, 14, WORLD_SCHEDULES_MAX);
    for (int i = 0; i < count; i++) {
        struct recipe r = recipe_draw(&c);
        edit(i, (int)chance_in(&c, 0, world.setup.scopes - 1), &r);
    }
}

static const struct db_version *latest(int schedule)
{
    const struct db_version *v = NULL;
    for (size_t i = 0; i < db.version_count; i++) {
        v = db.versions[i].schedule == schedule ? &db.versions[i] : v;
    }
    return v;
}

/* One thing at a time, as people do: the pace, pause and resume, the policy, delete and insert. */
void recipe_edit(int schedule, uint64_t random)
{
    struct chance c = {random};
    const struct db_version *before = latest(schedule);
    if (before == NULL) {
        return;
    }
    struct recipe r = before->recipe;
    int64_t die = chance_in(&c, 0, 9);
    if (r.ended) {
        r.ended = false;
    } else if (die < 3) {
        r.paused = !r.paused;
    } else if (die < 6 && r.kind == RECIPE_INTERVAL) {
        r.every_us = chance_in(&c, 3, 25) * SECOND;
    } else if (die < 8) {
        r.overlap = (enum overlap_policy)chance_in(&c, OVERLAP_ALLOW, OVERLAP_REPLACE);
    } else if (die < 9) {
        r.misfire_max = (int)chance_in(&c, 1, 8);
    } else {
        r.ended = true;
    }
    edit(schedule, db.schedule_scope[schedule], &r);
}
