/* A business calendar from an iCalendar file (RFC 5545), as calendar programs and public offices
 * publish holidays: each all-day event is a holiday, for as many days as it lasts. Pure. */
#ifndef RS_CALENDAR_ICS_H
#define RS_CALENDAR_ICS_H

#include "calendar_csv.h"

/* As calendar_csv_parse. Events with a time of day, recurring events and time-zone rules are
 * refused with the line of the event; days of several events get their names joined; cancelled
 * events are left out. */
MUST_USE enum status calendar_ics_parse(const struct calendar_source *source,
                                        struct calendar_definition *d, struct error *err);

#endif
