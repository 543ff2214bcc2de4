/* For integration tests of planning: a leader with its planning, and schedules with a past. */
#ifndef RS_FIXTURE_LEADER_H
#define RS_FIXTURE_LEADER_H

#include "fixture_plan.h"
#include "planning.h"

struct leader {
    struct planning *planning;
    struct store *store;
    struct authority authority;
    struct lease lease;
    int64_t look_ms;          /* as planning_options; set it before leader_prepare; 0: as usual */
    const char *tz_directory; /* the same */
    int64_t tz_poll_ms;       /* the same; 0: a minute */
    int64_t statement_ms;     /* the same; 0: 5 s */
};

/* Establish a new generation. The caller ends with leader_leave. */
struct leader leader_make(void);
/* The same with statements that may last, and wait for somebody, for up to 50 s. */
struct leader leader_make_patient(void);

/* Planning with a lease of a minute; fails the test. */
void leader_prepare(struct leader *l);
void leader_leave(struct leader *l);

/* One step; what failed is printed. */
enum status leader_step(struct leader *l, bool notified, struct planning_result *r);

/* Steps, the first as after a NOTIFY, until nothing is left to do right now. Returns the
 * occurrences planned. */
unsigned leader_settle(struct leader *l);

/* A leader comes, plans what is due, and goes. */
void fixture_lead_once(void);

/* Steps until the query gives the wanted value. False when the time is over. */
bool leader_step_until(struct leader *l, const char *sql, const char *want, int64_t ms);

/* A schedule of the report `nothing`, as if it had been written `age` ago. `more`: further
 * columns as in UPDATE ... SET, or NULL; they must change something. */
void fixture_schedule(const char *name, const char *kind, const char *rule, const char *age,
                      const char *more);

/* "" for none. Valid until the next query. */
const char *fixture_problem(const char *name);

#endif
