"""`reportctl` from outside: what people and scripts see of an installation.

No scheduler runs here: the leader's part is played through the fenced functions that it would call,
so each case is exact.
"""

import csv
import datetime
import io
import json
import os
import re
import threading
import time
import uuid

import pytest

import harness
from ctl import Ctl

OWNER = "00000000-0000-4000-8000-000000000007"
ZOMBIE = "00000000-0000-4000-8000-000000000006"
UTC = datetime.timezone.utc


class Played(Ctl):
    """reportctl on one installation whose leader is played."""

    def __init__(self, installation):
        super().__init__(installation)
        self.leader_db = installation.connect("report_scheduler")

    # The leader's part.

    def lead(self, generation=200):
        self.leader_db.execute("SELECT reports.ensemble_meet('ens', 'member-1')")
        self.leader_db.execute("SELECT reports.establish('main', 1, %s, %s, 'member-1')",
                               (generation, OWNER))
        self.leader_db.execute("SELECT reports.activated('main', 1, %s, %s, 5)",
                               (generation, OWNER))

    def take_in(self, schedule, next_fire_at, key_form="minute", problem=None):
        change, version = self.db.execute(
            "SELECT id, version FROM reports.schedule_change WHERE schedule = %s ORDER BY id",
            (schedule,)).fetchone()
        self.leader_db.execute(
            "SELECT reports.take_in('main', 1, 200, %s, ARRAY[%s], ARRAY[%s::bigint], ARRAY[%s],"
            " ARRAY[NULL::bigint], ARRAY[clock_timestamp()], ARRAY[%s::timestamptz],"
            " ARRAY[%s::timestamp], ARRAY[0], ARRAY[%s], ARRAY[%s::text], ARRAY['2025b'])",
            (OWNER, schedule, change, version, next_fire_at, next_fire_at.replace(tzinfo=None),
             key_form, problem))

    def fire(self, schedule, key, fire_at):
        """One firing of a schedule that was taken in; returns the job's id."""
        job = self.db.execute(
            "SELECT (substr(reports.job_id_floor(%s)::text, 1, 15)"
            " || substr(gen_random_uuid()::text, 16, 3) || '-8'"
            " || substr(gen_random_uuid()::text, 21))::uuid", (fire_at,)).fetchone()[0]
        version, step = self.db.execute("SELECT version, step FROM reports.schedule_progress"
                                        " WHERE schedule = %s", (schedule,)).fetchone()
        local = fire_at.replace(tzinfo=None)
        answer = self.leader_db.execute(
            "SELECT * FROM reports.plan_batch('main', 1, 200, %(owner)s, ARRAY[%(s)s],"
            " ARRAY[%(v)s], ARRAY[%(step)s::bigint], ARRAY[%(next)s::timestamptz],"
            " ARRAY[NULL::timestamp], ARRAY[0], ARRAY[%(at)s::timestamptz],"
            " ARRAY[%(local)s::timestamp], ARRAY[0], '2025b', ARRAY[%(s)s], ARRAY[%(key)s],"
            " ARRAY[%(job)s::uuid], ARRAY[%(at)s::timestamptz], ARRAY[%(local)s::timestamp],"
            " ARRAY[0], ARRAY[%(local)s::date], ARRAY[NULL::timestamptz], ARRAY['schedule'],"
            " '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
            {"owner": OWNER, "s": schedule, "v": version, "step": step, "key": key, "job": job,
             "at": fire_at, "local": local,
             "next": fire_at + datetime.timedelta(days=3650)}).fetchone()
        assert answer[0] == "ok" and answer[2] == 1, answer
        return job

    def run_job(self, job, outcome="succeeded", error=None):
        """A worker claims the job and reports its outcome."""
        worker = str(uuid.uuid4())
        db = self.installation.connect("report_worker")
        db.execute("SELECT reports.worker_register(%s, 'worker-1', 77, '0', ARRAY['default'], 3)",
                   (worker,))
        token = db.execute("SELECT token FROM reports.claim_ids(%s, ARRAY['default'],"
                           " ARRAY[%s::uuid])", (worker, job)).fetchone()[0]
        made = outcome == "succeeded"
        verdict = db.execute(
            "SELECT verdict FROM reports.record_outcomes(ARRAY[%s::uuid], ARRAY[%s::uuid],"
            " ARRAY[%s], ARRAY[false], ARRAY[%s::text], ARRAY[NULL::integer], ARRAY[%s::text],"
            " ARRAY[%s::text], ARRAY['text/csv'], ARRAY[1482273::bigint], ARRAY[3::bigint],"
            " ARRAY[sha256('x')])",
            (job, token, outcome, error, "local" if made else None,
             f"x/{job}.csv" if made else None)).fetchone()[0]
        assert verdict == "done"

    def add(self, name, rule="* * * * *", zone="UTC", kind="cron"):
        self.db.execute("INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')"
                        " ON CONFLICT DO NOTHING")
        self.db.execute("INSERT INTO reports.schedule (name, report, kind, rule, time_zone)"
                        " VALUES (%s, 'nothing', %s, %s, %s)", (name, kind, rule, zone))


