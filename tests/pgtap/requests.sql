-- Requests: asked once however often they are sent, answered once, not carried out after their deadline.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.id(p_n integer) RETURNS uuid LANGUAGE sql STRICT AS $$ SELECT format('00000000-0000-4000-8000-%s', lpad(p_n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.ask(p_n integer, p_key text DEFAULT NULL, p_schedule text DEFAULT 's', p_timeout interval DEFAULT '1 min') RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.ask(pg_temp.id(p_n), 'trigger', p_schedule, p_key, p_timeout) $$;
CREATE FUNCTION pg_temp.ask_for(p_n integer, p_kind text, p_subject text, p_argument text DEFAULT NULL, p_timeout interval DEFAULT '1 min') RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.ask(pg_temp.id(p_n), p_kind, p_subject, p_argument, p_timeout) $$;
CREATE FUNCTION pg_temp.answer(p_n integer, p_job integer DEFAULT NULL) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', verdict, answer) FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), pg_temp.id(p_n), coalesce(pg_temp.id(p_job), gen_random_uuid())) $$;
CREATE FUNCTION pg_temp.request(p_n integer) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s: %s%s', state, answer, CASE WHEN answered_at IS NOT NULL THEN format(' (by %s)', generation) END) FROM reports.request WHERE id = pg_temp.id(p_n) $$;
CREATE FUNCTION pg_temp.pending() RETURNS text LANGUAGE sql
AS $$ SELECT string_agg(ltrim(right(id::text, 12), '0') || CASE WHEN expired THEN ' expired' ELSE '' END, ', ') FROM reports.pending_requests('tap', 100) $$;

INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone, queue, priority) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', 'Pacific/Kiritimati', 'fast', 3);

-- Ask.
SELECT is(pg_temp.ask(1), 'pending ', 'a request is pending at first');
SELECT is(pg_temp.ask(1), 'pending ', 'sending it again is the same request');
SELECT results_eq($$SELECT scope::text, kind, subject, argument, requested_by, deadline - requested_at BETWEEN '59 s' AND '61 s' FROM reports.request$$, $$VALUES ('tap', 'trigger', 's', NULL::text, session_user::text COLLATE "default", true)$$, 'there is one of it');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(1, ''other'')'), '23505 request id 00000000-0000-4000-8000-000000000001 was used for something else (Choose a fresh request id.)', 'the same id for another key is refused');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('t', 'tap', 'nothing', 'cron', '@daily');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(1, p_schedule => ''t'')'), '23505 request id 00000000-0000-4000-8000-000000000001 was used for something else (Choose a fresh request id.)', 'or for another schedule');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(2, p_schedule => ''nosuch'')'), 'P0002 schedule "nosuch" does not exist (reportctl schedules lists them.)', 'an unknown schedule is refused');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(2, ''a key with spaces'')'), '23514 key ''a key with spaces'' has characters that cannot stand in one, or is too long (A key is 1 to 127 of letters, digits, _ . : + -)', 'a key that could not be one is refused');
INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, key_form)
VALUES ('s', 'tap', 1, clock_timestamp(), 'date') ON CONFLICT (schedule) DO UPDATE SET key_form = 'date';
SELECT matches(pg_temp.refusal(format('SELECT pg_temp.ask(2, %L)', key)), '^22023 key .* is not the key of a firing of "s" .(Its keys look like 2030-04-12|Write 2020-04-12); ', format('%s is not a key of a daily schedule', key))
  FROM unnest(ARRAY['2020-04-12T06:00', '2020-04-12x', '2020-4-12']) key;
SELECT matches(pg_temp.refusal(format('SELECT pg_temp.ask(2, %L)', key)), '^22023 key .* names a date or time that does not exist', format('%s does not exist', key))
  FROM unnest(ARRAY['2030-02-30', '2030-13-45']) key;
