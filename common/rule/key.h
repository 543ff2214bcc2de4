/* Occurrence keys: the text that a firing is known by for ever (invariant I3). Pure.
 *
 * A key is made from the nominal local time, never from the instant, so that a tzdata update or a
 * DST change moves instants but never identities. The form is fixed at a schedule's first version:
 *   date    2030-04-12           rules that fire at most once a local day
 *   minute  2030-04-12T06:00
 *   second  2030-04-12T06:00:30  rules that name seconds
 * Rules whose firings are about periods (business_date.h) have the name of the period instead,
 * whatever their times of day:
 *   week     2030-W15   ISO, the year is that of the week's Thursday
 *   month    2030-03
 *   quarter  2030-Q1
 *   fiscal   the label of the period; where there is none, the date
 * Where both passes of an overlap fire, the offset follows ("2026-10-25T02:30+02:00").
 * An interval has no local time of its own: its key is the UTC instant with Z, in the minute form
 * when anchor and length are whole minutes and in the second form otherwise (a fraction of the
 * anchor is cut; firings are at least a second apart, so keys still differ).
 *
 * The same forms stand in sql/0009_requests.sql (local_keys, interval_keys, key_to_come), which
 * judges the keys that people write, in check_repeat of sql/0002_definitions.sql and in key_floor
 * of sql/0016_verify.sql: change all of them. What the two sides say of one another's keys is
 * compared by test_sql_knows_each_key_that_the_planner_writes. */
#ifndef RS_KEY_H
#define RS_KEY_H

#include "ident.h"
#include "rule.h"

enum key_form {
    KEY_DATE,
    KEY_MINUTE,
    KEY_SECOND,
    KEY_WEEK,
    KEY_MONTH,
    KEY_QUARTER,
    KEY_FISCAL,
};

/* The form that a rule's firings need: that of its periods, else the coarsest that tells all of
 * them apart. */
enum key_form key_form_of_rule(const struct rule *r);

/* May a schedule whose keys have a form go on with a rule that needs another? */
bool key_form_serves(enum key_form fixed, enum key_form needed);

/* Its keys name days: there is at most one firing a local day. */
bool key_form_is_of_days(enum key_form form);

const char *key_form_name(enum key_form form); /* "date", "minute", "second", "week" ... */
bool key_form_parse(const char *word, enum key_form *ret_form);

/* The key of a firing that was found. A UTC key is never shorter than a minute. */
void key_format(enum key_form form, const struct firing *f, char ret_text[KEY_MAX_BYTES]);

/* The business date as a day number; of a period its last day. Where it is not known, the nominal
 * local date. */
int64_t business_day_of(const struct firing *f);
/* The same as "2030-04-12". */
void business_date_format(const struct firing *f, char ret_text[DATE_TEXT_MAX]);

#endif
