-- The clock guard ("Guards" in docs/architecture.md): what makes a step of this server's clock a hold, and
-- what lifts it. Replicas bring samples; everything is judged here, from the rows of member_clock, and the
-- functions are not fenced: who testifies need not lead.
--
-- Who is believed. A replica compares this server's clock with its machine's clock since boot, which is never
-- stepped; its wall clock accuses nobody. What one machine testifies alone may be its own fault (it was stopped by
-- its hypervisor), so while other machines give signs of life it takes a second one that saw the same; one that
-- saw the same time pass without a step refutes it. Wall clocks are asked only whether this clock is right
-- *now*, which lifts a hold and never raises one: by a majority of machines, and one alone counts only if its
-- kernel says that it is synchronised.

SET ROLE report_owner;

CREATE FUNCTION reports.clock_step(p_before reports.member_clock, p_after reports.member_clock) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    -- The same bounds as in scheduler/lifecycle/clock_guard.h.
    SELECT CASE WHEN abs(x.step) > 2000000 + abs(x.went) / 2000 + (p_before.round_trip_us + p_after.round_trip_us) / 2 THEN x.step END
      FROM (SELECT p_after.boot_us - p_before.boot_us AS went,
                   (extract(epoch FROM p_after.at - p_before.at) * 1000000)::bigint - (p_after.boot_us - p_before.boot_us) AS step) x
$$;
COMMENT ON FUNCTION reports.clock_step(reports.member_clock, reports.member_clock) IS 'How much further this server''s clock went between two samples of a member than the member''s own, in microseconds; NULL: no more than round trips, 500 ppm and two seconds explain.';

