/* What the targets share: how a property is stated, zones that need no file, and what is true of
 * the firings of any rule. */
#ifndef RS_FUZZ_H
#define RS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "firing.h"
#include "rule.h"
#include "status.h"
#include "zone.h"

#define FUZZ_LINES_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property. One that does not hold is printed and ends the program. */
#define MUST_HOLD(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_broken(const char *condition, const char *file, int line);

/* A refusal is one line of text; what it repeats of an expression may have tabs. */
void fuzz_refusal(const struct error *err);

/* The input as lines, each ended with NUL, in a block that the caller frees; those that it does not
 * have are NULL. */
char *fuzz_lines(const uint8_t *data, size_t size, char *ret_lines[FUZZ_LINES_MAX]);

/* A number from the bytes, to choose by what is not written in them. */
uint32_t fuzz_number(const uint8_t *data, size_t size);

/* A zone with changes of the clock for ever; each number has one of several. */
const struct zone *fuzz_zone(uint32_t number);

/* A rule in a zone, whatever its kind. `count` is asked about short spans only. */
struct fuzz_rule {
    const void *rule;
    const struct zone *zone;
    struct firing (*next)(const struct fuzz_rule *r, utc_us after);
    int64_t (*count)(const struct fuzz_rule *r, utc_us after, utc_us before);
    int64_t jitter_us; /* is in all instants */
    /* The first nominal time at or after a local time, and what becomes of those that the clock
     * shows never or twice; NULL: not for this rule. */
    bool (*named)(const struct fuzz_rule *r, int64_t from, int64_t *ret_time);
    enum dst_gap_policy gap;
    enum dst_overlap_policy overlap;
};

/* Follow up to `most` firings from an instant: each is later than the one before, is what its
 * zone's clock shows, comes from the first of its nominal times that the policies allow, and is
 * found from anywhere behind the one before; their number is what `count` says. */
void fuzz_follow(const struct fuzz_rule *r, utc_us after, int most);

/* What is said of a rule in plain English: each sentence and each note is one line within its
 * bound, and the rule itself is never silent. */
void fuzz_words(const struct rule *r);

#endif
