/* Pauses that have an end. The leader makes the edit that ends one, dated back to its paused_until,
 * so that nothing depends on when somebody led: then it is taken in like any other. */
#include "log.h"
#include "planning_state.h"

#define RESUME_MAX 200 /* a call */

enum status planning_resume(struct planning *p, struct error *err)
{
    struct store_call call;
    struct resumed r = {0};
    if (!p->resumes) {
        return STATUS_OK;
    }
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_resume_paused(&call, RESUME_MAX, &r, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    if (r.count > 0) {
        log_event(LOG_LEVEL_INFO, "pauses are over", "scope=%s schedules=%lld", p->authority->scope,
                  (long long)r.count);
    }
    if (r.fault[0] != '\0') {
        log_event(LOG_LEVEL_WARN, "a paused schedule cannot go on", "scope=%s error=%s",
                  p->authority->scope, log_quote(r.fault).text);
    }
    if (r.locked[0] != '\0') {
        rest_skip(&p->rest, r.locked, clock_now());
    }
    p->resumes = r.count == RESUME_MAX || r.locked[0] != '\0' || r.fault[0] != '\0';
    p->next_known = p->next_known && r.count == 0;
    p->result.more = p->result.more || r.count == RESUME_MAX;
    return STATUS_OK;
}
