/* The rows of the lifecycle; included by lifecycle.c and lifecycle_table.c only. */
#ifndef RS_LIFECYCLE_TABLE_H
#define RS_LIFECYCLE_TABLE_H

#include "lifecycle.h"

extern const struct lifecycle_meaning lifecycle_meanings[LIFECYCLE_STATES]; /* by state */
extern const struct lifecycle_row lifecycle_rows[];
extern const size_t lifecycle_row_count;

#endif
