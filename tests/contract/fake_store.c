#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "store_fake.h"

static struct store *exposed;

void contract_db_begin(void)
{
    database_reset();
}

void contract_db_end(void)
{
    exposed = NULL;
}

struct store *contract_db_open(enum contract_side side, enum store_role role)
{
    struct store *s = NULL;
    const struct store_options options = {.role = role};
    if (store_open(&options, (instant){KERNEL_NEVER}, &s, NULL) == STATUS_OK) {
        s->process = fake_side(side);
        exposed = side == SIDE_EXPOSED ? s : exposed;
    }
    return s;
}

void contract_db_way(enum contract_way way)
{
    if (way == WAY_CLOSED) {
        exposed->ended = true; /* by the server; a new one comes about, which no case wants */
    } else {
        fake_way(SERVICE_POSTGRESQL, way);
    }
}

void contract_db_edit(const struct contract_schedule *schedule)
{
    static const char *const overlaps[] = {[OVERLAP_ALLOW] = "allow",
                                           [OVERLAP_FORBID] = "forbid",
                                           [OVERLAP_QUEUE] = "queue",
                                           [OVERLAP_REPLACE] = "replace"};
    struct recipe r = {.kind = RECIPE_INTERVAL,
                       .anchor_us = world.base_us,
                       .every_us = INT64_C(3600000000),
                       .starts_at = HISTORY_NONE,
                       .ends_at = HISTORY_NONE,
                       .paused = schedule->paused,
                       .misfire_max = 10,
                       .misfire_age_us = INT64_C(600000000),
                       .misfire_grace_us = INT64_C(60000000),
                       .queue = schedule->queue};
    for (int i = OVERLAP_ALLOW; i <= OVERLAP_REPLACE; i++) {
        r.overlap =
            strcmp(overlaps[i], schedule->overlap) == 0 ? (enum overlap_policy)i : r.overlap;
    }
    edit(schedule->number, 0, &r);
}

const char *contract_db_state(const char *job)
{
    size_t i = job_find(job);
    return i < db.job_count ? job_state_name(db.jobs[i].state) : "";
}

int64_t contract_db_outbox(const char *job)
{
    int64_t n = 0;
    size_t its = job_find(job);
    for (size_t i = 0; i < db.outbox_count; i++) {
        n += db.outbox[i].used && db.outbox[i].job == its ? 1 : 0;
    }
    return n;
}

int64_t contract_db_gap_firings(int schedule)
{
    int64_t n = 0;
    for (size_t i = 0; i < db.gap_count; i++) {
        n += db.gaps[i].schedule == schedule ? db.gaps[i].firings : 0;
    }
    return n;
}

void contract_db_cancel(const char *job)
{
    db.jobs[job_find(job)].cancel_requested = true;
}

void contract_db_hold(void)
{
    struct transaction t = {.node = -1, .scope = 0, .now = database_now()};
    (void)raise_hold(&t, 0);
}

void contract_db_lift(void)
{
    struct transaction t = {.node = -1, .scope = 0, .now = database_now()};
    for (size_t i = 0; i < db.hold_count; i++) {
        lift_hold(&t, (int)i);
    }
}

void contract_db_age(int64_t us)
{
    for (size_t i = 0; i < db.job_count; i++) {
        db.jobs[i].run_after -= us;
        db.jobs[i].lease_until -= us;
    }
    for (size_t i = 0; i < db.worker_count; i++) {
        db.workers[i].heartbeat_at -= us;
    }
    db.fences[0].reap_not_before -= us;
}

void contract_db_silence(int64_t us)
{
    db.fences[0].beat_at -= us;
}