@pytest.fixture
def ctl(installation):
    return Played(installation)


@pytest.fixture
def role(ctl):
    """role(group): a login role that is a member of the group, gone after the test."""
    made = []

    def make(group):
        name = f"ctl_{uuid.uuid4().hex[:10]}"
        ctl.db.execute(f'CREATE ROLE "{name}" LOGIN IN ROLE "{group}"')
        made.append(name)
        return name

    yield make
    for name in made:
        ctl.db.execute(f'DROP OWNED BY "{name}"')
        ctl.db.execute(f'DROP ROLE "{name}"')


def minutes_ago(n):
    now = datetime.datetime.now(UTC).replace(second=0, microsecond=0)
    return now - datetime.timedelta(minutes=n)


LISTS = [("leaders",), ("schedules",), ("schedules", "--problem"), ("schedules", "--paused"),
         ("requests",), ("queues",), ("holds",), ("holds", "--all"), ("occurrences",), ("jobs",),
         ("workers",), ("workers", "--all"), ("events",), ("events", "--refused")]
PAGES = [("status",), ("schedule", "sales"), ("job", "sales:2030"), ("outbox",),
         ("outbox", "--dead")]


def test_a_reader_sees_everything_in_every_form(ctl, role):
    reader = role("report_reader")
    ctl.add("sales")
    ctl.lead()
    ctl.take_in("sales", minutes_ago(1))
    ctl.fire("sales", "2030", minutes_ago(1))
    for words in LISTS + PAGES:
        assert ctl.ok(*words, role=reader) != ""
        value = ctl.json(*words, role=reader)
        assert isinstance(value, list if words in LISTS else dict)
    for words in LISTS:
        rows = list(csv.reader(io.StringIO(ctl.ok(*words, "-o", "csv", role=reader))))
        assert len(rows) >= 1
        assert {len(r) for r in rows} == {len(rows[0])}


def test_a_reader_may_not_trigger_and_is_told_which_role_may(ctl, role):
    ctl.add("sales")
    line = ctl.refused(1, "trigger", "sales", role=role("report_reader"))
    assert "permission denied" in line and "trigger needs report_operator" in line


def test_an_unreachable_database_is_one_clear_line(ctl):
    line = ctl.refused(1, "status", database="host=127.0.0.1 port=1 dbname=x")
    assert "cannot reach the database: " in line and "Connection refused; check --database" in line
    line = ctl.refused(1, "status", database="host=127.0.0.1 port=1 user=x bogus=1")
    assert 'invalid connection option "bogus"' in line


def test_a_database_without_the_schema_names_the_remedy(ctl):
    stack = ctl.installation.stack
    line = ctl.refused(1, "status", database=stack.conninfo("postgres"))
    assert line.endswith("run: reportctl migrate\n")


def test_a_server_that_does_not_answer_ends_at_the_timeout(ctl):
    with ctl.installation.stack.connect(ctl.installation.database) as db:
        with db.transaction():
            db.execute("LOCK TABLE reports.fence IN ACCESS EXCLUSIVE MODE")
            begun = time.monotonic()
            line = ctl.refused(1, "leaders", "--timeout", "1")
            assert time.monotonic() - begun < 30
    assert "no answer within the deadline" in line


def test_a_hold_whose_answer_is_lost_says_where_to_look(ctl):
    with ctl.installation.stack.connect(ctl.installation.database) as db:
        with db.transaction():
            db.execute("LOCK TABLE reports.hold IN EXCLUSIVE MODE")
            line = ctl.refused(1, "hold", "a drill", "--timeout", "1")
            assert line.endswith("; it may have been done all the same: reportctl holds shows it\n")
            line = ctl.refused(1, "queue", "hold", "default", "--timeout", "1")
            assert "reportctl holds shows it" in line
    assert ctl.json("holds") == []


