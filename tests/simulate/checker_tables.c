/* The rows as the facts say they are, and finding them. Judges nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker_state.h"

void *rows_grow(void *rows, size_t count, size_t *room, size_t size)
{
    if (count < *room) {
        return rows;
    }
    *room = *room == 0 ? 64 : *room * 2;
    void *larger = realloc(rows, *room * size);
    if (larger == NULL) {
        (void)fprintf(stderr, "simulate: out of memory\n");
        abort();
    }
    return larger;
}

uint64_t hash_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) ^ (b + UINT64_C(0x632be59bd9b4e019));
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x == 0 ? 1 : x;
}

static size_t slot_of(const struct index *x, uint64_t key)
{
    size_t slot = (size_t)hash_mix(key, 0) & (x->room - 1);
    while (x->keys[slot] != 0 && x->keys[slot] != key) {
        slot = (slot + 1) & (x->room - 1);
    }
    return slot;
}

size_t index_find(const struct index *x, uint64_t key)
{
    if (x->room == 0) {
        return SIZE_MAX;
    }
    size_t slot = slot_of(x, key);
    return x->keys[slot] == key ? x->values[slot] : SIZE_MAX;
}

static void index_enlarge(struct index *x)
{
    struct index larger = {.room = x->room == 0 ? 256 : x->room * 2};
    larger.keys = calloc(larger.room, sizeof *larger.keys);
    larger.values = calloc(larger.room, sizeof *larger.values);
    if (larger.keys == NULL || larger.values == NULL) {
        (void)fprintf(stderr, "simulate: out of memory\n");
        abort();
    }
    for (size_t i = 0; i < x->room; i++) {
        if (x->keys[i] != 0) {
            size_t slot = slot_of(&larger, x->keys[i]);
            larger.keys[slot] = x->keys[i];
            larger.values[slot] = x->values[i];
        }
    }
    larger.count = x->count;
    index_free(x);
    *x = larger;
}

void index_put(struct index *x, uint64_t key, size_t value)
{
    if (x->count * 2 >= x->room) {
        index_enlarge(x);
    }
    size_t slot = slot_of(x, key);
    x->count += x->keys[slot] == 0;
    x->keys[slot] = key;
    x->values[slot] = value;
}

void index_clear(struct index *x)
{
    if (x->room > 0) {
        memset(x->keys, 0, x->room * sizeof *x->keys);
    }
    x->count = 0;
}

void index_free(struct index *x)
{
    free(x->keys);
    free(x->values);
    *x = (struct index){.keys = NULL};
}

/* Finding -------------------------------------------------------------------------------------- */

struct version_row *version_row_find(struct schedule_rows *s, int version)
{
    for (size_t i = 0; i < s->version_count; i++) {
        if (s->versions[i].version == version) {
            return &s->versions[i];
        }
    }
    return NULL;
}

static uint64_t key_hash(int schedule, const char *key)
{
    uint64_t hash = (uint64_t)schedule + 1;
    for (const char *p = key; *p != '\0'; p++) {
        hash = hash_mix(hash, (uint64_t)(unsigned char)*p);
    }
    return hash;
}

const struct occurrence_row *occurrence_row_find(const struct tables *t, int schedule,
                                                 const char *key)
{
    size_t at = index_find(&t->keys, key_hash(schedule, key));
    return at == SIZE_MAX ? NULL : &t->schedules[schedule].occurrences[at];
}

const struct gap_row *gap_over(const struct schedule_rows *s, int64_t fire_us)
{
    for (size_t i = s->gap_count; i-- > 0;) {
        if (s->gaps[i].from_us <= fire_us && fire_us <= s->gaps[i].to_us) {
            return &s->gaps[i];
        }
    }
    return NULL;
}

struct job_row *job_row_find(const struct tables *t, uint64_t job)
{
    size_t at = index_find(&t->job_index, job);
    return at == SIZE_MAX ? NULL : &t->jobs[at];
}

struct outbox_row *outbox_row_find(const struct tables *t, int64_t id)
{
    size_t at = index_find(&t->outbox_index, (uint64_t)id);
    return at == SIZE_MAX ? NULL : &t->outbox[at];
}

