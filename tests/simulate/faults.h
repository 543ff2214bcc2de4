/* What goes wrong in a run: a list made from the seed before it begins, so that it can be printed,
 * replayed and made shorter. What users and operators do is in it, too. */
#ifndef RS_SIMULATE_FAULTS_H
#define RS_SIMULATE_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"

#define FAULTS_MAX      48
#define FAULTS_FROM_MS  6000  /* the cluster has begun to work */
#define FAULTS_UNTIL_MS 45000 /* all are healed */

struct fault;

struct fault_kind {
    const char *name;
    unsigned weight;
    int64_t shortest_ms, longest_ms;                   /* between apply and heal */
    void (*choose)(struct fault *f, struct chance *c); /* node and the rest; NULL: nothing */
    void (*apply)(struct fault *f);
    void (*heal)(struct fault *f); /* NULL: nothing to heal */
};

struct fault {
    const struct fault_kind *kind;
    int64_t at_ms, until_ms;
    int node;       /* -1: none */
    int which;      /* server, service, scope, schedule ... */
    unsigned how;   /* direction, place ... */
    int64_t amount; /* milliseconds, per thousand ... */
    uint64_t random;
    bool applied;
};

struct fault_list {
    struct fault faults[FAULTS_MAX];
    size_t count;
};

void faults_make(uint64_t seed, struct fault_list *ret_list);
void fault_format(const struct fault *f, char *ret_text, size_t size);
/* Put those with keep[i] (NULL: all) into the kernel's queue. */
void faults_plan(struct fault_list *list, const bool *keep);
/* Some seeds get a few more, which meet an instant that the others hardly ever do (faults_rare.c).
 * They are drawn from a stream of their own, so that the other seeds stay what they are. */
/* A scheduler's session has been confirmed after it had lost its connection. */
void fault_session_confirmed(int node);
void faults_add_rare(uint64_t seed, struct fault_list *list);
size_t fault_kind_count(void);
const char *fault_kind_name(size_t index);

#endif
