/* What a protected write carries: who says it may write. Checked by equality in the same
 * transaction as the write (docs/architecture.md, "A protected write"; invariant I1). */
#ifndef RS_AUTHORITY_H
#define RS_AUTHORITY_H

#include <stdint.h>

#include "ident.h"

struct authority {
    char scope[NAME_MAX_BYTES];
    int64_t incarnation;       /* number of the ZooKeeper ensemble's life, issued by PostgreSQL */
    int64_t generation;        /* czxid of the own candidate node */
    char owner[UUID_TEXT_MAX]; /* random, new for each candidate node */
};

#endif