def test_status_shows_what_is_wrong_first(ctl):
    ctl.add("sales")
    ctl.add("broken", "0 0 31 2 *")
    ctl.lead()
    ctl.take_in("broken", minutes_ago(1), problem="never fires")
    assert ctl.leader_db.execute("SELECT verdict FROM reports.tend('main', 1, 100, %s, 10)",
                                 (ZOMBIE,)).fetchone() == ("fenced",)
    ctl.db.execute("INSERT INTO reports.hold (scope, reason) VALUES ('main', 'a drill')")
    status = ctl.json("status")
    assert [(p["kind"], p["subject"], p["problem"]) for p in status["problems"]] == [
        ("hold", "main", "scope held by postgres: a drill"),
        ("queue", "default", "schedules name the queue and no living worker serves it: their jobs will wait"),
        ("schedule", "broken", "never fires")]
    scope = status["scopes"][0]
    assert (scope["state"], scope["leader"], scope["generation"]) == ("active", "member-1", 200)
    assert (scope["edits_waiting"], scope["refused_writes"], scope["held"]) == (1, 1, True)
    assert status["holds"][0]["reason"] == "a drill"
    lines = ctl.ok("status").splitlines()
    assert lines.index("PROBLEMS") < lines.index("SCOPES")
    refusal = ctl.json("events", "--refused")[0]
    assert (refusal["operation"], refusal["generation"], refusal["accepted_generation"]) == (
        "tend", 100, 200)


def test_status_says_none_when_nothing_is_wrong(ctl):
    ctl.lead()
    assert "PROBLEMS\nnone\n" in ctl.ok("status")


def test_status_knows_a_silent_leader_a_late_plan_and_work_without_workers(ctl):
    ctl.add("sales")
    ctl.lead()
    ctl.take_in("sales", minutes_ago(5))
    ctl.fire("sales", "2030", minutes_ago(5))
    ctl.db.execute("UPDATE reports.schedule_progress SET next_fire_at = %s", (minutes_ago(4),))
    problems = {p["kind"] for p in ctl.json("status")["problems"]}
    assert problems == {"planning", "queue"}
    ctl.db.execute("UPDATE reports.fence_pulse SET beat_at = now() - interval '2 minutes'")
    status = ctl.json("status")
    assert status["scopes"][0]["state"] == "silent"
    assert status["scopes"][0]["due_lag_s"] > 200
    assert {p["kind"] for p in status["problems"]} == {"leader", "queue"}
    assert [s["jobs"] for s in status["jobs"] if s["state"] == "queued"] == [1]
    assert status["outbox"][0]["messages"] == 1


def test_a_released_scope_shows_why_and_since_when(ctl):
    ctl.lead()
    ctl.leader_db.execute("SELECT reports.release('main', 1, 200, %s, 'stopped')", (OWNER,))
    leader = ctl.json("leaders")[0]
    assert (leader["state"], leader["leader"], leader["release_reason"]) == ("no leader", None,
                                                                             "stopped")
    assert [e["event"] for e in ctl.json("events")] == ["released", "activated", "established",
                                                        "ensemble_adopted"]


def test_a_schedule_no_leader_has_seen_says_unchecked(ctl):
    ctl.add("sales")
    ctl.db.execute("UPDATE reports.schedule_change SET made_at = now() - interval '10 seconds'")
    row = ctl.json("schedules", "--problem")[0]
    assert (row["name"], row["problem"]) == ("sales", "unchecked: no leader has taken it in yet")


def test_what_does_not_exist_is_named_with_what_was_meant(ctl):
    ctl.add("sales-daily")
    for words in (("schedule", "sales-dayly"), ("next", "sales-dayly"),
                  ("occurrences", "sales-dayly"), ("jobs", "--schedule", "sales-dayly")):
        line = ctl.refused(3, *words)
        assert 'schedule "sales-dayly" does not exist; did you mean sales-daily?' in line
    assert "does not exist" in ctl.refused(3, "trigger", "zzzzzzz")
    assert "does not exist" in ctl.refused(3, "job", "sales-daily:2030-04-12")
    assert "does not exist" in ctl.refused(3, "job", uuid.uuid4())
    assert "write its id or SCHEDULE:KEY" in ctl.refused(2, "job", "x")


