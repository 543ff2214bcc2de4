-- Authority: the fence, who holds it, and the diary. See "A protected write" in docs/architecture.md and
-- I1, I2 and I11 in docs/guarantees.md.
--
-- A protected write takes a shared advisory lock on the scope, then the fence row FOR SHARE, then
-- compares with equality; establish takes the exclusive advisory lock first. Measured: an unlocked
-- EXISTS and FOR KEY SHARE let a zombie write through; FOR SHARE alone lets writers starve
-- establish; advisory locks alone accept a stale generation under REPEATABLE READ. So: both.

SET ROLE report_owner;

CREATE TABLE reports.ensemble (
    id text PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 128),
    incarnation bigint NOT NULL UNIQUE,
    adopted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    adopted_by text NOT NULL,
    reason text
);
COMMENT ON TABLE reports.ensemble IS 'ZooKeeper ensembles this database has accepted; generations are compared within one incarnation. The one with the highest incarnation is in force, the others are retired.';
COMMENT ON COLUMN reports.ensemble.id IS 'Content of the ensemble''s /ensemble-id node.';
COMMENT ON COLUMN reports.ensemble.incarnation IS 'Number of the ensemble''s life; the higher part of every generation.';
COMMENT ON COLUMN reports.ensemble.adopted_at IS 'When it was accepted.';
COMMENT ON COLUMN reports.ensemble.adopted_by IS 'The member that met it first, or the operator.';
COMMENT ON COLUMN reports.ensemble.reason IS 'Why the operator adopted it; NULL: it was the first one met.';

CREATE TABLE reports.ensemble_refused (
    id text NOT NULL CHECK (octet_length(id) BETWEEN 1 AND 128),
    member text NOT NULL,
    installation text CHECK (octet_length(installation) BETWEEN 1 AND 128),
    first_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, member)
) WITH (fillfactor = 50);
COMMENT ON TABLE reports.ensemble_refused IS 'Ensembles that candidates met within a day and may not lead by: not in force here (HELD ensemble_unknown; what fence rebase may adopt), or of another installation (HELD root_taken).';
COMMENT ON COLUMN reports.ensemble_refused.id IS 'Content of the ensemble''s /ensemble-id node.';
COMMENT ON COLUMN reports.ensemble_refused.member IS 'The replica that met it.';
COMMENT ON COLUMN reports.ensemble_refused.installation IS 'Whose the zookeeper_root is, when it is another installation''s: content of its /installation node. NULL: the ensemble is not in force here.';
COMMENT ON COLUMN reports.ensemble_refused.first_at IS 'Since when.';
COMMENT ON COLUMN reports.ensemble_refused.last_at IS 'When last; a replica that is HELD says so again every few seconds.';

CREATE TABLE reports.fence (
    scope reports.name PRIMARY KEY,
    incarnation bigint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 0,
    owner uuid,
    member text,
    url text CHECK (octet_length(url) BETWEEN 1 AND 255),
    established_at timestamptz,
    activated_at timestamptz,
    released_at timestamptz,
    release_reason text,
    server_id text,
    timeline integer,
    server_started_at timestamptz,
    database oid,
    mark uuid,
    CONSTRAINT owner_with_generation CHECK ((generation = 0) = (owner IS NULL))
) WITH (fillfactor = 50);
COMMENT ON TABLE reports.fence IS 'One row a scope: the generation whose writes are accepted. Never deleted; its absence is an error, never "no lock".';
COMMENT ON COLUMN reports.fence.scope IS 'The scope.';
COMMENT ON COLUMN reports.fence.incarnation IS 'Accepted incarnation; 0 before the first leader.';
COMMENT ON COLUMN reports.fence.generation IS 'Accepted generation (czxid of the leader''s candidate node); only grows within an incarnation.';
COMMENT ON COLUMN reports.fence.owner IS 'Random identity of the activation; tells an idempotent retry from a stranger with the same czxid.';
COMMENT ON COLUMN reports.fence.member IS 'Name of the replica, for people.';
COMMENT ON COLUMN reports.fence.url IS 'Where others reach its HTTP server; NULL: it told none.';
COMMENT ON COLUMN reports.fence.established_at IS 'When the generation was accepted.';
COMMENT ON COLUMN reports.fence.activated_at IS 'When the leader had loaded its state and began to plan.';
COMMENT ON COLUMN reports.fence.released_at IS 'When the leader gave up in order; no write is accepted after.';
COMMENT ON COLUMN reports.fence.release_reason IS 'Why.';
COMMENT ON COLUMN reports.fence.server_id IS 'System identifier of the cluster the leader established on; a standby and a base backup have the same.';
COMMENT ON COLUMN reports.fence.timeline IS 'Timeline it established on; a promotion begins another.';
COMMENT ON COLUMN reports.fence.server_started_at IS 'pg_postmaster_start_time() it established on. While the server''s own is another, nothing of the scope is claimed or sent: this may be a copy.';
COMMENT ON COLUMN reports.fence.database IS 'OID of the database it established on; a copy within the cluster has another.';
COMMENT ON COLUMN reports.fence.mark IS 'The newest job that ZooKeeper or the leader knew of when it established; NULL: none.';

CREATE TABLE reports.fence_pulse (
    scope reports.name PRIMARY KEY,
    beat_at timestamptz NOT NULL DEFAULT '-infinity',
    reap_not_before timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);
COMMENT ON TABLE reports.fence_pulse IS 'Sign of life of the leader, apart from the fence row so that beating it never waits for writers.';
COMMENT ON COLUMN reports.fence_pulse.scope IS 'The scope.';
COMMENT ON COLUMN reports.fence_pulse.beat_at IS 'Last fenced beat.';
COMMENT ON COLUMN reports.fence_pulse.reap_not_before IS 'No claim is reaped before: after a silence or a step of the clock, workers get one lease to renew.';

-- Two opposite steps between two beats are none to the leader, and a lease that was begun in between would end as
-- much too early as the clock was behind then. The leader's last beat, which it did compare, cannot be behind.
CREATE VIEW reports.v_lease_clock AS
SELECT p.scope, greatest(clock_timestamp(), p.beat_at) AS at FROM reports.fence_pulse p;
COMMENT ON VIEW reports.v_lease_clock IS 'When a lease that is given now begins: by this server''s clock, but not before the leader''s last sign of life.';

CREATE TABLE reports.leadership_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope reports.name NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    event text NOT NULL CHECK (event IN ('ensemble_adopted', 'established', 'activated', 'released', 'stepped_down', 'held', 'unheld', 'terminated',
                                          'hold_raised', 'hold_lifted', 'moved')),
    incarnation bigint,
    generation bigint,
    member text,
    reason text,
    detail text
);
CREATE INDEX leadership_event_scope ON reports.leadership_event (scope, id);
COMMENT ON TABLE reports.leadership_event IS 'Diary of leadership, for people.';
COMMENT ON COLUMN reports.leadership_event.id IS 'Order of writing.';
COMMENT ON COLUMN reports.leadership_event.scope IS 'The scope.';
COMMENT ON COLUMN reports.leadership_event.at IS 'When.';
COMMENT ON COLUMN reports.leadership_event.event IS 'What happened.';
COMMENT ON COLUMN reports.leadership_event.incarnation IS 'Incarnation of the actor.';
COMMENT ON COLUMN reports.leadership_event.generation IS 'Generation of the actor.';
COMMENT ON COLUMN reports.leadership_event.member IS 'Name of the replica.';
COMMENT ON COLUMN reports.leadership_event.reason IS 'Why: stopped, suspended, session_expired, fenced ...';
COMMENT ON COLUMN reports.leadership_event.detail IS 'More, for people.';

