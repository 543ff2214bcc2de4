-- The catch-up budget: how many missed firings are released within a minute, of a scope and of a queue, which of
-- them first, live work before them; what people see of it; and the request that gives up what waits.
BEGIN;
\ir fixture.psql
SELECT no_plan();
SET timezone = 'UTC';
SET jit = off; -- as the daemons have it

INSERT INTO reports.queue (name) VALUES ('q1'), ('q2');
UPDATE reports.scope SET catch_up_max = NULL WHERE name = 'tap';
\set queue q1
\set cause misfire
\ir minutes.psql
-- The keys of those that wait, and behind a bar of those that may run.
CREATE FUNCTION pg_temp.jobs(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', coalesce(string_agg(occurrence_key, ' ' ORDER BY occurrence_key::integer) FILTER (WHERE state = 'waiting'), '-'),
                     coalesce(string_agg(occurrence_key, ' ' ORDER BY occurrence_key::integer) FILTER (WHERE state = 'queued'), '-'))
      FROM reports.job WHERE schedule = p_schedule
$$;
CREATE FUNCTION pg_temp.tend(p_limit integer DEFAULT 100, p_generation bigint DEFAULT 100, p_owner uuid DEFAULT pg_temp.leader()) RETURNS integer LANGUAGE sql
AS $$ SELECT released FROM reports.tend('tap', 1, p_generation, p_owner, p_limit) $$;
-- The releases were so long ago. Half a minute stands for less than one: a test may be slow.
CREATE FUNCTION pg_temp.pass(p_time interval DEFAULT '62 s') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    CREATE TEMP TABLE past ON COMMIT DROP AS SELECT queue, sum(jobs) AS jobs FROM reports.catch_up_release GROUP BY queue;
    DELETE FROM reports.catch_up_release;
    INSERT INTO reports.catch_up_release SELECT 'tap', queue, date_trunc('second', clock_timestamp()) - p_time, jobs FROM past;
    DROP TABLE past;
