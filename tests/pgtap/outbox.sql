-- Messages leave the outbox when Kafka has them, when it cannot have them, or when there are too many.
BEGIN;
\ir fixture.psql
SELECT no_plan();

INSERT INTO reports.outbox (scope, id, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation)
OVERRIDING SYSTEM VALUE
SELECT s, n, gen_random_uuid(), 1, 's', 'k' || n, 'default', clock_timestamp(), 100 FROM generate_series(1, 10) n, unnest('{tap,main}'::text[]) s;
CREATE FUNCTION pg_temp.left_over(p_scope text) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(id::text, ' ' ORDER BY id) FROM reports.outbox WHERE scope = p_scope $$;

SELECT results_eq($$SELECT * FROM reports.outbox_ack('tap', 1, 100, pg_temp.leader(), '{3,1,99}')$$, $$VALUES ('ok', 2, '{}'::bigint[])$$, 'acknowledged messages go, unknown ids are nothing');
SELECT is(pg_temp.left_over('tap'), '2 4 5 6 7 8 9 10', 'and only those');
SELECT results_eq($$SELECT * FROM reports.outbox_ack('tap', 1, 100, pg_temp.leader(), '{3,1}')$$, $$VALUES ('ok', 0, '{}'::bigint[])$$, 'acknowledging again is harmless');
SELECT results_eq($$SELECT * FROM reports.outbox_ack('tap', 1, 100, pg_temp.leader(), '{}')$$, $$VALUES ('ok', 0, '{}'::bigint[])$$, 'as is acknowledging none');

SELECT results_eq($$SELECT * FROM reports.outbox_bury('tap', 1, 100, pg_temp.leader(), '{2,4,99,5}', ARRAY['too large', NULL, 'x', repeat('y', 600)])$$, $$VALUES ('ok', 3)$$, 'what cannot be published is buried');
SELECT is(pg_temp.left_over('tap'), '6 7 8 9 10', 'out of the way');
SELECT results_eq($$SELECT id, occurrence_key::text, reason FROM reports.outbox_dead WHERE scope = 'tap' ORDER BY id$$,
                  $$VALUES (2::bigint, 'k2', 'too large'), (4, 'k4', 'no reason given'), (5, 'k5', repeat('y', 500))$$, 'with the reason, bounded');

SELECT results_eq($$SELECT * FROM reports.outbox_trim('tap', 1, 100, pg_temp.leader(), 5)$$, $$VALUES ('ok', 0)$$, 'as many as may be kept are kept');
SELECT results_eq($$SELECT * FROM reports.outbox_trim('tap', 1, 100, pg_temp.leader(), 3)$$, $$VALUES ('ok', 2)$$, 'beyond it the oldest are dropped');
SELECT is(pg_temp.left_over('tap'), '8 9 10', 'and the newest stay');
SELECT results_eq($$SELECT * FROM reports.outbox_trim('tap', 1, 100, pg_temp.leader(), 0)$$, $$VALUES ('ok', 3)$$, 'nothing at all may be kept');
SELECT is(pg_temp.left_over('main'), '1 2 3 4 5 6 7 8 9 10', 'other scopes are untouched throughout');

INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation)
SELECT 'tap', gen_random_uuid(), 1, 's', 'k' || n, 'default', clock_timestamp(), 100 FROM generate_series(1, 10500) n;
SELECT results_eq($$SELECT * FROM reports.outbox_trim('tap', 1, 100, pg_temp.leader(), 100)$$, $$VALUES ('ok', 10000)$$, 'one call drops a bounded number');
SELECT results_eq($$SELECT * FROM reports.outbox_trim('tap', 1, 100, pg_temp.leader(), 100)$$, $$VALUES ('ok', 400)$$, 'and the next call the rest');

SELECT * FROM finish();
ROLLBACK;
