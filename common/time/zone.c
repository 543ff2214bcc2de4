#include "zone.h"

#include <stdlib.h>
#include <string.h>

#include "zone_footer.h"

/* The Gregorian calendar, and with it every footer rule, repeats after 400 years to the second:
 * the table holds one whole cycle behind the last listed transition, and later times are folded
 * into it. So there is one way of looking up, and no year at which it ends. */
#define CYCLE_YEARS    400
#define CYCLE_S        ((int64_t)146097 * SECONDS_A_DAY)
#define EXTENDED_YEARS (CYCLE_YEARS + 5) /* two years before fold_from, some behind the cycle */

/* Beyond this (18 thousand million years) sums could overflow; zic writes nothing before it. */
#define TRANSITION_LIMIT ((int64_t)1 << 59)
#define TRANSITIONS_MAX  4000

struct zone {
    char name[ZONE_NAME_MAX];
    bool folds;        /* the footer changes the clock, so that times from fold_from repeat */
    int64_t fold_from; /* utc_s, at least a year behind the last listed transition */
    size_t count;
    int64_t *at;     /* [count], ascending */
    int32_t *offset; /* [count + 1]: offset[i] until at[i], offset[i + 1] from it on */
};

/* The six counts of a TZif header. */
struct counts {
    uint32_t isut, isstd, leap, time, type, character;
};

/* The 64-bit data block and the footer behind it, within the caller's bytes. */
struct block {
    struct counts counts;
    const unsigned char *data;
    const char *footer;
    size_t footer_size;
};

#define HEADER_BYTES 44

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int32_t read_i32(const unsigned char *p)
{
    return (int32_t)read_u32(p);
}

static int64_t read_i64(const unsigned char *p)
{
    return (int64_t)((uint64_t)read_u32(p) << 32 | read_u32(p + 4));
}

static bool header_read(const unsigned char *bytes, size_t size, size_t at, struct counts *ret)
{
    if (at > size || size - at < HEADER_BYTES || memcmp(bytes + at, "TZif", 4) != 0) {
        return false;
    }
    const unsigned char *p = bytes + at + 20;
    *ret = (struct counts){
        .isut = read_u32(p),
        .isstd = read_u32(p + 4),
        .leap = read_u32(p + 8),
        .time = read_u32(p + 12),
        .type = read_u32(p + 16),
        .character = read_u32(p + 20),
    };
    return true;
}

/* Bytes of the data block behind a header. Six 32-bit counts times at most 12 fit 64 bits. */
static uint64_t block_bytes(const struct counts *c, uint64_t time_bytes)
{
    return c->time * (time_bytes + 1) + (uint64_t)c->type * 6 + c->character +
           c->leap * (time_bytes + 4) + c->isstd + c->isut;
}

static enum status block_find(const unsigned char *bytes, size_t size, struct block *ret_block,
                              struct error *err)
{
    struct counts c;
    if (!header_read(bytes, size, 0, &c)) {
        return error_set(err, STATUS_INVALID, "it is not a TZif file, or cut off");
    }
    if (bytes[4] < '2') {
        return error_set(err, STATUS_INVALID,
                         "it is a TZif file of version 1, which ends in 2038; install a current "
                         "tzdata");
    }
    uint64_t skip = block_bytes(&c, 4);
    if (skip > size - HEADER_BYTES || !header_read(bytes, size, HEADER_BYTES + (size_t)skip, &c)) {
        return error_set(err, STATUS_INVALID, "it is cut off before its 64-bit data");
    }
    size_t at = HEADER_BYTES + (size_t)skip + HEADER_BYTES;
    uint64_t length = block_bytes(&c, 8);
    if (length > size - at) {
        return error_set(err, STATUS_INVALID, "it is cut off within its 64-bit data");
    }
    if (c.leap != 0) {
        return error_set(err, STATUS_INVALID,
                         "it counts leap seconds (a right/ file), which no calendar here does");
    }
    if (c.type == 0 || c.type > 256 || c.character == 0 || c.time > TRANSITIONS_MAX ||
        (c.isut != 0 && c.isut != c.type) || (c.isstd != 0 && c.isstd != c.type)) {
        return error_set(err, STATUS_INVALID, "its header contradicts itself");
    }
    *ret_block = (struct block){
        .counts = c,
        .data = bytes + at,
        .footer = (const char *)bytes + at + length,
        .footer_size = size - at - (size_t)length,
    };
    return STATUS_OK;
}

/* A transition that changes nothing is dropped (abbreviation or is_dst changed, nothing else); one
 * at the same instant as the last replaces it. Returns false when the order is wrong. */
