"""Schedules with a calendar, seen from outside: what is foretold is what a leader plans, and it follows the calendar at once."""

import datetime

import psycopg
import pytest

import harness
from ctl import Ctl


@pytest.fixture
def ctl(installation):
    c = Ctl(installation)
    c.db.execute("INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')")
    return c


def insert(ctl, name, rule, **columns):
    given = {"name": name, "report": "nothing", "kind": "cron", "rule": rule, **columns}
    ctl.db.execute(f"INSERT INTO reports.schedule ({', '.join(given)}) VALUES ({', '.join(['%s'] * len(given))})", list(given.values()))


def foretold(ctl, name, count):
    return [(r["fire_at"], r["occurrence_key"]) for r in ctl.json("next", name, "--count", str(count))]


def progress(ctl, name):
    return ctl.db.execute("SELECT to_char(next_fire_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI\"Z\"'), to_char(next_nominal, 'YYYY-MM-DD'), problem "
                          "FROM reports.schedule_progress WHERE schedule = %s", [name]).fetchone()


def test_dates_move_as_they_are_foretold_and_follow_an_override_at_once(ctl):
    ctl.db.execute("INSERT INTO reports.calendar (name) VALUES ('works'), ('bank')")
    ctl.db.execute("INSERT INTO reports.calendar (name, combine) VALUES ('both', 'union')")
    ctl.db.execute("INSERT INTO reports.calendar_part VALUES ('both', 'works'), ('both', 'bank')")
    # 2199-01-31 is a Thursday, 2199-03-31 a Sunday.
    insert(ctl, "month-end", "0 18 L * *", calendar="both", nonbusiness="preceding", starts_at="2199-01-01Z")
    insert(ctl, "all", "0 6 * * *", calendar="works", nonbusiness="following", roll_collision="run_all", starts_at="2199-01-04Z")
    insert(ctl, "later", "0 9 L 3,6,9,12 *", calendar="works", business_day_offset=5, starts_at="2199-01-01Z")
    assert foretold(ctl, "month-end", 3) == [("2199-01-31T18:00:00Z", "2199-01-31"), ("2199-02-28T18:00:00Z", "2199-02-28"),
                                             ("2199-03-29T18:00:00Z", "2199-03-31")]
    assert foretold(ctl, "all", 4) == [("2199-01-04T06:00:00Z", "2199-01-04"), ("2199-01-07T06:00:00Z", "2199-01-05"),
                                       ("2199-01-07T06:00:01Z", "2199-01-06"), ("2199-01-07T06:00:02Z", "2199-01-07")]
    assert foretold(ctl, "later", 2) == [("2199-01-07T09:00:00Z", "2198-12-31"), ("2199-04-05T09:00:00Z", "2199-03-31")]
    ctl.installation.start_scheduler()
    wait = ctl.installation.wait_until
    wait(lambda: progress(ctl, "month-end") == ("2199-01-31T18:00Z", "2199-01-31", None), 30, "it is planned as foretold")
    # A part of the combination: an override of the day, and of the day before.
    ctl.db.execute("INSERT INTO reports.calendar_day (calendar, day) VALUES ('bank', '2199-01-31'), ('bank', '2199-01-30')")
    wait(lambda: progress(ctl, "month-end") == ("2199-01-29T18:00Z", "2199-01-31", None), 30, "it follows the calendar, under its key")
    assert foretold(ctl, "month-end", 1) == [("2199-01-29T18:00:00Z", "2199-01-31")]
    versions = ctl.json("schedule", "month-end")["versions"]
    assert [(v["version"], v["reason"]) for v in versions] == [(2, "calendar both has changed"), (1, None)]
    assert len(ctl.json("schedule", "all")["versions"]) == 1
    ctl.ok("verify")


