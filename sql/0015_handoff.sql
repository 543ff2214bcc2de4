-- Planned handoff ("Handoff" in docs/architecture.md): who could take over, and what is going on. ZooKeeper's
-- order alone says who leads; nothing here does. A leader leaves only when the successor has confirmed, by its
-- own place in that order, that nobody but the leader is ahead of it.

SET ROLE report_owner;

CREATE TABLE reports.handoff (
    request uuid PRIMARY KEY,
    scope reports.name NOT NULL,
    incarnation bigint NOT NULL,
    generation bigint NOT NULL,
    member text,
    successor text,
    successor_generation bigint,
    begun_at timestamptz,
    ready_at timestamptz,
    left_at timestamptz,
    released_at timestamptz,
    activated_at timestamptz,
    leader text
);
COMMENT ON TABLE reports.handoff IS 'How far a request of the kind handoff has come.';
COMMENT ON COLUMN reports.handoff.request IS 'The request.';
COMMENT ON COLUMN reports.handoff.scope IS 'Its scope.';
COMMENT ON COLUMN reports.handoff.incarnation IS 'Of the generation to leave.';
COMMENT ON COLUMN reports.handoff.generation IS 'The generation to leave: no other one does.';
COMMENT ON COLUMN reports.handoff.member IS 'Who led by it.';
COMMENT ON COLUMN reports.handoff.successor IS 'Who is to lead: named in the request, otherwise next in line when the leader began.';
COMMENT ON COLUMN reports.handoff.successor_generation IS 'Of its candidate node: those with a lower one stand aside.';
COMMENT ON COLUMN reports.handoff.begun_at IS 'When the leader took it up.';
COMMENT ON COLUMN reports.handoff.ready_at IS 'When the successor confirmed that only the leader is ahead of it and that it can take over.';
COMMENT ON COLUMN reports.handoff.left_at IS 'When the leader was told to go, and began to drain.';
COMMENT ON COLUMN reports.handoff.released_at IS 'When it had released its generation; NULL: it never did.';
COMMENT ON COLUMN reports.handoff.activated_at IS 'When the next leader began to plan. The gap is between these two.';
COMMENT ON COLUMN reports.handoff.leader IS 'Who led next.';

CREATE FUNCTION reports.handoff_patience() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT interval '3 seconds' $$;
COMMENT ON FUNCTION reports.handoff_patience() IS 'How long a leader waits for the confirmation of its successor; it leads on meanwhile.';

-- A leader says nothing of itself as a candidate, so its row is as old as its reign when that ends.
CREATE FUNCTION reports.led_until(p_candidate reports.candidate) RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT max(e.at) FROM (SELECT x.* FROM reports.leadership_event x WHERE x.scope = p_candidate.scope ORDER BY x.id DESC LIMIT 20) e
     WHERE e.member = p_candidate.member AND e.event IN ('released', 'stepped_down')
$$;
COMMENT ON FUNCTION reports.led_until(reports.candidate) IS 'When it last gave leadership up, if that was of late; NULL: it did not.';

CREATE FUNCTION reports.why_not_ready(p_candidate reports.candidate) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN p_candidate.seen_at < clock_timestamp() - reports.candidate_silence() AND reports.led_until(p_candidate) > clock_timestamp() - reports.candidate_silence()
            THEN format('member "%s" led until %s s ago, and is not ready yet to take over again', p_candidate.member,
                        round(extract(epoch FROM clock_timestamp() - reports.led_until(p_candidate)), 1))
        WHEN p_candidate.seen_at < clock_timestamp() - reports.candidate_silence()
            THEN format('member "%s" has given no sign of life for %s s: it is dead, or has no database', p_candidate.member,
                        extract(epoch FROM clock_timestamp() - p_candidate.seen_at)::integer)
        WHEN p_candidate.state = 'held' THEN concat_ws(': ', format('member "%s" is held', p_candidate.member), p_candidate.why)
        WHEN p_candidate.state = 'suspended' THEN format('member "%s" is suspended: ZooKeeper does not answer it', p_candidate.member)
    END
