-- Claims, outcomes, heartbeats and reaping with several sessions: no job is had twice, nobody waits
-- for a row that somebody else has, and no order of calls is a deadlock.
\ir sessions.psql
SELECT no_plan();

INSERT INTO reports.ensemble (id, incarnation, adopted_by) VALUES ('conc', 1, 'conc');
INSERT INTO reports.queue (name) VALUES ('conc');
CREATE TEMP TABLE pid AS
SELECT name, pg_temp.open(name, CASE name WHEN 'leader' THEN 'report_scheduler' WHEN 'root' THEN current_user ELSE 'report_worker' END) AS pid FROM unnest('{a,b,c,d,leader,root}'::text[]) name;
CREATE FUNCTION pg_temp.pid(p_name text) RETURNS integer LANGUAGE sql AS $$ SELECT pid FROM pid WHERE name = p_name $$;
SELECT is(pg_temp.run('leader', $$SELECT verdict FROM reports.establish('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 'm')$$), 'established', '(there is a leader)');
CREATE FUNCTION pg_temp.tend() RETURNS text LANGUAGE sql AS $$ SELECT 'SELECT released || '' '' || reaped FROM reports.tend(''conc'', 1, 1, ''00000000-0000-4000-8000-000000000001'', 100)'::text $$;

-- Workers a, b, c, d have ids of their letter; jobs have ids of their number.
CREATE FUNCTION pg_temp.w(p_name text) RETURNS uuid LANGUAGE sql AS $$ SELECT format('0000000%s-0000-4000-8000-000000000000', p_name)::uuid $$;
CREATE FUNCTION pg_temp.j(p_n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT format('c0000000-0000-4000-8000-%s', lpad(p_n::text, 12, '0'))::uuid $$;
SELECT isnt(pg_temp.run(name, format($$SELECT installation FROM reports.worker_register(%L, 'conc', 1, '1', '{conc}', 4)$$, pg_temp.w(name))), NULL, format('(%s registers)', name)) FROM pid WHERE length(name) = 1;
CREATE PROCEDURE pg_temp.make(p_from integer, p_to integer) LANGUAGE sql AS $$
    INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation, generation)
    SELECT 'conc', n::text, 'conc', pg_temp.j(n), clock_timestamp(), 'schedule', 1, 1, 1 FROM generate_series(p_from, p_to) n;
    INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority, state, run_after, max_attempts, retry_base, retry_cap, timeout)
    SELECT pg_temp.j(n), 'conc', n::text, 'conc', 'conc', 'conc', 0, 'queued', clock_timestamp(), 3, '10 s', '10 min', '1 h' FROM generate_series(p_from, p_to) n;
$$;
CALL pg_temp.make(1, 40);
CREATE FUNCTION pg_temp.claim(p_worker text, p_from integer, p_to integer) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT string_agg(occurrence_key, '' '' ORDER BY occurrence_key::integer) FROM reports.claim_ids(%L, ''{conc}'', %L)', pg_temp.w(p_worker), ARRAY(SELECT pg_temp.j(n) FROM generate_series(p_from, p_to) n))
$$;
CREATE FUNCTION pg_temp.ready(p_worker text, p_limit integer) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT string_agg(occurrence_key, '' '' ORDER BY occurrence_key::integer) FROM reports.claim_ready(%L, ''{conc}'', %s)', pg_temp.w(p_worker), p_limit)
$$;
CREATE FUNCTION pg_temp.outcome(p_outcome text, p_n integer, p_token uuid) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT verdict FROM reports.record_outcomes(ARRAY[%L::uuid], ARRAY[%L::uuid], ARRAY[%L], ''{t}'', ''{NULL}'', ''{0}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'')', pg_temp.j(p_n), p_token, p_outcome)
$$;
CREATE FUNCTION pg_temp.token(p_n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT attempt_token FROM reports.job WHERE id = pg_temp.j(p_n) $$;

SELECT is(pg_temp.run('leader', 'LISTEN report_work'), 'done', '(the leader listens)');

-- Overlapping claims: the second takes what is left and does not wait.
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', pg_temp.claim('a', 1, 5)), '1 2 3 4 5', 'a claims five jobs and does not commit yet');
SELECT is(pg_temp.run('b', pg_temp.claim('b', 3, 8)), '6 7 8', 'b, who lists three of them too, gets the other three at once');
SELECT is(pg_temp.run('b', pg_temp.ready('b', 4)), '9 10 11 12', 'and so does the pull path');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is((SELECT string_agg(DISTINCT state || ' ' || attempt, ',') FROM reports.job WHERE scope = 'conc' AND occurrence_key::text::integer <= 12), 'running 1', 'each has one attempt');

-- Whoever marks a worker as ended waits for its claim, and the next claim sees the mark.
SELECT is(pg_temp.run('c', 'BEGIN'), 'done', '(c begins)');
SELECT is(pg_temp.run('c', pg_temp.ready('c', 1)), '13', 'c claims and does not commit yet');
DO $$ BEGIN PERFORM pg_temp.send('root', format('UPDATE reports.worker SET state = ''dead'', stopped_at = clock_timestamp() WHERE id = %L', pg_temp.w('c'))); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('root')), 'who marks c dead waits');
SELECT is(pg_temp.run('c', 'COMMIT'), 'done', '(c commits)');
SELECT is(pg_temp.receive('root'), 'UPDATE 1', '(c is marked)');
SELECT is(pg_temp.run('c', pg_temp.ready('c', 1)), 'RS005', 'after that c claims nothing');

-- The same outcome twice at once: the answer of the first was lost, and the worker sends it again
-- while the first is still committing. `lost` would make it delete a file that is visible.
CREATE TEMP TABLE t AS SELECT n, pg_temp.token(n) AS token FROM generate_series(1, 13) n;
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', pg_temp.outcome('succeeded', 1, (SELECT token FROM t WHERE n = 1))), 'done', 'an outcome is recorded, and not committed yet');
DO $$ BEGIN PERFORM pg_temp.send('b', pg_temp.outcome('succeeded', 1, (SELECT token FROM t WHERE n = 1))); END $$;
SELECT is(pg_temp.receive('b'), 'locked', 'its repetition does not wait, and is told to come again');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.run('b', pg_temp.outcome('succeeded', 1, (SELECT token FROM t WHERE n = 1))), 'already', 'and is answered already then, not lost');

