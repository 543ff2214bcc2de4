-- Fiscal periods that come while a session holds the row of a schedule that waits for them, or beside the firing
-- that misses them: who inserts them waits for nobody, and the schedule goes on all the same (I12).
\ir sessions.psql
SELECT no_plan();

\ir held.psql
CREATE FUNCTION pg_temp.edited() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(c.schedule || ' ' || v.change_reason, ', ' ORDER BY c.schedule) FROM reports.schedule_change c JOIN reports.schedule_version v USING (schedule, version) WHERE c.scope = 'conc'
$$;
SELECT is(pg_temp.run('leader', $$SELECT verdict FROM reports.establish('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 'm')$$), 'established', '(there is a leader)');
SELECT is(pg_temp.run(name, $$SET lock_timeout = '2s'$$), 'done', format('(%s is patient)', name)) FROM pid;
INSERT INTO reports.fiscal_period VALUES ('conc', 'FY2020-P01', '2020-01-01', '2020-01-31'), ('conc', 'FY2020-P02', '2020-02-01', '2020-02-29');
INSERT INTO reports.schedule (name, scope, report, kind, rule, business_date) SELECT 'conc-' || n, 'conc', 'conc', 'cron', '0 6 2 * *', 'fiscal_period(conc)' FROM generate_series(1, 2) n;
DELETE FROM reports.schedule_change WHERE scope = 'conc';
INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, key_form, next_fire_at, problem)
VALUES ('conc-1', 'conc', 1, '2020-01-01Z', 'fiscal', NULL, 'no period'), ('conc-2', 'conc', 1, '2020-01-01Z', 'fiscal', '2020-05-02 06:00Z', NULL);

SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$SELECT count(*) FROM (SELECT FROM reports.schedule WHERE name = 'conc-1' FOR UPDATE) x$$), '1', '(and holds the row of a schedule)');
SELECT is(pg_temp.run('user2', $$INSERT INTO reports.fiscal_period VALUES ('conc', 'FY2020-P03', '2020-03-01', '2020-03-31')$$), 'done', 'periods are inserted although a schedule that waits for them is held');
SELECT is(pg_temp.tend(), 'ok, soon again', 'the leader waits for nobody either');
SELECT is(pg_temp.edited(), NULL, 'it is not looked at yet');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(the row is free)');
SELECT is(pg_temp.tend(), 'ok', 'then the leader has it looked at');
SELECT is(pg_temp.edited(), 'conc-1 fiscal calendar has changed', 'and that is all');
SELECT is(pg_temp.tend(), 'ok', '(once more)');

-- A firing misses its periods while they are inserted: not committed, nobody sees them.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$INSERT INTO reports.fiscal_period VALUES ('conc', 'FY2020-P04', '2020-04-01', '2020-04-30'), ('conc', 'FY2020-P05', '2020-05-01', '2020-05-31')$$), 'done', '(and inserts periods)');
SELECT is(pg_temp.run('leader', $$SELECT reports.mark_problem('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 'conc-2', (SELECT step FROM reports.schedule_progress WHERE schedule = 'conc-2'), 'fiscal calendar conc has no period with 2020-05-02')$$), 'ok', 'a firing does not see them');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(then they are there)');
SELECT is(pg_temp.tend(), 'ok', 'the leader looks');
SELECT matches(pg_temp.edited(), 'conc-2 fiscal calendar has changed', 'it goes on all the same');

SELECT * FROM finish();
SELECT dblink_disconnect(name) FROM pid WHERE name = ANY (dblink_get_connections());
DELETE FROM reports.fiscal_period WHERE calendar = 'conc';
CALL pg_temp.sweep();
