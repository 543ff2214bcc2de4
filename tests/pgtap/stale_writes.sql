-- Every protected function, as the catalog lists them: from anyone but the accepted generation it
-- changes nothing but fence_rejection, and answers so (I1). A new function with these parameters
-- fails here until it has a call.
BEGIN;
\ir fixture.psql
SELECT no_plan();

-- What each call would do if it were the leader's: without that, "changes nothing" says nothing.
SELECT pg_temp.add_schedule('due');
INSERT INTO reports.schedule (name, scope, report, kind, rule) VALUES ('new', 'tap', 'nothing', 'cron', '@daily');
INSERT INTO reports.schedule (name, scope, report, kind, rule, paused, paused_until) VALUES ('paused', 'tap', 'nothing', 'cron', '@daily', true, clock_timestamp() + interval '1 ms');
SELECT pg_sleep_until(paused_until) FROM reports.schedule WHERE name = 'paused';
SELECT pg_temp.add_job('retry', 'retry_wait', p_run_after => clock_timestamp() - interval '1 s');
INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation)
SELECT 'tap', gen_random_uuid(), 1, 'due', 'k', 'default', clock_timestamp(), 100 FROM generate_series(1, 5);
INSERT INTO reports.fence_rejection (at, scope, operation, incarnation, generation, stored_incarnation, stored_generation, application_name)
VALUES ('2001-01-01', 'tap', 'plan_batch', 1, 1, 1, 2, 'x');
INSERT INTO reports.leadership_event (at, scope, event) VALUES ('2001-01-01', 'tap', 'established');
-- A request of each kind, and one that is late.
INSERT INTO reports.queue (name, max_outstanding) VALUES ('narrow', 1);
SELECT pg_temp.add_job('waits', 'waiting'), pg_temp.add_job('room', 'waiting', p_queue => 'narrow'), pg_temp.add_job('failed', 'failed', p_attempt => 3);
INSERT INTO reports.request (id, kind, scope, subject, job_id, deadline)
SELECT t.id::uuid, t.kind, 'tap', t.subject, j.id, clock_timestamp() + CASE t.id WHEN '00000000-0000-4000-8000-0000000000e1' THEN interval '-1 s' ELSE interval '1 h' END
  FROM (VALUES ('00000000-0000-4000-8000-0000000000e1', 'trigger', 'due', NULL), ('00000000-0000-4000-8000-0000000000a1', 'trigger', 'due', NULL),
               ('00000000-0000-4000-8000-0000000000a2', 'pause', 'due', NULL), ('00000000-0000-4000-8000-0000000000a3', 'cancel', 'jobs:waits', 'waits'),
               ('00000000-0000-4000-8000-0000000000a4', 'retry', 'jobs:failed', 'failed')) AS t (id, kind, subject, job)
  LEFT JOIN reports.job j ON j.occurrence_key = t.job;
INSERT INTO reports.request (id, kind, scope, subject, argument, deadline) VALUES ('00000000-0000-4000-8000-0000000000a5', 'handoff', 'tap', 'tap', 'next', clock_timestamp() + interval '1 h');
INSERT INTO reports.handoff (request, scope, incarnation, generation, member) VALUES ('00000000-0000-4000-8000-0000000000a5', 'tap', 1, 100, 'member');
INSERT INTO reports.request (id, kind, scope, subject, argument, deadline) VALUES ('00000000-0000-4000-8000-0000000000a6', 'backfill', 'tap', 'due', '2020', clock_timestamp() + interval '1 h');
INSERT INTO reports.backfill_firing VALUES ('00000000-0000-4000-8000-0000000000a6', '2020-01-01T00:00', 1, '2020-01-01', '2020-01-01', 0, '2020-01-01', NULL, '2020-01-01');
SELECT pg_temp.add_job('missed', 'waiting', p_queue => 'narrow', p_catch_up => true);
UPDATE reports.occurrence SET cause = 'misfire' WHERE occurrence_key = 'missed';
INSERT INTO reports.request (id, kind, scope, subject, argument, deadline) VALUES ('00000000-0000-4000-8000-0000000000a7', 'discard', 'tap', 'queue:narrow@tap', 'all: test', clock_timestamp() + interval '1 h');
SELECT pg_temp.add_schedule('open', '2030-01-01');
UPDATE reports.schedule_progress SET circuit_opened_at = now(), circuit_probe_at = now() WHERE schedule = 'open';
INSERT INTO reports.request (id, kind, scope, subject, deadline) VALUES ('00000000-0000-4000-8000-0000000000a8', 'breaker_close', 'tap', 'open', clock_timestamp() + interval '1 h');
INSERT INTO reports.candidate (scope, member, incarnation, generation, ahead, state) VALUES ('tap', 'next', 1, 101, 1, 'ready');

