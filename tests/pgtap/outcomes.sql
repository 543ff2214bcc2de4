-- What attempts came to: each outcome is guarded by its token, an artifact is visible only through a
-- successful one, and a repetition is recognised (I6, I7).
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE TEMP TABLE w AS SELECT pg_temp.add_worker() AS id;
CREATE TEMP TABLE claim (key text PRIMARY KEY, id uuid, token uuid);
-- A running job in its attempt p_attempt of 3, of which p_handed_back were handed back.
CREATE FUNCTION pg_temp.run(p_key text, p_attempt integer DEFAULT 1, p_handed_back integer DEFAULT 0) RETURNS void LANGUAGE sql AS $$
    INSERT INTO claim SELECT p_key, pg_temp.add_job(p_key, 'running', (SELECT id FROM w), p_attempt => p_attempt);
    UPDATE reports.job SET handed_back = p_handed_back WHERE occurrence_key = p_key;
    UPDATE claim SET token = j.attempt_token FROM reports.job j WHERE claim.id = j.id AND claim.key = p_key;
$$;
-- One outcome; a succeeded one brings a file unless told otherwise.
CREATE FUNCTION pg_temp.outcome(p_key text, p_outcome text, p_retryable boolean DEFAULT true, p_token uuid DEFAULT NULL, p_file boolean DEFAULT true, p_error text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s%s', r.verdict, ' ' || r.state)
      FROM claim c, reports.record_outcomes(ARRAY[c.id], ARRAY[coalesce(p_token, c.token)], ARRAY[p_outcome], ARRAY[p_retryable], ARRAY[p_error], '{3}',
                                            ARRAY[CASE WHEN p_file THEN 'main' END], ARRAY['x/' || p_key], '{text/csv}', '{17}', '{2}', ARRAY[sha256(p_key::bytea)]) r
     WHERE c.key = p_key
$$;
CREATE FUNCTION pg_temp.files(p_key text) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM reports.artifact JOIN claim ON id = job_id WHERE key = p_key $$;
CREATE FUNCTION pg_temp.attempts(p_key text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(a.attempt || ':' || a.outcome, ' ' ORDER BY a.attempt) FROM reports.job_attempt a JOIN claim ON id = job_id WHERE key = p_key
$$;

-- Success.
SELECT pg_temp.run('a');
SELECT is(pg_temp.outcome('a', 'succeeded'), 'done succeeded', 'a success is done');
SELECT ok(j.state = 'succeeded' AND finished_at >= now() AND attempt_token IS NULL AND worker IS NULL AND lease_until IS NULL AND error IS NULL, 'the job is final and free')
  FROM reports.job j WHERE occurrence_key = 'a';
SELECT results_eq($$SELECT a.attempt, a.token = c.token, a.worker = w.id, a.outcome, a.started_at = j.claimed_at, a.exit_code FROM reports.job_attempt a JOIN claim c ON c.id = a.job_id JOIN reports.job j ON j.id = c.id, w$$,
                  $$VALUES (1, true, true, 'succeeded', true, 3)$$, 'its attempt is written down');
SELECT results_eq($$SELECT attempt, store::text, path, media_type, size_bytes, row_count, sha256 FROM reports.artifact JOIN claim ON id = job_id WHERE key = 'a'$$,
                  $$VALUES (1, 'main', 'x/a', 'text/csv', 17::bigint, 2::bigint, sha256('a'))$$, 'and its file is visible');
SELECT is(pg_temp.outcome('a', 'succeeded'), 'already', 'the same outcome again is already recorded');
SELECT is(pg_temp.outcome('a', 'failed'), 'already', 'so is another outcome under the same token');
SELECT is(pg_temp.attempts('a') || ' ' || pg_temp.files('a'), '1:succeeded 1', 'and changes nothing');
SELECT is(pg_temp.outcome('a', 'succeeded', p_token => gen_random_uuid()), 'lost', 'a token that never was is lost');
SELECT pg_temp.run('n');
SELECT is(pg_temp.outcome('n', 'succeeded', p_file => false), 'done succeeded', 'a success without a file is one too');
SELECT is(pg_temp.files('n'), 0::bigint, 'and has none');

-- Failure.
SELECT pg_temp.run('f1');
SELECT is(pg_temp.outcome('f1', 'failed', p_error => 'no such table'), 'done retry_wait', 'a failure that may be repeated waits for its retry');
SELECT ok(run_after - clock_timestamp() BETWEEN '7 s' AND '13 s' AND error = 'no such table' AND finished_at IS NULL, 'after the backoff, with the reason') FROM reports.job WHERE occurrence_key = 'f1';
SELECT is(pg_temp.files('f1'), 0::bigint, 'the file of a failure is not visible');
SELECT is(pg_temp.outcome('f1', 'failed'), 'already', 'reporting it again answers already');
SELECT pg_temp.run('f2', 2);
SELECT is(pg_temp.outcome('f2', 'timeout', p_error => 'took too long'), 'done retry_wait', 'so does a timeout');
SELECT ok(run_after - clock_timestamp() BETWEEN '14 s' AND '26 s', 'twice as long after the second attempt') FROM reports.job WHERE occurrence_key = 'f2';
SELECT pg_temp.run('f3', 3);
SELECT is(pg_temp.outcome('f3', 'failed', p_error => repeat('x', 5000)), 'done failed', 'the last attempt''s failure is final');
SELECT ok(finished_at IS NOT NULL AND length(error) = 2000, 'with its reason, bounded') FROM reports.job WHERE occurrence_key = 'f3';
SELECT pg_temp.run('f4');
SELECT is(pg_temp.outcome('f4', 'failed', false), 'done failed', 'a failure that need not be repeated is final at once');
SELECT pg_temp.run('f5');
SELECT is(pg_temp.outcome('f5', 'failed', NULL), 'done failed', 'one of which nobody says that it may be repeated is not');
SELECT pg_temp.run('f6', 4, 1);
SELECT is(pg_temp.outcome('f6', 'failed'), 'done failed', 'a fourth attempt of which one was handed back is the third and last');
SELECT pg_temp.run('f7', 3, 1);
SELECT is(pg_temp.outcome('f7', 'failed'), 'done retry_wait', 'a third of which one was handed back is the second');

-- Handed back.
SELECT pg_temp.run('h', 3);
SELECT is(pg_temp.outcome('h', 'handed_back'), 'done retry_wait', 'a last attempt that is handed back is not used up');
SELECT ok(handed_back = 1 AND run_after <= clock_timestamp(), 'and may go on at once') FROM reports.job WHERE occurrence_key = 'h';
SELECT is(pg_temp.attempts('h'), '3:handed_back', 'as the attempt says');
SELECT is((SELECT released FROM reports.tend('tap', 1, 100, pg_temp.leader(), 10)), 1, 'the leader''s next round releases it');
SELECT is((SELECT attempt FROM reports.claim_ids((SELECT id FROM w), '{default}', ARRAY(SELECT id FROM claim WHERE key = 'h'))), 4, 'and it is claimed as the fourth attempt');
UPDATE claim SET token = j.attempt_token FROM reports.job j WHERE j.id = claim.id AND key = 'h';
SELECT is(pg_temp.outcome('h', 'failed'), 'done failed', 'which is the last');

-- Cancelled.
SELECT pg_temp.run('c1');
SELECT is(pg_temp.outcome('c1', 'cancelled'), 'done cancelled', 'a cancelled attempt cancels the job');
SELECT pg_temp.run('c2'), pg_temp.run('c3'), pg_temp.run('c4');
UPDATE reports.job SET cancel_requested = true WHERE occurrence_key IN ('c2', 'c3', 'c4');
SELECT is(pg_temp.outcome('c2', 'succeeded'), 'done cancelled', 'with cancellation asked for a success closes the job as cancelled');
SELECT is(pg_temp.files('c2') || ' ' || pg_temp.attempts('c2'), '0 1:cancelled', 'its file stays invisible and the attempt says so');
SELECT is(pg_temp.outcome('c2', 'succeeded'), 'already', 'the success told again is already recorded, though as something else');
SELECT is(pg_temp.outcome('c3', 'failed'), 'done cancelled', 'so does a failure');
SELECT is(pg_temp.outcome('c4', 'handed_back'), 'done cancelled', 'and one that is handed back');
SELECT ok(bool_and(finished_at IS NOT NULL AND handed_back = 0), 'all are final') FROM reports.job WHERE occurrence_key IN ('c2', 'c3', 'c4');

-- Lost: the claim moved on.
SELECT pg_temp.run('l');
UPDATE reports.fence_pulse SET beat_at = clock_timestamp(), reap_not_before = '-infinity' WHERE scope = 'tap';
UPDATE reports.job SET lease_until = clock_timestamp() - interval '10 s' WHERE occurrence_key = 'l';
SELECT is((SELECT reaped FROM reports.tend('tap', 1, 100, pg_temp.leader(), 10)), 1, 'a claim that lapsed is closed by the leader');
SELECT is(pg_temp.outcome('l', 'succeeded'), 'lost', 'its late success is lost');
SELECT is(pg_temp.files('l') || ' ' || pg_temp.attempts('l'), '0 1:lost', 'and changes nothing');
UPDATE reports.job SET state = 'queued', run_after = clock_timestamp() WHERE occurrence_key = 'l';
CREATE TEMP TABLE second AS SELECT job_id, token FROM reports.claim_ids((SELECT id FROM w), '{default}', ARRAY(SELECT id FROM claim WHERE key = 'l'));
SELECT is(pg_temp.outcome('l', 'failed'), 'lost', 'nor can it touch the attempt after it');
SELECT is((SELECT attempt_token FROM reports.job WHERE occurrence_key = 'l'), (SELECT token FROM second), 'which holds its claim');
-- The late outcome of the first attempt and that of the second in one batch, as a worker that was
-- paused between them would send it.
SELECT results_eq($$SELECT r.verdict, r.state
                      FROM claim c, second s, reports.record_outcomes(ARRAY[c.id, c.id], ARRAY[c.token, s.token], '{failed,succeeded}', '{true,true}', '{late,NULL}', '{1,0}',
                           '{main,main}', '{x/first,x/second}', '{text/csv,text/csv}', '{1,2}', '{1,2}', ARRAY[sha256('1'), sha256('2')]) r WHERE c.key = 'l'$$,
                  $$VALUES ('lost', NULL), ('done', 'succeeded')$$, 'of two outcomes of one job the batch takes that of the live claim');
SELECT is((SELECT string_agg(path, ' ') FROM reports.artifact JOIN claim ON id = job_id WHERE key = 'l'), 'x/second', 'with its file and no other');
SELECT is(pg_temp.attempts('l'), '1:lost 2:succeeded', 'and one attempt');

-- Batches.
SELECT pg_temp.run('b1'), pg_temp.run('b2'), pg_temp.run('b3');
SELECT results_eq($$SELECT c.key, r.verdict, r.state
                      FROM (SELECT array_agg(id ORDER BY n) AS ids, array_agg(token ORDER BY n) AS tokens FROM unnest('{b2,b1,a,b2,b3}'::text[]) WITH ORDINALITY k (key, n) JOIN claim USING (key)) g,
                           reports.record_outcomes(g.ids, g.tokens, '{succeeded,failed,succeeded,succeeded,handed_back}', '{t,t,t,t,t}', '{NULL,e,NULL,NULL,NULL}', '{NULL,NULL,NULL,NULL,NULL}',
                           '{NULL,NULL,NULL,NULL,NULL}', '{NULL,NULL,NULL,NULL,NULL}', '{NULL,NULL,NULL,NULL,NULL}', '{NULL,NULL,NULL,NULL,NULL}', '{NULL,NULL,NULL,NULL,NULL}', '{NULL,NULL,NULL,NULL,NULL}') WITH ORDINALITY r (job_id, verdict, state, n)
                      JOIN claim c ON c.id = r.job_id ORDER BY r.n$$,
                  $$VALUES ('b2', 'done', 'succeeded'), ('b1', 'done', 'retry_wait'), ('a', 'already', NULL), ('b2', 'done', 'succeeded'), ('b3', 'done', 'retry_wait')$$,
                  'a batch answers each pair in its place, a pair sent twice too');
SELECT is(pg_temp.attempts('b2'), '1:succeeded', 'which is one attempt');
SELECT is((SELECT count(*) FROM reports.record_outcomes('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')), 0::bigint, 'an empty batch is harmless');

-- What a worker may not say.
SELECT pg_temp.run('x');
SELECT is(pg_temp.refusal(format($$SELECT pg_temp.outcome('x', %L)$$, o)), '22023 an outcome is succeeded, failed, timeout, cancelled or handed_back', format('outcome %s is refused', coalesce(o, 'NULL')))
  FROM unnest('{lost,running,NULL}'::text[]) o;
SELECT is((SELECT state::text FROM reports.job WHERE occurrence_key = 'x'), 'running', 'and changes nothing');
SELECT matches(pg_temp.refusal($$SELECT reports.record_outcomes(ARRAY[id], ARRAY[token], '{succeeded}', '{t}', '{NULL}', '{0}', '{main}', '{x}', '{text/csv}', '{1}', '{1}', '{abc}') FROM claim WHERE key = 'x'$$),
               '^23514 .*"artifact_sha256_check"', 'a file without a proper hash is refused');
SELECT is((SELECT state::text FROM reports.job WHERE occurrence_key = 'x'), 'running', 'and its job runs on');

SELECT * FROM finish();
ROLLBACK;
