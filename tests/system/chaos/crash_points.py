"""Processes that die at each place that common/base/crash_point.h names, and what goes on after them.

The names are read from the source: CRASH_POINT("name") and, for each function of schema reports that a
statement in the source calls, function.before, .sent and .after. One that cannot be reached fails here.
Run by `dev/soak crashes` with a build configured with -DRS_CRASH_POINTS=ON (RS_BUILD).
"""

import contextlib
import os
import re
import signal
import subprocess
import time
import uuid

import pytest

import harness
import load as loads
import proof
import test_zones as zones

ROOT = harness.ROOT
DEATH_S = 25
LEFT_OUT = {
    "scope_figures": "a read of the observer thread, which may write nothing",
    "ask": "asked over HTTP in the name of an operator: one statement, as from reportctl",
}
CALLS = ("before", "sent", "after")


def _sources(*directories):
    return "".join(p.read_text(encoding="utf-8") for d in directories for p in sorted((ROOT / d).rglob("*.c")))


def points():
    """[(process, name)] of all there are."""
    found = []
    for process, directories in (("scheduler", ("scheduler",)), ("worker", ("worker",))):
        text = _sources(*directories)
        # What C writes as adjacent literals is one statement.
        text = re.sub(r'"\s*\n\s*"', "", text)
        found += [(process, f"{f}.{when}") for f in dict.fromkeys(re.findall(r"reports\.([a-z_]+)\(", text)) if f not in LEFT_OUT for when in CALLS]
        found += [("keeper" if name.startswith("keeper") else process, name) for name in dict.fromkeys(re.findall(r'CRASH_POINT\("([^"]+)"\)', text))]
    found += [("scheduler" if name.startswith("produce") else "worker", name)
              for name in dict.fromkeys(re.findall(r'CRASH_POINT\("([^"]+)"\)', _sources("common")))]
    return found


# Where things happen by themselves, nothing is needed --------------------------------------------------

