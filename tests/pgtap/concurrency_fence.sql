-- The fence with several sessions: establish is a barrier that no stream of writers keeps waiting,
-- and what is older is refused or ended.
\ir sessions.psql
SELECT no_plan();

-- First ensemble: two candidates of a new installation arrive together.
SELECT is((SELECT count(*) FROM reports.ensemble), 0::bigint, 'no ensemble is known yet');
CREATE TEMP TABLE pid AS SELECT name, pg_temp.open(name, 'report_scheduler') AS pid FROM unnest('{a,b,c,d,e}'::text[]) name;
CREATE FUNCTION pg_temp.pid(p_name text) RETURNS integer LANGUAGE sql AS $$ SELECT pid FROM pid WHERE name = p_name $$;
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', $$SELECT verdict FROM reports.ensemble_meet('conc-1', 'a')$$), 'adopted', 'the first candidate adopts its ensemble');
DO $$ BEGIN PERFORM pg_temp.send('b', $q$SELECT verdict FROM reports.ensemble_meet('conc-2', 'b')$q$); PERFORM pg_temp.send('c', $q$SELECT verdict FROM reports.ensemble_meet('conc-1', 'c')$q$); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('b')) AND pg_temp.waits(pg_temp.pid('c')), 'the others wait for it');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.receive('b'), 'unknown', 'then another ensemble is unknown');
SELECT is(pg_temp.receive('c'), 'known', 'and the same one known');

-- Who is who.
CREATE FUNCTION pg_temp.as(p_generation bigint) RETURNS text LANGUAGE sql
AS $$ SELECT format('''conc'', 1, %s, ''00000000-0000-4000-8000-%s''', p_generation, lpad(p_generation::text, 12, '0')) $$;
CREATE FUNCTION pg_temp.establish(p_generation bigint) RETURNS text LANGUAGE sql
AS $$ SELECT format('SELECT verdict FROM reports.establish(%s, ''m%s'')', pg_temp.as(p_generation), p_generation) $$;
CREATE FUNCTION pg_temp.tend(p_generation bigint) RETURNS text LANGUAGE sql AS $$ SELECT format('SELECT verdict FROM reports.tend(%s, 10)', pg_temp.as(p_generation)) $$;
CREATE FUNCTION pg_temp.registered() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s:%s:%s', p.name, b.generation, b.purpose), ' ' ORDER BY p.name)
      FROM reports.backend b JOIN pid p ON p.pid = b.pid JOIN pg_stat_activity a ON a.pid = b.pid AND a.backend_start = b.backend_start WHERE b.scope = 'conc'
$$;

SELECT is(pg_temp.run('a', pg_temp.establish(10)), 'established', 'a leads');
SELECT is(pg_temp.registered(), 'a:10:scope', 'and its backend is registered with the start of its process');
SELECT is(pg_temp.run('b', format('SELECT reports.register_backend(%s, ''relay'')', pg_temp.as(10))), 'ok', 'its relay registers');
SELECT is(pg_temp.registered(), 'a:10:scope b:10:relay', 'too');

-- The barrier: what is running is waited for, and seen.
SELECT is(pg_temp.run('a', 'BEGIN'), 'done', '(a begins)');
SELECT is(pg_temp.run('a', format('SELECT reports.activated(%s, 7)', pg_temp.as(10))), 'ok', 'a writes, and does not commit yet');
DO $$ BEGIN PERFORM pg_temp.send('c', pg_temp.establish(11)); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('c')), 'its successor waits to establish');
SELECT is(pg_temp.run('a', 'COMMIT'), 'done', '(a commits)');
SELECT is(pg_temp.receive('c'), 'established', 'then it is established');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE scope = 'conc' AND event = 'activated' AND generation = 10), 1::bigint, 'and what was running is there to be loaded');
SELECT is(pg_temp.run('a', pg_temp.tend(10)), 'fenced', 'what comes later is refused');
SELECT is(pg_temp.run('b', format('SELECT reports.register_backend(%s, ''relay'')', pg_temp.as(10))), 'fenced', 'on every connection');
SELECT is((SELECT count(*) FROM reports.fence_rejection WHERE scope = 'conc' AND generation = 10 AND stored_generation = 11 AND application_name IN ('conc-a', 'conc-b')), 2::bigint, 'and recorded with the connection it came from');

