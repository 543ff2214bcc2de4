-- Taking in edits and planning: by compare-and-set, all of a firing or nothing of it (I3, I4, I9).
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.progress(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT format('v%s step %s next %s last %s%s', version, step, coalesce(next_fire_at::text, '-'), coalesce(last_fire_at::text, '-'), ' problem ' || problem)
      FROM reports.schedule_progress WHERE schedule = p_schedule
$$;
SET timezone = 'UTC';

-- take_in of one edit; p_change NULL: the oldest there is.
CREATE FUNCTION pg_temp.take_in(p_schedule text, p_version integer, p_step bigint, p_next timestamptz DEFAULT '2030-01-01',
                                p_problem text DEFAULT NULL, p_key_form text DEFAULT 'date', p_change bigint DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s', verdict, taken)
      FROM reports.take_in('tap', 1, 100, pg_temp.leader(), ARRAY[p_schedule],
                           ARRAY[coalesce(p_change, (SELECT min(id) FROM reports.schedule_change WHERE schedule = p_schedule AND version = p_version))],
                           ARRAY[p_version], ARRAY[p_step], ARRAY[timestamptz '2029-12-31'], ARRAY[p_next], ARRAY[CASE WHEN p_next IS NOT NULL THEN timestamp '2030-01-01' END], '{0}',
                           ARRAY[p_key_form], ARRAY[p_problem], '{2030a}')
$$;
CREATE FUNCTION pg_temp.changes(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce(string_agg(version::text, ' ' ORDER BY id), 'none') FROM reports.schedule_change WHERE schedule = p_schedule
$$;

-- Take in.
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('s', 'tap', 'nothing', 'cron', '@daily');
SELECT results_eq($$SELECT new_version, step, ended, rule FROM reports.changes('tap', 10)$$, $$VALUES (1, NULL::bigint, false, '@daily')$$, 'a new schedule is shown with no progress');
SELECT is(pg_temp.take_in('s', 1, NULL), 'ok {s}', 'it is taken in');
SELECT is(pg_temp.progress('s'), 'v1 step 1 next 2030-01-01 00:00:00+00 last -', 'which begins its progress');
SELECT is(pg_temp.changes('s'), 'none', 'and deletes its change row');
SELECT is(pg_temp.take_in('s', 1, NULL), 'ok {}', 'taking it in again does nothing');
UPDATE reports.schedule SET rule = '@hourly' WHERE name = 's';
SELECT results_eq($$SELECT new_version, step FROM reports.changes('tap', 10)$$, $$VALUES (2, 1::bigint)$$, 'an edit is shown with the progress that is');
SELECT is(pg_temp.take_in('s', 2, NULL), 'ok {}', 'an edit planned as if there were no progress is left');
SELECT is(pg_temp.take_in('s', 2, 7), 'ok {}', 'one planned from another step is left');
SELECT is(pg_temp.take_in('s', 3, 1), 'ok {}', 'a version that does not exist is left');
SELECT is(pg_temp.progress('s'), 'v1 step 1 next 2030-01-01 00:00:00+00 last -', 'none of them changed anything');
SELECT is(pg_temp.changes('s'), '2', 'and the change row waits');
SELECT is(pg_temp.take_in('s', 2, 1, '2030-01-02', p_key_form => 'minute'), 'ok {s}', 'the edit is taken in from the step that is');
SELECT is(pg_temp.progress('s'), 'v2 step 2 next 2030-01-02 00:00:00+00 last -', 'progress moves to the new version, a step further');
SELECT is((SELECT key_form FROM reports.schedule_progress WHERE schedule = 's'), 'date', 'the form of the key stays that of the first version');
UPDATE reports.schedule SET rule = '0 0 31 2 *' WHERE name = 's';
SELECT is(pg_temp.take_in('s', 3, 2, '2030-01-03', 'never fires'), 'ok {s}', 'a version that cannot be planned is taken in with its problem');
SELECT is(pg_temp.progress('s'), 'v3 step 3 next - last - problem never fires', 'nothing of it is due');
SELECT ok(problem_since BETWEEN now() AND clock_timestamp(), 'and it says since when') FROM reports.schedule_progress WHERE schedule = 's';
UPDATE reports.schedule SET rule = '@daily' WHERE name = 's';
SELECT is(pg_temp.take_in('s', 4, 3), 'ok {s}', 'the mended version is taken in');
SELECT is(pg_temp.progress('s'), 'v4 step 4 next 2030-01-01 00:00:00+00 last -', 'without the problem');
DELETE FROM reports.schedule WHERE name = 's';
SELECT is(pg_temp.take_in('s', 5, 4), 'ok {s}', 'the ending version is taken in');
SELECT is(pg_temp.progress('s'), 'v5 step 5 next - last -', 'nothing of it is due, whatever the leader said');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('s', 'tap', 'nothing', 'cron', '@daily');
SELECT is(pg_temp.take_in('s', 6, 5), 'ok {s}', 'the schedule is continued under its name');
SELECT is(pg_temp.progress('s'), 'v6 step 6 next 2030-01-01 00:00:00+00 last -', 'with its progress');

INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('bad', 'tap', 'nothing', 'cron', '0 0 31 2 *'), ('other', 'main', 'nothing', 'cron', '@daily');
SELECT is(pg_temp.take_in('bad', 1, NULL, NULL, 'never fires'), 'ok {bad}', 'a new schedule may begin with a problem');
SELECT is(pg_temp.progress('bad'), 'v1 step 1 next - last - problem never fires', 'and is not due');
SELECT is(pg_temp.take_in('other', 1, NULL), 'ok {}', 'a schedule of another scope is left');
SELECT is(pg_temp.take_in('bad', 1, 1, p_change => (SELECT min(id) FROM reports.schedule_change WHERE schedule = 'other')), 'ok {}', 'the change row must be that of the schedule');

-- Pause: nothing is due, but what would come next is not forgotten; a problem does not forget it either.
SELECT pg_temp.add_schedule('p');
UPDATE reports.schedule SET paused = true WHERE name = 'p';
SELECT results_eq($$SELECT paused, was_paused FROM reports.changes('tap', 10) WHERE schedule = 'p'$$, 'VALUES (true, false)', 'a pause is shown as one');
SELECT is(pg_temp.take_in('p', 2, 1), 'ok {p}', 'it is taken in');
SELECT is(pg_temp.progress('p'), 'v2 step 2 next - last -', 'nothing of it is due, whatever the leader said');
SELECT is(next_nominal, '2030-01-01', 'what would come next stays known') FROM reports.schedule_progress WHERE schedule = 'p';
UPDATE reports.schedule SET paused = false, rule = '0 0 31 2 *' WHERE name = 'p';
SELECT results_eq($$SELECT paused, was_paused, next_nominal_s FROM reports.changes('tap', 10) WHERE schedule = 'p'$$, 'VALUES (false, true, 1893456000::bigint)', 'its end is shown with that');
UPDATE reports.schedule_progress SET next_nominal = '2030-01-05' WHERE schedule = 'p';
SELECT is(pg_temp.take_in('p', 3, 2, NULL, 'never fires'), 'ok {p}', 'it is taken in with a problem');
SELECT is(next_nominal, '2030-01-05', 'what would have come next stays known then, too') FROM reports.schedule_progress WHERE schedule = 'p';
UPDATE reports.schedule SET rule = '0 0 30 2 *' WHERE name = 'p';
SELECT is(pg_temp.take_in('p', 4, 3, '2030-01-07', 'passes over 2030-01-05'), 'ok {p}', '(another problem, behind which it could go on)');
SELECT results_eq($$SELECT next_fire_at, next_nominal FROM reports.schedule_progress WHERE schedule = 'p'$$, $$VALUES (NULL::timestamptz, timestamp '2030-01-01')$$, 'one that passes dates over says behind which of them');
DELETE FROM reports.schedule WHERE name = 'p';
SELECT is(pg_temp.take_in('p', 5, 4), 'ok {p}', '(deleted)');

-- Versions around the one in force; keys that are taken.
SELECT pg_temp.add_schedule('v');
UPDATE reports.schedule SET priority = 1 WHERE name = 'v';
UPDATE reports.schedule SET priority = 2 WHERE name = 'v';
SELECT results_eq($$SELECT version FROM reports.versions_of('tap', '{v}', true, 10)$$, 'VALUES (3), (2)', 'versions ahead, newest first');
SELECT results_eq($$SELECT version FROM reports.versions_of('tap', '{v}', true, 1)$$, 'VALUES (3)', 'no more than asked for');
SELECT is_empty($$SELECT version FROM reports.versions_of('main', '{v}', true, 10)$$, 'none of another scope');
SELECT is((SELECT string_agg(edited::text, ' ') FROM reports.due('tap', 10) WHERE schedule = 'v'), 'true', 'what is due says that it was edited');
SELECT is(pg_temp.take_in('v', 2, 1), 'ok {v}', '(taken in)');
SELECT is(pg_temp.take_in('v', 3, 2), 'ok {v}', '(taken in)');
SELECT results_eq($$SELECT version FROM reports.versions_of('tap', '{v}', false, 10)$$, 'VALUES (2), (1)', 'versions before, newest first');
INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation, generation)
SELECT 'v', k, 'tap', gen_random_uuid(), now(), c, 1, 1, 100 FROM (VALUES ('2030-01-02', 'schedule'), ('2030-01-01', 'misfire'), ('2030-01-03', 'manual'), ('x', 'manual')) t (k, c);
SELECT results_eq($$SELECT number FROM reports.keys_taken('v', '{2030-01-02,2030-01-05,2030-01-03}')$$, 'VALUES (1::bigint), (3)', 'keys that an occurrence has, by position');
UPDATE reports.schedule SET priority = 3 WHERE name = 'v';
SELECT results_eq($$SELECT highest_key FROM reports.changes('tap', 10) WHERE schedule = 'v'$$, $$VALUES ('2030-01-02')$$, 'an edit is shown with the highest key of the schedule''s own');
DELETE FROM reports.occurrence;

-- Two edits of one schedule: each in its turn.
SELECT pg_temp.add_schedule('twice');
UPDATE reports.schedule SET priority = 1 WHERE name = 'twice';
UPDATE reports.schedule SET priority = 2 WHERE name = 'twice';
SELECT results_eq($$SELECT new_version FROM reports.changes('tap', 10) WHERE schedule = 'twice'$$, 'VALUES (2)', 'of two edits the older is shown');
SELECT is(pg_temp.take_in('twice', 2, 1), 'ok {twice}', 'it is taken in');
SELECT results_eq($$SELECT new_version, step FROM reports.changes('tap', 10) WHERE schedule = 'twice'$$, 'VALUES (3, 2::bigint)', 'then the newer is shown');

-- Due.
DELETE FROM reports.schedule_progress;
SELECT pg_temp.add_schedule('d1', clock_timestamp() - interval '2 min');
SELECT pg_temp.add_schedule('d2', clock_timestamp() - interval '3 min');
SELECT pg_temp.add_schedule('d3', clock_timestamp() + interval '1 hour');
SELECT pg_temp.add_schedule('d4', NULL);
SELECT results_eq($$SELECT schedule, version, step, rule, misfire_grace_us FROM reports.due('tap', 10)$$,
                  $$VALUES ('d2', 1, 1::bigint, '* * * * *', 60000000::bigint), ('d1', 1, 1, '* * * * *', 60000000)$$, 'what is due is shown oldest first, with its version');
SELECT results_eq($$SELECT schedule FROM reports.due('tap', 1)$$, $$VALUES ('d2')$$, 'and no more than asked for');
SELECT is_empty($$SELECT * FROM reports.due('main', 10)$$, 'and nothing of another scope');
SELECT is((SELECT next_fire_at FROM reports.next_due('tap')), (SELECT min(next_fire_at) FROM reports.schedule_progress), 'next_due is the earliest');
SELECT is((SELECT next_fire_at FROM reports.next_due('main')), NULL, 'or nothing');
SELECT ok(database_now BETWEEN now() AND clock_timestamp(), 'with the time of the database') FROM reports.next_due('main');

-- A batch of one: p_* progress, one firing, perhaps a gap.
CREATE FUNCTION pg_temp.plan(p_schedules text[], p_steps bigint[], p_firings text[], p_keys text[], p_gaps text[] DEFAULT '{}',
                             p_versions integer[] DEFAULT NULL, p_fire_at timestamptz DEFAULT clock_timestamp() - interval '1 s', p_jobs uuid[] DEFAULT NULL,
                             p_firing_count bigint DEFAULT 4) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s %s', verdict, (SELECT array_agg(a ORDER BY a) FROM unnest(advanced) a), planned)
      FROM reports.plan_batch('tap', 1, 100, pg_temp.leader(),
               p_schedules, coalesce(p_versions, array_fill(1, ARRAY[cardinality(p_schedules)])), p_steps, array_fill(timestamptz '2030-01-01', ARRAY[cardinality(p_schedules)]),
               array_fill(timestamp '2030-01-01 01:00', ARRAY[cardinality(p_schedules)]), array_fill(3600, ARRAY[cardinality(p_schedules)]),
               array_fill(timestamptz '2029-12-31', ARRAY[cardinality(p_schedules)]), array_fill(timestamp '2029-12-31 01:00', ARRAY[cardinality(p_schedules)]),
               array_fill(3600, ARRAY[cardinality(p_schedules)]), '2030b',
               p_firings, p_keys, coalesce(p_jobs, ARRAY(SELECT gen_random_uuid() FROM unnest(p_keys))), array_fill(p_fire_at, ARRAY[cardinality(p_keys)]),
               array_fill(timestamp '2029-12-31 01:00', ARRAY[cardinality(p_keys)]), array_fill(3600, ARRAY[cardinality(p_keys)]),
               array_fill(date '2029-12-31', ARRAY[cardinality(p_keys)]), array_fill(timestamptz '2029-12-30', ARRAY[cardinality(p_keys)]),
               array_fill('schedule'::text, ARRAY[cardinality(p_keys)]),
               p_gaps, array_fill(timestamptz '2029-12-01', ARRAY[cardinality(p_gaps)]), array_fill(timestamptz '2029-12-04', ARRAY[cardinality(p_gaps)]),
               array_fill('2029-12-01'::text, ARRAY[cardinality(p_gaps)]), array_fill('2029-12-04'::text, ARRAY[cardinality(p_gaps)]),
               array_fill(p_firing_count, ARRAY[cardinality(p_gaps)]), array_fill('misfire_age'::text, ARRAY[cardinality(p_gaps)]))
$$;
-- Rows there are for a schedule: occurrences/jobs/messages/gaps.
CREATE FUNCTION pg_temp.made(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s/%s/%s/%s', (SELECT count(*) FROM reports.occurrence WHERE schedule = p_schedule), (SELECT count(*) FROM reports.job WHERE schedule = p_schedule),
                  (SELECT count(*) FROM reports.outbox WHERE schedule = p_schedule), (SELECT count(*) FROM reports.schedule_gap WHERE schedule = p_schedule))
$$;

UPDATE reports.schedule SET queue = 'fast', priority = 7, max_attempts = 5, retry_base = '1 s', retry_cap = '2 s', timeout = '3 s' WHERE name = 'd1';
SELECT is(pg_temp.take_in('d1', 2, 1, clock_timestamp()), 'ok {d1}', '(d1 at version 2)');
SELECT is(pg_temp.plan('{d1}', '{2}', '{d1}', '{2029-12-31}', '{d1}', '{2}'), 'ok {d1} 1', 'a firing is planned');
SELECT is(pg_temp.made('d1'), '1/1/1/1', 'with its occurrence, job, message and gap');
SELECT is(pg_temp.progress('d1'), 'v2 step 3 next 2030-01-01 00:00:00+00 last 2029-12-31 00:00:00+00', 'and progress a step further');
SELECT results_eq($$SELECT o.scope, o.occurrence_key, o.nominal_local, o.offset_s, o.business_date, o.window_start, o.window_end = o.scheduled_for, o.cause, o.version, o.incarnation, o.generation, o.request_id
                      FROM reports.occurrence o WHERE schedule = 'd1'$$,
                  $$VALUES ('tap'::text, '2029-12-31'::text, timestamp '2029-12-31 01:00', 3600, date '2029-12-31', timestamptz '2029-12-30', true, 'schedule', 2, 1::bigint, 100::bigint, NULL::uuid)$$,
                  'the occurrence says what, when, why and by whom');
SELECT results_eq($$SELECT j.id = o.job_id, j.scope, j.report, j.queue, j.priority, j.state, j.run_after = o.scheduled_for, j.attempt, j.max_attempts, j.retry_base, j.retry_cap, j.timeout, j.dispatch_number
                      FROM reports.job j JOIN reports.occurrence o USING (schedule, occurrence_key) WHERE schedule = 'd1'$$,
                  $$VALUES (true, 'tap'::text, 'nothing', 'fast', 7, 'queued'::reports.job_state, true, 0, 5, interval '1 s', interval '2 s', interval '3 s', 1)$$,
                  'the job has what the version in force says');
SELECT results_eq($$SELECT m.job_id = j.id, m.scope, m.occurrence_key, m.queue, m.dispatch_number, m.scheduled_for = j.run_after, m.generation
                      FROM reports.outbox m JOIN reports.job j USING (schedule) WHERE schedule = 'd1'$$,
                  $$VALUES (true, 'tap'::text, '2029-12-31'::text, 'fast', 1, true, 100::bigint)$$, 'the message names the job');
SELECT results_eq($$SELECT scope, from_fire_at, to_fire_at, from_key, to_key, firings, reason, version, incarnation, generation FROM reports.schedule_gap WHERE schedule = 'd1'$$,
                  $$VALUES ('tap'::reports.name, timestamptz '2029-12-01', timestamptz '2029-12-04', '2029-12-01', '2029-12-04', 4::bigint, 'misfire_age', 2, 1::bigint, 100::bigint)$$,
                  'the gap says which firings were not run, and why');

-- Compare-and-set.
SELECT is(pg_temp.plan('{d1}', '{2}', '{d1}', '{again}', '{d1}', '{2}'), 'ok  0', 'a batch planned from an old step advances nothing');
SELECT is(pg_temp.plan('{d1}', '{3}', '{d1}', '{again}', '{d1}', '{1}'), 'ok  0', 'nor one planned with an old version');
SELECT is(pg_temp.made('d1'), '1/1/1/1', 'and makes nothing, gaps neither');
SELECT is(pg_temp.plan('{d1,d2}', '{2,1}', '{d1,d2,d2}', '{a,b,c}', '{d1,d2}'), 'ok {d2} 2', 'of a mixed batch the schedules that are as read advance');
SELECT is(pg_temp.made('d1') || ' ' || pg_temp.made('d2'), '1/1/1/1 2/2/2/1', 'with all that is theirs, and nothing of the others');
SELECT is(pg_temp.plan('{d1}', '{3}', '{d3}', '{x}', '{d3}', '{2}'), 'ok {d1} 0', 'a firing or gap of a schedule that is not in the batch is not written');
SELECT is(pg_temp.made('d3'), '0/0/0/0', 'not anywhere');

-- (schedule, key) is unique for ever.
SELECT is(pg_temp.plan('{d2}', '{2}', '{d2,d2}', '{b,d}'), 'ok {d2} 1', 'a key that exists makes no second occurrence');
SELECT is(pg_temp.made('d2'), '3/3/3/2', 'no second job, no second message');
SELECT is((SELECT from_key || ' ' || firings FROM reports.schedule_gap WHERE schedule = 'd2' AND reason = 'key_taken'), 'b 1', 'and the firing that made none is a gap with its reason');
SELECT is(pg_temp.plan('{d2}', '{3}', '{d2,d2}', '{e,e}'), 'ok {d2} 1', 'nor does a key twice in a batch');
SELECT is(pg_temp.made('d2'), '4/4/4/3', 'the second firing of it lies in a gap');
SELECT is_empty($$SELECT FROM reports.occurrence o FULL JOIN reports.job j ON j.id = o.job_id WHERE o.job_id IS NULL OR j.id IS NULL$$, 'no occurrence is without its job, no job without its occurrence');
SELECT is(pg_temp.plan('{d3}', '{1}', '{d3}', '{b}'), 'ok {d3} 1', 'the same key of another schedule is another firing');
SELECT is(pg_temp.plan('{d3}', '{2}', '{}', '{}'), 'ok {d3} 0', 'a batch may only move progress');
SELECT is(pg_temp.plan('{}', '{}', '{}', '{}'), 'ok  0', 'an empty batch is harmless');

-- The database clock decides.
SELECT is(pg_temp.refusal($$SELECT pg_temp.plan('{d2}', '{4}', '{d2}', '{early}', p_fire_at => clock_timestamp() + interval '1 s')$$), 'RS004 a firing in the batch is not due yet', 'a firing in the future is refused');
SELECT is(pg_temp.progress('d2'), 'v1 step 4 next 2030-01-01 00:00:00+00 last 2029-12-31 00:00:00+00', 'and progress stays');

-- Together or not at all: an error at any of the five tables leaves none of them changed.
CREATE FUNCTION pg_temp.after_failure(p_call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before text := format('%s %s', pg_temp.made('d2'), pg_temp.progress('d2'));
    refusal text := pg_temp.refusal(p_call);
BEGIN
    RETURN left(refusal, 5) || CASE WHEN format('%s %s', pg_temp.made('d2'), pg_temp.progress('d2')) = before THEN ' and nothing written' ELSE ' and something written' END;
END
$$;
SELECT is(pg_temp.after_failure($$SELECT pg_temp.plan('{d2}', '{4}', '{d2,d2}', '{f,""}', '{d2}')$$), '23514 and nothing written', 'an empty key leaves nothing of the batch');
SELECT is(pg_temp.after_failure($$SELECT pg_temp.plan('{d2}', '{4}', '{d2,d2}', '{f,g}', '{d2}', p_jobs => '{00000000-0000-4000-8000-00000000000a,00000000-0000-4000-8000-00000000000a}')$$),
          '23505 and nothing written', 'a job id used twice leaves nothing of the batch');
SELECT is(pg_temp.after_failure($$SELECT pg_temp.plan('{d2}', '{4}', '{d2}', '{f}', '{d2}', p_firing_count => 0)$$), '23514 and nothing written', 'a bad gap leaves nothing of the batch');
CREATE FUNCTION pg_temp.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER fail AFTER INSERT ON reports.outbox FOR EACH ROW EXECUTE FUNCTION pg_temp.fail();
SELECT is(pg_temp.after_failure($$SELECT pg_temp.plan('{d2}', '{4}', '{d2}', '{f}', '{d2}')$$), '53100 and nothing written', 'an error at the message, the last of them, leaves nothing of the batch');
DROP TRIGGER fail ON reports.outbox;
SELECT is(pg_temp.plan('{d2}', '{4}', '{d2}', '{f}', '{d2}'), 'ok {d2} 1', 'and without the error it goes');

-- A batch that dealt with no firing keeps what the last one was.
SELECT is((SELECT verdict FROM reports.plan_batch('tap', 1, 100, pg_temp.leader(), '{d2}', '{1}', '{5}', '{2030-02-02}', '{2030-02-02}', '{0}', '{NULL}', '{NULL}', '{NULL}', 'x',
           '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')), 'ok', 'progress without a last firing is accepted');
SELECT is(pg_temp.progress('d2'), 'v1 step 6 next 2030-02-02 00:00:00+00 last 2029-12-31 00:00:00+00', 'and the last firing stays');

-- Problem.
SELECT is(reports.mark_problem('tap', 1, 100, pg_temp.leader(), 'd2', 1, 'poisonous'), 'changed', 'a problem found at an old step is not written');
SELECT is(reports.mark_problem('tap', 1, 100, pg_temp.leader(), 'd2', 6, 'poisonous'), 'ok', 'one found at the present step is');
SELECT is(pg_temp.progress('d2'), 'v1 step 7 next - last 2029-12-31 00:00:00+00 problem poisonous', 'and takes the schedule out of planning');
SELECT is(reports.mark_problem('tap', 1, 100, pg_temp.leader(), 'nosuch', 1, 'x'), 'changed', 'an unknown schedule is no problem');

-- Hold.
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'test');
SELECT is(pg_temp.plan('{d3}', '{3}', '{d3}', '{held}'), 'held  0', 'a hold on the scope stops planning');
SELECT is(pg_temp.made('d3'), '1/1/1/0', 'wholly');
SELECT is(pg_temp.take_in('twice', 3, 2), 'ok {}', 'taking in goes on');
UPDATE reports.hold SET lifted_at = clock_timestamp();
INSERT INTO reports.hold (reason) VALUES ('test');
SELECT is(pg_temp.plan('{d3}', '{3}', '{d3}', '{held}'), 'held  0', 'so does a hold on the installation');
UPDATE reports.hold SET lifted_at = clock_timestamp();
SELECT is(pg_temp.plan('{d3}', '{3}', '{d3}', '{held}'), 'ok {d3} 1', 'until it is lifted');

SELECT * FROM finish();
ROLLBACK;
