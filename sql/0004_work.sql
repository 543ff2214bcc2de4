-- The ledger of occurrences, the jobs, what attempts did, and the outbox. Nothing here has a foreign
-- key to a table that users write: an open psql session must not block a firing (I12).
--
-- Names and keys in the tables written per firing are plain text: only functions write them, with
-- names from schedule_progress and keys that C made or that the request table has checked, and the
-- domains' regular expressions would cost a fifth of the time of planning a batch.

SET ROLE report_owner;

CREATE TABLE reports.schedule_progress (
    schedule reports.name PRIMARY KEY,
    scope reports.name NOT NULL,
    version integer NOT NULL,
    step bigint NOT NULL DEFAULT 1,
    next_fire_at timestamptz,
    next_nominal timestamp,
    next_offset_s integer,
    last_fire_at timestamptz,
    last_nominal timestamp,
    last_offset_s integer,
    switched_at timestamptz NOT NULL,
    rule_std text,
    key_form text CHECK (key_form IN ('date', 'minute', 'second', 'week', 'month', 'quarter', 'fiscal')),
    problem text,
    problem_since timestamptz,
    tzdata text NOT NULL DEFAULT '',
    zone_digest text NOT NULL DEFAULT '',
    circuit_failures integer NOT NULL DEFAULT 0,
    circuit_opened_at timestamptz,
    circuit_probe_at timestamptz,
    circuit_probe_job uuid,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX schedule_progress_due ON reports.schedule_progress (scope, next_fire_at)
    WHERE next_fire_at IS NOT NULL;
CREATE INDEX schedule_progress_circuit ON reports.schedule_progress (scope, schedule) WHERE circuit_opened_at IS NOT NULL;
CREATE INDEX schedule_progress_problem ON reports.schedule_progress (scope, schedule) WHERE problem IS NOT NULL;
COMMENT ON TABLE reports.schedule_progress IS 'How far the leader has planned a schedule.';
COMMENT ON COLUMN reports.schedule_progress.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.schedule_progress.scope IS 'Its scope.';
COMMENT ON COLUMN reports.schedule_progress.version IS 'The version being planned.';
COMMENT ON COLUMN reports.schedule_progress.step IS 'Grows with each change of this row: the planner''s compare-and-set.';
COMMENT ON COLUMN reports.schedule_progress.next_fire_at IS 'Next instant something is due; NULL: nothing.';
COMMENT ON COLUMN reports.schedule_progress.next_nominal IS 'Its nominal local time.';
COMMENT ON COLUMN reports.schedule_progress.next_offset_s IS 'Its offset from UTC in seconds.';
COMMENT ON COLUMN reports.schedule_progress.last_fire_at IS 'Latest firing planned or recorded as gap.';
COMMENT ON COLUMN reports.schedule_progress.last_nominal IS 'Its nominal local time.';
COMMENT ON COLUMN reports.schedule_progress.last_offset_s IS 'Its offset from UTC in seconds.';
COMMENT ON COLUMN reports.schedule_progress.switched_at IS 'Instant from which the present version plans.';
COMMENT ON COLUMN reports.schedule_progress.rule_std IS 'The rule it is planned by, of a version in another dialect; NULL: the version''s own.';
COMMENT ON COLUMN reports.schedule_progress.key_form IS 'Form of the occurrence keys, fixed by the first version that worked.';
COMMENT ON COLUMN reports.schedule_progress.problem IS 'Why nothing is planned, for the schedule''s owner; NULL: all is well.';
COMMENT ON COLUMN reports.schedule_progress.problem_since IS 'Since when.';
COMMENT ON COLUMN reports.schedule_progress.tzdata IS 'tzdata version next_fire_at was computed with.';
COMMENT ON COLUMN reports.schedule_progress.zone_digest IS 'Which file of the time zone it was computed with: the first 16 digits of its SHA-256.';
COMMENT ON COLUMN reports.schedule_progress.circuit_failures IS 'Failed jobs in a row, of a schedule with a circuit breaker.';
COMMENT ON COLUMN reports.schedule_progress.circuit_opened_at IS 'Since when its circuit is open and firings are not run; NULL: it is closed.';
COMMENT ON COLUMN reports.schedule_progress.circuit_probe_at IS 'Open: the first firing planned from then on is run as a probe.';
COMMENT ON COLUMN reports.schedule_progress.circuit_probe_job IS 'Open: the probe that has not ended yet.';
COMMENT ON COLUMN reports.schedule_progress.updated_at IS 'Last change.';

CREATE TABLE reports.zone_state (
    scope reports.name NOT NULL,
    time_zone text NOT NULL CHECK (octet_length(time_zone) BETWEEN 1 AND 63),
    tzdata text NOT NULL CHECK (octet_length(tzdata) <= 15),
    digest text NOT NULL CHECK (octet_length(digest) <= 64),
    settled boolean NOT NULL DEFAULT false,
    newest_tzdata text NOT NULL,
    newest_digest text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, time_zone)
);
COMMENT ON TABLE reports.zone_state IS 'By which time zone data the leader of a scope computes, and whether all stored firings follow them.';
COMMENT ON COLUMN reports.zone_state.scope IS 'The scope.';
COMMENT ON COLUMN reports.zone_state.time_zone IS 'The time zone.';
COMMENT ON COLUMN reports.zone_state.tzdata IS 'tzdata version of the leader that led last.';
COMMENT ON COLUMN reports.zone_state.digest IS 'First 16 digits of the SHA-256 of its file of the zone.';
COMMENT ON COLUMN reports.zone_state.settled IS 'The leader has gone through the stored firings of the zone since these data count.';
COMMENT ON COLUMN reports.zone_state.newest_tzdata IS 'The newest version by which a leader has computed here.';
COMMENT ON COLUMN reports.zone_state.newest_digest IS 'The digest with it.';
COMMENT ON COLUMN reports.zone_state.changed_at IS 'When the digest changed last.';

