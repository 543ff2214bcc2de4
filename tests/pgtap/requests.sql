-- Requests: asked once however often they are sent, answered once, not carried out after their deadline.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE FUNCTION pg_temp.id(p_n integer) RETURNS uuid LANGUAGE sql STRICT AS $$ SELECT format('00000000-0000-4000-8000-%s', lpad(p_n::text, 12, '0'))::uuid $$;
CREATE FUNCTION pg_temp.ask(p_n integer, p_key text DEFAULT NULL, p_schedule text DEFAULT 's', p_timeout interval DEFAULT '1 min') RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.request_trigger(pg_temp.id(p_n), p_schedule, p_key, p_timeout) $$;
CREATE FUNCTION pg_temp.answer(p_n integer, p_job integer DEFAULT NULL) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', verdict, answer) FROM reports.answer_trigger('tap', 1, 100, pg_temp.leader(), pg_temp.id(p_n), coalesce(pg_temp.id(p_job), gen_random_uuid())) $$;
CREATE FUNCTION pg_temp.request(p_n integer) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s: %s%s', state, answer, CASE WHEN answered_at IS NOT NULL THEN format(' (by %s)', generation) END) FROM reports.request WHERE id = pg_temp.id(p_n) $$;
CREATE FUNCTION pg_temp.pending() RETURNS text LANGUAGE sql
AS $$ SELECT string_agg(ltrim(right(id::text, 12), '0') || CASE WHEN expired THEN ' expired' ELSE '' END, ', ') FROM reports.pending_requests('tap', 100) $$;

INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone, queue, priority) VALUES ('s', 'tap', 'nothing', 'cron', '@daily', 'Pacific/Kiritimati', 'fast', 3);

-- Ask.
SELECT is(pg_temp.ask(1), 'pending ', 'a request is pending at first');
SELECT is(pg_temp.ask(1), 'pending ', 'sending it again is the same request');
SELECT results_eq($$SELECT scope::text, kind, schedule::text, argument, requested_by, deadline - requested_at BETWEEN '59 s' AND '61 s' FROM reports.request$$, $$VALUES ('tap', 'trigger', 's', NULL::text, session_user::text COLLATE "default", true)$$, 'there is one of it');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(1, ''other'')'), '23505 request id 00000000-0000-4000-8000-000000000001 was used for something else (Choose a fresh request id.)', 'the same id for another key is refused');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('t', 'tap', 'nothing', 'cron', '@daily');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(1, p_schedule => ''t'')'), '23505 request id 00000000-0000-4000-8000-000000000001 was used for something else (Choose a fresh request id.)', 'or for another schedule');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(2, p_schedule => ''nosuch'')'), 'P0002 schedule "nosuch" does not exist (reportctl schedules lists them.)', 'an unknown schedule is refused');
SELECT is(pg_temp.refusal('SELECT pg_temp.ask(2, ''a key with spaces'')'), '23514 key ''a key with spaces'' has characters that cannot stand in one, or is too long (A key is 1 to 127 of letters, digits, _ . : + -)', 'a key that could not be one is refused');
INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, key_form)
VALUES ('s', 'tap', 1, clock_timestamp(), 'date') ON CONFLICT (schedule) DO UPDATE SET key_form = 'date';
SELECT matches(pg_temp.refusal(format('SELECT pg_temp.ask(2, %L)', key)), '^22023 key .* is not the key of a firing of "s" .Its keys look like 2030-04-12; ', format('%s is not a key of a daily schedule', key))
  FROM unnest(ARRAY['2030-04-12T06:00', '2030-04-12x', '2030-4-12']) key;
SELECT matches(pg_temp.refusal(format('SELECT pg_temp.ask(2, %L)', key)), '^22023 key .* names a date or time that does not exist', format('%s does not exist', key))
  FROM unnest(ARRAY['2030-02-30', '2030-13-45']) key;
SELECT matches(pg_temp.refusal('SELECT pg_temp.ask(2, p_timeout => NULL)'), '^23502 ', 'a request without a deadline is refused');
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
SELECT is(pg_temp.ask(2, '2030-04-12'), 'pending ', '(asked for a date)');
SELECT is(pg_temp.answer(2, 12), 'ok occurrence s:2030-04-12 made', 'a key of its own is made');
SELECT is((SELECT business_date FROM reports.occurrence WHERE occurrence_key = '2030-04-12'), '2030-04-12', 'a key that is a date is about that date');
SELECT is(pg_temp.ask(3, '2030-04-12'), 'pending ', '(asked for the same date again)');
SELECT is(pg_temp.answer(3, 13), 'ok occurrence s:2030-04-12 was there already', 'a key that exists makes nothing');
SELECT is((SELECT job_id FROM reports.request WHERE id = pg_temp.id(3)), pg_temp.id(12), 'and is answered with the job that is there');
SELECT is((SELECT count(*) FROM reports.job) || ' ' || (SELECT count(*) FROM reports.outbox), '2 2', 'there are two jobs and two messages in all');
SELECT is(reports.date_of_key(k, '2000-01-01'), d::date, format('key %s is about %s', k, d))
  FROM (VALUES ('2030-04-12', '2030-04-12'), ('2030-04-12T06:30', '2030-04-12'), ('2030-13-45', '2000-01-01'), ('rerun-7', '2000-01-01')) t (k, d);

-- A schedule that is gone.
SELECT is(pg_temp.ask(4), 'pending ', '(asked)');
DELETE FROM reports.schedule WHERE name = 's';
SELECT is(pg_temp.answer(4), 'ok schedule "s" does not exist', 'a schedule deleted meanwhile');
SELECT is(pg_temp.request(4), 'refused: schedule "s" does not exist (by 100)', 'is refused');
SELECT is(pg_temp.ask(4), 'refused schedule "s" does not exist', 'and repeating the request says so');

-- Deadlines.
SELECT is(pg_temp.ask(5, p_schedule => 't', p_timeout => '-1 s'), 'pending ', '(asked too late)');
SELECT is(pg_temp.ask(6, p_schedule => 't'), 'pending ', '(asked in time)');
SELECT is(pg_temp.pending(), '5 expired, 6', 'the leader sees what has expired');
SELECT is(reports.expire_request('tap', 1, 100, pg_temp.leader(), pg_temp.id(6)), 'ok', 'expiring what has not');
SELECT is(pg_temp.request(6), 'pending: ', 'does nothing');
SELECT is(reports.expire_request('tap', 1, 100, pg_temp.leader(), pg_temp.id(5)), 'ok', 'expiring what has');
SELECT is(pg_temp.request(5), 'expired: no leader carried it out before its deadline (by 100)', 'closes it');
SELECT is(pg_temp.ask(7, p_schedule => 't', p_timeout => '-1 s'), 'pending ', '(asked too late)');
SELECT is(pg_temp.answer(7), 'skipped ', 'a request is not carried out after its deadline');
SELECT is(pg_temp.request(7), 'expired: no leader carried it out before its deadline (by 100)', 'but closed as expired');
SELECT is_empty($$SELECT FROM reports.occurrence WHERE schedule = 't'$$, 'without an occurrence');

-- Hold.
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'test');
SELECT is(pg_temp.answer(6), 'held ', 'a hold stops manual firings too');
SELECT is(pg_temp.request(6), 'pending: ', 'which wait');
UPDATE reports.hold SET lifted_at = clock_timestamp();
SELECT is(pg_temp.answer(6), 'ok occurrence t:00000000-0000-4000-8000-000000000006 made', 'until it is lifted');

SELECT * FROM finish();
ROLLBACK;
