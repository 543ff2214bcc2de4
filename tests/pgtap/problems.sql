-- What a person who is paged reads: v_problem and the views beside it name what needs somebody, and nothing else.
BEGIN;
\ir fixture.psql
SELECT no_plan();
CREATE FUNCTION pg_temp.problems(p_kind text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(format('%s: %s | %s', subject, problem, remedy), E'\n' ORDER BY subject) FROM reports.v_problem WHERE kind = p_kind
$$;
CREATE FUNCTION pg_temp.figure(p_figure text) RETURNS double precision LANGUAGE sql AS $$
    SELECT value FROM reports.scope_figures('tap') WHERE figure = p_figure
$$;
DO $$ BEGIN PERFORM reports.activated('tap', 1, 100, pg_temp.leader(), 5); END $$;

-- A scope that no scheduler.conf names.
INSERT INTO reports.scope (name) VALUES ('emea'), ('empty');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('theirs', 'emea', 'nothing', 'cron', '@daily');
SELECT is(pg_temp.problems('scope'), NULL, 'a scope made a moment ago is no problem');
SELECT is(pg_temp.figure('unserved_scopes'), 0::double precision, 'and not counted');
UPDATE reports.schedule_change SET made_at = made_at - interval '61 s' WHERE scope = 'emea';
SELECT is(pg_temp.problems('scope'),
          'emea: it has schedules, and no scheduler leads it: its reports are not made | name it in scopes of scheduler.conf, and restart the report-schedulers; one that does has its reason in its log',
          'a minute later it is one, and a scope without schedules is not');
SELECT is(pg_temp.problems('edits'), NULL, 'which is said once');
UPDATE reports.schedule_change SET made_at = made_at + interval '50 s' WHERE scope = 'emea';
SELECT matches(pg_temp.problems('scope'), '^emea: it has schedules', 'it is one after ten seconds already');
SELECT is(pg_temp.figure('unserved_scopes'), 0::double precision, 'which wakes nobody yet');
UPDATE reports.schedule_change SET made_at = made_at - interval '50 s' WHERE scope = 'emea';
SELECT is(pg_temp.figure('unserved_scopes'), 1::double precision, 'the replicas of another scope count it');
INSERT INTO reports.hold (scope, reason) VALUES ('emea', 'test');
SELECT is(pg_temp.problems('scope'), NULL, 'under a hold nobody is to lead it');
DELETE FROM reports.hold;
DO $$ BEGIN PERFORM reports.establish('emea', 1, 5, gen_random_uuid(), 'w1'); END $$;
SELECT is(pg_temp.problems('scope'), NULL, 'whoever establishes serves it');
UPDATE reports.fence SET released_at = clock_timestamp() - interval '6 min', established_at = clock_timestamp() - interval '1 h' WHERE scope = 'emea';
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - interval '6 min' WHERE scope = 'emea';
SELECT is(pg_temp.figure('unserved_scopes'), 0::double precision, 'one that was led a minute after the edit has time');
UPDATE reports.schedule_change SET made_at = clock_timestamp() - interval '6 min' WHERE scope = 'emea';
SELECT is(pg_temp.figure('unserved_scopes'), 1::double precision, 'an edit that nobody takes in for minutes is told');
SELECT matches(pg_temp.problems('edits'), '^emea: edits of schedules not taken in: 1', 'and seen');
DELETE FROM reports.schedule_change WHERE scope = 'emea';
SELECT is(pg_temp.figure('unserved_scopes'), 0::double precision, 'one without anything to do needs nobody');
INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, next_fire_at) VALUES ('theirs', 'emea', 1, now(), now() + interval '1 h');
SELECT is(pg_temp.figure('unserved_scopes'), 0::double precision, 'nor one with a firing to come');
SELECT matches(pg_temp.problems('leader'), '^emea: no leader: nothing is planned when the next firing is due . is report-scheduler running', 'but whoever looks is told so, hours before');
UPDATE reports.fence SET released_at = clock_timestamp() - interval '5 s' WHERE scope = 'emea';
SELECT is(pg_temp.problems('leader'), NULL, 'not during a handoff');
DO $$ BEGIN PERFORM reports.establish('emea', 1, 6, '00000000-0000-4000-8000-000000000006', 'w2'); END $$;
SELECT is(pg_temp.problems('leader'), NULL, 'nor while the next leader prepares');
UPDATE reports.fence SET established_at = clock_timestamp() - interval '2 min' WHERE scope = 'emea';
SELECT matches(pg_temp.problems('leader'), '^emea: member w2 took the lead and does not get to work', 'unless it does not end');
UPDATE reports.fence SET established_at = clock_timestamp() - interval '1 h', released_at = clock_timestamp() - interval '6 min' WHERE scope = 'emea';
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - interval '6 min' WHERE scope = 'emea';
UPDATE reports.schedule_progress SET next_fire_at = now() - interval '6 min';
SELECT is(pg_temp.figure('unserved_scopes'), 1::double precision, 'one with a firing that is due does');
SELECT matches(pg_temp.problems('leader'), '^emea: no leader, and firings are due . is report-scheduler running, with the scope in scopes of its scheduler.conf,', 'and the page says what to look at');
SELECT is(pg_temp.problems('scope'), NULL, 'once');
INSERT INTO reports.hold (scope, reason) VALUES ('emea', 'test');
SELECT is(pg_temp.problems('leader'), NULL, 'under a hold nobody is to lead it: no remedy that cannot help');
SELECT matches(pg_temp.problems('hold'), '^emea: scope held by .*; to lift it: reportctl release-hold', 'the hold is the problem');
DELETE FROM reports.hold;

