-- Edits, requests and planning with several sessions: a row that somebody holds stops only itself,
-- and nothing is made twice (I3, I12).
\ir sessions.psql
SELECT no_plan();

INSERT INTO reports.ensemble (id, incarnation, adopted_by) VALUES ('conc', 1, 'conc');
CREATE TEMP TABLE pid AS
SELECT name, pg_temp.open(name, CASE WHEN name LIKE 'user%' THEN current_user ELSE 'report_scheduler' END) AS pid FROM unnest('{a,b,user1,user2}'::text[]) name;
CREATE FUNCTION pg_temp.pid(p_name text) RETURNS integer LANGUAGE sql AS $$ SELECT pid FROM pid WHERE name = p_name $$;
SELECT is(pg_temp.run('a', $$SELECT verdict FROM reports.establish('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 'm')$$), 'established', '(there is a leader)');
SELECT is(pg_temp.run(name, 'SET lock_timeout = ''5s'''), 'done', format('(%s is patient)', name)) FROM pid;

CREATE FUNCTION pg_temp.take_in(p_schedules text[]) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT (SELECT string_agg(x, '' '' ORDER BY x) FROM unnest(taken) x) FROM reports.take_in(''conc'', 1, 1, ''00000000-0000-4000-8000-000000000001'', %L, %L, %L, %L, %L, %L, %L, %L, %L, %L, %L)',
                  p_schedules, array_agg(c.id ORDER BY s.n), array_agg(c.version ORDER BY s.n), array_agg(p.step ORDER BY s.n), array_agg(clock_timestamp() ORDER BY s.n), array_agg(clock_timestamp() ORDER BY s.n),
                  array_agg(now()::timestamp), array_agg(0), array_agg('date'::text), array_agg(NULL::text), array_agg('x'::text))
      FROM unnest(p_schedules) WITH ORDINALITY s (schedule, n)
      JOIN (SELECT DISTINCT ON (schedule) * FROM reports.schedule_change ORDER BY schedule, version) c USING (schedule)
      LEFT JOIN reports.schedule_progress p USING (schedule)
$$;
-- Each schedule with one firing of the given key.
CREATE FUNCTION pg_temp.plan(p_schedules text[], p_key text) RETURNS text LANGUAGE sql AS $$
    SELECT format('SELECT (SELECT string_agg(x, '' '' ORDER BY x) FROM unnest(advanced) x) || '' '' || planned FROM reports.plan_batch(''conc'', 1, 1, ''00000000-0000-4000-8000-000000000001'',
                   %1$L, %2$L, %3$L, %4$L, %5$L, %6$L, %4$L, %5$L, %6$L, ''x'', %1$L, %7$L, %8$L, %4$L, %5$L, %6$L, %9$L, %4$L, %10$L, ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'', ''{}'')',
                  p_schedules, array_agg(p.version ORDER BY s.n), array_agg(p.step ORDER BY s.n), array_agg(now()), array_agg(now()::timestamp), array_agg(0), array_agg(p_key), array_agg(gen_random_uuid()), array_agg(NULL::date), array_agg('schedule'::text))
      FROM unnest(p_schedules) WITH ORDINALITY s (schedule, n) JOIN reports.schedule_progress p USING (schedule)
$$;
CREATE FUNCTION pg_temp.jobs(p_key text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(o.schedule, ' ' ORDER BY o.schedule) FROM reports.occurrence o JOIN reports.job j ON j.id = o.job_id JOIN reports.outbox m ON m.job_id = j.id WHERE o.scope = 'conc' AND o.occurrence_key = p_key
$$;

SELECT is(pg_temp.run('a', 'LISTEN report_change; LISTEN report_request'), 'done', '(the leader listens)');
INSERT INTO reports.schedule (name, scope, report, kind, rule) SELECT 'conc-' || n, 'conc', 'conc', 'cron', '@daily' FROM generate_series(1, 3) n;
SELECT is(pg_temp.told('a'), 'report_change conc', 'an edit wakes the leader of its scope, once a transaction');
SELECT is(pg_temp.run('a', pg_temp.take_in('{conc-1,conc-2,conc-3}')), 'conc-1 conc-2 conc-3', '(three schedules are taken in)');

-- A locked row.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$SELECT count(*) FROM (SELECT FROM reports.schedule_progress WHERE schedule = 'conc-2' FOR UPDATE) x$$), '1', '(and locks the progress of one schedule)');
SELECT is(pg_temp.run('a', pg_temp.plan('{conc-1,conc-2,conc-3}', 'k1')), 'conc-1 conc-3 2', 'a locked schedule is passed over at once, and the others advance');
SELECT is(pg_temp.jobs('k1'), 'conc-1 conc-3', 'with their jobs and messages, and nothing of the locked one');
UPDATE reports.schedule SET priority = 1 WHERE name LIKE 'conc-%';
SELECT is(pg_temp.run('a', pg_temp.take_in('{conc-1,conc-2,conc-3}')), 'conc-1 conc-3', 'taking in passes over it too');
SELECT is((SELECT string_agg(schedule, ' ') FROM reports.schedule_change WHERE scope = 'conc'), 'conc-2', 'and keeps its change row');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(the lock is gone)');
SELECT is(pg_temp.run('a', pg_temp.take_in('{conc-2}')), 'conc-2', 'then it is taken in');
SELECT is(pg_temp.run('a', pg_temp.plan('{conc-2}', 'k1')), 'conc-2 1', 'and planned');

