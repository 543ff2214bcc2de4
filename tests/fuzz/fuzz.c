#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rule_notes.h"

#define FIRINGS_MAX  64
#define NAMED_MAX    400 /* nominal times that one step of the oracle looks at */
#define LONG_GAP_S   (3 * 3600)
#define BEHIND_S     (2 * (int64_t)SECONDS_A_DAY)
#define COUNT_MAX_US ((int64_t)100 * 366 * SECONDS_A_DAY * MICROS_A_SECOND)

void fuzz_broken(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

void fuzz_refusal(const struct error *err)
{
    MUST_HOLD(err->text[0] != '\0');
    for (const char *p = err->text; *p != '\0'; p++) {
        MUST_HOLD(((unsigned char)*p >= ' ' && *p != 127) || *p == '\t');
    }
}

char *fuzz_lines(const uint8_t *data, size_t size, char *ret_lines[FUZZ_LINES_MAX])
{
    char *text = calloc(1, size + 1);
    MUST_HOLD(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    char *next = text;
    for (int i = 0; i < FUZZ_LINES_MAX; i++) {
        ret_lines[i] = next;
        next = next != NULL ? strchr(next, '\n') : NULL;
        if (next != NULL) {
            *next++ = '\0';
        }
    }
    return text;
}

uint32_t fuzz_number(const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ data[i]) * 16777619U;
    }
    return hash ^ hash >> 16;
}

/* A file of version 2: two headers that promise one type and no transition, and the rule. */
#define HEADER                                                                                     \
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                                          \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
#define TYPE "\0\0\0\0\0\0LMT\0"

static struct zone *zone_make(const char *name, const char *rule)
{
    static const char blocks[] = HEADER TYPE HEADER TYPE;
    unsigned char bytes[256];
    struct zone *z = NULL;
    struct error err = {.text = ""};
    size_t size = sizeof blocks - 1;
    memcpy(bytes, blocks, size);
    size += (size_t)snprintf((char *)bytes + size, sizeof bytes - size, "\n%s\n", rule);
    MUST_HOLD(zone_parse(name, bytes, size, &z, &err) == STATUS_OK);
    return z;
}