bool scope_held(const struct tables *t, int scope)
{
    for (size_t i = 0; i < t->hold_count; i++) {
        if (!t->holds[i].lifted && (t->holds[i].scope < 0 || t->holds[i].scope == scope)) {
            return true;
        }
    }
    return false;
}

bool job_is_open(const struct job_row *j)
{
    return j->state != JOB_SUCCEEDED && j->state != JOB_FAILED && j->state != JOB_CANCELLED;
}

bool job_is_active(const struct job_row *j)
{
    return job_is_open(j) && j->waits != WAITS_FOR_OVERLAP;
}

/* Changing ------------------------------------------------------------------------------------- */

static void apply_version(struct schedule_rows *s, const struct fact *row)
{
    struct version_row *v = version_row_find(s, row->version);
    if (v == NULL) {
        if (s->version_count == VERSIONS_MAX) {
            (void)fprintf(stderr, "simulate: too many versions of schedule %d\n", row->schedule);
            abort();
        }
        v = &s->versions[s->version_count++];
    }
    *v = (struct version_row){.version = row->version,
                              .effective_us = row->effective_us,
                              .switched_us = HISTORY_NONE,
                              .recipe = row->recipe};
}

static void apply_progress(struct schedule_rows *s, const struct fact *row)
{
    struct version_row *v = version_row_find(s, row->version);
    if (v != NULL && (!s->progress.present || s->progress.version != row->version)) {
        v->switched_us = row->switched_us;
    }
    s->scope = row->scope;
    s->progress = (struct progress_row){.present = true,
                                        .problem = row->problem,
                                        .version = row->version,
                                        .step = row->step,
                                        .last_us = row->last_us,
                                        .next_us = row->next_us};
}

static void apply_occurrence(struct tables *t, const struct fact *row)
{
    struct schedule_rows *s = &t->schedules[row->schedule];
    s->occurrences =
        rows_grow(s->occurrences, s->occurrence_count, &s->occurrence_room, sizeof *s->occurrences);
    struct occurrence_row *o = &s->occurrences[s->occurrence_count];
    *o = (struct occurrence_row){
        .fire_us = row->fire_us, .job = row->job, .version = row->version, .cause = row->cause};
    memcpy(o->key, row->key, sizeof o->key);
    index_put(&t->keys, key_hash(row->schedule, row->key), s->occurrence_count++);
}

static void apply_gap(struct schedule_rows *s, const struct fact *row)
{
    size_t at = 0;
    while (at < s->gap_count && s->gaps[at].id != row->id) {
        at++;
    }
    if (at == s->gap_count) {
        s->gaps = rows_grow(s->gaps, s->gap_count, &s->gap_room, sizeof *s->gaps);
        s->gap_count++;
    }
    s->gaps[at] = (struct gap_row){.id = row->id,
                                   .from_us = row->from_us,
                                   .to_us = row->to_us,
                                   .firings = row->firings,
                                   .version = row->version,
                                   .gap = row->gap};
}

static void apply_job(struct tables *t, const struct fact *row)
{
    struct job_row *j = job_row_find(t, row->job);
    bool new_one = j == NULL;
    if (new_one) {
        t->jobs = rows_grow(t->jobs, t->job_count, &t->job_room, sizeof *t->jobs);
        index_put(&t->job_index, row->job, t->job_count);
        j = &t->jobs[t->job_count++];
        *j = (struct job_row){.job = row->job};
    }
    bool waited = new_one || j->state == JOB_WAITING;
    bool again = j->call == row->call; /* a job may change twice in one call */
    bool was_queued = again ? j->was_queued : !new_one && j->state == JOB_QUEUED;
    bool was_active = again ? j->was_active : !new_one && job_is_active(j);
    *j = (struct job_row){.job = row->job,
                          .was_queued = was_queued,
                          .was_active = was_active,
                          .call = row->call,
                          .token = row->token,
                          .worker = row->worker,
                          .schedule = row->schedule,
                          .scope = row->scope,
                          .queue = row->queue,
                          .attempt = row->attempt,
                          .state = row->job_state,
                          .waits = row->waits,
                          .overlap = row->overlap,
                          .lease_us = row->lease_us,
                          .run_after_us = row->run_after_us,
                          .catch_up = row->catch_up,
                          .artifact = j->artifact,
                          .ready_us = waited ? row->at_us : j->ready_us};
}