static bool table_add(struct zone *z, int64_t at, int32_t offset)
{
    if (z->count > 0 && at < z->at[z->count - 1]) {
        return false;
    }
    if (z->count > 0 && at == z->at[z->count - 1]) {
        z->count--;
    }
    if (offset != z->offset[z->count]) {
        z->at[z->count] = at;
        z->offset[z->count + 1] = offset;
        z->count++;
    }
    return true;
}

static enum status table_fill(struct zone *z, const struct block *b, struct error *err)
{
    const struct counts *c = &b->counts;
    const unsigned char *index = b->data + (size_t)c->time * 8;
    const unsigned char *types = index + c->time;
    for (uint32_t i = 0; i < c->type; i++) {
        const unsigned char *type = types + (size_t)i * 6;
        int32_t offset = read_i32(type);
        if (offset < ZONE_OFFSET_MIN || offset > ZONE_OFFSET_MAX || type[4] > 1 ||
            type[5] >= c->character) {
            return error_set(err, STATUS_INVALID, "its local time type %u is out of range", i);
        }
    }
    z->offset[0] = read_i32(types);
    int64_t last = INT64_MIN;
    for (uint32_t i = 0; i < c->time; i++) {
        int64_t at = read_i64(b->data + (size_t)i * 8);
        if (index[i] >= c->type || at <= last || at < -TRANSITION_LIMIT || at > TRANSITION_LIMIT) {
            return error_set(err, STATUS_INVALID, "its transition %u is out of order or range", i);
        }
        last = at;
        if (!table_add(z, at, read_i32(types + (size_t)index[i] * 6))) {
            return error_set(err, STATUS_INVALID, "its transition %u is out of order", i);
        }
    }
    return STATUS_OK;
}

/* Write the footer's two changes a year for a bit more than one cycle behind the last listed
 * transition (INT64_MIN: none is listed). */
static bool table_extend(struct zone *z, const struct zone_footer *f, int64_t last_listed)
{
    int64_t year_one = civil_days_of(CIVIL_YEAR_MIN, 1, 1) * SECONDS_A_DAY;
    int32_t first_year = CIVIL_YEAR_MIN;
    if (last_listed > year_one) {
        first_year = civil_date_of(floor_divide(last_listed, SECONDS_A_DAY)).year;
    }
    size_t before = z->count;
    for (int32_t year = first_year; year < first_year + EXTENDED_YEARS; year++) {
        int64_t start = zone_footer_instant(&f->start, year, f->standard_s);
        int64_t end = zone_footer_instant(&f->end, year, f->daylight_s);
        bool start_first = start <= end;
        int64_t at[2] = {start_first ? start : end, start_first ? end : start};
        int32_t offset[2] = {start_first ? f->daylight_s : f->standard_s,
                             start_first ? f->standard_s : f->daylight_s};
        for (int i = 0; i < 2; i++) {
            if (at[i] > last_listed && !table_add(z, at[i], offset[i])) {
                return false;
            }
        }
    }
    z->folds = z->count > before + CYCLE_YEARS;
    if (!z->folds && z->count > before) {
        /* Daylight time all year round: each end meets the next start, but the very last one. */
        int64_t last_year = civil_days_of(first_year + EXTENDED_YEARS - 1, 1, 1) * SECONDS_A_DAY;
        z->count -= z->at[z->count - 1] > last_year + SECONDS_A_DAY ? 1 : 0;
    }
    z->fold_from = civil_days_of(first_year + 2, 1, 1) * SECONDS_A_DAY;
    return true;
}

static enum status footer_apply(struct zone *z, const struct block *b, struct error *err)
{
    const char *text = b->footer;
    size_t size = b->footer_size;
    if (size < 2 || text[0] != '\n' || text[size - 1] != '\n' ||
        memchr(text + 1, '\n', size - 2) != NULL) {
        return error_set(err, STATUS_INVALID, "its footer is missing or cut off");
    }
    if (size == 2) {
        return STATUS_OK; /* nothing is promised: the last offset stays */
    }
    struct zone_footer f;
    enum status s = zone_footer_parse(text + 1, size - 2, &f, err);
    if (s != STATUS_OK) {
        return s;
    }
    size_t listed = b->counts.time;
    if (!f.has_daylight) {
        z->offset[0] = listed == 0 ? f.standard_s : z->offset[0];
        return STATUS_OK;
    }
    int64_t last = listed == 0 ? INT64_MIN : read_i64(b->data + (listed - 1) * 8);
    int64_t too_late = civil_days_of(CIVIL_YEAR_MAX, 1, 1) * SECONDS_A_DAY;
    if (last > too_late || !table_extend(z, &f, last)) {
        return error_set(err, STATUS_INVALID, "its footer does not follow its transitions");
    }
    return STATUS_OK;
}

static int64_t later_edge(const struct zone *z, size_t i)
{
    int32_t a = z->offset[i];
    int32_t b = z->offset[i + 1];
    return z->at[i] + (a > b ? a : b);
}