END
$$;
CREATE FUNCTION pg_temp.id(p_n integer) RETURNS uuid LANGUAGE sql STRICT AS $$ SELECT format('00000000-0000-4000-8000-%s', lpad(p_n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.discard(p_n integer, p_subject text, p_argument text DEFAULT 'all: no longer needed') RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.ask(pg_temp.id(p_n), 'discard', p_subject, p_argument, '1 min') $$;
CREATE FUNCTION pg_temp.answer(p_n integer) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', verdict, answer) FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), pg_temp.id(p_n), gen_random_uuid()) $$;

-- What may be written.
SELECT results_eq('SELECT catch_up_per_minute, catch_up_order FROM reports.scope WHERE name = ''tap''', $$VALUES (NULL::integer, 'oldest')$$, 'a scope has no budget a minute unless it says so');
SELECT results_eq('SELECT catch_up_per_minute, catch_up_order FROM reports.queue WHERE name = ''q1''', $$VALUES (NULL::integer, NULL::text)$$, 'nor has a queue');
SELECT matches(pg_temp.refusal(format('UPDATE reports.scope SET catch_up_per_minute = %s WHERE name = ''tap''', n)), '^23514 scope "tap": catch_up_per_minute cannot be .* \(Write ', format('%s is no budget', n)) FROM unnest('{0,-1,1000001}'::integer[]) n;
SELECT matches(pg_temp.refusal('UPDATE reports.queue SET catch_up_order = ''random'' WHERE name = ''q1'''), '^23514 queue "q1": catch_up_order cannot be .* \(Write ''oldest'' or ''newest''', 'nor is any word an order');

-- Without a budget all go at once, as ever.
SELECT pg_temp.schedule('a'), pg_temp.schedule('b', 'q2'), pg_temp.schedule('high', 'q1', 5);
SELECT is(pg_temp.plan('a', 1, 5) || ' ' || pg_temp.jobs('a'), 'ok 5 - | 1 2 3 4 5', 'without a budget missed firings go at once');
DELETE FROM reports.job;

-- Of a scope.
UPDATE reports.scope SET catch_up_per_minute = 3 WHERE name = 'tap';
SELECT is(pg_temp.plan('a', 11, 15) || ' ' || pg_temp.jobs('a'), 'ok 5 14 15 | 11 12 13', 'of missed firings as many go as the minute allows, the oldest first, and the others wait');
SELECT is((SELECT count(*)::integer FROM reports.outbox m JOIN reports.job j ON j.id = m.job_id), 3, 'which have no message');
SELECT is(pg_temp.plan('b', 1, 2) || ' ' || pg_temp.jobs('b'), 'ok 2 1 2 | -', 'over all queues of the scope');
SELECT is(pg_temp.tend(), 0, 'the next round releases none');
UPDATE reports.job SET state = 'succeeded', finished_at = clock_timestamp() WHERE state = 'queued';
SELECT is(pg_temp.tend(), 0, 'nor does the end of those that ran leave a budget');
SELECT is(pg_temp.plan('a', 21, 22, 'schedule') || ' ' || pg_temp.jobs('a'), 'ok 2 14 15 | 21 22', 'live work is not concerned');
SELECT pg_temp.pass('30 s');
SELECT is(pg_temp.tend(), 0, 'the budget is that of a whole minute');
SELECT pg_temp.pass();
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('b') || ', ' || pg_temp.jobs('a'), '3 - | 1 2, 15 | 14 21 22', 'and when it is over as many go again, the oldest first');
SELECT is((SELECT sum(jobs)::integer FROM reports.catch_up_release WHERE scope = 'tap'), 3, 'what is older than a minute is forgotten');
-- Little by little.
SELECT pg_temp.pass('30 s');
SELECT is(pg_temp.tend(), 0, '(the minute is full)');
UPDATE reports.scope SET catch_up_per_minute = 4 WHERE name = 'tap';
SELECT is(pg_temp.plan('a', 31, 34) || ' ' || pg_temp.jobs('a'), 'ok 4 31 32 33 34 | 14 15 21 22', 'a budget that is raised counts at once');
UPDATE reports.catch_up_release SET second = second - interval '62 s' WHERE second < (SELECT max(second) FROM reports.catch_up_release);
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('a'), '3 34 | 14 15 21 22 31 32 33', 'as many go as went a minute ago');
DELETE FROM reports.job;
DELETE FROM reports.catch_up_release;
SELECT is(pg_temp.plan('a', 41, 46), 'ok 6', '(others)');

-- A clock that is set back.
UPDATE reports.catch_up_release SET second = second + interval '1 h';
SELECT is(pg_temp.plan('a', 47, 50) || ' ' || pg_temp.jobs('a'), 'ok 4 45 46 47 48 49 50 | 41 42 43 44', 'what the clock has left in the future counts as released now, and not twice');
SELECT ok(bool_and(second <= clock_timestamp()), 'and waits for no hour') FROM reports.catch_up_release;
DELETE FROM reports.job;
DELETE FROM reports.catch_up_release;

-- Of a queue, within that of the scope.
UPDATE reports.queue SET catch_up_per_minute = 2 WHERE name = 'q1';
UPDATE reports.scope SET catch_up_per_minute = 1000 WHERE name = 'tap';
SELECT is(pg_temp.plan('a', 51, 54) || ' ' || pg_temp.jobs('a'), 'ok 4 53 54 | 51 52', 'a queue may have a budget of its own');
SELECT is(pg_temp.plan('b', 51, 54) || ' ' || pg_temp.jobs('b'), 'ok 4 - | 51 52 53 54', 'that no other queue is concerned by');
SELECT is(pg_temp.tend(), 0, '(nothing is left of it)');
UPDATE reports.scope SET catch_up_per_minute = 7 WHERE name = 'tap';
SELECT is(pg_temp.plan('b', 55, 57) || ' ' || pg_temp.jobs('b'), 'ok 3 56 57 | 51 52 53 54 55', 'and one that the scope''s contains');
SELECT pg_temp.pass();
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('a') || ', ' || pg_temp.jobs('b'), '4 - | 51 52 53 54, - | 51 52 53 54 55 56 57', '(all go in the next minute)');
DELETE FROM reports.job;
DELETE FROM reports.catch_up_release;
UPDATE reports.queue SET catch_up_per_minute = NULL;

