-- Retention forgets what is old enough, oldest first and in bounded batches, and nothing that an open job, a
-- live claim or the proof of exactly once needs (I3, I7).
BEGIN;
\ir fixture.psql
SELECT no_plan();
UPDATE reports.installation SET keep_attempts = '10 days', keep_artifacts = '10 days', keep_deliveries = '10 days', keep_requests = '10 days',
       keep_leadership_events = '10 days', keep_fence_rejections = '10 days', keep_workers = '10 days', keep_dead_messages = '10 days', keep_member_clocks = '10 days';
DELETE FROM reports.leadership_event;

-- A job of p_age ago with one attempt and its file; its id is of that time.
CREATE FUNCTION pg_temp.old_job(p_key text, p_age interval, p_state reports.job_state DEFAULT 'succeeded', p_finished interval DEFAULT NULL) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    made uuid := pg_temp.add_job(p_key, CASE WHEN p_state = 'retry_wait' THEN p_state ELSE 'succeeded' END);
    aged uuid := overlay(gen_random_uuid()::text PLACING left(reports.job_id_floor(clock_timestamp() - p_age)::text, 15) FROM 1 FOR 15)::uuid;
BEGIN
    UPDATE reports.occurrence SET job_id = aged WHERE job_id = made;
    UPDATE reports.job SET id = aged, finished_at = CASE WHEN p_state <> 'retry_wait' THEN clock_timestamp() - coalesce(p_finished, p_age) END WHERE id = made;
    INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, started_at, ended_at)
    VALUES (aged, 1, gen_random_uuid(), gen_random_uuid(), 'succeeded', clock_timestamp() - p_age, clock_timestamp() - p_age);
    INSERT INTO reports.artifact (job_id, attempt, store, path, media_type, size_bytes, sha256)
    VALUES (aged, 1, 'main', p_key, 'text/csv', 1, sha256(p_key::bytea));
    RETURN aged;
END
$$;
CREATE FUNCTION pg_temp.prune(p_limit integer DEFAULT 1000) RETURNS TABLE (pruned_table text, pruned integer) LANGUAGE sql AS $$
    SELECT pruned_table, pruned FROM reports.prune('tap', 1, 100, pg_temp.leader(), p_limit) WHERE pruned <> 0 ORDER BY 1
$$;
SELECT is_empty('SELECT * FROM pg_temp.prune()', 'nothing old, nothing forgotten');
SELECT is((SELECT count(*) FROM reports.prune('tap', 1, 100, pg_temp.leader(), 10) WHERE verdict = 'ok'), 10::bigint, 'every table of retention is looked at');

CREATE TEMP TABLE made AS SELECT k.key, pg_temp.old_job(k.key, k.age, k.state::reports.job_state, k.finished) AS id
  FROM (VALUES ('old1', interval '30 days', 'succeeded', NULL::interval), ('old2', '20 days', 'failed', NULL), ('young', '9 days', 'succeeded', NULL),
               ('retried', '30 days', 'retry_wait', NULL), ('late', '30 days', 'succeeded', '1 day')) AS k (key, age, state, finished);
SELECT results_eq('SELECT * FROM pg_temp.prune(1)', $$VALUES ('artifact', 1), ('job_attempt', 1)$$, 'a batch is bounded');
SELECT is_empty($$SELECT FROM reports.job_attempt JOIN made ON id = job_id WHERE key = 'old1'$$, 'and the oldest goes first');
SELECT results_eq('SELECT * FROM pg_temp.prune()', $$VALUES ('artifact', 1), ('job_attempt', 1)$$, 'the rest goes in the next');
SELECT results_eq($$SELECT key FROM reports.job_attempt JOIN made ON id = job_id ORDER BY 1$$, $$VALUES ('late'), ('retried'), ('young')$$,
                  'attempts of young, open and lately ended jobs stay');
SELECT results_eq($$SELECT key FROM reports.artifact JOIN made ON id = job_id ORDER BY 1$$, $$VALUES ('late'), ('retried'), ('young')$$, 'so do their files');
SELECT is((SELECT count(*) FROM reports.job JOIN made USING (id)), 5::bigint, 'jobs stay for ever');
SELECT is((SELECT count(*) FROM reports.occurrence o JOIN made ON made.id = o.job_id), 5::bigint, 'and so do occurrences: a key is never free again');

-- A file that is still to be sent stays.
SELECT pg_temp.old_job('to-send', '30 days') AS to_send \gset
INSERT INTO reports.delivery (job_id, revision, channel, recipient, scope, attempt, idempotency_key, state)
VALUES (:'to_send', 1, 'mail', 'a@example.org', 'tap', 1, 'k1', 'unknown');
SELECT ok(EXISTS (SELECT FROM pg_temp.prune()) AND EXISTS (SELECT FROM reports.artifact WHERE job_id = :'to_send'), 'a file of an open delivery stays');
SELECT ok(EXISTS (SELECT FROM reports.delivery WHERE job_id = :'to_send'), 'and the delivery itself, until a person has decided');
UPDATE reports.delivery SET state = 'failed', finished_at = clock_timestamp() WHERE job_id = :'to_send';
SELECT results_eq('SELECT * FROM pg_temp.prune()', $$VALUES ('artifact', 1), ('delivery', 1)$$, 'then both go');

