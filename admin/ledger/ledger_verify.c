#include "ledger_verify.h"

#include <stdlib.h>
#include <string.h>

#include "store_verify.h"

#define CHUNK_FIRINGS 50000
#define SLICE_US      ((int64_t)SECONDS_A_DAY * MICROS_A_SECOND) /* of what the server checks */
#define STRETCH_US    (100 * SLICE_US) /* in which there may be nothing to check */

struct run {
    struct store *store;
    const struct ledger_verify_options *options;
    struct ledger_sink *sink; /* the caller's */
    struct ledger_sink inner; /* of ledger_check: in->doubts */
    struct zone_set *zones;
    struct plan_candidates *candidates;
    struct verify_page *page;
    struct ledger_finding *doubts; /* VERIFY_DOUBTS_MAX, in the order they came */
    size_t doubt_count;
    struct ledger_finding open; /* may be joined by what follows; 0 firings: none */
    enum status status;         /* of the first look-up that failed */
    struct error *err;
};

static instant deadline_of(const struct run *run)
{
    return instant_add_ms(clock_now(), run->options->statement_ms);
}

static void open_close(struct run *run)
{
    if (run->open.firings > 0) {
        run->sink->add(run->sink->context, &run->open);
        run->open.firings = 0;
    }
}

/* What is the same of firings that follow one another is said once. */
static void finding_tell(struct run *run, const struct ledger_finding *f)
{
    struct ledger_finding *open = &run->open;
    if (open->firings > 0 && f->follows && f->doubt == DOUBT_MISSING &&
        open->doubt == DOUBT_MISSING && open->version == f->version &&
        strcmp(open->schedule, f->schedule) == 0) {
        open->to = f->to;
        open->firings += f->firings;
        memcpy(open->to_key, f->to_key, sizeof open->to_key);
        return;
    }
    open_close(run);
    *open = *f;
    if (f->doubt != DOUBT_MISSING) {
        open_close(run);
    }
}

static void doubts_settle(struct run *run)
{
    bool stands[VERIFY_DOUBTS_MAX];
    if (run->doubt_count > 0 && run->status == STATUS_OK) {
        run->status = store_verify_doubts(run->store, run->doubts, run->doubt_count,
                                          deadline_of(run), stands, run->err);
    }
    for (size_t i = 0; run->status == STATUS_OK && i < run->doubt_count; i++) {
        bool planned = !stands[i] && run->doubts[i].doubt == DOUBT_MISSING;
        run->sink->counts.planned += planned ? 1 : 0;
        if (stands[i]) {
            finding_tell(run, &run->doubts[i]);
        }
    }
    run->doubt_count = 0;
}

static void finding_take(void *context, const struct ledger_finding *f)
{
    struct run *run = context;
    if (f->doubt == DOUBT_NONE) {
        doubts_settle(run); /* in order */
        finding_tell(run, f);
        return;
    }
    run->doubts[run->doubt_count++] = *f;
    if (run->doubt_count == VERIFY_DOUBTS_MAX) {
        doubts_settle(run);
    }
}

static void counts_add(struct ledger_counts *to, const struct ledger_counts *n)
{
    to->due += n->due;
    to->planned += n->planned;
    to->in_gaps += n->in_gaps;
    to->not_yet += n->not_yet;
    to->withheld += n->withheld;
}

static void chunk_judge(struct run *run, struct verify_chunk *chunk, struct ledger_span span)
{
    span.now = chunk->now;
    for (size_t i = 0; i < chunk->count; i++) {
        run->inner.counts = (struct ledger_counts){0};
        ledger_check(&chunk->subjects[i], &span, run->candidates, &run->inner);
        counts_add(&run->sink->counts, &run->inner.counts);
    }
    doubts_settle(run);
    open_close(run);
}

/* Some schedules of the page over a part of the span. */
static enum status chunk_run(struct run *run, size_t first, size_t count, struct ledger_span span)
{
    struct verify_chunk *chunk = NULL;
    struct verify_part part = {run->page, first, count, {span.from, span.to}};
    enum status s =
        store_verify_chunk(run->store, &part, run->zones, deadline_of(run), &chunk, run->err);
    if (s == STATUS_OK && chunk->full) {
        s = error_set(run->err, STATUS_FULL,
                      "schedule \"%s\": more than %d occurrences in a part of the span; ask for a "
                      "shorter one with --from and --to",
                      run->page->names[first], VERIFY_ROWS_MOST);
    }
    if (s == STATUS_OK) {
        chunk_judge(run, chunk, span);
        s = run->status;
    }
    verify_chunk_free(chunk);
    return s;
}

