-- Backfill: firings of a past span are made once, by key, and whatever is there already stays.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.id(p_n integer) RETURNS uuid LANGUAGE sql STRICT AS $$ SELECT format('00000000-0000-4000-8000-%s', lpad(p_n::text, 12, '0'))::uuid $$;
-- Firings of a daily schedule at 06:00 in UTC, from a date on.
CREATE FUNCTION pg_temp.firings(p_from date, p_count integer) RETURNS jsonb LANGUAGE sql
AS $$ SELECT jsonb_agg(jsonb_build_array(d::date, d + interval '6 h', (d + interval '6 h') AT TIME ZONE 'UTC', 0, d::date, d - interval '18 h', d + interval '6 h') ORDER BY d)
        FROM generate_series(p_from::timestamp AT TIME ZONE 'UTC', (p_from + p_count - 1)::timestamp AT TIME ZONE 'UTC', '1 day') d $$;
CREATE FUNCTION pg_temp.ask(p_n integer, p_schedule text, p_firings jsonb, p_beside boolean DEFAULT false, p_version integer DEFAULT 1, p_argument text DEFAULT 'span') RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.ask_backfill(pg_temp.id(p_n), p_schedule, p_argument, '1 min', p_version, p_beside, p_firings) $$;
CREATE FUNCTION pg_temp.answer(p_n integer) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', verdict, answer) FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), pg_temp.id(p_n), gen_random_uuid()) $$;
CREATE FUNCTION pg_temp.cancel(p_n integer, p_meant integer, p_schedule text DEFAULT 'd') RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.ask(pg_temp.id(p_n), 'backfill', p_schedule, pg_temp.id(p_meant)::text, '1 min') $$;
CREATE FUNCTION pg_temp.add_daily(p_name text, p_overlap text DEFAULT 'allow', p_next timestamptz DEFAULT '2100-01-01 06:00Z') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone, overlap, priority) VALUES (p_name, 'tap', 'nothing', 'cron', '0 6 * * *', 'UTC', p_overlap, 5);
    PERFORM reports.take_in('tap', 1, 100, pg_temp.leader(), ARRAY[p_name], ARRAY(SELECT c.id FROM reports.schedule_change c WHERE c.schedule = p_name),
                            '{1}', '{NULL}', ARRAY[clock_timestamp()], ARRAY[p_next], '{NULL}', '{0}', '{date}', '{NULL}', '{test}');
END
$$;
CREATE FUNCTION pg_temp.became(p_n integer) RETURNS text LANGUAGE sql
AS $$ SELECT string_agg(occurrence_key || ' ' || coalesce(became, '?'), ', ' ORDER BY occurrence_key) FROM reports.backfill_firing WHERE request = pg_temp.id(p_n) $$;

SELECT pg_temp.add_daily('d');
INSERT INTO reports.schedule_gap (schedule, scope, from_fire_at, to_fire_at, from_key, to_key, firings, reason, version, incarnation, generation)
VALUES ('d', 'tap', '2020-04-01 06:00Z', '2020-04-03 06:00Z', '2020-04-01', '2020-04-03', 3, 'paused', 1, 1, 100);
SELECT pg_temp.add_job('2020-04-02', 'succeeded', p_schedule => 'd');

-- Asked for, and made.
SELECT is(pg_temp.ask(1, 'd', pg_temp.firings('2020-04-01', 3)), 'pending ', 'a backfill is asked for');
SELECT is(pg_temp.ask(1, 'd', pg_temp.firings('2020-04-01', 5)), 'pending ', 'sending it again is the same request');
SELECT is(pg_temp.became(1), '2020-04-01 ?, 2020-04-02 ?, 2020-04-03 ?', 'with the firings of the first');
SELECT is(pg_temp.answer(1), 'ok backfill of "d": 2 made, 1 there already (2020-04-02)', 'keys that are free are made, one that is taken is skipped and named');
SELECT is(pg_temp.became(1), '2020-04-01 made, 2020-04-02 there, 2020-04-03 made', 'and each is listed');
SELECT is(pg_temp.ask(1, 'd', pg_temp.firings('2020-04-01', 3)), 'done backfill of "d": 2 made, 1 there already (2020-04-02)', 'sending it once more gets the first answer');
SELECT is(pg_temp.answer(1), 'skipped ', 'and makes nothing');
SELECT results_eq($$SELECT o.occurrence_key, o.scheduled_for, o.nominal_local, o.business_date, o.window_start, o.window_end, o.cause, o.version, o.generation, o.request_id
                      FROM reports.occurrence o WHERE o.schedule = 'd' AND o.cause = 'backfill' AND o.occurrence_key = '2020-04-03'$$,
                  $$VALUES ('2020-04-03', '2020-04-03 06:00Z'::timestamptz, '2020-04-03 06:00'::timestamp, '2020-04-03'::date, '2020-04-02 06:00Z'::timestamptz,
                            '2020-04-03 06:00Z'::timestamptz, 'backfill', 1, 100::bigint, pg_temp.id(1))$$, 'an occurrence is that of its day, by request');