-- The leader is woken when something waits for it, and only then: NOTIFY serialises commits.
SELECT is(pg_temp.told('leader', false), NULL, 'claims and successes tell the leader nothing');
SELECT is(pg_temp.run('b', pg_temp.outcome('failed', 6, (SELECT token FROM t WHERE n = 6))), 'done', '(a job fails)');
SELECT is(pg_temp.told('leader'), 'report_work conc', 'a failure that waits for its retry does');
SELECT is(pg_temp.run('b', pg_temp.outcome('handed_back', 7, (SELECT token FROM t WHERE n = 7))), 'done', '(a job is handed back)');
SELECT is(pg_temp.told('leader'), 'report_work conc', 'so does a job that is handed back');
SELECT is(pg_temp.run('b', pg_temp.outcome('cancelled', 8, (SELECT token FROM t WHERE n = 8))), 'done', '(a job is cancelled)');
SELECT is(pg_temp.told('leader', false), NULL, 'what is final tells nothing');
SELECT is(pg_temp.run('leader', pg_temp.tend()), '1 0', '(what was handed back is queued again)');

-- Reaping passes over a job whose outcome is on its way, and a worker that is just beating.
UPDATE reports.job SET lease_until = clock_timestamp() - interval '1 h' WHERE id IN (pg_temp.j(2), pg_temp.j(3));
UPDATE reports.fence_pulse SET beat_at = clock_timestamp(), reap_not_before = '-infinity' WHERE scope = 'conc';
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', pg_temp.outcome('succeeded', 2, (SELECT token FROM t WHERE n = 2))), 'done', 'a late outcome is recorded, and not committed yet');
SELECT is(pg_temp.run('leader', pg_temp.tend()), '0 1', 'the leader reaps the other lapsed claim, and does not wait for this one');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.run('leader', pg_temp.tend()), '0 0', 'nor reaps it later');
SELECT is((SELECT state::text FROM reports.job WHERE id = pg_temp.j(2)), 'succeeded', 'since it succeeded');
SELECT is(pg_temp.run('a', pg_temp.outcome('succeeded', 3, (SELECT token FROM t WHERE n = 3))), 'lost', 'and the outcome of the reaped one is lost');

