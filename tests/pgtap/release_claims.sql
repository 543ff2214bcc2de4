-- A worker that is proved dead: its incarnation is marked, its jobs and deliveries are returned.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE TEMP TABLE w AS SELECT n, pg_temp.add_worker('{default}') AS id FROM generate_series(1, 5) n;
CREATE FUNCTION pg_temp.w(p_n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT id FROM w WHERE n = p_n $$;
CREATE FUNCTION pg_temp.released(p_n integer) RETURNS text LANGUAGE sql AS $$ SELECT format('%s %s %s', verdict, released, remaining) FROM reports.release_claims(pg_temp.w(p_n)) $$;
CREATE FUNCTION pg_temp.jobs() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(occurrence_key || ' ' || state, ', ' ORDER BY occurrence_key) FROM reports.job $$;

SELECT pg_temp.add_job('fresh', 'running', pg_temp.w(1), p_attempt => 1), pg_temp.add_job('last', 'running', pg_temp.w(1), p_attempt => 3),
       pg_temp.add_job('ended', 'running', pg_temp.w(1), p_attempt => 1), pg_temp.add_job('again', 'running', pg_temp.w(1), p_attempt => 2),
       pg_temp.add_job('failed-once', 'running', pg_temp.w(1), p_attempt => 2), pg_temp.add_job('late', 'running', pg_temp.w(1), p_attempt => 1, p_lease_until => clock_timestamp() - interval '1 h'),
       pg_temp.add_job('replaced', 'running', pg_temp.w(1), p_attempt => 3, p_overlap => 'replace'),
       pg_temp.add_job('another', 'running', pg_temp.w(2), p_attempt => 1), pg_temp.add_job('queued');
UPDATE reports.job SET cancel_requested = true WHERE occurrence_key IN ('ended', 'replaced');
UPDATE reports.job SET handed_back = 1, attempt = 3, max_attempts = 3 WHERE occurrence_key = 'failed-once';
INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, started_at)
SELECT id, 1, gen_random_uuid(), pg_temp.w(3), CASE occurrence_key WHEN 'again' THEN 'lost' ELSE 'failed' END, now() FROM reports.job WHERE occurrence_key IN ('again', 'failed-once');
CREATE TEMP TABLE token AS SELECT id, occurrence_key AS key, attempt_token AS token FROM reports.job WHERE state = 'running';

SELECT is(pg_temp.released(1), 'released 7 0', 'all that the dead worker held is returned');
SELECT is(pg_temp.jobs(), 'again retry_wait, another running, ended cancelled, failed-once queued, fresh queued, last failed, late queued, queued queued, replaced cancelled',
          'queued again; out of attempts failed; asked to end, or replaced, cancelled; lost before waits; another worker''s stays');
SELECT is((SELECT state FROM reports.worker WHERE id = pg_temp.w(1)), 'dead', 'the incarnation is marked');
SELECT ok(stopped_at IS NOT NULL, 'with the time') FROM reports.worker WHERE id = pg_temp.w(1);
SELECT is((SELECT string_agg(DISTINCT a.outcome || ' ' || a.error, ',') FROM reports.job_attempt a WHERE a.worker = pg_temp.w(1)), 'lost the worker was killed, or crashed', 'each attempt is lost, and why');
SELECT is((SELECT count(*) FROM reports.job_attempt a JOIN token t ON t.id = a.job_id AND t.token = a.token WHERE a.worker = pg_temp.w(1)), 7::bigint, 'under its token');
SELECT is((SELECT string_agg(occurrence_key || ' ' || attempt, ', ' ORDER BY occurrence_key) FROM reports.job WHERE occurrence_key IN ('fresh', 'again')), 'again 2, fresh 1', 'the attempt counts');
SELECT ok(run_after <= clock_timestamp() AND dispatch_number = 1, 'one may be claimed at once, without a message') FROM reports.job WHERE occurrence_key = 'fresh';
SELECT ok(run_after > clock_timestamp() + interval '1 s', 'one that has lost a worker before waits its backoff') FROM reports.job WHERE occurrence_key = 'again';
SELECT ok(attempt_token IS NULL AND worker IS NULL AND lease_until IS NULL AND error = 'the worker was killed, or crashed', 'no claim is left') FROM reports.job WHERE occurrence_key = 'fresh';
SELECT ok((finished_at IS NOT NULL) = (state IN ('failed', 'cancelled')), format('%s: finished, if it is', occurrence_key)) FROM reports.job WHERE worker IS NULL;

