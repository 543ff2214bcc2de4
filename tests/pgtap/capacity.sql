-- Capacity: a queue with a bound never has more jobs queued and running than that, and what waits goes by
-- priority and age; missed firings go behind live ones, within their budget.
BEGIN;
\ir fixture.psql
SELECT no_plan();
SET timezone = 'UTC';

INSERT INTO reports.queue (name, max_outstanding) VALUES ('narrow', 2);
CREATE TEMP TABLE w AS SELECT pg_temp.add_worker('{default,narrow}') AS id;
\set queue narrow
\set cause schedule
\ir minutes.psql
CREATE FUNCTION pg_temp.jobs(p_schedule text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s %s%s', occurrence_key, state, ' for ' || waits_for), ', ' ORDER BY run_after, occurrence_key) FROM reports.job WHERE schedule = p_schedule
$$;
-- How many of the queue are queued, running and waiting.
CREATE FUNCTION pg_temp.load(p_queue text DEFAULT 'narrow') RETURNS text LANGUAGE sql AS $$
    SELECT format('%s/%s/%s', count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'running'), count(*) FILTER (WHERE state = 'waiting')) FROM reports.job WHERE queue = p_queue AND scope = 'tap'
$$;
CREATE FUNCTION pg_temp.tend(p_limit integer DEFAULT 100) RETURNS integer LANGUAGE sql AS $$ SELECT released FROM reports.tend('tap', 1, 100, pg_temp.leader(), p_limit) $$;
CREATE FUNCTION pg_temp.claim(p_limit integer, p_queue text DEFAULT 'narrow') RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(schedule || occurrence_key, ' ' ORDER BY schedule, occurrence_key) FROM reports.claim_ready((SELECT id FROM w), ARRAY[p_queue], p_limit)
$$;
CREATE FUNCTION pg_temp.finish(p_schedule text, p_key text, p_outcome text DEFAULT 'succeeded') RETURNS text LANGUAGE sql AS $$
    SELECT r.state FROM reports.job j, reports.record_outcomes(ARRAY[j.id], ARRAY[j.attempt_token], ARRAY[p_outcome], '{t}', '{NULL}', '{0}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}') r
     WHERE j.schedule = p_schedule AND j.occurrence_key = p_key
$$;
CREATE FUNCTION pg_temp.request(p_kind text, p_subject text, p_argument text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    request uuid := gen_random_uuid();
BEGIN
    PERFORM reports.ask(request, p_kind, p_subject, p_argument, '1 min');
    RETURN (SELECT a.verdict || ' ' || a.answer FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), request, gen_random_uuid()) a);
END
$$;

-- Bounds.
SELECT matches(pg_temp.refusal(format('UPDATE reports.queue SET max_outstanding = %s WHERE name = ''narrow''', n)), '^23514 queue "narrow": max_outstanding cannot be .* \(Write ', format('%s is no bound', n)) FROM unnest('{0,-1,1000001}'::integer[]) n;
SELECT matches(pg_temp.refusal(format('UPDATE reports.scope SET catch_up_max = %s WHERE name = ''tap''', n)), '^23514 scope "tap": catch_up_max cannot be .* \(Write ', format('%s is no budget', n)) FROM unnest('{0,-1,1000001}'::integer[]) n;
SELECT is((SELECT catch_up_max FROM reports.scope WHERE name = 'tap'), 100, 'a scope has a budget unless it says otherwise');

-- Plan.
SELECT pg_temp.schedule('a'), pg_temp.schedule('b', p_priority => 5), pg_temp.schedule('u', 'default');
SELECT is(pg_temp.plan('a', 1, 5), 'ok 5', 'planning goes on, however full the queue is');
SELECT is(pg_temp.jobs('a'), '1 queued, 2 queued, 3 waiting for capacity, 4 waiting for capacity, 5 waiting for capacity', 'as many as there is room for may run at once, the oldest first');
SELECT results_eq($$SELECT m.occurrence_key, m.dispatch_number, m.dispatch_number = j.dispatch_number, m.queue FROM reports.outbox m JOIN reports.job j ON j.id = m.job_id ORDER BY m.id$$,
                  $$VALUES ('1', 1, true, 'narrow'), ('2', 1, true, 'narrow')$$, 'and only those have messages');
