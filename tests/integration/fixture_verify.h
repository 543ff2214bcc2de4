/* For integration tests: the ledger verified in this process, as `reportctl verify` does it. */
#ifndef RS_FIXTURE_VERIFY_H
#define RS_FIXTURE_VERIFY_H

#include "fixture_leader.h"

/* All findings about what was due within the last `days`, one a line: "verdict schedule:key what
 * firings: detail"; "" for none. Nothing that is due is given a grace. Fails the test when not all
 * can be checked. Valid until the next call. */
const char *fixture_verify(int days);

/* What was due, and how much of it has its occurrence or lies in a gap: of the last fixture_verify.
 */
struct ledger_counts;
const struct ledger_counts *fixture_verified(void);

/* fixture_verify finds nothing, all that was due is accounted for, and that was so much at least.
 */
void fixture_proved(int days, int64_t due_at_least);

/* In how many parts its records were looked at. */
int64_t fixture_verified_parts(void);

#endif