def test_a_name_that_does_not_exist_is_an_error_with_those_there_are(ctl):
    ctl.db.execute("INSERT INTO reports.scope (name) VALUES ('second')")
    for words in (("schedules",), ("schedules", "--problem"), ("outbox",), ("outbox", "--dead"),
                  ("events",), ("events", "--refused"), ("requests",)):
        line = ctl.refused(3, *words, "--scope", "secnod")
        assert 'scope "secnod" does not exist; did you mean second? There are: main, second' in line
        assert ctl.ok(*words, "--scope", "second") != ""
    assert 'queue "nosuch" does not exist; there are: default' in ctl.refused(3, "jobs", "--queue", "nosuch")
    ctl.add("sales")
    assert "queue" in ctl.refused(3, "jobs", "--schedule", "sales", "--queue", "nosuch")
    assert ctl.ok("jobs", "--queue", "default") == "No such jobs.\n"
    ctl.refused(2, "jobs", "--state", "nosuch")
    ctl.refused(2, "requests", "--state", "nosuch")


def test_jobs_of_a_queue_are_listed_alone(ctl):
    ctl.db.execute("INSERT INTO reports.queue (name, max_outstanding) VALUES ('slow', 7)")
    ctl.add("sales")
    ctl.add("stuck")
    ctl.lead()
    for name in ("sales", "stuck"):
        ctl.take_in(name, minutes_ago(1))
        ctl.fire(name, "k", minutes_ago(1))
    ctl.db.execute("UPDATE reports.job SET queue = 'slow' WHERE schedule = 'stuck'")
    assert [j["schedule"] for j in ctl.json("jobs", "--queue", "slow")] == ["stuck"]
    assert ctl.json("jobs", "--queue", "slow", "--schedule", "sales") == []
    queues = {q["queue"]: q for q in ctl.json("queues")}
    assert {n: (q["max_outstanding"], q["queued"], q["running"], q["waiting"], q["workers"])
            for n, q in queues.items()} == {"default": (None, 1, 0, 0, 0), "slow": (7, 1, 0, 0, 0)}


def test_status_shows_workers_that_were_found_dead_within_a_day(ctl):
    for name, state, ago in (("alive", "alive", None), ("yesterday", "dead", "23 hours"),
                             ("long-ago", "dead", "25 hours"), ("in-order", "stopped", "1 minute")):
        ctl.db.execute("INSERT INTO reports.worker (id, name, pid, version, queues, slots, state, stopped_at)"
                       " VALUES (gen_random_uuid(), %s, 1, '0', '{default}', 1, %s,"
                       " clock_timestamp() - %s::interval)", (name, state, ago))
    ctl.db.execute("UPDATE reports.worker SET heartbeat_at = clock_timestamp() - interval '40 seconds'"
                   " WHERE name = 'alive'")
    status = ctl.json("status")
    assert [(w["name"], w["state"]) for w in status["workers"]] == [("alive", "silent"),
                                                                    ("yesterday", "dead")]
    assert [(p["kind"], p["subject"]) for p in status["problems"]] == [("worker", "alive")]


def test_a_request_that_nobody_answers_is_a_problem(ctl):
    ctl.add("sales")
    ctl.ok("trigger", "sales", "--wait", "0")
    assert "requests" not in {p["kind"] for p in ctl.json("status")["problems"]}
    ctl.db.execute("UPDATE reports.request SET requested_at = requested_at - interval '11 seconds'")
    problems = ctl.json("status")["problems"]
    assert [(p["subject"], p["problem"]) for p in problems if p["kind"] == "requests"] == [
        ("main", "requests not answered: 1")]


def test_a_deleted_schedule_says_when_and_keeps_its_ledger(ctl):
    ctl.add("sales")
    ctl.lead()
    ctl.take_in("sales", minutes_ago(1))
    ctl.fire("sales", "2030", minutes_ago(1))
    ctl.db.execute("DELETE FROM reports.schedule WHERE name = 'sales'")
    assert 'schedule "sales" was deleted at ' in ctl.refused(3, "schedule", "sales")
    assert [o["key"] for o in ctl.json("occurrences", "sales")] == ["2030"]


def test_a_job_is_found_by_id_and_by_key_with_attempts_and_artifact(ctl):
    ctl.add("sales")
    ctl.lead()
    ctl.take_in("sales", minutes_ago(1))
    job = ctl.fire("sales", "2030-04-12T06:00", minutes_ago(1))
    ctl.run_job(job)
    by_id, by_key = ctl.json("job", job), ctl.json("job", "sales:2030-04-12T06:00")
    assert by_id["job"]["id"] == by_key["job"]["id"] == str(job)
    assert by_id["job"]["state"] == "succeeded"
    assert [a["outcome"] for a in by_id["attempts"]] == ["succeeded"]
    artifact = by_id["artifacts"][0]
    assert (artifact["path"], artifact["size_bytes"], artifact["rows"]) == (f"x/{job}.csv", 1482273, 3)
    assert "1.4 MiB" in ctl.ok("job", job)