-- Two plans from one reading, as after a lost answer.
CREATE TEMP TABLE call AS SELECT pg_temp.plan('{conc-1}', 'k2') AS sql;
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', (SELECT sql FROM call)), 'conc-1 1', 'a batch is written, and not committed yet');
SELECT is(pg_temp.run('b', (SELECT sql FROM call)), NULL, 'the same batch again advances nothing, and does not wait');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.run('b', (SELECT sql FROM call)), NULL, 'nor later');
SELECT is(pg_temp.jobs('k2'), 'conc-1', 'there is one job');

-- A step that was committed while this call waited for the fence: the row is newer than the call's first look.
CREATE TEMP TABLE call2 AS SELECT pg_temp.plan('{conc-1,conc-2}', 'k3') AS sql;
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$SELECT pg_advisory_xact_lock(reports.scope_lock_key('conc'))::text$$), '', '(and holds the scope as establish does)');
DO $$ BEGIN PERFORM pg_temp.send('a', (SELECT sql FROM call2)); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('a')), 'a plan waits');
SELECT is(pg_temp.run('user1', $$UPDATE reports.schedule_progress SET step = step + 1 WHERE schedule = 'conc-1'$$), 'done', '(the progress of one of its schedules moves)');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(and is committed)');
SELECT is(pg_temp.receive('a'), 'conc-2 1', 'the plan writes what is still as it was read, and no more');

-- A manual firing and the schedule's own, with one key.
SELECT is(pg_temp.told('a', false), 'report_change conc', '(the leader has heard of the edits since)');
SELECT is(pg_temp.run('user1', $$SELECT state FROM reports.ask('c1000000-0000-4000-8000-000000000001', 'trigger', 'conc-1', 'k4', '1 min')$$), 'pending', '(a firing is asked for)');
SELECT is(pg_temp.told('a'), 'report_request conc', 'a request wakes the leader of its scope');
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', $$SELECT answer FROM reports.answer_request('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 'c1000000-0000-4000-8000-000000000001', gen_random_uuid())$$), 'occurrence conc-1:k4 made', 'it is made, and not committed yet');
SELECT is(pg_temp.run('b', pg_temp.plan('{conc-1}', 'k4')), NULL, 'the schedule''s own firing of that key is passed over at once');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.run('b', pg_temp.plan('{conc-1}', 'k4')), 'conc-1 0', 'and then the schedule advances without a second job');
SELECT is(pg_temp.jobs('k4'), 'conc-1', 'there is one');

