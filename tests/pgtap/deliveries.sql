-- Deliveries: made with the outcome, claimed one by one under a token of their own; a try whose end nobody knows is
-- unknown, and nothing is sent under a hold (I6, I7).
BEGIN;
\ir fixture.psql
SELECT no_plan();
SELECT alike(pg_temp.refusal($$UPDATE reports.report SET deliver = '[{"channel": "mail", "recipient": "a@example.org"}]'$$), '%deliver is not supported yet (Write deliver%', 'no report can name a channel yet');
-- What comes later, so that the ledger can be tried.
ALTER TABLE reports.report DROP CONSTRAINT delivery_is_not_supported_yet;
UPDATE reports.report SET deliver = '[{"channel": "mail", "recipient": "a@example.org"}, {"channel": "mail", "recipient": "b@example.org", "on_unknown": "resend"}]' WHERE name = 'nothing';

CREATE TEMP TABLE w AS SELECT pg_temp.add_worker() AS id;
SELECT pg_temp.add_job('a', 'running', (SELECT id FROM w), p_attempt => 1) AS job \gset
SELECT attempt_token AS token FROM reports.job WHERE id = :'job' \gset
SELECT is((SELECT verdict FROM reports.record_outcomes(ARRAY[:'job'::uuid], ARRAY[:'token'::uuid], '{succeeded}', '{true}', '{NULL}', '{0}', '{main}', '{p}', '{text/csv}', '{1}', '{1}', ARRAY[sha256('p')])),
          'done', 'the job succeeds');
SELECT results_eq($$SELECT channel::text, recipient, state, tries, on_unknown FROM reports.delivery ORDER BY recipient$$,
                  $$VALUES ('mail', 'a@example.org', 'pending', 0, 'hold'), ('mail', 'b@example.org', 'pending', 0, 'resend')$$, 'and its deliveries are there');
SELECT is((SELECT count(DISTINCT idempotency_key) FROM reports.delivery WHERE idempotency_key ~ '^[0-9a-f]{64}$'), 2::bigint, 'each with its own idempotency key');
SELECT verdict FROM reports.record_outcomes(ARRAY[:'job'::uuid], ARRAY[:'token'::uuid], '{succeeded}', '{true}', '{NULL}', '{0}', '{main}', '{p}', '{text/csv}', '{1}', '{1}', ARRAY[sha256('p')]);
SELECT is((SELECT count(*) FROM reports.delivery), 2::bigint, 'a repeated outcome makes no more');

-- Failures make none.
SELECT pg_temp.add_job('f', 'running', (SELECT id FROM w), p_attempt => 1) AS failing \gset
SELECT verdict FROM reports.record_outcomes(ARRAY[:'failing'::uuid], ARRAY[(SELECT attempt_token FROM reports.job WHERE id = :'failing')], '{failed}', '{true}', '{x}', '{0}', '{main}', '{q}', '{text/csv}', '{1}', '{1}', ARRAY[sha256('q')]);
SELECT is((SELECT count(*) FROM reports.delivery), 2::bigint, 'a failed attempt delivers nothing');

CREATE FUNCTION pg_temp.claim() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT c.recipient || ' ' || c.path || ' ' || c.try FROM reports.claim_deliveries((SELECT id FROM w), '{mail}', 10) c ORDER BY 1
$$;
CREATE FUNCTION pg_temp.sending(p_recipient text, p_token uuid DEFAULT NULL) RETURNS boolean LANGUAGE sql AS $$
    SELECT reports.delivery_sending(d.job_id, 1, 'mail', p_recipient, coalesce(p_token, d.token)) FROM reports.delivery d WHERE d.recipient = p_recipient
$$;
CREATE FUNCTION pg_temp.outcome(p_recipient text, p_outcome text, p_token uuid DEFAULT NULL, p_receipt text DEFAULT 'r1') RETURNS text LANGUAGE sql AS $$
    SELECT reports.delivery_outcome(d.job_id, 1, 'mail', p_recipient, coalesce(p_token, d.token), p_outcome, p_receipt, NULL) FROM reports.delivery d WHERE d.recipient = p_recipient
$$;
CREATE FUNCTION pg_temp.state(p_recipient text) RETURNS text LANGUAGE sql AS $$ SELECT state FROM reports.delivery WHERE recipient = p_recipient $$;

