/* The port scheduler/store/store_zone.h on the database in memory: a run has one set of time zone
 * files, and no row says by which it was computed, so that there is nothing to go through. */
#include "store_fake.h"
#include "store_zone.h"

enum status store_zones_in_use(const struct store_call *call, struct zone_uses *ret_uses,
                               struct error *err)
{
    (void)call;
    (void)err;
    ret_uses->count = 0;
    return STATUS_OK;
}

enum status store_note_zones(const struct store_call *call, const struct zone_use *rows,
                             size_t count, struct error *err)
{
    (void)call;
    (void)rows;
    (void)count;
    return error_set(err, STATUS_FATAL, "the simulation has no zones in use");
}

enum status store_of_zone(const struct store_call *call, struct zone_asked asked,
                          struct zone_page *ret_page, struct error *err)
{
    (void)call;
    (void)asked;
    (void)ret_page;
    return error_set(err, STATUS_FATAL, "the simulation has no zones in use");
}

enum status store_rezone(const struct store_call *call, const struct zone_move *moves, size_t count,
                         const char *tzdata, struct written_rows *ret_written, struct error *err)
{
    (void)call;
    (void)moves;
    (void)count;
    (void)tzdata;
    (void)ret_written;
    return error_set(err, STATUS_FATAL, "the simulation moves no firing");
}
