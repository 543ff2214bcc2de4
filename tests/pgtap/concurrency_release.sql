-- The claims of a killed worker are released while what it had sent still runs in the server.
\ir sessions.psql
SELECT no_plan();

INSERT INTO reports.ensemble (id, incarnation, adopted_by) VALUES ('conc', 1, 'conc');
INSERT INTO reports.queue (name) VALUES ('conc');
CREATE TEMP TABLE pid AS
SELECT name, pg_temp.open(name, CASE name WHEN 'leader' THEN 'report_scheduler' WHEN 'root' THEN current_user ELSE 'report_worker' END) AS pid FROM unnest('{dead,other,tool,leader,root}'::text[]) name;
CREATE FUNCTION pg_temp.pid(p_name text) RETURNS integer LANGUAGE sql AS $$ SELECT pid FROM pid WHERE name = p_name $$;
CREATE FUNCTION pg_temp.w(p_name text) RETURNS uuid LANGUAGE sql AS $$ SELECT format('%s-0000-4000-8000-000000000000', CASE p_name WHEN 'dead' THEN '0000000d' ELSE '0000000e' END)::uuid $$;
CREATE FUNCTION pg_temp.j(p_n integer) RETURNS uuid LANGUAGE sql AS $$ SELECT format('c0000000-0000-4000-8000-%s', lpad(p_n::text, 12, '0'))::uuid $$;
SELECT isnt(pg_temp.run(name, format($$SELECT installation FROM reports.worker_register(%L, 'conc', 1, '1', '{conc}', 4)$$, pg_temp.w(name))), NULL, format('(%s registers)', name)) FROM unnest('{dead,other}'::text[]) name;
INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation, generation)
SELECT 'conc', n::text, 'conc', pg_temp.j(n), clock_timestamp(), 'schedule', 1, 1, 1 FROM generate_series(1, 3) n;
INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority, state, run_after, max_attempts, retry_base, retry_cap, timeout)
SELECT pg_temp.j(n), 'conc', n::text, 'conc', 'conc', 'conc', 0, 'queued', clock_timestamp(), 3, '10 s', '10 min', '1 h' FROM generate_series(1, 3) n;
CREATE FUNCTION pg_temp.ready(p_worker text, p_limit integer) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT string_agg(occurrence_key, '' '' ORDER BY occurrence_key::integer) FROM reports.claim_ready(%L, ''{conc}'', %s)', pg_temp.w(p_worker), p_limit)
$$;
CREATE FUNCTION pg_temp.release_it() RETURNS text LANGUAGE sql AS $$ SELECT format('SELECT verdict || '' '' || released || '' '' || remaining FROM reports.release_claims(%L)', pg_temp.w('dead')) $$;
SELECT is(pg_temp.run('other', 'LISTEN report_released'), 'done', '(the other worker listens)');
SELECT is(pg_temp.run('leader', 'LISTEN report_work'), 'done', '(and so does the leader)');

-- A claim that is under way is waited for and then seen; the next one sees the mark.
SELECT is(pg_temp.run('dead', 'BEGIN'), 'done', '(the worker begins)');
SELECT is(pg_temp.run('dead', pg_temp.ready('dead', 2)), '1 2', 'it claims two, and is killed before the server has committed');
DO $$ BEGIN PERFORM pg_temp.send('tool', pg_temp.release_it()); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('tool')), 'the release waits for the claim');
SELECT is(pg_temp.run('dead', 'COMMIT'), 'done', '(the claim commits)');
SELECT is(pg_temp.receive('tool'), 'released 2 0', 'and returns what it claimed');
SELECT is(pg_temp.run('dead', pg_temp.ready('dead', 1)), 'RS005', 'a claim that comes after it is refused');
SELECT is(pg_temp.told('other'), 'report_released ', 'other workers are told');
SELECT is(pg_temp.told('leader'), 'report_work conc', 'and the leader is');
SELECT is(pg_temp.run('other', pg_temp.ready('other', 4)), '1 2 3', 'so that another has them');

-- A row that somebody holds is left, and the others are returned.
UPDATE reports.worker SET state = 'alive', stopped_at = NULL WHERE id = pg_temp.w('dead');
UPDATE reports.job SET worker = pg_temp.w('dead') WHERE scope = 'conc';
SELECT is(pg_temp.run('root', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('root', format('SELECT id FROM reports.job WHERE id = %L FOR UPDATE', pg_temp.j(2))), pg_temp.j(2)::text, 'and holds a row');
SELECT is(pg_temp.run('tool', pg_temp.release_it()), 'released 2 1', 'it is not waited for');
SELECT is(pg_temp.run('root', 'COMMIT'), 'done', '(it is let go)');
SELECT is(pg_temp.run('tool', pg_temp.release_it()), 'ended 1 0', 'the next call returns it');

-- An outcome that has the row first counts.
UPDATE reports.worker SET state = 'alive', stopped_at = NULL WHERE id = pg_temp.w('dead');
UPDATE reports.job SET state = 'running', worker = pg_temp.w('dead'), attempt = 1, claimed_at = clock_timestamp(), lease_until = clock_timestamp() + interval '1 min', attempt_token = pg_temp.j(9) WHERE id = pg_temp.j(1);
DELETE FROM reports.job_attempt WHERE job_id = pg_temp.j(1);
SELECT is(pg_temp.run('dead', 'BEGIN'), 'done', '(an outcome begins)');
SELECT is(pg_temp.run('dead', format('SELECT verdict FROM reports.record_outcomes(ARRAY[%L::uuid], ARRAY[%L::uuid], ''{succeeded}'', ''{t}'', ''{NULL}'', ''{0}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'', ''{NULL}'')', pg_temp.j(1), pg_temp.j(9))), 'done', 'it is recorded, and not committed yet');
SELECT is(pg_temp.run('tool', pg_temp.release_it()), 'released 0 1', 'the release leaves it');
SELECT is(pg_temp.run('dead', 'COMMIT'), 'done', '(the outcome commits)');
SELECT is(pg_temp.run('tool', pg_temp.release_it()), 'ended 0 0', 'and finds nothing of it later');
SELECT is((SELECT state::text FROM reports.job WHERE id = pg_temp.j(1)), 'succeeded', 'the job is done once');

SELECT dblink_disconnect(name) FROM pid;
CALL pg_temp.sweep();
SELECT * FROM finish();
