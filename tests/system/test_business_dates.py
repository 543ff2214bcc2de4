"""Business dates and periods from outside: what is foretold is planned, made by hand and brought by backfill under the same keys."""

import csv
import io

import pytest

import harness
from ctl import Ctl


@pytest.fixture
def ctl(installation):
    harness.away_from_the_half_hour(30)  # some fire at six, and their occurrences are counted
    c = Ctl(installation)
    c.db.execute("""
        INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
        INSERT INTO reports.calendar (name) VALUES ('office');
        INSERT INTO reports.calendar_day (calendar, day) VALUES ('office', '2025-04-18'), ('office', '2025-04-21');
        INSERT INTO reports.fiscal_period VALUES ('acme', 'FY2025-P01', '2025-01-27', '2025-02-23'), ('acme', 'FY2025-P02', '2025-02-24', '2025-03-23'),
            ('acme', 'FY2025-P03', '2025-03-24', '2025-04-27'), ('acme', 'FY2199-P12', '2198-12-24', '2199-01-20'), ('acme', 'FY2200-P01', '2199-01-21', '2199-02-17');
        INSERT INTO reports.schedule (name, report, kind, rule, time_zone, calendar, business_date, starts_at) VALUES
            ('monthly', 'nothing', 'cron', '0 6 1 * *', 'Europe/Berlin', NULL, 'previous_month', '2025-01-15Z'),
            ('back', 'nothing', 'cron', '0 6 * * *', 'UTC', 'office', 't_minus(1)', '2025-01-15Z'),
            ('fiscal', 'nothing', 'cron', '0 6 28 * *', 'UTC', NULL, 'fiscal_period(acme)', NULL),
            ('far', 'nothing', 'cron', '0 6 21 1 *', 'UTC', NULL, 'fiscal_period(acme)', '2199-01-01Z'),
            ('weekly', 'nothing', 'cron', '0 6 * * 1', 'UTC', NULL, 'previous_week', '2198-12-31Z')""")
    return c


def foretold(ctl, name, count=1):
    return [(r["fire_at"], r["occurrence_key"], r["business_date"]) for r in ctl.json("next", name, "--count", str(count))]


def shown(ctl, *words):
    return [(r["occurrence_key"], r["becomes"]) for r in csv.DictReader(io.StringIO(ctl.ok("backfill", *words, "--dry-run", "-o", "csv")))]


def firings(ctl, schedule):
    return ctl.db.execute("""SELECT occurrence_key, business_date::text, to_char(window_start AT TIME ZONE 'UTC', 'MM-DD"T"HH24'),
        to_char(window_end AT TIME ZONE 'UTC', 'MM-DD"T"HH24'), cause FROM reports.occurrence WHERE schedule = %s ORDER BY business_date""", [schedule]).fetchall()


