-- A manual key that begins like a date is that of a firing to the byte, and of none that is still to come: no
-- firing is reported twice under two spellings, and none is missing because a person took its key (I3).
BEGIN;
\ir fixture.psql
SELECT no_plan();

-- A schedule that was made on 1 January 2026, taken in with this form of keys (NULL: not taken in yet).
CREATE FUNCTION pg_temp.made(p_name text, p_kind text, p_rule text, p_form text, p_zone text DEFAULT 'Europe/Berlin', p_anchor timestamptz DEFAULT '2026-01-01 00:00Z',
                             p_start timestamp DEFAULT NULL, p_overlap text DEFAULT 'auto', p_dialect text DEFAULT 'std', p_rdates timestamp[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone, anchor, start_local, dst_overlap, dialect, rdates)
    VALUES (p_name, 'tap', 'nothing', p_kind, p_rule, p_zone, p_anchor, p_start, p_overlap, p_dialect, p_rdates);
    UPDATE reports.schedule_version SET effective_from = '2026-01-01Z' WHERE schedule = p_name;
    INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, key_form) SELECT p_name, 'tap', 1, '2026-01-01Z', p_form WHERE p_form IS NOT NULL;
END
$$;
CREATE FUNCTION pg_temp.key(p_schedule text, p_key text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.refusal(format('SELECT reports.ask(gen_random_uuid(), ''trigger'', %L, %L, ''1 min'')', p_schedule, p_key))
$$;
CREATE FUNCTION pg_temp.wrong(p_schedule text, p_key text, p_hint text) RETURNS text LANGUAGE sql AS $$
    SELECT is(pg_temp.key(p_schedule, p_key), format('22023 key %L begins like a date but is not the key of a firing of "%s" (%s; a key of your own must not begin with a date.)', p_key, p_schedule, p_hint),
              format('%s: %s is refused with the key to write', p_schedule, p_key))
$$;
CREATE FUNCTION pg_temp.right(p_schedule text, p_key text) RETURNS text LANGUAGE sql AS $$
    SELECT is(pg_temp.key(p_schedule, p_key), 'not refused', format('%s: %s passes', p_schedule, p_key))
$$;

-- A date as people write it elsewhere would be a report of today under that name.
SELECT pg_temp.made('by-date', 'cron', '30 6 * * *', 'date');
SELECT is(pg_temp.key('by-date', k), format('22023 key %L looks like a date in another form than keys have (Write a date as 2030-04-12; a key of your own must not look like a date.)', k), format('%s is refused', k))
  FROM unnest('{29.11.2026,29.11.26,1-2-2026,2026.1.2}'::text[]) k;
SELECT pg_temp.right('by-date', k) FROM unnest('{v1.2.3,10.0.0.1,q4-2026,29.11,20261129}'::text[]) k;

-- Intervals: the UTC instant with Z, on the grid of anchor and length.
SELECT pg_temp.made('quarter', 'interval', '15 minutes', 'minute'), pg_temp.made('seconds', 'interval', '70 seconds', 'second', p_anchor => '2026-01-01 00:00:07.5Z');
SELECT pg_temp.right('quarter', '2026-02-01T00:15Z');
SELECT pg_temp.right('seconds', '2026-01-01T00:01:17Z');
SELECT pg_temp.right('seconds', '2026-01-01T00:00:07Z');
SELECT pg_temp.wrong('quarter', k, 'The firing then or before has the key 2026-02-01T00:15Z')
  FROM unnest('{2026-02-01T00:15,2026-02-01T00:15:00Z,2026-02-01T00:15+00:00,2026-02-01T01:15+01:00,2026-02-01T00:16Z,2026-02-01T00:29:59Z}'::text[]) k;
SELECT pg_temp.wrong('seconds', k, 'The firing then or before has the key 2026-01-01T00:01:17Z')
  FROM unnest('{2026-01-01T00:01:17,2026-01-01T00:01:18Z,2026-01-01T00:02Z,2026-01-01T01:01:17+01:00}'::text[]) k;
SELECT pg_temp.wrong('seconds', '2026-01-01T00:00:06Z', 'Its first firing is at 2026-01-01T00:00:07Z');
SELECT pg_temp.wrong('seconds', '2026-01-01', 'Its keys look like 2030-04-12T06:00:30Z');
SELECT pg_temp.wrong('quarter', '2026-01-01', 'Its keys look like 2030-04-12T06:00Z');
SELECT is(pg_temp.key('quarter', to_char(date_trunc('hour', now() AT TIME ZONE 'UTC') + away, 'YYYY-MM-DD"T"HH24:MI"Z"')),
          format('55000 key %L names a time that is still to come (Wait for that firing, or choose a key of your own.)', to_char(date_trunc('hour', now() AT TIME ZONE 'UTC') + away, 'YYYY-MM-DD"T"HH24:MI"Z"')),
          format('an interval''s key %s from now is refused', away))
  FROM unnest('{1 hour,75 minutes,1 day,400 days}'::interval[]) away;
SELECT pg_temp.right('quarter', to_char(date_trunc('hour', now() AT TIME ZONE 'UTC'), 'YYYY-MM-DD"T"HH24:MI"Z"'));
-- The length and anchor that were in force then.
UPDATE reports.schedule SET rule = '1 hour' WHERE name = 'quarter';
UPDATE reports.schedule_version SET effective_from = '2026-06-01Z' WHERE schedule = 'quarter' AND version = 2;
SELECT pg_temp.right('quarter', '2026-05-31T23:45Z');
SELECT pg_temp.right('quarter', '2026-06-01T01:00Z');
SELECT pg_temp.wrong('quarter', '2026-06-01T00:15Z', 'The firing then or before has the key 2026-06-01T00:00Z');
-- One that has never been taken in.
SELECT pg_temp.made('fresh', 'interval', '15 minutes', NULL), pg_temp.made('fresh-s', 'interval', '15 minutes', NULL, p_anchor => '2026-01-01 00:00:30Z');
SELECT pg_temp.right('fresh', '2026-02-01T00:15Z');
SELECT pg_temp.right('fresh-s', '2026-02-01T00:15:30Z');
SELECT pg_temp.wrong('fresh', '2026-02-01T00:15:00Z', 'The firing then or before has the key 2026-02-01T00:15Z');
SELECT pg_temp.made('endless', 'interval', '15 minutes', 'minute', p_anchor => 'infinity');
SELECT pg_temp.wrong('endless', '2026-02-01T00:15Z', 'Its keys look like 2030-04-12T06:00Z');

-- Local minutes: no offset but in an overlap of which both passes run.
SELECT pg_temp.made('each-minute', 'cron', '* * * * *', 'minute'), pg_temp.made('twice', 'cron', '30 2,14 * * *', 'minute');
SELECT pg_temp.right(s, '2026-06-30T12:53') FROM unnest('{each-minute,twice}'::text[]) s;
SELECT pg_temp.wrong('each-minute', k, 'Write 2026-06-30T12:53')
  FROM unnest('{2026-06-30T12:53+02:00,2026-06-30T10:53Z,2026-06-30T11:53+01:00,2026-06-30T12:53:00}'::text[]) k;
SELECT pg_temp.wrong('each-minute', '2026-06-30T12:53Z', 'Write 2026-06-30T14:53');
SELECT pg_temp.wrong('each-minute', '2026-06-30', 'Its keys look like 2030-04-12T06:00');
SELECT pg_temp.right('each-minute', k) FROM unnest('{2026-10-25T02:30+02:00,2026-10-25T02:30+01:00,2026-10-25T01:59,2026-10-25T03:00}'::text[]) k;
SELECT pg_temp.wrong('each-minute', k, 'Write 2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00') FROM unnest('{2026-10-25T02:30}'::text[]) k;
SELECT pg_temp.right('twice', '2026-10-25T02:30');
SELECT pg_temp.wrong('twice', k, 'Write 2026-10-25T02:30') FROM unnest('{2026-10-25T02:30+02:00,2026-10-25T02:30+01:00}'::text[]) k;
SELECT pg_temp.right('twice', '2026-03-29T02:30');
SELECT is(pg_temp.key('each-minute', to_char((now() AT TIME ZONE 'Europe/Berlin') + away, 'YYYY-MM-DD"T"HH24:MI')),
          format('55000 key %L names a time that is still to come (Wait for that firing, or choose a key of your own.)', to_char((now() AT TIME ZONE 'Europe/Berlin') + away, 'YYYY-MM-DD"T"HH24:MI')),
          format('a local minute %s from now is refused', away))
  FROM unnest('{2 minutes,1 hour,1 day,400 days}'::interval[]) away;
SELECT pg_temp.right('each-minute', to_char(now() AT TIME ZONE 'Europe/Berlin' - interval '1 minute', 'YYYY-MM-DD"T"HH24:MI'));

-- Dates, and a daily rule that follows the clock.
SELECT pg_temp.made('daily', 'cron', '30 2 * * *', 'date'), pg_temp.made('clock', 'cron', '*/60 2 * * *', 'date'), pg_temp.made('new', 'cron', '@daily', NULL), pg_temp.made('once', 'once', '2026-02-03T06:00', 'date');
SELECT pg_temp.right(s, '2026-02-03') FROM unnest('{daily,clock,new,once}'::text[]) s;
SELECT pg_temp.wrong(s, k, 'Write 2026-02-03') FROM unnest('{daily,clock,new,once}'::text[]) s, unnest('{2026-02-03T02:30,2026-02-03Z,2026-02-03+01:00,2026-02-03T02:30:00+01:00}'::text[]) k;
SELECT pg_temp.right('daily', '2026-10-25');
SELECT pg_temp.right('clock', '2026-10-25+02:00');
SELECT pg_temp.right('clock', '2026-10-25+01:00');
SELECT pg_temp.wrong('clock', '2026-10-25', 'Write 2026-10-25+02:00 or 2026-10-25+01:00');
SELECT pg_temp.wrong('daily', '2026-10-25+02:00', 'Write 2026-10-25');
SELECT matches(pg_temp.key('daily', to_char(now() AT TIME ZONE 'Europe/Berlin' + away, 'YYYY-MM-DD')), '^55000 key .* names a time that is still to come .Wait for that firing', format('a date %s from now is refused', away))
  FROM unnest('{1 day,400 days}'::interval[]) away;
SELECT pg_temp.right('daily', to_char(now() AT TIME ZONE 'Europe/Berlin', 'YYYY-MM-DD'));

-- Recurrence rules, of which both passes run when dst_overlap says so. The time of day is the rule's or the start's.
SELECT pg_temp.made('rule', 'rrule', 'FREQ=DAILY', 'date', p_start => '2026-01-01 02:30'),
       pg_temp.made('rule-both', 'rrule', 'FREQ=DAILY', 'date', p_start => '2026-01-01 02:30', p_overlap => 'both', p_rdates => '{2026-02-01 02:30}'),
       pg_temp.made('rule-hour', 'rrule', 'freq=daily;byhour=2;byminute=15', 'date', p_start => '2026-01-01 12:30', p_overlap => 'both'),
       pg_temp.made('rule-noon', 'rrule', 'FREQ=DAILY', 'date', p_start => '2026-01-01 12:30', p_overlap => 'both'),
       pg_temp.made('rule-hours', 'rrule', 'FREQ=DAILY;BYHOUR=2,14', 'minute', p_start => '2026-01-01 00:30', p_overlap => 'both');
SELECT pg_temp.right(s, '2026-10-25') FROM unnest('{rule,rule-noon}'::text[]) s;
SELECT pg_temp.wrong('rule', '2026-10-25+02:00', 'Write 2026-10-25');
SELECT pg_temp.right(s, k) FROM unnest('{rule-both,rule-hour}'::text[]) s, unnest('{2026-10-25+02:00,2026-10-25+01:00,2026-10-24,2026-10-26}'::text[]) k;
SELECT pg_temp.wrong(s, '2026-10-25', 'Write 2026-10-25+02:00 or 2026-10-25+01:00') FROM unnest('{rule-both,rule-hour}'::text[]) s;
SELECT pg_temp.right('rule-hours', k) FROM unnest('{2026-10-25T02:30+02:00,2026-10-25T14:30}'::text[]) k;
SELECT pg_temp.wrong('rule-hours', '2026-10-25T02:30', 'Write 2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00');
SELECT pg_temp.wrong('rule-hours', '2026-10-25', 'Its keys look like 2030-04-12T06:00');
-- Where only the leader knows the time of day, neither spelling of a date with an overlap is taken.
SELECT pg_temp.made('picked', 'rrule', 'FREQ=DAILY;BYHOUR=2,14;BYSETPOS=1', 'date', p_start => '2026-01-01 02:30', p_overlap => 'both'),
       pg_temp.made('added', 'rrule', 'FREQ=DAILY;COUNT=9', 'date', p_start => '2026-01-01 12:30', p_overlap => 'both', p_rdates => '{2026-10-25 02:30}');
SELECT pg_temp.right(s, k) FROM unnest('{picked,added}'::text[]) s, unnest('{2026-03-29,2026-10-24,2026-10-26}'::text[]) k;
SELECT is(pg_temp.key(s, k), format('22023 key %L names a date on which the clock of Europe/Berlin is turned back, and only the leader knows whether "%s" fires twice on it (Choose a key of your own, which must not begin with a date.)', k, s), format('%s: %s is left to the leader', s, k))
  FROM unnest('{picked,added}'::text[]) s, unnest('{2026-10-25,2026-10-25+02:00,2026-10-25+01:00}'::text[]) k;
-- A calendar moves the firing, and with it whether there are two, to a day that only the leader knows.
SELECT pg_temp.made('moved', 'cron', '30 2 * * *', 'date', p_overlap => 'both');
UPDATE reports.schedule_version SET calendar = 'office', nonbusiness = 'following' WHERE schedule = 'moved';
SELECT is(pg_temp.key('moved', k), format('22023 key %L may be moved to a day on which the clock of Europe/Berlin is turned back, and only the leader knows whether "moved" fires twice then (Choose a key of your own, which must not begin with a date.)', k), format('%s is left to the leader when a calendar moves it', k))
  FROM unnest('{2026-10-24,2026-10-24+02:00,2026-10-24+01:00}'::text[]) k;
-- What it moves is still to come from the date of the next firing on, although that date is past.
SELECT pg_temp.made('later', 'cron', '30 2 * * *', 'date');
UPDATE reports.schedule_version SET calendar = 'office', business_day_offset = 5 WHERE schedule = 'later';
UPDATE reports.schedule_progress SET next_nominal = '2026-02-03 02:30', next_fire_at = now() + interval '1 hour' WHERE schedule = 'later';
SELECT is(pg_temp.key('later', '2026-02-04'), '55000 key ''2026-02-04'' names a time that is still to come (Wait for that firing, or choose a key of your own.)', 'the one behind the next is to come');
SELECT pg_temp.right('later', '2026-02-02');
UPDATE reports.schedule_version SET nonbusiness = 'skip' WHERE schedule = 'moved';
SELECT pg_temp.right('moved', '2026-10-25+02:00');
-- Nor any before the leader has said what form its keys have.
SELECT pg_temp.made('new-rule', 'rrule', 'FREQ=DAILY', NULL, p_start => '2026-01-01 02:30');
SELECT is(pg_temp.key('new-rule', k), format('22023 key %L begins like a date, and the leader has not said yet what keys "new-rule" has (Ask again when reportctl schedules shows its next firing, or choose a key of your own, which must not begin with a date.)', k), format('%s is too early', k))
  FROM unnest('{2026-02-03,2026-02-03T02:30,2026-02-03T02:30:00}'::text[]) k;
SELECT pg_temp.right('new-rule', 'rerun-7');

-- Six fields, one value in another spelling, Quartz.
SELECT pg_temp.made('six', 'cron', '30 0 6,7 * * *', NULL), pg_temp.made('six-zero', 'cron', '0 0 6,7 * * *', NULL), pg_temp.made('range', 'cron', '30 2-2 * * *', NULL, p_overlap => 'both'),
       pg_temp.made('quartz', 'cron', '0 /20 2 ? * *', 'minute', p_dialect => 'quartz'), pg_temp.made('quartz-one', 'cron', '0 30/40 2 ? * *', NULL, p_overlap => 'both', p_dialect => 'quartz'),
       pg_temp.made('quartz-wrapped', 'cron', '0 50-10/30 2 ? * *', NULL, p_overlap => 'both', p_dialect => 'quartz');
SELECT pg_temp.right('six', '2026-02-03T06:00:30');
SELECT pg_temp.wrong('six', '2026-02-03T06:00', 'Write 2026-02-03T06:00:00');
SELECT pg_temp.right('six-zero', '2026-02-03T06:00');
SELECT pg_temp.wrong('six-zero', '2026-02-03T06:00:00', 'Write 2026-02-03T06:00');
SELECT pg_temp.right('quartz', '2026-10-25T02:20+02:00');
SELECT pg_temp.wrong('quartz', '2026-10-25T02:20', 'Write 2026-10-25T02:20+02:00 or 2026-10-25T02:20+01:00');
SELECT pg_temp.right(s, '2026-10-25+01:00') FROM unnest('{range,quartz-one,quartz-wrapped}'::text[]) s;
SELECT pg_temp.wrong(s, '2026-10-25', 'Write 2026-10-25+02:00 or 2026-10-25+01:00') FROM unnest('{range,quartz-one,quartz-wrapped}'::text[]) s;

-- What is no date, and what does not exist.
SELECT pg_temp.right(s, 'rerun-7') FROM unnest('{daily,each-minute,quarter}'::text[]) s;
SELECT is(pg_temp.key(s, k), format('22023 key %L names a date or time that does not exist (Correct the date.)', k), format('%s: %s does not exist', s, k))
  FROM unnest('{daily,each-minute,quarter}'::text[]) s, unnest('{2026-02-30,2026-13-01,0000-01-01,2026-02-03T24:00,2026-02-03T06:60,2026-02-03T06:00:60,2026-02-03T06:00+99:99}'::text[]) k;

-- A key that is there already is no fault: it makes nothing.
INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation, generation)
VALUES ('quarter', '2026-02-01T00:16', 'tap', gen_random_uuid(), now(), 'manual', 1, 1, 100);
SELECT pg_temp.right('quarter', '2026-02-01T00:16');