static void apply_outbox(struct tables *t, const struct fact *row)
{
    struct outbox_row *o = outbox_row_find(t, row->id);
    if (o == NULL) {
        t->outbox = rows_grow(t->outbox, t->outbox_count, &t->outbox_room, sizeof *t->outbox);
        index_put(&t->outbox_index, (uint64_t)row->id, t->outbox_count);
        o = &t->outbox[t->outbox_count++];
    }
    *o = (struct outbox_row){.id = row->id, .job = row->job, .present = true};
}

static void apply_hold(struct tables *t, const struct fact *row)
{
    size_t at = 0;
    while (at < t->hold_count && t->holds[at].id != row->id) {
        at++;
    }
    if (at == sizeof t->holds / sizeof t->holds[0]) {
        (void)fprintf(stderr, "simulate: too many holds\n");
        abort();
    }
    t->hold_count += at == t->hold_count;
    t->holds[at] = (struct hold_row){.id = row->id, .scope = row->scope, .lifted = row->lifted};
}

static void apply_authority(struct tables *t, const struct fact *row)
{
    if (row->kind == FACT_ROW_FENCE) {
        t->fences[row->scope] = (struct fence_row){.incarnation = row->incarnation,
                                                   .generation = row->generation,
                                                   .owner = row->owner,
                                                   .released = row->released};
    } else if (row->kind == FACT_ROW_PULSE) {
        t->reap_not_before[row->scope] = row->until_us;
    } else if (row->kind == FACT_ROW_ENSEMBLE &&
               t->incarnation_count < sizeof t->incarnations / sizeof t->incarnations[0]) {
        t->incarnations[t->incarnation_count++] = row->incarnation;
    } else if (row->kind == FACT_ROW_HOLD) {
        apply_hold(t, row);
    }
}

static void apply_work(struct tables *t, const struct fact *row)
{
    if (row->kind == FACT_ROW_JOB) {
        apply_job(t, row);
    } else if (row->kind == FACT_ROW_OUTBOX) {
        apply_outbox(t, row);
    } else if (row->kind == FACT_ROW_OUTBOX_GONE) {
        struct outbox_row *o = outbox_row_find(t, row->id);
        if (o != NULL) {
            o->present = false;
        }
    } else if (row->kind == FACT_ROW_ARTIFACT) {
        struct job_row *j = job_row_find(t, row->job);
        if (j != NULL) {
            j->artifact = true;
        }
    } else if (row->kind == FACT_RENEWED) {
        struct job_row *j = job_row_find(t, row->job);
        if (j != NULL) {
            j->lease_us = row->lease_us;
        }
    }
}

void tables_apply(struct tables *t, const struct fact *row)
{
    if (row->kind == FACT_ROW_VERSION) {
        apply_version(&t->schedules[row->schedule], row);
    } else if (row->kind == FACT_ROW_PROGRESS) {
        apply_progress(&t->schedules[row->schedule], row);
    } else if (row->kind == FACT_ROW_OCCURRENCE) {
        apply_occurrence(t, row);
    } else if (row->kind == FACT_ROW_GAP) {
        apply_gap(&t->schedules[row->schedule], row);
    } else {
        apply_authority(t, row);
        apply_work(t, row);
    }
}

void tables_clear(struct tables *t)
{
    for (size_t i = 0; i < HISTORY_SCHEDULES; i++) {
        struct schedule_rows *s = &t->schedules[i];
        s->version_count = s->occurrence_count = s->gap_count = 0;
        s->progress = (struct progress_row){.present = false};
    }
    for (size_t i = 0; i < HISTORY_SCOPES; i++) {
        t->fences[i] = (struct fence_row){.generation = 0};
        t->reap_not_before[i] = HISTORY_NONE;
    }
    t->job_count = t->outbox_count = t->hold_count = t->incarnation_count = 0;
    index_clear(&t->keys);
    index_clear(&t->job_index);
    index_clear(&t->outbox_index);
}

void tables_free(struct tables *t)
{
    for (size_t i = 0; i < HISTORY_SCHEDULES; i++) {
        free(t->schedules[i].occurrences);
        free(t->schedules[i].gaps);
    }
    free(t->jobs);
    free(t->outbox);
    index_free(&t->keys);
    index_free(&t->job_index);
    index_free(&t->outbox_index);
}