SELECT is((SELECT DISTINCT dispatch_number FROM reports.job WHERE state = 'waiting'), 0, 'the others have had none');
SELECT is(pg_temp.plan('u', 1, 3) || ' ' || pg_temp.jobs('u'), 'ok 3 1 queued, 2 queued, 3 queued', 'a queue without a bound is not concerned');
SELECT is(pg_temp.claim(1) || ' ' || pg_temp.load(), 'a1 1/1/3', '(one runs)');
SELECT is(pg_temp.tend(), 0, 'queued and running count together');
SELECT is(pg_temp.plan('b', 1, 1) || ' ' || pg_temp.load(), 'ok 1 1/1/4', '(one of a higher priority comes)');
SELECT is(pg_temp.finish('a', '1') || ' ' || pg_temp.tend() || ' ' || pg_temp.jobs('b'), 'succeeded 1 1 queued', 'when there is room the highest priority goes first');
SELECT is(pg_temp.claim(2) || ' ' || pg_temp.finish('b', '1') || ' ' || pg_temp.tend() || ' ' || pg_temp.jobs('a'), 'a2 b1 succeeded 1 1 succeeded, 2 running, 3 queued, 4 waiting for capacity, 5 waiting for capacity', 'then the oldest');
-- A retry gives its room away while it waits, and waits for room then.
SELECT is(pg_temp.finish('a', '2', 'failed') || ' ' || pg_temp.tend() || ' ' || pg_temp.load(), 'retry_wait 1 2/0/1', 'who waits for a retry leaves room');
UPDATE reports.job SET run_after = '2026-01-01' WHERE state = 'retry_wait';
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('a'), '0 2 waiting for capacity, 1 succeeded, 3 queued, 4 queued, 5 waiting for capacity', 'and when its wait is over it waits for room');
SELECT is(pg_temp.request('cancel', 'a:4') || '; ' || pg_temp.jobs('a'), 'ok job a:4 was queued and is cancelled; 2 queued, 1 succeeded, 3 queued, 4 cancelled, 5 waiting for capacity', 'a cancellation makes room, which is filled at once');
SELECT is(pg_temp.request('retry', 'a:4'), 'ok job a:4 is waiting for capacity again, with 3 more attempts', 'a retry asked for waits for room');
SELECT is(pg_temp.request('trigger', 'a', 'hand'), 'ok occurrence a:hand made; its job waits for capacity', 'so does a manual firing');
SELECT is(pg_temp.claim(9) || ' ' || pg_temp.load(), 'a2 a3 0/2/3', '(both run)');
-- A lapsed claim.
UPDATE reports.fence_pulse SET beat_at = clock_timestamp(), reap_not_before = '-infinity' WHERE scope = 'tap';
UPDATE reports.job SET lease_until = clock_timestamp() - interval '1 h', max_attempts = attempt WHERE schedule = 'a' AND occurrence_key = '2';
SELECT is(pg_temp.tend() || ' ' || pg_temp.load(), '1 1/1/2', 'the round that closes a lapsed claim fills its room');

-- The bound is edited.
UPDATE reports.queue SET max_outstanding = 1 WHERE name = 'narrow';
SELECT is(pg_temp.tend() || ' ' || pg_temp.load(), '0 1/1/2', 'a lower bound takes nothing back');
SELECT is(pg_temp.finish('a', '3') || ' ' || pg_temp.tend() || ' ' || pg_temp.load(), 'succeeded 0 1/0/2', 'it holds from then on');
UPDATE reports.queue SET max_outstanding = NULL WHERE name = 'narrow';
SELECT is(pg_temp.tend(1) || ' ' || pg_temp.load(), '1 2/0/1', 'without a bound all that wait go, within the limit of a round');
SELECT is(pg_temp.tend() || ' ' || pg_temp.load(), '1 3/0/0', 'the rest in the next');
DELETE FROM reports.job WHERE queue = 'narrow';
UPDATE reports.queue SET max_outstanding = 1 WHERE name = 'narrow';

-- Other scopes and queues have their own room; no queue starves another.
INSERT INTO reports.queue (name, max_outstanding) VALUES ('other', 1);
SELECT pg_temp.add_job('s' || n, 'queued', p_queue => 'narrow') FROM generate_series(1, 3) n;
UPDATE reports.job SET scope = 'main' WHERE queue = 'narrow';
SELECT pg_temp.schedule('c'), pg_temp.schedule('o', 'other');
SELECT is(pg_temp.plan('c', 1, 2) || ' ' || pg_temp.load(), 'ok 2 1/0/1', 'jobs of another scope take no room');
SELECT is(pg_temp.plan('o', 1, 2) || ' ' || pg_temp.load('other'), 'ok 2 1/0/1', 'nor those of another queue');
SELECT pg_temp.add_job('d' || n, 'waiting', p_queue => 'default') FROM generate_series(1, 20) n;
UPDATE reports.job SET state = 'succeeded', finished_at = clock_timestamp() WHERE queue = 'other' AND state = 'queued';
SELECT is(pg_temp.tend(1) || ' ' || pg_temp.load('other'), '1 1/0/0', 'the oldest over all queues goes first, however many wait in the queue that comes first by name');
SELECT is(pg_temp.tend(100) || ' ' || pg_temp.load('narrow'), '20 1/0/1', 'then the others, but not into a queue that is full');