/* One schedule that fires so often that its firings are read in slices. */
static enum status slices_run(struct run *run, size_t index, struct ledger_span whole)
{
    int64_t slices = run->page->firings[index] / CHUNK_FIRINGS + 1;
    int64_t length = (whole.to.us - whole.from.us) / slices + 1;
    enum status s = STATUS_OK;
    for (int64_t from = whole.from.us; s == STATUS_OK && from < whole.to.us; from += length) {
        struct ledger_span span = whole;
        span.from.us = from;
        span.to.us = whole.to.us - from > length ? from + length : whole.to.us;
        span.to_now = whole.to_now && span.to.us == whole.to.us;
        s = chunk_run(run, index, 1, span);
    }
    return s;
}

static enum status page_run(struct run *run, struct ledger_span span)
{
    const struct verify_page *page = run->page;
    enum status s = STATUS_OK;
    size_t i = 0;
    while (s == STATUS_OK && i < page->count) {
        size_t first = i;
        int64_t sum = page->firings[i++];
        while (i < page->count && sum + page->firings[i] <= CHUNK_FIRINGS) {
            sum += page->firings[i++];
        }
        s = sum > CHUNK_FIRINGS ? slices_run(run, first, span)
                                : chunk_run(run, first, i - first, span);
    }
    run->sink->counts.schedules += (int64_t)page->count;
    return s;
}

static enum status pages_run(struct run *run)
{
    const struct ledger_verify_options *o = run->options;
    struct ledger_span span = {
        .from = o->from, .to = o->to, .to_now = o->to_now, .grace_us = o->grace_us};
    char after[NAME_MAX_BYTES] = "";
    enum status s = STATUS_OK;
    do {
        s = store_verify_page(run->store, after, o->schedule, (struct verify_span){o->from, o->to},
                              deadline_of(run), run->page, run->err);
        if (s == STATUS_OK && run->page->count > 0) {
            memcpy(after, run->page->names[run->page->count - 1], sizeof after);
            s = page_run(run, span);
        }
    } while (s == STATUS_OK && run->page->count == VERIFY_PAGE_MAX);
    return s;
}

static enum status slice_run(struct run *run, struct verify_span slice)
{
    const struct ledger_verify_options *o = run->options;
    static const enum verify_query queries[] = {VERIFY_STRAYS, VERIFY_JOBS, VERIFY_ORPHANS};
    enum status s = STATUS_OK;
    for (size_t i = 0; s == STATUS_OK && i < sizeof queries / sizeof queries[0]; i++) {
        s = store_verify_query(run->store, queries[i], slice, o->schedule, deadline_of(run),
                               run->sink, run->err);
    }
    if (s == STATUS_OK && o->looked != NULL) {
        o->looked(o->looked_context, slice.to);
    }
    return s;
}

static struct verify_span part_of(utc_us from, utc_us end, int64_t length)
{
    return (struct verify_span){from, {end.us - from.us > length ? from.us + length : end.us}};
}

/* What needs no rule, a day at a time; stretches of a long span without any record are passed over:
 * a century is asked for easily. */
static enum status queries_run(struct run *run)
{
    const struct ledger_verify_options *o = run->options;
    bool is_long = o->to.us - o->from.us > STRETCH_US;
    enum status s = STATUS_OK;
    utc_us from = o->from;
    while (s == STATUS_OK && from.us < o->to.us) {
        struct verify_span stretch = part_of(from, o->to, STRETCH_US);
        bool any = true;
        if (is_long) {
            s = store_verify_any(run->store, stretch, deadline_of(run), &any, run->err);
        }
        while (s == STATUS_OK && any && from.us < stretch.to.us) {
            struct verify_span slice = part_of(from, stretch.to, SLICE_US);
            s = slice_run(run, slice);
            from = slice.to;
        }
        from = stretch.to;
    }
    return s;
}

enum status ledger_verify(struct store *store, const struct ledger_verify_options *options,
                          struct ledger_sink *sink, struct error *err)
{
    struct run run = {
        .store = store, .options = options, .sink = sink, .status = STATUS_OK, .err = err};
    run.inner = (struct ledger_sink){.add = finding_take, .context = &run};
    run.candidates = calloc(1, sizeof *run.candidates);
    run.page = calloc(1, sizeof *run.page);
    run.doubts = calloc(VERIFY_DOUBTS_MAX, sizeof run.doubts[0]);
    enum status s = STATUS_OK;
    if (run.candidates == NULL || run.page == NULL || run.doubts == NULL) {
        s = error_set(err, STATUS_FATAL, "out of memory");
    }
    if (s == STATUS_OK) {
        s = zone_set_open(options->tz_directory, &run.zones, err);
    }
    if (s == STATUS_OK) {
        s = pages_run(&run);
    }
    if (s == STATUS_OK) {
        s = queries_run(&run);
    }
    zone_set_close(run.zones);
    free(run.candidates);
    free(run.page);
    free(run.doubts);
    return s;
}
