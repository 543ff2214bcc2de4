-- Holds: who raises and lifts them, what each kind stops, and what goes on.
BEGIN;
\ir fixture.psql
SELECT no_plan();

CREATE TEMP TABLE w AS SELECT pg_temp.add_worker('{default,fast}') AS id;
CREATE FUNCTION pg_temp.claim(p_queues text[] DEFAULT '{default,fast}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    keys text;
BEGIN
    SELECT string_agg(occurrence_key, ' ' ORDER BY occurrence_key) INTO keys FROM reports.claim_ready((SELECT id FROM w), p_queues, 10);
    UPDATE reports.job SET state = 'queued', attempt_token = NULL, worker = NULL, lease_until = NULL WHERE state = 'running';
    RETURN keys;
END
$$;
CREATE FUNCTION pg_temp.claim_ids() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    keys text;
BEGIN
    SELECT string_agg(occurrence_key, ' ' ORDER BY occurrence_key) INTO keys FROM reports.claim_ids((SELECT id FROM w), '{default,fast}', ARRAY(SELECT id FROM reports.job WHERE state = 'queued'));
    UPDATE reports.job SET state = 'queued', attempt_token = NULL, worker = NULL, lease_until = NULL WHERE state = 'running';
    RETURN keys;
END
$$;
SELECT pg_temp.add_job('slow'), pg_temp.add_job('quick', p_queue => 'fast');
SELECT is(pg_temp.claim() || ', ' || pg_temp.claim_ids(), 'quick slow, quick slow', '(both may be claimed)');

-- Raise.
CREATE TEMP TABLE hold (name text PRIMARY KEY, id bigint);
INSERT INTO hold VALUES ('queue', reports.raise_hold(NULL, 'fast', 'printer is out of paper'));
SELECT results_eq($$SELECT h.scope, h.queue::text, h.reason, h.raised_by, h.lifted_at FROM reports.hold h JOIN hold USING (id)$$,
                  $$VALUES (NULL::reports.name, 'fast', 'printer is out of paper', session_user::text COLLATE "default", NULL::timestamptz)$$, 'a hold says on what, why and by whom');
SELECT is(pg_temp.claim() || ', ' || pg_temp.claim_ids(), 'slow, slow', 'a hold on a queue stops claims in it, by both ways, and in no other');
SELECT is(pg_temp.claim('{fast}'), NULL, 'also for a worker that serves nothing else');
SELECT pg_temp.add_schedule('s');
UPDATE reports.schedule_version SET queue = 'fast' WHERE schedule = 's';
SELECT is((SELECT verdict || ' ' || planned FROM reports.plan_batch('tap', 1, 100, pg_temp.leader(), '{s}', '{1}', '{1}', '{2100-01-01}', '{2100-01-01}', '{0}', '{2030-01-01}', '{2030-01-01}', '{0}', 'x',
           '{s}', '{k}', ARRAY[gen_random_uuid()], ARRAY[clock_timestamp()], '{NULL}', '{0}', '{NULL}', '{NULL}', '{schedule}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')), 'ok 1', 'planning goes on');
SELECT pg_temp.add_job('again', 'retry_wait', p_queue => 'fast', p_run_after => clock_timestamp());
SELECT is((SELECT released FROM reports.tend('tap', 1, 100, pg_temp.leader(), 10)), 1, 'and so do retries');
SELECT is((SELECT held FROM reports.fence_read('tap')), false, 'the scope is not held');
SELECT is((SELECT held FROM reports.v_leader WHERE scope = 'tap'), false, 'nor shown so');
SELECT is_empty($$SELECT FROM reports.leadership_event WHERE event = 'hold_raised'$$, 'nor is leadership concerned');
INSERT INTO hold VALUES ('scope', reports.raise_hold('tap', NULL, 'audit'));
SELECT is(pg_temp.claim(), NULL, 'a hold on a scope stops all of it');
SELECT is((SELECT held FROM reports.fence_read('tap')), true, 'the scope is held');
SELECT is((SELECT held FROM reports.fence_read('main')), false, 'and no other');
INSERT INTO hold VALUES ('all', reports.raise_hold(NULL, NULL, 'move'));
SELECT is((SELECT string_agg(held::text, ' ') FROM reports.scope s, reports.fence_read(s.name) WHERE s.name IN ('tap', 'main')), 'true true', 'one on the installation holds every scope');
SELECT results_eq($$SELECT e.scope::text, e.reason, e.detail FROM reports.leadership_event e WHERE e.event = 'hold_raised' AND e.scope IN ('tap', 'main') ORDER BY e.id$$,
                  $$SELECT t.scope, t.reason, format('hold %s on the %s, by %s', h.id, t.what, session_user) COLLATE "default"
                      FROM hold h JOIN (VALUES (1, 'scope', 'tap', 'audit', 'scope'), (2, 'all', 'main', 'move', 'installation'), (3, 'all', 'tap', 'move', 'installation')) AS t (n, name, scope, reason, what) USING (name) ORDER BY t.n$$,
                  'the diary of each scope that is concerned says so');

-- Lift.
CREATE FUNCTION pg_temp.lift(p_name text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.refusal(format('SELECT reports.lift_hold(%s)', (SELECT id FROM hold WHERE name = p_name))) $$;
SELECT lives_ok($$SELECT reports.lift_hold(id) FROM hold WHERE name = 'all'$$, 'a hold is lifted');
SELECT results_eq($$SELECT h.lifted_by, h.lifted_at >= now() FROM reports.hold h JOIN hold USING (id) WHERE name = 'all'$$, $$VALUES (session_user::text COLLATE "default", true)$$, 'by whom and when stays written');
SELECT is((SELECT string_agg(held::text, ' ' ORDER BY s.name DESC) FROM reports.scope s, reports.fence_read(s.name) WHERE s.name IN ('tap', 'main')), 'true false', 'the others stand');
SELECT matches(pg_temp.lift('all'), format('^55000 hold %s was lifted by %s at .* .reportctl holds lists those that stand..$', id, session_user), 'one that was lifted is refused') FROM hold WHERE name = 'all';
SELECT is(pg_temp.refusal('SELECT reports.lift_hold(0)'), 'P0002 there is no hold 0 (reportctl holds lists those that stand.)', 'one that never was, too');
SELECT is(pg_temp.refusal('SELECT reports.lift_hold(NULL)'), 'P0002 there is no hold <NULL> (reportctl holds lists those that stand.)', 'and none');
SELECT lives_ok($$SELECT reports.lift_hold(id) FROM hold WHERE name = 'scope'$$, '(the scope''s is lifted)');
SELECT is((SELECT count(*) FROM reports.leadership_event WHERE event = 'hold_lifted' AND scope = 'tap'), 2::bigint, 'which the diary says');
SELECT lives_ok($$SELECT reports.lift_hold(id) FROM hold WHERE name = 'queue'$$, '(and the queue''s)');
SELECT is(pg_temp.claim(), 'again k quick slow', 'then all may be claimed again');

-- While a hold stands nobody leads: who asks for what ends work, or starts none, does it.
CREATE FUNCTION pg_temp.ask(p_n integer, p_kind text, p_subject text) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.ask(format('00000000-0000-4000-8000-0000000000%s', p_n)::uuid, p_kind, p_subject, 'it runs away', '1 min') $$;
CREATE FUNCTION pg_temp.retry(p_n integer, p_subject text) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', state, answer) FROM reports.ask(format('00000000-0000-4000-8000-0000000000%s', p_n)::uuid, 'retry', p_subject, NULL, '1 min') $$;
SELECT pg_temp.add_job('runaway', 'running', (SELECT id FROM w), p_attempt => 1), pg_temp.add_job('open'), pg_temp.add_job('failed', 'failed'), pg_temp.add_job('held-back', 'waiting');
SELECT is(pg_temp.ask(10, 'cancel', 'jobs:open'), 'pending ', '(without a hold the leader is asked)');
INSERT INTO hold VALUES ('emergency', reports.raise_hold('tap', NULL, 'smoke'));
SELECT is(pg_temp.ask(11, 'cancel', 'jobs:runaway'), 'done job jobs:runaway runs in attempt 1 on worker host, which is told to stop; whatever it comes to, the job is cancelled', 'a job that runs is told to stop at once');
SELECT results_eq($$SELECT h.cancel_requested FROM reports.job j, reports.heartbeat(j.worker, ARRAY[j.id], ARRAY[j.attempt_token]) h WHERE j.occurrence_key = 'runaway'$$, 'VALUES (true)', 'as its worker hears');
SELECT results_eq($$SELECT r.state, r.generation, r.answered_at >= now(), r.requested_by FROM reports.request r WHERE r.subject = 'jobs:runaway'$$, $$VALUES ('done', NULL::bigint, true, session_user::text COLLATE "default")$$, 'which is written down, without a leader');
SELECT is(pg_temp.ask(12, 'cancel', 'jobs:open'), 'pending ', 'what was asked before comes first');
SELECT is(pg_temp.ask(10, 'cancel', 'jobs:open'), 'done job jobs:open was queued and is cancelled', 'and is done when it is asked for again');
SELECT matches(pg_temp.ask(12, 'cancel', 'jobs:open'), '^refused job jobs:open is cancelled since ', 'then the later one');
SELECT is((SELECT state::text FROM reports.job WHERE occurrence_key = 'held-back'), 'waiting', 'no other job takes the room');
SELECT is(pg_temp.ask(13, 'pause', 's') || ', ' || pg_temp.ask(14, 'resume', 's'), 'done schedule "s" is paused, done schedule "s" is resumed', 'a schedule is paused and resumed');
SELECT results_eq($$SELECT v.paused, v.effective_from = r.requested_at, v.change_reason FROM reports.schedule_version v, reports.request r WHERE v.schedule = 's' AND v.version = 2 AND r.kind = 'pause'$$,
                  format($$VALUES (true, true, 'asked by %s: it runs away')$$, session_user), 'from the instant it was asked for, with who and why');
SELECT is(pg_temp.retry(15, 'jobs:failed'), 'pending ', 'what would start work waits');
SELECT is(pg_temp.ask(16, 'cancel', 'jobs:failed'), 'pending ', 'and with it what was asked later of the same job');
SELECT is((SELECT count(*) FROM reports.outbox m JOIN reports.job j ON j.id = m.job_id WHERE j.occurrence_key IN ('failed', 'held-back')), 0::bigint, 'nothing is dispatched');
SELECT lives_ok($$SELECT reports.lift_hold(id) FROM hold WHERE name = 'emergency'$$, '(the hold is lifted)');
SELECT is((SELECT verdict FROM reports.answer_request('tap', 1, 100, pg_temp.leader(), '00000000-0000-4000-8000-000000000011', gen_random_uuid())), 'skipped', 'the next leader does nothing of it twice');

-- What is refused.
SELECT is(pg_temp.refusal('SELECT reports.raise_hold(''tap'', ''fast'', ''x'')'), '22023 a hold is on a scope or on a queue, not on both (Raise two holds.)', 'a hold has one subject');
SELECT is(pg_temp.refusal('SELECT reports.raise_hold(''nosuch'', NULL, ''x'')'), 'P0002 scope "nosuch" does not exist (reportctl status lists the scopes.)', 'which is there');
SELECT is(pg_temp.refusal('SELECT reports.raise_hold(NULL, ''nosuch'', ''x'')'), 'P0002 queue "nosuch" does not exist (reportctl queues lists them.)', 'be it scope or queue');
SELECT is(pg_temp.refusal(format('SELECT reports.raise_hold(''tap'', NULL, %L)', reason)), '22023 a hold needs a reason of 1 to 500 bytes (Say why, for whoever has to lift it.)', format('reason %s', left(coalesce(quote_literal(reason), 'NULL'), 10)))
  FROM unnest(ARRAY[NULL, '', '  ', repeat('x', 501)]) reason;
SELECT matches(pg_temp.refusal('INSERT INTO reports.hold (scope, queue, reason) VALUES (''tap'', ''fast'', ''x'')'), '^23514 .*"scope_or_queue"', 'not by writing the table either');

SELECT * FROM finish();
ROLLBACK;