-- Queues.
SELECT is(pg_temp.problems('queue'), 'default: schedules name the queue and no living worker serves it: their jobs will wait | start a report-worker with this queue in worker.conf', 'a queue that schedules name needs a worker, before any job waits; one that none names needs none');
SELECT pg_temp.add_worker() AS server \gset
SELECT is(pg_temp.problems('queue'), NULL, 'with one all is well');
UPDATE reports.worker SET state = 'stopped', stopped_at = clock_timestamp() - interval '5 s', heartbeat_at = clock_timestamp() - interval '6 s' WHERE id = :'server';
SELECT is(pg_temp.problems('queue'), NULL, 'and while it is being restarted');
UPDATE reports.worker SET stopped_at = clock_timestamp() - interval '11 s', heartbeat_at = clock_timestamp() - interval '12 s' WHERE id = :'server';
SELECT matches(pg_temp.problems('queue'), '^default: schedules name', 'but not for long');
UPDATE reports.schedule SET paused = true;
SELECT is(pg_temp.problems('queue'), NULL, 'paused schedules need no worker');
SELECT is((SELECT string_agg(kind || ' ' || subject, ', ') FROM reports.problem_list(1)), (SELECT kind || ' ' || subject FROM reports.v_problem ORDER BY place, since_at LIMIT 1), 'the replicas read the same list, the most urgent first');

-- Who followed whom.
SELECT is((SELECT detail FROM reports.leadership_event WHERE scope = 'tap' AND event = 'established'), NULL, 'the first leader follows nobody');
DO $$ BEGIN PERFORM reports.establish('tap', 1, 101, pg_temp.leader(), 'second'); END $$;
SELECT is((SELECT detail FROM reports.leadership_event WHERE scope = 'tap' AND event = 'established' AND generation = 101), 'follows member member, generation 100, which did not release', 'a takeover after a crash says so');
DO $$ BEGIN PERFORM reports.establish('tap', 1, 101, pg_temp.leader(), 'second'); PERFORM reports.release('tap', 1, 101, pg_temp.leader(), 'stopping'); PERFORM reports.establish('tap', 1, 102, pg_temp.leader(), 'third'); END $$;
SELECT is((SELECT detail FROM reports.leadership_event WHERE scope = 'tap' AND event = 'established' AND generation = 102), 'follows member second, generation 101', 'one in order does not');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE scope = 'tap' AND event = 'established'), 3::bigint, 'each once');

-- Requests.
INSERT INTO reports.request (id, kind, scope, subject, requested_at, deadline)
VALUES ('00000000-0000-4000-8000-000000000001', 'pause', 'tap', 's', clock_timestamp() - interval '20 s', clock_timestamp() + interval '1 min');
SELECT matches(pg_temp.problems('requests'), '^tap: requests not answered: 1 ', 'a request that may still be carried out waits for an answer');
SELECT is((SELECT requests_waiting FROM reports.v_scope WHERE scope = 'tap'), 1::bigint, 'and is counted');
SELECT is(pg_temp.figure('requests_waiting'), 1::double precision, 'by the replicas too');
UPDATE reports.request SET deadline = clock_timestamp() - interval '1 s';
SELECT is(pg_temp.problems('requests'), NULL, 'beyond its deadline nobody waits for it');
SELECT is((SELECT requests_waiting FROM reports.v_scope WHERE scope = 'tap'), 0::bigint, 'nor counts it');
SELECT is(pg_temp.figure('requests_waiting'), 0::double precision, 'nor do the replicas');
SELECT ok(lapsed, 'it has lapsed') FROM reports.v_request;

