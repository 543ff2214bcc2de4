"""Business calendars from outside: commands that need no server, and calendars in the database."""

import csv
import io
import os
import subprocess

import psycopg
import pytest

import harness
from ctl import Ctl

ICS = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
DTSTART;VALUE=DATE:{year}1224
DTEND;VALUE=DATE:{year}1227
SUMMARY:Weihnachten "und"\\, {{mehr}} \\\\ weniger
END:VEVENT
END:VCALENDAR
"""


def reportctl(*words, **environment):
    return subprocess.run([harness.build() / "reportctl", *words], capture_output=True, text=True, check=False,
                          timeout=30, stdin=subprocess.DEVNULL, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def installation(stack, request):
    """One database for all: no daemon runs, and each test begins without calendars."""
    with harness.installed(stack, request) as i:
        yield i


@pytest.fixture
def ctl(installation):
    ctl = Ctl(installation)
    ctl.db.execute("DELETE FROM reports.calendar_part")
    ctl.db.execute("DELETE FROM reports.calendar")
    return ctl


def test_golden_cases_hold_for_the_command_whatever_the_environment(tmp_path):
    names = {"SAT-SUN only": "weekends", "NYSE": "nyse", "UK": "uk", "TARGET": "target"}
    environment = {"TZ": "Pacific/Kiritimati", "LC_ALL": "tr_TR.UTF-8", "REPORTCTL_DATABASE": "host=127.0.0.1 port=1",
                   "HOME": str(tmp_path)}
    with open(harness.ROOT / "tests" / "cases" / "business_cases.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) >= 24
    for row in rows:
        calendar, rule = names[row["calendar"]], row["rule"]
        if rule.endswith("business day of month"):
            words = ["business-day", "--calendar", calendar, f"--{rule.split()[0]}", row["input"]]
        elif rule in ("business date + 5 BD", "T-1 business date"):
            words = ["business-day", "--calendar", calendar, "--add", "5" if "5" in rule else "-1", row["input"]]
        else:
            convention = "".join(f"_{c.lower()}" if c.isupper() else c for c in rule).lstrip("_")
            words = ["roll", "--calendar", calendar, "--convention", convention, row["input"]]
        done = reportctl(*words, **environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, row["expected"] + "\n", ""), row


def test_file_of_ones_own_is_read_and_its_faults_are_named(tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("# weekend: Fri Sat\ndate,kind,name\n2026-08-03,holiday,\"a, b\"\n", encoding="utf-8")
    done = reportctl("roll", "--calendar", str(own), "--convention", "following", "2026-07-31")
    assert (done.returncode, done.stdout) == (0, "2026-08-02\n")
    own.write_text("date,kind,name\n2026-08-03,holiday\n2026-02-30,holiday\n", encoding="utf-8")
    done = reportctl("business-day", "--calendar", str(own), "--add", "1", "2026-07-31")
    assert (done.returncode, done.stdout, done.stderr) == (
        2, "", f"reportctl business-day: {own}:3: there is no date 2026-02-30\n")
    done = reportctl("roll", "--calendar", "nyse", "--convention", "following", "2026-07-31",
                     REPORTCTL_CALENDAR_DIR=str(tmp_path / "nowhere"))
    assert done.returncode == 2 and "set REPORTCTL_CALENDAR_DIR" in done.stderr


def test_calendar_is_imported_shown_replaced_and_keeps_what_somebody_entered(ctl, tmp_path):
    assert ctl.ok("calendar", "list").startswith("There is no calendar; reportctl calendar import nyse")
    assert ctl.json("calendar", "import", "nyse", "--dry-run")["import"]["result"] == "would be created"
    assert ctl.json("calendar", "list") == []
    made = ctl.json("calendar", "import", "nyse")
    assert (made["result"], made["valid_through"]) == ("created", "2035-12-31")
    assert made["added"] > 340
    shown = ctl.json("calendar", "show", "nyse", "--year", "2025")
    assert shown["calendar"]["weekend"] == "Sat Sun" and "Vacanza Team" in shown["calendar"]["source"]
    assert ("2025-01-09", "holiday", "import") in [(d["day"], d["kind"], d["from"]) for d in shown["days"]]
    assert len(shown["days"]) == 11

    ctl.db.execute("INSERT INTO reports.calendar_day (calendar, day, description) VALUES ('nyse', '2025-02-03', 'storm')")
    refusal = ctl.refused(2, "calendar", "import", "nyse")
    assert "exists; --replace takes" in refusal and "(0 more, 0 fewer, 0 different)" in refusal
    ics = tmp_path / "own.ics"
    ics.write_text(ICS.format(year=2025), encoding="utf-8")
    told = ctl.json("calendar", "import", "nyse", ics, "--replace", "--dry-run")
    dry = told["import"]
    assert dry["result"] == "would be replaced" and dry["overrides"] == 1
    assert (dry["added"], dry["changed"], dry["removed"]) == (2, 1, made["added"] - 1)
    changes = {d["day"]: (d["change"], d["was"], d["kind"]) for d in told["days"]}
    assert len(changes) == made["added"] + 2 and changes["2025-12-24"] == ("added", None, "holiday")
    assert changes["2025-12-25"] == ("changed", "holiday", "holiday") and changes["2025-01-09"] == ("removed", "holiday", None)
    shown = ctl.ok("calendar", "import", "nyse", ics, "--replace", "--dry-run")
    assert "DAYS ADDED, REMOVED AND CHANGED" in shown and "2025-12-24" in shown
    assert len(ctl.json("calendar", "show", "nyse", "--year", "2025")["days"]) == 12
    ctl.ok("calendar", "import", "nyse", ics, "--replace")
    shown = ctl.json("calendar", "show", "nyse", "--year", "2025")
    assert [(d["day"], d["description"]) for d in shown["days"]] == [
        ("2025-02-03", "storm"), *((f"2025-12-{day}", 'Weihnachten "und", {mehr} \\ weniger') for day in (24, 25, 26))]
    assert shown["calendar"]["valid_through"] == "2025-12-31"


def test_file_that_cannot_be_used_changes_nothing_and_names_its_line(ctl, tmp_path):
    recurs = tmp_path / "recurs.ics"
    recurs.write_text(ICS.format(year=2030).replace("END:VEVENT", "RRULE:FREQ=YEARLY\nEND:VEVENT"), encoding="utf-8")
    assert f"{recurs}:3: the event recurs (RRULE)" in ctl.refused(2, "calendar", "import", "own", recurs)
    assert "did you mean nyse?" in ctl.refused(2, "calendar", "import", "nyze")
    assert ctl.db.execute("SELECT count(*) FROM reports.calendar").fetchone() == (0,)


def test_check_tells_what_is_wrong_and_who_uses_it(ctl):
    ctl.ok("calendar", "import", "de")
    assert ctl.ok("calendar", "check", "--strict") == "Nothing is wrong.\n"  # a holiday on a weekend is no mistake of its file
    ctl.db.execute("INSERT INTO reports.calendar (name, valid_through) VALUES ('old', current_date - 1), ('soon', current_date + 30)")
    ctl.db.execute("INSERT INTO reports.calendar (name, combine) VALUES ('both', 'union')")
    ctl.db.execute("INSERT INTO reports.calendar_part VALUES ('both', 'old'), ('both', 'soon')")
    found = ctl.run("calendar", "check", "-o", "csv")
    assert found.returncode == 1
    rows = [(r["verdict"], r["calendar"], r["finding"]) for r in csv.DictReader(io.StringIO(found.stdout))]
    assert rows == [("wrong", "old", "expired"), ("look", "soon", "expires")]
    assert ctl.run("calendar", "check", "soon").returncode == 0
    assert ctl.run("calendar", "check", "soon", "--strict").returncode == 1
    assert "did you mean soon?" in ctl.refused(3, "calendar", "check", "son")
    shown = ctl.json("calendar", "show", "both")
    assert shown["calendar"]["parts"] == "old, soon" and shown["days"] == []


def test_change_is_told_to_who_listens_and_who_may_not_import_is_refused(ctl, installation, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("2030-01-01\n", encoding="utf-8")
    listener, told = installation.connect(), []
    listener.add_notify_handler(lambda n: told.append((n.channel, n.payload)))
    listener.execute("LISTEN report_calendar")
    ctl.ok("calendar", "import", "own", own)
    installation.wait_until(lambda: listener.execute("SELECT true").fetchone()[0] and told, 10, "the change is told")
    assert told == [("report_calendar", "own")]
    refusal = ctl.refused(1, "calendar", "import", "other", own, role="report_worker")
    assert "permission denied" in refusal
    assert ctl.db.execute("SELECT name FROM reports.calendar").fetchall() == [("own",)]


def test_two_halves_of_a_circle_made_at_the_same_time_do_not_both_get_in(ctl, installation):
    first, second = ctl.db, installation.connect()
    first.execute("INSERT INTO reports.calendar (name, combine) VALUES ('a', 'union'), ('b', 'union')")
    first.execute("BEGIN")
    first.execute("INSERT INTO reports.calendar_part VALUES ('a', 'b')")
    second.execute("SET lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        second.execute("INSERT INTO reports.calendar_part VALUES ('b', 'a')")
    first.execute("COMMIT")
    with pytest.raises(psycopg.errors.CheckViolation, match="would be a part of itself"):
        second.execute("INSERT INTO reports.calendar_part VALUES ('b', 'a')")
