/* The claim tokens that this process has begun with, whatever became of them: bounded, the newest
 * ones. A database that was restored from a dump shows claims as running that have ended here; a
 * token that is remembered is never begun a second time. No locks: the caller's. */
#ifndef RS_TOKEN_MEMORY_H
#define RS_TOKEN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "ident.h"

#define TOKEN_MEMORY_MAX 8192 /* some 300 kB; hours of ordinary work, seconds of noop jobs */

struct token_memory {
    char tokens[TOKEN_MEMORY_MAX][UUID_TEXT_MAX]; /* a ring */
    size_t count;                                 /* ever added */
};

void token_memory_add(struct token_memory *m, const char *token);
/* Not among the newest TOKEN_MEMORY_MAX: false. */
bool token_memory_has(const struct token_memory *m, const char *token);

#endif
