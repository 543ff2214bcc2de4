#include "store_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct store *lead;
struct store *work;
struct authority leader; /* established, with the highest generation so far */
static int64_t generation = 1000;
char me[UUID_TEXT_MAX];

instant soon(void)
{
    return instant_add_ms(clock_now(), 5000);
}

struct authority candidate(void)
{
    struct authority a = {.scope = "main", .incarnation = 1, .generation = ++generation};
    uuid_random(a.owner);
    return a;
}

enum status step_establish(struct store *store, const struct authority *a)
{
    static const struct fence_member member = {.name = "contract"};
    return fence_establish(store, a, &member, soon(), NULL);
}

struct store_call by(const struct authority *a)
{
    return (struct store_call){lead, a, soon()};
}

utc_us now_there(void)
{
    utc_us now = UTC_NONE;
    assert_int_equal(store_clock(lead, soon(), &now, NULL), STATUS_OK);
    return now;
}

/* Schedules ------------------------------------------------------------------------------------ */

static void name_of(int schedule, char ret_name[NAME_MAX_BYTES])
{
    (void)snprintf(ret_name, NAME_MAX_BYTES, "schedule-%02d", schedule);
}

enum status take_in_as(const struct authority *a, const struct change_row *change,
                       bool *ret_written)
{
    struct written_rows *written = calloc(1, sizeof *written);
    int64_t now = now_there().us / 1000000 * 1000000;
    struct take_in_row row = {
        .change = change,
        .where = {.switched_at = {now - 2 * HOUR_US},
                  .next = {.found = true,
                           .at = {now - HOUR_US},
                           .nominal = {(now - HOUR_US) / 1000000},
                           .utc_in_key = true},
                  .has_form = true,
                  .form = KEY_SECOND},
    };
    struct store_call call = by(a);
    assert_non_null(written);
    enum status s = store_take_in(&call, &row, 1, "test", written, NULL);
    *ret_written = s == STATUS_OK && written->written[0];
    free(written);
    return s;
}

bool change_find(int schedule, struct change_row *ret_row)
{
    char name[NAME_MAX_BYTES];
    struct change_rows rows = {.max = 50, .rows = calloc(50, sizeof rows.rows[0])};
    struct store_call call = by(&leader);
    bool found = false;
    name_of(schedule, name);
    assert_non_null(rows.rows);
    assert_int_equal(store_changes(&call, "", &rows, NULL), STATUS_OK);
    for (size_t i = 0; i < rows.count && !found; i++) {
        found = strcmp(rows.rows[i].schedule, name) == 0;
        *ret_row = found ? rows.rows[i] : *ret_row;
    }
    free(rows.rows);
    return found;
}

void schedule_take_in(int schedule)
{
    struct change_row change;
    bool written = false;
    assert_true(change_find(schedule, &change));
    assert_int_equal(take_in_as(&leader, &change, &written), STATUS_OK);
    assert_true(written);
}

void schedule_new(int schedule, const char *overlap, int queue)
{
    contract_db_edit(
        &(struct contract_schedule){.number = schedule, .overlap = overlap, .queue = queue});
    schedule_take_in(schedule);
}

/* Version and step of a schedule's progress. */
struct due_row progress_of(int schedule)
{
    char name[NAME_MAX_BYTES];
    const char *names[] = {name};
    struct due_rows rows = {.max = 1, .rows = calloc(1, sizeof rows.rows[0])};
    struct store_call call = by(&leader);
    name_of(schedule, name);
    assert_non_null(rows.rows);
    assert_int_equal(store_progress_of(&call, names, 1, &rows, NULL), STATUS_OK);
    assert_int_equal(rows.count, 1);
    struct due_row row = rows.rows[0];
    free(rows.rows);
    return row;
}

/* One firing of one schedule, as read just now. Its job's id is written also when it fails. */
enum status plan_over(struct store *store, const struct authority *a, struct plan p,
                      char ret_job[UUID_TEXT_MAX], bool *ret_written, struct error *err)
{
    struct due_row row = progress_of(p.schedule);
    struct plan_batch *b = plan_batch_new();
    struct plan_written *written = calloc(1, sizeof *written);
    struct store_call call = {store, a, instant_add_ms(clock_now(), 1500)};
    int64_t now = now_there().us;
    int64_t at = (now - p.ago_us) / 1000000 * 1000000;
    assert_non_null(b);
    assert_non_null(written);
    struct firing fired = {
        .found = true, .at = {at}, .nominal = {at / 1000000}, .utc_in_key = true};
    struct firing next = fired;
    next.at.us += HOUR_US;
    next.nominal.s += HOUR_US / 1000000;
    b->entries[0] = (struct plan_entry){.version = row.version,
                                        .step = row.step + p.step_off,
                                        .result = {.moved = true, .last = fired, .next = next},
                                        .firing_end = 1};
    memcpy(b->entries[0].schedule, row.schedule, sizeof row.schedule);
    b->count = 1;
    b->sink.firing_count = 1;
    b->sink.firings[0] =
        (struct planned_firing){.firing = fired, .window_start = UTC_NONE, .cause = p.cause};
    (void)snprintf(b->sink.firings[0].key, sizeof b->sink.firings[0].key, "%s", p.key);
    uuid_time_ordered((utc_us){now}, b->job_ids[0]);
    memcpy(ret_job, b->job_ids[0], UUID_TEXT_MAX);
    (void)snprintf(b->known, sizeof b->known, "%s", p.known == NULL ? "" : p.known);
    enum status s = store_plan_batch(&call, b, 0, 1, "test", written, err);
    if (ret_written != NULL) {
        *ret_written = s == STATUS_OK && written->rows.written[0];
        assert_true(!*ret_written || written->rows.count == 1);
    }
    free(written);
    plan_batch_free(b);
    return s;
}