-- Which first.
UPDATE reports.scope SET catch_up_per_minute = 2, catch_up_order = 'newest' WHERE name = 'tap';
SELECT is(pg_temp.plan('a', 61, 66) || ' ' || pg_temp.jobs('a'), 'ok 6 61 62 63 64 | 65 66', 'the newest go first where the scope says so');
SELECT is((SELECT string_agg(m.occurrence_key, ' ' ORDER BY m.id) FROM reports.outbox m JOIN reports.job j ON j.id = m.job_id), '66 65', 'their messages, too');
SELECT is(pg_temp.plan('high', 1, 2) || ' ' || pg_temp.plan('b', 61, 67) || ' ' || pg_temp.tend(), 'ok 2 ok 7 0', '(others come)');
SELECT pg_temp.pass();
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('high'), '2 - | 1 2', 'the highest priority before all');
SELECT pg_temp.pass();
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('b') || ', ' || pg_temp.jobs('a'), '2 61 62 63 64 65 | 66 67, 61 62 63 64 | 65 66', 'then the newest over all queues');
UPDATE reports.queue SET catch_up_order = 'oldest' WHERE name = 'q2';
SELECT pg_temp.pass();
SELECT is(pg_temp.tend(1) || ' ' || pg_temp.tend(1) || ' ' || pg_temp.jobs('b') || ', ' || pg_temp.jobs('a'), '1 1 61 62 63 64 65 | 66 67, 61 62 | 63 64 65 66', 'a queue with newest first goes before one with oldest first');
UPDATE reports.job SET state = 'succeeded', waits_for = NULL, finished_at = clock_timestamp() WHERE schedule = 'a' AND state = 'waiting';
SELECT pg_temp.pass();
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('b'), '2 63 64 65 | 61 62 66 67', 'which goes by its own order');
UPDATE reports.queue SET catch_up_order = NULL;
UPDATE reports.scope SET catch_up_order = 'oldest' WHERE name = 'tap';

-- Live work first, in a queue that is full.
DELETE FROM reports.job;
DELETE FROM reports.catch_up_release;
UPDATE reports.queue SET max_outstanding = 2 WHERE name = 'q1';
SELECT is(pg_temp.plan('a', 71, 74, 'misfire') || ' ' || pg_temp.jobs('a'), 'ok 4 73 74 | 71 72', '(missed firings have filled a queue)');
SELECT is(pg_temp.plan('high', 71, 72, 'schedule') || ' ' || pg_temp.jobs('high'), 'ok 2 71 72 | -', '(and live ones come)');
SELECT pg_temp.pass();
UPDATE reports.job SET state = 'succeeded', finished_at = clock_timestamp() WHERE schedule = 'a' AND state = 'queued';
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('high') || ', ' || pg_temp.jobs('a'), '2 - | 71 72, 73 74 | -', 'the room goes to live work, whatever the budget');
UPDATE reports.queue SET max_outstanding = NULL WHERE name = 'q1';

-- A worker that pulls takes live work first, too.
DELETE FROM reports.job;
CREATE TEMP TABLE w AS SELECT pg_temp.add_worker('{q1}') AS id;
DELETE FROM reports.catch_up_release;
SELECT is(pg_temp.plan('high', 75, 76) || ' ' || pg_temp.plan('a', 77, 77, 'schedule'), 'ok 2 ok 1', '(missed firings of a high priority, and a live one behind them)');
SELECT is((SELECT string_agg(schedule || occurrence_key, ' ') FROM w, reports.claim_ready(w.id, '{q1}', 1)), 'a77', 'a worker that pulls claims it first');

-- What people see.
DELETE FROM reports.job;
DELETE FROM reports.catch_up_release;
UPDATE reports.queue SET catch_up_per_minute = 1, catch_up_order = 'newest' WHERE name = 'q2';
UPDATE reports.scope SET catch_up_per_minute = 4 WHERE name = 'tap';
SELECT is(pg_temp.plan('b', 81, 83) || ' ' || pg_temp.plan('a', 81, 90), 'ok 3 ok 10', '(an outage is over)');
SELECT results_eq('SELECT schedule, queue, waiting, backfill, oldest_at, newest_at, capped FROM reports.v_catch_up WHERE scope = ''tap'' ORDER BY 1',
                  $$VALUES ('a', 'q1', 7::bigint, 0::bigint, timestamptz '2026-01-01 01:24', timestamptz '2026-01-01 01:30', false), ('b', 'q2', 2, 0, '2026-01-01 01:21', '2026-01-01 01:22', false)$$,
                  'what waits by schedule and queue');
