/* Which channels notifications came on: a small set of names. Pure. Included by store_pg*.c only.
 */
#ifndef RS_STORE_PG_HEARD_H
#define RS_STORE_PG_HEARD_H

#include <stdbool.h>

#define HEARD_MAX 4 /* more channels than anybody listens to */

/* Zero-initialise. */
struct store_pg_heard {
    char channels[HEARD_MAX][64]; /* "": free */
};

/* One that finds no room is forgotten. */
void store_pg_hear(struct store_pg_heard *h, const char *channel);

/* Was it in the set? It is taken out. */
bool store_pg_heard_take(struct store_pg_heard *h, const char *channel);

#endif