-- Holds stop claim and send.
INSERT INTO reports.hold (scope, reason) VALUES ('tap', 'drill');
SELECT is_empty('SELECT pg_temp.claim()', 'nothing of a held scope is claimed');
UPDATE reports.hold SET lifted_at = now(), lifted_by = 'tap';
SELECT is_empty($$SELECT * FROM reports.claim_deliveries((SELECT id FROM w), '{fax}', 10)$$, 'a worker claims its own channels only');
SELECT results_eq('SELECT pg_temp.claim()', $$VALUES ('a@example.org p 1'), ('b@example.org p 1')$$, 'both are claimed');
SELECT is_empty('SELECT pg_temp.claim()', 'and not twice');
INSERT INTO reports.hold (reason) VALUES ('database rewound');
SELECT is(pg_temp.sending('a@example.org'), false, 'a hold that came after the claim still stops the effect');
UPDATE reports.hold SET lifted_at = now(), lifted_by = 'tap' WHERE lifted_at IS NULL;
SELECT is(pg_temp.outcome('a@example.org', 'sent'), 'lost', 'what never was sending cannot have been sent');
SELECT is(pg_temp.sending('a@example.org', gen_random_uuid()), false, 'another token may not send');
SELECT is(pg_temp.sending('a@example.org'), true, 'its own may');
SELECT is(pg_temp.sending('a@example.org'), false, 'once');
SELECT token AS sent_token FROM reports.delivery WHERE recipient = 'a@example.org' \gset
SELECT is(pg_temp.outcome('a@example.org', 'sent', gen_random_uuid()), 'lost', 'an outcome under another token changes nothing');
SELECT is(pg_temp.outcome('a@example.org', 'sent'), 'done', 'sent');
SELECT ok(state = 'sent' AND receipt = 'r1' AND token IS NULL AND finished_at IS NOT NULL, 'it is final, with its receipt') FROM reports.delivery WHERE recipient = 'a@example.org';
SELECT is(pg_temp.outcome('a@example.org', 'sent', :'sent_token'), 'already', 'the same outcome again is recorded already');
SELECT is(pg_temp.outcome('a@example.org', 'failed', :'sent_token'), 'lost', 'another one is too late');
SELECT is_empty('SELECT pg_temp.claim()', 'one that is sent is never claimed again');

-- Not sent: again after a while; failed: never.
SELECT is(pg_temp.outcome('b@example.org', 'not_sent', NULL, NULL), 'done', 'a try before the effect may be repeated');
SELECT ok(state = 'pending' AND run_after > clock_timestamp() AND tries = 1, 'after a backoff') FROM reports.delivery WHERE recipient = 'b@example.org';
UPDATE reports.delivery SET run_after = clock_timestamp() WHERE state = 'pending';
SELECT results_eq('SELECT pg_temp.claim()', $$VALUES ('b@example.org p 2')$$, 'then it is claimed again');

-- Its worker dies.
SELECT is(reports.reap_deliveries('tap', 10, clock_timestamp()), 0, 'a living lease is not reaped');
UPDATE reports.delivery SET lease_until = clock_timestamp() - interval '1 hour' WHERE state = 'claimed';
SELECT is(pg_temp.sending('b@example.org'), false, 'a lapsed claim may not send');
SELECT is(reports.reap_deliveries('tap', 10, clock_timestamp()), 1, 'it is reaped');
SELECT is(pg_temp.state('b@example.org'), 'pending', 'and pending, since nothing was begun');
UPDATE reports.delivery SET run_after = clock_timestamp() WHERE state = 'pending';
SELECT pg_temp.claim();
SELECT token AS dead_token FROM reports.delivery WHERE recipient = 'b@example.org' \gset
SELECT ok(pg_temp.sending('b@example.org'), 'sending');
UPDATE reports.delivery SET lease_until = clock_timestamp() - interval '1 hour' WHERE state = 'sending';
SELECT is(reports.reap_deliveries('tap', 10, clock_timestamp()), 1, 'a sender that was lost is reaped');
SELECT is(pg_temp.state('b@example.org'), 'pending', 'on_unknown = resend: sent again, under the same key');
SELECT is(pg_temp.outcome('b@example.org', 'sent', :'dead_token'), 'lost', 'the dead token''s late word changes nothing');
UPDATE reports.delivery SET on_unknown = 'hold', run_after = clock_timestamp() WHERE state = 'pending';
SELECT pg_temp.claim();
SELECT ok(pg_temp.sending('b@example.org'), 'sending again');
UPDATE reports.delivery SET lease_until = clock_timestamp() + interval '1 hour' WHERE state = 'sending';
SELECT is(reports.reap_deliveries('tap', 10, clock_timestamp()), 0, 'one that began to send while the clock was an hour ahead may still send');
SELECT ok(lease_until - clock_timestamp() BETWEEN '55 s' AND '60 s', 'for a lease from now') FROM reports.delivery WHERE state = 'sending';
SELECT is(reports.reap_deliveries('tap', 10, clock_timestamp() + interval '66 s'), 1, 'then it is lost again');
SELECT is(pg_temp.state('b@example.org'), 'unknown', 'on_unknown = hold: a person decides');
SELECT is_empty('SELECT pg_temp.claim()', 'and it is not sent meanwhile');
SELECT is(reports.reap_deliveries('tap', 10, clock_timestamp()), 0, 'nor reaped again');

-- Tries are used up.
UPDATE reports.delivery SET state = 'claimed', tries = max_tries, token = gen_random_uuid(), worker = (SELECT id FROM w), lease_until = clock_timestamp() + interval '1 min' WHERE recipient = 'b@example.org';
SELECT is(pg_temp.outcome('b@example.org', 'not_sent', NULL, NULL), 'done', 'the last try fails');
SELECT is(pg_temp.state('b@example.org'), 'failed', 'then it is final');
SELECT alike(pg_temp.refusal(format('SELECT reports.delivery_outcome(%L, 1, ''mail'', ''a'', %L, ''perhaps'', NULL, NULL)', :'job', :'job')), '22023%', 'an outcome is one of four');

SELECT * FROM finish();
ROLLBACK;