def test_a_waiting_job_says_what_it_waits_for(ctl):
    ctl.add("sales")
    ctl.lead()
    ctl.take_in("sales", minutes_ago(5))
    first, second = ctl.fire("sales", "first", minutes_ago(4)), ctl.fire("sales", "second", minutes_ago(3))
    ctl.db.execute("UPDATE reports.job SET overlap = 'queue'")
    ctl.db.execute("UPDATE reports.job SET state = 'waiting', waits_for = 'overlap' WHERE id = %s", (second,))
    assert "waiting for overlap" in ctl.ok("jobs")
    assert [(j["state"], j["waits_for"]) for j in ctl.json("jobs")] == [("waiting", "overlap"), ("queued", None)]
    job = ctl.json("job", "sales:second")["job"]
    assert (job["state"], job["waits_for"], job["waits_on"]) == ("waiting", "overlap", "job sales:first, which is queued")
    assert "job sales:first, which is queued" in ctl.ok("job", "sales:second")
    assert ctl.json("job", first)["job"]["waits_on"] is None
    ctl.db.execute("UPDATE reports.job SET state = 'waiting', waits_for = 'capacity', run_after = now() - interval '1 hour'")
    ctl.db.execute("UPDATE reports.queue SET max_outstanding = 1")
    assert 'room in queue "default" (max_outstanding 1)' in ctl.ok("job", "sales:second")
    queue, = ctl.json("queues")
    assert (queue["queued"], queue["waiting"]) == (0, 2) and queue["oldest_at"] is not None


def test_failed_jobs_are_listed_with_their_error(ctl):
    ctl.add("sales")
    ctl.lead()
    ctl.take_in("sales", minutes_ago(2))
    good = ctl.fire("sales", "good", minutes_ago(2))
    bad = ctl.fire("sales", "bad", minutes_ago(1))
    ctl.run_job(good)
    ctl.run_job(bad, "failed", "first line\nsecond line")
    listed = ctl.json("jobs", "--state", "failed")
    assert [(j["id"], j["error"]) for j in listed] == [(str(bad), "first line\nsecond line")]
    assert "first line second line" in ctl.ok("jobs", "--state", "failed")
    assert [j["key"] for j in ctl.json("jobs", "--schedule", "sales")] == ["bad", "good"]
    assert "jobs failed within a day: 1" in {p["problem"] for p in ctl.json("status")["problems"]}


def test_occurrences_come_newest_first_within_the_bounds(ctl):
    ctl.add("sales")
    ctl.lead()
    ctl.take_in("sales", minutes_ago(10))
    ats = [minutes_ago(60 * 24 * 400), minutes_ago(60 * 24 * 10), minutes_ago(60 * 5),
           minutes_ago(3)]
    for i, at in enumerate(ats):
        ctl.fire("sales", f"k{i}", at)
    keys = lambda *words: [o["key"] for o in ctl.json("occurrences", *words)]
    assert keys() == keys("sales") == ["k3", "k2", "k1", "k0"]
    assert keys("--limit", "2") == ["k3", "k2"]
    assert keys("--from", ats[1].isoformat(), "--to", ats[3].isoformat()) == ["k2", "k1"]
    assert "only the first 2; --limit N shows more" in ctl.run("occurrences", "--limit", "2").stderr


def test_next_is_strictly_after_the_database_clock_and_by_the_rules_that_plan(ctl):
    harness.away_from_the_half_hour(10)
    ctl.add("sales", "30 6 * * 1-5", "Europe/Berlin")
    lines = ctl.ok("next", "sales", "--count", "3").splitlines()
    now = ctl.db.execute("SELECT clock_timestamp()").fetchone()[0]
    assert all(datetime.datetime.fromisoformat(line) > now for line in lines)
    assert lines == ctl.ok("next", "--cron", "30 6 * * 1-5", "--time-zone", "Europe/Berlin",
                           "--after", now.isoformat(), "--count", "3").splitlines()
    rows = ctl.json("next", "sales", "--count", "3")
    assert [r["local"] for r in rows] == lines
    assert rows[0]["occurrence_key"] == lines[0][:10]