-- The order that replicas compare by too: tzdata_is_newer in common/time/zone_file.h. What it decides: 0018_zones.sql.
CREATE FUNCTION reports.tzdata_is_newer(p_tzdata text, p_than text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$ SELECT p_tzdata COLLATE "C" > p_than COLLATE "C" $$;
COMMENT ON FUNCTION reports.tzdata_is_newer(text, text) IS 'Is one tzdata version newer than another? Compared as text: 2025b < 2026a < 2026f.';

CREATE TABLE reports.occurrence (
    schedule text NOT NULL,
    occurrence_key text NOT NULL CHECK (octet_length(occurrence_key) BETWEEN 1 AND 127),
    scope text NOT NULL,
    job_id uuid NOT NULL,
    scheduled_for timestamptz NOT NULL,
    nominal_local timestamp,
    offset_s integer,
    business_date date,
    window_start timestamptz,
    window_end timestamptz,
    cause text NOT NULL CHECK (cause IN ('schedule', 'misfire', 'edit', 'manual', 'backfill')),
    version integer NOT NULL,
    incarnation bigint NOT NULL,
    generation bigint NOT NULL,
    request_id uuid,
    planned_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (schedule, occurrence_key)
);
COMMENT ON TABLE reports.occurrence IS 'One firing. Kept for ever: (schedule, occurrence_key) is unique for ever (I3).';
COMMENT ON COLUMN reports.occurrence.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.occurrence.occurrence_key IS 'Key of the firing: nominal local date or minute, name of the period that it is about, UTC instant for intervals, what an operator said for a manual one.';
COMMENT ON COLUMN reports.occurrence.scope IS 'Its scope.';
COMMENT ON COLUMN reports.occurrence.job_id IS 'The job that does its work.';
COMMENT ON COLUMN reports.occurrence.scheduled_for IS 'The instant it was due.';
COMMENT ON COLUMN reports.occurrence.nominal_local IS 'The nominal local time the rule names.';
COMMENT ON COLUMN reports.occurrence.offset_s IS 'Offset from UTC at that time, in seconds.';
COMMENT ON COLUMN reports.occurrence.business_date IS 'The date the report is about, of a period its last day; frozen here.';
COMMENT ON COLUMN reports.occurrence.window_start IS 'Start of the data interval: the firing before, or the first day of the period.';
COMMENT ON COLUMN reports.occurrence.window_end IS 'End (exclusive) of the data interval: scheduled_for, or the day behind the period.';
COMMENT ON COLUMN reports.occurrence.cause IS 'schedule, misfire (late by policy), edit (an edit moved its time into the past of its own date), manual or backfill.';
COMMENT ON COLUMN reports.occurrence.version IS 'Version of the schedule that was in force.';
COMMENT ON COLUMN reports.occurrence.incarnation IS 'Of the leader that wrote it.';
COMMENT ON COLUMN reports.occurrence.generation IS 'Of the leader that wrote it.';
COMMENT ON COLUMN reports.occurrence.request_id IS 'The request that caused it, for manual ones and those of a backfill.';
COMMENT ON COLUMN reports.occurrence.planned_at IS 'When it became durable.';

CREATE TABLE reports.schedule_gap (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule reports.name NOT NULL,
    scope reports.name NOT NULL,
    from_fire_at timestamptz NOT NULL,
    to_fire_at timestamptz NOT NULL,
    from_key text NOT NULL,
    to_key text NOT NULL,
    firings bigint NOT NULL CHECK (firings > 0),
    reason text NOT NULL,
    version integer NOT NULL,
    incarnation bigint NOT NULL,
    generation bigint NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (from_fire_at <= to_fire_at)
);
CREATE INDEX schedule_gap_schedule ON reports.schedule_gap (schedule, to_fire_at);
COMMENT ON TABLE reports.schedule_gap IS 'A range of due firings that were not run, with the reason (I3).';
COMMENT ON COLUMN reports.schedule_gap.id IS 'Number.';
COMMENT ON COLUMN reports.schedule_gap.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.schedule_gap.scope IS 'Its scope.';
COMMENT ON COLUMN reports.schedule_gap.from_fire_at IS 'First firing not run.';
COMMENT ON COLUMN reports.schedule_gap.to_fire_at IS 'Last firing not run.';
COMMENT ON COLUMN reports.schedule_gap.from_key IS 'Key the first would have had.';
COMMENT ON COLUMN reports.schedule_gap.to_key IS 'Key the last would have had.';
COMMENT ON COLUMN reports.schedule_gap.firings IS 'How many.';
COMMENT ON COLUMN reports.schedule_gap.reason IS 'misfire_skip, misfire_latest, misfire_max, misfire_age; coalesced: the windows of these firings are in that of the next that ran; problem_mended, paused; passed_over: an edit of business_date went on behind these periods; overlap_forbid: a job of the schedule was still open; circuit_open: jobs of the schedule had failed, one after another; key_taken: an occurrence with this key was there already.';
COMMENT ON COLUMN reports.schedule_gap.version IS 'Version of the schedule that was in force.';
COMMENT ON COLUMN reports.schedule_gap.incarnation IS 'Of the leader that wrote it.';
COMMENT ON COLUMN reports.schedule_gap.generation IS 'Of the leader that wrote it.';
COMMENT ON COLUMN reports.schedule_gap.recorded_at IS 'When.';

CREATE TABLE reports.job (
    id uuid PRIMARY KEY,
    schedule text NOT NULL,
    occurrence_key text NOT NULL,
    scope text NOT NULL,
    revision integer NOT NULL DEFAULT 1,
    report text NOT NULL,
    queue text NOT NULL,
    priority integer NOT NULL,
    state reports.job_state NOT NULL,
    waits_for text CHECK (waits_for IN ('overlap', 'capacity')),
    overlap text NOT NULL DEFAULT 'allow',
    catch_up boolean NOT NULL DEFAULT false,
    run_after timestamptz NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    handed_back integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    retry_base interval NOT NULL,
    retry_cap interval NOT NULL,
    timeout interval NOT NULL,
    attempt_token uuid,
    worker uuid,
    claimed_at timestamptz,
    lease_until timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    breaker boolean NOT NULL DEFAULT false,
    dispatch_number integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    error text,
    CONSTRAINT claim_complete CHECK ((state = 'running') = (attempt_token IS NOT NULL)
        AND (state = 'running') = (worker IS NOT NULL) AND (state = 'running') = (lease_until IS NOT NULL)),
    CONSTRAINT finished_when_final CHECK
        ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT waits_for_something CHECK ((state = 'waiting') = (waits_for IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_ready ON reports.job (queue, catch_up, priority DESC, run_after, id) WHERE state = 'queued';
CREATE INDEX job_running ON reports.job (worker) WHERE state = 'running';
CREATE INDEX job_retry_wait ON reports.job (scope, run_after) WHERE state = 'retry_wait';
-- A job of a schedule that allows overlap, in a queue without a bound, has an entry in none of the following.
CREATE INDEX job_waiting ON reports.job (scope, waits_for, queue, catch_up, priority DESC, run_after, id) WHERE state = 'waiting';
CREATE INDEX job_waits_its_turn ON reports.job (scope, schedule, run_after, id) WHERE state = 'waiting' AND waits_for = 'overlap';
CREATE INDEX job_active ON reports.job (schedule, id)
    WHERE overlap <> 'allow' AND state IN ('waiting', 'queued', 'running', 'retry_wait', 'quarantined')
      AND waits_for IS DISTINCT FROM 'overlap';
CREATE INDEX job_catch_up_waiting ON reports.job (scope, waits_for, queue, priority DESC, run_after DESC, id DESC) WHERE state = 'waiting' AND catch_up;
CREATE INDEX job_catching_up ON reports.job (scope) WHERE catch_up AND state IN ('queued', 'running');
COMMENT ON TABLE reports.job IS 'The work of one occurrence. Few indexes on purpose: none on lease or token, so that heartbeats stay HOT.';
COMMENT ON COLUMN reports.job.id IS 'UUIDv7 made by the leader: a promoted standby would hand out sequence values again.';
COMMENT ON COLUMN reports.job.schedule IS 'Of its occurrence.';
COMMENT ON COLUMN reports.job.occurrence_key IS 'Of its occurrence.';
COMMENT ON COLUMN reports.job.scope IS 'Of its occurrence.';
COMMENT ON COLUMN reports.job.revision IS '1; grows when a superseding re-run is asked for.';
COMMENT ON COLUMN reports.job.report IS 'What to produce.';
COMMENT ON COLUMN reports.job.queue IS 'Which workers may claim it.';
COMMENT ON COLUMN reports.job.priority IS 'Higher first.';
COMMENT ON COLUMN reports.job.state IS 'See the type job_state.';
COMMENT ON COLUMN reports.job.waits_for IS 'waiting: overlap (for another job of its schedule to end) or capacity (for room in its queue, or in the catch-up budget).';
COMMENT ON COLUMN reports.job.overlap IS 'From the schedule''s version; follows the schedule''s edits while the job is open.';
COMMENT ON COLUMN reports.job.catch_up IS 'Of a missed firing or a backfill: live work goes first, and catch_up_max and catch_up_per_minute bound it.';
COMMENT ON COLUMN reports.job.run_after IS 'Not claimed before (backoff).';
COMMENT ON COLUMN reports.job.attempt IS 'Attempts begun; counted at the claim, so that a job that kills its worker is counted too.';
COMMENT ON COLUMN reports.job.handed_back IS 'Attempts a stopping worker returned unharmed; they do not use up max_attempts.';
COMMENT ON COLUMN reports.job.max_attempts IS 'From the schedule''s version; a retry that is asked for adds as many again, and takes over the schedule''s present queue, priority, timeout and backoff.';
COMMENT ON COLUMN reports.job.retry_base IS 'From the schedule''s version.';
COMMENT ON COLUMN reports.job.retry_cap IS 'From the schedule''s version.';
COMMENT ON COLUMN reports.job.timeout IS 'From the schedule''s version.';
COMMENT ON COLUMN reports.job.attempt_token IS 'Random identity of the live attempt; every change of a running job needs it (I6).';
COMMENT ON COLUMN reports.job.worker IS 'Worker incarnation that holds the claim.';
COMMENT ON COLUMN reports.job.claimed_at IS 'Start of the latest claim.';
COMMENT ON COLUMN reports.job.lease_until IS 'The claim lapses then unless renewed, by the database clock.';
COMMENT ON COLUMN reports.job.cancel_requested IS 'Any outcome closes the job as cancelled.';
COMMENT ON COLUMN reports.job.breaker IS 'Its schedule has a circuit breaker, which is to know how it ends.';
COMMENT ON COLUMN reports.job.dispatch_number IS 'How often it was put into the outbox; diagnosis only.';
COMMENT ON COLUMN reports.job.created_at IS 'When.';
COMMENT ON COLUMN reports.job.finished_at IS 'When it became final.';
COMMENT ON COLUMN reports.job.error IS 'Of the latest failed attempt, for people.';

CREATE TABLE reports.job_attempt (
    job_id uuid NOT NULL,
    attempt integer NOT NULL,
    token uuid NOT NULL,
    worker uuid NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'timeout', 'cancelled', 'lost', 'handed_back')),
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    error text,
    exit_code integer,
    PRIMARY KEY (job_id, attempt)
);
COMMENT ON TABLE reports.job_attempt IS 'What became of one attempt; written once, when it ends.';
COMMENT ON COLUMN reports.job_attempt.job_id IS 'The job.';
COMMENT ON COLUMN reports.job_attempt.attempt IS '1, 2, 3 ...';
COMMENT ON COLUMN reports.job_attempt.token IS 'Its claim token; tells a repeated outcome from a stranger''s.';
COMMENT ON COLUMN reports.job_attempt.worker IS 'Worker incarnation.';
COMMENT ON COLUMN reports.job_attempt.outcome IS 'succeeded, failed, timeout, cancelled, lost (lapsed, or released after the worker was killed), handed_back (worker stopped in order).';
COMMENT ON COLUMN reports.job_attempt.started_at IS 'When it was claimed.';
COMMENT ON COLUMN reports.job_attempt.ended_at IS 'When its end was recorded.';
COMMENT ON COLUMN reports.job_attempt.error IS 'For people.';
COMMENT ON COLUMN reports.job_attempt.exit_code IS 'program: exit status, or 128 + signal.';

CREATE TABLE reports.artifact (
    job_id uuid NOT NULL,
    attempt integer NOT NULL,
    store reports.name NOT NULL,
    path text NOT NULL CHECK (octet_length(path) BETWEEN 1 AND 1024),
    media_type text NOT NULL,
    size_bytes bigint NOT NULL CHECK (size_bytes >= 0),
    row_count bigint,
    sha256 bytea NOT NULL CHECK (octet_length(sha256) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, attempt)
);
COMMENT ON TABLE reports.artifact IS 'A file an attempt produced. A file without a row here does not exist for anybody (I7).';
COMMENT ON COLUMN reports.artifact.job_id IS 'The job.';
COMMENT ON COLUMN reports.artifact.attempt IS 'The attempt.';
COMMENT ON COLUMN reports.artifact.store IS 'Name of the store in worker.conf.';
COMMENT ON COLUMN reports.artifact.path IS 'Path within the store, unique to the attempt.';
COMMENT ON COLUMN reports.artifact.media_type IS 'text/csv and the like.';
COMMENT ON COLUMN reports.artifact.size_bytes IS 'Size of the file.';
COMMENT ON COLUMN reports.artifact.row_count IS 'sql: rows without the header.';
COMMENT ON COLUMN reports.artifact.sha256 IS 'Of the file.';
COMMENT ON COLUMN reports.artifact.created_at IS 'When it became visible.';

CREATE TABLE reports.outbox (
    scope text NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    job_id uuid NOT NULL,
    dispatch_number integer NOT NULL,
    schedule text NOT NULL,
    occurrence_key text NOT NULL,
    queue text NOT NULL,
    scheduled_for timestamptz NOT NULL,
    generation bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000, vacuum_truncate = off);
COMMENT ON TABLE reports.outbox IS 'A message to publish: "job N is waiting". Deleted after Kafka''s acknowledgement.';
COMMENT ON COLUMN reports.outbox.scope IS 'Whose relay publishes it.';
COMMENT ON COLUMN reports.outbox.id IS 'Number; not in commit order, so the relay scans and never trusts a cursor.';
COMMENT ON COLUMN reports.outbox.job_id IS 'The job.';
COMMENT ON COLUMN reports.outbox.dispatch_number IS 'Of the job at that time.';
COMMENT ON COLUMN reports.outbox.schedule IS 'For the message.';
COMMENT ON COLUMN reports.outbox.occurrence_key IS 'For the message.';
COMMENT ON COLUMN reports.outbox.queue IS 'For the message.';
COMMENT ON COLUMN reports.outbox.scheduled_for IS 'For the message.';
COMMENT ON COLUMN reports.outbox.generation IS 'Of the leader that wrote it.';
COMMENT ON COLUMN reports.outbox.created_at IS 'When.';

CREATE TABLE reports.outbox_dead (
    scope reports.name NOT NULL,
    id bigint NOT NULL,
    job_id uuid NOT NULL,
    schedule reports.name NOT NULL,
    occurrence_key reports.occurrence_key NOT NULL,
    reason text NOT NULL,
    buried_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, id)
);
COMMENT ON TABLE reports.outbox_dead IS 'A message that cannot be published; its job runs through the pull path all the same.';
COMMENT ON COLUMN reports.outbox_dead.scope IS 'As in outbox.';
COMMENT ON COLUMN reports.outbox_dead.id IS 'As in outbox.';
COMMENT ON COLUMN reports.outbox_dead.job_id IS 'The job.';
COMMENT ON COLUMN reports.outbox_dead.schedule IS 'The schedule.';
COMMENT ON COLUMN reports.outbox_dead.occurrence_key IS 'The occurrence.';
COMMENT ON COLUMN reports.outbox_dead.reason IS 'What Kafka said.';
COMMENT ON COLUMN reports.outbox_dead.buried_at IS 'When.';

CREATE TABLE reports.queue_load (
    scope reports.name NOT NULL,
    queue text NOT NULL,
    outstanding integer NOT NULL CHECK (outstanding >= 0),
    waiting integer NOT NULL CHECK (waiting >= 0),
    counted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, queue)
) WITH (fillfactor = 50);
COMMENT ON TABLE reports.queue_load IS 'How full a queue with a bound is, as the leader last counted it, for people: what is decided is counted afresh from the job rows.';
COMMENT ON COLUMN reports.queue_load.scope IS 'The scope.';
COMMENT ON COLUMN reports.queue_load.queue IS 'The queue.';
COMMENT ON COLUMN reports.queue_load.outstanding IS 'Jobs queued and running.';
COMMENT ON COLUMN reports.queue_load.waiting IS 'Jobs that wait for room; counting stops at 10 000.';
COMMENT ON COLUMN reports.queue_load.counted_at IS 'When; written when a number changed, otherwise every ten seconds.';

