-- Business dates: what is refused, the table of fiscal periods, and what a firing that somebody asks for is about.
-- What the leader plans is shown by tests/integration/test_planning_business.c.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.with(p_name text, p_rule text, p_business_date text, p_kind text DEFAULT 'cron', p_more text DEFAULT '', p_values text DEFAULT '') RETURNS text LANGUAGE sql AS $$
    SELECT format('INSERT INTO reports.schedule (name, scope, report, kind, rule, business_date%s) VALUES (%L, ''tap'', ''nothing'', %L, %L, %L%s)',
                  p_more, p_name, p_kind, p_rule, p_business_date, p_values)
$$;
SELECT is(pg_temp.refusal(pg_temp.with('s', '0 6 1 * *', b)), 'not refused', b || ' is taken')
  FROM unnest('{run_date,t_minus(1),t_minus(31),previous_week,current_week,previous_month,current_month,previous_quarter,current_quarter,previous_month cutoff 06:00}'::text[]) b;
SELECT matches(pg_temp.refusal(pg_temp.with('s', '0 6 1 * *', b)), '^23514 schedule "s": business_date cannot be .*\(Write run_date, t_minus\(1\) to', coalesce(b, 'NULL') || ' is refused')
  FROM unnest(ARRAY['t_minus(0)', 't_minus(32)', 'previous_day', 'fiscal_period()', 'run_date cutoff 00:00', 'run_date cutoff 24:00', '', NULL]) b;
SELECT is(pg_temp.refusal(pg_temp.with('s', '30 days', 'previous_month', 'interval')),
          '23514 schedule "s": an interval is elapsed time and cannot keep to periods (Write kind = ''cron'' with a rule such as 0 6 1 * *, or business_date = ''run_date''.)', 'no interval');
SELECT is(pg_temp.refusal(pg_temp.with('s', '30 days', 't_minus(1)', 'interval')), 'not refused', 'dates go with intervals');
SELECT is(pg_temp.refusal(pg_temp.with('s', '0 6 1 * *', 'previous_month', 'cron', ', dst_overlap', ', ''both''')),
          '23514 schedule "s": a period is reported once, and dst_overlap is ''both'' (Write dst_overlap = ''first'' or ''second''.)', 'once');
SELECT is(pg_temp.refusal(pg_temp.with('s', '0 6 1 * *', 'fiscal_period(acme)')),
          '23503 schedule "s": fiscal calendar "acme" has no periods (Insert them into reports.fiscal_period first, or correct the name.)', 'a calendar that nobody has filled');

-- Fiscal periods ---------------------------------------------------------------------------------

INSERT INTO reports.fiscal_period VALUES ('acme', 'FY2020-P03', '2020-03-25', '2020-04-28'), ('acme', 'FY2020-P01', '2020-01-28', '2020-02-24'),
    ('acme', 'FY2020-P02', '2020-02-25', '2020-03-24'), ('other', 'FY2020-P01', '2020-01-01', '2020-02-20');
SELECT is(pg_temp.refusal(pg_temp.with('s', '0 6 1 * *', 'fiscal_period(acme)')), 'not refused', 'one that is there');
SELECT is(pg_temp.refusal(format('INSERT INTO reports.fiscal_period VALUES (''acme'', %L, %L, %L)', label, first, last)), refusal, format('%s from %s to %s', label, first, last))
  FROM (VALUES ('FY2020-P04', '2020-04-28', '2020-05-26', '23514 fiscal calendar "acme": period "FY2020-P04" begins on 2020-04-28, and "FY2020-P03" before it ends on 2020-04-28 (A day lies in one period: correct one of them.)'),
               ('FY2020-P00', '2020-04-29', '2020-05-26', '23514 fiscal calendar "acme": period "FY2020-P00" comes after "FY2020-P03", and its label sorts before it (Keys sort as the times they name: write labels such as FY2030-P07, with the year first and numbers of one length.)'),
               ('FY2020-P04', '2020-04-29', '2020-05-26', 'not refused')) AS t (label, first, last, refusal);
SELECT is(pg_temp.refusal($$UPDATE reports.fiscal_period SET last_day = last_day + 1 WHERE calendar = 'acme'$$),
          '23514 fiscal calendar "acme": period "FY2020-P02" begins on 2020-02-25, and "FY2020-P01" before it ends on 2020-02-25 (A day lies in one period: correct one of them.)', 'nor by an update');
SELECT is(pg_temp.refusal($$UPDATE reports.fiscal_period SET first_day = first_day + 1, last_day = last_day + 1 WHERE calendar = 'acme'$$), 'not refused', 'all at once');

-- What is told of a local time -------------------------------------------------------------------