SELECT results_eq($$SELECT j.occurrence_key, j.priority, j.catch_up, j.state::text, j.overlap, j.id = f.job_id, m.job_id = j.id, substr(j.id::text, 15, 1)
                      FROM reports.job j JOIN reports.backfill_firing f USING (occurrence_key) LEFT JOIN reports.outbox m ON m.job_id = j.id
                     WHERE j.schedule = 'd' AND f.became = 'made' ORDER BY 1$$,
                  $$VALUES ('2020-04-01', -1000, true, 'queued', 'allow', true, true, '7'), ('2020-04-03', -1000, true, 'queued', 'allow', true, true, '7')$$,
                  'a job has the lowest priority, counts as catching up, and goes with its message');
SELECT is((SELECT string_agg(from_key || '..' || to_key || ' ' || firings, ' ') FROM reports.schedule_gap WHERE schedule = 'd'), '2020-04-01..2020-04-03 3', 'the gap stays as it was recorded');
SELECT is((SELECT state::text FROM reports.job WHERE schedule = 'd' AND occurrence_key = '2020-04-02'), 'succeeded', 'and the job that was there as it was');
SELECT is(pg_temp.ask(2, 'd', pg_temp.firings('2020-04-01', 3)), 'pending ', '(asked for again, as another request)');
SELECT is(pg_temp.answer(2), 'ok backfill of "d": 0 made, 3 there already (2020-04-01 2020-04-02 2020-04-03)', 'asked for again nothing is made twice');

-- What the leader has still to plan is not taken from it.
SELECT pg_temp.add_daily('behind', p_next => '2020-04-02 06:00Z');
SELECT is(pg_temp.ask(3, 'behind', pg_temp.firings('2020-04-01', 3)), 'pending ', '(asked for a schedule that is behind)');
SELECT is(pg_temp.answer(3), 'ok backfill of "behind": 1 made, 2 left to the leader, which has not planned so far', 'firings that are due and not planned are left to the leader');
SELECT is(pg_temp.became(3), '2020-04-01 made, 2020-04-02 to_come, 2020-04-03 to_come', 'by key');

-- Released within the catch-up budget, live work first.
UPDATE reports.scope SET catch_up_max = 4 WHERE name = 'tap';
SELECT is(pg_temp.ask(4, 'd', pg_temp.firings('2020-05-01', 5)), 'pending ', '(asked for more than the budget)');
SELECT is(pg_temp.answer(4), 'ok backfill of "d": 5 made', 'all are made');
SELECT is((SELECT string_agg(occurrence_key || ' ' || state, ', ' ORDER BY occurrence_key) FROM reports.job WHERE schedule = 'd' AND occurrence_key LIKE '2020-05%'),
          '2020-05-01 queued, 2020-05-02 waiting, 2020-05-03 waiting, 2020-05-04 waiting, 2020-05-05 waiting', 'those beyond the budget wait, the oldest goes first');

-- Cancelled.
SELECT pg_temp.add_worker() AS worker \gset
UPDATE reports.job SET state = 'running', attempt = 1, attempt_token = gen_random_uuid(), worker = :'worker', claimed_at = clock_timestamp(), lease_until = clock_timestamp() + interval '1 min'
 WHERE schedule = 'd' AND occurrence_key = '2020-05-01';
SELECT is(pg_temp.refusal('SELECT pg_temp.cancel(5, 99)'), '22023 request 00000000-0000-4000-8000-000000000099 is no backfill of schedule "d" (reportctl requests lists them.)', 'what is no backfill cannot be cancelled');
SELECT is(pg_temp.cancel(5, 4), 'pending ', 'cancelling is asked of the leader too');
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'test');
SELECT is(pg_temp.answer(5), 'ok backfill 00000000-0000-4000-8000-000000000004 of "d": 4 job(s) cancelled, 1 running told to stop', 'it ends what waits and tells what runs, under a hold too');
SELECT is((SELECT string_agg(occurrence_key || ' ' || state || CASE WHEN cancel_requested THEN '!' ELSE '' END, ', ' ORDER BY occurrence_key) FROM reports.job WHERE schedule = 'd' AND occurrence_key LIKE '2020-0%'),
          '2020-04-01 queued, 2020-04-02 succeeded, 2020-04-03 queued, 2020-05-01 running!, 2020-05-02 cancelled, 2020-05-03 cancelled, 2020-05-04 cancelled, 2020-05-05 cancelled',
          'of that backfill only');