def test_next_keeps_to_the_start_and_end_of_the_schedule(ctl):
    ctl.add("sales", "0 6 * * *")
    ctl.db.execute("UPDATE reports.schedule SET starts_at = '2130-04-12 06:00+00',"
                   " ends_at = '2130-04-14 06:00+00'")
    assert ctl.ok("next", "sales").splitlines() == ["2130-04-12T06:00:00+00:00",
                                                    "2130-04-13T06:00:00+00:00"]


def nothing_next(ctl, name):
    """What `next` says of a schedule that fires no more: on stderr, so that a script reads no line."""
    result = ctl.run("next", name)
    assert (result.returncode, result.stdout) == (0, "")
    assert ctl.json("next", name) == []
    return result.stderr


def test_next_says_why_nothing_is_to_come(ctl):
    ctl.add("once", "2020-01-01T06:00", kind="once")
    assert nothing_next(ctl, "once") == (
        'reportctl: schedule "once": no firing is to come: it fires once, at 2020-01-01T06:00:00+00:00, which is past\n')
    assert "it fires once" in ctl.ok("schedule", "once")
    for name, bound in (("ended", "ends_at = '2020-01-01 00:00+00'"), ("closed", "ends_at = '-infinity'"),
                        ("unborn", "starts_at = 'infinity'"), ("brief", "ends_at = now() + interval '1 second'")):
        ctl.add(name, "0 6 1 1 *")
        ctl.db.execute(f"UPDATE reports.schedule SET {bound} WHERE name = %s", (name,))
    assert "it has ended (ends_at 2020-01-01T00:00:00Z)" in nothing_next(ctl, "ended")
    assert "it has ended (ends_at -infinity)" in nothing_next(ctl, "closed")
    assert "it never starts (starts_at infinity)" in nothing_next(ctl, "unborn")
    assert " (ends_at 2" in nothing_next(ctl, "brief")
    ctl.add("daily", "0 6 * * *")
    ctl.db.execute("UPDATE reports.schedule SET paused = true WHERE name = 'daily'")
    assert "it is paused since 2" in nothing_next(ctl, "daily")
    assert "Z; reportctl resume daily lets it go on" in nothing_next(ctl, "daily")


def test_next_of_a_firing_that_is_due_and_not_planned_says_so(ctl):
    at = minutes_ago(1)
    ctl.add("once", at.strftime("%Y-%m-%dT%H:%M"), kind="once")
    ctl.lead()
    ctl.take_in("once", at)
    assert f"the one of {at.strftime('%Y-%m-%dT%H:%M')}:00Z is due and not yet planned" in nothing_next(ctl, "once")


def test_next_of_a_rule_that_cannot_work_is_invalid_input(ctl):
    ctl.add("sales", "30-10 * * * *")
    assert 'schedule "sales": ' in ctl.refused(2, "next", "sales")
    assert "30-10" in ctl.ok("schedule", "sales")


def test_next_of_a_schedule_with_a_problem_promises_nothing(ctl):
    ctl.add("sales", "0 * * * *")
    ctl.lead()
    ctl.take_in("sales", minutes_ago(1), problem="make a new schedule")
    assert "make a new schedule" in ctl.refused(2, "next", "sales")
    # An edit that the leader has not seen yet may have mended it: its firings can be looked at.
    ctl.db.execute("UPDATE reports.schedule SET rule = '5 * * * *'")
    assert len(ctl.ok("next", "sales", "--count", "2").splitlines()) == 2


def test_next_with_cron_needs_no_database(ctl):
    words = ("next", "--cron", "30 2 * * *", "--time-zone", "Europe/Berlin", "--after",
             "2026-03-28T02:00:00Z", "--count", "2")
    nowhere = "host=127.0.0.1 port=1"
    assert ctl.ok(*words, database=nowhere) == "2026-03-29T03:00:00+02:00\n2026-03-30T02:30:00+02:00\n"
    asked = datetime.datetime.now(datetime.timezone.utc)
    at = datetime.datetime.fromisoformat(ctl.ok("next", "--cron", "0 0 1 1 *", "--time-zone", "UTC").strip())
    assert asked < at <= asked + datetime.timedelta(days=367), "without --after it begins now"
    assert ctl.run("next", "--cron", "61 * * * *", "--time-zone", "UTC", "--after",
                   "2030-01-01T00:00:00Z", database=nowhere).returncode == 2
    assert "takes a schedule or --cron" in ctl.refused(2, "next", "x", "--cron", "* * * * *",
                                                       database=nowhere)
    assert "--after goes with --cron" in ctl.refused(2, "next", "x", "--after",
                                                     "2030-01-01T00:00:00Z", database=nowhere)