CREATE TABLE reports.fence_rejection (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    scope reports.name NOT NULL,
    operation text NOT NULL,
    incarnation bigint NOT NULL,
    generation bigint NOT NULL,
    owner uuid,
    stored_incarnation bigint NOT NULL,
    stored_generation bigint NOT NULL,
    application_name text NOT NULL
);
CREATE INDEX fence_rejection_scope ON reports.fence_rejection (scope, id);
COMMENT ON TABLE reports.fence_rejection IS 'A protected write that was refused because its generation is not the accepted one.';
COMMENT ON COLUMN reports.fence_rejection.id IS 'Order of writing.';
COMMENT ON COLUMN reports.fence_rejection.at IS 'When.';
COMMENT ON COLUMN reports.fence_rejection.scope IS 'The scope.';
COMMENT ON COLUMN reports.fence_rejection.operation IS 'The function that refused.';
COMMENT ON COLUMN reports.fence_rejection.incarnation IS 'What the caller brought.';
COMMENT ON COLUMN reports.fence_rejection.generation IS 'What the caller brought.';
COMMENT ON COLUMN reports.fence_rejection.owner IS 'What the caller brought.';
COMMENT ON COLUMN reports.fence_rejection.stored_incarnation IS 'What was accepted then.';
COMMENT ON COLUMN reports.fence_rejection.stored_generation IS 'What was accepted then.';
COMMENT ON COLUMN reports.fence_rejection.application_name IS 'The caller''s connection.';

CREATE TABLE reports.backend (
    pid integer NOT NULL,
    backend_start timestamptz NOT NULL,
    scope reports.name NOT NULL,
    incarnation bigint NOT NULL,
    generation bigint NOT NULL,
    owner uuid NOT NULL,
    purpose text NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (pid, backend_start, scope)
);
COMMENT ON TABLE reports.backend IS 'Server processes of leaders, so that a successor can end those of lower generations only.';
COMMENT ON COLUMN reports.backend.pid IS 'pg_backend_pid().';
COMMENT ON COLUMN reports.backend.backend_start IS 'Start of that process; a recycled pid has another.';
COMMENT ON COLUMN reports.backend.scope IS 'The scope it writes.';
COMMENT ON COLUMN reports.backend.incarnation IS 'Its incarnation.';
COMMENT ON COLUMN reports.backend.generation IS 'Its generation.';
COMMENT ON COLUMN reports.backend.owner IS 'Its activation.';
COMMENT ON COLUMN reports.backend.purpose IS 'scope or relay.';
COMMENT ON COLUMN reports.backend.registered_at IS 'When.';

CREATE TABLE reports.member_clock (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    member text NOT NULL CHECK (octet_length(member) BETWEEN 1 AND 253),
    boot text NOT NULL CHECK (octet_length(boot) BETWEEN 1 AND 64),
    boot_us bigint NOT NULL,
    offset_us bigint NOT NULL,
    round_trip_us bigint NOT NULL CHECK (round_trip_us >= 0),
    synchronised boolean,
    step_us bigint,
    verdict text CHECK (verdict IN ('waits', 'raised', 'known', 'own')),
    CONSTRAINT verdict_of_step CHECK ((verdict IS NULL) = (step_us IS NULL))
);
CREATE INDEX member_clock_member ON reports.member_clock (member, id);
COMMENT ON TABLE reports.member_clock IS 'Samples of this server''s clock by the clocks of the replicas: the evidence of the clock guard, see 0017. One a member in 15 seconds, more often while something is to be judged; old ones are pruned.';
COMMENT ON COLUMN reports.member_clock.id IS 'Order of writing, which no clock tells.';
COMMENT ON COLUMN reports.member_clock.at IS 'What this server''s clock showed.';
COMMENT ON COLUMN reports.member_clock.member IS 'Name of the replica.';
COMMENT ON COLUMN reports.member_clock.boot IS 'Of its machine: replicas of one boot share one clock, and are one witness.';
COMMENT ON COLUMN reports.member_clock.boot_us IS 'What its machine''s clock since boot showed, which is never stepped, in the middle of the question.';
COMMENT ON COLUMN reports.member_clock.offset_us IS 'Its wall clock minus this server''s, in microseconds.';
COMMENT ON COLUMN reports.member_clock.round_trip_us IS 'How long the question took: all is known to half of this.';
COMMENT ON COLUMN reports.member_clock.synchronised IS 'Its kernel says that its wall clock is kept to less than a second by a time service; NULL: the kernel may not be asked.';
COMMENT ON COLUMN reports.member_clock.step_us IS 'Since its sample before, this server''s clock went so much further than its own: it testifies a step. NULL: the two agree.';
COMMENT ON COLUMN reports.member_clock.verdict IS 'What came of that: waits (for other witnesses), raised (a hold), known (a hold had been raised for it), own (others saw no step: the machine''s own clock is to blame).';

CREATE TABLE reports.candidate (
    scope reports.name NOT NULL,
    member text NOT NULL CHECK (octet_length(member) BETWEEN 1 AND 253),
    incarnation bigint NOT NULL,
    generation bigint NOT NULL,
    ahead integer,
    state text NOT NULL CHECK (state IN ('ready', 'suspended', 'held')),
    why text CHECK (octet_length(why) <= 500),
    url text CHECK (octet_length(url) BETWEEN 1 AND 255),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, member)
) WITH (fillfactor = 50);
COMMENT ON TABLE reports.candidate IS 'What the replicas that do not lead last said of themselves, for a day. For people and for refusals: who leads next is decided in ZooKeeper.';
COMMENT ON COLUMN reports.candidate.scope IS 'The scope.';
COMMENT ON COLUMN reports.candidate.member IS 'Name of the replica.';
COMMENT ON COLUMN reports.candidate.incarnation IS 'Of its ensemble.';
COMMENT ON COLUMN reports.candidate.generation IS 'Of its candidate node; 0: it has none.';
COMMENT ON COLUMN reports.candidate.ahead IS 'How many candidates are before it; NULL: it is not in line.';
COMMENT ON COLUMN reports.candidate.state IS 'ready; suspended: ZooKeeper does not answer it; held.';
COMMENT ON COLUMN reports.candidate.why IS 'held: the reason.';
COMMENT ON COLUMN reports.candidate.url IS 'Its advertised_url; NULL: it told none.';
COMMENT ON COLUMN reports.candidate.seen_at IS 'When it said so; it does each 5 seconds while it has a database.';