SELECT is(pg_temp.refusal(format('SELECT pg_temp.ask(2, p_timeout => %L)', timeout)), format('22023 a request needs a time in which it is to be carried out, and %s is none (Say how long it may wait, such as ''1 minute''.)', coalesce(quote_literal(timeout), 'NULL')), 'a request without a deadline is refused, and one that is over at once')
  FROM unnest(ARRAY[NULL, '00:00:00', '-00:00:01']) timeout;
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(NULL)'), '22023 a request needs an id (Choose one, such as gen_random_uuid(), and repeat the request with the same.)', 'so is one without an id');
SELECT is(pg_temp.pending(), '1', 'the leader sees what is pending');
SELECT is_empty($$SELECT FROM reports.pending_requests('main', 10)$$, 'of its own scope');

-- Answer.
SELECT is(pg_temp.answer(1, 11), 'ok occurrence s:00000000-0000-4000-8000-000000000001 made', 'without a key the request id is the key');
SELECT is(pg_temp.request(1), 'done: occurrence s:00000000-0000-4000-8000-000000000001 made (by 100)', 'the request is answered');
SELECT is(pg_temp.ask(1), 'done occurrence s:00000000-0000-4000-8000-000000000001 made', 'and sending it again gets the answer');
SELECT results_eq($$SELECT o.job_id, o.cause, o.version, o.generation, o.request_id, o.business_date, o.nominal_local, o.window_end = o.scheduled_for FROM reports.occurrence o WHERE schedule = 's'$$,
                  $$SELECT pg_temp.id(11), 'manual', 1, 100::bigint, pg_temp.id(1), (o.scheduled_for AT TIME ZONE 'Pacific/Kiritimati')::date, o.scheduled_for AT TIME ZONE 'Pacific/Kiritimati', true FROM reports.occurrence o WHERE schedule = 's'$$,
                  'the occurrence is a manual one of today in the schedule''s zone');
SELECT results_eq($$SELECT j.id, j.state, j.queue, j.priority, m.job_id = j.id, m.queue FROM reports.job j JOIN reports.outbox m ON m.job_id = j.id$$, $$VALUES (pg_temp.id(11), 'queued'::reports.job_state, 'fast', 3, true, 'fast')$$, 'with its job and message');
SELECT is((SELECT job_id FROM reports.request WHERE id = pg_temp.id(1)), pg_temp.id(11), 'which the request names');
SELECT is(pg_temp.answer(1), 'skipped ', 'answering twice does nothing');
SELECT is(pg_temp.answer(99), 'skipped ', 'nor does answering what was not asked');

-- A key that exists.
SELECT is(pg_temp.ask(2, '2020-04-12'), 'pending ', '(asked for a date)');
SELECT is(pg_temp.answer(2, 12), 'ok occurrence s:2020-04-12 made', 'a key of its own is made');
SELECT is((SELECT business_date FROM reports.occurrence WHERE occurrence_key = '2020-04-12'), '2020-04-12', 'a key that is a date is about that date');
SELECT is(pg_temp.ask(3, '2020-04-12'), 'pending ', '(asked for the same date again)');
SELECT is(pg_temp.answer(3, 13), 'ok occurrence s:2020-04-12 was there already', 'a key that exists makes nothing');
SELECT is((SELECT job_id FROM reports.request WHERE id = pg_temp.id(3)), pg_temp.id(12), 'and is answered with the job that is there');
SELECT is((SELECT count(*) FROM reports.job) || ' ' || (SELECT count(*) FROM reports.outbox), '2 2', 'there are two jobs and two messages in all');
SELECT is(reports.date_of_key(k, '2000-01-01'), d::date, format('key %s is about %s', k, d))
  FROM (VALUES ('2020-04-12', '2020-04-12'), ('2020-04-12T06:30', '2020-04-12'), ('2030-13-45', '2000-01-01'), ('rerun-7', '2000-01-01')) t (k, d);

-- A schedule that is gone.
SELECT is(pg_temp.ask(4), 'pending ', '(asked)');
DELETE FROM reports.schedule WHERE name = 's';
SELECT is(pg_temp.answer(4), 'ok schedule "s" does not exist', 'a schedule deleted meanwhile');
SELECT is(pg_temp.request(4), 'refused: schedule "s" does not exist (by 100)', 'is refused');
SELECT is(pg_temp.ask(4), 'refused schedule "s" does not exist', 'and repeating the request says so');