-- The same request twice at once.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(a user begins)');
SELECT is(pg_temp.run('user1', $$SELECT state FROM reports.ask('c1000000-0000-4000-8000-000000000002', 'trigger', 'conc-1', NULL, '1 min')$$), 'pending', 'a request is made, and not committed yet');
DO $$ BEGIN PERFORM pg_temp.send('user2', $q$SELECT state FROM reports.ask('c1000000-0000-4000-8000-000000000002', 'trigger', 'conc-1', NULL, '1 min')$q$); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('user2')), 'its repetition waits');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(it is committed)');
SELECT is(pg_temp.receive('user2'), 'pending', 'and gets the same answer, no error');
-- One that is being answered is passed over.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$SELECT count(*) FROM (SELECT FROM reports.request WHERE id = 'c1000000-0000-4000-8000-000000000002' FOR UPDATE) x$$), '1', '(and locks a request)');
SELECT is(pg_temp.run('a', $$SELECT verdict FROM reports.answer_request('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 'c1000000-0000-4000-8000-000000000002', gen_random_uuid())$$), 'skipped', 'a request that somebody holds is passed over');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(the lock is gone)');

-- Users' open transactions stop no firing.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(a user begins)');
SELECT is(pg_temp.run('user1', $$UPDATE reports.schedule SET priority = 2 WHERE name = 'conc-1'$$), 'done', '(edits the schedule)');
SELECT is(pg_temp.run('user1', $$UPDATE reports.report SET description = 'x' WHERE name = 'conc'$$), 'done', '(and its report)');
SELECT is(pg_temp.run('user1', $$UPDATE reports.queue SET description = 'x' WHERE name = 'default'$$), 'done', '(and its queue)');
SELECT is(pg_temp.run('user1', $$UPDATE reports.scope SET description = 'x' WHERE name = 'conc'$$), 'done', '(and its scope, and goes for lunch)');
SELECT is(pg_temp.run('a', 'SET lock_timeout = ''300ms'''), 'done', '(a is impatient)');
SELECT is(pg_temp.run('a', pg_temp.plan('{conc-1}', 'k5')), 'conc-1 1', 'its firings are planned all the same');
SELECT is(pg_temp.run('a', $$SELECT verdict FROM reports.tend('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 10)$$), 'ok', 'and jobs tended');
SELECT is(pg_temp.run('user1', 'ROLLBACK'), 'done', '(the user is back)');

-- Two editors of one schedule: each edit is a version, in the order of their commits.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(a user begins)');
SELECT is(pg_temp.run('user1', $$UPDATE reports.schedule SET priority = 10 WHERE name = 'conc-3'$$), 'done', 'one edits');
DO $$ BEGIN PERFORM pg_temp.send('user2', $q$UPDATE reports.schedule SET priority = 11 WHERE name = 'conc-3'$q$); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('user2')), 'the other waits');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(the first commits)');
SELECT is(pg_temp.receive('user2'), 'UPDATE 1', '(the second goes on)');
SELECT is((SELECT string_agg(version || ':' || priority, ' ' ORDER BY version) FROM reports.schedule_version WHERE schedule = 'conc-3'), '1:0 2:1 3:10 4:11', 'and both are versions');
-- One deletes while another inserts the name again.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(a user begins)');
SELECT is(pg_temp.run('user1', $$DELETE FROM reports.schedule WHERE name = 'conc-3'$$), 'done', 'one deletes');
DO $$ BEGIN PERFORM pg_temp.send('user2', $q$INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('conc-3', 'conc', 'conc', 'cron', '@daily')$q$); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('user2')), 'the other waits');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(the first commits)');
SELECT is(pg_temp.receive('user2'), 'INSERT 0 1', '(the second goes on)');
SELECT is((SELECT string_agg(version || CASE WHEN ended THEN ':ended' ELSE '' END, ' ' ORDER BY version) FROM reports.schedule_version WHERE schedule = 'conc-3'), '1 2 3 4 5:ended 6', 'and the identity goes on');

SELECT * FROM finish();
SELECT dblink_disconnect(name) FROM pid WHERE name = ANY (dblink_get_connections());
CALL pg_temp.sweep();