-- %1$s stands for scope, incarnation, generation and owner.
CREATE TEMP TABLE call (function text PRIMARY KEY, sql text NOT NULL);
INSERT INTO call VALUES
    ('establish', $$SELECT verdict FROM reports.establish(%1$s, 'm')$$),
    ('register_backend', $$SELECT reports.register_backend(%1$s, 'relay')$$),
    ('activated', $$SELECT reports.activated(%1$s, 5)$$),
    ('release', $$SELECT reports.release(%1$s, 'stopped')$$),
    ('take_in', $$SELECT verdict FROM reports.take_in(%1$s, '{new}', ARRAY(SELECT id FROM reports.schedule_change WHERE schedule = 'new'), '{1}', '{NULL}',
                  '{2030-01-01}', '{2030-01-01}', '{2030-01-01}', '{0}', '{date}', '{NULL}', '{x}')$$),
    ('plan_batch', $$SELECT verdict FROM reports.plan_batch(%1$s, '{due}', '{1}', '{1}', '{2100-01-01}', '{2100-01-01}', '{0}', '{2030-01-01}', '{2030-01-01}', '{0}', 'x',
                     '{due}', '{k1}', ARRAY[gen_random_uuid()], ARRAY[clock_timestamp()], '{NULL}', '{0}', '{NULL}', '{NULL}', '{schedule}',
                     '{due}', '{2000-01-01}', '{2000-01-01}', '{k0}', '{k0}', '{1}', '{misfire_age}')$$),
    ('mark_problem', $$SELECT reports.mark_problem(%1$s, 'due', 1, 'broken')$$),
    ('resume_paused', $$SELECT verdict FROM reports.resume_paused(%1$s, 10)$$),
    ('note_zones', $$SELECT reports.note_zones(%1$s, '2030a', '{UTC}', '{0123}', '{true}')$$),
    ('rezone', $$SELECT verdict FROM reports.rezone(%1$s, 'y', '{due}', '{1}', '{2030-01-01}', '{2030-01-01}', '{0}', '{NULL}', '{0123}')$$),
    ('tend', $$SELECT verdict FROM reports.tend(%1$s, 100)$$),
    ('prune', $$SELECT verdict FROM reports.prune(%1$s, 100) LIMIT 1$$),
    ('outbox_ack', $$SELECT verdict FROM reports.outbox_ack(%1$s, ARRAY(SELECT id FROM reports.outbox))$$),
    ('outbox_bury', $$SELECT verdict FROM reports.outbox_bury(%1$s, ARRAY(SELECT id FROM reports.outbox), '{too large}')$$),
    ('outbox_trim', $$SELECT verdict FROM reports.outbox_trim(%1$s, 2)$$),
    ('refuse_request', $$SELECT reports.refuse_request(%1$s, '00000000-0000-4000-8000-0000000000e1', 'why')$$),
    ('answer_request', $$SELECT verdict FROM reports.answer_request(%1$s, '00000000-0000-4000-8000-0000000000e1', gen_random_uuid())$$);
INSERT INTO call SELECT 'answer_request ' || kind, format('SELECT verdict FROM reports.answer_request(%%1$s, %L, gen_random_uuid())', id)
  FROM reports.request WHERE id <> '00000000-0000-4000-8000-0000000000e1';

SELECT set_eq($$SELECT proname::text FROM pg_proc WHERE pronamespace = 'reports'::regnamespace
                 AND proargnames @> '{p_scope,p_incarnation,p_generation,p_owner}'
                 -- The check itself, and what establish calls with the locks held; no role may execute these.
                 AND proname NOT IN ('fence_holds', 'register_self')$$,
              'SELECT DISTINCT split_part(function, '' '', 1) FROM call', 'every protected function has a call here');
SELECT is((SELECT count(*) FROM pg_proc WHERE pronamespace = 'reports'::regnamespace AND proargnames @> '{p_scope,p_incarnation,p_generation,p_owner}'),
          (SELECT count(DISTINCT split_part(function, ' ', 1)) + 2 FROM call), 'and none is overloaded');

-- The content of every table but fence_rejection.
CREATE FUNCTION pg_temp.content() RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    t regclass;
    digest text;
    content jsonb := '{}';
BEGIN
    FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'reports'::regnamespace AND relkind = 'r' AND relname <> 'fence_rejection' LOOP
        EXECUTE format('SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM %s t', t) INTO digest;
        content := content || jsonb_build_object(t::text, digest);
    END LOOP;
    RETURN content;