INSERT INTO reports.fiscal_period VALUES ('holes', 'P01', '2020-01-01', '2020-01-31'), ('holes', 'P02', '2020-02-01', '2020-02-29'), ('holes', 'P04', '2020-04-01', '2020-04-30');

INSERT INTO reports.calendar (name) VALUES ('a'), ('b');
INSERT INTO reports.calendar (name, combine) VALUES ('both', 'union'), ('either', 'intersection');
INSERT INTO reports.calendar (name, beyond, valid_through) VALUES ('held', 'hold', '2020-04-10');
INSERT INTO reports.calendar_day (calendar, day, kind) VALUES ('a', '2020-04-10', 'holiday'), ('b', '2020-04-09', 'holiday'), ('b', '2020-04-11', 'working');
INSERT INTO reports.calendar_part VALUES ('both', 'a'), ('both', 'b'), ('either', 'a'), ('either', 'b');
DO $$ BEGIN EXECUTE pg_temp.with('v', '0 6 1 * *', 'run_date'); END $$;
CREATE FUNCTION pg_temp.about(p_business_date text, p_local timestamp, p_calendar text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat(a.first_day, '..', a.last_day, ' ' || a.label)
      FROM (SELECT * FROM reports.schedule_version WHERE schedule = 'v') v
     CROSS JOIN LATERAL jsonb_populate_record(v.*::reports.schedule_version, jsonb_build_object('business_date', p_business_date, 'calendar', p_calendar)) w
     CROSS JOIN LATERAL reports.business_about(w, p_local) a
$$;
SELECT is(pg_temp.about(b, l::timestamp, c), want, concat_ws(' ', b, l, c))
  FROM (VALUES ('run_date', '2020-04-13 06:00', NULL, '2020-04-13..2020-04-13'), ('run_date cutoff 06:00', '2020-04-13 05:59', NULL, '2020-04-12..2020-04-12'),
               ('t_minus(3)', '2020-04-13 06:00', NULL, '2020-04-10..2020-04-10'), ('t_minus(1)', '2020-04-13 06:00', 'a', '2020-04-09..2020-04-09'),
               ('t_minus(1)', '2020-04-13 06:00', 'b', '2020-04-11..2020-04-11'), ('t_minus(1)', '2020-04-13 06:00', 'both', '2020-04-08..2020-04-08'),
               ('t_minus(1)', '2020-04-13 06:00', 'either', '2020-04-11..2020-04-11'), ('t_minus(2)', '2020-04-13 06:00', 'either', '2020-04-10..2020-04-10'),
               ('t_minus(1)', '2020-04-11 06:00', 'held', '2020-04-10..2020-04-10'), ('t_minus(1)', '2020-04-12 06:00', 'held', '..'),
               ('previous_week', '2021-01-04 06:00', NULL, '2020-12-28..2021-01-03 2020-W53'), ('current_week', '2019-12-30 06:00', NULL, '2019-12-30..2020-01-05 2020-W01'),
               ('previous_month', '2020-03-31 06:00', NULL, '2020-02-01..2020-02-29 2020-02'), ('previous_quarter', '2020-01-01 06:00', NULL, '2019-10-01..2019-12-31 2019-Q4'),
               ('current_quarter cutoff 07:00', '2020-01-01 06:00', NULL, '2019-10-01..2019-12-31 2019-Q4'),
               ('fiscal_period(acme)', '2020-02-25 06:00', NULL, '2020-01-28..2020-02-24 FY2020-P01'), ('fiscal_period(acme)', '2020-02-24 06:00', NULL, '..'),
               ('fiscal_period(acme)', '2020-04-29 06:00', NULL, '..'), ('fiscal_period(holes)', '2020-02-01 06:00', NULL, '2020-01-01..2020-01-31 P01'),
               ('fiscal_period(holes)', '2020-04-01 06:00', NULL, '..')) AS t (b, l, c, want);

-- Manual keys ------------------------------------------------------------------------------------

CREATE FUNCTION pg_temp.known(p_name text, p_form text, p_next_nominal timestamp) RETURNS void LANGUAGE sql AS $$
    INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, key_form, next_nominal, next_offset_s, next_fire_at)
    VALUES (p_name, 'tap', 1, '2020-01-01Z', p_form, p_next_nominal, 0, p_next_nominal AT TIME ZONE 'UTC');
    DELETE FROM reports.schedule_change WHERE schedule = p_name;
