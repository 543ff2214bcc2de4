/* Which command the words of a line are. */
#include "command.h"

#include <stdio.h>
#include <string.h>

#include "nearest.h"

/* How many of the given words are the command's words; 0 when it is another command. */
static size_t words_match(const char *words, int argc, const char *const *argv)
{
    size_t n = 0;
    const char *at = words;
    while (*at != '\0') {
        size_t length = strcspn(at, " ");
        if (n >= (size_t)argc || strlen(argv[n]) != length || strncmp(argv[n], at, length) != 0) {
            return 0;
        }
        n++;
        at += length;
        at += strspn(at, " ");
    }
    return n;
}

const struct command *command_find(int argc, const char *const *argv, size_t *ret_words)
{
    const struct command *found = NULL;
    for (size_t i = 0; i < command_count; i++) {
        size_t n = words_match(command_table[i].words, argc, argv);
        if (n > (found != NULL ? *ret_words : 0)) {
            found = &command_table[i];
            *ret_words = n;
        }
    }
    return found;
}

/* "calendar chek": the second words that there are, and the one that was meant. */
static enum exit_code second_word_refuse(struct invocation *in, const char *word,
                                         const char *second)
{
    struct nearest near = nearest_start(second);
    size_t n = strlen(word);
    char all[160] = "";
    for (size_t i = 0; i < command_count; i++) {
        const char *words = command_table[i].words;
        if (strncmp(words, word, n) == 0 && words[n] == ' ' && command_table[i].not_yet == NULL) {
            size_t used = strlen(all);
            nearest_offer(&near, words + n + 1);
            (void)snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? ", " : "",
                           words + n + 1);
        }
    }
    if (near.best != NULL) {
        return command_fail(in, EXIT_USAGE, "unknown command %s %s; did you mean %s %s?", word,
                            second, word, near.best);
    }
    return command_fail(in, EXIT_USAGE, "unknown command %s %s; behind %s stands one of %s", word,
                        second, word, all);
}

enum exit_code command_unknown(struct invocation *in, const char *word, const char *second)
{
    struct nearest near = nearest_start(word);
    size_t n = strlen(word);
    for (size_t i = 0; i < command_count; i++) {
        const char *words = command_table[i].words;
        if (strncmp(words, word, n) == 0 && words[n] == ' ') {
            if (second != NULL && second[0] != '-') {
                return second_word_refuse(in, word, second);
            }
            return command_fail(in, EXIT_USAGE,
                                "%s needs a second word, e.g. reportctl %s; see "
                                "reportctl --help",
                                word, words);
        }
        if (command_table[i].not_yet == NULL) {
            nearest_offer(&near, words);
        }
    }
    if (near.best != NULL) {
        return command_fail(in, EXIT_USAGE, "unknown command %s; did you mean %s?", word,
                            near.best);
    }
    return command_fail(in, EXIT_USAGE, "unknown command %s; reportctl --help lists them", word);
}