-- Deadlines.
SELECT is(pg_temp.ask(5, p_schedule => 't'), 'pending ', '(asked too late)');
UPDATE reports.request SET deadline = clock_timestamp() - interval '1 s' WHERE id = pg_temp.id(5);
SELECT is(pg_temp.ask(6, p_schedule => 't'), 'pending ', '(asked in time)');
SELECT is(pg_temp.pending(), '5 expired, 6', 'the leader sees what has expired');
SELECT is(pg_temp.answer(5), 'ok no leader carried it out before its deadline; ask again with a fresh request id', 'what has expired is answered as that');
SELECT is(pg_temp.request(5), 'expired: no leader carried it out before its deadline; ask again with a fresh request id (by 100)', 'and closed');
SELECT is(pg_temp.ask(7, p_schedule => 't'), 'pending ', '(asked too late)');
UPDATE reports.request SET deadline = clock_timestamp() - interval '1 s' WHERE id = pg_temp.id(7);
SELECT is(pg_temp.answer(7), 'ok no leader carried it out before its deadline; ask again with a fresh request id', 'a request is not carried out after its deadline');
SELECT is(pg_temp.request(7), 'expired: no leader carried it out before its deadline; ask again with a fresh request id (by 100)', 'but closed as expired');
SELECT is_empty($$SELECT FROM reports.occurrence WHERE schedule = 't'$$, 'without an occurrence');
INSERT INTO reports.hold (scope, reason, since) VALUES ('tap', 'a drill', clock_timestamp() - interval '1 minute');
SELECT is(pg_temp.ask(7001, p_schedule => 't'), 'pending ', '(asked under a hold)');
UPDATE reports.request SET deadline = clock_timestamp() - interval '1 s' WHERE id = pg_temp.id(7001);
UPDATE reports.hold SET lifted_at = clock_timestamp() WHERE reason = 'a drill';
SELECT matches(pg_temp.answer(7001), '^ok not carried out before its deadline: hold \d+ stood \(a drill\); ask again with a fresh request id$', 'that a hold stood is said');

-- Hold.
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'test');
SELECT is(pg_temp.answer(6), 'held ', 'a hold stops manual firings too');
SELECT is(pg_temp.request(6), 'pending: ', 'which wait');
UPDATE reports.hold SET lifted_at = clock_timestamp();
SELECT is(pg_temp.answer(6), 'ok occurrence t:00000000-0000-4000-8000-000000000006 made', 'until it is lifted');

-- What is refused at once.
SELECT is(pg_temp.refusal('SELECT pg_temp.ask_for(20, ''backfill'', ''t'', ''2020-01-01 to 2020-01-31'')'), '0A000 a backfill is asked for with its firings, which only the code that plans can tell (Use reportctl backfill.)', 'a backfill without its firings is refused');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask_for(20, ''start'', ''t'')'), '22023 there is no request of the kind ''start'' (There are trigger, pause, resume, cancel, retry, backfill, discard, breaker_close and handoff.)', 'an unknown kind is refused');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask_for(20, NULL, ''t'')'), '22023 there is no request of the kind NULL (There are trigger, pause, resume, cancel, retry, backfill, discard, breaker_close and handoff.)', 'and none');
SELECT is(pg_temp.refusal(format('SELECT pg_temp.ask_for(20, %L, ''nosuch'')', kind)), 'P0002 schedule "nosuch" does not exist (reportctl schedules lists them.)', format('%s of an unknown schedule is refused', kind))
  FROM unnest('{pause,resume}'::text[]) kind;
SELECT is(pg_temp.refusal(format('SELECT pg_temp.ask_for(20, %L, %L)', kind, subject)), format('P0002 job %L does not exist (Write SCHEDULE:KEY or the job''s id; reportctl jobs lists them.)', subject), format('%s of %s is refused', kind, subject))
  FROM unnest('{cancel,retry}'::text[]) kind, unnest('{t:nosuch,nosuch:k,t,:,:k,00000000-0000-4000-8000-00000000beef}'::text[]) subject;
