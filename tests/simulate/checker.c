#include "checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "checker_state.h"

struct checker *checker_new(const struct history *h)
{
    struct checker *c = calloc(1, sizeof *c);
    if (c == NULL) {
        (void)fprintf(stderr, "simulate: out of memory\n");
        abort();
    }
    c->h = h;
    c->setup = history_setup(h);
    c->faults_over_us = HISTORY_NONE;
    tables_clear(&c->tables);
    for (size_t i = 0; i < HISTORY_NODES; i++) {
        c->nodes[i].deadline_us = HISTORY_NONE;
    }
    return c;
}

void checker_free(struct checker *c)
{
    if (c == NULL) {
        return;
    }
    tables_free(&c->tables);
    free(c->candidates);
    free(c->calls);
    index_free(&c->asked_of);
    index_free(&c->produced);
    index_free(&c->report_of);
    index_free(&c->lost_tokens);
    free(c);
}

struct checker_tally checker_tally(const struct checker *c)
{
    return c->tally;
}

void blame(struct checker *c, const char *invariant, const char *format, ...)
{
    if (c->failed) {
        return;
    }
    c->failed = true;
    c->violation.invariant = invariant;
    c->violation.fact = c->judged;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(c->violation.text, sizeof c->violation.text, format, arguments);
    va_end(arguments);
}

struct call_record *call_find(struct checker *c, int64_t number)
{
    size_t at = (size_t)number;
    while (at >= c->call_count) {
        c->calls = rows_grow(c->calls, c->call_count, &c->call_room, sizeof *c->calls);
        c->calls[c->call_count++] = (struct call_record){.node = -1};
    }
    return &c->calls[at];
}

const struct fact *transaction_row(const struct checker *c, const struct transaction *x,
                                   size_t *position)
{
    for (size_t i = x->from + *position; i < x->to; i++) {
        const struct fact *f = history_at(c->h, i);
        if (f->kind >= FACT_ROW_ENSEMBLE && f->kind <= FACT_RENEWED && f->call == x->call->call) {
            *position = i - x->from + 1;
            return f;
        }
    }
    return NULL;
}

/* A commit ---------------------------------------------------------------------------------------
 */

static void clock_showed(struct checker *c, const struct fact *f)
{
    c->latest_db_us = f->db_us > c->latest_db_us ? f->db_us : c->latest_db_us;
}

static void judge_transaction(struct checker *c, const struct fact *f)
{
    const struct transaction x = {.call = f, .from = c->rows_from, .to = c->judged};
    struct call_record *call = call_find(c, f->call);
    size_t position = 0;
    const struct fact *row = transaction_row(c, &x, &position);
    c->rows_from = c->judged + 1;
    c->tally.calls++;
    clock_showed(c, f);
    c->tally.fenced += f->verdict == VERDICT_FENCED;
    if (call->done) {
        blame(c, "I4", "call %lld ran twice in the store", (long long)f->call);
    }
    while (row != NULL && row->kind == FACT_ROW_HOLD && f->verdict == VERDICT_HELD) {
        row = transaction_row(c, &x, &position); /* to refuse for good is to raise a hold */
    }
    if (row != NULL && f->verdict != VERDICT_OK) {
        blame(c, f->verdict == VERDICT_FENCED ? "I1" : "I4",
              "%s was refused or failed and has still written: %s", call_op_name(f->op),
              fact_kind_name(row->kind));
    }
    authority_before(c, &x);
    plan_before(c, &x);
    work_before(c, &x);
    position = 0;
    while ((row = transaction_row(c, &x, &position)) != NULL) {
        tables_apply(&c->tables, row);
    }
    plan_after(c, &x);
    work_after(c, &x);
    call->done = true;
    call->fenced = f->verdict == VERDICT_FENCED;
}

/* A failover -------------------------------------------------------------------------------------
 */

static void forget_token(struct checker *c, const struct fact *row)
{
    if (row->token != 0 && (row->kind == FACT_RENEWED || row->kind == FACT_ROW_JOB)) {
        index_put(&c->lost_tokens, row->token, 1);
    }
}

/* The surviving database is the baseline: the rows of all commits that were not lost, in their
 * order. */
static void rebuild(struct checker *c)
{
    tables_clear(&c->tables);
    work_budget_begins(c);
    for (size_t i = 0; i <= c->judged; i++) {
        const struct fact *f = history_at(c->h, i);
        if (f->kind < FACT_ROW_ENSEMBLE || f->kind > FACT_RENEWED) {
            continue;
        }
        if (call_find(c, f->call)->lost) {
            forget_token(c, f);
        } else {
            tables_apply(&c->tables, f);
        }
    }
    for (size_t i = 0; i < c->run_count; i++) {
        c->runs[i].excused |= index_find(&c->lost_tokens, c->runs[i].token) != SIZE_MAX;
    }
    c->rows_from = c->judged + 1;
}

static void take_failover(struct checker *c, const struct fact *f)
{
    if (f->kind == FACT_FAILOVER) {
        c->losses_to_come = f->number;
        c->tally.failovers++;
        c->tally.commits_lost += f->number;
    } else {
        call_find(c, f->call)->lost = true;
        c->losses_to_come--;
    }
    if (c->losses_to_come == 0) {
        rebuild(c);
    }
}

/* One fact ---------------------------------------------------------------------------------------
 */

static void judge(struct checker *c, const struct fact *f)
{
    c->tally.facts++;
    if (f->kind == FACT_CALL) {
        judge_transaction(c, f);
    } else if (f->kind == FACT_CLOCK_STEP) {
        work_budget_begins(c);
        clock_showed(c, f); /* the planner may have read it without a call in the history */
    } else if (f->kind == FACT_FAILOVER || f->kind == FACT_LOST) {
        take_failover(c, f);
    } else if (f->kind == FACT_FAULTS_OVER) {
        c->faults_over_us = f->at_us;
    } else if (f->kind == FACT_END) {
        end_judge(c, f);
    } else {
        authority_fact(c, f);
        work_fact(c, f);
    }
}

bool checker_step(struct checker *c, const struct violation **ret_violation)
{
    for (; !c->failed && c->judged < history_count(c->h); c->judged++) {
        judge(c, history_at(c->h, c->judged));
        if (c->failed) {
            break;
        }
    }
    if (c->failed && ret_violation != NULL) {
        *ret_violation = &c->violation;
    }
    return !c->failed;
}