SELECT results_eq('SELECT waiting, outstanding, catch_up_max, catch_up_per_minute, catch_up_order, released_last_minute, held, extract(epoch FROM expected_end_at - statement_timestamp()) FROM reports.v_catch_up_scope WHERE scope = ''tap''',
                  $$VALUES (9::bigint, 4::bigint, NULL::integer, 4, 'oldest', 4::bigint, false, 135.0)$$, 'the budget, and when it is done at this rate');
SELECT results_eq('SELECT queue, waiting, catch_up_per_minute, catch_up_order, released_last_minute, extract(epoch FROM expected_end_at - statement_timestamp()) FROM reports.v_catch_up_queue WHERE scope = ''tap'' ORDER BY 1',
                  $$VALUES ('q1', 7::numeric, NULL::integer, 'oldest', 3::bigint, 140.0), ('q2', 2, 1, 'newest', 1, 135.0)$$, 'of the queues, too');
SELECT results_eq('SELECT value FROM reports.scope_figures(''tap'') WHERE figure = ''catch_up_waiting''', 'VALUES (9::float8)', 'and monitoring');
SELECT is((SELECT waits_on FROM reports.v_job WHERE schedule = 'b' AND occurrence_key = '81'), 'room in queue "q2" (catch_up_per_minute 1), or in scope "tap" among missed firings (catch_up_per_minute 4)', 'and what one waits for');
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'test');
SELECT results_eq('SELECT held, expected_end_at FROM reports.v_catch_up_scope WHERE scope = ''tap''', 'VALUES (true, NULL::timestamptz)', 'under a hold it has no end');

-- Given up.
SELECT is(pg_temp.refusal('SELECT pg_temp.discard(1, ''nosuch'')'), 'P0002 schedule "nosuch" does not exist (reportctl schedules lists them.)', 'a schedule that does not exist is refused');
SELECT is(pg_temp.refusal('SELECT pg_temp.discard(1, ''queue:q1@nosuch'')'), 'P0002 scope "nosuch" does not exist (reportctl status lists the scopes.)', 'and a scope');
SELECT matches(pg_temp.refusal(format('SELECT pg_temp.discard(1, ''a'', %L)', argument)), '^22023 a discard says what is meant and why, and .* does not \(Write "all: why" or ', format('%s is no argument', coalesce(argument, 'nothing')))
  FROM unnest(ARRAY[NULL, '', 'all', 'all: ', 'all:  ', 'before 2026-01-01: why', 'before 2026-13-01T00:00:00Z: why', 'why']) argument;
SELECT is(pg_temp.discard(1, 'a', 'before 2026-01-01T01:26:00Z: numbers of that hour are known'), 'pending ', 'what waits of a schedule may be given up, that before an instant');
SELECT is((SELECT count(*)::integer FROM reports.missed_waiting('tap', 'a', NULL, '2026-01-01 01:26Z', 100)), 2, '(two of them)');
SELECT is(pg_temp.answer(1), 'ok 2 missed firing(s) of 1 schedule(s) discarded', 'the leader does so, under a hold too');
SELECT results_eq('SELECT occurrence_key, state::text, waits_for, error, finished_at IS NOT NULL FROM reports.job WHERE schedule = ''a'' AND occurrence_key IN (''84'', ''85'', ''86'') ORDER BY 1',
                  format($$VALUES ('84', 'cancelled', NULL::text, 'catchup_discarded by %1$s: numbers of that hour are known', true),
                                  ('85', 'cancelled', NULL, 'catchup_discarded by %1$s: numbers of that hour are known', true), ('86', 'waiting', 'capacity', NULL, false)$$, session_user),
                  'their jobs are cancelled, and say by whom and why');
