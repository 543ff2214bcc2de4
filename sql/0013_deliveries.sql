-- Deliveries: one artifact to one recipient by one channel, each with its own claim, retries and receipt, so
-- that sending to one again never sends to the others again (I6). Channels come later, so no report can
-- name one yet; the ledger and its guards are here because the outcome's transaction makes the rows.

SET ROLE report_owner;

ALTER TABLE reports.report
    ADD COLUMN deliver jsonb NOT NULL DEFAULT '[]' CONSTRAINT delivery_is_not_supported_yet CHECK (deliver = '[]'
        OR reports.refuse(format('report "%s": deliver is not supported yet', name), 'Write deliver = ''[]''.'));
COMMENT ON COLUMN reports.report.deliver IS 'Not yet: must be []. Later: whom to send the file to, [{"channel": ..., "recipient": ..., "on_unknown": "resend" or "hold"}].';

CREATE INDEX report_delivers ON reports.report (name) WHERE deliver <> '[]';

CREATE TABLE reports.delivery (
    job_id uuid NOT NULL,
    revision integer NOT NULL,
    channel reports.name NOT NULL,
    recipient text NOT NULL CHECK (octet_length(recipient) BETWEEN 1 AND 1024),
    scope reports.name NOT NULL,
    attempt integer NOT NULL,
    idempotency_key text NOT NULL UNIQUE,
    on_unknown text NOT NULL DEFAULT 'hold' CHECK (on_unknown IN ('resend', 'hold')),
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'claimed', 'sending', 'sent', 'failed', 'unknown')),
    tries integer NOT NULL DEFAULT 0,
    max_tries integer NOT NULL DEFAULT 5 CHECK (max_tries BETWEEN 1 AND 100),
    run_after timestamptz NOT NULL DEFAULT clock_timestamp(),
    token uuid,
    worker uuid,
    lease_until timestamptz,
    receipt text,
    error text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    PRIMARY KEY (job_id, revision, channel, recipient),
    CONSTRAINT claim_complete CHECK ((state IN ('claimed', 'sending')) = (token IS NOT NULL)
        AND (token IS NOT NULL) = (worker IS NOT NULL) AND (token IS NOT NULL) = (lease_until IS NOT NULL)),
    CONSTRAINT finished_when_final CHECK ((state IN ('sent', 'failed')) = (finished_at IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX delivery_ready ON reports.delivery (run_after) WHERE state = 'pending';
CREATE INDEX delivery_open ON reports.delivery (scope, lease_until) WHERE state IN ('claimed', 'sending');
COMMENT ON TABLE reports.delivery IS 'One artifact to one recipient. Made by the outcome that makes the artifact visible; changed only under its own token.';
COMMENT ON COLUMN reports.delivery.job_id IS 'The job whose artifact it is.';
COMMENT ON COLUMN reports.delivery.revision IS 'Of the job: a superseding re-run is sent anew.';
COMMENT ON COLUMN reports.delivery.channel IS 'How it is sent.';
COMMENT ON COLUMN reports.delivery.recipient IS 'To whom, as the channel understands it.';
COMMENT ON COLUMN reports.delivery.scope IS 'Of the job.';
COMMENT ON COLUMN reports.delivery.attempt IS 'The attempt whose file is sent.';
COMMENT ON COLUMN reports.delivery.idempotency_key IS 'SHA-256 of installation, schedule, occurrence key, revision, channel and recipient: the same after a failover that lost commits.';
COMMENT ON COLUMN reports.delivery.on_unknown IS 'What to do when it is not known whether it was sent: resend (under the same key) or hold for a person.';
COMMENT ON COLUMN reports.delivery.state IS 'pending; claimed; sending (the effect may have begun); sent; failed (tries used up); unknown (the sender died while sending).';
COMMENT ON COLUMN reports.delivery.tries IS 'Tries begun.';
COMMENT ON COLUMN reports.delivery.max_tries IS 'Tries it may use.';
COMMENT ON COLUMN reports.delivery.run_after IS 'Not claimed before (backoff).';
COMMENT ON COLUMN reports.delivery.token IS 'Random identity of the live try.';
COMMENT ON COLUMN reports.delivery.worker IS 'Worker incarnation that tries.';
COMMENT ON COLUMN reports.delivery.lease_until IS 'The claim lapses then; a channel''s own timeout ends before.';
COMMENT ON COLUMN reports.delivery.receipt IS 'What the channel answered: a message id, a path.';
COMMENT ON COLUMN reports.delivery.error IS 'Of the latest failed try, for people.';
COMMENT ON COLUMN reports.delivery.created_at IS 'When the artifact became visible.';
COMMENT ON COLUMN reports.delivery.finished_at IS 'When it became final.';

-- Called by the outcome's statement for jobs that have just succeeded.
CREATE FUNCTION reports.make_deliveries(p_jobs uuid[]) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    made integer;
BEGIN
    INSERT INTO reports.delivery (job_id, revision, channel, recipient, scope, attempt, idempotency_key, on_unknown)
    SELECT j.id, j.revision, d.channel, d.recipient, j.scope, a.attempt,
           encode(sha256(convert_to(jsonb_build_array(i.id, j.schedule, j.occurrence_key, j.revision, d.channel, d.recipient)::text, 'UTF8')), 'hex'),
           coalesce(d.on_unknown, 'hold')
      FROM reports.installation i, unnest(p_jobs) AS g (id)
     CROSS JOIN LATERAL (SELECT * FROM reports.job q WHERE q.id = g.id OFFSET 0) j
      JOIN reports.artifact a ON a.job_id = j.id AND a.attempt = j.attempt
      JOIN reports.report r ON r.name = j.report AND r.deliver <> '[]'
     CROSS JOIN LATERAL jsonb_to_recordset(r.deliver) AS d (channel text, recipient text, on_unknown text)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    RETURN made;
END
$$;
COMMENT ON FUNCTION reports.make_deliveries(uuid[]) IS 'The deliveries of jobs that have just succeeded with an artifact.';

CREATE FUNCTION reports.claim_deliveries(p_worker uuid, p_channels text[], p_limit integer)
RETURNS TABLE (job_id uuid, revision integer, channel text, recipient text, token uuid, try integer, idempotency_key text,
               store text, path text, media_type text, size_bytes bigint, sha256 bytea)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held text[];
BEGIN
    IF NOT reports.claimable_worker(p_worker) THEN
        RETURN;
    END IF;
    held := reports.scopes_not_to_claim();
    RETURN QUERY
        WITH picked AS MATERIALIZED (
            SELECT d.job_id, d.revision, d.channel, d.recipient FROM reports.delivery d
             WHERE d.state = 'pending' AND d.run_after <= (SELECT clock_timestamp()) AND d.channel = ANY (p_channels)
               AND d.scope <> ALL (held)
             ORDER BY d.run_after LIMIT least(p_limit, 1000) FOR UPDATE SKIP LOCKED
        ), claimed AS (
            UPDATE reports.delivery d
               SET state = 'claimed', tries = d.tries + 1, token = gen_random_uuid(), worker = p_worker,
                   lease_until = w.claim_lease + (SELECT c.at FROM reports.v_lease_clock c WHERE c.scope = d.scope)
              FROM picked p, reports.worker w
             WHERE w.id = p_worker AND d.job_id = p.job_id AND d.revision = p.revision AND d.channel = p.channel AND d.recipient = p.recipient
            RETURNING d.*
        )
        SELECT c.job_id, c.revision, c.channel::text, c.recipient, c.token, c.tries, c.idempotency_key, a.store::text, a.path,
               a.media_type, a.size_bytes, a.sha256
          FROM claimed c JOIN reports.artifact a ON a.job_id = c.job_id AND a.attempt = c.attempt;
END
$$;
COMMENT ON FUNCTION reports.claim_deliveries(uuid, text[], integer) IS 'Claims pending deliveries of the channels, each with a fresh token; none under a hold.';

-- Commits before the effect begins. False: the claim moved on, a hold stands, or this is a copy of the database
-- that no leader has looked at: nothing may be sent.
CREATE FUNCTION reports.delivery_sending(p_job uuid, p_revision integer, p_channel text, p_recipient text, p_token uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE reports.delivery d
       SET state = 'sending', lease_until = w.claim_lease + (SELECT c.at FROM reports.v_lease_clock c WHERE c.scope = d.scope)
      FROM reports.worker w
     WHERE w.id = d.worker AND d.job_id = p_job AND d.revision = p_revision AND d.channel = p_channel AND d.recipient = p_recipient
       AND d.token = p_token AND d.state = 'claimed' AND d.lease_until > clock_timestamp() AND NOT reports.is_held(d.scope)
       AND NOT EXISTS (SELECT FROM reports.v_moved_scope m WHERE m.scope = d.scope);
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION reports.delivery_sending(uuid, integer, text, text, uuid) IS 'The effect is about to begin, under this token.';

-- verdict: done; already (this token's outcome is recorded); lost (the claim moved on: nothing changed).
CREATE FUNCTION reports.delivery_outcome(p_job uuid, p_revision integer, p_channel text, p_recipient text, p_token uuid,
                                         p_outcome text, p_receipt text, p_error text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    d reports.delivery;
BEGIN
    IF p_outcome IS NULL OR p_outcome NOT IN ('sent', 'failed', 'not_sent', 'unknown') THEN
        RAISE EXCEPTION 'a delivery''s outcome is sent, failed, not_sent or unknown' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO d FROM reports.delivery x
     WHERE x.job_id = p_job AND x.revision = p_revision AND x.channel = p_channel AND x.recipient = p_recipient FOR UPDATE;
    IF d.token IS DISTINCT FROM p_token OR d.token IS NULL THEN
        RETURN CASE WHEN d.state = 'sent' AND p_outcome = 'sent' AND d.receipt IS NOT DISTINCT FROM left(p_receipt, 1000)
                    THEN 'already' ELSE 'lost' END;
    END IF;
    IF p_outcome = 'sent' AND d.state <> 'sending' THEN
        RETURN 'lost'; -- nothing may have been sent before "sending" was committed
    END IF;
    UPDATE reports.delivery x
       SET state = CASE WHEN p_outcome = 'sent' THEN 'sent'
                        WHEN p_outcome = 'unknown' THEN reports.state_when_unknown(x.on_unknown, x.tries, x.max_tries)
                        WHEN p_outcome = 'failed' OR x.tries >= x.max_tries THEN 'failed'
                        ELSE 'pending' END,
           finished_at = CASE WHEN p_outcome IN ('sent', 'failed') OR (p_outcome = 'not_sent' AND x.tries >= x.max_tries)
                              THEN clock_timestamp() END,
           run_after = clock_timestamp() + reports.retry_delay('10 seconds', '10 minutes', x.tries),
           receipt = coalesce(left(p_receipt, 1000), x.receipt), error = left(p_error, 2000),
           token = NULL, worker = NULL, lease_until = NULL
     WHERE x.job_id = p_job AND x.revision = p_revision AND x.channel = p_channel AND x.recipient = p_recipient;
    RETURN 'done';
END
$$;
COMMENT ON FUNCTION reports.delivery_outcome(uuid, integer, text, text, uuid, text, text, text) IS 'What a try came to: sent; failed (repeating cannot help); not_sent (try again); unknown.';

CREATE FUNCTION reports.state_when_unknown(p_on_unknown text, p_tries integer, p_max_tries integer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN p_on_unknown = 'resend' AND p_tries < p_max_tries THEN 'pending' ELSE 'unknown' END $$;
COMMENT ON FUNCTION reports.state_when_unknown(text, integer, integer) IS 'pending: sent again under the same idempotency key; unknown: a person decides.';

-- Part of the leader's round. A claimed one was not begun, so it is simply pending again; one that was sending
-- may or may not have had its effect (I6).
CREATE FUNCTION reports.reap_deliveries(p_scope text, p_limit integer, p_at timestamptz) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    reaped integer;
    longest interval := (SELECT greatest(i.claim_lease, (SELECT max(w.claim_lease) FROM reports.worker w WHERE w.state IN ('alive', 'draining')))
                           FROM reports.installation i);
BEGIN
    -- As in tend: begun while this clock was ahead.
    UPDATE reports.delivery d SET lease_until = p_at + longest
      FROM (SELECT x.job_id, x.revision, x.channel, x.recipient FROM reports.delivery x, reports.installation i
             WHERE x.scope = p_scope AND x.state IN ('claimed', 'sending') AND x.lease_until > p_at + longest + i.reap_grace + interval '10 seconds'
             ORDER BY x.lease_until DESC LIMIT least(p_limit, 1000) FOR UPDATE OF x SKIP LOCKED) l
     WHERE d.job_id = l.job_id AND d.revision = l.revision AND d.channel = l.channel AND d.recipient = l.recipient;
    WITH lapsed AS MATERIALIZED (
        SELECT d.job_id, d.revision, d.channel, d.recipient FROM reports.delivery d, reports.installation i
         WHERE d.scope = p_scope AND d.state IN ('claimed', 'sending')
           AND d.lease_until < p_at - i.reap_grace
         ORDER BY d.lease_until LIMIT least(p_limit, 1000) FOR UPDATE OF d SKIP LOCKED
    )
    UPDATE reports.delivery d
       SET state = CASE WHEN d.state = 'sending' THEN reports.state_when_unknown(d.on_unknown, d.tries, d.max_tries)
                        WHEN d.tries >= d.max_tries THEN 'failed' ELSE 'pending' END,
           finished_at = CASE WHEN d.state = 'claimed' AND d.tries >= d.max_tries THEN clock_timestamp() END,
           run_after = clock_timestamp() + reports.retry_delay('10 seconds', '10 minutes', d.tries),
           error = CASE WHEN d.state = 'sending' THEN 'the worker was lost while sending' ELSE 'the worker was lost before sending' END,
           token = NULL, worker = NULL, lease_until = NULL
      FROM lapsed l
     WHERE d.job_id = l.job_id AND d.revision = l.revision AND d.channel = l.channel AND d.recipient = l.recipient;
    GET DIAGNOSTICS reaped = ROW_COUNT;
    RETURN reaped;
END
$$;
COMMENT ON FUNCTION reports.reap_deliveries(text, integer, timestamptz) IS 'Deliveries whose claim lapsed: not begun ones are pending again, others unknown or sent again by their policy.';

GRANT SELECT ON reports.delivery TO report_scheduler, report_worker, report_reader;
GRANT EXECUTE ON FUNCTION
    reports.claim_deliveries(uuid, text[], integer),
    reports.delivery_sending(uuid, integer, text, text, uuid),
    reports.delivery_outcome(uuid, integer, text, text, uuid, text, text, text)
TO report_worker;

RESET ROLE;