SELECT is(pg_temp.refusal('SELECT pg_temp.ask_for(20, ''pause'', ''t'', repeat(''x'', 501))'), '22023 the reason is longer than 500 bytes (Say it shorter.)', 'a reason is bounded');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask_for(20, ''pause'', ''t'', NULL, ''25 h'')'), '22023 a request cannot wait for longer than a day (Ask again then, with a fresh request id.)', 'and how long a request waits');

-- Pause and resume.
SELECT pg_temp.add_schedule('p');
CREATE FUNCTION pg_temp.versions() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(version || CASE WHEN paused THEN ' paused' ELSE '' END, ', ' ORDER BY version) FROM reports.schedule_version WHERE schedule = 'p' $$;
SELECT is(pg_temp.ask_for(30, 'pause', 'p', 'month end'), 'pending ', 'a pause is asked for');
UPDATE reports.request SET requested_at = requested_at - interval '1 ms' WHERE id = pg_temp.id(30);
SELECT is(pg_temp.answer(30), 'ok schedule "p" is paused', 'the leader pauses the schedule');
SELECT is(pg_temp.versions(), '1, 2 paused', 'which is a version');
SELECT results_eq($$SELECT v.effective_from = r.requested_at, v.change_reason FROM reports.schedule_version v, reports.request r WHERE v.schedule = 'p' AND v.version = 2 AND r.id = pg_temp.id(30)$$,
                  format($$VALUES (true, 'asked by %s: month end')$$, session_user), 'from the instant it was asked for, and says who asked and why');
SELECT is(pg_temp.ask_for(30, 'pause', 'p', 'month end'), 'done schedule "p" is paused', 'the same request again gets the first answer');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask_for(30, ''pause'', ''p'', ''other'')'), '23505 request id 00000000-0000-4000-8000-000000000030 was used for something else (Choose a fresh request id.)', 'with another reason it is another request');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask_for(30, ''resume'', ''p'', ''month end'')'), '23505 request id 00000000-0000-4000-8000-000000000030 was used for something else (Choose a fresh request id.)', 'as of another kind');
SELECT is(pg_temp.ask_for(31, 'pause', 'p'), 'pending ', '(a second pause)');
SELECT is(pg_temp.answer(31), 'ok schedule "p" is paused already', 'is done already');
SELECT is(pg_temp.ask_for(32, 'trigger', 'p', 'by-hand'), 'pending ', '(a firing of a paused schedule)');
SELECT is(pg_temp.answer(32), 'ok occurrence p:by-hand made', 'is made: a pause stops the rule only');
SELECT is(pg_temp.ask_for(33, 'resume', 'p'), 'pending ', '(resume)');
SELECT is(pg_temp.answer(33), 'ok schedule "p" is resumed', 'it is resumed');
SELECT is(pg_temp.versions(), '1, 2 paused, 3', 'which is a version');
SELECT is(pg_temp.ask_for(34, 'resume', 'p'), 'pending ', '(once more)');
SELECT is(pg_temp.answer(34), 'ok schedule "p" is not paused', 'is done already');
UPDATE reports.schedule SET description = 'edited' WHERE name = 'p';
SELECT is((SELECT change_reason FROM reports.schedule_version WHERE schedule = 'p' AND version = 4), NULL, 'an edit after it in the same transaction is not stamped by it');
SELECT is(pg_temp.ask_for(35, 'pause', 'p'), 'pending ', '(asked)');
DELETE FROM reports.schedule WHERE name = 'p';
SELECT is(pg_temp.answer(35), 'ok schedule "p" does not exist', 'a schedule deleted meanwhile');
SELECT is(pg_temp.request(35), 'refused: schedule "p" does not exist (by 100)', 'is refused');