-- The budget of missed firings is kept in rows, so that the next leader goes on with what is left of it.
CREATE TABLE reports.catch_up_release (
    scope reports.name NOT NULL,
    queue text NOT NULL,
    second timestamptz NOT NULL,
    jobs integer NOT NULL CHECK (jobs > 0),
    PRIMARY KEY (scope, queue, second)
) WITH (fillfactor = 50);
COMMENT ON TABLE reports.catch_up_release IS 'Jobs of missed firings that were released within the last minute, by the second: what catch_up_per_minute counts.';
COMMENT ON COLUMN reports.catch_up_release.scope IS 'The scope.';
COMMENT ON COLUMN reports.catch_up_release.queue IS 'The queue.';
COMMENT ON COLUMN reports.catch_up_release.second IS 'The second in which they were, by the database clock.';
COMMENT ON COLUMN reports.catch_up_release.jobs IS 'How many.';

CREATE TABLE reports.worker (
    id uuid PRIMARY KEY,
    name text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 253),
    pid integer NOT NULL,
    version text NOT NULL,
    queues text[] NOT NULL,
    slots integer NOT NULL CHECK (slots > 0),
    claim_lease interval NOT NULL DEFAULT '60 seconds' CHECK (claim_lease > interval '0'),
    state text NOT NULL DEFAULT 'alive' CHECK (state IN ('alive', 'draining', 'stopped', 'dead')),
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    heartbeat_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    stopped_at timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE reports.worker IS 'One life of a worker process; an id is never used again.';
COMMENT ON COLUMN reports.worker.id IS 'Random identity of the incarnation.';
COMMENT ON COLUMN reports.worker.name IS 'Host or configured name, for people.';
COMMENT ON COLUMN reports.worker.pid IS 'Process id on its host.';
COMMENT ON COLUMN reports.worker.version IS 'Program version.';
COMMENT ON COLUMN reports.worker.queues IS 'Queues it serves.';
COMMENT ON COLUMN reports.worker.slots IS 'Jobs it runs at once.';
COMMENT ON COLUMN reports.worker.claim_lease IS 'What it agreed to when it registered: its claims live so long whatever installation.claim_lease says later.';
COMMENT ON COLUMN reports.worker.state IS 'alive, draining (claims nothing more), stopped (in order), dead (killed, or found silent).';
COMMENT ON COLUMN reports.worker.started_at IS 'When it registered.';
COMMENT ON COLUMN reports.worker.heartbeat_at IS 'Last heartbeat, by the database clock.';
COMMENT ON COLUMN reports.worker.stopped_at IS 'When it ended or was found dead.';