-- What the dead process had sent comes too late.
SELECT is((SELECT string_agg(verdict, ',') FROM reports.record_outcomes(ARRAY[t.id], ARRAY[t.token], '{succeeded}', '{t}', '{NULL}', '{0}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}')), 'lost', 'its outcome is lost')
  FROM token t WHERE key = 'fresh';
SELECT is(pg_temp.refusal(format('SELECT reports.heartbeat(%L, ''{}'', ''{}'')', pg_temp.w(1))), format('RS005 worker incarnation %s has ended (Register a new incarnation.)', pg_temp.w(1)), 'it cannot renew');
SELECT is(pg_temp.refusal(format('SELECT reports.claim_ready(%L, ''{default}'', 1)', pg_temp.w(1))), format('RS005 worker incarnation %s has ended (Register a new incarnation.)', pg_temp.w(1)), 'nor claim');
SELECT is((SELECT string_agg(occurrence_key || ' ' || attempt, ', ' ORDER BY occurrence_key) FROM reports.claim_ready(pg_temp.w(2), '{default}', 10)), 'failed-once 4, fresh 2, late 2, queued 1', 'while another claims them');

-- Again, and of others.
SELECT is(pg_temp.released(1), 'ended 0 0', 'repeated, it changes nothing');
SELECT is((SELECT reports.release_claims(gen_random_uuid())::text), '(unknown,0,0)', 'a worker that nobody knows holds nothing');
SELECT reports.worker_leave(pg_temp.w(3), 'stopped');
SELECT is(pg_temp.released(3), 'ended 0 0', 'nor does one that stopped in order');
SELECT is((SELECT state FROM reports.worker WHERE id = pg_temp.w(3)), 'stopped', 'which stays so');
-- Marked by the leader for its silence, while its claims still run.
UPDATE reports.worker SET state = 'dead', stopped_at = now() WHERE id = pg_temp.w(2);
SELECT is(pg_temp.released(2), 'ended 5 0', 'one that was found silent first is released all the same');

-- Several of one schedule ran when it began to forbid overlap: they are not run beside one another again.
SELECT pg_temp.add_job(k, 'running', pg_temp.w(5), p_attempt => 1, p_schedule => 'turns', p_overlap => 'queue') FROM unnest('{turn-1,turn-2,turn-3}'::text[]) k;
SELECT pg_temp.add_job('lone', 'running', pg_temp.w(5), p_attempt => 1, p_schedule => 'lone', p_overlap => 'queue'),
       pg_temp.add_job('next', 'waiting', p_schedule => 'lone', p_overlap => 'queue', p_waits_for => 'overlap');
SELECT is(pg_temp.released(5), 'released 4 0', '(they are returned)');
SELECT is((SELECT string_agg(occurrence_key || ' ' || state, ', ' ORDER BY occurrence_key) FROM reports.job WHERE schedule IN ('turns', 'lone')),
          'lone queued, next waiting, turn-1 retry_wait, turn-2 retry_wait, turn-3 retry_wait', 'those that another of their schedule is active beside are the leader''s to release, one by one');
SELECT ok(bool_and(run_after <= clock_timestamp()), 'at once') FROM reports.job WHERE schedule = 'turns';

-- Deliveries.
INSERT INTO reports.delivery (job_id, revision, channel, recipient, scope, attempt, idempotency_key, on_unknown, state, tries, max_tries, token, worker, lease_until)
SELECT gen_random_uuid(), 1, 'mail', x.recipient, 'tap', 1, x.recipient, x.on_unknown, x.state, 1, x.max_tries, gen_random_uuid(), pg_temp.w(x.n), clock_timestamp() + interval '1 min'
  FROM (VALUES ('not-begun', 'hold', 'claimed', 5, 4), ('tries-used', 'hold', 'claimed', 1, 4), ('held', 'hold', 'sending', 5, 4), ('resent', 'resend', 'sending', 5, 4), ('theirs', 'hold', 'sending', 5, 3)) AS x (recipient, on_unknown, state, max_tries, n);
SELECT is(pg_temp.released(4), 'released 0 0', '(a worker that only delivers)');
SELECT is((SELECT string_agg(recipient || ' ' || state, ', ' ORDER BY recipient) FROM reports.delivery), 'held unknown, not-begun pending, resent pending, theirs sending, tries-used failed',
          'deliveries: not begun is pending again, being sent is unknown, or sent again by its policy');

SELECT * FROM finish();
ROLLBACK;
