/* The words of the roll conventions. */
#include "calendar.h"

#include <string.h>

#include "nearest.h"

static const char *const roll_words[] = {
    [ROLL_RUN] = "run",
    [ROLL_SKIP] = "skip",
    [ROLL_FOLLOWING] = "following",
    [ROLL_MODIFIED_FOLLOWING] = "modified_following",
    [ROLL_PRECEDING] = "preceding",
    [ROLL_MODIFIED_PRECEDING] = "modified_preceding",
    [ROLL_HALF_MONTH_MODIFIED_FOLLOWING] = "half_month_modified_following",
    [ROLL_NEAREST] = "nearest",
};
#define ROLL_WORDS (sizeof roll_words / sizeof roll_words[0])

const char *roll_convention_name(enum roll_convention convention)
{
    return roll_words[convention];
}

enum status roll_convention_parse(const char *word, enum roll_convention *ret, struct error *err)
{
    /* As QuantLib and other tools write them: ModifiedFollowing, modified-following. */
    char folded[64];
    size_t n = 0;
    for (size_t i = 0; word[i] != '\0' && n + 2 < sizeof folded; i++) {
        if (word[i] >= 'A' && word[i] <= 'Z') {
            if (i > 0 && folded[n - 1] != '_') {
                folded[n++] = '_';
            }
            folded[n++] = (char)(word[i] + ('a' - 'A'));
        } else {
            folded[n++] = word[i] == '-' || word[i] == ' ' ? '_' : word[i];
        }
    }
    folded[n] = '\0';
    struct nearest near = nearest_start(folded);
    for (size_t i = 0; i < ROLL_WORDS; i++) {
        if (strcmp(word, roll_words[i]) == 0) {
            *ret = (enum roll_convention)i;
            return STATUS_OK;
        }
        nearest_offer(&near, roll_words[i]);
    }
    const char *meant = strcmp(folded, "unadjusted") == 0 ? roll_words[ROLL_RUN] : near.best;
    return error_set(err, STATUS_INVALID,
                     "there is no convention \"%.40s\"; %s%s%swrite one of run, skip, following, "
                     "modified_following, preceding, modified_preceding, "
                     "half_month_modified_following, nearest",
                     word, meant != NULL ? "did you mean " : "", meant != NULL ? meant : "",
                     meant != NULL ? "? Or " : "");
}
