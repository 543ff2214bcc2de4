#include "token_memory.h"

#include <stdio.h>
#include <string.h>

void token_memory_add(struct token_memory *m, const char *token)
{
    char *place = m->tokens[m->count++ % TOKEN_MEMORY_MAX];
    (void)snprintf(place, UUID_TEXT_MAX, "%s", token);
}

bool token_memory_has(const struct token_memory *m, const char *token)
{
    size_t kept = m->count < TOKEN_MEMORY_MAX ? m->count : TOKEN_MEMORY_MAX;
    for (size_t i = 0; i < kept; i++) {
        if (strcmp(m->tokens[i], token) == 0) {
            return true;
        }
    }
    return false;
}
