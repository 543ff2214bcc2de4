-- Business calendars as rows: what is refused, who is told of a change, what an import does.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.version(p_calendar text) RETURNS bigint LANGUAGE sql AS $$ SELECT version FROM reports.calendar WHERE name = p_calendar $$;
-- Does a statement give each of these calendars a new version?
CREATE FUNCTION pg_temp.renews(p_sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    renewed text;
BEGIN
    CREATE TEMP TABLE before AS SELECT name, version FROM reports.calendar;
    EXECUTE p_sql;
    SELECT coalesce(string_agg(c.name, ' ' ORDER BY c.name), 'none') INTO renewed
      FROM reports.calendar c JOIN before b USING (name) WHERE c.version > b.version;
    DROP TABLE before;
    RETURN renewed;
END
$$;

SET LOCAL ROLE report_author;
INSERT INTO reports.calendar (name) VALUES ('a'), ('b'), ('c');
INSERT INTO reports.calendar (name, combine) VALUES ('ab', 'union'), ('all', 'intersection'), ('x4', 'union'), ('x5', 'union'), ('x6', 'union');

-- Combinations.
SELECT is(pg_temp.refusal($$INSERT INTO reports.calendar_part VALUES ('a', 'b')$$),
          '23514 calendar "a": only a combination has parts (UPDATE reports.calendar SET combine = ''union'' WHERE name = ''a''; or ''intersection''.)', 'a plain calendar has no parts');
SELECT is(pg_temp.refusal($$INSERT INTO reports.calendar_part VALUES ('ab', 'z')$$),
          '23503 calendar_part: calendar "z" does not exist (Insert it into reports.calendar first, or correct the name.)', 'a part must be there');
SELECT is(pg_temp.refusal($$INSERT INTO reports.calendar_part VALUES ('z', 'ab')$$),
          '23503 calendar_part: calendar "z" does not exist (Insert it into reports.calendar first, or correct the name.)', 'and the combination');
SELECT lives_ok($$INSERT INTO reports.calendar_part VALUES ('ab', 'a'), ('ab', 'b'), ('all', 'ab'), ('all', 'c')$$, 'combinations may be combined');
SELECT is(pg_temp.refusal(format('INSERT INTO reports.calendar_part VALUES (%L, %L)', c, p)),
          format('23514 calendar "%s": with part "%s" it would be a part of itself (Combine calendars that are not made of this one.)', c, p), format('%s in %s is a circle', p, c))
  FROM (VALUES ('ab', 'ab'), ('ab', 'all'), ('all', 'all')) AS t (c, p);
SELECT is(pg_temp.refusal($$UPDATE reports.calendar_part SET part = 'all' WHERE calendar = 'ab' AND part = 'a'$$),
          '23514 calendar "ab": with part "all" it would be a part of itself (Combine calendars that are not made of this one.)', 'an update makes no circle either');
INSERT INTO reports.calendar_part VALUES ('x4', 'all'), ('x5', 'x4');
SELECT is(pg_temp.refusal($$INSERT INTO reports.calendar_part VALUES ('x6', 'x5')$$),
          '23514 calendar "x6": with part "x5" combinations would lie more than 5 deep (Combine the calendars at the bottom directly.)', 'depth is bounded');
INSERT INTO reports.calendar (name) SELECT 'p' || i FROM generate_series(1, 17) i;
INSERT INTO reports.calendar_part SELECT 'x6', 'p' || i FROM generate_series(1, 16) i;
SELECT is(pg_temp.refusal($$INSERT INTO reports.calendar_part VALUES ('x6', 'p17')$$),
          '23514 calendar "x6": it has 16 parts already (Combine some of them into one, and that with the others.)', 'and width');
SELECT is(pg_temp.refusal($$UPDATE reports.calendar SET combine = NULL WHERE name = 'ab'$$),
          '23514 calendar "ab": it has parts, so combine cannot be NULL (Delete its rows of reports.calendar_part first.)', 'what has parts stays a combination');
SELECT is(pg_temp.refusal($$DELETE FROM reports.calendar WHERE name = 'a'$$),
          '23503 calendar "a" is in use by calendar "ab" (Give them another calendar first; reportctl calendar check shows who uses it.)', 'a part is not deleted under its combination');
SELECT is(pg_temp.refusal($$UPDATE reports.calendar SET name = 'aa' WHERE name = 'a'$$),
          '22023 calendar "a": its name never changes (Insert a new calendar under another name, let the schedules use it, and delete this one.)', 'nor renamed');
SELECT is(pg_temp.refusal($$INSERT INTO reports.calendar_weekend VALUES ('ab', '2030-01-01', '{7}')$$),
          '23514 calendar "ab": a combination has the weekends of its parts (Insert the row for the part that it is about.)', 'nor has it a weekend of its own');
SELECT is(pg_temp.refusal($$WITH w AS (INSERT INTO reports.calendar_weekend VALUES ('c', '2030-01-01', '{7}')) SELECT; UPDATE reports.calendar SET combine = 'union' WHERE name = 'c'$$),
          '23514 calendar "c": its weekend changes, and a combination has the weekends of its parts (Delete its rows of reports.calendar_weekend first.)', 'also not by becoming one');
DELETE FROM reports.calendar WHERE name IN ('x5', 'x6');
DELETE FROM reports.calendar WHERE name = 'x4' OR name LIKE 'p%';

-- Versions.
SELECT is(pg_temp.renews(sql), renewed, sql)
  FROM (VALUES (1, $$UPDATE reports.calendar SET weekend_days = '{5,6}' WHERE name = 'c'$$, 'all c'),
               (2, $$INSERT INTO reports.calendar_day (calendar, day) SELECT 'a', date '2030-01-01' + i FROM generate_series(1, 3) i$$, 'a ab all'),
               (3, $$UPDATE reports.calendar_day SET description = 'x' WHERE calendar = 'a'$$, 'a ab all'),
               (4, $$UPDATE reports.calendar_day SET calendar = 'c' WHERE calendar = 'a' AND day = '2030-01-02'$$, 'a ab all c'),
               (5, $$DELETE FROM reports.calendar_day WHERE calendar IN ('a', 'c')$$, 'a ab all c'),
               (6, $$DELETE FROM reports.calendar_day WHERE calendar IN ('a', 'c')$$, 'none'),
               (7, $$INSERT INTO reports.calendar_weekend VALUES ('b', '2030-01-01', '{7}')$$, 'ab all b'),
               (8, $$DELETE FROM reports.calendar_part WHERE calendar = 'ab' AND part = 'b'$$, 'ab all'),
               (9, $$INSERT INTO reports.calendar_day (calendar, day) VALUES ('b', '2030-01-01')$$, 'b'),
               (10, $$INSERT INTO reports.calendar_part VALUES ('ab', 'b')$$, 'ab all')) AS t (n, sql, renewed)
 ORDER BY n;
CREATE TEMP TABLE kept AS SELECT pg_temp.version('all') AS version;
UPDATE reports.calendar SET version = 7 WHERE name = 'all';
SELECT cmp_ok(pg_temp.version('all'), '>', version, 'nobody sets a version back') FROM kept;
DELETE FROM reports.calendar WHERE name = 'all';
INSERT INTO reports.calendar (name) VALUES ('all');
SELECT cmp_ok(pg_temp.version('all'), '>', version, 'a calendar made again has a newer version') FROM kept;
SELECT is(pg_temp.refusal($$INSERT INTO reports.calendar_day (calendar, day) SELECT 'c', date '2000-01-01' + i FROM generate_series(1, 20001) i$$),
          '23514 calendar "c": more than 20000 days (Leave out years long gone.)', 'days are bounded');
SELECT is(pg_temp.refusal($$INSERT INTO reports.calendar_weekend SELECT 'c', date '2000-01-01' + i, '{7}' FROM generate_series(1, 32) i$$),
          '23514 calendar "c": its weekend changes more than 31 times (Leave out changes long gone.)', 'weekends too');

-- An override stands beside what was imported and holds.
INSERT INTO reports.calendar_day (calendar, day, kind, override) VALUES ('c', '2030-05-01', 'holiday', false);
INSERT INTO reports.calendar_day (calendar, day, kind, description) VALUES ('c', '2030-05-01', 'working', 'we work');
SELECT results_eq($$SELECT kind, description FROM reports.v_calendar_day WHERE calendar = 'c'$$, $$VALUES ('working', 'we work')$$, 'of two rows the override holds');

-- Imports.
CREATE FUNCTION pg_temp.import(p_days date[], p_kinds text[], p_names text[], p_replace boolean, p_dry_run boolean) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s: +%s -%s ~%s =%s o%s', verdict, added, removed, changed, unchanged, overrides)
      FROM reports.calendar_import('new', 'd', 's', '{6,7}', '2030-01-01', '2030-12-31', 'weekends_only', '{2030-06-01}', '{"{5,6}"}', p_days, p_kinds, p_names, p_replace, p_dry_run)
$$;
SELECT is(pg_temp.import('{2030-01-01,2030-12-25}', '{holiday,holiday}', '{N,C}', false, true), 'created: +2 -0 ~0 =0 o0', 'a dry run says what would be');
SELECT is_empty($$SELECT FROM reports.calendar WHERE name = 'new'$$, 'and makes nothing');
SELECT is(pg_temp.import('{2030-01-01,2030-12-25}', '{holiday,holiday}', '{N,C}', false, false), 'created: +2 -0 ~0 =0 o0', 'an import makes the calendar');
SELECT results_eq($$SELECT from_date, weekend_days FROM reports.calendar_weekend WHERE calendar = 'new'$$, $$VALUES (date '2030-06-01', '{5,6}'::integer[])$$, 'with its weekends');
INSERT INTO reports.calendar_day (calendar, day, description) VALUES ('new', '2030-07-01', 'closed for stock-taking');
SELECT is(pg_temp.import('{2030-01-01}', '{holiday}', '{N}', false, false), 'exists: +0 -1 ~0 =1 o1', 'without --replace what is there stays');
SELECT is((SELECT count(*) FROM reports.calendar_day WHERE calendar = 'new'), 3::bigint, 'all of it');
SELECT is(pg_temp.import('{2030-01-01,2030-12-25,2030-12-26}', '{working,holiday,holiday}', '{N,C,B}', true, true), 'replaced: +1 -0 ~1 =1 o1', 'changes are counted');
SELECT is((SELECT count(*) FROM reports.calendar_day WHERE calendar = 'new'), 3::bigint, 'and not made by a dry run');
SELECT is(pg_temp.import('{2030-01-01,2030-12-26}', '{working,holiday}', '{N,B}', true, false), 'replaced: +1 -1 ~1 =0 o1', 'an import replaces what was imported');
SELECT results_eq($$SELECT day, kind, override FROM reports.calendar_day WHERE calendar = 'new' ORDER BY day$$,
                  $$VALUES (date '2030-01-01', 'working', false), ('2030-07-01', 'holiday', true), ('2030-12-26', 'holiday', false)$$, 'and keeps what somebody entered');
SELECT is((SELECT string_agg(DISTINCT recorded_by, ' ') FROM reports.calendar_day WHERE calendar = 'new'), session_user::text, 'each row says who wrote it');
DELETE FROM reports.calendar_weekend WHERE calendar = 'new';
UPDATE reports.calendar SET combine = 'union', valid_from = NULL, valid_through = NULL WHERE name = 'new';
SELECT is(pg_temp.import('{2030-01-01}', '{working}', '{N}', true, false), 'combination: +0 -1 ~0 =1 o1', 'nothing is imported over a combination');
RESET ROLE;

-- Findings.
INSERT INTO reports.calendar (name, valid_through) VALUES ('old', current_date - 1), ('soon', current_date + 59), ('later', current_date + 60);
INSERT INTO reports.calendar (name, combine) VALUES ('empty', 'union');
INSERT INTO reports.calendar (name, valid_from, valid_through) VALUES ('days', '2030-01-01', '2040-12-31');
INSERT INTO reports.calendar_weekend VALUES ('days', '2031-01-01', '{5,6}');
INSERT INTO reports.calendar_day (calendar, day, kind, override) VALUES
    ('days', '2030-01-05', 'holiday', true),  -- Saturday
    ('days', '2030-01-12', 'holiday', false),  -- Saturday too, and of a file
    ('days', '2031-01-03', 'holiday', true),  -- Friday, weekend by then
    ('days', '2031-01-05', 'holiday', false),  -- Sunday, no weekend any more
    ('days', '2030-01-07', 'working', false),  -- Monday
    ('days', '2030-01-08', 'holiday', false), ('days', '2030-01-08', 'working', true),
    ('days', '2030-01-09', 'holiday', false), ('days', '2030-01-09', 'holiday', true),
    ('days', '2041-01-02', 'holiday', true);
SELECT is((SELECT string_agg(format('%s: %s, %s, %s', calendar, verdict, finding, left(detail, 26)), '; ' ORDER BY calendar::text COLLATE "C", finding COLLATE "C")
             FROM reports.v_calendar_finding WHERE calendar IN ('old', 'soon', 'later', 'empty', 'days')),
          'days: look, beyond_validity, days outside valid_from to; days: look, on_weekend, holidays on weekend days, ; days: look, override_agrees, overrides that say what th; '
          'days: look, override_differs, overrides against the impo; days: look, works_anyway, working days that are busi; empty: wrong, no_parts, it is a combination (union; '
          'old: wrong, expired, its days are known through; soon: look, expires, its days are known through', 'each finding, and no other');
SELECT results_eq($$SELECT substring(detail, ': (.*)$') FROM reports.v_calendar_finding WHERE calendar = 'days' AND finding = 'on_weekend'$$, $$VALUES ('2, first 2030-01-05')$$,
                  'the weekend of each day counts');

-- Schedules follow a calendar with one version a transaction, whatever it does to the calendar, and only those that use it.
INSERT INTO reports.calendar (name) VALUES ('used'), ('unused');
INSERT INTO reports.calendar (name, combine) VALUES ('over', 'union');
INSERT INTO reports.calendar_part VALUES ('over', 'used');
INSERT INTO reports.schedule (name, scope, report, kind, rule, calendar, effective_from)
SELECT n, 'tap', 'nothing', 'cron', '@daily', c, f FROM (VALUES ('direct', 'used', NULL), ('by-way', 'over', NULL), ('other', 'unused', NULL), ('none', NULL, NULL),
                                                                ('announced', 'used', timestamptz '2199-01-01 00:00Z')) AS t (n, c, f);
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO reports.calendar_day (calendar, day) VALUES ('used', '2030-01-01');
DELETE FROM reports.calendar_day WHERE calendar = 'used';
UPDATE reports.calendar SET weekend_days = '{7}' WHERE name = 'used';
SET CONSTRAINTS ALL IMMEDIATE;
SELECT results_eq($$SELECT v.schedule::text, v.version, v.change_reason FROM reports.schedule_version v WHERE v.schedule IN ('direct', 'by-way', 'other', 'none', 'announced')
                     ORDER BY v.schedule, v.version$$,
                  $$VALUES ('announced', 1, NULL), ('by-way', 1, NULL), ('by-way', 2, 'calendar over has changed'), ('direct', 1, NULL),
                           ('direct', 2, 'calendar used has changed'), ('none', 1, NULL), ('other', 1, NULL)$$, 'one version a transaction, of those that use it');
SELECT is(s.calendar_version, c.version, format('%s follows the version there is', s.name))
  FROM reports.schedule s JOIN reports.calendar c ON c.name = s.calendar WHERE s.name IN ('direct', 'by-way', 'other') ORDER BY s.name;
UPDATE reports.schedule SET calendar_version = 1 WHERE name = 'direct';
SELECT is(s.calendar_version, c.version, 'nobody sets it otherwise') FROM reports.schedule s JOIN reports.calendar c ON c.name = s.calendar WHERE s.name = 'direct';
SELECT results_eq($$SELECT calendar, what, day, until, word, weekend_days, version IS NOT NULL FROM reports.calendar_parts('over')$$,
                  $$VALUES ('over', 'calendar', NULL::date, NULL::date, 'union', 0, true), ('over', 'part', NULL, NULL, 'used', 0, false),
                           ('used', 'calendar', NULL, NULL, 'weekends_only', 1, true)$$, 'what a combination is made of, to be compiled');

-- A calendar in use whose known days end within 60 days: said by name, with who uses it and what to do. Days are those of the database clock in UTC.
CREATE FUNCTION pg_temp.today() RETURNS date LANGUAGE sql AS $$ SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date $$;
CREATE FUNCTION pg_temp.ending() RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(format('%s: %s | %s', subject, problem, remedy), E'\n' ORDER BY subject), 'none') FROM reports.v_problem WHERE kind = 'calendar'
$$;
CREATE FUNCTION pg_temp.days_left(p_scope text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(label || ' ' || value, ', ' ORDER BY label), 'none') FROM reports.scope_figures(p_scope) WHERE figure = 'calendar_days_left'
$$;
DELETE FROM reports.calendar c WHERE NOT EXISTS (SELECT FROM reports.schedule s WHERE s.calendar IN (SELECT reports.calendar_users(ARRAY[c.name::text])))
    AND NOT EXISTS (SELECT FROM reports.calendar_part p WHERE p.part = c.name OR p.calendar = c.name);