-- What a waiting job waits for.
INSERT INTO reports.queue (name, max_outstanding) VALUES ('narrow', 2);
CREATE FUNCTION pg_temp.waits_on(p_key text) RETURNS text LANGUAGE sql AS $$ SELECT waits_on FROM reports.v_job WHERE schedule = 'jobs' AND occurrence_key = p_key $$;
SELECT pg_temp.add_job('w1', 'waiting', p_queue => 'narrow', p_run_after => clock_timestamp() - interval '5 min');
SELECT is(pg_temp.waits_on('w1'), 'room in queue "narrow" (max_outstanding 2)', 'for room in its queue');
SELECT pg_temp.add_job('w2', 'waiting', p_queue => 'narrow', p_catch_up => true);
SELECT is(pg_temp.waits_on('w2'), 'room in queue "narrow" (max_outstanding 2), or in scope "tap" among missed firings (catch_up_max 100)', 'for room among the missed firings');
SELECT pg_temp.add_job('w3', 'waiting');
SELECT is(pg_temp.waits_on('w3'), 'room in queue "default"', 'for its release');
SELECT pg_temp.add_job('o1', 'queued', p_overlap => 'queue');
SELECT pg_temp.add_job('o2', 'waiting', p_overlap => 'queue', p_waits_for => 'overlap', p_run_after => clock_timestamp() - interval '1 min');
SELECT pg_temp.add_job('o3', 'waiting', p_overlap => 'queue', p_waits_for => 'overlap');
SELECT is(pg_temp.waits_on(k), 'job jobs:o1, which is queued', format('%s waits for the job that is active', k)) FROM unnest('{o2,o3}'::text[]) k;
SELECT is(pg_temp.waits_on('o1'), NULL, 'which waits for nothing');
UPDATE reports.job SET state = 'succeeded', finished_at = now() WHERE occurrence_key = 'o1';
SELECT is(pg_temp.waits_on('o3'), 'job jobs:o2, which is waiting', 'or for those before it');
SELECT is(pg_temp.waits_on('o2'), 'its turn', 'the first of them is let go on next');
INSERT INTO reports.hold (reason) VALUES ('test');
SELECT is(pg_temp.waits_on(k), 'the end of a hold: reportctl holds', format('%s waits for the hold', k)) FROM unnest('{w1,o2}'::text[]) k;
DELETE FROM reports.hold;
SELECT ok(oldest_at < clock_timestamp() - interval '4 min' AND queued = 0, 'the oldest of a queue is also one that waits for room') FROM reports.v_queue WHERE queue = 'narrow';
SELECT pg_temp.add_job('r1', 'retry_wait', p_queue => 'fast', p_run_after => clock_timestamp() - interval '1 min');
SELECT is(oldest_at, NULL, 'but not one that waits for its next attempt') FROM reports.v_queue WHERE queue = 'fast';

-- The artifact store.
SELECT is(pg_temp.problems('artifacts'), NULL, 'no file was refused');
UPDATE reports.job SET error = 'artifact store "default" (/srv/reports): cannot make the directory: No such file or directory', claimed_at = clock_timestamp() - interval '1 min' WHERE occurrence_key = 'r1';
SELECT is(pg_temp.problems('artifacts'),
          'default: files of jobs refused by the artifact store: 1; artifact store "default" (/srv/reports): cannot make the directory: No such file or directory | mend the directory of artifact_stores in worker.conf on the workers'' hosts; jobs are tried again until max_attempts',
          'a job that is to be tried again since its file was refused');
UPDATE reports.job SET claimed_at = clock_timestamp() - interval '16 min' WHERE occurrence_key = 'r1';
SELECT is(pg_temp.problems('artifacts'), NULL, 'is no news after a quarter of an hour');
UPDATE reports.job SET claimed_at = clock_timestamp() WHERE occurrence_key = 'r1';
UPDATE reports.job SET error = 'SQLSTATE 42703: column "x" does not exist' WHERE occurrence_key = 'r1';
SELECT is(pg_temp.problems('artifacts'), NULL, 'nor is another error');

-- Two replicas, one address.
UPDATE reports.fence SET url = 'http://a:9410' WHERE scope = 'tap';
UPDATE reports.fence_pulse SET beat_at = clock_timestamp() WHERE scope = 'tap';
CREATE FUNCTION pg_temp.follow(p_member text, p_url text) RETURNS text LANGUAGE sql
AS $$ SELECT reports.follow('tap', 1, 200, p_member, 'ready', 1, NULL, false, p_url) $$;
SELECT is(pg_temp.follow('b', 'http://b:9410') || ' ' || pg_temp.follow('c', '') || ' ' || pg_temp.follow('d', NULL), 'none none none', '(replicas that follow)');
SELECT is(pg_temp.problems('address'), NULL, 'replicas with addresses of their own, or without any, are no problem');
SELECT is(pg_temp.follow('c', 'http://a:9410'), 'none', '(one copied a scheduler.conf)');
SELECT is(pg_temp.problems('address'), 'http://a:9410: members c, third all advertise it | a request may be sent on to the wrong one: give each its own advertised_url in its scheduler.conf', 'one that advertises the leader''s address is');
UPDATE reports.candidate SET seen_at = clock_timestamp() - interval '13 s' WHERE member = 'c';
SELECT is(pg_temp.problems('address'), NULL, 'as long as it is there');

SELECT * FROM finish();
ROLLBACK;