-- A key that the schedule itself is going to use.
SELECT pg_temp.add_schedule('soon', clock_timestamp() + interval '1 hour');
UPDATE reports.schedule_progress SET key_form = 'date', next_nominal = '2030-05-01 06:00' WHERE schedule = 'soon';
SELECT matches(pg_temp.refusal('SELECT pg_temp.ask(40, ''2030-05-01'', ''soon'')'), '^55000 key ''2030-05-01'' is that of the firing due at .* .Wait for that firing, or choose a key of your own..$', 'the key of the next firing is refused');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(40, ''2030-05-02'', ''soon'')'), '55000 key ''2030-05-02'' names a time that is still to come (Wait for that firing, or choose a key of your own.)', 'and a later one');
SELECT is(pg_temp.ask(40, '2020-05-02', 'soon'), 'pending ', 'one that is past may be made by hand');
UPDATE reports.schedule_progress SET next_nominal = '2020-05-02 06:00' WHERE schedule = 'soon';
SELECT matches(pg_temp.answer(40), '^ok key 2020-05-02 is that of the firing due at ', 'unless it has become the next meanwhile');
SELECT matches(pg_temp.request(40), '^refused: ', 'then it is refused by the leader');
UPDATE reports.schedule_progress SET next_fire_at = clock_timestamp() WHERE schedule = 'soon';
SELECT is(pg_temp.ask(41, '2020-05-02', 'soon'), 'pending ', 'one that is due may be made by hand');
SELECT is(pg_temp.answer(41), 'ok occurrence soon:2020-05-02 made', 'and is');
-- Cancel.
CREATE TEMP TABLE w AS SELECT pg_temp.add_worker() AS id;
CREATE FUNCTION pg_temp.state(p_key text) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s%s%s', state, CASE WHEN cancel_requested THEN ' to cancel' END, ', ' || error) FROM reports.job WHERE occurrence_key = p_key AND schedule = 'jobs'
$$;
SELECT pg_temp.add_job(k, s::reports.job_state, (SELECT id FROM w), p_attempt => 2, p_run_after => clock_timestamp() + interval '1 h')
  FROM (VALUES ('c1', 'waiting'), ('c2', 'queued'), ('c3', 'retry_wait'), ('c4', 'quarantined'), ('c5', 'running'), ('c6', 'succeeded'), ('c7', 'failed'), ('c8', 'cancelled')) t (k, s);
SELECT is(pg_temp.ask_for(50 + n, 'cancel', 'jobs:c' || n, CASE WHEN n < 3 THEN 'wrong input' END), 'pending ', format('(c%s)', n)) FROM generate_series(1, 8) n;
SELECT is(pg_temp.answer(50 + n), format('ok job jobs:c%s was %s and is cancelled', n, s), format('%s: cancelled at once', s))
  FROM (VALUES (1, 'waiting'), (2, 'queued'), (3, 'retry_wait'), (4, 'quarantined')) t (n, s);
SELECT is(pg_temp.state('c' || n), format('cancelled, cancelled by %s%s', session_user, CASE WHEN n < 3 THEN ': wrong input' END), 'with who and why') FROM generate_series(1, 4) n;
SELECT is(pg_temp.answer(55), 'ok job jobs:c5 runs in attempt 2 on worker host, which is told to stop; whatever it comes to, the job is cancelled', 'running: its worker is told');
SELECT is(pg_temp.state('c5'), format('running to cancel, cancelled by %s', session_user), 'and it runs until then');
SELECT is(pg_temp.ask_for(59, 'cancel', (SELECT id::text FROM reports.job WHERE occurrence_key = 'c5')), 'pending ', '(by its id, again)');
SELECT is(pg_temp.answer(59), 'ok job jobs:c5 is being cancelled already: attempt 2 on worker host has been told', 'asked for twice it says so');
SELECT is((SELECT r.state FROM reports.job j, reports.record_outcomes(ARRAY[j.id], ARRAY[j.attempt_token], '{succeeded}', '{f}', '{NULL}', '{0}', '{main}', '{x}', '{text/csv}', '{1}', '{1}', ARRAY[sha256('x')]) r
            WHERE j.occurrence_key = 'c5'), 'cancelled', 'a late success closes it as cancelled');
