/* What the cases of the store contract are made of: a leader, a worker, schedules, and steps that
 * must succeed. Failures are the test's failures. */
#ifndef RS_CONTRACT_STORE_STEPS_H
#define RS_CONTRACT_STORE_STEPS_H

#include "contract.h"
#include "store_claim.h"
#include "store_fence.h"
#include "store_outbox.h"
#include "store_plan.h"
#include "store_release.h"

#define HOUR_US   INT64_C(3600000000)
#define MINUTE_US INT64_C(60000000)

extern struct store *lead, *work; /* undisturbed connections */
extern struct authority leader;   /* established, with the highest generation so far */
extern char me[UUID_TEXT_MAX];    /* a registered worker */
extern const struct setting_list queues;
extern struct heartbeat_reply no_reply; /* where no pair is sent */

/* Before and after each case. */
int store_begin(void **state);
int store_end(void **state);

struct plan {
    int schedule;
    const char *key;
    int64_t ago_us;
    int64_t step_off; /* added to the step that was read */
    enum plan_cause cause;
    const char *known; /* a job that must be there; NULL: none */
};

instant soon(void);
struct authority candidate(void);
enum status step_establish(struct store *store, const struct authority *a);
struct store_call by(const struct authority *a);
utc_us now_there(void);
enum status take_in_as(const struct authority *a, const struct change_row *change,
                       bool *ret_written);
bool change_find(int schedule, struct change_row *ret_row);
void schedule_take_in(int schedule);
void schedule_new(int schedule, const char *overlap, int queue);
struct due_row progress_of(int schedule);
enum status plan_over(struct store *store, const struct authority *a, struct plan p,
                      char ret_job[UUID_TEXT_MAX], bool *ret_written, struct error *err);
enum status plan_as(const struct authority *a, struct plan p, char ret_job[UUID_TEXT_MAX],
                    bool *ret_written, struct error *err);
void step_plan(int schedule, const char *key, char ret_job[UUID_TEXT_MAX]);
struct tended step_tend(void);
enum status register_worker(const char *id);
void claim_as(const char *worker, const char *job, char ret_token[UUID_TEXT_MAX]);
void step_claim(const char *job, char ret_token[UUID_TEXT_MAX]);
enum status report_over(struct store *store, const char *job, const char *token,
                        const struct outcome *o, enum outcome_verdict *ret_verdict);
enum outcome_verdict step_report(const char *job, const char *token, enum outcome_kind kind,
                                 bool retryable);
struct heartbeat_reply beat_as(const char *worker, const char *job, const char *token);

#define STORE_CASE(name) cmocka_unit_test_setup_teardown(name, store_begin, store_end)

#endif