def test_keys_of_periods_are_the_same_foretold_by_hand_in_a_backfill_and_in_the_ledger(ctl):
    assert foretold(ctl, "far", 2) == [("2199-01-21T06:00:00Z", "FY2199-P12", "2199-01-20"), ("2200-01-21T06:00:00Z", None, None)]
    assert foretold(ctl, "weekly") == [("2198-12-31T06:00:00Z", "2198-W52", "2198-12-30")]
    ctl.installation.start_scheduler()
    ctl.installation.wait_until(lambda: ctl.db.execute("SELECT count(*) = 5 FROM reports.schedule_progress WHERE key_form IS NOT NULL").fetchone()[0], 60,
                                "the leader has taken the schedules in")
    # By backfill.
    assert shown(ctl, "monthly", "--from", "2025-02", "--to", "2025-04") == [("2025-02", "make"), ("2025-03", "make"), ("2025-04", "make")]
    assert ctl.ok("backfill", "monthly", "--from", "2025-02", "--to", "2025-04").startswith('backfill of "monthly": 3 made; request ')
    assert firings(ctl, "monthly") == [("2025-02", "2025-02-28", "01-31T23", "02-28T23", "backfill"), ("2025-03", "2025-03-31", "02-28T23", "03-31T22", "backfill"),
                                       ("2025-04", "2025-04-30", "03-31T22", "04-30T22", "backfill")]
    assert ctl.ok("backfill", "fiscal", "--from", "FY2025-P01", "--to", "FY2025-P02").startswith('backfill of "fiscal": 2 made; request ')
    assert firings(ctl, "fiscal") == [("FY2025-P01", "2025-02-23", "01-27T00", "02-24T00", "backfill"), ("FY2025-P02", "2025-03-23", "02-24T00", "03-24T00", "backfill")]
    assert ctl.ok("backfill", "back", "--from", "2025-04-17", "--to", "2025-04-22").startswith('backfill of "back": 6 made; request ')
    assert [f[:2] for f in firings(ctl, "back")] == [("2025-04-17", "2025-04-16")] + [(f"2025-04-{d}", "2025-04-17") for d in (18, 19, 20, 21, 22)]
    # By hand.
    ctl.ok("trigger", "monthly", "--key", "2025-06")
    assert firings(ctl, "monthly")[3] == ("2025-06", "2025-06-30", "05-31T22", "06-30T22", "manual")
    assert "still to come" in ctl.refused(2, "trigger", "monthly", "--key", "2199-01")
    # What became of one.
    assert "by hand" in ctl.ok("why", "monthly:2025-06") or "manual" in ctl.ok("why", "monthly:2025-06")
    assert ctl.json("why", "monthly:2199-01")["why"]["due_at"] == "2199-02-01T05:00:00Z"
    assert ctl.json("why", "far:FY2199-P12")["why"]["due_at"] == "2199-01-21T06:00:00Z"
    assert "names no time" in ctl.refused(3, "why", "back:2025-Q1")
    ctl.ok("verify")


def test_an_edit_to_other_keys_or_to_a_period_twice_is_refused_before_it_is_made(ctl):
    ctl.installation.start_scheduler()
    ctl.installation.wait_until(lambda: ctl.db.execute("SELECT count(*) = 5 FROM reports.schedule_progress WHERE key_form IS NOT NULL").fetchone()[0], 60,
                                "the leader has taken the schedules in")
    assert "known by their month" in ctl.refused(2, "plan", "monthly", "--set", "business_date=run_date")
    assert "fires twice for" in ctl.refused(2, "plan", "monthly", "--set", "rule=0 6 * * *")
    assert "\nEach firing is about the month before, and known by it.\n" in ctl.ok("next", "monthly", "--explain")
    told = ctl.ok("plan", "back", "--set", "business_date=t_minus(2)")
    assert "the business day before by calendar office" in told and "the date 2 business days before by calendar office" in told
    plan = ctl.json("plan", "monthly", "--set", "rule=0 6 5 * *")
    changes = {c["change"] for c in plan["changes"]}
    # Asked between the 1st and the 5th, the month before is one more.
    assert "moved" in changes and "removed" not in changes, "a period keeps its key on another day"
    assert plan["plan"]["key_form"] == "month"
    # An edit that goes on behind a period is not refused, and says what becomes of it: nothing has run yet, or something has.
    assert "is past: it is due at once" in ctl.ok("plan", "monthly", "--set", "business_date=current_month")
    ctl.db.execute("""UPDATE reports.schedule_progress SET last_nominal = next_nominal - interval '1 month',
        last_fire_at = (next_nominal - interval '1 month') AT TIME ZONE 'Europe/Berlin' WHERE schedule = 'monthly'""")
    # One that begins behind a firing whose key was taken foretells it no more.
    first, second = foretold(ctl, "weekly", 2)
    ctl.db.execute("UPDATE reports.schedule_progress SET switched_at = %s::timestamptz + interval '1 s' WHERE schedule = 'weekly'", [first[0]])
    assert foretold(ctl, "weekly") == [second]
    assert " is passed over: it has not been reported yet" in ctl.ok("plan", "monthly", "--set", "business_date=current_month")