SELECT is(pg_temp.ask(6, 'd', pg_temp.firings('2020-06-01', 1)), 'pending ', '(asked for another)');
SELECT is(pg_temp.answer(6), 'held ', 'a hold stops a backfill');
SELECT is(pg_temp.cancel(7, 6), 'pending ', '(and it is cancelled before it was carried out)');
SELECT is(pg_temp.answer(7), 'ok backfill 00000000-0000-4000-8000-000000000006 of "d": 0 job(s) cancelled, 0 running told to stop', 'one that waits is ended');
UPDATE reports.hold SET lifted_at = clock_timestamp();
SELECT is(pg_temp.answer(6), 'skipped ', 'and never made');
SELECT is_empty($$SELECT FROM reports.occurrence WHERE schedule = 'd' AND occurrence_key LIKE '2020-06%'$$, 'nor are its firings');

-- Beside the overlap policy.
SELECT pg_temp.add_daily('alone', 'forbid');
SELECT is(pg_temp.refusal($$SELECT pg_temp.ask(10, 'alone', pg_temp.firings('2020-04-01', 2))$$), '55000 schedule "alone" has overlap ''forbid'', and jobs of a backfill run beside each other and beside its own (If its report bears that, say --beside (p_beside).)', 'a schedule that forbids overlap is refused');
SELECT is(pg_temp.ask(10, 'alone', pg_temp.firings('2020-04-01', 2), true), 'pending ', 'unless its jobs may run beside each other');
SELECT is(pg_temp.answer(10), 'ok backfill of "alone": 2 made', 'then all of them go');
SELECT is(reports.open_jobs('tap', 'alone'), '{}', 'and none is in the way of the schedule''s own');
SELECT is((SELECT count(*)::integer FROM reports.jobs_to_adopt('tap', '{alone}', '{forbid}')), 0, 'also when it is edited');
UPDATE reports.job SET state = 'failed', waits_for = NULL, finished_at = clock_timestamp() WHERE schedule = 'alone' AND occurrence_key = '2020-04-01';
SELECT is((SELECT state FROM reports.ask(pg_temp.id(11), 'retry', 'alone:2020-04-01', NULL, '1 min')), 'pending', '(one that failed is retried)');
SELECT matches(pg_temp.answer(11), '^ok job alone:2020-04-01 is ', '(the leader does so)');
SELECT is((SELECT overlap || ' ' || priority FROM reports.job WHERE schedule = 'alone' AND occurrence_key = '2020-04-01'), 'allow -1000', 'or retried');

-- What is refused.
SELECT is(pg_temp.refusal($$SELECT pg_temp.ask(20, 'd', pg_temp.firings('2001-01-01', 1001))$$), '22023 a backfill has 1 to 1000 firings, not 1001 (Ask for a longer span in parts.)', 'more than 1000 firings are refused');
SELECT is(pg_temp.refusal($$SELECT pg_temp.ask(20, 'd', '[]')$$), '22023 a backfill has 1 to 1000 firings, not 0 (Ask for a longer span in parts.)', 'and none');
SELECT is(pg_temp.refusal($$SELECT pg_temp.ask(20, 'nosuch', pg_temp.firings('2001-01-01', 1))$$), 'P0002 schedule "nosuch" has no version 1 (reportctl schedules lists them.)', 'an unknown schedule is refused');
SELECT is(pg_temp.refusal(format($$SELECT pg_temp.ask(20, 'd', jsonb_set(pg_temp.firings('2001-01-01', 2), '{1,0}', %L))$$, to_jsonb(key))),
          format('22023 key %L is not that of a firing of version 1 of "d" at its time (Use reportctl backfill, of the same release as the database.)', key), format('%s is refused', key))
  FROM unnest('{2001-01-03,2001-01-02T06:00,other}'::text[]) key;
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('fresh', 'tap', 'nothing', 'cron', '@daily');
SELECT is(pg_temp.refusal($$SELECT pg_temp.ask(20, 'fresh', pg_temp.firings('2001-01-01', 1))$$), '55000 no leader has taken schedule "fresh" in, so that the form of its keys is not fixed (Ask again when reportctl schedule shows its next firing.)', 'and a schedule that no leader knows');
SELECT is(pg_temp.refusal($$SELECT pg_temp.ask(1, 'd', NULL, p_argument => 'another span')$$), '23505 request id 00000000-0000-4000-8000-000000000001 was used for something else (Choose a fresh request id.)', 'an id that was used for something else is refused');
SELECT is(pg_temp.ask(21, 'd', pg_temp.firings('2020-07-01', 1)), 'pending ', '(asked for, and then the schedule is edited)');
UPDATE reports.schedule SET rule = '0 7 * * *' WHERE name = 'd';
SELECT is(pg_temp.answer(21), 'ok schedule "d" was edited: its version 2 is in force, and the firings are those of version 1; ask again with a fresh request id', 'firings of a rule that is no longer in force are refused');
SELECT is((SELECT state FROM reports.request WHERE id = pg_temp.id(21)), 'refused', '(which says so)');