-- Diaries.
INSERT INTO reports.leadership_event (scope, at, event) SELECT 'tap', clock_timestamp() - d * interval '1 day', 'established' FROM generate_series(30, 1, -1) d;
INSERT INTO reports.fence_rejection (at, scope, operation, incarnation, generation, stored_incarnation, stored_generation, application_name)
SELECT clock_timestamp() - d * interval '1 day', 'tap', 'plan_batch', 1, 1, 1, 2, 'x' FROM generate_series(12, 9, -1) d;
INSERT INTO reports.member_clock (at, member, boot, boot_us, offset_us, round_trip_us) VALUES (clock_timestamp() - interval '11 days', 'm', 'b', 1, 1, 1), (clock_timestamp(), 'm', 'b', 2, 1, 1);
INSERT INTO reports.outbox_dead (scope, id, job_id, schedule, occurrence_key, reason, buried_at)
SELECT 'tap', n, gen_random_uuid(), 's', 'k', 'too large', clock_timestamp() - n * interval '5 days' FROM generate_series(1, 4) n;
INSERT INTO reports.request (id, kind, scope, subject, state, deadline, answered_at, requested_at)
SELECT gen_random_uuid(), 'trigger', 'tap', 's', CASE n WHEN 1 THEN 'pending' ELSE 'done' END, clock_timestamp() - interval '40 days',
       CASE n WHEN 1 THEN NULL ELSE clock_timestamp() - (n - 1) * interval '8 days' END, clock_timestamp() - interval '50 days' FROM generate_series(1, 3) n;
INSERT INTO reports.worker (id, name, pid, version, queues, slots, state, heartbeat_at, stopped_at)
SELECT gen_random_uuid(), 'w' || n, 1, '1', '{default}', 1, s, clock_timestamp() - a, CASE WHEN s <> 'alive' THEN clock_timestamp() - a END
  FROM (VALUES (1, 'stopped', interval '20 days'), (2, 'dead', '20 days'), (3, 'alive', '20 days'), (4, 'stopped', '1 day'), (5, 'alive', '1 s')) AS x (n, s, a);
INSERT INTO reports.worker (id, name, pid, version, queues, slots, heartbeat_at) VALUES ('00000000-0000-4000-8000-00000000000a', 'busy', 1, '1', '{default}', 1, clock_timestamp() - interval '20 days');
SELECT pg_temp.add_job('held-by-silent', 'running', '00000000-0000-4000-8000-00000000000a');
SELECT results_eq('SELECT * FROM pg_temp.prune()',
                  $$VALUES ('fence_rejection', 3), ('leadership_event', 21), ('member_clock', 1), ('outbox_dead', 3), ('request', 1), ('worker', 3)$$, 'diaries lose what is old');
SELECT is((SELECT count(*) FROM reports.request WHERE state = 'pending'), 1::bigint, 'a pending request stays, however old');
SELECT results_eq($$SELECT name FROM reports.worker ORDER BY 1$$, $$VALUES ('busy'), ('w4'), ('w5')$$, 'and so does a worker that still holds a claim');
SELECT is_empty('SELECT * FROM pg_temp.prune()', 'then nothing is left to forget');

-- For ever.
UPDATE reports.installation SET keep_attempts = NULL, keep_artifacts = NULL, keep_deliveries = NULL, keep_requests = NULL, keep_leadership_events = NULL,
       keep_fence_rejections = NULL, keep_workers = NULL, keep_dead_messages = NULL, keep_member_clocks = NULL;
SELECT pg_temp.old_job('ancient', '3000 days') AS ancient \gset
INSERT INTO reports.leadership_event (scope, at, event) VALUES ('tap', '2001-01-01', 'established');
UPDATE reports.request SET answered_at = '2001-01-01' WHERE state = 'done';
SELECT is_empty('SELECT * FROM pg_temp.prune()', 'what is kept for ever is kept');
SELECT alike(pg_temp.refusal($$UPDATE reports.installation SET keep_attempts = '1 hour'$$), '23514%', 'a keep time that would eat today''s work is refused');
SELECT alike(pg_temp.refusal(format('UPDATE reports.installation SET %I = ''1001 years''', c)), '23514%', format('and a %s from before all time', c))
  FROM unnest('{keep_attempts,keep_artifacts,keep_deliveries,keep_requests,keep_leadership_events,keep_fence_rejections,keep_workers,keep_dead_messages,keep_member_clocks}'::text[]) c;
UPDATE reports.installation SET keep_attempts = '1000 years', keep_artifacts = '1000 years', keep_deliveries = '1000 years', keep_requests = '1000 years', keep_leadership_events = '1000 years',
       keep_fence_rejections = '1000 years', keep_workers = '1000 years', keep_dead_messages = '1000 years', keep_member_clocks = '1000 years';
SELECT is_empty('SELECT * FROM pg_temp.prune()', 'the longest there is forgets nothing, and stops nothing');
SELECT is(reports.job_id_floor('1969-01-01'), '00000000-0000-7000-8000-000000000000', 'and reads nothing: before all time lies no job');

SELECT * FROM finish();
ROLLBACK;