def test_days_that_are_skipped_make_nothing_and_unknown_days_are_held(ctl):
    ctl.db.execute("INSERT INTO reports.calendar (name, weekend_days) VALUES ('each-day', '{}')")
    ctl.db.execute("INSERT INTO reports.calendar (name, weekend_days, valid_through, beyond) VALUES ('ended', '{}', current_date - 3, 'hold')")
    insert(ctl, "often", "* * * * * *", calendar="each-day", nonbusiness="skip")
    insert(ctl, "held", "* * * * * *", calendar="ended", nonbusiness="skip")
    ctl.db.execute("INSERT INTO reports.calendar (name) VALUES ('closed')")
    ctl.db.execute("INSERT INTO reports.calendar_day (calendar, day) SELECT 'closed', current_date + i FROM generate_series(-2, 800) i")
    insert(ctl, "nowhere", "@daily", calendar="closed", nonbusiness="following")
    done = ctl.run("next", "nowhere")
    assert 'calendar "closed" has no business day within 366 days of ' in done.stderr and "hold" not in done.stderr
    ctl.installation.start_scheduler()
    wait = ctl.installation.wait_until
    count = "SELECT count(*) FROM reports.occurrence WHERE schedule = %s"
    wait(lambda: ctl.db.execute(count, ["often"]).fetchone()[0] >= 2, 30, "business days fire")
    wait(lambda: (progress(ctl, "held") or (None, None, None))[2], 30, "a day that is not known is a problem")
    assert progress(ctl, "held")[2].startswith("its calendar does not know the days around ")
    assert ctl.db.execute(count, ["held"]).fetchone()[0] == 0
    # Three days, for the night may come meanwhile.
    ctl.db.execute("INSERT INTO reports.calendar_day (calendar, day) SELECT 'each-day', current_date + i FROM generate_series(-1, 1) i")
    ctl.db.execute("UPDATE reports.calendar SET valid_through = NULL WHERE name = 'ended'")
    wait(lambda: ctl.db.execute("SELECT next_fire_at >= current_date + 1 FROM reports.schedule_progress WHERE schedule = 'often'").fetchone()[0], 30,
         "it waits for the next business day")
    wait(lambda: ctl.db.execute(count, ["held"]).fetchone()[0] >= 2, 30, "with days that are known it goes on")
    assert ctl.db.execute("SELECT reason FROM reports.schedule_gap WHERE schedule = 'held'").fetchall() == [("problem_mended",)]


def test_schedule_that_is_written_while_its_calendar_changes_follows_the_change(ctl, installation):
    ctl.db.execute("INSERT INTO reports.calendar (name) VALUES ('works')")
    changing = installation.connect()
    changing.execute("BEGIN; INSERT INTO reports.calendar_day (calendar, day) VALUES ('works', '2199-01-31')")
    writing = installation.connect()
    writing.execute("SET lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        writing.execute("INSERT INTO reports.schedule (name, report, kind, rule, calendar) VALUES ('early', 'nothing', 'cron', '@daily', 'works')")
    changing.execute("COMMIT")
    insert(ctl, "early", "@daily", calendar="works")
    assert ctl.db.execute("SELECT s.calendar_version = c.version FROM reports.schedule s JOIN reports.calendar c ON c.name = s.calendar").fetchone()[0]


def test_a_date_that_would_come_before_what_has_run_is_had_by_the_way_out_that_its_problem_names(ctl):
    harness.away_from_the_half_hour()
    ctl.db.execute("INSERT INTO reports.calendar (name, weekend_days) VALUES ('works', '{}')")
    insert(ctl, "ahead", "0 0 * * *", calendar="works", business_day_offset=-2)
    ctl.db.execute("UPDATE reports.schedule_version SET effective_from = current_date - interval '36 hours'")
    today = datetime.datetime.now(datetime.timezone.utc).date()
    lost, then = (str(today + datetime.timedelta(days=n)) for n in (3, 4))
    ctl.installation.start_scheduler()
    wait = ctl.installation.wait_until
    keys = "SELECT array_agg(occurrence_key ORDER BY occurrence_key) FROM reports.occurrence"
    have = [str(today + datetime.timedelta(days=n)) for n in (1, 2)]
    wait(lambda: ctl.db.execute(keys).fetchone()[0] == have and progress(ctl, "ahead")[1] == lost, 30, "two have run, the next is to come")
    # Two business days before it is today now, whose firing has run.
    ctl.db.execute("INSERT INTO reports.calendar_day (calendar, day) VALUES ('works', current_date + 2)")
    wait(lambda: progress(ctl, "ahead")[2], 30, "that is a problem")
    assert f"passes over {lost}, which was still to come" in progress(ctl, "ahead")[2]
    assert "edit the schedule, then reportctl backfill" in progress(ctl, "ahead")[2]
    ctl.db.execute("UPDATE reports.schedule SET description = 'goes on' WHERE name = 'ahead'")
    wait(lambda: progress(ctl, "ahead")[1:] == (then, None), 30, "it goes on")
    assert "1 made" in ctl.ok("backfill", "ahead", "--from", lost, "--to", lost)
    assert ctl.db.execute(keys).fetchone()[0] == [*have, lost]
    ctl.ok("verify")