SELECT is(pg_temp.ending() || ', ' || pg_temp.days_left('tap'), 'none, none', 'a calendar without an end needs nobody');
UPDATE reports.calendar SET valid_through = pg_temp.today() + 61 WHERE name IN ('used', 'unused');
SELECT is(pg_temp.ending() || ', ' || pg_temp.days_left('tap'), 'none, none', 'nor does one that is known for more than 60 days');
UPDATE reports.calendar SET valid_through = pg_temp.today() + 60 WHERE name = 'used';
SELECT is(pg_temp.ending(), format('used: its days are known through %s only, 60 days from now; beyond, only weekends count and holidays are missed; used by schedule announced, by-way, direct'
          ' | import newer data: reportctl calendar import used FILE --replace; or, where no holidays are to come, write a later valid_through', pg_temp.today() + 60),
          'one that is known for 60 days does, and so does one in a combination');
SELECT is(pg_temp.days_left('tap') || ', ' || pg_temp.days_left('main'), 'used 60, none', 'and the scope that uses it counts the days');
UPDATE reports.schedule SET ends_at = (pg_temp.today() + 61)::timestamp AT TIME ZONE 'UTC' WHERE name IN ('announced', 'by-way', 'direct');
SELECT is(pg_temp.ending() || ', ' || pg_temp.days_left('tap'), 'none, none', 'schedules that end by then need no later days');
UPDATE reports.schedule SET ends_at = NULL WHERE name = 'direct';
UPDATE reports.calendar SET valid_through = pg_temp.today() - 1, beyond = 'hold' WHERE name = 'used';
SELECT matches(pg_temp.ending(), format('^used: its days are known through %s only, and that is past; beyond, schedules wait with a problem; used by schedule announced, by-way, direct . import', pg_temp.today() - 1), 'one that has ended is told too, to whoever runs on');
SELECT is(pg_temp.days_left('tap'), 'used -1', 'and counted below 0');
INSERT INTO reports.schedule (name, scope, report, kind, rule, calendar) SELECT 'many' || n, 'tap', 'nothing', 'cron', '@daily', 'used' FROM generate_series(1, 5) n;
SELECT matches(pg_temp.ending(), 'used by schedule announced, by-way, direct and more . import', 'of many schedules the first are named');

SELECT * FROM finish();
ROLLBACK;
