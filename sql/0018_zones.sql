-- Time zone data that change ("Time zone data" in docs/operations.md). A firing is known by its nominal local time;
-- the instant is computed by a replica from its own tzdata. Each computed instant carries the tzdata version and the
-- digest of the zone's file that it came from.
--
-- Which data count. Versions are compared by tzdata_is_newer (0004_work.sql). Other data than the leader's give way to
-- the leader's, unless they are newer: what newer data computed is never overwritten by older ones. Such a firing is
-- planned when and as it stands; what a leader with older data computes behind it carries that leader's version, and
-- is computed again by the next leader with newer data. Data of one version with different digests (a zone edited
-- by hand, another zic) are equals: the leader's count.

SET ROLE report_owner;

-- Few rows a zone's version are appended to: only edits write it.
CREATE INDEX schedule_version_zone ON reports.schedule_version (scope, time_zone, schedule);

-- From zone to zone by the index, whatever the number of schedules.
CREATE FUNCTION reports.zones_in_use(p_scope text)
RETURNS TABLE (time_zone text, tzdata text, digest text, settled boolean, newest_tzdata text, newest_digest text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    WITH RECURSIVE zone (name) AS (
        (SELECT v.time_zone FROM reports.schedule_version v WHERE v.scope = p_scope ORDER BY v.time_zone LIMIT 1)
        UNION ALL
        SELECT (SELECT v.time_zone FROM reports.schedule_version v
                 WHERE v.scope = p_scope AND v.time_zone > z.name ORDER BY v.time_zone LIMIT 1)
          FROM zone z WHERE z.name IS NOT NULL
    )
    SELECT z.name, coalesce(s.tzdata, ''), coalesce(s.digest, ''), coalesce(s.settled, false),
           coalesce(s.newest_tzdata, ''), coalesce(s.newest_digest, '')
      FROM zone z LEFT JOIN reports.zone_state s ON s.scope = p_scope AND s.time_zone = z.name
     WHERE z.name IS NOT NULL
$$;
COMMENT ON FUNCTION reports.zones_in_use(text) IS 'The time zones that versions of the scope''s schedules name, and by which data they were computed last.';

-- Stored firings of a zone that other data computed, a page by name. Cost: the schedules of the zone.
CREATE FUNCTION reports.of_zone(p_scope text, p_time_zone text, p_digest text, p_after text, p_limit integer, OUT looked_at text, OUT schedules text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    -- OFFSET 0: see due.
    SELECT max(v.schedule), array_agg(v.schedule ORDER BY v.schedule) FILTER (WHERE p.zone_digest <> p_digest)
      INTO looked_at, schedules
      FROM (SELECT DISTINCT w.schedule FROM (SELECT x.schedule FROM reports.schedule_version x
                                              WHERE x.scope = p_scope AND x.time_zone = p_time_zone AND x.schedule > p_after
                                              ORDER BY x.schedule LIMIT p_limit) w) v
      LEFT JOIN LATERAL (SELECT q.zone_digest FROM reports.schedule_progress q
                           JOIN reports.schedule_version u ON u.schedule = q.schedule AND u.version = q.version
                          WHERE q.schedule = v.schedule AND q.scope = p_scope AND q.next_fire_at IS NOT NULL
                            AND u.time_zone = p_time_zone OFFSET 0) p ON true;
END
$$;
COMMENT ON FUNCTION reports.of_zone(text, text, text, text, integer) IS 'Of the next p_limit schedules behind p_after that had a version in the zone those whose next firing was computed by other data; looked_at: the last one looked at, NULL when there is none.';

-- By which data the leader computes from now on, before it computes anything.
CREATE FUNCTION reports.note_zones(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid,
                                   p_tzdata text, p_zone text[], p_digest text[], p_settled boolean[]) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'note_zones') THEN
        RETURN 'fenced';
    END IF;
    INSERT INTO reports.zone_state AS s (scope, time_zone, tzdata, digest, settled, newest_tzdata, newest_digest)
    SELECT p_scope, g.zone, p_tzdata, g.digest, g.settled, p_tzdata, g.digest
      FROM unnest(p_zone, p_digest, p_settled) AS g (zone, digest, settled) ORDER BY g.zone
    ON CONFLICT (scope, time_zone) DO UPDATE
       SET tzdata = excluded.tzdata, digest = excluded.digest, settled = excluded.settled,
           newest_digest = CASE WHEN reports.tzdata_is_newer(s.newest_tzdata, excluded.tzdata) THEN s.newest_digest ELSE excluded.digest END,
           newest_tzdata = CASE WHEN reports.tzdata_is_newer(s.newest_tzdata, excluded.tzdata) THEN s.newest_tzdata ELSE excluded.tzdata END,
           changed_at = CASE WHEN s.digest <> excluded.digest THEN clock_timestamp() ELSE s.changed_at END;
    RETURN 'ok';
END
$$;
COMMENT ON FUNCTION reports.note_zones(text, bigint, bigint, uuid, text, text[], text[], boolean[]) IS 'The leader says by which data of which zones it computes, and of which of them it has gone through all stored firings.';

-- Move stored firings to where other data put their nominal times. Rows that have moved on, are locked, or were
-- computed by newer data are left, and are not in `moved`.
CREATE FUNCTION reports.rezone(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid,
                               p_tzdata text, p_schedule text[], p_step bigint[], p_next_fire_at timestamptz[], p_next_nominal timestamp[],
                               p_next_offset_s integer[], p_switched_at timestamptz[], p_zone_digest text[],
                               OUT verdict text, OUT moved text[])
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
    moved := '{}';
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'rezone') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    WITH given AS MATERIALIZED (
        SELECT * FROM unnest(p_schedule, p_step, p_next_fire_at, p_next_nominal, p_next_offset_s, p_switched_at, p_zone_digest)
            AS g (schedule, step, next_fire_at, next_nominal, next_offset_s, switched_at, zone_digest)
         ORDER BY g.schedule
    ), present AS MATERIALIZED (
        SELECT g.* FROM given g
         CROSS JOIN LATERAL (SELECT FROM reports.schedule_progress q
                              WHERE q.schedule = g.schedule AND q.scope = p_scope AND q.step = g.step AND q.next_fire_at IS NOT NULL
                                AND NOT (q.zone_digest <> g.zone_digest AND reports.tzdata_is_newer(q.tzdata, p_tzdata))
                                FOR UPDATE SKIP LOCKED) p
    ), done AS (
        UPDATE reports.schedule_progress p
           SET step = p.step + 1, next_fire_at = g.next_fire_at, next_nominal = g.next_nominal, next_offset_s = g.next_offset_s,
               -- Planning goes on strictly behind the latest firing, which the new data may have put behind this one.
               switched_at = coalesce(g.switched_at, p.switched_at),
               last_fire_at = CASE WHEN p.last_fire_at >= g.next_fire_at THEN g.next_fire_at - interval '1 microsecond' ELSE p.last_fire_at END,
               tzdata = p_tzdata, zone_digest = g.zone_digest, updated_at = clock_timestamp()
          FROM present g
         WHERE p.schedule = g.schedule AND p.step = g.step
        RETURNING p.schedule
    )
    SELECT coalesce(array_agg(d.schedule), '{}') INTO moved FROM done d;
    verdict := 'ok';