-- Asked before the leader knew the form, and carried out after.
CREATE FUNCTION pg_temp.carried_out(p_key text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    asked uuid := gen_random_uuid();
BEGIN
    INSERT INTO reports.request (id, kind, scope, subject, argument, deadline) VALUES (asked, 'trigger', 'tap', 'each-minute', p_key, now() + interval '1 min');
    RETURN (SELECT format('%s %s', verdict, answer) FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), asked, gen_random_uuid()));
END
$$;
SELECT is(pg_temp.carried_out('2026-06-30T12:53+02:00'), 'ok key ''2026-06-30T12:53+02:00'' begins like a date but is not the key of a firing of "each-minute". Write 2026-06-30T12:53; a key of your own must not begin with a date.', 'the leader refuses it too');
SELECT is(pg_temp.carried_out('2026-06-30T12:53'), 'ok occurrence each-minute:2026-06-30T12:53 made', 'and makes the firing''s own');
SELECT is_empty($$SELECT FROM reports.occurrence WHERE schedule = 'each-minute' AND occurrence_key LIKE '%+%'$$, 'there is one');

-- The business date of an interval's firing is that of its zone.
INSERT INTO reports.request (id, kind, scope, subject, argument, deadline) VALUES ('00000000-0000-4000-8000-000000000077', 'trigger', 'tap', 'seconds', '2026-01-01T23:45:47Z', now() + interval '1 min');
SELECT is((SELECT verdict FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), '00000000-0000-4000-8000-000000000077', gen_random_uuid())), 'ok', '(made)');
SELECT is((SELECT business_date FROM reports.occurrence WHERE schedule = 'seconds'), '2026-01-02', 'a key in UTC is about the local date');

SELECT * FROM finish();
ROLLBACK;
