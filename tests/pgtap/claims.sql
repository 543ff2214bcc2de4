-- Workers register, claim and renew; a job has one live claim (I6).
BEGIN;
\ir fixture.psql
SELECT no_plan();

-- Register and leave.
SELECT is(pg_temp.refusal($$SELECT reports.worker_register(gen_random_uuid(), 'h', 1, '1', '{default,slow}', 4)$$),
          'RS006 queue "slow" does not exist (Insert it into reports.queue, or correct queues in worker.conf.)', 'a worker of an unknown queue is refused');
CREATE TEMP TABLE w AS SELECT n, pg_temp.add_worker('{default,fast}') AS id FROM generate_series(1, 5) n;
CREATE FUNCTION pg_temp.w(p_n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT id FROM w WHERE n = p_n $$;
SELECT results_eq($$SELECT r.installation = i.id, lease_us FROM reports.worker_register(pg_temp.w(1), 'host', 1, '1.0', '{default}', 4) r, reports.installation i$$,
                  $$VALUES (true, 60000000::bigint)$$, 'registering again is harmless, and tells installation and lease');
SELECT is((SELECT count(*) FROM reports.worker WHERE id = pg_temp.w(1)), 1::bigint, 'and makes no second row');
SELECT matches(pg_temp.refusal($$SELECT reports.worker_register(gen_random_uuid(), 'h', 1, '1', '{default}', 0)$$), '^23514 ', 'a worker without slots is refused');
SELECT reports.worker_leave(pg_temp.w(2), 'draining'), reports.worker_leave(pg_temp.w(3), 'stopped'), reports.worker_leave(pg_temp.w(4), 'draining'), reports.worker_leave(pg_temp.w(4), 'stopped');
UPDATE reports.worker SET state = 'dead', stopped_at = clock_timestamp() WHERE id = pg_temp.w(5);
SELECT results_eq('SELECT w.n, r.state, r.stopped_at IS NOT NULL FROM w JOIN reports.worker r USING (id) ORDER BY n',
                  $$VALUES (1, 'alive', false), (2, 'draining', false), (3, 'stopped', true), (4, 'stopped', true), (5, 'dead', true)$$, 'workers drain and stop');
SELECT lives_ok($$SELECT reports.worker_leave(pg_temp.w(5), 'draining')$$, 'leaving again is harmless');
SELECT is((SELECT state FROM reports.worker WHERE id = pg_temp.w(5)), 'dead', 'and brings nobody back');
SELECT is(pg_temp.refusal($$SELECT reports.worker_leave(pg_temp.w(1), 'dead')$$), '22023 state dead is not for this function', 'nobody declares himself dead');
SELECT is(pg_temp.refusal(format('SELECT reports.worker_register(%L, ''h'', 1, ''1'', ''{default}'', 4)', pg_temp.w(n))), format('RS005 worker incarnation %s has ended', pg_temp.w(n)), format('an id that has ended (%s) is never used again', n))
  FROM generate_series(3, 5) n;

-- Claim by id.
CREATE TEMP TABLE job (key text PRIMARY KEY, id uuid);
INSERT INTO job SELECT k, pg_temp.add_job(k) FROM unnest('{a,b,c,d,e}'::text[]) k;
INSERT INTO job VALUES ('future', pg_temp.add_job('future', p_run_after => clock_timestamp() + interval '1 s')),
                       ('fast', pg_temp.add_job('fast', p_queue => 'fast')),
                       ('retry', pg_temp.add_job('retry', 'retry_wait')), ('waits', pg_temp.add_job('waits', 'waiting')),
                       ('done', pg_temp.add_job('done', 'succeeded')), ('taken', pg_temp.add_job('taken', 'running', pg_temp.w(2), p_attempt => 1));
CREATE FUNCTION pg_temp.claim(p_n integer, p_keys text, p_queues text[] DEFAULT '{default}') RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(occurrence_key || ':' || attempt, ' ' ORDER BY occurrence_key)
      FROM reports.claim_ids(pg_temp.w(p_n), p_queues, ARRAY(SELECT id FROM job WHERE key = ANY (string_to_array(p_keys, ' '))))
$$;
SELECT is(pg_temp.claim(1, 'a b'), 'a:1 b:1', 'listed jobs are claimed, and the attempt counted');
SELECT ok(state = 'running' AND worker = pg_temp.w(1) AND attempt_token IS NOT NULL AND claimed_at >= now() AND lease_until - claimed_at BETWEEN '59.9 s' AND '60.1 s',
          'with worker, token and lease') FROM reports.job WHERE occurrence_key = 'a';
SELECT isnt((SELECT attempt_token FROM reports.job WHERE occurrence_key = 'a'), (SELECT attempt_token FROM reports.job WHERE occurrence_key = 'b'), 'each with a token of its own');
SELECT is(pg_temp.claim(1, 'a b'), NULL, 'a claim repeated claims nothing');
SELECT is(pg_temp.claim(1, 'future retry waits done taken'), NULL, 'jobs that are not queued and due are not returned');
SELECT is(pg_temp.claim(1, 'fast'), NULL, 'nor those of another queue');
SELECT is(pg_temp.claim(1, 'c fast', '{default,fast}'), 'c:1 fast:1', 'unless it is served too');
SELECT is((SELECT count(*) FROM reports.claim_ids(pg_temp.w(1), '{default}', ARRAY[gen_random_uuid(), NULL])), 0::bigint, 'an unknown id is nothing');
SELECT is((SELECT count(*) FROM reports.claim_ids(pg_temp.w(1), '{default}', '{}')), 0::bigint, 'no id claims nothing');
SELECT is((SELECT count(*) FROM reports.claim_ids(pg_temp.w(1), '{default}', (SELECT ARRAY[id, id, id] FROM job WHERE key = 'd'))), 1::bigint, 'an id listed thrice is one claim');
SELECT is((SELECT attempt FROM reports.job WHERE occurrence_key = 'd'), 1, 'and one attempt');
UPDATE reports.job SET state = 'queued', attempt_token = NULL, worker = NULL, lease_until = NULL WHERE occurrence_key = 'd';
CREATE TEMP TABLE token AS SELECT token FROM reports.claim_ids(pg_temp.w(1), '{default}', ARRAY(SELECT id FROM job WHERE key = 'd'));
SELECT is((SELECT attempt FROM reports.job WHERE occurrence_key = 'd'), 2, 'the next claim is the second attempt');
SELECT is((SELECT token FROM token), (SELECT attempt_token FROM reports.job WHERE occurrence_key = 'd'), 'with the token that is in the row');

-- All a worker needs.
UPDATE reports.report SET kind = 'sql', data_source = 'w', query = 'SELECT 1', parameters = '{"a": 1, "b": 1}' WHERE name = 'nothing';
INSERT INTO reports.schedule (name, scope, report, kind, rule, parameters) VALUES ('jobs', 'tap', 'nothing', 'cron', '@daily', '{"b": 2, "c": 2}');
UPDATE reports.occurrence SET window_start = '2030-04-11', window_end = '2030-04-12' WHERE occurrence_key = 'e';
SELECT results_eq($$SELECT c.job_id = j.id, c.attempt, c.scope, c.schedule, c.occurrence_key, c.revision, c.scheduled_for = o.scheduled_for, c.business_date, c.window_start, c.window_end, c.cause, c.timeout_ms, c.report, c.kind, c.data_source, c.query, c.format, c.parameters
                      FROM reports.claim_ids(pg_temp.w(1), '{default}', ARRAY(SELECT id FROM job WHERE key = 'e')) c, job j, reports.occurrence o WHERE j.key = 'e' AND o.occurrence_key = 'e'$$,
                  $$VALUES (true, 1, 'tap', 'jobs', 'e', 1, true, date '2030-04-12', timestamptz '2030-04-11', timestamptz '2030-04-12', 'schedule', 3600000::bigint, 'nothing', 'sql', 'w', 'SELECT 1', 'csv', '{"a": 1, "b": 2, "c": 2}'::jsonb)$$,
                  'a claim brings all that is needed to run; the schedule''s parameters override the report''s');
SELECT results_eq($$SELECT occurrence_key FROM reports.claims_of(pg_temp.w(1)) ORDER BY 1$$, $$SELECT unnest('{a,b,c,d,e,fast}'::text[])$$, 'after a lost answer a worker finds all it holds');
SELECT is((SELECT string_agg(DISTINCT occurrence_key, '') FROM reports.claims_of(pg_temp.w(2))), 'taken', 'and nothing of another''s');
CREATE FUNCTION pg_temp.tokens_under_hold(p_scope text, p_queue text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    stands bigint := reports.raise_hold(p_scope, p_queue, 'a dump was restored');
    keys text;
BEGIN
    SELECT string_agg(c.occurrence_key, ' ' ORDER BY c.occurrence_key) INTO keys FROM reports.claims_of(pg_temp.w(1)) c WHERE c.token IS NOT NULL;
    IF (SELECT count(*) FROM reports.claims_of(pg_temp.w(1))) <> 6 THEN
        RAISE 'not all are told';
    END IF;
    DELETE FROM reports.hold WHERE id = stands;
    RETURN keys;
END
$$;
SELECT is(pg_temp.tokens_under_hold('tap', NULL), NULL, 'under a hold of the scope none can be adopted: they are told without their tokens');
SELECT is(pg_temp.tokens_under_hold(NULL, NULL), NULL, 'nor under one of the installation');
SELECT is(pg_temp.tokens_under_hold(NULL, 'fast'), 'a b c d e', 'under one of a queue, those of other queues');
SELECT ok(bool_and(c.token = j.attempt_token), 'when it is lifted all have theirs again') FROM reports.claims_of(pg_temp.w(1)) c JOIN reports.job j ON j.id = c.job_id;
DELETE FROM reports.schedule WHERE name = 'jobs';
DELETE FROM reports.report WHERE name = 'nothing';
SELECT ok(kind IS NULL AND parameters = '{"b": 2, "c": 2}', 'a job whose report is gone is found too, without a kind') FROM reports.claims_of(pg_temp.w(1)) WHERE occurrence_key = 'e';

-- Claim what is ready.
DELETE FROM reports.job;
SELECT pg_temp.add_job('low', p_priority => -1, p_run_after => clock_timestamp() - interval '9 s'), pg_temp.add_job('old', p_run_after => clock_timestamp() - interval '8 s'),
       pg_temp.add_job('new', p_run_after => clock_timestamp() - interval '1 s'), pg_temp.add_job('high', p_priority => 1),
       pg_temp.add_job('later', p_priority => 9, p_run_after => clock_timestamp() + interval '1 hour'), pg_temp.add_job('quick', p_queue => 'fast');
CREATE FUNCTION pg_temp.ready(p_n integer, p_limit integer, p_queues text[] DEFAULT '{default}') RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(occurrence_key, ' ' ORDER BY occurrence_key) FROM reports.claim_ready(pg_temp.w(p_n), p_queues, p_limit)
$$;
SELECT is(pg_temp.ready(1, 1), 'high', 'the highest priority is claimed first');
SELECT is(pg_temp.ready(1, 1), 'old', 'then the oldest');
SELECT is(pg_temp.ready(1, 0), NULL, 'none when none is asked for');
SELECT is(pg_temp.ready(1, 2, '{fast,default}'), 'new quick', 'queues are served in the order given');
SELECT is(pg_temp.ready(1, 10), 'low', 'low priority comes last');
SELECT is(pg_temp.ready(1, 10), NULL, 'and what is not due not at all');

-- Who may claim.
SELECT pg_temp.add_job('x');
SELECT is(pg_temp.ready(2, 10), NULL, 'a draining worker claims nothing of what is ready');
INSERT INTO job SELECT 'x', id FROM reports.job WHERE occurrence_key = 'x';
SELECT is(pg_temp.claim(2, 'x'), NULL, 'nor by id');
SELECT is(pg_temp.refusal(format(c, pg_temp.w(n))), format('RS005 worker incarnation %s has ended (Register a new incarnation.)', pg_temp.w(n)), format('an ended worker (%s) is refused: %s', n, c))
  FROM generate_series(3, 5, 2) n, unnest(ARRAY['SELECT reports.claim_ready(%L, ''{default}'', 1)', 'SELECT reports.claim_ids(%L, ''{default}'', ''{}'')', 'SELECT reports.heartbeat(%L, ''{}'', ''{}'')']) c;
SELECT is(pg_temp.refusal('SELECT reports.claim_ready(''00000000-0000-4000-8000-000000000000'', ''{default}'', 1)'),
          'RS005 worker incarnation 00000000-0000-4000-8000-000000000000 has ended (Register a new incarnation.)', 'as is one that never was');

-- Holds.
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'test');
SELECT is(pg_temp.ready(1, 10), NULL, 'a hold on the scope stops claiming what is ready');
SELECT is(pg_temp.claim(1, 'x'), NULL, 'and by id');
UPDATE reports.hold SET scope = 'main';
SELECT is(pg_temp.claim(1, 'x'), 'x:1', 'a hold on another scope does not');
UPDATE reports.job SET state = 'queued', attempt_token = NULL, worker = NULL, lease_until = NULL WHERE occurrence_key = 'x';
UPDATE reports.hold SET scope = NULL;
SELECT is(pg_temp.ready(1, 10), NULL, 'a hold on the installation stops claiming what is ready');
SELECT is(pg_temp.claim(1, 'x'), NULL, 'and by id');
UPDATE reports.hold SET lifted_at = clock_timestamp();
SELECT is(pg_temp.ready(1, 10), 'x', 'until it is lifted');

-- Heartbeat: by pairs, and only those.
DELETE FROM reports.job;
DELETE FROM reports.occurrence;
DELETE FROM job;
INSERT INTO job SELECT k, pg_temp.add_job(k, 'running', pg_temp.w(1), p_attempt => 1, p_lease_until => '2000-01-01') FROM unnest('{a,b,c}'::text[]) k;
INSERT INTO job VALUES ('other', pg_temp.add_job('other', 'running', pg_temp.w(2), p_attempt => 1, p_lease_until => '2000-01-01'));
UPDATE reports.job SET cancel_requested = true WHERE occurrence_key = 'b';
CREATE FUNCTION pg_temp.beat(p_keys text, p_tokens uuid[] DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(k.key || CASE WHEN h.cancel_requested THEN ' to cancel' ELSE '' END, ', ' ORDER BY k.key)
      FROM reports.heartbeat(pg_temp.w(1), ARRAY(SELECT id FROM job WHERE key = ANY (string_to_array(p_keys, ' ')) ORDER BY key),
                             coalesce(p_tokens, ARRAY(SELECT attempt_token FROM reports.job WHERE occurrence_key = ANY (string_to_array(p_keys, ' ')) ORDER BY occurrence_key))) h
      JOIN job k ON k.id = h.job_id
$$;
CREATE FUNCTION pg_temp.renewed() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(occurrence_key, ' ' ORDER BY occurrence_key) FROM reports.job WHERE lease_until > '2000-01-01' $$;
UPDATE reports.worker SET heartbeat_at = '2000-01-01' WHERE id = pg_temp.w(1);
SELECT is(pg_temp.beat('a b'), 'a, b to cancel', 'a heartbeat renews the listed claims and brings cancellations back');
SELECT is(pg_temp.renewed(), 'a b', 'and no others');
SELECT ok(lease_until - clock_timestamp() BETWEEN '59 s' AND '60 s', 'by a lease from now') FROM reports.job WHERE occurrence_key = 'a';
SELECT ok(heartbeat_at >= now(), 'and it is a sign of life of the worker') FROM reports.worker WHERE id = pg_temp.w(1);
SELECT is(pg_temp.beat('c', ARRAY[gen_random_uuid()]), NULL, 'a claim with another token is not renewed');
SELECT is(pg_temp.beat('a c', (SELECT array_agg(attempt_token ORDER BY occurrence_key DESC) FROM reports.job WHERE occurrence_key IN ('a', 'c'))), NULL, 'the token of another of its jobs does not help');
SELECT is(pg_temp.beat('other'), NULL, 'nor another worker''s token');
SELECT is(pg_temp.renewed(), 'a b', 'none of them was renewed');
SELECT is(pg_temp.beat('a a c c'), 'a, c', 'a pair is renewed once');
SELECT is((SELECT count(*) FROM reports.heartbeat(pg_temp.w(1), '{}', '{}')), 0::bigint, 'a worker without jobs beats too');
SELECT lives_ok($$SELECT reports.heartbeat(pg_temp.w(2), '{}', '{}')$$, 'and so does a draining one');

-- The clock is 20 s behind, and the leader has not seen it yet: it may be right again before it looks.
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() + interval '20 s' WHERE scope = 'tap';
SELECT pg_temp.add_job('behind') AS behind \gset
SELECT is((SELECT count(*) FROM reports.claim_ids(pg_temp.w(1), '{default}', ARRAY[:'behind'::uuid])), 1::bigint, 'a job is claimed while the clock is behind');
SELECT ok(lease_until - clock_timestamp() BETWEEN '75 s' AND '80 s', 'for a lease from the leader''s last sign of life') FROM reports.job WHERE id = :'behind';
UPDATE reports.job SET lease_until = clock_timestamp() WHERE id = :'behind';
SELECT is((SELECT count(*) FROM reports.heartbeat(pg_temp.w(1), ARRAY[:'behind'::uuid], ARRAY[(SELECT attempt_token FROM reports.job WHERE id = :'behind')])), 1::bigint, 'and renewed');
SELECT ok(lease_until - clock_timestamp() BETWEEN '75 s' AND '80 s', 'by the same') FROM reports.job WHERE id = :'behind';
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() WHERE scope = 'tap';

-- A lease that is shortened (or lengthened) while workers run is not theirs: they renew by what they agreed to.
SELECT pg_temp.add_worker() AS settled \gset
UPDATE reports.installation SET claim_lease = '3 s';
SELECT is((SELECT lease_us FROM reports.worker_register(:'settled', 'host', 1, '1.0', '{default}', 4)), 60000000::bigint, 'a worker that registers again after a lost answer has the lease it had');
SELECT pg_temp.add_job('lease-kept') AS kept \gset
SELECT is((SELECT count(*) FROM reports.claim_ids(:'settled', '{default}', ARRAY[:'kept'::uuid])), 1::bigint, 'it claims');
SELECT ok(lease_until > clock_timestamp() + interval '50 s', 'for the lease it agreed to') FROM reports.job WHERE id = :'kept';
UPDATE reports.job SET lease_until = clock_timestamp() + interval '1 s' WHERE id = :'kept';
SELECT is((SELECT count(*) FROM reports.heartbeat(:'settled', ARRAY[:'kept'::uuid], ARRAY[(SELECT attempt_token FROM reports.job WHERE id = :'kept')])), 1::bigint, 'it renews');
SELECT ok(lease_until > clock_timestamp() + interval '50 s', 'by the same') FROM reports.job WHERE id = :'kept';
SELECT is((SELECT lease_us FROM reports.worker_register(gen_random_uuid(), 'host', 1, '1.0', '{default}', 4)), 3000000::bigint, 'a new worker has the new lease');
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - interval '4 s', reap_not_before = '-infinity' WHERE scope = 'tap';
SELECT reports.beat('tap');
SELECT ok(reap_not_before > clock_timestamp() + interval '50 s', 'after a silence that one of them may not have survived, all have the time that they need') FROM reports.fence_pulse WHERE scope = 'tap';

SELECT * FROM finish();
ROLLBACK;