END
$$;
COMMENT ON FUNCTION reports.rezone(text, bigint, bigint, uuid, text, text[], bigint[], timestamptz[], timestamp[], integer[], timestamptz[], text[]) IS 'Moves next firings, by compare-and-set, to where the leader''s time zone data put their nominal times; never what newer data computed.';

CREATE VIEW reports.v_zone AS
SELECT v.scope, v.time_zone, p.tzdata, p.zone_digest, count(*) AS schedules, min(p.next_fire_at) AS next_fire_at
  FROM reports.schedule_progress p
  JOIN reports.schedule_version v ON v.schedule = p.schedule AND v.version = p.version
 WHERE p.next_fire_at IS NOT NULL
 GROUP BY v.scope, v.time_zone, p.tzdata, p.zone_digest;
COMMENT ON VIEW reports.v_zone IS 'Schedules with a next firing by time zone and by the data that computed it. Reads every schedule.';

CREATE VIEW reports.v_zone_state AS
SELECT s.scope, s.time_zone, s.tzdata, s.digest, s.settled, s.newest_tzdata, s.newest_digest, s.changed_at,
       reports.tzdata_is_newer(s.newest_tzdata, s.tzdata) AND s.newest_digest <> s.digest AS outdated
  FROM reports.zone_state s;
COMMENT ON VIEW reports.v_zone_state IS 'By which time zone data the leader of each scope computes.';
COMMENT ON COLUMN reports.v_zone_state.outdated IS 'The leader''s data are older than those of a replica that led before.';

GRANT EXECUTE ON FUNCTION reports.zones_in_use(text), reports.of_zone(text, text, text, text, integer),
    reports.note_zones(text, bigint, bigint, uuid, text, text[], text[], boolean[]),
    reports.rezone(text, bigint, bigint, uuid, text, text[], bigint[], timestamptz[], timestamp[], integer[], timestamptz[], text[])
    TO report_scheduler;

RESET ROLE;