END
$$;
-- Its answer, the tables it changed, and the refusals it recorded.
CREATE FUNCTION pg_temp.effect(p_sql text, p_authority text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before jsonb := pg_temp.content();
    last bigint := (SELECT coalesce(max(id), 0) FROM reports.fence_rejection);
    answer text;
    changed text;
    refused text;
BEGIN
    BEGIN
        EXECUTE format(p_sql, p_authority) INTO answer;
        SELECT string_agg(b.key, ',' ORDER BY b.key) INTO changed
          FROM jsonb_each_text(before) b JOIN jsonb_each_text(pg_temp.content()) a USING (key) WHERE a.value IS DISTINCT FROM b.value;
        SELECT string_agg(format('%s %s %s.%s for %s.%s', scope, operation, incarnation, generation, stored_incarnation, stored_generation), ',') INTO refused
          FROM reports.fence_rejection WHERE id > last;
        RAISE EXCEPTION 'undo' USING ERRCODE = 'TAP00';
    EXCEPTION WHEN SQLSTATE 'TAP00' THEN
        NULL;
    END;
    RETURN format('%s; changed: %s; refused: %s', answer, coalesce(changed, 'nothing'), coalesce(refused, 'nothing'));
END
$$;

CREATE TEMP TABLE stale (who text, incarnation bigint, generation bigint, owner uuid);
INSERT INTO stale VALUES
    ('an earlier generation', 1, 99, pg_temp.leader()),
    ('a later generation that is not established', 1, 101, pg_temp.leader()),
    ('another owner of the same generation', 1, 100, gen_random_uuid()),
    ('nobody', 1, 100, NULL),
    ('another incarnation', 2, 100, pg_temp.leader());

SELECT is(pg_temp.effect(c.sql, format('''tap'', %s, %s, %L', s.incarnation, s.generation, s.owner)),
          format('fenced; changed: nothing; refused: tap %s %s.%s for 1.100', split_part(c.function, ' ', 1), s.incarnation, s.generation),
          format('%s: %s changes nothing and is recorded', c.function, s.who))
  FROM call c, stale s WHERE c.function <> 'establish';
SELECT is(pg_temp.effect(c.sql, format('''tap'', %s, %s, %L', s.incarnation, s.generation, s.owner)),
          'superseded; changed: nothing; refused: nothing',
          format('%s: %s changes nothing', c.function, s.who))
  FROM call c, stale s WHERE c.function = 'establish' AND (s.incarnation, s.generation) <= (1, 100);

SELECT is(pg_temp.refusal(format(c.sql, format('''nowhere'', 1, 100, %L', pg_temp.leader()))),
          'RS001 scope "nowhere" has no fence row (Insert the scope into reports.scope, or remove it from scopes in scheduler.conf.)',
          format('%s: a scope without a fence row is an error', c.function))
  FROM call c;

SELECT matches(pg_temp.effect(c.sql, format('''tap'', 1, 100, %L', pg_temp.leader())),
               format('^(ok|released|established|wait); changed: %s; refused: nothing$', t.tables),
               format('%s: the accepted generation changes %s', c.function, t.tables))
  FROM call c
  JOIN (VALUES ('establish', 'reports.fence_pulse'),
               ('register_backend', 'nothing'), -- a superuser's session is not registered; see concurrency_fence.sql
               ('activated', 'reports.fence,reports.leadership_event'),
               ('release', 'reports.fence,reports.leadership_event'),
               ('take_in', 'reports.schedule_change,reports.schedule_progress'),
               ('plan_batch', 'reports.job,reports.occurrence,reports.outbox,reports.schedule_gap,reports.schedule_progress'),
               ('mark_problem', 'reports.schedule_progress'),
               ('resume_paused', 'reports.schedule,reports.schedule_change,reports.schedule_version'),
               ('note_zones', 'reports.zone_state'),
               ('rezone', 'reports.schedule_progress'),
               ('tend', 'reports.fence_pulse,reports.job,reports.outbox,reports.queue_load'),
               ('prune', 'reports.leadership_event'),
               ('outbox_ack', 'reports.outbox'),
               ('outbox_bury', 'reports.outbox,reports.outbox_dead'),
               ('outbox_trim', 'reports.outbox'),
               ('refuse_request', 'reports.request'),
               ('answer_request', 'reports.request'),
               ('answer_request trigger', 'reports.job,reports.occurrence,reports.outbox,reports.request'),
               ('answer_request pause', 'reports.request,reports.schedule,reports.schedule_change,reports.schedule_version'),
               ('answer_request handoff', 'reports.handoff'),
               ('answer_request backfill', 'reports.backfill_firing,reports.catch_up_release,reports.job,reports.occurrence,reports.outbox,reports.request'),
               ('answer_request discard', 'reports.catch_up_discard,reports.job,reports.outbox,reports.request'),
               ('answer_request breaker_close', 'reports.circuit_event,reports.request,reports.schedule_progress'),
               ('answer_request cancel', 'reports.job,reports.outbox,reports.request'),
               ('answer_request retry', 'reports.job,reports.outbox,reports.request')) AS t (function, tables) USING (function);

-- A released generation is as stale as any other.
DO $$ BEGIN PERFORM reports.release('tap', 1, 100, pg_temp.leader(), 'stopped'); END $$;
SELECT is(pg_temp.effect(c.sql, format('''tap'', 1, 100, %L', pg_temp.leader())),
          format('fenced; changed: nothing; refused: tap %s 1.100 for 1.100', split_part(c.function, ' ', 1)),
          format('%s: a released generation changes nothing and is recorded', c.function))
  FROM call c WHERE c.function NOT IN ('establish', 'release');

SELECT * FROM finish();
ROLLBACK;