def test_a_trigger_without_a_leader_expires_and_says_so(ctl):
    ctl.add("sales")
    line = ctl.refused(4, "trigger", "sales", "--key", "by-hand", "--wait", "1")
    assert "no leader of scope main answered in time (never led); request " in line
    # A leader that comes later finds it expired.
    ctl.lead()
    pending = ctl.leader_db.execute("SELECT expired FROM reports.pending_requests('main', 10)")
    assert pending.fetchall() == [(True,)]
    assert ctl.json("occurrences") == []
    # Until then it is no longer waited for, and is shown as what it will be.
    assert ctl.json("requests", "--state", "pending") == []
    expired, = ctl.json("requests", "--state", "expired")
    assert expired["answer"] == "no leader carried it out before its deadline; ask again with a fresh request id"
    status = ctl.json("status")
    assert [s["requests_waiting"] for s in status["scopes"]] == [0]
    assert "requests" not in {p["kind"] for p in status["problems"]}


def answering(ctl, stop):
    """Play the leader that answers requests, until told to stop."""
    db = ctl.installation.stack.connect(ctl.installation.database, "report_scheduler")
    with db:
        while not stop.wait(0.02):
            for (request,) in db.execute("SELECT id FROM reports.pending_requests('main', 10)"):
                db.execute("SELECT reports.answer_request('main', 1, 200, %s, %s, %s)",
                           (OWNER, request, str(uuid.uuid4())))


@pytest.fixture
def leader(ctl):
    ctl.lead()
    stop = threading.Event()
    thread = threading.Thread(target=answering, args=(ctl, stop))
    thread.start()
    yield
    stop.set()
    thread.join(10)


@pytest.mark.usefixtures("leader")
def test_a_trigger_is_answered_with_its_job(ctl, role):
    ctl.add("sales")
    operator = role("report_operator")
    out = ctl.ok("trigger", "sales", "--key", "2020-04-12T06:00", role=operator)
    occurrence = ctl.json("occurrences", "sales")[0]
    assert (occurrence["key"], occurrence["cause"]) == ("2020-04-12T06:00", "manual")
    assert out == f"occurrence sales:2020-04-12T06:00 made; job {occurrence['job_id']}\n"
    again = ctl.ok("trigger", "sales", "--key", "2020-04-12T06:00", role=operator)
    assert again == (f"occurrence sales:2020-04-12T06:00 was there already; job "
                     f"{occurrence['job_id']}\n")


@pytest.mark.usefixtures("leader")
def test_repeating_a_request_id_gives_the_first_answer(ctl):
    ctl.add("sales")
    request = str(uuid.uuid4())
    first = ctl.json("trigger", "sales", "--request-id", request)
    second = ctl.json("trigger", "sales", "--request-id", request)
    assert first == second
    assert first["occurrence_key"] == request and first["state"] == "done"
    assert len(ctl.json("occurrences", "sales")) == 1
    assert "was used for something else" in ctl.refused(2, "trigger", "sales", "--key", "x",
                                                        "--request-id", request)


def test_a_trigger_that_a_leader_ignores_says_when_it_was_last_seen(ctl):
    ctl.add("sales")
    ctl.lead()
    ctl.db.execute("UPDATE reports.fence_pulse SET beat_at = now() - interval '70 seconds'")
    line = ctl.refused(4, "trigger", "sales", "--wait", "1")
    assert re.search(r"\(silent: member-1, last sign of life 1m [1-5]\d?s", line), line


def test_a_trigger_need_not_wait(ctl):
    ctl.add("sales")
    request = str(uuid.uuid4())
    out = ctl.ok("trigger", "sales", "--wait", "0", "--request-id", request)
    assert request in out
    assert ctl.json("status")["scopes"][0]["requests_waiting"] == 1


def test_a_refusal_of_the_leader_is_passed_on(ctl):
    ctl.add("sales")
    request = str(uuid.uuid4())
    ctl.ok("trigger", "sales", "--wait", "0", "--request-id", request)
    ctl.db.execute("DELETE FROM reports.schedule WHERE name = 'sales'")
    ctl.lead()
    ctl.leader_db.execute("SELECT reports.answer_request('main', 1, 200, %s, %s, %s)",
                          (OWNER, request, str(uuid.uuid4())))
    line = ctl.refused(4, "trigger", "sales", "--request-id", request)
    assert 'refused: schedule "sales" does not exist' in line