SELECT is_empty($$SELECT FROM reports.artifact$$, 'and its file stays invisible');
SELECT matches(pg_temp.answer(50 + n), format('^ok job jobs:c%s is %s since .*: only an open job can be cancelled$', n, s), format('%s: refused', s)) FROM (VALUES (6, 'succeeded'), (7, 'failed'), (8, 'cancelled')) t (n, s);
SELECT matches(pg_temp.request(56), '^refused: ', 'as the request says');
SELECT is((SELECT job_id FROM reports.request WHERE id = pg_temp.id(51)), (SELECT id FROM reports.job WHERE occurrence_key = 'c1'), 'a request names its job');

-- Retry.
UPDATE reports.job SET handed_back = 1, error = 'no such table' WHERE occurrence_key = 'c7';
INSERT INTO reports.schedule (name, scope, report, kind, rule, max_attempts) VALUES ('jobs', 'tap', 'nothing', 'cron', '@daily', 5);
SELECT is(pg_temp.ask_for(60 + n, 'retry', 'jobs:c' || n), 'pending ', format('(c%s)', n)) FROM unnest('{5,6,7,8}'::integer[]) n;
SELECT is(pg_temp.answer(67), 'ok job jobs:c7 is queued again, with 5 more attempts', 'a failed job is queued again with the attempts of its schedule as it is now');
SELECT results_eq($$SELECT j.state::text, j.attempt, j.handed_back, j.max_attempts, j.finished_at, j.run_after <= clock_timestamp(), m.dispatch_number = j.dispatch_number, j.catch_up
                      FROM reports.job j JOIN reports.outbox m ON m.job_id = j.id WHERE j.occurrence_key = 'c7'$$,
                  $$VALUES ('queued', 2, 1, 6, NULL::timestamptz, true, true, false)$$, 'its attempts are counted on, and it has a message');
SELECT is(pg_temp.answer(65), 'ok job jobs:c5 is queued again, with 5 more attempts', 'so is a cancelled one');
SELECT is(pg_temp.state('c5'), 'queued', 'which is not to be cancelled any more, and does not say so');
SELECT is(pg_temp.answer(66), 'ok job jobs:c6 is succeeded: to make its report once more, and send it once more, ask with --again', 'a job that succeeded is refused');
INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, started_at) SELECT j.id, 1, gen_random_uuid(), gen_random_uuid(), 'succeeded', clock_timestamp() FROM reports.job j WHERE j.occurrence_key = 'c6';
INSERT INTO reports.artifact (job_id, attempt, store, path, media_type, size_bytes, sha256) SELECT j.id, 1, 'files', 'one', 'text/csv', 1, sha256('') FROM reports.job j WHERE j.occurrence_key = 'c6';
UPDATE reports.job SET attempt = 1, report = 'nothing' WHERE occurrence_key = 'c6';
CREATE FUNCTION pg_temp.judged() RETURNS text LANGUAGE sql AS $$ SELECT coalesce(string_agg(v.detail, ', '), 'whole') FROM reports.verify_jobs('-infinity', 'infinity', 'jobs', 100) v WHERE v.key = 'c6' $$;
SELECT is(pg_temp.ask_for(160, 'retry', 'jobs:c6', 'again'), 'pending ', '(asked for once more)');
SELECT is(pg_temp.answer(160), 'ok job jobs:c6 is queued again, with 5 more attempts, as revision 2', 'unless it is asked to run again');
SELECT is(pg_temp.judged(), 'whole', 'which the ledger takes for what it is');
SELECT is((SELECT string_agg(path || ' ' || superseded, ', ') FROM reports.v_artifact a JOIN reports.job j ON j.id = a.job_id WHERE j.occurrence_key = 'c6'), 'one false', 'its file stays until another is made');
INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, started_at) SELECT j.id, 2, gen_random_uuid(), gen_random_uuid(), 'succeeded', clock_timestamp() FROM reports.job j WHERE j.occurrence_key = 'c6';
INSERT INTO reports.artifact (job_id, attempt, store, path, media_type, size_bytes, sha256) SELECT j.id, 2, 'files', 'two', 'text/csv', 1, sha256('') FROM reports.job j WHERE j.occurrence_key = 'c6';
UPDATE reports.job SET attempt = 2, state = 'succeeded', finished_at = clock_timestamp() WHERE occurrence_key = 'c6';
SELECT is((SELECT string_agg(path || ' ' || superseded, ', ' ORDER BY a.attempt) FROM reports.v_artifact a JOIN reports.job j ON j.id = a.job_id WHERE j.occurrence_key = 'c6'), 'one true, two false', 'and is superseded then');
SELECT is(pg_temp.judged(), 'whole', 'which is whole too');
UPDATE reports.job SET revision = 1 WHERE occurrence_key = 'c6';
SELECT is(pg_temp.judged(), 'its job has 2 file(s) and is succeeded', 'though two files of one revision are not');
UPDATE reports.job SET state = 'queued', finished_at = NULL WHERE occurrence_key = 'c8';
SELECT is(pg_temp.answer(68), 'ok job jobs:c8 is queued: only a failed or cancelled job can be retried', 'an open one too');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask_for(69, ''retry'', ''jobs:c7'', ''x'')'), '22023 retry takes no argument but ''again'' (Leave it out; again runs a job that succeeded once more.)', 'retry takes no argument');

