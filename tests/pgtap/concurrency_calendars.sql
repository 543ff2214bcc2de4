-- A calendar that changes while a session holds the row of a schedule that uses it: the change and the other
-- schedules wait for nobody, and the one that is held follows later (I12).
\ir sessions.psql
SELECT no_plan();

\ir held.psql
CREATE FUNCTION pg_temp.following() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(s.name, ' ' ORDER BY s.name) FROM reports.schedule s JOIN reports.calendar c ON c.name = s.calendar
     WHERE s.scope = 'conc' AND s.calendar_version = c.version
$$;
CREATE FUNCTION pg_temp.behind() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(schedule, ' ' ORDER BY schedule) FROM reports.calendar_behind WHERE scope = 'conc' $$;
SELECT is(pg_temp.run('leader', $$SELECT verdict FROM reports.establish('conc', 1, 1, '00000000-0000-4000-8000-000000000001', 'm')$$), 'established', '(there is a leader)');
SELECT is(pg_temp.run(name, $$SET lock_timeout = '5s'$$), 'done', format('(%s is patient)', name)) FROM pid;
INSERT INTO reports.calendar (name) VALUES ('conc');
INSERT INTO reports.schedule (name, scope, report, kind, rule, calendar) SELECT 'conc-' || n, 'conc', 'conc', 'cron', '@daily', 'conc' FROM generate_series(1, 3) n;

SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$SELECT count(*) FROM (SELECT FROM reports.schedule WHERE name = 'conc-2' FOR UPDATE) x$$), '1', '(and holds the row of a schedule)');
SELECT is(pg_temp.run('user2', $$INSERT INTO reports.calendar_day (calendar, day) VALUES ('conc', '2030-01-01')$$), 'done', 'a calendar changes although a schedule that uses it is held');
SELECT is(pg_temp.following(), 'conc-1 conc-3', 'the others follow it');
SELECT is(pg_temp.behind(), 'conc-2', 'and who does not is written down');
SELECT matches((SELECT detail || '; ' || remedy FROM reports.v_calendar_finding WHERE calendar = 'conc' AND finding = 'not_followed'),
               '^schedule "conc-2" still follows it as it was before .*: its row was held by another session; let that session commit', 'where people look');
SELECT is(pg_temp.tend(), 'ok, soon again', 'the leader waits for nobody either');
SELECT is(pg_temp.behind(), 'conc-2', 'and forgets nobody');
SELECT is(pg_temp.run('user2', $$INSERT INTO reports.calendar_day (calendar, day) VALUES ('conc', '2030-01-02')$$), 'done', 'it may change again');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(the row is free)');
SELECT is(pg_temp.tend(), 'ok', 'then the leader lets it follow');
SELECT is(pg_temp.following(), 'conc-1 conc-2 conc-3', 'all follow');
SELECT is(pg_temp.behind(), NULL, 'and nobody is behind');
SELECT results_eq($$SELECT version, change_reason FROM reports.schedule_version WHERE schedule = 'conc-2' ORDER BY version$$,
                  $$VALUES (1, NULL), (2, 'calendar conc has changed')$$, 'by one version, which says why');

-- What somebody edits meanwhile follows by that edit; what is deleted leaves nothing.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$UPDATE reports.schedule SET priority = 3 WHERE name = 'conc-1'$$), 'done', '(edits one)');
SELECT is(pg_temp.run('user1', $$DELETE FROM reports.schedule WHERE name = 'conc-3'$$), 'done', '(and deletes another)');
SELECT is(pg_temp.run('user2', $$DELETE FROM reports.calendar_day WHERE calendar = 'conc'$$), 'done', 'a calendar changes beside edits that are not committed');
SELECT is(pg_temp.behind(), 'conc-1 conc-3', 'whose schedules are behind');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(they are)');
SELECT is(pg_temp.tend(), 'ok', 'the leader looks');
SELECT is(pg_temp.following(), 'conc-1 conc-2', 'those that are left follow');
SELECT is(pg_temp.behind(), NULL, 'and nothing is left behind');

-- One that is refused stops neither the round nor the others.
SELECT is(pg_temp.run('user1', 'BEGIN'), 'done', '(somebody begins)');
SELECT is(pg_temp.run('user1', $$SELECT count(*) FROM (SELECT FROM reports.schedule WHERE name LIKE 'conc-%' FOR UPDATE) x$$), '2', '(and holds two)');
SELECT is(pg_temp.run('user2', $$INSERT INTO reports.calendar_day (calendar, day) VALUES ('conc', '2030-01-03')$$), 'done', '(the calendar changes)');
SELECT is(pg_temp.run('user1', 'SET LOCAL session_replication_role = replica'), 'done', '(no trigger looks)');
SELECT is(pg_temp.run('user1', $$UPDATE reports.schedule SET time_zone = 'Mars/Olympus' WHERE name = 'conc-1'$$), 'done', '(one has a zone that is gone)');
SELECT is(pg_temp.run('user1', 'COMMIT'), 'done', '(the rows are free)');
SELECT is(pg_temp.tend(), 'ok, soon again', 'one that is refused does not stop the round');
SELECT is(pg_temp.behind(), 'conc-1', 'nor the other');
SELECT matches((SELECT why FROM reports.calendar_behind WHERE schedule = 'conc-1'), '^schedule "conc-1": unknown time zone', 'and says why');

SELECT * FROM finish();
SELECT dblink_disconnect(name) FROM pid WHERE name = ANY (dblink_get_connections());
CALL pg_temp.sweep();