$$;
COMMENT ON FUNCTION reports.why_not_ready(reports.candidate) IS 'Why a candidate could not take over now; NULL: it could.';

-- Whom the leader can hand over to. Asked when the request is made and again when the leader takes it up.
CREATE FUNCTION reports.find_successor(p_scope text, p_member text, OUT fault text, OUT hint text, OUT its_member text, OUT its_generation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f reports.fence;
    c reports.candidate;
    others text;
    young boolean;
BEGIN
    SELECT * INTO f FROM reports.fence x WHERE x.scope = p_scope;
    IF f.generation = 0 OR f.released_at IS NOT NULL THEN
        fault := format('scope "%s" has no leader that could hand over', p_scope);
        hint := 'reportctl leaders shows what became of it.';
        RETURN;
    END IF;
    IF p_member = f.member THEN
        fault := format('member "%s" leads scope "%s" already', p_member, p_scope);
        hint := 'Name another one, or leave --to out.';
        RETURN;
    END IF;
    SELECT string_agg(format('"%s"', x.member), ', ' ORDER BY x.generation) INTO others FROM reports.candidate x
     WHERE x.scope = p_scope AND x.incarnation = f.incarnation AND x.generation > f.generation AND reports.why_not_ready(x) IS NULL;
    -- Who led, and who enrolled again to stand aside, is in line again after a moment; what is known of it is from before.
    young := f.established_at > clock_timestamp() - reports.candidate_silence();
    hint := CASE WHEN others IS NOT NULL THEN 'Ready are ' || others || '.'
                 WHEN young THEN format('Member "%s" leads only since %s s, and a replica that led or has just started is ready some seconds later: ask again.',
                                        f.member, round(extract(epoch FROM clock_timestamp() - f.established_at), 1))
                 WHEN EXISTS (SELECT FROM reports.candidate x WHERE x.scope = p_scope AND x.member <> f.member AND x.seen_at > clock_timestamp() - reports.candidate_silence())
                 THEN 'No other candidate of the scope is ready, though some live: reportctl leaders, and their logs, say what keeps them.'
                 ELSE 'No other candidate of the scope is ready: start another report-scheduler.' END;
    -- Next in line is the first that gives signs of life: a row of one that is gone stays for a day.
    SELECT * INTO c FROM reports.candidate x
     WHERE x.scope = p_scope AND CASE WHEN p_member IS NULL THEN x.incarnation = f.incarnation AND x.generation > f.generation ELSE x.member = p_member END
     ORDER BY x.seen_at < clock_timestamp() - reports.candidate_silence(), x.generation LIMIT 1;
    IF NOT FOUND THEN
        fault := CASE WHEN p_member IS NULL THEN format('scope "%s" has no other candidate%s', p_scope, CASE WHEN young THEN ' that is ready yet' END)
                      WHEN EXISTS (SELECT FROM reports.candidate x WHERE x.member = p_member) THEN format('member "%s" is no candidate of scope "%s"', p_member, p_scope)
                      ELSE format('member "%s" is not known', p_member) END;
        RETURN;
    END IF;
    fault := coalesce(reports.why_not_ready(c),
                      CASE WHEN c.incarnation <> f.incarnation OR c.generation <= f.generation
                           THEN format('member "%s" is not in line for scope "%s" %s', c.member, p_scope, CASE WHEN young THEN 'yet' ELSE 'now' END) END);
    its_member := c.member;
    its_generation := c.generation;
END
$$;
COMMENT ON FUNCTION reports.find_successor(text, text) IS 'The member named, or the next in line, and its generation; fault: why not.';

CREATE FUNCTION reports.check_handoff(p_scope text, p_member text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    next record;
BEGIN
    IF NOT EXISTS (SELECT FROM reports.fence f WHERE f.scope = p_scope) THEN
        RAISE EXCEPTION 'scope "%" does not exist', p_scope
            USING ERRCODE = 'no_data_found', HINT = 'reportctl status lists the scopes.';
    END IF;
    IF reports.is_held(p_scope) THEN
        RAISE EXCEPTION 'a hold stands on scope "%", so nobody leads it', p_scope
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'reportctl holds shows it.';
    END IF;
    SELECT * INTO next FROM reports.find_successor(p_scope, p_member);
    IF next.fault IS NOT NULL THEN
        RAISE EXCEPTION '%', next.fault USING ERRCODE = 'object_not_in_prerequisite_state', HINT = next.hint;
    END IF;
    RETURN p_scope;
END
$$;
COMMENT ON FUNCTION reports.check_handoff(text, text) IS 'Refuses a handoff that cannot be carried out, with the remedy; returns the scope.';

-- A replica that follows (or is held) says how it stands, and hears what is asked of it. Nothing that
-- leads depends on the answer: it may be late, lost or refused.
CREATE FUNCTION reports.follow(p_scope text, p_incarnation bigint, p_generation bigint, p_member text, p_state text, p_ahead integer,
                               p_why text, p_confirmed boolean, p_url text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    h reports.handoff;
BEGIN
    DELETE FROM reports.candidate x WHERE x.seen_at < clock_timestamp() - interval '1 day';
    INSERT INTO reports.candidate AS x (scope, member, incarnation, generation, ahead, state, why, url)
    VALUES (p_scope, p_member, p_incarnation, p_generation, p_ahead, p_state, left(nullif(p_why, ''), 120), nullif(p_url, ''))
    ON CONFLICT (scope, member) DO UPDATE
       SET incarnation = excluded.incarnation, generation = excluded.generation, ahead = excluded.ahead, state = excluded.state,
           why = excluded.why, url = excluded.url, seen_at = clock_timestamp()
     WHERE (x.incarnation, x.generation, x.state, x.ahead, x.why, x.url)
           IS DISTINCT FROM (excluded.incarnation, excluded.generation, excluded.state, excluded.ahead, excluded.why, excluded.url)
        OR x.seen_at < clock_timestamp() - interval '2 seconds';
    SELECT x.* INTO h
      FROM reports.request r JOIN reports.handoff x ON x.request = r.id JOIN reports.fence f ON f.scope = r.scope
     WHERE r.scope = p_scope AND r.state = 'pending' AND r.kind = 'handoff' AND r.deadline > clock_timestamp()
       AND x.begun_at > clock_timestamp() - reports.handoff_patience() AND x.incarnation = p_incarnation
       AND (f.incarnation, f.generation) = (x.incarnation, x.generation) AND f.released_at IS NULL
     ORDER BY x.begun_at DESC LIMIT 1;
    IF NOT FOUND OR p_state <> 'ready' OR p_generation <= h.generation OR p_generation > h.successor_generation THEN
        RETURN 'none';
    END IF;
    IF p_generation < h.successor_generation THEN
        RETURN 'aside';
    END IF;
    IF h.ready_at IS NULL AND (p_ahead IS DISTINCT FROM 1 OR p_confirmed IS NOT TRUE) THEN
        RETURN 'successor';
    END IF;
    UPDATE reports.handoff x SET ready_at = clock_timestamp() WHERE x.request = h.request AND x.ready_at IS NULL;
    IF FOUND THEN
        PERFORM pg_notify('report_handoff', p_scope);
    END IF;
    RETURN 'ready';
END
$$;
COMMENT ON FUNCTION reports.follow(text, bigint, bigint, text, text, integer, text, boolean, text) IS 'A replica that does not lead says how it stands. What a handoff asks of it: none; aside (enroll again, behind the successor); successor (it is named; p_confirmed: a quorum write was answered since it heard so); ready (that is noted).';

-- What a connection calls for the first time takes several times as long: functions are compiled, statements
-- planned, catalogues read. A successor has the time for that before the leader leaves. All of it happens to a
-- scope of its own, which nobody else ever sees.
CREATE FUNCTION reports.rehearse(p_incarnation bigint, p_member text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stage text := 'rehearsal-' || translate(gen_random_uuid()::text, '-', '');
    me uuid := gen_random_uuid();
BEGIN
    INSERT INTO reports.scope (name) VALUES (stage);
    PERFORM reports.fence_read(stage);
    PERFORM reports.establish(stage, p_incarnation, 1, me, p_member, NULL, ARRAY[NULL, NULL]::uuid[]);
    PERFORM reports.tend(stage, p_incarnation, 1, me, 500, NULL, NULL);
    PERFORM FROM reports.changes(stage, 1000, '');
    PERFORM reports.activated(stage, p_incarnation, 1, me, 0);
    PERFORM FROM reports.pending_requests(stage, 100);
    PERFORM FROM reports.due(stage, 1000, 0, NULL);
    PERFORM FROM reports.next_due(stage);
    PERFORM reports.plan_batch(stage, p_incarnation, 1, me, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '', '{}', '{}', '{}', '{}', '{}',
                               '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}');
    RAISE EXCEPTION 'rehearsed' USING ERRCODE = 'RS900';
EXCEPTION WHEN SQLSTATE 'RS900' THEN
    NULL; -- nothing of it is left
END
$$;
COMMENT ON FUNCTION reports.rehearse(bigint, text) IS 'Calls what a new leader calls first, and undoes it: afterwards the connection is quick at it.';

-- Part of answer_request: another generation leads than the one to leave.
CREATE FUNCTION reports.close_handoff(p_asked reports.request, p_handoff reports.handoff, OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f reports.fence;
    released timestamptz;
    wanted text := coalesce(p_handoff.successor, p_asked.argument);
BEGIN
    SELECT * INTO f FROM reports.fence x WHERE x.scope = p_asked.scope;
    SELECT e.at INTO released FROM reports.leadership_event e
     WHERE e.scope = p_asked.scope AND e.event = 'released' AND e.incarnation = p_handoff.incarnation AND e.generation = p_handoff.generation
     ORDER BY e.id DESC LIMIT 1;
    UPDATE reports.handoff x SET released_at = released, activated_at = f.activated_at, leader = f.member WHERE x.request = p_asked.id;
    new_state := CASE WHEN wanted IS NULL OR wanted = f.member THEN 'done' ELSE 'refused' END;
    its_answer := concat_ws('; ',
        CASE WHEN new_state = 'refused' THEN format('member "%s" did not take over', wanted) END,
        format('member "%s" leads scope "%s" with generation %s', f.member, p_asked.scope, f.generation),
        CASE WHEN p_handoff.left_at IS NULL THEN format('generation %s had ended by itself', p_handoff.generation) END,
        CASE WHEN released IS NULL THEN format('member "%s" did not release generation %s: it was killed, or lost its session', p_handoff.member, p_handoff.generation)
             ELSE format('%s ms without a leader since member "%s" released',
                         round(extract(epoch FROM f.activated_at - released) * 1000, 1), p_handoff.member) END);
END
$$;
COMMENT ON FUNCTION reports.close_handoff(reports.request, reports.handoff) IS 'What became of a handoff, told by the next leader.';

-- One step of it; the leader takes it each time that something was said. wait: nothing yet; leave: drain and
-- release. Otherwise it is answered.
CREATE FUNCTION reports.carry_out_handoff(p_asked reports.request, p_incarnation bigint, p_generation bigint,
                                          OUT its_verdict text, OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    h reports.handoff;
    next record;
    other record;
    in_the_way text;
BEGIN
    SELECT * INTO h FROM reports.handoff x WHERE x.request = p_asked.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF (h.incarnation, h.generation) <> (p_incarnation, p_generation) AND (p_asked.deadline >= clock_timestamp() OR h.left_at IS NOT NULL) THEN
        SELECT c.new_state, c.its_answer INTO new_state, its_answer FROM reports.close_handoff(p_asked, h) c;
        RETURN;
    END IF;
    new_state := 'refused';
    IF p_asked.deadline < clock_timestamp() THEN
        new_state := 'expired';
        its_answer := reports.why_expired(p_asked);
    ELSIF h.begun_at IS NULL THEN
        SELECT x.request, x.successor INTO other FROM reports.request r JOIN reports.handoff x ON x.request = r.id
         WHERE r.scope = p_asked.scope AND r.state = 'pending' AND r.kind = 'handoff' AND r.id <> p_asked.id AND x.begun_at IS NOT NULL;
        IF FOUND THEN
            its_answer := format('a handoff to member "%s" is going on (request %s): wait for that', other.successor, other.request);
            RETURN;
        END IF;
        SELECT * INTO next FROM reports.find_successor(p_asked.scope, p_asked.argument);
        IF next.fault IS NOT NULL THEN
            its_answer := concat_ws('. ', next.fault, next.hint);
            RETURN;
        END IF;
        UPDATE reports.handoff x
           SET begun_at = clock_timestamp(), successor = next.its_member, successor_generation = next.its_generation
         WHERE x.request = p_asked.id;
        PERFORM pg_notify('report_handoff', p_asked.scope);
        new_state := NULL;
        its_verdict := 'wait';
    ELSIF h.ready_at > clock_timestamp() - interval '1 second' THEN
        UPDATE reports.handoff x SET left_at = clock_timestamp() WHERE x.request = p_asked.id AND x.left_at IS NULL;
        new_state := NULL;
        its_verdict := 'leave';
    ELSIF h.begun_at > clock_timestamp() - reports.handoff_patience() AND h.ready_at IS NULL THEN
        new_state := NULL;
        its_verdict := 'wait';
    ELSE
        SELECT string_agg(format('"%s"', c.member), ', ' ORDER BY c.generation) INTO in_the_way FROM reports.candidate c
         WHERE c.scope = p_asked.scope AND c.incarnation = h.incarnation AND c.generation > h.generation AND c.generation < h.successor_generation
           AND c.seen_at > clock_timestamp() - interval '1 minute';
        its_answer := CASE WHEN h.left_at IS NOT NULL THEN format('member "%s" was disconnected while it handed over', h.member)
                           WHEN h.ready_at IS NOT NULL THEN format('member "%s" was busy when its successor was ready', h.member)
                           WHEN in_the_way IS NOT NULL THEN format('member %s, which is before "%s" in line, did not stand aside', in_the_way, h.successor)
                           ELSE format('member "%s" did not confirm within %s s that it can take over: it is dead, stopped, or cut off',
                                       h.successor, extract(epoch FROM reports.handoff_patience())::integer) END
                      || format('; member "%s" leads on with generation %s: ask again with a fresh request id', h.member, h.generation);
    END IF;
END
$$;
COMMENT ON FUNCTION reports.carry_out_handoff(reports.request, bigint, bigint) IS 'Takes a handoff one step on: wait, leave, or its answer.';

-- For who waits for it.
CREATE FUNCTION reports.handoff_progress(p_request uuid) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN h.left_at IS NOT NULL
                THEN format('member "%s" was told to go %s s ago, and member "%s" does not lead yet', h.member,
                            extract(epoch FROM clock_timestamp() - h.left_at)::integer, h.successor)
                WHEN h.begun_at IS NOT NULL THEN format('member "%s" leads on, and waits for member "%s" to be ready', h.member, h.successor) END
      FROM reports.handoff h JOIN reports.request r ON r.id = h.request AND r.state = 'pending' WHERE h.request = p_request
$$;
COMMENT ON FUNCTION reports.handoff_progress(uuid) IS 'How far a handoff that is not answered yet has come; NULL: the leader has not begun.';
GRANT EXECUTE ON FUNCTION reports.handoff_progress(uuid) TO report_reader;

GRANT EXECUTE ON FUNCTION reports.follow(text, bigint, bigint, text, text, integer, text, boolean, text), reports.rehearse(bigint, text) TO report_scheduler;
GRANT SELECT ON reports.candidate, reports.handoff TO report_scheduler, report_worker, report_reader;

RESET ROLE;
