/* For tests of business dates. */
#ifndef RS_FIXTURE_BUSINESS_H
#define RS_FIXTURE_BUSINESS_H

#include "business_date.h"

/* Four, four and five weeks from 2030-01-28, FY2030-P01 to P03, in the caller's list. */
struct fiscal_periods fiscal_of(struct fiscal_period list[3]);

/* "2030-04-12T06:00"; fails the test when it is no local time. */
struct local_time local_of(const char *text);

#endif