CREATE FUNCTION reports.clock_words(p_us bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%s s %s', trim_scale(round(abs(p_us) / 1000000.0, 3)), CASE WHEN p_us < 0 THEN 'back' ELSE 'forward' END)
$$;
COMMENT ON FUNCTION reports.clock_words(bigint) IS 'A step, for people.';

-- What comes of a member's testimony; p_boot_us: what its clock shows now.
CREATE FUNCTION reports.judge_step(t reports.member_clock, p_boot_us bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b reports.member_clock;
BEGIN
    -- Its sample before the step.
    SELECT * INTO b FROM reports.member_clock x WHERE x.member = t.member AND x.boot = t.boot AND x.id < t.id ORDER BY x.id DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN 'own';
    END IF;
    -- Somebody else's testimony of the time since then was heard first.
    IF EXISTS (SELECT FROM reports.hold h WHERE h.cause = 'clock_hold' AND h.evidence > b.id) THEN
        RETURN 'known';
    END IF;
    IF EXISTS (SELECT FROM reports.member_clock x
                WHERE x.boot <> t.boot AND x.verdict IN ('waits', 'raised', 'known') AND abs(x.step_us - t.step_us) < 3000000
                  AND x.at BETWEEN t.at - interval '1 minute' AND clock_timestamp() + interval '5 seconds') THEN
        RETURN 'raised';
    END IF;
    -- Another machine has a sample from before and one from after, and none of its samples between them testifies.
    IF EXISTS (SELECT FROM reports.member_clock x
                WHERE x.id > t.id AND x.boot <> t.boot AND x.step_us IS NULL
                  AND EXISTS (SELECT FROM reports.member_clock y WHERE y.member = x.member AND y.boot = x.boot AND y.id < b.id)
                  AND NOT EXISTS (SELECT FROM reports.member_clock z
                                   WHERE z.member = x.member AND z.boot = x.boot AND z.id > b.id AND z.id < x.id AND z.step_us IS NOT NULL)) THEN
        RETURN 'own';
    END IF;
    -- Others gave a sign of life shortly before: each writes a sample within 15 seconds.
    IF p_boot_us - t.boot_us < 20000000
       AND EXISTS (SELECT FROM reports.member_clock y
                    WHERE y.boot <> t.boot AND y.id < t.id AND y.at BETWEEN b.at - interval '45 seconds' AND b.at + interval '45 seconds') THEN
        RETURN 'waits';
    END IF;
    RETURN 'raised';
END
$$;
COMMENT ON FUNCTION reports.judge_step(reports.member_clock, bigint) IS 'What comes of a member''s testimony of a step: raised, known, own, waits.';

CREATE FUNCTION reports.raise_clock_hold(t reports.member_clock) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    h reports.hold;
    words text := format('PostgreSQL''s clock was stepped %s, by the clock of member %s', reports.clock_words(t.step_us), t.member);
BEGIN
    SELECT * INTO h FROM reports.hold x WHERE x.cause = 'clock_hold' AND x.lifted_at IS NULL ORDER BY x.id LIMIT 1 FOR UPDATE;
    IF FOUND THEN
        UPDATE reports.hold x
           SET step_us = x.step_us + t.step_us, stepped_at = t.at, evidence = t.id,
               reason = format('PostgreSQL''s clock was stepped again, %s; in all %s', reports.clock_words(t.step_us), reports.clock_words(x.step_us + t.step_us))
         WHERE x.id = h.id;
    ELSE
        INSERT INTO reports.hold (cause, reason, raised_by, step_us, stepped_at, evidence)
        VALUES ('clock_hold', left(words, 400), t.member, t.step_us, t.at, t.id) RETURNING * INTO h;
    END IF;
    INSERT INTO reports.leadership_event (scope, event, member, reason, detail)
    SELECT s.name, 'hold_raised', t.member, 'clock_hold', format('hold %s on the installation: %s', h.id, words) FROM reports.scope s;
END
$$;
COMMENT ON FUNCTION reports.raise_clock_hold(reports.member_clock) IS 'Puts the hold clock_hold on the installation, or adds a further step to the one that stands.';

-- Is this clock right now, by the wall clocks of the replicas' machines? Samples since the step count.
CREATE FUNCTION reports.clock_is_confirmed(p_since bigint) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(*) FILTER (WHERE m.agrees) > count(*) FILTER (WHERE NOT m.agrees)
           AND (count(*) FILTER (WHERE m.agrees) >= 2 OR coalesce(bool_or(m.agrees AND m.synchronised), false))
      FROM (SELECT DISTINCT ON (c.boot) abs(c.offset_us) <= 1000000 + c.round_trip_us / 2 AS agrees, c.synchronised
              FROM reports.member_clock c
             WHERE c.id > p_since AND c.at BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '5 seconds'
             ORDER BY c.boot, c.id DESC) m
$$;
COMMENT ON FUNCTION reports.clock_is_confirmed(bigint) IS 'Do most machines agree with this clock to a second, two of them at least or one that is synchronised?';

-- Any candidate lifts a clock hold with three consistent samples over ten seconds. After a step of more than five
-- minutes the clock must also be right: back where it was (the steps add up to little), set back and come
-- to where it had been, or confirmed by wall clocks.
CREATE FUNCTION reports.lift_clock_hold(m reports.member_clock) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    h reports.hold;
    run record;
BEGIN
    SELECT * INTO h FROM reports.hold x WHERE x.cause = 'clock_hold' AND x.lifted_at IS NULL ORDER BY x.id LIMIT 1 FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT count(*) AS samples, coalesce(max(c.boot_us) - min(c.boot_us), 0) AS over INTO run
      FROM reports.member_clock c
     WHERE c.member = m.member AND c.boot = m.boot
       AND c.id > greatest(h.evidence, (SELECT max(s.id) FROM reports.member_clock s
                                         WHERE s.member = m.member AND s.boot = m.boot AND s.step_us IS NOT NULL));
    IF run.samples < 3 OR run.over < 10000000
       OR NOT (abs(h.step_us) <= 300000000
               OR (h.step_us < 0 AND clock_timestamp() >= h.stepped_at - h.step_us * interval '1 microsecond')
               OR reports.clock_is_confirmed(h.evidence)) THEN
        RETURN false;
    END IF;
    UPDATE reports.hold x SET lifted_at = clock_timestamp(), lifted_by = m.member WHERE x.id = h.id;
    INSERT INTO reports.leadership_event (scope, event, member, reason, detail)
    SELECT s.name, 'hold_lifted', m.member, 'clock_hold',
           format('hold %s on the installation, by member %s: the clock was consistent for %s s', h.id, m.member, round(run.over / 1000000.0))
      FROM reports.scope s;
    RETURN true;
END
$$;
COMMENT ON FUNCTION reports.lift_clock_hold(reports.member_clock) IS 'Lifts the clock hold where a member''s samples show that it may be.';

CREATE FUNCTION reports.note_clock(p_member text, p_boot text, p_at timestamptz, p_boot_us bigint, p_offset_us bigint, p_round_trip_us bigint,
                                   p_synchronised boolean, OUT verdict text, OUT step_us bigint, OUT hold bigint, OUT lifted boolean)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    last reports.member_clock;
    mine reports.member_clock;
    t reports.member_clock;
BEGIN
    lifted := false;
    -- One after the other: each sees what the others testified.
    PERFORM pg_advisory_xact_lock(hashtextextended('reports.member_clock', 0));
    SELECT * INTO last FROM reports.member_clock c WHERE c.member = p_member AND c.boot = p_boot ORDER BY c.id DESC LIMIT 1;
    -- A sample is of now, and no member fills the table.
    IF abs(extract(epoch FROM clock_timestamp() - p_at)) > 5 OR p_boot_us - last.boot_us < 1000000 THEN
        verdict := 'stale';
    ELSE
        mine := (NULL, p_at, p_member, p_boot, p_boot_us, p_offset_us, p_round_trip_us, p_synchronised, NULL, NULL);
        IF last.id IS NOT NULL THEN
            mine.step_us := reports.clock_step(last, mine);
        END IF;
        INSERT INTO reports.member_clock AS c (at, member, boot, boot_us, offset_us, round_trip_us, synchronised, step_us, verdict)
        VALUES (p_at, p_member, p_boot, p_boot_us, p_offset_us, p_round_trip_us, p_synchronised, mine.step_us,
                CASE WHEN mine.step_us IS NOT NULL THEN 'waits' END) RETURNING * INTO mine;
        verdict := 'noted';
        SELECT * INTO t FROM reports.member_clock c
         WHERE c.member = p_member AND c.boot = p_boot AND c.verdict = 'waits' ORDER BY c.id DESC LIMIT 1;
        IF FOUND THEN
            verdict := reports.judge_step(t, p_boot_us);
            step_us := t.step_us;
            UPDATE reports.member_clock c SET verdict = note_clock.verdict WHERE c.id = t.id;
            -- An earlier one of its own is a part of the same.
            UPDATE reports.member_clock c SET verdict = 'known' WHERE c.member = p_member AND c.verdict = 'waits' AND c.id < t.id;
        END IF;
        IF verdict = 'raised' THEN
            PERFORM reports.raise_clock_hold(t);
        ELSIF mine.step_us IS NULL THEN
            lifted := reports.lift_clock_hold(mine);
        END IF;
    END IF;
    hold := (SELECT h.id FROM reports.v_hold h WHERE h.cause = 'clock_hold' ORDER BY h.id LIMIT 1);
END
$$;
COMMENT ON FUNCTION reports.note_clock(text, text, timestamptz, bigint, bigint, bigint, boolean) IS 'A replica brings a sample of this server''s clock. noted; stale (not taken: it is not of now, or the last one is a second old); what came of a step it testifies: waits, raised, known, own. hold: the clock hold that stands; lifted: one was lifted by this.';

CREATE VIEW reports.v_member_clock AS
SELECT c.member, c.at, c.offset_us, c.round_trip_us, c.synchronised, c.boot, s.step_us AS last_step_us, s.at AS last_step_at, s.verdict AS last_verdict
  FROM (WITH RECURSIVE each (member) AS (
            SELECT min(x.member) FROM reports.member_clock x
            UNION ALL
            SELECT (SELECT min(x.member) FROM reports.member_clock x WHERE x.member > e.member) FROM each e WHERE e.member IS NOT NULL)
        SELECT e.member FROM each e WHERE e.member IS NOT NULL) m
 CROSS JOIN LATERAL (SELECT * FROM reports.member_clock y WHERE y.member = m.member ORDER BY y.id DESC LIMIT 1) c
  LEFT JOIN LATERAL (SELECT * FROM reports.member_clock z WHERE z.member = m.member AND z.step_us IS NOT NULL ORDER BY z.id DESC LIMIT 1) s ON true;
COMMENT ON VIEW reports.v_member_clock IS 'The clock of each replica against this server''s, as last sampled, and the last step that it testified; of replicas that gave a sample within a day.';

GRANT EXECUTE ON FUNCTION reports.note_clock(text, text, timestamptz, bigint, bigint, bigint, boolean) TO report_scheduler;

RESET ROLE;