-- Two of its signs of life (SCOPE_PING_MS in scheduler/scope/scope_shell.h, 5 seconds), and some.
CREATE FUNCTION reports.candidate_silence() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT interval '12 seconds' $$;
COMMENT ON FUNCTION reports.candidate_silence() IS 'How long a replica may be silent and still counts as there.';

CREATE TABLE reports.hold (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope reports.name,
    queue reports.name,
    cause text NOT NULL DEFAULT 'operator' CHECK (cause IN ('operator', 'zxid_regressed', 'database_rewound', 'clock_hold')),
    reason text NOT NULL CHECK (octet_length(reason) BETWEEN 1 AND 500),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    raised_by text NOT NULL DEFAULT session_user,
    lifted_at timestamptz,
    lifted_by text,
    mark uuid,
    step_us bigint,
    stepped_at timestamptz,
    evidence bigint,
    CONSTRAINT step_of_clock_hold CHECK ((cause = 'clock_hold') = (step_us IS NOT NULL AND stepped_at IS NOT NULL AND evidence IS NOT NULL)),
    CONSTRAINT mark_of_rewound CHECK ((mark IS NOT NULL) = (cause = 'database_rewound')),
    CONSTRAINT scope_or_queue CHECK (scope IS NULL OR queue IS NULL)
);
CREATE INDEX hold_active ON reports.hold (scope) WHERE lifted_at IS NULL;
COMMENT ON TABLE reports.hold IS 'A stop ordered for a scope or the installation: planning and claiming refuse while it stands. On a queue only claiming does.';
COMMENT ON COLUMN reports.hold.id IS 'Number.';
COMMENT ON COLUMN reports.hold.scope IS 'The scope; NULL, and no queue: the whole installation.';
COMMENT ON COLUMN reports.hold.queue IS 'The queue, of all scopes; planning goes on.';
COMMENT ON COLUMN reports.hold.cause IS 'operator: somebody ordered it; the others are guards that a scheduler raised, see docs/operations.md.';
COMMENT ON COLUMN reports.hold.reason IS 'Why.';
COMMENT ON COLUMN reports.hold.since IS 'When it was raised.';
COMMENT ON COLUMN reports.hold.raised_by IS 'By whom.';
COMMENT ON COLUMN reports.hold.lifted_at IS 'When it was lifted; NULL: in force.';
COMMENT ON COLUMN reports.hold.lifted_by IS 'By whom.';
COMMENT ON COLUMN reports.hold.step_us IS 'clock_hold: how far this server''s clock is from where it would be, by the replicas'' clocks, in microseconds; further steps are added.';
COMMENT ON COLUMN reports.hold.stepped_at IS 'clock_hold: what it showed at the first sample after the latest step.';
COMMENT ON COLUMN reports.hold.evidence IS 'clock_hold: that sample, in member_clock.';
COMMENT ON COLUMN reports.hold.mark IS 'database_rewound: the job that should be known. Once lifted, it, older ones and all that were planned before the hold are not asked for again.';

-- The fence row is made with its scope and stays (I2).
CREATE FUNCTION reports.make_fence() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO reports.fence (scope) VALUES (NEW.name);
    INSERT INTO reports.fence_pulse (scope) VALUES (NEW.name);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.make_fence() IS 'Trigger on scope: makes the fence row with it.';
CREATE TRIGGER make_fence AFTER INSERT ON reports.scope
    FOR EACH ROW EXECUTE FUNCTION reports.make_fence();

CREATE FUNCTION reports.keep_scope() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'scopes cannot be deleted: their fences must outlive every leader'
            USING ERRCODE = 'object_in_use', HINT = 'Delete their schedules instead; an empty scope costs nothing.';
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.name = OLD.name THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'scope "%" cannot be deleted or renamed: its fence must outlive every leader', OLD.name
        USING ERRCODE = 'object_in_use', HINT = 'Delete its schedules instead; an empty scope costs nothing.';
END
$$;
COMMENT ON FUNCTION reports.keep_scope() IS 'Trigger on scope: refuses deletion and renaming.';
CREATE TRIGGER keep_scope BEFORE DELETE OR UPDATE ON reports.scope
    FOR EACH ROW EXECUTE FUNCTION reports.keep_scope();
CREATE TRIGGER keep_scopes BEFORE TRUNCATE ON reports.scope
    FOR EACH STATEMENT EXECUTE FUNCTION reports.keep_scope();

CREATE FUNCTION reports.keep_fence() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'fence rows are never deleted' USING ERRCODE = 'object_in_use';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'the fence row of scope "%" is never deleted', OLD.scope USING ERRCODE = 'object_in_use';
    END IF;
    IF NEW.scope <> OLD.scope THEN
        RAISE EXCEPTION 'the fence row of scope "%" is never renamed', OLD.scope USING ERRCODE = 'object_in_use';
    END IF;
    IF (NEW.incarnation, NEW.generation) < (OLD.incarnation, OLD.generation) THEN
        RAISE EXCEPTION 'the fence of scope "%" only grows: % would follow %', OLD.scope,
            (NEW.incarnation, NEW.generation), (OLD.incarnation, OLD.generation) USING ERRCODE = 'check_violation';
    END IF;
    IF (NEW.incarnation, NEW.generation) = (OLD.incarnation, OLD.generation)
       AND (NEW.owner IS DISTINCT FROM OLD.owner OR (OLD.released_at IS NOT NULL AND NEW.released_at IS NULL)) THEN
        RAISE EXCEPTION 'the fence of scope "%": generation % has one owner and is released once', OLD.scope,
            (OLD.incarnation, OLD.generation) USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION reports.keep_fence() IS 'Trigger on fence: the last line of I2, also against a superuser''s slip.';
CREATE TRIGGER keep_fence BEFORE DELETE OR UPDATE ON reports.fence
    FOR EACH ROW EXECUTE FUNCTION reports.keep_fence();
CREATE TRIGGER keep_fences BEFORE TRUNCATE ON reports.fence
    FOR EACH STATEMENT EXECUTE FUNCTION reports.keep_fence();

INSERT INTO reports.scope (name, description) VALUES ('main', 'Where schedules go unless they say otherwise.');

