-- What the relay does with the outbox. Each call is one protected write.

SET ROLE report_owner;

CREATE FUNCTION reports.outbox_ack(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_ids bigint[],
                                   OUT verdict text, OUT deleted integer, OUT stays bigint[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    deleted := 0;
    stays := '{}';
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'outbox_ack') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    -- Losing this commit only publishes again, which changes nothing (I5): no need to wait for disk.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- The range bounds what is read: with the statistics of a drained outbox the list alone would be a
    -- filter over all of it. Acknowledged ids lie close together.
    BEGIN
        PERFORM set_config('lock_timeout', '100ms', true);
        DELETE FROM reports.outbox
         WHERE scope = p_scope AND id = ANY (p_ids)
           AND id BETWEEN (SELECT min(i) FROM unnest(p_ids) i) AND (SELECT max(i) FROM unnest(p_ids) i);
        GET DIAGNOSTICS deleted = ROW_COUNT;
    EXCEPTION WHEN lock_not_available THEN
        -- Another session holds a row: that one stays, and is acknowledged again later (I12). Not the way at
        -- first, since to lock before deleting takes nearly twice the time.
        DELETE FROM reports.outbox
         WHERE ctid = ANY (ARRAY(
                SELECT o.ctid FROM reports.outbox o
                 WHERE o.scope = p_scope AND o.id = ANY (p_ids)
                   AND o.id BETWEEN (SELECT min(i) FROM unnest(p_ids) i) AND (SELECT max(i) FROM unnest(p_ids) i)
                   FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS deleted = ROW_COUNT;
        stays := ARRAY(
            SELECT o.id FROM reports.outbox o
             WHERE o.scope = p_scope AND o.id = ANY (p_ids)
               AND o.id BETWEEN (SELECT min(i) FROM unnest(p_ids) i) AND (SELECT max(i) FROM unnest(p_ids) i)
             ORDER BY o.id);
    END;
    verdict := 'ok';
END
$$;
COMMENT ON FUNCTION reports.outbox_ack(text, bigint, bigint, uuid, bigint[]) IS 'Deletes messages that Kafka has acknowledged. stays: those that another session holds; acknowledge them again.';

CREATE FUNCTION reports.outbox_bury(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_ids bigint[],
                                    p_reasons text[], OUT verdict text, OUT buried integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    buried := 0;
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'outbox_bury') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    -- One that another session holds is passed over: it is published, refused and buried again later (I12).
    WITH theirs AS MATERIALIZED (
        SELECT o.ctid AS place, g.reason FROM reports.outbox o JOIN unnest(p_ids, p_reasons) AS g (id, reason) ON o.id = g.id
         WHERE o.scope = p_scope
           AND o.id BETWEEN (SELECT min(i) FROM unnest(p_ids) i) AND (SELECT max(i) FROM unnest(p_ids) i)
           FOR UPDATE OF o SKIP LOCKED
    ), gone AS (
        DELETE FROM reports.outbox o USING theirs g WHERE o.ctid = g.place
        RETURNING o.scope, o.id, o.job_id, o.schedule, o.occurrence_key, g.reason
    ), dead AS (
        INSERT INTO reports.outbox_dead (scope, id, job_id, schedule, occurrence_key, reason)
        SELECT scope, id, job_id, schedule, occurrence_key, coalesce(left(reason, 500), 'no reason given') FROM gone
        ON CONFLICT (scope, id) DO NOTHING
    )
    SELECT count(*) INTO buried FROM gone;
    verdict := 'ok';
END
$$;
COMMENT ON FUNCTION reports.outbox_bury(text, bigint, bigint, uuid, bigint[], text[]) IS 'Moves messages that cannot be published to outbox_dead.';

-- Beyond the bound the oldest messages are dropped: their jobs are served by the pull path.
CREATE FUNCTION reports.outbox_trim(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_keep bigint,
                                    OUT verdict text, OUT dropped integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    edge bigint;
    batch_end bigint;
BEGIN
    dropped := 0;
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'outbox_trim') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    SELECT id INTO edge FROM reports.outbox WHERE scope = p_scope ORDER BY id DESC OFFSET p_keep LIMIT 1;
    IF edge IS NOT NULL THEN
        -- By range: a list of ten thousand ids may be compared with every row.
        SELECT id INTO batch_end FROM reports.outbox WHERE scope = p_scope ORDER BY id OFFSET 9999 LIMIT 1;
        -- One that another session holds stays for now (I12).
        DELETE FROM reports.outbox
         WHERE ctid = ANY (ARRAY(SELECT o.ctid FROM reports.outbox o WHERE o.scope = p_scope AND o.id <= least(edge, batch_end)
                                    FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS dropped = ROW_COUNT;
    END IF;
    verdict := 'ok';
END
$$;
COMMENT ON FUNCTION reports.outbox_trim(text, bigint, bigint, uuid, bigint) IS 'Drops the oldest messages beyond the bound, in bounded batches.';

GRANT EXECUTE ON FUNCTION
    reports.outbox_ack(text, bigint, bigint, uuid, bigint[]),
    reports.outbox_bury(text, bigint, bigint, uuid, bigint[], text[]),
    reports.outbox_trim(text, bigint, bigint, uuid, bigint)
TO report_scheduler;

RESET ROLE;