const struct zone *fuzz_zone(uint32_t number)
{
    static const struct {
        const char *name, *rule;
    } rules[] = {
        {"Fuzz/UTC", "UTC0"},
        {"Fuzz/New_York", "EST5EDT,M3.2.0,M11.1.0"},
        {"Fuzz/Dublin", "IST-1GMT0,M10.5.0,M3.5.0/1"},
        {"Fuzz/Lord_Howe", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"},
        {"Fuzz/Nuuk", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0"},
        {"Fuzz/Beirut", "EET-2EEST,M3.5.0/0,M10.5.0/0"},
        {"Fuzz/Three_Hours", "AAA0BBB-3,J59/0,J334/3"},
        {"Fuzz/Date_Line", "<-11>11<+13>-13,M12.5.5/0,M6.1.3/24"},
    };
    static struct zone *zones[sizeof rules / sizeof rules[0]];
    size_t i = number % (sizeof rules / sizeof rules[0]);
    if (zones[i] == NULL) {
        zones[i] = zone_make(rules[i].name, rules[i].rule);
    }
    return zones[i];
}

/* What the zone's clock shows at the instant that the rule itself names. */
static void firing_check(const struct fuzz_rule *r, const struct firing *f)
{
    const int64_t at = utc_seconds((utc_us){f->at.us - r->jitter_us});
    const struct zone_span span = zone_resolve(r->zone, f->nominal);
    MUST_HOLD(f->offset_s == zone_offset_at(r->zone, at));
    switch (span.kind) {
    case LOCAL_UNIQUE:
        MUST_HOLD(at == f->nominal.s - span.before);
        break;
    case LOCAL_OVERLAP:
        MUST_HOLD(at == f->nominal.s - span.before || at == f->nominal.s - span.after);
        break;
    case LOCAL_GAP:
        MUST_HOLD(at >= span.transition && at < span.transition + (span.after - span.before));
        break;
    }
}

/* The firing that follows `after` is found from just before it and from the middle as well. */
static void search_check(const struct fuzz_rule *r, utc_us after, const struct firing *f)
{
    const int64_t from[] = {f->at.us - 1, after.us + (f->at.us - after.us) / 2};
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        const struct firing same = from[i] < f->at.us ? r->next(r, (utc_us){from[i]}) : *f;
        MUST_HOLD(same.found && same.at.us == f->at.us && same.nominal.s == f->nominal.s &&
                  same.offset_s == f->offset_s && same.offset_in_key == f->offset_in_key);
    }
}

/* What it is known by differs from all before. */
static void identity_check(const struct firing *firings, int count)
{
    const struct firing *f = &firings[count];
    for (int i = 0; i < count; i++) {
        MUST_HOLD(
            firings[i].nominal.s != f->nominal.s ||
            (f->offset_in_key && firings[i].offset_in_key && firings[i].offset_s != f->offset_s) ||
            (f->utc_in_key && firings[i].utc_in_key));
    }
}

/* What has been seen of the firing after an instant, by looking at one nominal time after another.
 */
struct oracle {
    int64_t after; /* seconds */
    bool found, both;
    int64_t at, nominal;
};

static void oracle_offer(struct oracle *o, int64_t at, int64_t nominal, bool both)
{
    if (at > o->after && (!o->found || at < o->at || (at == o->at && nominal > o->nominal))) {
        o->found = true;
        o->both = both;
        o->at = at;
        o->nominal = nominal;
    }
}

static void oracle_take(struct oracle *o, const struct fuzz_rule *r, int64_t n)
{
    const struct zone_span span = zone_resolve(r->zone, (struct local_time){n});
    const bool both = r->overlap == DST_OVERLAP_BOTH;
    switch (span.kind) {
    case LOCAL_UNIQUE:
        oracle_offer(o, n - span.before, n, false);
        return;
    case LOCAL_OVERLAP:
        if (both || r->overlap == DST_OVERLAP_FIRST) {
            oracle_offer(o, n - span.before, n, both);
        }
        if (both || r->overlap == DST_OVERLAP_SECOND) {
            oracle_offer(o, n - span.after, n, both);
        }
        return;
    case LOCAL_GAP:
        if (span.after - span.before <= LONG_GAP_S && r->gap != DST_GAP_SKIP) {
            oracle_offer(o, r->gap == DST_GAP_AFTER ? span.transition : n - span.before, n, false);
        }
        return;
    }
}

/* The firing is the one that its nominal times, looked at one by one, make the first; and when none
 * was found, there is none within a hundred years. Not where these times are too many. */
static void oracle_check(const struct fuzz_rule *r, utc_us after, const struct firing *f)
{
    struct oracle o = {.after = utc_seconds(after)};
    int64_t n = o.after + zone_offset_at(r->zone, o.after) - BEHIND_S;
    for (int i = 0; r->named(r, n, &n); i++, n++) {
        if (o.found && n > o.nominal + BEHIND_S) {
            break;
        }
        if (i == NAMED_MAX) {
            return;
        }
        oracle_take(&o, r, n);
    }
    if (!f->found) {
        MUST_HOLD(!o.found || utc_from_seconds(o.at).us - after.us > COUNT_MAX_US);
        return;
    }
    MUST_HOLD(o.found && utc_from_seconds(o.at).us == f->at.us && o.nominal == f->nominal.s);
    MUST_HOLD(o.both == f->offset_in_key);
}

void fuzz_follow(const struct fuzz_rule *r, utc_us after, int most)
{
    struct firing firings[FIRINGS_MAX];
    const utc_us begin = after;
    int count = 0;
    while (count < most && count < FIRINGS_MAX) {
        firings[count] = r->next(r, after);
        if (r->named != NULL) {
            oracle_check(r, after, &firings[count]);
        }
        if (!firings[count].found) {
            break;
        }
        MUST_HOLD(firings[count].at.us > after.us);
        firing_check(r, &firings[count]);
        search_check(r, after, &firings[count]);
        identity_check(firings, count);
        after = firings[count].at;
        count++;
    }
    if (count > 0 && after.us - begin.us < COUNT_MAX_US) {
        MUST_HOLD(r->count(r, begin, (utc_us){after.us + 1}) == count);
        MUST_HOLD(r->count(r, begin, after) == count - 1);
    }
}

static void words_hold(const char *text, size_t max)
{
    MUST_HOLD(text[0] != '\0' && strlen(text) < max - 1);
    for (const char *p = text; *p != '\0'; p++) {
        MUST_HOLD((unsigned char)*p >= ' ' && *p != 127);
    }
}

void fuzz_words(const struct rule *r)
{
    const utc_us from = utc_from_seconds(1767225600);
    const struct rule_around around = {.bounds = {from, UTC_NONE}, .calendar = NULL};
    static char text[RULE_PLAIN_MAX];
    struct notes notes;
    for (int i = 0; i < RULE_SENTENCES; i++) {
        bool said = rule_sentence_write(r, &around, (enum rule_sentence)i, from, text);
        MUST_HOLD(said == (text[0] != '\0') && (said || i != SENTENCE_RULE));
        if (said) {
            words_hold(text, RULE_PLAIN_MAX);
        }
    }
    rule_notes_make(r, &around, from, &notes);
    MUST_HOLD(notes.count >= 0 && notes.count < NOTES_MAX);
    for (int i = 0; i < notes.count; i++) {
        words_hold(notes.text[i], NOTE_TEXT_MAX);
    }
}
