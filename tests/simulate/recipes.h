/* The schedules of a run and how users change them. */
#ifndef RS_SIMULATE_RECIPES_H
#define RS_SIMULATE_RECIPES_H

#include <stdint.h>

void recipes_make(uint64_t seed); /* writes the first versions into the database */
int recipes_count(void);
void recipe_edit(int schedule, uint64_t random);

#endif