CREATE FUNCTION reports.scope_lock_key(p_scope text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT hashtextextended('reports.scope:' || p_scope, 0) $$;
COMMENT ON FUNCTION reports.scope_lock_key(text) IS 'Advisory lock key of a scope.';

-- Called first by every protected function. False: refused, and recorded; the caller then writes
-- nothing and answers `fenced`. VOLATILE, so that each statement inside sees what was committed
-- while it waited for the locks.
CREATE FUNCTION reports.fence_holds(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_operation text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f reports.fence;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(reports.scope_lock_key(p_scope));
    SELECT * INTO f FROM reports.fence WHERE scope = p_scope FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'scope "%" has no fence row', p_scope
            USING ERRCODE = 'RS001', HINT = 'Insert the scope into reports.scope, or remove it from scopes in scheduler.conf.';
    END IF;
    IF f.incarnation = p_incarnation AND f.generation = p_generation AND f.owner = p_owner AND f.released_at IS NULL THEN
        RETURN true;
    END IF;
    INSERT INTO reports.fence_rejection
        (scope, operation, incarnation, generation, owner, stored_incarnation, stored_generation, application_name)
    VALUES (p_scope, p_operation, p_incarnation, p_generation, p_owner, f.incarnation, f.generation,
            current_setting('application_name'));
    RETURN false;
END
$$;
COMMENT ON FUNCTION reports.fence_holds(text, bigint, bigint, uuid, text) IS 'Takes the scope''s locks and compares; records a refusal.';

-- Whether a hold is in force is asked here and nowhere else, except where a hold is lifted, which locks its row. What a
-- hold forbids: is_held (a scope's planning, answers, deliveries), claims_are_held, scopes_not_to_claim and
-- queues_not_to_claim (claims).
CREATE VIEW reports.v_hold_history AS
SELECT h.id,
       CASE WHEN h.queue IS NOT NULL THEN 'queue' WHEN h.scope IS NOT NULL THEN 'scope' ELSE 'installation' END AS kind,
       coalesce(h.queue, h.scope, 'all') AS subject,
       h.scope, h.queue, h.reason, h.since AS since_at, h.raised_by, h.lifted_at, h.lifted_by, h.cause, h.mark
  FROM reports.hold h;
COMMENT ON VIEW reports.v_hold_history IS 'All holds there have been; lifted_at NULL: in force.';

CREATE VIEW reports.v_hold AS
SELECT h.id, h.kind, h.subject, h.scope, h.queue, h.reason, h.since_at, h.raised_by, h.cause
  FROM reports.v_hold_history h
 WHERE h.lifted_at IS NULL;
COMMENT ON VIEW reports.v_hold IS 'Holds in force, on the installation, a scope or a queue (kind).';

CREATE FUNCTION reports.is_held(p_scope text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ -- which keeps its plan
BEGIN
    RETURN EXISTS (SELECT FROM reports.v_hold h WHERE h.queue IS NULL AND (h.scope IS NULL OR h.scope = p_scope));
END
$$;
COMMENT ON FUNCTION reports.is_held(text) IS 'Does a hold stand on the scope or the installation?';

-- Not by pg_control_checkpoint(), which tells the old one until the first checkpoint after a promotion.
CREATE FUNCTION reports.timeline() RETURNS integer
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$ SELECT CASE WHEN NOT pg_is_in_recovery() THEN ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer END $$;
COMMENT ON FUNCTION reports.timeline() IS 'Timeline the server writes; NULL: it is a standby.';

-- The clone guard, asked by each claim, so it reads no file. The timeline is not compared: it changes only
-- by a promotion, and a server is promoted once in its life, so what was recorded on another timeline was
-- recorded on another server, which was started at another time.
CREATE VIEW reports.v_moved_scope AS
SELECT f.scope, f.server_id, f.timeline, f.server_started_at AS established_on_at, pg_postmaster_start_time() AS server_started_at
  FROM reports.fence f
 WHERE f.server_started_at <> pg_postmaster_start_time()
    OR f.database <> (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
COMMENT ON VIEW reports.v_moved_scope IS 'Scopes whose leader established on another server or database than this one (before a restart, a failover, a copy), and no leader has looked at this one yet: nothing of them is claimed or sent.';

CREATE FUNCTION reports.time_of_job(p_job uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT to_timestamp(('x0000' || left(translate(p_job::text, '-', ''), 12))::bit(64)::bigint / 1000.0) $$;
COMMENT ON FUNCTION reports.time_of_job(uuid) IS 'When a job was planned, by the database clock: its id is a UUIDv7.';

-- The high-water mark: jobs that were planned and acknowledged, as ZooKeeper and the leader remember
-- them. Jobs are never deleted, and commits are lost from the newest on, so one that is there proves
-- that all before it are. A hold that was lifted forgives what had been planned before it was raised: each
-- replica remembers another job of the same loss, for as long as it lives.
CREATE FUNCTION reports.job_not_known(p_scope text, p_jobs uuid[]) RETURNS uuid
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT m.id FROM unnest(p_jobs) AS m (id)
             WHERE m.id IS NOT NULL
               AND NOT EXISTS (SELECT FROM reports.job j WHERE j.id = m.id)
               AND NOT EXISTS (SELECT FROM reports.hold h
                                WHERE h.scope = p_scope AND h.cause = 'database_rewound' AND h.lifted_at IS NOT NULL
                                  AND (h.mark >= m.id OR h.since >= reports.time_of_job(m.id)))
             ORDER BY m.id DESC LIMIT 1);
END
$$;
COMMENT ON FUNCTION reports.job_not_known(text, uuid[]) IS 'The newest of the jobs that this database should know and does not; NULL: it knows them, or a hold for it was lifted.';

-- Guards raise a hold themselves. One of a cause stands on a scope at a time.
CREATE FUNCTION reports.raise_guard(p_scope text, p_cause text, p_reason text, p_member text, p_mark uuid) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('reports.hold:' || p_scope, 0));
    IF EXISTS (SELECT FROM reports.v_hold h WHERE h.scope = p_scope AND h.cause = p_cause) THEN
        RETURN;
    END IF;
    INSERT INTO reports.hold (scope, cause, reason, raised_by, mark)
    VALUES (p_scope, p_cause, p_reason, coalesce(nullif(p_member, ''), session_user), p_mark) RETURNING id INTO made;
    INSERT INTO reports.leadership_event (scope, event, member, reason, detail)
    VALUES (p_scope, 'hold_raised', p_member, p_cause, format('hold %s on the scope: %s', made, p_reason));
END
$$;
COMMENT ON FUNCTION reports.raise_guard(text, text, text, text, uuid) IS 'A guard puts a hold on a scope.';

-- Operators stop a scope, a queue or all. Not fenced: a stop must be possible when nobody leads.
CREATE FUNCTION reports.raise_hold(p_scope text, p_queue text, p_reason text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    made bigint;
BEGIN
    IF p_scope IS NOT NULL AND p_queue IS NOT NULL THEN
        RAISE EXCEPTION 'a hold is on a scope or on a queue, not on both'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Raise two holds.';
    END IF;
    IF p_scope IS NOT NULL AND NOT EXISTS (SELECT FROM reports.scope s WHERE s.name = p_scope) THEN
        RAISE EXCEPTION 'scope "%" does not exist', p_scope
            USING ERRCODE = 'no_data_found', HINT = 'reportctl status lists the scopes.';
    END IF;
    IF p_queue IS NOT NULL AND NOT EXISTS (SELECT FROM reports.queue q WHERE q.name = p_queue) THEN
        RAISE EXCEPTION 'queue "%" does not exist', p_queue
            USING ERRCODE = 'no_data_found', HINT = 'reportctl queues lists them.';
    END IF;
    IF coalesce(btrim(p_reason), '') = '' OR octet_length(p_reason) > 500 THEN
        RAISE EXCEPTION 'a hold needs a reason of 1 to 500 bytes'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Say why, for whoever has to lift it.';
    END IF;
    INSERT INTO reports.hold (scope, queue, reason) VALUES (p_scope, p_queue, p_reason) RETURNING id INTO made;
    INSERT INTO reports.leadership_event (scope, event, reason, detail)
    SELECT s.name, 'hold_raised', p_reason,
           format('hold %s on %s, by %s', made, CASE WHEN p_scope IS NULL THEN 'the installation' ELSE 'the scope' END, session_user)
      FROM reports.scope s WHERE p_queue IS NULL AND (p_scope IS NULL OR s.name = p_scope);
    RETURN made;
END
$$;
COMMENT ON FUNCTION reports.raise_hold(text, text, text) IS 'Orders a stop for a scope, a queue, or (both NULL) the installation; returns its number.';

CREATE FUNCTION reports.lift_hold(p_id bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    h reports.hold;
BEGIN
    SELECT * INTO h FROM reports.hold WHERE id = p_id FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no hold %', p_id
            USING ERRCODE = 'no_data_found', HINT = 'reportctl holds lists those that stand.';
    END IF;
    IF h.lifted_at IS NOT NULL THEN
        RAISE EXCEPTION 'hold % was lifted by % at %', p_id, h.lifted_by, date_trunc('second', h.lifted_at)
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'reportctl holds lists those that stand.';
    END IF;
    IF h.cause = 'zxid_regressed' THEN
        RAISE EXCEPTION 'hold % stands because the ensemble numbers from lower down; lifted, it would be raised again at once', p_id
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'reportctl fence rebase lifts it.';
    END IF;
    UPDATE reports.hold SET lifted_at = clock_timestamp(), lifted_by = session_user WHERE id = p_id;
    INSERT INTO reports.leadership_event (scope, event, reason, detail)
    SELECT s.name, 'hold_lifted', h.reason,
           format('hold %s on %s, by %s', h.id, CASE WHEN h.scope IS NULL THEN 'the installation' ELSE 'the scope' END, session_user)
      FROM reports.scope s WHERE h.queue IS NULL AND (h.scope IS NULL OR s.name = h.scope);
END
$$;
COMMENT ON FUNCTION reports.lift_hold(bigint) IS 'Ends a hold that stands.';

-- For people, and for fence rebase. Told each second by each replica: written now and then.
CREATE FUNCTION reports.root_refused(p_ensemble text, p_member text, p_installation text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM reports.ensemble_refused r WHERE r.last_at < clock_timestamp() - interval '1 day';
    INSERT INTO reports.ensemble_refused AS r (id, member, installation)
    SELECT p_ensemble, p_member, p_installation WHERE (SELECT count(*) FROM reports.ensemble_refused) < 1000
    ON CONFLICT (id, member) DO UPDATE SET last_at = clock_timestamp(), installation = p_installation
     WHERE r.last_at < clock_timestamp() - interval '5 seconds' OR r.installation IS DISTINCT FROM p_installation;
END
$$;
COMMENT ON FUNCTION reports.root_refused(text, text, text) IS 'Records an ensemble that a member may not lead by: its zookeeper_root is of another installation, or (NULL) it is not in force here.';

CREATE FUNCTION reports.ensemble_meet(p_ensemble text, p_member text, OUT verdict text, OUT incarnation bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    newest bigint;
BEGIN
    SELECT max(e.incarnation), max(e.incarnation) FILTER (WHERE e.id = p_ensemble) INTO newest, incarnation FROM reports.ensemble e;
    IF newest IS NULL THEN
        -- Two candidates of a new installation may arrive together; the second must see the first's row.
        LOCK TABLE reports.ensemble IN SHARE ROW EXCLUSIVE MODE;
        SELECT max(e.incarnation), max(e.incarnation) FILTER (WHERE e.id = p_ensemble) INTO newest, incarnation FROM reports.ensemble e;
    END IF;
    IF newest IS NULL THEN
        INSERT INTO reports.ensemble (id, incarnation, adopted_by) VALUES (p_ensemble, 1, p_member);
        INSERT INTO reports.leadership_event (scope, event, incarnation, member, detail)
        SELECT name, 'ensemble_adopted', 1, p_member, 'first ensemble met: ' || p_ensemble FROM reports.scope;
        verdict := 'adopted';
        incarnation := 1;
        RETURN;
    END IF;
    verdict := CASE WHEN incarnation = newest THEN 'known' WHEN incarnation IS NOT NULL THEN 'retired' ELSE 'unknown' END;
    IF verdict = 'known' THEN
        RETURN;
    END IF;
    incarnation := NULL;
    PERFORM reports.root_refused(p_ensemble, p_member, NULL);
END
$$;
COMMENT ON FUNCTION reports.ensemble_meet(text, text) IS 'Maps an ensemble to its incarnation: known, adopted (the database knew none), unknown, retired (another was adopted since). The last two are recorded.';

-- A restored ensemble, proved: the member read generation p_read of this incarnation first, and a node
-- that it made afterwards got a number that is not above it. Nothing is fenced here: nobody can write with
-- such a number; but that it is so must be seen, by every replica, until somebody decides.
CREATE FUNCTION reports.prove_regressed(p_scope text, p_incarnation bigint, p_generation bigint, p_read bigint, p_member text)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f reports.fence;
BEGIN
    SELECT * INTO f FROM reports.fence x WHERE x.scope = p_scope;
    IF NOT FOUND OR f.incarnation <> p_incarnation OR p_generation IS NULL OR p_read IS NULL
       OR p_generation > p_read OR p_read > f.generation THEN
        RETURN false;
    END IF;
    PERFORM reports.raise_guard(p_scope, 'zxid_regressed',
        format('the ZooKeeper ensemble gave number %s to a node after number %s had been in use: it was restored from an older state', p_generation, p_read),
        p_member, NULL);
    RETURN true;
END
$$;
COMMENT ON FUNCTION reports.prove_regressed(text, bigint, bigint, bigint, text) IS 'Puts the hold zxid_regressed on a scope, if the evidence agrees with the fence row.';

-- Which ensemble a rebase means when none is named: the one that waiting candidates see, or the one in
-- force when it was restored from an older state.
CREATE FUNCTION reports.rebase_target(p_ensemble text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    met text[] := ARRAY(SELECT DISTINCT r.id FROM reports.ensemble_refused r
                          WHERE r.last_at > clock_timestamp() - interval '30 seconds' AND r.installation IS NULL ORDER BY r.id);
BEGIN
    IF EXISTS (SELECT FROM reports.v_hold h WHERE h.cause = 'zxid_regressed') THEN
        met := met || ARRAY(SELECT e.id FROM reports.ensemble e ORDER BY e.incarnation DESC LIMIT 1);
    END IF;
    IF p_ensemble = ANY (met) OR (p_ensemble IS NULL AND cardinality(met) = 1) THEN
        RETURN coalesce(p_ensemble, met[1]);
    END IF;
    IF p_ensemble IS NULL AND cardinality(met) > 1 THEN
        RAISE EXCEPTION 'schedulers see % ensembles: %', cardinality(met), array_to_string(met, ', ')
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Stop the schedulers that are connected to the wrong one, or name it with --ensemble.';
    END IF;
    RAISE EXCEPTION '%', CASE WHEN p_ensemble IS NULL THEN 'no scheduler is refused for its ensemble, so there is nothing to adopt'
                              ELSE format('no scheduler that is running is refused for ensemble "%s"', p_ensemble) END
        USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Start a report-scheduler that is connected to the ensemble to adopt; reportctl fence show lists those that were met.';
END
$$;
COMMENT ON FUNCTION reports.rebase_target(text) IS 'The ensemble that a rebase adopts; refuses when that is not clear.';

CREATE FUNCTION reports.holders_of(p_scope text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(string_agg(format('backend %s (%s)', x.pid, coalesce(nullif(x.application_name, ''), 'no name')), ', ' ORDER BY x.pid), 'another session')
      FROM (SELECT DISTINCT l.pid, a.application_name
              FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
             WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid()
               AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
               AND (l.classid::bigint << 32 | l.objid::bigint) = reports.scope_lock_key(p_scope)
             LIMIT 10) x
$$;
COMMENT ON FUNCTION reports.holders_of(text) IS 'Who has the advisory lock of a scope now, for people.';

-- The installation goes over to another ensemble, or to a new life of the same one. All fence rows move to
-- the new incarnation in this transaction, so whoever led by the old one is refused from its commit on.
CREATE FUNCTION reports.rebase(p_ensemble text, p_reason text, p_force boolean, OUT ensemble text, OUT incarnation bigint, OUT scopes integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
    alive record;
    its_scope text;
BEGIN
    IF coalesce(btrim(p_reason), '') = '' OR octet_length(p_reason) > 500 THEN
        RAISE EXCEPTION 'a rebase needs a reason of 1 to 500 bytes'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Say what became of the old ensemble.';
    END IF;
    LOCK TABLE reports.ensemble IN SHARE ROW EXCLUSIVE MODE;
    ensemble := reports.rebase_target(p_ensemble);
    SELECT f.scope, f.member, extract(epoch FROM clock_timestamp() - p.beat_at)::integer AS age INTO alive
      FROM reports.fence f JOIN reports.fence_pulse p USING (scope)
     WHERE f.generation > 0 AND f.released_at IS NULL AND p.beat_at > clock_timestamp() - interval '20 seconds'
     ORDER BY f.scope LIMIT 1;
    IF FOUND AND p_force IS NOT TRUE THEN
        RAISE EXCEPTION 'scope "%" is led by member % of the ensemble in force, which gave a sign of life % s ago', alive.scope, alive.member, alive.age
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Stop the schedulers of the old ensemble first. With --force its leaders are fenced at once, and are HELD.';
    END IF;
    BEGIN
        FOR its_scope IN SELECT f.scope FROM reports.fence f ORDER BY f.scope LOOP
            PERFORM pg_advisory_xact_lock(reports.scope_lock_key(its_scope));
            PERFORM FROM reports.fence f WHERE f.scope = its_scope FOR UPDATE;
        END LOOP;
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION 'scope "%" is held by %: nothing was changed', its_scope, reports.holders_of(its_scope)
            USING ERRCODE = 'lock_not_available', HINT = 'Repeat it; if that goes on, end that session: SELECT pg_terminate_backend(PID).';
    END;
    incarnation := (SELECT greatest(max(e.incarnation), (SELECT max(f.incarnation) FROM reports.fence f)) + 1 FROM reports.ensemble e);
    INSERT INTO reports.ensemble AS e (id, incarnation, adopted_by, reason) VALUES (ensemble, incarnation, session_user, p_reason)
    ON CONFLICT (id) DO UPDATE
       SET incarnation = excluded.incarnation, adopted_by = excluded.adopted_by, reason = excluded.reason, adopted_at = clock_timestamp();
    UPDATE reports.fence f
       SET incarnation = rebase.incarnation, generation = 0, owner = NULL, member = NULL, url = NULL, activated_at = NULL,
           released_at = coalesce(f.released_at, clock_timestamp()), release_reason = 'rebased';
    GET DIAGNOSTICS scopes = ROW_COUNT;
    INSERT INTO reports.leadership_event (scope, event, incarnation, reason, detail)
    SELECT f.scope, 'ensemble_adopted', rebase.incarnation, p_reason,
           format('%s, by %s%s', rebase.ensemble, session_user, CASE WHEN p_force THEN ', by force' ELSE '' END) FROM reports.fence f;
    INSERT INTO reports.leadership_event (scope, event, reason, detail)
    SELECT h.scope, 'hold_lifted', h.cause, format('hold %s on the scope, by %s: rebased', h.id, session_user)
      FROM reports.hold h WHERE h.cause = 'zxid_regressed' AND h.lifted_at IS NULL;
    UPDATE reports.hold h SET lifted_at = clock_timestamp(), lifted_by = session_user
     WHERE h.cause = 'zxid_regressed' AND h.lifted_at IS NULL;
    DELETE FROM reports.ensemble_refused r WHERE r.id = rebase.ensemble;
END
$$;
COMMENT ON FUNCTION reports.rebase(text, text, boolean) IS 'Adopts an ensemble, with the next incarnation, for all scopes. Refuses while a leader of the one in force gives signs of life, unless forced.';

CREATE FUNCTION reports.register_self(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_purpose text)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM reports.backend b
     WHERE b.scope = p_scope
       AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.pid = b.pid AND a.backend_start = b.backend_start);
    INSERT INTO reports.backend (pid, backend_start, scope, incarnation, generation, owner, purpose)
    SELECT pg_backend_pid(), a.backend_start, p_scope, p_incarnation, p_generation, p_owner, p_purpose
      FROM pg_stat_activity a WHERE a.pid = pg_backend_pid() AND a.backend_start IS NOT NULL
    ON CONFLICT (pid, backend_start, scope) DO UPDATE
       SET incarnation = excluded.incarnation, generation = excluded.generation, owner = excluded.owner,
           purpose = excluded.purpose, registered_at = clock_timestamp();
END
$$;
COMMENT ON FUNCTION reports.register_self(text, bigint, bigint, uuid, text) IS 'Writes the calling backend into backend and sweeps rows of ended ones. A session whose own activity row the owner may not read (a superuser''s) is not registered.';

-- Part of establish: what the leader stands on, so that a copy of the database is told from it.
CREATE FUNCTION reports.note_server(p_scope text, p_marks uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f reports.fence;
    here reports.fence;
BEGIN
    SELECT * INTO STRICT f FROM reports.fence x WHERE x.scope = p_scope;
    here.server_id := (SELECT c.system_identifier::text FROM pg_control_system() c);
    here.timeline := reports.timeline();
    here.server_started_at := pg_postmaster_start_time();
    here.database := (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
    here.mark := (SELECT m.id FROM unnest(p_marks) AS m (id) WHERE m.id IS NOT NULL ORDER BY m.id DESC LIMIT 1);
    IF (f.server_id, f.timeline, f.server_started_at, f.database) IS DISTINCT FROM (here.server_id, here.timeline, here.server_started_at, here.database)
       OR f.mark IS DISTINCT FROM here.mark THEN
        UPDATE reports.fence x
           SET server_id = here.server_id, timeline = here.timeline, server_started_at = here.server_started_at, database = here.database,
               mark = here.mark
         WHERE x.scope = p_scope;
    END IF;
    IF (f.server_started_at, f.database) IS DISTINCT FROM (here.server_started_at, here.database) AND f.server_started_at IS NOT NULL THEN
        INSERT INTO reports.leadership_event (scope, event, incarnation, generation, member, detail)
        VALUES (p_scope, 'moved', f.incarnation, f.generation, f.member,
                format('the server is another since the last leader established: started at %s, timeline %s%s%s',
                       to_char(here.server_started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), here.timeline,
                       CASE WHEN f.timeline <> here.timeline THEN format(' (was %s)', f.timeline) ELSE '' END,
                       CASE WHEN f.server_id <> here.server_id THEN ', another cluster' WHEN f.database <> here.database THEN ', another database' ELSE '' END));
    END IF;
END
$$;
COMMENT ON FUNCTION reports.note_server(text, uuid[]) IS 'Records server, timeline, start time and database that the leader establishes on; a change stands in the diary.';

-- The barrier (I11): with the exclusive lock held nothing older is running; what it wrote is
-- visible to the load that follows, and what comes later is refused.
CREATE FUNCTION reports.establish(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_member text,
                                  p_url text DEFAULT NULL, p_marks uuid[] DEFAULT '{}',
                                  OUT verdict text, OUT stored_incarnation bigint, OUT stored_generation bigint,
                                  OUT stored_member text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    f reports.fence;
    again boolean;
    newest uuid;
BEGIN
    PERFORM pg_advisory_xact_lock(reports.scope_lock_key(p_scope));
    SELECT * INTO f FROM reports.fence x WHERE x.scope = p_scope FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'scope "%" has no fence row', p_scope
            USING ERRCODE = 'RS001', HINT = 'Insert the scope into reports.scope, or remove it from scopes in scheduler.conf.';
    END IF;
    stored_incarnation := f.incarnation;
    stored_generation := f.generation;
    again := f.incarnation = p_incarnation AND f.generation = p_generation AND f.owner = p_owner AND f.released_at IS NULL;
    IF again IS NOT TRUE AND (stored_incarnation, stored_generation) >= (p_incarnation, p_generation) THEN
        verdict := 'superseded';
        stored_member := f.member;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM reports.ensemble e WHERE e.incarnation = p_incarnation) THEN
        RAISE EXCEPTION 'incarnation % is not that of a known ensemble', p_incarnation USING ERRCODE = 'RS003';
    END IF;
    -- Before anything is recorded: with the record below workers begin to claim and to send.
    newest := reports.job_not_known(p_scope, p_marks);
    IF newest IS NOT NULL THEN
        PERFORM reports.raise_guard(p_scope, 'database_rewound',
            format('this database does not know job %s, planned at %s: it was restored, copied or failed over from an older state, and what it has forgotten may be repeated',
                   newest, to_char(reports.time_of_job(newest) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
            p_member, newest);
    END IF;
    IF reports.is_held(p_scope) THEN
        verdict := 'held';
        RETURN;
    END IF;
    IF again IS NOT TRUE THEN
        UPDATE reports.fence
           SET incarnation = p_incarnation, generation = p_generation, owner = p_owner, member = p_member,
               url = nullif(p_url, ''), established_at = clock_timestamp(), activated_at = NULL, released_at = NULL, release_reason = NULL
         WHERE scope = p_scope;
        -- One that crashed has no line of its end: its successor's says so.
        INSERT INTO reports.leadership_event (scope, event, incarnation, generation, member, detail)
        VALUES (p_scope, 'established', p_incarnation, p_generation, p_member,
                CASE WHEN stored_generation > 0 THEN format('follows member %s, generation %s%s', f.member, stored_generation,
                     CASE WHEN f.released_at IS NULL THEN ', which did not release' ELSE '' END) END);
    END IF;
    PERFORM reports.note_server(p_scope, p_marks);
    PERFORM reports.register_self(p_scope, p_incarnation, p_generation, p_owner, 'scope');
    PERFORM reports.beat(p_scope);
    verdict := 'established';
    stored_incarnation := p_incarnation;
    stored_generation := p_generation;
END
$$;
COMMENT ON FUNCTION reports.establish(text, bigint, bigint, uuid, text, text, uuid[]) IS 'Makes a generation the accepted one: established, superseded or held. p_marks: jobs that this database must know. Repeating it with the same owner is harmless.';

-- Sign of life. After a step of this clock every claim looks older or younger than it is, and after a long silence
-- workers could perhaps not renew either: they get one full lease before anything is reaped. What silence is
-- long: a worker gives a claim up when a quarter of its lease is left, and it is reaped after the grace. By so
-- much a claim may look older than it is. In a silence that long a lease may have begun that much too early
-- (v_lease_clock). Where it is not known whether the clock was stepped (NULL), all of the silence may be a step, and
-- a new leader has two such beats: establish, and its first round.
CREATE FUNCTION reports.beat(p_scope text, p_stepped boolean DEFAULT NULL, p_at timestamptz DEFAULT clock_timestamp()) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE reports.fence_pulse p
       SET reap_not_before = CASE WHEN p_stepped OR p.beat_at > p_at + interval '1 second'
                                       OR p.beat_at < p_at - CASE WHEN p_stepped IS NULL THEN l.spare / 2 ELSE l.spare END
                                  THEN p_at + l.longest ELSE p.reap_not_before END,
           beat_at = p_at
      -- Workers keep the lease they agreed to when they registered.
      FROM (SELECT least(i.claim_lease, min(w.claim_lease)) / 4 + i.reap_grace AS spare, greatest(i.claim_lease, max(w.claim_lease)) AS longest
              FROM reports.installation i LEFT JOIN reports.worker w ON w.state IN ('alive', 'draining')
             GROUP BY i.claim_lease, i.reap_grace) l
     -- While somebody holds the row there is no sign of life, but jobs are tended (I12).
     WHERE p.scope = ANY (ARRAY(SELECT x.scope FROM reports.fence_pulse x WHERE x.scope = p_scope FOR UPDATE SKIP LOCKED));
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION reports.beat(text, boolean, timestamptz) IS 'Sign of life of the leader at p_at; extends reap_not_before after a long silence or a step of the clock. False: another session holds the row.';

CREATE FUNCTION reports.terminate_backends(p_scope text, p_incarnation bigint, p_generation bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    b record;
    ended integer := 0;
BEGIN
    FOR b IN
        SELECT r.pid, r.backend_start, r.incarnation, r.generation
          FROM reports.backend r
          JOIN pg_stat_activity a ON a.pid = r.pid AND a.backend_start = r.backend_start
         WHERE r.scope = p_scope AND (r.incarnation, r.generation) < (p_incarnation, p_generation)
           AND r.pid <> pg_backend_pid()
    LOOP
        IF pg_terminate_backend(b.pid, 1000) THEN
            ended := ended + 1;
            INSERT INTO reports.leadership_event (scope, event, incarnation, generation, reason, detail)
            VALUES (p_scope, 'terminated', b.incarnation, b.generation, 'superseded',
                    format('backend %s ended for generation %s', b.pid, p_generation));
        END IF;
    END LOOP;
    RETURN ended;
END
$$;
COMMENT ON FUNCTION reports.terminate_backends(text, bigint, bigint) IS 'Ends registered server processes of lower generations that hold the scope''s locks; returns how many.';

CREATE FUNCTION reports.register_backend(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_purpose text,
                                         p_mark uuid DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'register_backend') THEN
        RETURN 'fenced';
    END IF;
    IF EXISTS (SELECT FROM reports.v_moved_scope m WHERE m.scope = p_scope) OR reports.job_not_known(p_scope, ARRAY[p_mark]) IS NOT NULL THEN
        RETURN 'moved';
    END IF;
    PERFORM reports.register_self(p_scope, p_incarnation, p_generation, p_owner, p_purpose);
    RETURN 'ok';
END
$$;
COMMENT ON FUNCTION reports.register_backend(text, bigint, bigint, uuid, text, uuid) IS 'A further connection of the activation makes itself known: ok; fenced; moved (the server is not the one that it established on, or does not know job p_mark: establish again).';

CREATE FUNCTION reports.activated(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_prepared_ms bigint)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'activated') THEN
        RETURN 'fenced';
    END IF;
    UPDATE reports.fence SET activated_at = coalesce(activated_at, clock_timestamp()) WHERE scope = p_scope;
    INSERT INTO reports.leadership_event (scope, event, incarnation, generation, member, detail)
    SELECT p_scope, 'activated', p_incarnation, p_generation, f.member, format('prepared in %s ms', p_prepared_ms)
      FROM reports.fence f WHERE f.scope = p_scope;
    RETURN 'ok';
END
$$;
COMMENT ON FUNCTION reports.activated(text, bigint, bigint, uuid, bigint) IS 'The leader has loaded its state and begins to plan.';

CREATE FUNCTION reports.release(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_reason text)
RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    f reports.fence;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(reports.scope_lock_key(p_scope));
    SELECT * INTO f FROM reports.fence WHERE scope = p_scope FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'scope "%" has no fence row', p_scope
            USING ERRCODE = 'RS001', HINT = 'Insert the scope into reports.scope, or remove it from scopes in scheduler.conf.';
    END IF;
    -- Not fence_holds: it would lock FOR SHARE first, and releasing twice is no refusal.
    IF (f.incarnation, f.generation) IS DISTINCT FROM (p_incarnation, p_generation) OR f.owner IS DISTINCT FROM p_owner THEN
        INSERT INTO reports.fence_rejection
            (scope, operation, incarnation, generation, owner, stored_incarnation, stored_generation, application_name)
        VALUES (p_scope, 'release', p_incarnation, p_generation, p_owner, f.incarnation, f.generation,
                current_setting('application_name'));
        RETURN 'fenced';
    END IF;
    IF f.released_at IS NULL THEN
        UPDATE reports.fence SET released_at = clock_timestamp(), release_reason = p_reason WHERE scope = p_scope;
        INSERT INTO reports.leadership_event (scope, event, incarnation, generation, member, reason)
        VALUES (p_scope, 'released', p_incarnation, p_generation, f.member, p_reason);
    END IF;
    DELETE FROM reports.backend WHERE scope = p_scope AND owner = p_owner;
    RETURN 'released';
END
$$;
COMMENT ON FUNCTION reports.release(text, bigint, bigint, uuid, text) IS 'The leader gives up in order: nothing of its generation is accepted after.';

CREATE FUNCTION reports.note_leadership(p_scope text, p_incarnation bigint, p_generation bigint, p_member text, p_event text, p_reason text)
RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p_event NOT IN ('stepped_down', 'held', 'unheld') THEN
        RAISE EXCEPTION 'event % is not for this function', p_event USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO reports.leadership_event (scope, event, incarnation, generation, member, reason)
    VALUES (p_scope, p_event, p_incarnation, p_generation, p_member, p_reason);
END
$$;
COMMENT ON FUNCTION reports.note_leadership(text, bigint, bigint, text, text, text) IS 'Diary entry of a member that may no longer write anything else.';

CREATE FUNCTION reports.fence_read(p_scope text, OUT incarnation bigint, OUT generation bigint, OUT owner uuid, OUT released boolean, OUT held boolean,
                                   OUT hold text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT f.incarnation, f.generation, f.owner, f.released_at IS NOT NULL, h.text IS NOT NULL, h.text
      INTO incarnation, generation, owner, released, held, hold
      FROM reports.fence f
      -- What a guard found comes first.
      LEFT JOIN LATERAL (SELECT format('%shold %s: %s', CASE WHEN x.cause <> 'operator' THEN x.cause || ', ' ELSE '' END, x.id, x.reason) AS text
                           FROM reports.v_hold x
                          WHERE x.queue IS NULL AND (x.scope IS NULL OR x.scope = p_scope)
                          ORDER BY (x.cause = 'operator'), x.id LIMIT 1) h ON true
     WHERE f.scope = p_scope;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'scope "%" has no fence row', p_scope
            USING ERRCODE = 'RS001', HINT = 'Insert the scope into reports.scope, or remove it from scopes in scheduler.conf.';
    END IF;
END
$$;
COMMENT ON FUNCTION reports.fence_read(text) IS 'The accepted generation of a scope, and the hold that stands on it, if any.';

-- A look before the first write, so that a leader that is not the accepted one hears it at once. It protects nothing, locks
-- nothing and records nothing: each write asks fence_holds.
CREATE FUNCTION reports.authority_check(p_scope text, p_its_incarnation bigint, p_its_generation bigint, p_its_owner uuid) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN (f.incarnation, f.generation, f.owner, f.released) IS DISTINCT FROM (p_its_incarnation, p_its_generation, p_its_owner, false)
                THEN 'fenced' WHEN f.held THEN 'held' ELSE 'ok' END
      FROM reports.fence_read(p_scope) f
$$;
COMMENT ON FUNCTION reports.authority_check(text, bigint, bigint, uuid) IS 'Is this generation the accepted one, and its scope not held? ok; fenced; held.';

GRANT EXECUTE ON FUNCTION
    reports.ensemble_meet(text, text),
    reports.root_refused(text, text, text),
    reports.establish(text, bigint, bigint, uuid, text, text, uuid[]),
    reports.prove_regressed(text, bigint, bigint, bigint, text),
    reports.terminate_backends(text, bigint, bigint),
    reports.register_backend(text, bigint, bigint, uuid, text, uuid),
    reports.activated(text, bigint, bigint, uuid, bigint),
    reports.release(text, bigint, bigint, uuid, text),
    reports.note_leadership(text, bigint, bigint, text, text, text),
    reports.fence_read(text),
    reports.authority_check(text, bigint, bigint, uuid)
TO report_scheduler;
GRANT EXECUTE ON FUNCTION reports.raise_hold(text, text, text), reports.lift_hold(bigint), reports.rebase(text, text, boolean),
    reports.rebase_target(text) TO report_operator;

RESET ROLE;
