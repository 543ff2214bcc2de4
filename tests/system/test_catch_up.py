"""After an outage: the catch-up budget with real leaders, what reportctl shows of it, and what it discards."""

import csv
import io
import uuid

import pytest

import harness
from ctl import Ctl

# The leader sees them for the first time ten hours after they have begun.
SETUP = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.queue (name, catch_up_per_minute) VALUES ('slow', 2);
    UPDATE reports.scope SET catch_up_per_minute = 5 WHERE name = 'main';
    INSERT INTO reports.schedule (name, report, kind, rule, queue, misfire, misfire_max, misfire_grace) VALUES
        ('sales', 'nothing', 'cron', '*/10 * * * *', 'default', 'run_all', 1000, '1 second'),
        ('stock', 'nothing', 'cron', '*/10 * * * *', 'slow', 'run_all', 1000, '1 second');
    UPDATE reports.schedule_version SET effective_from = clock_timestamp() - interval '10 hours'"""
PLANNED = "SELECT count(DISTINCT schedule) FROM reports.job WHERE catch_up"
# Never more than the minutes since then allow.
RELEASED = """SELECT count(*) FILTER (WHERE state <> 'waiting'), count(*) FILTER (WHERE state <> 'waiting' AND queue = 'slow'),
        floor(extract(epoch FROM clock_timestamp() - %s) / 60)::integer + 1
    FROM reports.job WHERE catch_up"""


@pytest.fixture(scope="module")
def installation(stack, request):
    with harness.installed(stack, request) as i:
        Ctl(i).db.execute(SETUP)
        yield i


@pytest.fixture
def ctl(installation):
    return Ctl(installation)


def one(db, sql, *values):
    return db.execute(sql, values).fetchone()


def test_missed_firings_go_by_the_minute_also_across_a_change_of_leader(ctl):
    def released():
        every, slow, minutes = one(ctl.db, RELEASED, begin)
        assert every <= 5 * minutes and slow <= 2 * minutes, (every, slow, minutes)
        return every

    begin = one(ctl.db, "SELECT clock_timestamp()")[0]
    first = ctl.installation.start_scheduler("scheduler-1")
    ctl.installation.wait_until(lambda: one(ctl.db, PLANNED)[0] == 2 and released() >= 5, 60, "the first minute's are released")
    assert one(ctl.db, "SELECT count(*) FROM reports.occurrence WHERE cause = 'misfire'")[0] >= 118, "all are planned at once"
    ctl.installation.start_scheduler("scheduler-2")
    first.kill()
    ctl.installation.wait_until(lambda: (ctl.installation.leader() or "?")[0] == "scheduler-2" and released(), 60, "another one leads")
    tended = one(ctl.db, "SELECT clock_timestamp()")[0]
    beaten = "SELECT beat_at > %s FROM reports.fence_pulse WHERE scope = 'main'"
    ctl.installation.wait_until(lambda: one(ctl.db, beaten, tended)[0], 60, "and has tended")
    assert released() >= 5
    oldest = "SELECT max(run_after) FILTER (WHERE state <> 'waiting') < min(run_after) FILTER (WHERE state = 'waiting') FROM reports.job WHERE schedule = 'stock' AND catch_up"
    assert one(ctl.db, oldest)[0], "the oldest go first"


def test_what_waits_is_shown_with_its_budget_and_its_end(ctl):
    page = ctl.json("catchup", "show")
    scope, = page["scopes"]
    assert (scope["scope"], scope["catch_up_per_minute"], scope["catch_up_order"], scope["held"]) == ("main", 5, "oldest", False)
    assert scope["waiting"] > 50 and scope["expected_end_at"] is not None
    assert [(q["queue"], q["catch_up_per_minute"]) for q in page["queues"]] == [("default", None), ("slow", 2)]
    assert {(w["schedule"], w["queue"], w["backfill"]) for w in page["schedules"]} == {("sales", "default", 0), ("stock", "slow", 0)}
    assert "EXPECTED END" in ctl.ok("catchup", "show", "main")
    assert 'scope "mian" does not exist' in ctl.refused(3, "catchup", "show", "mian")
    assert "catch_up_per_minute 2" in ctl.json("job", "stock:" + one(ctl.db, NEWEST)[0])["job"]["waits_on"]


NEWEST = "SELECT occurrence_key FROM reports.job WHERE schedule = 'stock' AND catch_up AND state = 'waiting' ORDER BY run_after DESC LIMIT 1"


def test_what_waits_is_given_up_once_with_who_and_why(ctl):
    def given_up():
        return one(ctl.db, "SELECT count(*) FROM reports.job WHERE schedule = 'stock' AND state = 'cancelled'")[0]

    newest = one(ctl.db, NEWEST)[0]
    before = one(ctl.db, "SELECT to_char(run_after AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM reports.job WHERE schedule = 'stock'"
                         " AND occurrence_key = %s", newest)[0]
    words = ("catchup", "discard", "stock", "--before", before)
    shown, = csv.DictReader(io.StringIO(ctl.ok(*words, "--dry-run", "-o", "csv")))
    assert shown["schedule"] == "stock" and int(shown["firings"]) > 20 and shown["to_key"] < newest
    assert "needs --reason" in ctl.refused(2, *words, "--yes")
    assert ctl.run(*words, "--reason", "no use").returncode == 2, "nobody can be asked"
    assert given_up() == 0
    asked = (*words, "--reason", "stock was counted 'by hand'", "--yes", "--request-id", str(uuid.uuid4()))
    answer = ctl.ok(*asked)
    assert answer == f"{given_up()} missed firing(s) of 1 schedule(s) discarded\n" and given_up() > 20
    assert ctl.ok(*asked) == answer, "the id gets the first answer"
    assert "something else" in ctl.run(*asked[:3], *asked[5:]).stderr
    record, = ctl.json("schedule", "stock")["discarded"]
    assert (record["firings"], record["to_key"], record["reason"], record["why"]) == (
        given_up(), shown["to_key"], "catchup_discarded", "stock was counted 'by hand'")
    assert "catchup_discarded by postgres: stock was counted 'by hand'" in ctl.json("job", "stock:" + record["from_key"])["job"]["error"]
    assert one(ctl.db, "SELECT state::text FROM reports.job WHERE schedule = 'stock' AND occurrence_key = %s", newest)[0] == "waiting"
    assert " missed firing(s) of 1 schedule(s) discarded" in ctl.ok("catchup", "discard", "--queue", "slow", "--reason", "all of it", "--yes")
    assert ctl.ok("catchup", "discard", "--queue", "slow", "--dry-run") == "No such missed firing waits.\n"
    assert 'schedule "stok" does not exist' in ctl.refused(3, "catchup", "discard", "stok", "--reason", "x", "--yes")
    assert "takes a schedule or --queue" in ctl.refused(2, "catchup", "discard", "--reason", "x", "--yes")


def test_without_a_budget_the_rest_runs_and_the_ledger_is_whole(ctl):
    ctl.db.execute("UPDATE reports.scope SET catch_up_per_minute = NULL WHERE name = 'main'")
    ctl.installation.start_worker("w", queues=["default", "slow"])
    left = "SELECT count(*) FROM reports.job WHERE catch_up AND state NOT IN ('succeeded', 'cancelled')"
    ctl.installation.wait_until(lambda: one(ctl.db, left)[0] == 0, 60, "all that was not given up has run")
    assert one(ctl.db, "SELECT count(*) FROM reports.job WHERE schedule = 'sales' AND state = 'cancelled'")[0] == 0
    ctl.ok("verify")
