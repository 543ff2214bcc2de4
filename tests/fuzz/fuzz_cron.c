/* Any bytes as a cron expression, and as one of Quartz: refused in one line, or compiled; then the
 * sentence and the notes are written and its firings are as they should be, under any policies and
 * about changes of the clock of many kinds. */
#include <string.h>

#include "cron_quartz.h"
#include "cron_search.h"
#include "cron_text.h"
#include "fuzz.h"

static struct firing next_of(const struct fuzz_rule *r, utc_us after)
{
    int cost = 0;
    const struct firing f = cron_search(r->rule, r->zone, after, &cost);
    MUST_HOLD(cost <= CRON_STEPS_MAX);
    return f;
}

static int64_t count_of(const struct fuzz_rule *r, utc_us after, utc_us before)
{
    return cron_count(r->rule, r->zone, after, before);
}

static bool named_by(const struct fuzz_rule *r, int64_t from, int64_t *ret_time)
{
    struct local_time n;
    const bool found = cron_nominal_from(r->rule, (struct local_time){from}, &n);
    *ret_time = found ? n.s : 0;
    return found;
}

static void words_check(const struct cron *c, const struct zone *z)
{
    char words[CRON_PLAIN_MAX];
    cron_text_write(c, words);
    MUST_HOLD(words[0] != '\0' && strchr(words, '\n') == NULL &&
              strlen(words) < CRON_PLAIN_MAX - 1);
    cron_text_write_policies(c, words);
    MUST_HOLD(words[0] != '\0' && strchr(words, '\n') == NULL &&
              strlen(words) < CRON_PLAIN_MAX - 1);
    const struct rule r = {.kind = RULE_CRON, .zone = z, .cron = *c};
    fuzz_words(&r);
}

static void cron_ask(struct cron *c, uint32_t number)
{
    const struct zone *z = fuzz_zone(number / 16);
    struct zone_change change = {.at = 1767225600};
    cron_set_policies(c, (enum dst_gap_policy)(number % 4),
                      (enum dst_overlap_policy)(number / 4 % 4));
    words_check(c, z);
    const struct fuzz_rule rule = {
        .rule = c,
        .zone = z,
        .next = next_of,
        .count = count_of,
        .named = named_by,
        .gap = c->gap,
        .overlap = c->overlap,
    };
    const utc_us from[] = {utc_from_seconds(0), utc_from_seconds(1767225600),
                           utc_from_seconds(951782399)};
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        fuzz_follow(&rule, from[i], 8);
    }
    for (int i = 0; i < 3 && zone_change_after(z, change.at, &change); i++) {
        fuzz_follow(&rule, utc_from_seconds(change.at - 7200), 12);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[CRON_TEXT_MAX + 64];
    char std[CRON_TEXT_MAX];
    struct cron c;
    struct error err = {.text = ""};
    const uint32_t number = fuzz_number(data, size);
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    if (cron_parse(text, &c, &err) == STATUS_OK) {
        cron_ask(&c, number);
    } else {
        fuzz_refusal(&err);
    }
    if (cron_quartz_to_std(text, std, &err) != STATUS_OK) {
        fuzz_refusal(&err);
        return 0;
    }
    MUST_HOLD(cron_parse(std, &c, &err) == STATUS_OK);
    cron_ask(&c, number);
    return 0;
}
