/* For integration tests of edits: edits with a past, and the proof that nothing was lost. */
#ifndef RS_FIXTURE_EDITS_H
#define RS_FIXTURE_EDITS_H

#include "fixture_leader.h"

/* UPDATE reports.schedule SET `set`, as if it had been made `ago` ago. */
void fixture_edit(const char *schedule, const char *set, const char *ago);

/* INSERT of a cron schedule in UTC, and DELETE, likewise. */
void fixture_insert(const char *schedule, const char *rule, const char *ago);
void fixture_delete(const char *schedule, const char *ago);

/* As if the schedule had been written as it is now, in one go, at the instant `since`. */
void fixture_written_at(const char *schedule, const char *since);

/* Lets the leader plan what is due now, then compares the schedule's versions with its occurrences
 * and gaps: each firing that was due under a version has one or the other, none has both, none was
 * made that no version called for, and the gaps count what they cover. Knows rules `minute hour`
 * in UTC (numbers, * and steps) and intervals of whole seconds; `due_at_least` guards against a
 * story in which nothing was due. Fails the test. */
void check_nothing_lost(struct leader *l, const char *schedule, int64_t due_at_least);

/* All gaps of a schedule in order: "reason firings from_key..to_key", with ", " between. */
const char *fixture_gaps(const char *schedule);

#endif