-- The other way round: the reaper has the job, and the outcome comes again when it is decided.
UPDATE reports.job SET lease_until = clock_timestamp() - interval '1 h' WHERE id = pg_temp.j(4);
SELECT is(pg_temp.run('leader', 'BEGIN'), 'done', '(the leader begins)');
SELECT is(pg_temp.run('leader', pg_temp.tend()), '0 1', 'the leader reaps, and does not commit yet');
SELECT is(pg_temp.run('a', pg_temp.outcome('succeeded', 4, (SELECT token FROM t WHERE n = 4))), 'locked', 'the late outcome finds it locked');
SELECT is(pg_temp.run('leader', 'COMMIT'), 'done', '(the leader commits)');
SELECT is(pg_temp.run('a', pg_temp.outcome('succeeded', 4, (SELECT token FROM t WHERE n = 4))), 'lost', 'and is lost');
SELECT is((SELECT string_agg(outcome, ' ') FROM reports.job_attempt WHERE job_id = pg_temp.j(4)), 'lost', 'the attempt is lost, once');

-- A silent worker comes back in the moment it is declared dead: it has its own row and wants its job,
-- the leader has the job and wants the row. The leader passes over the row.
UPDATE reports.job SET lease_until = clock_timestamp() - interval '1 h' WHERE id = pg_temp.j(5);
UPDATE reports.worker SET heartbeat_at = clock_timestamp() - interval '1 h' WHERE id = pg_temp.w('a');
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', format('SELECT count(*) FROM reports.heartbeat(%L, ''{}'', ''{}'')', pg_temp.w('a'))), '0', 'a is back, and has its worker row');
SELECT is(pg_temp.run('leader', 'SET lock_timeout = ''300ms'''), 'done', '(the leader is impatient)');
SELECT is(pg_temp.run('leader', pg_temp.tend()), '0 1', 'the leader reaps its job and does not wait for the row');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is((SELECT state FROM reports.worker WHERE id = pg_temp.w('a')), 'alive', 'and a is alive, since it beat');

-- Open transactions of users stop no claim (I12).
SELECT is(pg_temp.run('root', 'BEGIN'), 'done', '(a user begins)');
SELECT is(pg_temp.run('root', $$UPDATE reports.report SET description = 'x' WHERE name = 'conc'$$), 'done', '(edits the report)');
SELECT is(pg_temp.run('root', $$UPDATE reports.queue SET description = 'x' WHERE name = 'conc'$$), 'done', '(and the queue, and goes for lunch)');
SELECT is(pg_temp.run('a', 'SET lock_timeout = ''300ms'''), 'done', '(a is impatient)');
SELECT is(pg_temp.run('a', pg_temp.ready('a', 1)), '7', 'a claims all the same');
SELECT is(pg_temp.run('a', pg_temp.outcome('succeeded', 7, pg_temp.token(7))), 'done', 'and reports');
SELECT is(pg_temp.run('root', 'ROLLBACK'), 'done', '(the user is back)');

