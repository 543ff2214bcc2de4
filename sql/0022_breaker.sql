-- Schedules that stop and go on by themselves: a pause that has an end, and the circuit breaker.

SET ROLE report_owner;

-- The leader's edit at paused_until: record_version dates it back to then. Rows that another session holds are
-- left for the next call, and so is one that a check refuses now, with the reason (I12).
CREATE FUNCTION reports.resume_paused(p_scope text, p_incarnation bigint, p_generation bigint, p_owner uuid, p_limit integer,
                                      OUT verdict text, OUT resumed integer, OUT locked text, OUT fault text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    its text;
    seen text[] := '{}';
    chosen text[];
BEGIN
    resumed := 0;
    IF NOT reports.fence_holds(p_scope, p_incarnation, p_generation, p_owner, 'resume_paused') THEN
        verdict := 'fenced';
        RETURN;
    END IF;
    -- Rows that cannot go on, however many, hide no other: those that are held are not counted, and of the rest, when
    -- none of the first has gone on, some are tried by chance.
    FOR n IN 1 .. 2 LOOP
        chosen := ARRAY(SELECT s.name::text FROM reports.schedule s
                         WHERE s.scope = p_scope AND s.paused_until <= (SELECT clock_timestamp()) AND s.name <> ALL (seen)
                         ORDER BY CASE WHEN n = 1 THEN s.paused_until END, random() LIMIT p_limit FOR UPDATE SKIP LOCKED);
        seen := seen || chosen;
        FOREACH its IN ARRAY chosen LOOP
            BEGIN
                UPDATE reports.schedule s SET paused = false, paused_until = NULL WHERE s.name = its;
                resumed := resumed + 1;
            EXCEPTION WHEN raise_exception OR feature_not_supported OR data_exception OR integrity_constraint_violation THEN
                fault := SQLERRM;
            END;
        END LOOP;
        EXIT WHEN resumed > 0 OR cardinality(chosen) < p_limit;
    END LOOP;
    IF cardinality(chosen) < p_limit THEN
        locked := (SELECT s.name FROM reports.schedule s
                    WHERE s.scope = p_scope AND s.paused_until <= (SELECT clock_timestamp()) AND s.name <> ALL (seen) ORDER BY s.paused_until LIMIT 1);
    END IF;
    verdict := 'ok';
END
$$;
COMMENT ON FUNCTION reports.resume_paused(text, bigint, bigint, uuid, integer) IS 'Lets paused schedules go on whose paused_until has come; locked: one that another session holds; fault: why one cannot.';

-- The circuit breaker. Its state stands in schedule_progress, so that planning a firing reads no history, and only
-- the leader writes it, in fenced calls that hold the row. How a job ended is said by whoever ends it, who may not
-- wait for that row and must not lock it after the job's: it leaves a line, and the leader settles the lines before
-- it plans, and whenever it tends.

CREATE TABLE reports.circuit_outcome (
    scope text NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    schedule text NOT NULL,
    job_id uuid NOT NULL,
    state text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX circuit_outcome_schedule ON reports.circuit_outcome (scope, schedule, id);
COMMENT ON TABLE reports.circuit_outcome IS 'How a job of a schedule with a circuit breaker has ended, until the leader has counted it.';
COMMENT ON COLUMN reports.circuit_outcome.scope IS 'Whose leader counts it.';
COMMENT ON COLUMN reports.circuit_outcome.id IS 'Number.';
COMMENT ON COLUMN reports.circuit_outcome.schedule IS 'Of the job.';
COMMENT ON COLUMN reports.circuit_outcome.job_id IS 'The job.';
COMMENT ON COLUMN reports.circuit_outcome.state IS 'succeeded, failed or cancelled.';
COMMENT ON COLUMN reports.circuit_outcome.at IS 'When it ended.';

CREATE TABLE reports.circuit_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    scope text NOT NULL,
    schedule text NOT NULL,
    event text NOT NULL CHECK (event IN ('opened', 'probe', 'probe_failed', 'probe_cancelled', 'closed')),
    detail text,
    job_id uuid
);
CREATE INDEX circuit_event_schedule ON reports.circuit_event (schedule, id);
COMMENT ON TABLE reports.circuit_event IS 'Diary of the circuit breakers.';
COMMENT ON COLUMN reports.circuit_event.id IS 'Order.';
COMMENT ON COLUMN reports.circuit_event.at IS 'When.';
COMMENT ON COLUMN reports.circuit_event.scope IS 'Scope of the schedule.';
COMMENT ON COLUMN reports.circuit_event.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.circuit_event.event IS 'opened, probe (one is run), probe_failed, probe_cancelled, closed.';
COMMENT ON COLUMN reports.circuit_event.detail IS 'For people: why.';
COMMENT ON COLUMN reports.circuit_event.job_id IS 'The job that it was about.';

CREATE VIEW reports.v_circuit_event AS
SELECT e.id, e.at, e.scope, e.schedule, e.event, e.detail, e.job_id, j.occurrence_key
  FROM reports.circuit_event e LEFT JOIN reports.job j ON j.id = e.job_id;
COMMENT ON VIEW reports.v_circuit_event IS 'Diary of the circuit breakers, with the keys of the jobs; order by id.';

CREATE FUNCTION reports.note_outcome() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO reports.circuit_outcome (scope, schedule, job_id, state) VALUES (NEW.scope, NEW.schedule, NEW.id, NEW.state);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION reports.note_outcome() IS 'Trigger on job: leaves a line for the circuit breaker of its schedule.';
CREATE TRIGGER note_outcome AFTER UPDATE OF state ON reports.job
    FOR EACH ROW WHEN (NEW.breaker AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL) EXECUTE FUNCTION reports.note_outcome();

-- One schedule. A row that another session holds is left, with its lines, for the next call (I12).
CREATE FUNCTION reports.settle_circuit(p_scope text, p_schedule text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    p reports.schedule_progress;
    most integer;
    wait interval;
    o record;
BEGIN
    SELECT q.* INTO p FROM reports.schedule_progress q WHERE q.schedule = p_schedule AND q.scope = p_scope FOR UPDATE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM reports.schedule_progress q WHERE q.schedule = p_schedule) THEN
        RETURN;
    END IF;
    SELECT v.breaker_failures, v.breaker_probe INTO most, wait
      FROM reports.schedule_version v WHERE v.schedule = p_schedule AND v.version = p.version;
    FOR o IN WITH gone AS (
                 DELETE FROM reports.circuit_outcome x WHERE x.scope = p_scope AND x.schedule = p_schedule RETURNING x.*)
             SELECT g.* FROM gone g ORDER BY g.at, g.id LOOP
        CONTINUE WHEN most IS NULL; -- it has none any more
        IF o.state = 'succeeded' THEN
            p.circuit_failures := 0;
            IF p.circuit_opened_at IS NOT NULL THEN
                p.circuit_opened_at := NULL;
                p.circuit_probe_at := NULL;
                INSERT INTO reports.circuit_event (scope, schedule, event, detail, job_id)
                VALUES (p_scope, p_schedule, 'closed', CASE WHEN o.job_id = p.circuit_probe_job THEN 'the probe succeeded' ELSE 'a job succeeded' END, o.job_id);
                p.circuit_probe_job := NULL;
            END IF;
        ELSIF o.state = 'failed' THEN
            p.circuit_failures := p.circuit_failures + 1;
            IF p.circuit_opened_at IS NULL AND p.circuit_failures >= most THEN
                p.circuit_opened_at := clock_timestamp();
                p.circuit_probe_at := clock_timestamp() + wait;
                INSERT INTO reports.circuit_event (scope, schedule, event, detail, job_id)
                VALUES (p_scope, p_schedule, 'opened', format('%s failed jobs in a row', p.circuit_failures), o.job_id);
            ELSIF o.job_id = p.circuit_probe_job THEN
                p.circuit_probe_job := NULL;
                p.circuit_probe_at := clock_timestamp() + wait;
                INSERT INTO reports.circuit_event (scope, schedule, event, detail, job_id)
                VALUES (p_scope, p_schedule, 'probe_failed', 'the next one from ' || reports.instant_text(p.circuit_probe_at) || ' on', o.job_id);
            END IF;
        ELSIF o.job_id = p.circuit_probe_job THEN
            -- It says nothing either way: the next firing is a probe again.
            p.circuit_probe_job := NULL;
            INSERT INTO reports.circuit_event (scope, schedule, event, job_id) VALUES (p_scope, p_schedule, 'probe_cancelled', o.job_id);
        END IF;
    END LOOP;
    -- Not the step: what the planner computes does not depend on any of it.
    UPDATE reports.schedule_progress q
       SET circuit_failures = p.circuit_failures, circuit_opened_at = p.circuit_opened_at, circuit_probe_at = p.circuit_probe_at,
           circuit_probe_job = p.circuit_probe_job
     WHERE q.schedule = p_schedule AND q.scope = p_scope
       AND (q.circuit_failures, q.circuit_opened_at, q.circuit_probe_at, q.circuit_probe_job)
           IS DISTINCT FROM (p.circuit_failures, p.circuit_opened_at, p.circuit_probe_at, p.circuit_probe_job);
END
$$;
COMMENT ON FUNCTION reports.settle_circuit(text, text) IS 'Counts how jobs of a schedule have ended: opens its circuit breaker or closes it.';

CREATE FUNCTION reports.settle_circuits(p_scope text, p_limit integer) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    its text;
BEGIN
    FOR its IN SELECT DISTINCT x.schedule
                 FROM (SELECT o.schedule FROM reports.circuit_outcome o
                        WHERE o.scope = p_scope AND reports.progress_taken(o.schedule) -- rows that others hold hide none
                        ORDER BY o.id LIMIT p_limit) x
                ORDER BY x.schedule LOOP
        PERFORM reports.settle_circuit(p_scope, its);
    END LOOP;
END
$$;
COMMENT ON FUNCTION reports.settle_circuits(text, integer) IS 'settle_circuit of the schedules that have the oldest lines.';

-- Part of plan_batch, which holds the rows.
CREATE FUNCTION reports.note_probes(p_scope text, p_jobs uuid[]) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
    WITH probe AS MATERIALIZED (
        SELECT j.id, j.schedule FROM reports.job j WHERE j.id = ANY (p_jobs)
    ), noted AS (
        INSERT INTO reports.circuit_event (scope, schedule, event, job_id) SELECT p_scope, b.schedule, 'probe', b.id FROM probe b ORDER BY b.schedule
    )
    UPDATE reports.schedule_progress p SET circuit_probe_job = b.id FROM probe b WHERE p.schedule = b.schedule AND p.scope = p_scope
$$;
COMMENT ON FUNCTION reports.note_probes(text, uuid[]) IS 'These jobs are the probes of their schedules.';

CREATE FUNCTION reports.carry_out_breaker_close(p_asked reports.request, OUT new_state text, OUT its_answer text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
    p reports.schedule_progress;
BEGIN
    IF NOT reports.progress_taken(p_asked.subject) THEN
        RETURN;
    END IF;
    -- What ended before counts before.
    PERFORM reports.settle_circuit(p_asked.scope, p_asked.subject);
    SELECT q.* INTO p FROM reports.schedule_progress q WHERE q.schedule = p_asked.subject;
    UPDATE reports.schedule_progress q
       SET circuit_failures = 0, circuit_opened_at = NULL, circuit_probe_at = NULL, circuit_probe_job = NULL
     WHERE q.schedule = p_asked.subject AND q.scope = p_asked.scope;
    new_state := 'done';
    IF p.circuit_opened_at IS NULL THEN
        its_answer := format('the circuit of schedule "%s" is not open', p_asked.subject)
                      || CASE WHEN p.circuit_failures > 0 THEN format('; counting begins anew after %s failed job(s)', p.circuit_failures) ELSE '' END;
        RETURN;
    END IF;
    INSERT INTO reports.circuit_event (scope, schedule, event, detail)
    VALUES (p_asked.scope, p_asked.subject, 'closed', concat_ws(': ', 'asked by ' || p_asked.requested_by, p_asked.argument));
    its_answer := format('the circuit of schedule "%s", open since %s, is closed: its firings are run again', p_asked.subject,
                         reports.instant_text(p.circuit_opened_at));
END
$$;
COMMENT ON FUNCTION reports.carry_out_breaker_close(reports.request) IS 'Closes the circuit breaker of a schedule by hand.';

GRANT EXECUTE ON FUNCTION
    reports.resume_paused(text, bigint, bigint, uuid, integer)
TO report_scheduler;

RESET ROLE;
