-- Jobs of schedules whose progress rows a session holds are counted later, and hide none behind them (I12).
\ir sessions.psql
SELECT no_plan();

\ir held.psql
SELECT is(pg_temp.run('leader', $$SELECT verdict FROM reports.establish('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 'm')$$), 'established', '(there is a leader)');
INSERT INTO reports.schedule (name, scope, report, kind, rule, breaker_failures) SELECT 'conc-' || n, 'conc', 'conc', 'cron', '0 6 2 * *', 1 FROM generate_series(1, 3) n;
DELETE FROM reports.schedule_change WHERE scope = 'conc';
INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, key_form, next_fire_at)
SELECT 'conc-' || n, 'conc', 1, '2020-01-01Z', 'date', '2199-01-02Z' FROM generate_series(1, 3) n;
INSERT INTO reports.circuit_outcome (scope, schedule, job_id, state) SELECT 'conc', 'conc-' || n, gen_random_uuid(), 'failed' FROM unnest('{1,2,1,2,3}'::integer[]) n;
CREATE FUNCTION pg_temp.counted() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(p.schedule || ' ' || p.circuit_failures, ', ' ORDER BY p.schedule) FROM reports.schedule_progress p WHERE p.scope = 'conc' AND p.circuit_failures > 0
$$;

SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$SELECT count(*) FROM (SELECT FROM reports.schedule_progress WHERE schedule IN ('conc-1', 'conc-2') FOR UPDATE) x$$), '2', '(and holds the rows of the first)');
SELECT reports.settle_circuits('conc', 1);
SELECT is(pg_temp.counted(), 'conc-3 1', 'the job behind theirs is counted');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(the rows are free)');
SELECT reports.settle_circuits('conc', 1);
SELECT reports.settle_circuits('conc', 1);
SELECT is(pg_temp.counted(), 'conc-1 2, conc-2 2, conc-3 1', 'then theirs are');

SELECT * FROM finish();
SELECT dblink_disconnect(name) FROM pid WHERE name = ANY (dblink_get_connections());
CALL pg_temp.sweep();