-- A queue that is gone.
INSERT INTO reports.queue (name) VALUES ('gone');
SELECT pg_temp.add_job('q1', 'failed', p_schedule => 'nosuch', p_queue => 'gone');
SELECT pg_temp.ask_for(n, 'retry', 'nosuch:q1') FROM unnest('{80,81}'::integer[]) n;
DELETE FROM reports.queue WHERE name = 'gone';
SELECT is(pg_temp.answer(80), 'ok queue "gone" of job nosuch:q1 does not exist any more: insert it again, and have a worker serve it', 'a job that nobody could run is not retried');
SELECT matches(pg_temp.request(80), '^refused: ', 'but refused');
INSERT INTO reports.queue (name) VALUES ('gone');
SELECT is(pg_temp.answer(81), 'ok job nosuch:q1 is queued again, with 3 more attempts', 'until its queue is there again');
-- One that is deleted at that very moment: the trigger that keeps it did not see the job.
ALTER TABLE reports.queue DISABLE TRIGGER keep_used;
DELETE FROM reports.queue WHERE name = 'gone';
ALTER TABLE reports.queue ENABLE TRIGGER keep_used;
SELECT results_eq($$SELECT problem FROM reports.v_problem WHERE subject = 'gone'$$, $$VALUES ('jobs are queued in a queue that does not exist any more')$$, 'jobs of a queue that is gone all the same are shown');

-- A hold stops what starts work, not what ends it.
SELECT pg_temp.add_job('r1', 'failed'), pg_temp.add_job('r2', 'waiting');
SELECT pg_temp.ask_for(70, 'retry', 'jobs:r1'), pg_temp.ask_for(71, 'cancel', 'jobs:r2'), pg_temp.ask_for(72, 'pause', 'soon');
SELECT reports.raise_hold('tap', NULL, 'test');
SELECT is(pg_temp.answer(70), 'held ', 'under a hold a retry waits');
SELECT is(pg_temp.answer(71), 'ok job jobs:r2 was waiting and is cancelled', 'a cancellation does not');
SELECT is(pg_temp.answer(72), 'ok schedule "soon" is paused', 'nor a pause');

-- What makes the attempt itself fail is refused by the leader, with the reason.
UPDATE reports.hold SET lifted_at = clock_timestamp();
SELECT is(pg_temp.ask_for(73, 'resume', 'soon'), 'pending ', '(asked)');
SELECT is(reports.refuse_request('tap', 1, 100, pg_temp.leader(), pg_temp.id(73), 'it cannot be carried out: disk full'), 'ok', 'a leader refuses');
SELECT is(pg_temp.request(73), 'refused: it cannot be carried out: disk full (by 100)', 'with the reason');
SELECT is(reports.refuse_request('tap', 1, 100, pg_temp.leader(), pg_temp.id(72), 'late'), 'ok', 'what is answered');
SELECT is(pg_temp.request(72), 'done: schedule "soon" is paused (by 100)', 'keeps its first answer');

SELECT * FROM finish();
ROLLBACK;