CREATE TABLE reports.request (
    id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('trigger', 'pause', 'resume', 'cancel', 'retry', 'handoff', 'backfill', 'discard', 'breaker_close')),
    scope reports.name NOT NULL,
    subject text NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 200),
    argument text CHECK (octet_length(argument) <= 500),
    requested_by text NOT NULL DEFAULT session_user,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    deadline timestamptz NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done', 'refused', 'expired')),
    answer text,
    job_id uuid,
    answered_at timestamptz,
    generation bigint,
    until timestamptz,
    CONSTRAINT answered CHECK ((state = 'pending') = (answered_at IS NULL))
);
CREATE INDEX request_pending ON reports.request (scope, requested_at) WHERE state = 'pending';
COMMENT ON TABLE reports.request IS 'What an operator asks of the leader. The id may be sent again and gets the first answer.';
COMMENT ON COLUMN reports.request.id IS 'Chosen by the asker.';
COMMENT ON COLUMN reports.request.kind IS 'trigger, pause, resume, backfill, breaker_close (a schedule), cancel, retry (a job), handoff (a scope), discard (missed firings of a schedule or queue).';
COMMENT ON COLUMN reports.request.scope IS 'Whose leader answers.';
COMMENT ON COLUMN reports.request.subject IS 'The schedule meant; for cancel and retry the job: SCHEDULE:KEY or its id; for handoff the scope; for discard the schedule, or queue:QUEUE@SCOPE.';
COMMENT ON COLUMN reports.request.argument IS 'trigger: the occurrence key (NULL: the request id is the key); pause, resume, cancel, breaker_close: why, or NULL; retry: again, where a job that succeeded is meant, or NULL; handoff: the member that is to lead, NULL: the next in line; backfill: the span, or the earlier request whose open jobs are to be cancelled; discard: "all: " or "before INSTANT: ", and why.';
COMMENT ON COLUMN reports.request.requested_by IS 'Login role.';
COMMENT ON COLUMN reports.request.requested_at IS 'When.';
COMMENT ON COLUMN reports.request.deadline IS 'Not carried out after.';
COMMENT ON COLUMN reports.request.state IS 'pending, done, refused (answer says why), expired.';
COMMENT ON COLUMN reports.request.answer IS 'For people.';
COMMENT ON COLUMN reports.request.job_id IS 'The job that was meant; trigger: the one it made, or that was there.';
COMMENT ON COLUMN reports.request.answered_at IS 'When.';
COMMENT ON COLUMN reports.request.generation IS 'Of the leader that answered.';
COMMENT ON COLUMN reports.request.until IS 'pause: when it is to end by itself; NULL: never.';

RESET ROLE;