$$;
DO $$ BEGIN
    EXECUTE pg_temp.with('monthly', '0 6 5 * *', 'previous_month');
    EXECUTE pg_temp.with('weekly', '0 6 * * 1', 'previous_week');
    EXECUTE pg_temp.with('fiscal', '0 6 26 2,3 *', 'fiscal_period(acme)');
    EXECUTE pg_temp.with('back', '0 6 * * *', 't_minus(1)', 'cron', ', calendar', ', ''a''');
    PERFORM pg_temp.known('monthly', 'month', '2199-05-05 06:00'), pg_temp.known('weekly', 'week', '2199-05-06 06:00'),
            pg_temp.known('fiscal', 'fiscal', '2020-03-26 06:00'), pg_temp.known('back', 'date', '2199-05-06 06:00');
END $$;
SELECT is((SELECT concat(k.fault, ' (', k.hint, ')') FROM reports.key_fault(s, k0) k), want, s || ':' || k0)
  FROM (VALUES ('monthly', '2030-03', ' ()'), ('monthly', 'rerun-7', ' ()'), ('monthly', '2199-03', ' ()'),
               ('monthly', '2199-04', 'key ''2199-04'' names a period that is still to come (Wait for that firing, or choose a key of your own.)'),
               ('monthly', '2030-13', 'key ''2030-13'' begins like a month but is not the key of a firing of "monthly" (Its keys look like 2030-03; a key of your own must not begin like one.)'),
               ('monthly', '2030-03-01', 'key ''2030-03-01'' begins like a month but is not the key of a firing of "monthly" (Its keys look like 2030-03; a key of your own must not begin like one.)'),
               ('weekly', '2026-W53', ' ()'), ('weekly', '2030-W53', 'key ''2030-W53'' begins like a week but is not the key of a firing of "weekly" (Its keys look like 2030-W15; a key of your own must not begin like one.)'),
               ('fiscal', 'FY2020-P01', ' ()'), ('fiscal', 'FY2020-P02', 'key ''FY2020-P02'' names a period that is still to come (Wait for that firing, or choose a key of your own.)'),
               ('fiscal', 'FY2020-P1', 'key ''FY2020-P1'' begins like a fiscal period but is not the key of a firing of "fiscal" (Its keys are labels of reports.fiscal_period; a key of your own must not begin like one.)'),
               ('back', '2020-04-13', ' ()')) AS t (s, k0, want);
SELECT isnt(reports.key_to_come('monthly', '2199-04'), NULL, 'the key of the next firing is known');
SELECT is(reports.key_to_come('monthly', '2199-05'), NULL, 'that of the one behind it is not');

CREATE FUNCTION pg_temp.trigger(p_schedule text, p_key text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    id uuid := gen_random_uuid();
    answer record;
BEGIN
    PERFORM reports.ask(id, 'trigger', p_schedule, p_key, '1 minute');
    SELECT * INTO answer FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), id, gen_random_uuid());
    RETURN coalesce((SELECT concat(o.business_date, ' ', o.window_start AT TIME ZONE 'UTC', ' ', CASE WHEN o.window_end <> o.scheduled_for THEN o.window_end AT TIME ZONE 'UTC' END)
                       FROM reports.occurrence o WHERE o.schedule = p_schedule AND o.occurrence_key = p_key), answer::text);
END
$$;
SELECT is(pg_temp.trigger(s, k), want, format('%s:%s by hand', s, k))
  FROM (VALUES ('monthly', '2030-03', '2030-03-31 2030-03-01 00:00:00 2030-04-01 00:00:00'), ('weekly', '2026-W53', '2027-01-03 2026-12-28 00:00:00 2027-01-04 00:00:00'),
               ('fiscal', 'FY2020-P01', '2020-02-24 2020-01-28 00:00:00 2020-02-25 00:00:00'), ('back', '2020-04-13', '2020-04-09  ')) AS t (s, k, want);
SELECT is(pg_temp.trigger('monthly', 'mine'),
          concat(date_trunc('month', timezone('UTC', now()))::date - 1, ' ', date_trunc('month', timezone('UTC', now()) - interval '1 month'), ' ', date_trunc('month', timezone('UTC', now()))),
          'a key of one''s own is about what a firing now would be about');

-- What has been reported stays -------------------------------------------------------------------

SELECT is(pg_temp.refusal($$UPDATE reports.fiscal_period SET last_day = '2020-02-23' WHERE label = 'FY2020-P01' AND calendar = 'acme'$$),
          '23503 fiscal calendar "acme": period "FY2020-P01" is the key of a report of schedule "fiscal" (Leave it as it is; insert other periods under labels of their own.)', 'a period that was reported keeps its days');
SELECT matches(pg_temp.refusal($$DELETE FROM reports.fiscal_period WHERE calendar = 'acme'$$), '^23503 .*"FY2020-P01" is the key', 'and is not deleted');
SELECT is(pg_temp.refusal($$DELETE FROM reports.fiscal_period WHERE label = 'FY2020-P02' AND calendar = 'acme'$$), 'not refused', 'another may');
SELECT is(pg_temp.refusal($$DELETE FROM reports.fiscal_period WHERE calendar = 'other'$$), 'not refused', 'of another calendar, too');