-- Whether a date has two firings only the time of the firing can tell here: it comes with it, and so has one spelling.
INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone, start_local, dst_overlap)
VALUES ('either', 'tap', 'nothing', 'rrule', 'FREQ=MONTHLY;BYDAY=-1SU;BYHOUR=2,5;BYSETPOS=1', 'Europe/Berlin', '2020-01-01 02:30', 'both');
INSERT INTO reports.calendar (name) VALUES ('weekends');
INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone, calendar, nonbusiness) VALUES ('moves', 'tap', 'nothing', 'cron', '*/60 6 * * *', 'Europe/Berlin', 'weekends', 'following');
INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, key_form) VALUES ('either', 'tap', 1, now(), 'date'), ('moves', 'tap', 1, now(), 'date');
CREATE FUNCTION pg_temp.spelt(p_n integer, p_schedule text, p_key text, p_nominal timestamp, p_offset_s integer) RETURNS text LANGUAGE sql
AS $$ SELECT pg_temp.refusal(format('SELECT pg_temp.ask(%s, %L, %L)', p_n, p_schedule,
                                    jsonb_build_array(jsonb_build_array(p_key, (p_nominal - make_interval(secs => p_offset_s)) AT TIME ZONE 'UTC', p_nominal, p_offset_s, p_nominal::date, NULL, p_nominal AT TIME ZONE 'UTC')))) $$;
SELECT is(pg_temp.spelt(40, 'either', k, '2020-10-25 02:30', 7200), format('22023 key %L is not that of a firing of version 1 of "either" at its time (Use reportctl backfill, of the same release as the database.)', k), format('%s is refused where both passes fire', k))
  FROM unnest('{2020-10-25,2020-10-25T02:30,2020-10-25+03:00,2020-10-25Z,2020-10-26,other}'::text[]) k;
SELECT is(pg_temp.spelt(41, 'either', k, '2020-10-25 05:30', 3600), format('22023 key %L is not that of a firing of version 1 of "either" at its time (Use reportctl backfill, of the same release as the database.)', k), format('%s is refused where one does', k))
  FROM unnest('{2020-10-25+01:00,2020-10-25+02:00}'::text[]) k;
SELECT is(pg_temp.spelt(42, 'moves', '2020-10-25+01:00', '2020-10-25 06:00', 3600), '22023 key ''2020-10-25+01:00'' is not that of a firing of version 1 of "moves" at its time (Use reportctl backfill, of the same release as the database.)', 'nor has a date that moves an offset');
SELECT is(pg_temp.spelt(43, 'either', '2020-10-25+02:00', '2020-10-25 02:30', 7200), 'not refused', 'the first pass is its own');
SELECT is(pg_temp.spelt(44, 'either', '2020-10-25+01:00', '2020-10-25 02:30', 3600), 'not refused', 'so is the second');
SELECT is(pg_temp.spelt(45, 'moves', '2020-10-25', '2020-10-25 06:00', 3600), 'not refused', 'and a date that moves');

-- Retention takes the firings with the request, some in each round.
UPDATE reports.request SET answered_at = answered_at - interval '100 days' WHERE id = pg_temp.id(1);
SELECT is(reports.prune_requests('90 days', 2), 0, 'a round forgets firings first');
SELECT is(reports.prune_requests('90 days', 2), 1, 'and the request when all are gone');
SELECT is((SELECT count(*)::integer FROM reports.backfill_firing WHERE request = pg_temp.id(1)), 0, 'with none of them left');

SELECT * FROM finish();
ROLLBACK;