def test_a_key_of_the_wrong_shape_is_invalid_input(ctl):
    ctl.add("sales")
    ctl.refused(2, "trigger", "sales", "--key", "not a key", "--wait", "1")


def test_topics_are_made_and_deleted_once(ctl):
    kafka = ctl.installation.stack.kafka
    topic = f"ctl.{uuid.uuid4().hex[:8]}"
    create = ("topic", "create", topic, "--partitions", "3", "--brokers", kafka)
    assert ctl.ok(*create) == f"topic {topic} made: 3 partitions, replication 1\n"
    assert "exists already" in ctl.refused(2, *create)
    assert ctl.ok("topic", "delete", topic, "--brokers", kafka) == f"topic {topic} deleted\n"
    assert "does not exist" in ctl.refused(3, "topic", "delete", topic, "--brokers", kafka)


def test_the_settings_of_both_programs_are_checked_by_their_own_tables(ctl, tmp_path):
    installation = ctl.installation
    for program, settings in (("scheduler", harness.scheduler_settings(installation, "s-1")),
                              ("worker", harness.worker_settings(installation, "w-1"))):
        path = tmp_path / f"{program}.conf"
        path.write_text(harness.config_text(settings))
        assert ctl.ok("check-config", path) == f"{path}: no faults\n"
        path.write_text(harness.config_text({**settings, "log_levle": "info", "kafka_topic": 7}))
        result = ctl.run("check-config", path)
        assert result.returncode == 2
        faults = result.stderr.splitlines()
        assert len(faults) == 2 and all(f.startswith(f"{path}:") for f in faults), faults
        assert any("log_levle: unknown key; write log_level" in f for f in faults)
        assert "### `kafka_topic`" in ctl.ok("config-reference", program)
    assert "cannot be read" in ctl.refused(3, "check-config", tmp_path / "worker-2.conf")
    assert "--kind scheduler or --kind worker" in ctl.refused(2, "check-config", tmp_path / "x")


def test_the_lifecycle_table_is_printed_in_both_forms(ctl):
    assert "ESTABLISHING" in ctl.ok("lifecycle").upper()
    assert "| --- |" in ctl.ok("lifecycle", "-o", "markdown")


def test_recent_lists_do_not_read_the_whole_ledger(ctl):
    """On 200 000 firings a list of 20 touches a few hundred pages, not all of them."""
    ctl.db.execute("""
        WITH firing AS (
            SELECT n, timestamptz '2030-01-01 00:00Z' - make_interval(mins => n) AS at,
                   's' || n % 50 AS schedule
              FROM generate_series(1, 200000) n ORDER BY n DESC),
        made AS (
            INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for,
                                            cause, version, incarnation, generation, planned_at)
            SELECT schedule, 'k' || n, 'main',
                   (substr(reports.job_id_floor(at)::text, 1, 15) || lpad(to_hex(n % 4096), 3, '0')
                    || '-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
                   at, 'schedule', 1, 1, 1, at FROM firing
            RETURNING *)
        INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority, state,
                                 run_after, max_attempts, retry_base, retry_cap, timeout, finished_at)
        SELECT job_id, schedule, occurrence_key, 'main', 'r', 'default', 0, 'succeeded',
               scheduled_for, 3, '1 s', '1 s', '1 h', scheduled_for FROM made""")
    ctl.db.execute("VACUUM (ANALYZE) reports.occurrence, reports.job")
    span = "scheduled_for >= '2029-12-31 23:00Z' AND scheduled_for < 'infinity'"
    for sql in ("SELECT * FROM reports.v_job ORDER BY id DESC LIMIT 20",
                "SELECT * FROM reports.v_job WHERE id IN (SELECT job_id FROM reports.v_occurrence"
                f" WHERE schedule = 's7' AND {span}) ORDER BY id DESC LIMIT 20",
                "SELECT * FROM reports.v_job WHERE state IN ('failed', 'cancelled', 'quarantined')"
                " AND state = 'failed' ORDER BY id DESC LIMIT 20",
                f"SELECT * FROM reports.v_occurrence WHERE {span} ORDER BY scheduled_for DESC LIMIT 20",
                "SELECT * FROM reports.v_job_state", "SELECT * FROM reports.v_problem",
                "SELECT * FROM reports.v_scope", "SELECT * FROM reports.v_queue"):
        plan = ctl.db.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}").fetchone()[0][0]["Plan"]
        pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        assert pages < 1000, f"{sql} touched {pages} pages"
