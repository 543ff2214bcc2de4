#include "fixture_verify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "civil.h"
#include "ledger_verify.h"

#define STATEMENT_MS 30000

static char findings[16384];
static struct ledger_counts counts;
static int64_t parts;

static void finding_note(void *context, const struct ledger_finding *f)
{
    static const char *const verdicts[] = {"wrong", "look", "unchecked"};
    size_t *used = context;
    if (*used < sizeof findings) {
        int n = snprintf(findings + *used, sizeof findings - *used, "%s%s %s:%s %s %lld: %s",
                         *used > 0 ? "\n" : "", verdicts[f->verdict], f->schedule, f->key, f->what,
                         (long long)f->firings, f->detail);
        *used += n > 0 ? (size_t)n : 0;
    }
}

static void part_note(void *context, utc_us until)
{
    (void)until;
    int64_t *n = context;
    ++*n;
}

const char *fixture_verify(int days)
{
    struct store *store = NULL;
    struct error err = {.text = ""};
    size_t used = 0;
    utc_us now;
    struct ledger_sink sink = {.add = finding_note, .context = &used};
    struct store_options where = {
        .conninfo = fixture_plan_conninfo(), .application_name = "verify", .role = STORE_ADMIN};
    findings[0] = '\0';
    /* The scheduler's role reads what people read, but not their functions: as superuser. */
    char super[512];
    (void)snprintf(super, sizeof super, "%s dbname=%s", fixture_environment("RS_PG_SUPER"),
                   fixture_sql("SELECT current_database()"));
    where.conninfo = super;
    instant deadline = instant_add_ms(clock_now(), STATEMENT_MS);
    assert_int_equal(store_open(&where, deadline, &store, &err), STATUS_OK);
    assert_int_equal(store_clock(store, deadline, &now, &err), STATUS_OK);
    struct ledger_verify_options options = {
        .from = {now.us - (int64_t)days * SECONDS_A_DAY * MICROS_A_SECOND},
        .to = {now.us + 1},
        .to_now = true,
        .statement_ms = STATEMENT_MS,
        .looked = part_note,
        .looked_context = &parts,
    };
    parts = 0;
    enum status s = ledger_verify(store, &options, &sink, &err);
    store_close(store);
    if (s != STATUS_OK) {
        fail_msg("verify: %s %s", status_name(s), err.text);
    }
    counts = sink.counts;
    return findings;
}

const struct ledger_counts *fixture_verified(void)
{
    return &counts;
}

void fixture_proved(int days, int64_t due_at_least)
{
    const char *found = fixture_verify(days);
    if (found[0] != '\0') {
        fail_msg("%s", found);
    }
    assert_int_equal(counts.due, counts.planned + counts.in_gaps + counts.not_yet);
    assert_true(counts.due >= due_at_least);
}

int64_t fixture_verified_parts(void)
{
    return parts;
}
