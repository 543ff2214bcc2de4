"""reportctl backfill with a real leader: what it says it would make, makes, and skips."""

import csv
import io
import uuid

import pytest

import harness
from ctl import Ctl

SETUP = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.report (name, kind, data_source, query, format) VALUES ('sales', 'sql', 'warehouse', $$SELECT :'business_date'$$, 'csv');
    INSERT INTO reports.queue (name) VALUES ('served');
    INSERT INTO reports.schedule (name, report, kind, rule, queue) VALUES ('sales', 'sales', 'cron', '0 6 * * *', 'served');
    INSERT INTO reports.schedule (name, report, kind, rule, time_zone, queue, overlap, dst_overlap, starts_at) VALUES
        ('daily', 'nothing', 'cron', '30 2 * * *', 'Europe/Berlin', 'default', 'allow', 'auto', NULL),
        ('both', 'nothing', 'cron', '*/30 * * * *', 'Europe/Berlin', 'default', 'allow', 'both', NULL),
        ('alone', 'nothing', 'cron', '0 6 * * *', 'UTC', 'default', 'forbid', 'auto', NULL),
        ('monthly', 'nothing', 'cron', '0 6 1 * *', 'UTC', 'default', 'allow', 'auto', '2020-02-15')"""
TAKEN_IN = "SELECT count(*) = 5 FROM reports.schedule_progress WHERE key_form IS NOT NULL"


@pytest.fixture(scope="module")
def installation(stack, request):
    with harness.installed(stack, request) as i:
        ctl = Ctl(i)
        ctl.db.execute(SETUP)
        i.start_scheduler()
        i.wait_until(lambda: ctl.db.execute(TAKEN_IN).fetchone()[0], 60, "the leader has taken the schedules in")
        yield i


@pytest.fixture
def ctl(installation):
    return Ctl(installation)


def firings(ctl, schedule, first, last):
    return ctl.db.execute("""SELECT occurrence_key, scheduled_for, window_start, window_end, cause, business_date::text
        FROM reports.occurrence WHERE schedule = %s AND occurrence_key BETWEEN %s AND %s || 'z' ORDER BY scheduled_for""",
                          [schedule, first, last]).fetchall()


def shown(ctl, *words):
    return [(r["occurrence_key"], r["becomes"]) for r in csv.DictReader(io.StringIO(ctl.ok("backfill", *words, "--dry-run", "-o", "csv")))]


def test_what_is_shown_first_is_made_once_and_what_is_there_is_skipped(ctl):
    ctl.ok("trigger", "daily", "--key", "2025-03-31")
    span = ("daily", "--from", "2025-03-29", "--to", "2025-04-01")
    assert shown(ctl, *span) == [("2025-03-29", "make"), ("2025-03-30", "make"), ("2025-03-31", "there"), ("2025-04-01", "make")]
    assert len(firings(ctl, "daily", "2025-03-29", "2025-04-01")) == 1, "a dry run makes nothing"
    its_id = str(uuid.uuid4())
    asked = ("backfill", *span, "--request-id", its_id)
    assert ctl.ok(*asked) == f'backfill of "daily": 3 made, 1 there already (2025-03-31); request {its_id}\n'
    assert ctl.json(*asked)["answer"] == 'backfill of "daily": 3 made, 1 there already (2025-03-31)', "the id gets the first answer"
    assert [key for key, becomes in shown(ctl, *span) if becomes != "there"] == []
    made = [f for f in firings(ctl, "daily", "2025-03-29", "2025-04-01") if f[4] == "backfill"]
    assert [(key, at.strftime("%dT%H:%M"), date) for key, at, _, _, _, date in made] == [
        ("2025-03-29", "29T01:30", "2025-03-29"), ("2025-03-30", "30T01:00", "2025-03-30"), ("2025-04-01", "01T00:30", "2025-04-01")]
    assert "a backfill that an operator asked for made it" in ctl.json("why", "daily:2025-03-29")["why"]["answer"]
    assert [(f[2].strftime("%dT%H:%M"), f[3] == f[1]) for f in made] == [("28T01:30", True), ("29T01:30", True), ("31T00:30", True)]


def test_both_passes_of_an_overlap_have_their_own_keys(ctl):
    expected = ["2025-10-26T02:00+02:00", "2025-10-26T02:30+02:00", "2025-10-26T02:00+01:00", "2025-10-26T02:30+01:00"]
    assert ctl.ok("backfill", "both", "--from", "2025-10-26T02", "--to", "2025-10-26T02").startswith('backfill of "both": 4 made; request ')
    assert [f[0] for f in firings(ctl, "both", "2025-10-26T02", "2025-10-26T02")] == expected


def test_nothing_before_the_start_or_after_now_is_made(ctl):
    assert [key for key, _ in shown(ctl, "monthly", "--from", "2020-01-01", "--to", "2020-04")] == ["2020-03-01", "2020-04-01"]
    ctl.ok("backfill", "monthly", "--from", "2020-01-01", "--to", "2020-04")
    assert [f[2] and f[2].strftime("%m-%d") for f in firings(ctl, "monthly", "2020", "2021")] == [None, "03-01"], "windows begin with the start"
    assert "names no firing that was due" in ctl.refused(3, "backfill", "daily", "--from", "2999-01-01", "--to", "2999-01-05")


def test_firings_that_a_calendar_moves_are_found_by_the_key_of_their_date(ctl):
    ctl.db.execute("""INSERT INTO reports.calendar (name) VALUES ('weekends');
        INSERT INTO reports.schedule (name, report, kind, rule, calendar, nonbusiness) VALUES ('rolled', 'nothing', 'cron', '0 6 15 * *', 'weekends', 'following')""")
    ctl.installation.wait_until(lambda: ctl.db.execute("SELECT count(*) FROM reports.schedule_progress WHERE schedule = 'rolled' AND key_form IS NOT NULL").fetchone()[0] == 1, 60, "it is taken in")
    assert "2 made" in ctl.ok("backfill", "rolled", "--from", "2024-06", "--to", "2024-07")
    made = [(f[0], f[1].strftime("%m-%d")) for f in firings(ctl, "rolled", "2024-06", "2024-07-31")]
    assert made == [("2024-06-15", "06-17"), ("2024-07-15", "07-15")], made


def test_what_is_open_of_it_is_cancelled(ctl):
    request = str(uuid.uuid4())
    assert ctl.ok("backfill", "daily", "--from", "2024-01-01", "--to", "2024-01", "--request-id", request) == f'backfill of "daily": 31 made; request {request}\n'
    assert "31 job(s) cancelled" in ctl.ok("backfill", "daily", "--cancel", request)
    assert ctl.db.execute("""SELECT count(*) FROM reports.job WHERE schedule = 'daily' AND occurrence_key LIKE '2024-01%%'
                                AND state = 'cancelled'""").fetchone() == (31,)
    assert "no backfill" in ctl.refused(2, "backfill", "daily", "--cancel", str(uuid.uuid4()))
    assert "goes with none of" in ctl.refused(2, "backfill", "daily", "--cancel", request, "--from", "2024-01-01")


def test_what_cannot_be_asked_is_refused_with_the_way_out(ctl):
    for dry in ((), ("--dry-run",)):
        assert "--beside" in ctl.refused(2, "backfill", "alone", "--from", "2024-01-01", "--to", "2024-01-02", *dry)
    assert shown(ctl, "alone", "--from", "2024-01-01", "--to", "2024-01-01", "--beside") == [("2024-01-01", "make")]
    assert ctl.ok("backfill", "alone", "--from", "2024-01-01", "--to", "2024-01-02", "--beside").startswith('backfill of "alone": 2 made; request ')
    assert "more than 1000 firings; ask for them in parts, the first one --to 2024-01-21T19:30" in ctl.refused(
        2, "backfill", "both", "--from", "2024-01-01", "--to", "2024-02-01")
    assert "needs --from KEY and --to KEY" in ctl.refused(2, "backfill", "daily", "--from", "2024-01-01")
    assert "comes after" in ctl.refused(2, "backfill", "daily", "--from", "2024-01-02", "--to", "2024-01-01")
    for wrong in ("yesterday", "2024-02-30", "2024-1-1"):
        assert "is no key of a firing" in ctl.refused(2, "backfill", "daily", "--from", wrong, "--to", "2024-12-01")
    assert 'schedule "dayly" does not exist' in ctl.refused(3, "backfill", "dayly", "--from", "2024-01-01", "--to", "2024-01-02")


def test_a_worker_makes_its_reports_and_makes_one_again_as_the_next_revision(ctl):
    ctl.installation.start_worker("w", queues=["served"])
    ctl.ok("backfill", "sales", "--from", "2024-05-01", "--to", "2024-05-02")
    done = "SELECT count(*) = 2 FROM reports.job WHERE schedule = 'sales' AND occurrence_key LIKE '2024-05%' AND state = 'succeeded'"
    ctl.installation.wait_until(lambda: ctl.db.execute(done).fetchone()[0], 60, "both reports are made")
    assert "--again" in ctl.refused(4, "retry", "sales:2024-05-02")
    assert "as revision 2" in ctl.ok("retry", "sales:2024-05-02", "--again")
    ctl.installation.wait_until(lambda: ctl.json("job", "sales:2024-05-02")["job"]["state"] == "succeeded", 60, "it is made again")
    page = ctl.json("job", "sales:2024-05-02")
    assert (page["job"]["revision"], page["job"]["cause"], page["job"]["business_date"]) == (2, "backfill", "2024-05-02")
    assert [(a["attempt"], a["superseded"]) for a in page["artifacts"]] == [(1, True), (2, False)]
    assert len({a["path"] for a in page["artifacts"]}) == 2, "the file that was there is kept"
    steps = [(s["step"], s["what"]) for s in ctl.json("why", "sales:2024-05-02")["steps"]]
    again = [i for i, (step, _) in enumerate(steps) if step == "asked again"]
    assert "asked to run it again (refused: job sales:2024-05-02 is succeeded" in steps[again[0]][1], steps
    assert steps[again[1]][1].endswith(" asked to run it again") and len(again) == 2, steps
    assert again[1] < [what for _, what in steps].index("attempt 2, by worker w"), steps


def test_the_ledger_with_it_is_whole(ctl):
    ctl.ok("verify", "--from", "2024-01-01T00:00:00Z", "--to", "2025-12-31T00:00:00Z")
