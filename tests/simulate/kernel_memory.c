/* Whose memory is whose. A process that crashes in the middle of anything frees nothing, so what it
 * took is remembered by address and freed for it: a leak in the product is a leak that the
 * sanitizer still sees, one of a crash is not. */
#include "kernel.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_memory.h"

#define TABLE_BITS 17
#define TABLE_SIZE ((size_t)1 << TABLE_BITS)

struct taken {
    void *at; /* NULL: free, and the end of a search */
    unsigned owner;
};

static struct taken table[TABLE_SIZE];
static size_t taken_count;
static unsigned owner_now;

static size_t home_of(const void *p)
{
    return (size_t)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> (64 - TABLE_BITS));
}

static void remember(void *p)
{
    if (p == NULL || owner_now == 0) {
        return;
    }
    if (++taken_count > TABLE_SIZE / 2) {
        (void)fprintf(stderr, "simulate: processes hold too many pieces of memory\n");
        abort();
    }
    size_t i = home_of(p);
    while (table[i].at != NULL) {
        i = (i + 1) % TABLE_SIZE;
    }
    table[i] = (struct taken){p, owner_now};
}

/* What stands behind a hole moves up, so that every search still ends where it should. */
static void close_hole(size_t hole)
{
    size_t i = hole;
    table[hole].at = NULL;
    for (;;) {
        i = (i + 1) % TABLE_SIZE;
        if (table[i].at == NULL) {
            return;
        }
        size_t home = home_of(table[i].at);
        bool stays = hole < i ? home > hole && home <= i : home > hole || home <= i;
        if (!stays) {
            table[hole] = table[i];
            table[i].at = NULL;
            hole = i;
        }
    }
}

static void forget(const void *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = home_of(p); table[i].at != NULL; i = (i + 1) % TABLE_SIZE) {
        if (table[i].at == p) {
            taken_count--;
            close_hole(i);
            return;
        }
    }
}

unsigned kernel_memory_owner(unsigned owner)
{
    unsigned before = owner_now;
    owner_now = owner;
    return before;
}

void kernel_memory_drop(unsigned owner)
{
    for (size_t i = 0; i < TABLE_SIZE;) {
        if (table[i].at != NULL && table[i].owner == owner) {
            void *p = table[i].at;
            taken_count--;
            close_hole(i); /* another may have moved here: look again */
            __real_free(p);
        } else {
            i++;
        }
    }
}

/* The world's own pieces, in a list: what a run leaves is freed with it. */
struct piece {
    struct piece *before, *behind;
    max_align_t content[];
};
static struct piece pieces = {&pieces, &pieces};

void *kernel_new(size_t size)
{
    struct piece *p = __real_calloc(1, sizeof *p + size);
    if (p == NULL) {
        abort();
    }
    p->before = pieces.before;
    p->behind = &pieces;
    p->before->behind = p->behind->before = p;
    return p->content;
}

void kernel_free(void *content)
{
    if (content == NULL) {
        return;
    }
    struct piece *p = (struct piece *)((char *)content - offsetof(struct piece, content));
    p->before->behind = p->behind;
    p->behind->before = p->before;
    __real_free(p);
}

void kernel_memory_begin(void)
{
    /* Processes come and go, and each takes some megabytes at its start: keep them. */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

void kernel_memory_reset(void)
{
    while (pieces.behind != &pieces) {
        kernel_free(pieces.behind->content);
    }
}

void *__wrap_malloc(size_t size)
{
    void *p = __real_malloc(size);
    remember(p);
    return p;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *p = __real_calloc(count, size);
    remember(p);
    return p;
}

void *__wrap_realloc(void *old, size_t size)
{
    forget(old);
    void *p = __real_realloc(old, size);
    remember(p);
    return p;
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    forget(old);
    void *p = __real_reallocarray(old, count, size);
    remember(p);
    return p;
}

char *__wrap_strdup(const char *text)
{
    char *p = __real_strdup(text);
    remember(p);
    return p;
}

char *__wrap_strndup(const char *text, size_t size)
{
    char *p = __real_strndup(text, size);
    remember(p);
    return p;
}

void __wrap_free(void *p)
{
    forget(p);
    __real_free(p);
}