SELECT is(pg_temp.refusal($$DELETE FROM reports.occurrence WHERE schedule = 'fiscal'; DELETE FROM reports.fiscal_period; UPDATE reports.schedule SET paused = true WHERE name = 'fiscal'$$),
          'not refused', 'a schedule whose periods are gone may be paused');

-- The form of keys stays -------------------------------------------------------------------------

SELECT is(pg_temp.refusal(format('UPDATE reports.schedule SET business_date = %L WHERE name = %L', b, s)), want, format('%s to %s', s, b))
  FROM (VALUES ('monthly', 'current_month', 'not refused'), ('back', 't_minus(2)', 'not refused'), ('back', 'run_date', 'not refused'),
               ('monthly', 'run_date', '22023 schedule "monthly": its firings are known by their month, and with business_date = ''run_date'' they would not be (Insert a new schedule for it and delete this one.)'),
               ('monthly', 'previous_week', '22023 schedule "monthly": its firings are known by their month, and with business_date = ''previous_week'' they would not be (Insert a new schedule for it and delete this one.)'),
               ('back', 'previous_month', '22023 schedule "back": its firings are known by their date, and with business_date = ''previous_month'' they would not be (Insert a new schedule for it and delete this one.)')) AS t (s, b, want);

-- New periods mend ------------------------------------------------------------------------------

-- The leader looks again: concurrency_fiscal.sql shows that it waits for nobody.
CREATE FUNCTION pg_temp.tend() RETURNS text LANGUAGE sql AS $$ SELECT verdict FROM reports.tend('tap', 1, 100, pg_temp.leader(), 100) $$;
CREATE FUNCTION pg_temp.edits(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', c.version, CASE WHEN c.announced THEN 'announced' END, v.priority, v.change_reason), ', ' ORDER BY c.version)
      FROM reports.schedule_change c JOIN reports.schedule_version v USING (schedule, version) WHERE c.schedule = p_schedule
$$;
SELECT is(pg_temp.tend(), 'ok', '(the leader has seen what there is)');
DELETE FROM reports.schedule_change WHERE schedule IN ('fiscal', 'monthly');
UPDATE reports.schedule_progress SET problem = 'no period', next_fire_at = NULL WHERE schedule IN ('fiscal', 'monthly');
INSERT INTO reports.fiscal_period VALUES ('other', 'FY2020-P02', '2020-02-21', '2020-03-20');
SELECT is(pg_temp.tend(), 'ok', '(the leader looks)');
SELECT is_empty($$SELECT FROM reports.schedule_change WHERE schedule IN ('fiscal', 'monthly')$$, 'periods of another calendar change nothing');
INSERT INTO reports.fiscal_period VALUES ('acme', 'FY2020-P04', '2020-04-29', '2020-05-26');
SELECT is(pg_temp.tend(), 'ok', '(the leader looks)');
SELECT is(concat(pg_temp.edits('fiscal'), pg_temp.edits('monthly')), '2 0 fiscal calendar has changed', 'those of its own have the leader look again');
SELECT is((SELECT rule FROM reports.schedule_version WHERE schedule = 'fiscal' AND version = 2), '0 6 26 2,3 *', 'by a version like the one before');
INSERT INTO reports.fiscal_period VALUES ('acme', 'FY2020-P05', '2020-05-27', '2020-06-23');
SELECT is(pg_temp.tend(), 'ok', '(the leader looks)');
SELECT is(pg_temp.edits('fiscal'), '2 0 fiscal calendar has changed', 'once');

-- What is announced does not keep it from going on.
DELETE FROM reports.schedule_change WHERE schedule = 'fiscal';
UPDATE reports.schedule SET priority = 9, paused = false, effective_from = '2199-01-01Z' WHERE name = 'fiscal';
INSERT INTO reports.fiscal_period VALUES ('acme', 'FY2020-P06', '2020-06-24', '2020-07-20');
SELECT is(pg_temp.tend(), 'ok', '(the leader looks)');
SELECT is(pg_temp.edits('fiscal'), '3 0 fiscal calendar has changed, 4 announced 9', 'it is looked at before an edit that is announced');
SELECT results_eq($$SELECT version, effective_from > now() + interval '1 day' FROM reports.schedule_version WHERE schedule = 'fiscal' AND version > 2 ORDER BY 1$$, $$VALUES (3, false), (4, true)$$, 'which begins when it was to');
SELECT is_empty('SELECT FROM reports.fiscal_behind', 'and nothing is left to be looked at');

SELECT * FROM finish();
ROLLBACK;
