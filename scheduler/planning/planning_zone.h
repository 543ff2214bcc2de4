/* Inside of planning*.c: time zone data that change under stored firings. Thread: the scope's.
 *
 * A set of zones is one replica's data at one time. When the files change, or another replica led
 * before, the schedules of the zones whose file is another are gone through, a page in each step,
 * and their next firings move to where the data put their nominal local times. What comes due
 * before its page is moved first. Which data count: sql/0018_zones.sql. */
#ifndef RS_PLANNING_ZONE_H
#define RS_PLANNING_ZONE_H

#include "planning_state.h"
#include "store_zone.h"

/* Open the zones where they are not. Returns: as zone_set_open. Blocks: on the file system. */
MUST_USE enum status planning_zones_open(struct planning *p, struct error *err);
void planning_zones_close(struct planning *p);

/* A new leader says by which data it computes, before it computes anything; what is to be moved is
 * moved by later steps. Returns: as store_note_zones. */
MUST_USE enum status planning_zones_prepare(struct planning *p, struct error *err);

/* A schedule in this zone was taken in: the next step sees whether it is a new one. */
void planning_zones_met(struct planning *p, const char *time_zone);

/* Look whether the files have changed, and move a page of firings. Returns: as store_rezone. */
MUST_USE enum status planning_zones_step(struct planning *p, struct error *err);
instant planning_zones_at(const struct planning *p);

/* A due row must be moved before it is planned: it is kept for planning_zones_move. */
bool planning_zones_take(struct planning *p, const struct due_row *row);

/* Those that are to be written, while they are. Borrowed. */
const struct zone_move *planning_zone_moves(const struct planning *p);

/* Write what was taken. Returns: as store_rezone. */
MUST_USE enum status planning_zones_move(struct planning *p, struct error *err);

#endif