-- What people see.
SELECT results_eq($$SELECT queue, outstanding, waiting FROM reports.queue_load WHERE scope = 'tap' ORDER BY queue$$, $$VALUES ('narrow', 1, 1), ('other', 1, 0)$$, 'the round writes how full the queues with a bound are');
UPDATE reports.queue_load SET counted_at = clock_timestamp() - interval '5 s';
DO $$ BEGIN PERFORM pg_temp.tend(); END $$;
SELECT ok(bool_and(counted_at < clock_timestamp() - interval '4 s'), 'what has not changed is not written again') FROM reports.queue_load WHERE scope = 'tap';
UPDATE reports.queue_load SET counted_at = clock_timestamp() - interval '11 s';
DO $$ BEGIN PERFORM pg_temp.tend(); END $$;
SELECT ok(bool_and(counted_at > clock_timestamp() - interval '4 s'), 'but every ten seconds, so that its age can be seen') FROM reports.queue_load WHERE scope = 'tap';
UPDATE reports.queue SET max_outstanding = NULL WHERE name = 'other';
DO $$ BEGIN PERFORM pg_temp.tend(); END $$;
SELECT results_eq($$SELECT queue FROM reports.queue_load WHERE scope = 'tap'$$, $$VALUES ('narrow')$$, 'a queue without a bound is not counted');

-- Capacity and overlap together: first the turn, then the room.
DELETE FROM reports.job WHERE queue = 'narrow';
SELECT pg_temp.schedule('q', p_overlap => 'queue'), pg_temp.schedule('r', p_overlap => 'replace');
SELECT is(pg_temp.plan('c', 3, 3) || ' ' || pg_temp.plan('q', 1, 2), 'ok 1 ok 2', '(the queue is full)');
SELECT is(pg_temp.jobs('q'), '1 waiting for capacity, 2 waiting for overlap', 'the first in turn waits for room, the next for its turn');
SELECT is(pg_temp.claim(1) || ' ' || pg_temp.finish('c', '3') || ' ' || pg_temp.tend() || ' ' || pg_temp.jobs('q'), 'c3 succeeded 1 1 queued, 2 waiting for overlap', 'with room it goes, and keeps the turn');
SELECT is(pg_temp.plan('r', 1, 1) || ' ' || pg_temp.plan('r', 2, 2) || ' ' || pg_temp.jobs('r'), 'ok 1 ok 1 1 cancelled, 2 waiting for capacity', 'one that waits for room is replaced by a newer one');
DELETE FROM reports.job;

-- Catch-up: missed firings go within their budget, behind live ones.
UPDATE reports.scope SET catch_up_max = 3 WHERE name = 'tap';
UPDATE reports.queue SET max_outstanding = NULL WHERE name = 'narrow';
SELECT is(pg_temp.plan('u', 11, 15, 'misfire') || ' ' || pg_temp.jobs('u'), 'ok 5 11 queued, 12 queued, 13 queued, 14 waiting for capacity, 15 waiting for capacity', 'of missed firings as many may run as the budget allows, the oldest first');
SELECT is(pg_temp.plan('c', 10, 12, 'misfire') || ' ' || pg_temp.load(), 'ok 3 0/0/3', 'over all queues of the scope');
SELECT is(pg_temp.plan('u', 16, 17) || ' ' || pg_temp.load('default'), 'ok 2 5/0/2', 'live work is not concerned');
SELECT is(pg_temp.claim(9, 'default') || ' ' || pg_temp.tend(), 'u11 u12 u13 u16 u17 0', 'running ones count');
SELECT is(pg_temp.finish('u', '16') || ' ' || pg_temp.tend(), 'succeeded 0', 'the end of live work leaves no budget');
SELECT is(pg_temp.finish('u', '11') || ' ' || pg_temp.tend() || ' ' || pg_temp.jobs('c'), 'succeeded 1 10 queued, 11 waiting for capacity, 12 waiting for capacity', 'the end of one lets the oldest go');
SELECT is(pg_temp.finish('u', '12', 'failed') || ' ' || pg_temp.tend(), 'retry_wait 1', 'one that waits for its retry leaves its place');
UPDATE reports.job SET run_after = '2026-01-01' WHERE state = 'retry_wait';
SELECT matches(pg_temp.tend() || ' ' || pg_temp.jobs('u'), '^0 12 waiting for capacity, ', 'and comes back within the budget');
UPDATE reports.queue SET max_outstanding = 1 WHERE name = 'narrow';
UPDATE reports.job SET state = 'succeeded', finished_at = clock_timestamp(), attempt_token = NULL, worker = NULL, lease_until = NULL, waits_for = NULL WHERE queue = 'default' OR state = 'queued';
SELECT is(pg_temp.load(), '0/0/1', '(a missed one waits in a narrow queue)');
SELECT pg_temp.add_job('live', 'waiting', p_queue => 'narrow', p_priority => -9);
SELECT is(pg_temp.tend() || ' ' || pg_temp.jobs('jobs'), '1 live queued', 'live work goes before missed, whatever its priority and age');
UPDATE reports.scope SET catch_up_max = NULL WHERE name = 'tap';
UPDATE reports.queue SET max_outstanding = NULL WHERE name = 'narrow';
SELECT is(pg_temp.tend() || ' ' || pg_temp.load(), '1 2/0/0', 'without a budget and a bound all go');
SELECT is(pg_temp.plan('u', 21, 25, 'misfire') || ' ' || pg_temp.load('default'), 'ok 5 5/0/0', 'and new ones go at once');

SELECT * FROM finish();
ROLLBACK;