-- A writer that arrives while establish waits for another: it queues behind, and is refused.
SELECT is(pg_temp.run('c', 'BEGIN'), 'done', '(c begins)');
SELECT is(pg_temp.run('c', pg_temp.tend(11)), 'ok', '(c writes)');
DO $$ BEGIN PERFORM pg_temp.send('d', pg_temp.establish(12)); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('d')), '(d waits to establish)');
DO $$ BEGIN PERFORM pg_temp.send('e', pg_temp.tend(11)); END $$;
SELECT ok(pg_temp.waits(pg_temp.pid('e')), 'a writer of the old generation does not overtake it');
SELECT is(pg_temp.run('c', 'COMMIT'), 'done', '(c commits)');
SELECT is(pg_temp.receive('d'), 'established', '(d is established)');
SELECT is(pg_temp.receive('e'), 'fenced', 'and is refused when it is its turn');

-- REPEATABLE READ: a session whose snapshot is older than the fence cannot write by it.
SELECT is(pg_temp.run('d', 'BEGIN ISOLATION LEVEL REPEATABLE READ'), 'done', '(d begins)');
SELECT is(pg_temp.run('d', $$SELECT generation FROM reports.fence WHERE scope = 'conc'$$), '12', '(d has its snapshot)');
SELECT is(pg_temp.run('e', pg_temp.establish(13)), 'established', '(e is established)');
-- (By a function that writes nothing establish writes too, so that it is the fence row which refuses.)
SELECT is(pg_temp.run('d', format('SELECT reports.mark_problem(%s, ''nothing'', 1, ''x'')', pg_temp.as(12))), '40001', 'a writer in REPEATABLE READ cannot write through an old snapshot');
SELECT is(pg_temp.run('d', 'ROLLBACK'), 'done', '(d rolls back)');

-- A writer that stays: establish gives up soon, ends it, and tries again.
SELECT is(pg_temp.run('e', 'BEGIN'), 'done', '(e begins)');
SELECT is(pg_temp.run('e', format('SELECT reports.mark_problem(%s, ''nothing'', 1, ''x'')', pg_temp.as(13))), 'changed', '(e holds the scope''s locks)');
SELECT is(pg_temp.run('d', pg_temp.establish(14)), '55P03', 'establish does not wait for ever');
SELECT is(pg_temp.run('d', $$SELECT reports.terminate_backends('conc', 1, 13)$$), '3', 'backends of lower generations are ended');
SELECT ok(pg_temp.is_alive(pg_temp.pid('e')), 'the generation itself is not lower');
SELECT is(pg_temp.run('d', pg_temp.establish(14)), '55P03', 'so it still stands in the way');
SELECT is(pg_temp.run('d', $$SELECT reports.terminate_backends('conc', 1, 14)$$), '1', 'until one of a higher generation ends it');
SELECT ok(NOT pg_temp.is_alive(pg_temp.pid('e')), 'its process is gone');
SELECT is(pg_temp.run('d', pg_temp.establish(14)), 'established', 'and the successor is established');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE scope = 'conc' AND event = 'terminated'), 4::bigint, 'each ended backend stands in the diary');