static int64_t earlier_edge(const struct zone *z, size_t i)
{
    int32_t a = z->offset[i];
    int32_t b = z->offset[i + 1];
    return z->at[i] + (a < b ? a : b);
}

/* Resolving local times needs gaps and overlaps that do not touch each other; in real data even
 * the closest are days apart. */
static bool table_is_sane(const struct zone *z)
{
    for (size_t i = 1; i < z->count; i++) {
        if (earlier_edge(z, i) < later_edge(z, i - 1)) {
            return false;
        }
    }
    return true;
}

static struct zone *zone_new(const char *name, size_t capacity)
{
    struct zone *z = calloc(1, sizeof *z);
    if (z == NULL) {
        return NULL;
    }
    size_t length = strnlen(name, ZONE_NAME_MAX - 1);
    memcpy(z->name, name, length);
    z->at = calloc(capacity, sizeof *z->at);
    z->offset = calloc(capacity + 1, sizeof *z->offset);
    if (z->at == NULL || z->offset == NULL) {
        zone_free(z);
        return NULL;
    }
    return z;
}

/* Give back what the capacity, an upper bound, had too much. */
static void table_shrink(struct zone *z)
{
    int64_t *at = realloc(z->at, (z->count + 1) * sizeof *at);
    z->at = at != NULL ? at : z->at;
    int32_t *offset = realloc(z->offset, (z->count + 1) * sizeof *offset);
    z->offset = offset != NULL ? offset : z->offset;
}

enum status zone_parse(const char *name, const unsigned char *bytes, size_t size,
                       struct zone **ret_zone, struct error *err)
{
    struct block b = {.data = NULL};
    enum status s = size > ZONE_FILE_MAX_BYTES
                        ? error_set(err, STATUS_INVALID, "its file is over 64 KiB")
                        : block_find(bytes, size, &b, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "time zone %s", name);
    }
    struct zone *z = zone_new(name, b.counts.time + 2 * EXTENDED_YEARS);
    if (z == NULL) {
        return error_set(err, STATUS_FATAL, "time zone %s: out of memory", name);
    }
    s = table_fill(z, &b, err);
    if (s == STATUS_OK) {
        s = footer_apply(z, &b, err);
    }
    if (s == STATUS_OK && !table_is_sane(z)) {
        s = error_set(err, STATUS_INVALID, "its transitions are too close together");
    }
    if (s != STATUS_OK) {
        zone_free(z);
        return error_prefix(err, s, "time zone %s", name);
    }
    table_shrink(z);
    *ret_zone = z;
    return STATUS_OK;
}

void zone_free(struct zone *z)
{
    if (z == NULL) {
        return;
    }
    free(z->at);
    free(z->offset);
    free(z);
}

const char *zone_name(const struct zone *z)
{
    return z->name;
}

/* How much to take off a time so that it lies in the table. */
static int64_t fold_of(const struct zone *z, int64_t t)
{
    if (!z->folds || t < z->fold_from + CYCLE_S) {
        return 0;
    }
    return (t - z->fold_from) / CYCLE_S * CYCLE_S;
}

/* Number of transitions at or before an instant. */
static size_t index_at(const struct zone *z, int64_t utc_s)
{
    size_t low = 0;
    size_t high = z->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (z->at[middle] <= utc_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int32_t zone_offset_at(const struct zone *z, int64_t utc_s)
{
    return z->offset[index_at(z, utc_s - fold_of(z, utc_s))];
}

bool zone_change_after(const struct zone *z, int64_t utc_s, struct zone_change *ret_change)
{
    int64_t fold = fold_of(z, utc_s);
    size_t i = index_at(z, utc_s - fold);
    if (i == z->count) {
        return false;
    }
    *ret_change = (struct zone_change){z->at[i] + fold, z->offset[i], z->offset[i + 1]};
    return true;
}

struct zone_span zone_resolve(const struct zone *z, struct local_time t)
{
    int64_t fold = fold_of(z, t.s);
    int64_t local = t.s - fold;
    size_t low = 0;
    size_t high = z->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (later_edge(z, middle) <= local) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    struct zone_span span = {
        .kind = LOCAL_UNIQUE,
        .before = z->offset[low],
        .after = z->offset[low],
        .start = low > 0 ? later_edge(z, low - 1) + fold : INT64_MIN,
        .until = low < z->count ? earlier_edge(z, low) + fold : INT64_MAX,
    };
    if (low < z->count && local >= earlier_edge(z, low)) {
        span.after = z->offset[low + 1];
        span.kind = span.after > span.before ? LOCAL_GAP : LOCAL_OVERLAP;
        span.transition = z->at[low] + fold;
        span.start = span.until;
        span.until = later_edge(z, low) + fold;
    }
    return span;
}
