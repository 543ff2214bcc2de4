"""Schedules that stop and go on by themselves: a circuit breaker and a pause with an end, with real daemons."""

from datetime import timedelta

import pytest

from ctl import Ctl
from proof import one

SETUP = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.report (name, kind, data_source, query, format) VALUES ('shaky', 'sql', 'warehouse', 'SELECT 1 / 0 AS x', 'csv');
    INSERT INTO reports.schedule (name, report, kind, rule, misfire, breaker_failures, breaker_probe)
    VALUES ('shaky', 'shaky', 'interval', '1 second', 'run_all', 2, '2 seconds');
    INSERT INTO reports.schedule (name, report, kind, rule, misfire) VALUES ('tick', 'nothing', 'interval', '1 second', 'run_all');
    INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('daily', 'nothing', 'cron', '0 6 * * *')"""


@pytest.fixture
def ctl(installation):
    c = Ctl(installation)
    c.db.execute(SETUP)
    installation.start_scheduler()
    return c


def circuit(ctl):
    return one(ctl.db, "SELECT circuit FROM reports.v_schedule WHERE name = 'shaky'")


def test_a_schedule_whose_jobs_fail_is_stopped_probed_and_goes_on_when_it_is_mended(ctl):
    wait = ctl.installation.wait_until
    ctl.installation.start_worker()
    wait(lambda: one(ctl.db, "SELECT sum(firings) >= 1 FROM reports.schedule_gap WHERE reason = 'circuit_open'"), 40, "firings are suppressed")
    wait(lambda: one(ctl.db, "SELECT count(*) FROM reports.circuit_event WHERE event = 'probe_failed'"), 40, "a probe has failed")
    problems = [p for p in ctl.json("status")["problems"] if p["kind"] == "circuit"]
    assert [(p["subject"], "breaker close shaky" in p["remedy"]) for p in problems] == [("shaky", True)]
    shown = ctl.json("schedule", "shaky")
    assert shown["schedule"]["breaker_failures"] == 2 and shown["schedule"]["circuit"] in ("open", "probing")
    assert shown["circuit"][-1]["event"] == "opened" and shown["circuit"][-1]["detail"] == "2 failed jobs in a row"
    key = one(ctl.db, "SELECT from_key FROM reports.schedule_gap WHERE reason = 'circuit_open' ORDER BY id LIMIT 1")
    why = ctl.ok("why", f"shaky:{key}")
    assert "circuit breaker was open" in why and "opened: " in why, why
    ctl.db.execute("UPDATE reports.report SET query = 'SELECT 1 AS x' WHERE name = 'shaky'")
    wait(lambda: circuit(ctl) is None, 40, "the probe has closed it")
    wait(lambda: one(ctl.db, "SELECT state = 'succeeded' FROM reports.v_job WHERE schedule = 'shaky' AND scheduled_for > "
                             "(SELECT max(at) FROM reports.circuit_event WHERE event = 'closed') ORDER BY id LIMIT 1"), 40, "its firings are run again")
    assert "is not open" in ctl.ok("breaker", "close", "shaky")
    ctl.ok("verify")


def test_a_pause_with_an_end_is_foretold_and_ends_by_itself(ctl):
    ctl.installation.wait_until(lambda: one(ctl.db, "SELECT count(*) > 0 FROM reports.occurrence WHERE schedule = 'tick'"), 40, "it ticks")
    assert "is paused until 2199-04-12T04:00:00Z" in ctl.ok("pause", "daily", "--reason", "audit", "--until", "2199-04-12T05:00:00+01:00")
    assert ctl.ok("next", "daily", "--count", "2", "--utc") == "2199-04-12T06:00:00Z\n2199-04-13T06:00:00Z\n"
    assert [(r["name"], r["paused_until"]) for r in ctl.json("schedules", "--paused")] == [("daily", "2199-04-12T04:00:00Z")]
    until = one(ctl.db, "SELECT date_trunc('second', clock_timestamp()) + interval '4 seconds'")
    asked = ("pause", "tick", "--until", until.isoformat(), "--request-id", "00000000-0000-4000-8000-000000000001")
    assert "is paused until" in ctl.ok(*asked)
    assert "is paused until" in ctl.ok(*asked), "the first answer"
    refused = ctl.refused(2, "pause", "tick", "--until", (until - timedelta(days=1)).isoformat())
    assert "which is not to come" in refused and "Write a later instant" in refused
    ctl.installation.wait_until(
        lambda: one(ctl.db, "SELECT count(*) > 0 FROM reports.occurrence WHERE schedule = 'tick' AND scheduled_for > %s", [until]), 40, "it ticks again")
    versions = ctl.db.execute("SELECT paused, effective_from = %s, change_reason FROM reports.schedule_version WHERE schedule = 'tick' ORDER BY version", [until]).fetchall()
    assert versions[-1] == (False, True, "paused_until had come") and versions[-2][0]
    assert one(ctl.db, "SELECT max(to_fire_at) < %s FROM reports.schedule_gap WHERE schedule = 'tick' AND reason = 'paused'", [until]) is not False
    ctl.ok("verify", "--schedule", "tick")