-- What is registered is a process, not a number, and a scope.
INSERT INTO pid SELECT name, pg_temp.open(name, 'report_scheduler') FROM unnest('{f,w1,w2,w3,w4}'::text[]) name;
INSERT INTO reports.backend (pid, backend_start, scope, incarnation, generation, owner, purpose)
VALUES (pg_temp.pid('f'), '2000-01-01', 'conc', 1, 5, gen_random_uuid(), 'scope');
SELECT is(pg_temp.run('d', $$SELECT reports.terminate_backends('conc', 1, 14)$$), '0', 'a pid that was used again is another process');
INSERT INTO reports.scope (name) VALUES ('conc-other');
SELECT is(pg_temp.run('f', $$SELECT verdict FROM reports.establish('conc-other', 1, 5, gen_random_uuid(), 'm')$$), 'established', '(f leads another scope)');
SELECT is(pg_temp.run('d', $$SELECT reports.terminate_backends('conc', 1, 14)$$), '0', 'a lower generation of another scope is not meant');
SELECT ok(pg_temp.is_alive(pg_temp.pid('f')), 'and lives');
SELECT is(pg_temp.run('f', $$SELECT verdict FROM reports.establish('conc-other', 1, 6, gen_random_uuid(), 'm')$$), 'established', 'registering again sweeps the rows of processes that have ended');
SELECT is((SELECT count(*) FROM reports.backend WHERE scope = 'conc' AND pid = pg_temp.pid('f')), 1::bigint, 'of its scope only');

-- A stream of writers, four at a time and each for some milliseconds, so that at no moment nobody
-- holds the fence row: measured with FOR SHARE alone, establish waited for more than ten seconds.
CREATE FUNCTION pg_temp.stream() RETURNS text LANGUAGE sql AS $$
    SELECT format($q$DO $do$
    DECLARE
        answer text := 'ok';
        until timestamptz := clock_timestamp() + interval '10 s';
    BEGIN
        WHILE answer = 'ok' AND clock_timestamp() < until LOOP
            answer := reports.register_backend(%s, 'relay');
            PERFORM pg_sleep(0.01);
            COMMIT;
        END LOOP;
    END $do$ $q$, pg_temp.as(14))
$$;
DO $$ BEGIN PERFORM pg_temp.send(name, pg_temp.stream()) FROM pid WHERE name LIKE 'w_'; END $$;
SELECT ok(pg_temp.becomes_true($$(SELECT count(*) = 4 FROM reports.backend b JOIN pid p USING (pid) WHERE b.scope = 'conc' AND p.name LIKE 'w_')$$), '(four writers write)');
SELECT is(pg_temp.run('d', pg_temp.establish(15)), 'established', 'establish takes its turn in a stream of writers, within its lock_timeout of half a second');
SELECT is(pg_temp.receive(name), 'DO', format('writer %s is refused and ends', name)) FROM pid WHERE name LIKE 'w_';
SELECT is((SELECT count(*) FROM reports.fence_rejection WHERE scope = 'conc' AND operation = 'register_backend' AND stored_generation = 15), 4::bigint, 'each at its next write');

-- A rebase waits for who writes, and not for ever.
CREATE FUNCTION pg_temp.refusal(p_sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text;
    remedy text;
BEGIN
    EXECUTE p_sql;
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, remedy = PG_EXCEPTION_HINT;
    RETURN format('%s %s (%s)', SQLSTATE, message, remedy);
END
$$;
SELECT is(pg_temp.run('d', 'BEGIN'), 'done', '(d begins)');
SELECT is(pg_temp.run('d', format('SELECT reports.mark_problem(%s, ''nothing'', 1, ''x'')', pg_temp.as(15))), 'changed', '(d holds the scope''s locks)');
BEGIN;
SELECT is(verdict, 'unknown', '(a candidate sees a rebuilt ensemble)') FROM reports.ensemble_meet('conc-2', 'b');
ALTER FUNCTION reports.rebase SET lock_timeout = '100ms';
SELECT is(pg_temp.refusal($$SELECT reports.rebase('conc-2', 'rebuilt', true)$$),
          format('55P03 scope "conc" is held by backend %s (conc-d): nothing was changed (Repeat it; if that goes on, end that session: SELECT pg_terminate_backend(PID).)', pg_temp.pid('d')),
          'one that does not get a scope says which, and who has it');
ROLLBACK;
SELECT is(pg_temp.run('d', 'COMMIT'), 'done', '(d commits)');

SELECT * FROM finish();
SELECT dblink_disconnect(name) FROM pid WHERE name = ANY (dblink_get_connections());
CALL pg_temp.sweep();