SELECT results_eq('SELECT schedule::text, from_key, to_key, firings, reason, discarded_by, why, generation FROM reports.catch_up_discard',
                  format($$VALUES ('a', '84', '85', 2::bigint, 'catchup_discarded', '%s', 'numbers of that hour are known', 100::bigint)$$, session_user), 'and a record keeps it');
SELECT is((SELECT count(*)::integer FROM reports.occurrence WHERE schedule = 'a' AND occurrence_key IN ('84', '85')), 2, 'the occurrences stay');
SELECT is((SELECT count(*)::integer FROM reports.schedule_gap WHERE schedule = 'a'), 0, 'so that they lie in no gap');
SELECT is(pg_temp.discard(1, 'a', 'before 2026-01-01T01:26:00Z: numbers of that hour are known'), 'done 2 missed firing(s) of 1 schedule(s) discarded', 'sending it once more gets the first answer');
SELECT is(pg_temp.answer(1), 'skipped ', 'and gives nothing up');
SELECT is(pg_temp.refusal('SELECT pg_temp.discard(1, ''b'')'), '23505 request id 00000000-0000-4000-8000-000000000001 was used for something else (Choose a fresh request id.)', 'an id that was used for something else is refused');
-- A queue; what is live, what runs and what a backfill asked for stay.
SELECT pg_temp.add_job('live', 'waiting', p_queue => 'q2'), pg_temp.add_job('asked', 'waiting', p_queue => 'q2', p_catch_up => true), pg_temp.add_job('turn', 'waiting', p_queue => 'q2', p_catch_up => true, p_overlap => 'queue', p_waits_for => 'overlap');
UPDATE reports.occurrence SET cause = CASE occurrence_key WHEN 'asked' THEN 'backfill' ELSE 'misfire' END WHERE occurrence_key IN ('asked', 'turn');
SELECT is((SELECT waiting || ' ' || backfill FROM reports.v_catch_up WHERE schedule = 'jobs'), '2 1', 'those of a backfill are told apart');
SELECT is(pg_temp.discard(2, 'queue:q2@tap'), 'pending ', 'or what waits in a queue');
SELECT is(pg_temp.answer(2), 'ok 3 missed firing(s) of 2 schedule(s) discarded', 'of all its schedules, also what waits for its turn');
SELECT is((SELECT string_agg(schedule || occurrence_key || ' ' || state, ', ' ORDER BY schedule, occurrence_key) FROM reports.job WHERE queue = 'q2'), 'b81 cancelled, b82 cancelled, b83 queued, jobsasked waiting, jobslive waiting, jobsturn cancelled', 'what is live, may run already or was asked for by name stays');
SELECT is(pg_temp.discard(3, 'queue:q2@tap') || pg_temp.answer(3), 'pending ok no such missed firing waits', 'where nothing is left it says so');
UPDATE reports.hold SET lifted_at = clock_timestamp();
-- And back.
SELECT is((SELECT state FROM reports.ask(pg_temp.id(4), 'retry', 'a:84', NULL, '1 min')), 'pending', '(one is wanted after all)');
SELECT matches(pg_temp.answer(4), '^ok job a:84 is queued again', 'a job that was given up may be retried');
SELECT is((SELECT firings FROM reports.v_catch_up_discard WHERE schedule = 'a'), 2::bigint, 'and the record stays');

-- The next leader goes on with what is left of the minute.
DELETE FROM reports.job;
DELETE FROM reports.catch_up_release;
SELECT is(pg_temp.plan('a', 141, 146) || ' ' || pg_temp.jobs('a'), 'ok 6 145 146 | 141 142 143 144', '(the minute is used up)');
DO $$ BEGIN PERFORM reports.establish('tap', 1, 101, pg_temp.id(101), 'member'); END $$;
SELECT is(pg_temp.tend(100, 101, pg_temp.id(101)), 0, 'a new leader finds the minute used up');
SELECT pg_temp.pass();
SELECT is(pg_temp.tend(), NULL, '(the former leader releases nothing)');
SELECT is(pg_temp.tend(100, 101, pg_temp.id(101)) || ' ' || pg_temp.jobs('a'), '2 - | 141 142 143 144 145 146', 'and releases what waits when it is over');

SELECT * FROM finish();
ROLLBACK;