class Place:
    """An installation with two schedulers in turn; what stands here makes rare things happen."""

    def __init__(self, installation):
        self.installation = installation
        self.load = loads.Load(installation, ticks=5, files=3)
        self.db = self.load.db
        self.db.execute("""
            INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('asked', 'nothing', 'once', '2999-01-01T00:00');
            CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.occurrence_key LIKE 'poison%' THEN RAISE EXCEPTION 'this key is poison' USING ERRCODE = '23514'; END IF;
                RETURN NEW; END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON reports.occurrence FOR EACH ROW EXECUTE FUNCTION public.refuse()""")
        self.db.execute("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) VALUES ('far-away', 'nothing', 'cron', '0 6 1 1 *', %s)", (zones.ZONE,))
        self.number = 0
        self.heir = installation.start_scheduler("heir", **self.files("heir", "session"))
        self.worker = self.load.start_worker("steady")
        self.load.wait_flowing(10)

    def files(self, name, kind):
        return {f"{kind}_file": str(self.installation.directory / f"{name}.{kind}")}

    def newer_zones(self):
        """The settings of a scheduler whose time zone data are newer than all before, by which the next firing of far-away moves."""
        path = self.installation.directory / f"zones-{self.number}"
        path.mkdir()
        return {"tz_directory": str(zones.Machine(path, f"{2100 + self.number}a", -1 - self.number % 11).path), "tz_poll_ms": 300}

    def name(self):
        self.number += 1
        return f"made-{self.number}"

    def edit(self):
        self.db.execute("INSERT INTO reports.schedule (name, report, kind, rule) VALUES (%s, 'nothing', 'cron', '0 6 * * *')", (self.name(),))
        self.db.execute("UPDATE reports.schedule SET priority = 1 - priority WHERE name LIKE 'tick-%'")

    def edit_by_calendar(self):
        self.db.execute("INSERT INTO reports.calendar (name) VALUES ('works') ON CONFLICT DO NOTHING")
        self.db.execute("INSERT INTO reports.schedule (name, report, kind, rule, calendar, nonbusiness) VALUES (%s, 'nothing', 'cron', '0 6 L * *', 'works', 'preceding')",
                        (self.name(),))

    def edit_that_may_repeat_a_key(self):
        """The schedule has fired today, and is given a later hour of today."""
        name = self.name()
        self.db.execute("INSERT INTO reports.schedule (name, report, kind, rule) VALUES (%s, 'nothing', 'cron', '0 0 * * *')", (name,))
        self.installation.wait_until(lambda: proof.one(self.db, "SELECT true FROM reports.schedule_progress WHERE schedule = %s", (name,)), 10, "it is taken in")
        self.db.execute("""
            INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, cause, version, incarnation, generation)
            SELECT %s, to_char(current_date, 'YYYY-MM-DD'), 'main', gen_random_uuid(), current_date, 'schedule', 1, 1, 1""", (name,))
        self.db.execute("UPDATE reports.schedule SET rule = '59 23 * * *' WHERE name = %s", (name,))

    def ask(self, key="key"):
        self.db.execute("SELECT reports.ask(%s, 'trigger', 'asked', %s, interval '10 minutes')", (uuid.uuid4(), f"{key}-{self.name()}"))

    def problem(self):
        self.db.execute("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) VALUES (%s, 'nothing', 'cron', '0 6 * * *', 'CEST')",
                        (self.name(),))

    def planning_problem(self):
        """Found while planning, not while an edit is taken in."""
        self.db.execute("""
            CREATE OR REPLACE FUNCTION public.refuse_trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.schedule LIKE 'made-%' THEN RAISE EXCEPTION 'a trap' USING ERRCODE = '23514'; END IF; RETURN NEW; END $$;
            CREATE OR REPLACE TRIGGER trap BEFORE INSERT ON reports.job FOR EACH ROW EXECUTE FUNCTION public.refuse_trap()""")
        self.db.execute("INSERT INTO reports.schedule (name, report, kind, rule) VALUES (%s, 'nothing', 'interval', '1 second')", (self.name(),))

    def bad_message(self):
        self.db.execute("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation) "
                        "VALUES ('main', gen_random_uuid(), 1, 'no name at all', 'k', 'default', clock_timestamp(), 1)")

    def lose_claims(self):
        """End connections in the middle of a claim, whose answer is lost then."""
        return self.db.execute("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                               "WHERE datname = current_database() AND usename = 'report_worker' AND query LIKE '%claim%'").fetchone()

    @contextlib.contextmanager
    def scope_locked(self):
        """By a session that looks as one of an older leader: establish finds it in its way."""
        with self.installation.stack.connect(self.installation.database) as db:
            db.autocommit = False
            db.execute("SELECT pg_advisory_xact_lock_shared(reports.scope_lock_key('main'))")
            yield
            db.rollback()


RARE = {  # function -> what the leader then comes to
    "take_in": "edit", "changes": "edit", "calendar_parts": "edit_by_calendar", "keys_taken": "edit_that_may_repeat_a_key",
    "answer_request": "ask", "pending_requests": "ask", "mark_problem": "planning_problem", "outbox_bury": "bad_message",
}
FOR_LATE_EDITS = ("progress_of", "versions_of")
BY_NEWER_ZONES = ("note_zones", "of_zone", "rezone")  # with the data of the one before there is nothing to do
BY_MESSAGES = ("claim_ids", "offset")
HAS_PULLED = ("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'report-worker claims' "
              "AND state = 'idle' AND query ~ 'claim_ready'")
AT_STOP = ("draining", "releasing", "release", "withdraw", "note_leadership", "worker_leave")


@pytest.fixture(scope="module")
def place(stack):
    installation = harness.Installation(stack)
    failed = True
    try:
        installation.create()
        p = Place(installation)
        yield p
        p.db.execute("DROP TRIGGER IF EXISTS trap ON reports.job; DELETE FROM reports.schedule WHERE name LIKE 'made-%'")
        # The proof: after all those deaths nothing is lost, doubled or left over.
        for schedule in [s for s, in p.db.execute("SELECT name FROM reports.schedule WHERE name LIKE 'tick-%' OR name LIKE 'file-%'")]:
            proof.check_planned_and_done(installation, p.db, schedule)
        proof.check_artifacts(installation, p.db)
        proof.check_no_orphans(installation, p.db)
        failed = False
    finally:
        installation.remove(keep_files=failed)


def start_doomed(place, process, name, point, **settings):
    """A scheduler or worker that dies at the point; its own files, so that another is not in its way."""
    i = place.installation
    arm = ("env", f"RS_CRASH_AT={point}")
    if process == "scheduler":
        doomed = i.start_scheduler(name, prefix=arm, **place.files(name, "session"), **settings)
    elif process == "worker":
        doomed = place.load.start_worker(name, prefix=arm, **place.files(name, "incarnation"), **settings)
    else:
        # Long enough for its claim to be renewed.
        slow = place.installation.directory / "slow.sh"
        slow.write_text("#!/bin/sh\n/bin/sleep 3\n" + loads.STAMP)
        slow.chmod(0o755)
        arguments = [str(slow)] if point == "keeper.extended" else place.load.programs[0]["arguments"]
        programs = [{**p, "arguments": arguments, "environment": [f"RS_CRASH_AT={point}"]} for p in place.load.programs]
        doomed = i.start_worker(name, programs=programs, sweep_ms=1000, **place.files(name, "incarnation"))
    i.daemons.remove(doomed)  # its death is no fault
    return doomed


def wait_dead(doomed, point, timeout=DEATH_S):
    harness.wait_until(lambda: not doomed.is_alive(), timeout, f"{doomed.name} dies at {point}", [doomed])
    assert doomed.process.returncode == -signal.SIGKILL, doomed.log_text()[-3000:]
    assert f"crash point {point}\n" in doomed.log_text()


def follows(doomed):
    return "to=FOLLOWING" in doomed.log_text() or "to=ESTABLISHING" in doomed.log_text()


def leads(doomed):
    return "to=ACTIVE" in doomed.log_text()


def die_as_scheduler(place, name, point):
    """It comes in as a follower; then the leader goes, and it comes to lead as far as the point."""
    function = point.partition(".")[0]
    doomed = start_doomed(place, "scheduler", name, point, **(place.newer_zones() if function in BY_NEWER_ZONES else {}))
    try:
        harness.wait_until(lambda: follows(doomed) or not doomed.is_alive(), 20, "it follows", [doomed])
        if doomed.is_alive() and function == "terminate_backends":
            with place.scope_locked():
                place.heir.kill()
                place.heir.clean_up()
                wait_dead(doomed, point)
        elif doomed.is_alive() and function == "rehearse":
            # Refused, with an error that counts as "not yet", until it has said that it is ready.
            place.installation.wait_until(lambda: place.db.execute("SELECT reports.ask(%s, 'handoff', 'main', %s, interval '1 minute')",
                                                                   (uuid.uuid4(), doomed.name)).fetchone(), 20, "it may be named as successor")
            wait_dead(doomed, point)
            place.db.execute("UPDATE reports.request SET state = 'expired', answered_at = clock_timestamp() WHERE kind = 'handoff' AND state = 'pending'")
        elif doomed.is_alive() and function in FOR_LATE_EDITS:
            # Nobody leads while firings come due and two edits are made: the old versions plan first.
            with place.scope_locked():
                place.heir.stop()
                for _ in range(2):
                    due = place.load.now()
                    harness.wait_until(lambda due=due: (place.load.now() - due).total_seconds() > 1.1, 5, "a firing comes due")
                    place.edit()
            wait_dead(doomed, point)
        elif doomed.is_alive():
            place.heir.stop()
            harness.wait_until(lambda: leads(doomed) or not doomed.is_alive(), 20, "it leads", [doomed])
            if doomed.is_alive() and function in RARE:
                getattr(place, RARE[function])()
            elif doomed.is_alive() and function == "refuse_request":
                place.ask("poison")
            elif doomed.is_alive() and function in AT_STOP:
                doomed.process.send_signal(signal.SIGTERM)
            wait_dead(doomed, point)
        wait_dead(doomed, point)
    finally:
        doomed.end()
    # Every other one is found dead by expiry alone.
    if place.number % 2 == 0:
        assert doomed.clean_up()[0] in (0, 3)
    if not place.heir.is_alive():
        place.heir.start()


def die_as_worker(place, name, process, point):
    function = point.partition(".")[0]
    if function == "release_claims":
        return die_releasing(place, name, point)
    doomed = start_doomed(place, process, name, point)
    try:
        if process == "keeper":
            harness.wait_until(lambda: f"crash point {point}" in doomed.log_text() or keepers_died(place, doomed), DEATH_S, "a keeper dies", [doomed])
            doomed.kill()
        else:
            if function in AT_STOP:
                harness.wait_until(lambda: "worker registered" in doomed.log_text(), 20, "it is there", [doomed])
                doomed.process.send_signal(signal.SIGTERM)
            harness.wait_until(lambda: not doomed.is_alive() or (function == "claims_of" and place.lose_claims() and False), DEATH_S,
                               f"{doomed.name} dies at {point}", [doomed])
            wait_dead(doomed, point)
    finally:
        doomed.end()
    if place.number % 2 == 0:
        assert doomed.clean_up()[0] in (0, 3)
    return None


def keepers_died(place, doomed):
    """Jobs of it that failed since a keeper was killed."""
    return "keeper was killed" in doomed.log_text()


def die_by_messages(stack, point):
    """In an installation of its own: it has pulled, and found nothing, before the first job is planned, so each is claimed by its message."""
    installation = harness.Installation(stack)
    try:
        installation.create()
        load = loads.Load(installation, ticks=5, files=2)
        doomed = load.start_worker("doomed", prefix=("env", f"RS_CRASH_AT={point}"), pull_idle_ms=50000)
        installation.daemons.remove(doomed)
        harness.wait_until(lambda: load.one(HAS_PULLED), 20, "it has pulled", [doomed])
        installation.start_scheduler("one")
        wait_dead(doomed, point)
        load.start_worker("next")
        load.wait_flowing(5)
        if not point.endswith((".before", ".sent")) or point.startswith("offset"):
            load.wait_until(lambda: load.one("SELECT count(*) FROM reports.job_attempt WHERE outcome = 'lost'"), 40, "what it had claimed is found lost")
        proof.check_planned_and_done(installation, load.db, "tick-1")
    finally:
        installation.remove(keep_files=False)


def die_refused(place, stack, name, point):
    """Its zookeeper_root is the one of another installation."""
    other = harness.Installation(stack)
    try:
        other.create()
        other.start_scheduler("owner")
        leader = other.wait_until(other.leader, 30, "the owner leads")
        wrong = {"zookeeper_root": other.zookeeper_root}
        doomed = start_doomed(place, "scheduler", name, point, **wrong)
        try:
            wait_dead(doomed, point)
        finally:
            doomed.end()
        with stack.connect(other.database) as db:
            owner = proof.one(db, "SELECT id FROM reports.installation")
        again = place.installation.start_scheduler(f"{name}-again", **place.files(f"{name}-again", "session"), **wrong)
        place.installation.wait_until(lambda: proof.one(place.db, "SELECT count(*) FROM reports.ensemble_refused WHERE member = %s AND installation = %s",
                                                        (again.name, str(owner))), 30, "the next one is refused, and says so")
        assert not leads(again) and again.stop() == 0
        place.installation.daemons.remove(again)
        assert other.leader() == leader
    finally:
        other.remove(keep_files=False)


def die_releasing(place, name, point):
    """The tool that releases a dead worker's claims dies too; the next one goes on."""
    doomed = start_doomed(place, "worker", name, "record_outcomes.before")
    wait_dead(doomed, "record_outcomes.before")
    result = subprocess.run([harness.build() / "report-worker", "--release-claims", "--config", doomed.config], stdin=subprocess.DEVNULL,
                            text=True, capture_output=True, timeout=40, check=False, env={**os.environ, "RS_CRASH_AT": point})
    assert result.returncode == -signal.SIGKILL and f"crash point {point}\n" in result.stderr, result.stderr
    assert doomed.clean_up()[0] in (0, 3)


def die_closing(place, name, point):
    """The same of the tool that closes a dead scheduler's session."""
    doomed = start_doomed(place, "scheduler", name, "quorum_write.answered:3")
    wait_dead(doomed, "quorum_write.answered")
    result = subprocess.run([harness.build() / "report-scheduler", "--close-dead-session", "--config", doomed.config],
                            stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=40, check=False, env={**os.environ, "RS_CRASH_AT": point})
    assert result.returncode == -signal.SIGKILL and f"crash point {point}\n" in result.stderr, result.stderr
    assert doomed.clean_up()[0] in (0, 3)


def die_proving(stack, point):
    """An ensemble that gives lower numbers than the database has seen: in an installation of its own, which is held by it."""
    installation = harness.Installation(stack)
    try:
        installation.create()
        with installation.stack.connect(installation.database) as db:
            first = installation.start_scheduler("first")
            installation.wait_until(installation.leader, 30, "it leads")
            assert first.stop() == 0
            db.execute("UPDATE reports.fence SET generation = generation + (1::bigint << 50) WHERE scope = 'main'")
            doomed = harness.Daemon("report-scheduler", "doomed", installation.directory,
                                    harness.config_text(harness.scheduler_settings(installation, "doomed")), ("env", f"RS_CRASH_AT={point}")).start()
            try:
                wait_dead(doomed, point)
            finally:
                doomed.end()
            installation.start_scheduler("next")
            installation.wait_until(lambda: proof.one(db, "SELECT cause FROM reports.hold WHERE lifted_at IS NULL") == "zxid_regressed", 30,
                                    "the next one proves it")
            assert proof.one(db, "SELECT count(*) FROM reports.hold WHERE lifted_at IS NULL") == 1
    finally:
        installation.remove(keep_files=False)


@pytest.mark.parametrize("process, point", points(), ids=[p for _, p in points()])
def test_others_go_on_after_a_death_at(place, stack, process, point):
    if point.startswith("prove_regressed"):
        die_proving(stack, point)
        return
    if point.partition(".")[0] in BY_MESSAGES:
        die_by_messages(stack, point)
        return
    name = f"{place.name()}-{process}"
    if point.startswith("dead_session"):
        die_closing(place, name, point)
    elif point.startswith("root_refused"):
        die_refused(place, stack, name, point)
    elif process == "scheduler":
        die_as_scheduler(place, name, point)
    else:
        die_as_worker(place, name, process, point)
    died = place.load.now()
    place.installation.wait_until(lambda: proof.one(place.db, "SELECT min(next_fire_at) > %s FROM reports.schedule_progress WHERE schedule LIKE 'tick-%%'", (died,)),
                                  40, "planning goes on")
    begun = time.monotonic()
    place.load.wait_flowing(5)
    assert time.monotonic() - begun < 40