-- Nor does one running job whose row somebody holds keep the worker's others from being renewed and recorded,
-- nor an open transaction on the worker's own row.
CALL pg_temp.make(51, 54);
SELECT is(pg_temp.run('a', pg_temp.claim('a', 51, 54)), '51 52 53 54', '(a runs four jobs)');
TRUNCATE t;
INSERT INTO t SELECT n, pg_temp.token(n) FROM generate_series(51, 54) n;
UPDATE reports.job SET cancel_requested = true WHERE id = pg_temp.j(51);
UPDATE reports.job SET lease_until = clock_timestamp() - interval '1 s' WHERE id IN (SELECT pg_temp.j(n) FROM t);
CREATE FUNCTION pg_temp.beat(p_worker text, p_tokens uuid[] DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT string_agg(right(job_id::text, 2) || CASE WHEN renewed THEN '' renewed'' ELSE '' ours'' END || CASE WHEN cancel_requested THEN '' to cancel'' ELSE '''' END, '', '' ORDER BY job_id) FROM reports.heartbeat(%L, %L, %L)',
                  pg_temp.w(p_worker), ARRAY(SELECT pg_temp.j(n) FROM t ORDER BY n), coalesce(p_tokens, ARRAY(SELECT token FROM t ORDER BY n)))
$$;
CREATE FUNCTION pg_temp.outcomes() RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT string_agg(verdict, '' '' ORDER BY job_id) FROM reports.record_outcomes(%L, %L, ''{failed,failed,failed,failed}'', ''{t,t,t,t}'', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)',
                  ARRAY(SELECT pg_temp.j(n) FROM t ORDER BY n), ARRAY(SELECT token FROM t ORDER BY n))
$$;
SELECT is(pg_temp.run('root', 'BEGIN'), 'done', '(a user begins)');
SELECT is(pg_temp.run('root', format('SELECT id FROM reports.job WHERE id = %L FOR UPDATE', pg_temp.j(51))), pg_temp.j(51)::text, '(looks closely at a running job)');
SELECT is(pg_temp.run('root', format('SELECT name FROM reports.worker WHERE id = %L FOR UPDATE', pg_temp.w('a'))), 'conc', '(and at its worker, and goes for lunch)');
SELECT is(pg_temp.run('a', pg_temp.beat('a')), '51 ours to cancel, 52 renewed, 53 renewed, 54 renewed', 'the heartbeat renews the others, and says of the one that it is still ours');
SELECT is((SELECT string_agg(occurrence_key, ' ' ORDER BY occurrence_key) FROM reports.job WHERE id IN (SELECT pg_temp.j(n) FROM t) AND lease_until > clock_timestamp()), '52 53 54', 'which is so');
SELECT is(pg_temp.run('a', pg_temp.beat('a', array_fill(gen_random_uuid(), '{4}'))), NULL, 'a token that is not in the row is lost, locked or not');
SELECT is(pg_temp.run('a', pg_temp.outcomes()), 'locked done done done', 'and the outcomes of the others are recorded');
SELECT is(pg_temp.run('a', pg_temp.outcomes()), 'locked already already already', 'once');
SELECT is(pg_temp.run('root', 'ROLLBACK'), 'done', '(the user is back)');
SELECT is(pg_temp.run('a', pg_temp.outcomes()), 'done already already already', 'then the last one is, although its lease has passed');
-- Whoever held its row kept the worker from beating: that is not silence while its claims are renewed.
CALL pg_temp.make(55, 55);
SELECT is(pg_temp.run('a', pg_temp.claim('a', 55, 55)), '55', '(a runs a job)');
UPDATE reports.worker SET heartbeat_at = clock_timestamp() - interval '1 h' WHERE id = pg_temp.w('a');
SELECT is(pg_temp.run('leader', pg_temp.tend()), '0 0', '(the leader tends)');
SELECT is((SELECT state FROM reports.worker WHERE id = pg_temp.w('a')), 'alive', 'a worker whose claims are renewed is not declared dead');
UPDATE reports.job SET lease_until = clock_timestamp() - interval '1 h' WHERE id = pg_temp.j(55);
SELECT is(pg_temp.run('leader', pg_temp.tend()), '0 1', '(the leader reaps its last)');
SELECT is((SELECT state FROM reports.worker WHERE id = pg_temp.w('a')), 'dead', 'and a silent one without claims is');
UPDATE reports.worker SET heartbeat_at = clock_timestamp(), state = 'alive', stopped_at = NULL WHERE id = pg_temp.w('a');

-- Nor does one outbox row keep the others from being acknowledged, buried or trimmed.
DELETE FROM reports.outbox WHERE scope = 'conc';
INSERT INTO reports.outbox (scope, id, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation) OVERRIDING SYSTEM VALUE
SELECT 'conc', n, pg_temp.j(n), 1, 'conc', n::text, 'conc', clock_timestamp(), 1 FROM generate_series(1, 12) n;
SELECT is(pg_temp.run('root', 'BEGIN'), 'done', '(a user begins)');
SELECT is(pg_temp.run('root', 'SELECT id FROM reports.outbox WHERE scope = ''conc'' AND id = 2 FOR UPDATE'), '2', '(and looks closely at a message)');
CREATE FUNCTION pg_temp.relay(p_call text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.run('leader', format('SELECT x::text FROM reports.%s x', format(p_call, '''conc'', 1, 1, ''00000000-0000-4000-8000-000000000001'''))) $$;
SELECT is(pg_temp.relay('outbox_ack(%s, ''{1,2,3}'')'), '(ok,2,{2})', 'the others are acknowledged, and the one is told');
SELECT is(pg_temp.relay('outbox_bury(%s, ''{2,4}'', ''{x,y}'')'), '(ok,1)', 'the other is buried');
SELECT is(pg_temp.relay('outbox_trim(%s, 3)'), '(ok,5)', 'the others are trimmed');
SELECT is((SELECT string_agg(id::text, ' ' ORDER BY id) FROM reports.outbox WHERE scope = 'conc'), '2 10 11 12', 'and the one is still there');
SELECT is(pg_temp.run('root', 'ROLLBACK'), 'done', '(the user is back)');
SELECT is(pg_temp.relay('outbox_ack(%s, ''{2}'')'), '(ok,1,{})', 'then it goes too');

-- A storm: three workers claim 3 000 jobs in overlapping batches and random order, by both ways, and
-- renew and close what they have in batches that overlap too, while the leader tends.
CALL pg_temp.make(1001, 4000);
CREATE FUNCTION pg_temp.storm(p_worker text) RETURNS text LANGUAGE sql AS $$
    SELECT format($q$DO $do$
    DECLARE
        me uuid := %L;
        ids uuid[];
        tokens uuid[];
    BEGIN
        FOR round IN 1 .. 100000 LOOP
            EXIT WHEN NOT EXISTS (SELECT FROM reports.job WHERE scope = 'conc' AND state IN ('queued', 'running') AND occurrence_key::text::integer > 1000);
            SELECT array_agg(x.id) INTO ids FROM (SELECT id FROM reports.job WHERE scope = 'conc' AND state = 'queued' AND occurrence_key::text::integer > 1000 ORDER BY random() LIMIT 60) x;
            COMMIT;
            IF round %% 3 = 0 THEN PERFORM reports.claim_ready(me, '{conc}', 40); ELSE PERFORM reports.claim_ids(me, '{conc}', ids); END IF;
            COMMIT;
            -- Everybody's running jobs, so that the batches of the three touch the same rows.
            SELECT array_agg(id), array_agg(attempt_token) INTO ids, tokens FROM (SELECT * FROM reports.job WHERE scope = 'conc' AND state = 'running' AND occurrence_key::text::integer > 1000 ORDER BY random() LIMIT 60) x;
            CONTINUE WHEN ids IS NULL;
            COMMIT;
            PERFORM reports.heartbeat(me, ids, tokens);
            COMMIT;
            PERFORM reports.record_outcomes(ids, tokens, array_fill('succeeded'::text, ARRAY[cardinality(ids)]), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
            COMMIT;
        END LOOP;
    END $do$ $q$, pg_temp.w(p_worker))
$$;
CREATE FUNCTION pg_temp.tend_storm() RETURNS text LANGUAGE sql AS $$
    SELECT $q$DO $do$
    BEGIN
        FOR round IN 1 .. 100000 LOOP
            EXIT WHEN NOT EXISTS (SELECT FROM reports.job WHERE scope = 'conc' AND state IN ('queued', 'running') AND occurrence_key::text::integer > 1000);
            PERFORM reports.tend('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 100);
            COMMIT;
        END LOOP;
    END $do$ $q$::text
$$;
DO $$ BEGIN PERFORM pg_temp.send(name, pg_temp.storm(name)) FROM unnest('{a,b,d}'::text[]) name; PERFORM pg_temp.send('leader', pg_temp.tend_storm()); END $$;
SELECT is(pg_temp.receive(name), 'DO', format('%s comes through the storm without a deadlock', name)) FROM unnest('{a,b,d,leader}'::text[]) name;
SELECT is((SELECT string_agg(DISTINCT state || ' ' || attempt, ',') FROM reports.job WHERE scope = 'conc' AND occurrence_key::text::integer > 1000), 'succeeded 1', 'each job was had once');
SELECT is((SELECT count(*) || ' ' || count(DISTINCT job_id) FROM reports.job_attempt a JOIN reports.job j ON j.id = a.job_id WHERE j.scope = 'conc' AND occurrence_key::text::integer > 1000), '3000 3000', 'and has one attempt');

SELECT * FROM finish();
SELECT dblink_disconnect(name) FROM pid WHERE name = ANY (dblink_get_connections());
CALL pg_temp.sweep();