enum status plan_as(const struct authority *a, struct plan p, char ret_job[UUID_TEXT_MAX],
                    bool *ret_written, struct error *err)
{
    return plan_over(lead, a, p, ret_job, ret_written, err);
}

void step_plan(int schedule, const char *key, char ret_job[UUID_TEXT_MAX])
{
    bool written = false;
    assert_int_equal(
        plan_as(&leader, (struct plan){.schedule = schedule, .key = key}, ret_job, &written, NULL),
        STATUS_OK);
    assert_true(written);
}

struct tended step_tend(void)
{
    struct tended t = {.released = -1};
    struct store_call call = by(&leader);
    assert_int_equal(store_tend(&call, (struct tend_terms){.limit = 100},
                                (struct tend_clock){UTC_NONE, UTC_NONE}, &t, NULL),
                     STATUS_OK);
    return t;
}

/* Work ----------------------------------------------------------------------------------------- */

struct heartbeat_reply no_reply; /* where no pair is sent */
const struct setting_list queues = {.count = 2, .items = {"queue-0", "queue-1"}};

enum status register_worker(const char *id)
{
    struct worker_agreement agreement = {.lease_ms = -1};
    const struct worker_identity w = {
        .id = id, .name = "contract", .pid = 1, .version = "0", .queues = &queues, .slots = 4};
    enum status s = store_worker_register(work, &w, soon(), &agreement, NULL);
    assert_true(s != STATUS_OK || agreement.lease_ms == 60000);
    return s;
}

/* The token of the job's claim, "" when it was not claimed. */
void claim_as(const char *worker, const char *job, char ret_token[UUID_TEXT_MAX])
{
    char ids[1][UUID_TEXT_MAX];
    struct job_list list = {.count = 99};
    memcpy(ids[0], job, sizeof ids[0]);
    const struct claim_request request = {
        .worker = worker, .queues = &queues, .ids = (const char(*)[UUID_TEXT_MAX])ids, .count = 1};
    assert_int_equal(store_claim_ids(work, &request, soon(), &list, NULL), STATUS_OK);
    assert_in_range(list.count, 0, 1);
    ret_token[0] = '\0';
    if (list.count == 1) {
        assert_string_equal(list.jobs[0]->id, job);
        memcpy(ret_token, list.jobs[0]->token, UUID_TEXT_MAX);
    }
    job_list_free(&list);
}

void step_claim(const char *job, char ret_token[UUID_TEXT_MAX])
{
    claim_as(me, job, ret_token);
    assert_true(ret_token[0] != '\0');
    assert_string_equal(contract_db_state(job), "running");
}

enum status report_over(struct store *store, const char *job, const char *token,
                        const struct outcome *o, enum outcome_verdict *ret_verdict)
{
    const struct outcome_report report = {job, token, o};
    return store_record_outcomes(store, &report, 1, instant_add_ms(clock_now(), 1500), ret_verdict,
                                 NULL);
}

enum outcome_verdict step_report(const char *job, const char *token, enum outcome_kind kind,
                                 bool retryable)
{
    enum outcome_verdict verdict = VERDICT_LOCKED;
    const struct outcome o = {.kind = kind, .retryable = retryable, .rows = -1};
    assert_int_equal(report_over(work, job, token, &o, &verdict), STATUS_OK);
    return verdict;
}

struct heartbeat_reply beat_as(const char *worker, const char *job, const char *token)
{
    struct heartbeat_reply reply = {.held = false};
    struct claim_pair pair = {.attempt = 1};
    (void)snprintf(pair.job_id, sizeof pair.job_id, "%s", job);
    (void)snprintf(pair.token, sizeof pair.token, "%s", token);
    assert_int_equal(store_heartbeat(work, worker, &pair, 1, soon(), &reply, NULL), STATUS_OK);
    return reply;
}

int store_begin(void **state)
{
    (void)state;
    enum fence_ensemble meeting = FENCE_ENSEMBLE_UNKNOWN;
    int64_t incarnation = 0;
    contract_db_begin();
    lead = contract_db_open(SIDE_SURE, STORE_SCHEDULER);
    work = contract_db_open(SIDE_SURE, STORE_WORKER);
    assert_int_equal(fence_meet(lead, "e-one", "contract", soon(), &meeting, &incarnation, NULL),
                     STATUS_OK);
    assert_int_equal(meeting, FENCE_ENSEMBLE_ADOPTED);
    assert_int_equal(incarnation, 1);
    leader = candidate();
    assert_int_equal(step_establish(lead, &leader), STATUS_OK);
    uuid_random(me);
    assert_int_equal(register_worker(me), STATUS_OK);
    return 0;
}

int store_end(void **state)
{
    (void)state;
    contract_db_way(WAY_OPEN);
    store_close(lead);
    store_close(work);
    contract_db_end();
    return 0;
}
