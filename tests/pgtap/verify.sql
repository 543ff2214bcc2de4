-- The ledger as `reportctl verify` reads it: firings that a calendar has moved away from the date of their key.
BEGIN;
\ir fixture.psql
SELECT no_plan();

INSERT INTO reports.calendar (name) VALUES ('works');
INSERT INTO reports.schedule (name, scope, report, kind, rule, calendar, nonbusiness, business_day_offset) VALUES
    ('morning-after', 'tap', 'nothing', 'cron', '39 23 * * *', 'works', 'skip', 1),
    ('weeks-later', 'tap', 'nothing', 'cron', '0 6 1 * *', 'works', 'run', 31),
    ('month-end', 'tap', 'nothing', 'cron', '0 18 L * *', 'works', 'preceding', 0),
    ('skips', 'tap', 'nothing', 'cron', '0 6 * * *', 'works', 'skip', 0),
    ('stays', 'tap', 'nothing', 'cron', '0 6 * * *', 'works', 'run', 0);
INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation, generation)
SELECT s, k, 'tap', gen_random_uuid(), at, 'schedule', 1, 1, 100
  FROM (VALUES ('morning-after', '2190-11-26', timestamptz '2190-11-29 22:39Z'), ('morning-after', '2160-01-01', '2190-11-29 22:39Z'),
               ('weeks-later', '2190-10-01', '2190-11-13 05:00Z'), ('month-end', '2190-10-31', '2190-10-29 17:00Z'),
               ('skips', '2190-11-26', '2190-11-29 06:00Z'), ('stays', '2190-11-26', '2190-11-29 06:00Z')) AS t (s, k, at);

SELECT is((SELECT string_agg(schedule || ':' || key, ' ' ORDER BY schedule) FROM reports.verify_strays('2190-10-01Z', '2190-12-01Z', NULL, 100) WHERE what = 'key'),
          'morning-after:2160-01-01 skips:2190-11-26 stays:2190-11-26', 'a key is far from its time by what its version may move it');
SELECT is((SELECT string_agg(p.name || ':' || v.key, ' ' ORDER BY p.name, v.key)
             FROM unnest('{month-end,morning-after,weeks-later}'::text[]) p (name)
            CROSS JOIN LATERAL reports.verify_ledger(ARRAY[p.name], at - interval '1 second', at + interval '1 second', 100) v
            WHERE v.part = 'occurrence'), expected, format('what is due at %s is read', at))
  FROM (VALUES (timestamptz '2190-10-29 17:00Z', 'month-end:2190-10-31'), ('2190-11-29 22:39Z', 'morning-after:2190-11-26'),
               ('2190-11-13 05:00Z', 'weeks-later:2190-10-01')) AS t (at, expected);
SELECT is((SELECT array_agg(older_goes_on) FROM reports.verify_keys('{weeks-later}', '{2190-09-01}', '{2}', '{2190-10-13Z}', '{true}')), '{f}',
          'an older version that goes on later than a day is none of this edit');
SELECT is((SELECT array_agg(older_goes_on) FROM reports.verify_keys('{weeks-later}', '{2190-09-30}', '{2}', '{2190-11-12 06:00Z}', '{true}')), '{t}',
          'that an older version has planned behind an edit is seen whatever its key');
SELECT * FROM finish();
ROLLBACK;
