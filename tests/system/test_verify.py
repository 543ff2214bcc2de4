"""`reportctl verify` and `reportctl why` on what real daemons have done: what is whole is proved, what is
tampered with is named, and of each firing it is told what became of it and why."""

import csv
import datetime
import io
import pathlib
import zoneinfo

import pytest

import harness
from ctl import Ctl
from proof import one
from test_terminal import on_terminal

UTC = datetime.timezone.utc

DEFINITIONS = """
    INSERT INTO reports.queue (name) VALUES ('nobody');
    INSERT INTO reports.report (name, kind, data_source, query, format) VALUES
        ('sales', 'sql', 'warehouse', 'SELECT g AS day FROM generate_series(1, 5) g', 'csv'),
        ('broken', 'sql', 'warehouse', 'SELECT * FROM no_such_table', 'csv');
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.schedule (name, report, kind, rule, time_zone, misfire, queue, overlap, max_attempts) VALUES
        ('sales-daily', 'sales', 'cron', '0 6 * * *', 'Europe/Berlin', 'run_all', 'default', 'allow', 3),
        ('failing-daily', 'broken', 'cron', '0 5 * * *', 'UTC', 'run_latest', 'default', 'allow', 1),
        ('skips-hourly', 'nothing', 'cron', '0 * * * *', 'UTC', 'skip', 'default', 'allow', 3),
        ('follows-the-clock', 'nothing', 'cron', '*/30 * * * *', 'Europe/Berlin', 'skip', 'default', 'allow', 3),
        ('was-paused', 'nothing', 'cron', '0 * * * *', 'UTC', NULL, 'default', 'allow', 3),
        ('never-fires', 'nothing', 'cron', '0 6 31 2 *', 'UTC', NULL, 'default', 'allow', 3),
        ('gone', 'nothing', 'cron', '0 * * * *', 'UTC', NULL, 'default', 'allow', 3),
        ('unserved', 'nothing', 'interval', '2 seconds', 'UTC', NULL, 'nobody', 'forbid', 3);
    INSERT INTO reports.schedule (name, report, kind, rule, starts_at, ends_at) VALUES
        ('starts-later', 'nothing', 'cron', '0 6 * * *', '2999-01-01', NULL),
        ('has-ended', 'nothing', 'cron', '0 6 * * *', NULL, '2001-01-01');
    INSERT INTO reports.calendar (name) VALUES ('works');
    INSERT INTO reports.calendar_day (calendar, day, description) VALUES ('works', '2199-04-10', 'outing');
    INSERT INTO reports.schedule (name, report, kind, rule, misfire, calendar, nonbusiness, business_day_offset, paused) VALUES
        ('a-week-later', 'nothing', 'cron', '0 6 * * *', 'run_all', 'works', 'skip', 5, false),
        ('works-only', 'nothing', 'cron', '0 6 * * *', NULL, 'works', 'skip', 0, false),
        ('is-paused', 'nothing', 'cron', '0 6 * * *', NULL, NULL, 'run', 0, true);
    UPDATE reports.schedule_version SET effective_from = now() - CASE schedule WHEN 'follows-the-clock' THEN interval '400 days' ELSE interval '3 days' END
     WHERE schedule <> 'unserved'"""


def version_back(db, schedule, ago):
    """The latest edit of a schedule, as if it had been made so long ago."""
    db.execute("""UPDATE reports.schedule_version v SET effective_from = now() - %s::interval WHERE schedule = %s
                     AND version = (SELECT max(w.version) FROM reports.schedule_version w WHERE w.schedule = v.schedule)""", (ago, schedule))


class Told(Ctl):
    reader = None  # a login that may read and nothing else

    def why(self, subject):
        """(the facts, the steps as {step: what}) of an answer."""
        page = self.json("why", subject, role=self.reader)
        return page["why"], {s["step"]: s["what"] for s in page["steps"]}

    def answer(self, subject):
        return self.why(subject)[0]["answer"]


@pytest.fixture
def told(installation):
    """Three days that nobody planned, an hour's pause and a deletion in them; then a leader and a worker came."""
    harness.away_from_the_half_hour()
    db = installation.connect()
    db.execute(DEFINITIONS)
    db.execute("UPDATE reports.schedule SET paused = true WHERE name = 'was-paused'")
    version_back(db, "was-paused", "30 hours")
    db.execute("UPDATE reports.schedule SET paused = false WHERE name = 'was-paused'")
    version_back(db, "was-paused", "20 hours")
    db.execute("DELETE FROM reports.schedule WHERE name = 'gone'")
    version_back(db, "gone", "5 hours")
    installation.start_scheduler("scheduler-1")
    installation.start_worker("worker-1")
    installation.wait_until(installation.leader, harness.START_S, "somebody leads")
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.job WHERE state NOT IN ('succeeded', 'failed')"
                                            " AND queue = 'default'") == 0
                            and one(db, "SELECT count(*) FROM reports.schedule_change") == 0
                            and one(db, "SELECT count(*) FROM reports.schedule_gap WHERE reason = 'overlap_forbid'") > 0, 30, "all is planned and run")
    ctl = Told(installation)
    ctl.reader = f"reader_{installation.database}"
    db.execute(f'CREATE ROLE "{ctl.reader}" LOGIN IN ROLE report_reader')
    yield ctl
    db.execute(f'DROP ROLE "{ctl.reader}"')


def today(hour, days_ago=0, zone="UTC"):
    at = datetime.datetime.now(zoneinfo.ZoneInfo(zone)) - datetime.timedelta(days=days_ago)
    return at.replace(hour=hour, minute=0, second=0, microsecond=0)


def findings(result):
    return [(f["verdict"], f["schedule"], f["key"], f["what"]) for f in csv.DictReader(io.StringIO(result.stdout))]


def test_what_daemons_did_is_proved_and_what_is_tampered_with_is_named(told):
    page = told.json("verify", "--from", (datetime.datetime.now(UTC) - datetime.timedelta(days=400)).isoformat(timespec="seconds"),
                     role=told.reader)
    assert page["findings"] == []
    summary = page["summary"]
    assert summary["verdict"] == "proved" and summary["schedules"] == 13, summary
    assert summary["firings_due"] > 300 * 48
    assert summary["firings_due"] == summary["have_occurrence"] + summary["in_gaps"] + summary["not_yet"], summary
    assert "Nothing was found." in told.ok("verify")
    assert told.ok("verify", "-o", "csv").startswith("verdict,schedule,key,")

    # One span and one schedule, without an edge: nothing of what lies outside is looked at.
    key = str(today(6, 1, "Europe/Berlin").date())
    told.db.execute("DELETE FROM reports.occurrence WHERE schedule = 'sales-daily' AND occurrence_key = %s", (key,))
    result = told.run("verify", "-o", "csv")
    assert result.returncode == 1
    assert sorted(findings(result)) == [("wrong", "sales-daily", key, "job"), ("wrong", "sales-daily", key, "missing")]
    assert told.run("verify", "--schedule", "was-paused").returncode == 0
    at = today(6, 1, "Europe/Berlin")
    assert told.run("verify", "--schedule", "sales-daily", "--to", at.isoformat()).returncode == 0
    assert told.run("verify", "--schedule", "sales-daily", "--from", (at + datetime.timedelta(seconds=1)).isoformat()).returncode == 1  # its job
    assert told.answer(f"sales-daily:{key}").startswith("This must never be: it was due, and has neither an occurrence nor a gap")


def test_an_artifact_row_or_an_attempt_that_is_gone_is_named(told):
    key = str(today(6, 1, "Europe/Berlin").date())
    its = "(SELECT job_id FROM reports.occurrence WHERE schedule = 'sales-daily' AND occurrence_key = %s)"
    told.db.execute(f"DELETE FROM reports.artifact WHERE job_id = {its}", (key,))
    assert findings(told.run("verify", "-o", "csv")) == [("wrong", "sales-daily", key, "artifact")]
    told.db.execute(f"DELETE FROM reports.job_attempt WHERE job_id = {its}", (key,))
    assert sorted(findings(told.run("verify", "-o", "csv"))) == [("wrong", "sales-daily", key, "artifact"), ("wrong", "sales-daily", key, "attempt")]


def test_what_cannot_be_checked_has_an_exit_code_of_its_own(told, tmp_path, monkeypatch):
    nowhere = told.run("verify", database="host=127.0.0.1 port=1 dbname=none connect_timeout=1")
    assert nowhere.returncode == 2 and "cannot reach the database" in nowhere.stderr
    assert "did you mean sales-daily?" in told.refused(3, "verify", "--schedule", "sale-daily")
    assert "nothing to verify" in told.refused(2, "verify", "--from", "2999-01-01T00:00:00Z")
    # While somebody holds the ledger the statement's time runs out.
    other = told.installation.connect(autocommit=False)
    other.execute("LOCK TABLE reports.occurrence IN ACCESS EXCLUSIVE MODE")
    late = told.run("verify", "--timeout", "1")
    assert late.returncode == 2 and "--timeout is 1 s" in late.stderr, late.stderr
    other.rollback()
    assert told.run("verify").returncode == 0
    # A host without the zone's file cannot tell.
    (tmp_path / "tzdata.zi").write_bytes(pathlib.Path("/usr/share/zoneinfo/tzdata.zi").read_bytes())
    (tmp_path / "UTC").write_bytes(pathlib.Path("/usr/share/zoneinfo/UTC").read_bytes())
    monkeypatch.setenv("RS_TZDIR", str(tmp_path))
    result = told.run("verify", "-o", "csv")
    assert result.returncode == 2
    assert {f[:2] for f in findings(result)} == {("unchecked", "sales-daily"), ("unchecked", "follows-the-clock")}
    assert "cannot be read here" in told.answer("sales-daily@2999-01-01")


def test_why_a_firing_was_run_tells_each_step(told):
    at = today(6, 1, "Europe/Berlin")
    facts, steps = told.why(f"sales-daily@{at.strftime('%Y-%m-%dT%H:%M')}")
    assert facts["answer"].startswith("It was run, and was done ") and "as a missed firing" in facts["answer"]
    assert facts["key"] == str(at.date()) and facts["rule"] == "0 6 * * *" and facts["version"] == 1
    assert datetime.datetime.fromisoformat(facts["due_at"].replace("Z", "+00:00")) == at
    assert list(steps)[:4] == ["due", "leader", "planned", "claimed"] and list(steps)[-1] == "job"
    assert set(steps) == {"due", "leader", "planned", "claimed", "succeeded", "artifact", "job"}
    assert "by leader scheduler-1" in steps["planned"] and "worker-1" in steps["claimed"] and "5 rows" in steps["artifact"]
    # However it is asked about it is the same.
    for subject in (f"sales-daily:{at.date()}", f"sales-daily@{at.date()}", f"sales-daily@{at.isoformat()}",
                    f"sales-daily@{at.astimezone(UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}"):
        assert told.answer(subject) == facts["answer"], subject
    told.installation.reportctl("trigger", "sales-daily", "--key", "by-hand")
    told.installation.wait_until(lambda: told.answer("sales-daily:by-hand").startswith("It was run"), 20, "it has run")
    facts, steps = told.why("sales-daily:by-hand")
    assert "an operator had asked for it" in facts["answer"] and "asked for it under this key" in steps["asked"]
    key = told.db.execute("SELECT occurrence_key FROM reports.occurrence WHERE schedule = 'failing-daily'").fetchone()[0]
    facts, steps = told.why(f"failing-daily:{key}")
    assert facts["answer"].startswith("It was run and has failed after 1 attempt(s): ") and "no_such_table" in facts["answer"]
    assert "no_such_table" in steps["failed"] and steps["job"] == "failed, after 1 attempt(s)"


def test_why_a_firing_that_a_calendar_moved_is_found_however_it_is_asked_about(told):
    key, at = told.db.execute("SELECT occurrence_key, scheduled_for FROM reports.occurrence WHERE schedule = 'a-week-later'"
                              " ORDER BY scheduled_for LIMIT 1").fetchone()
    at = at.astimezone(UTC)
    assert (at.date() - datetime.date.fromisoformat(key)).days == 7
    facts, steps = told.why(f"a-week-later:{key}")
    assert facts["answer"].startswith("It was run") and f"by its calendar works (nonbusiness skip, business_day_offset 5) moved from {key} to " \
        f"{at.date()} 06:00" in steps["due"]
    for subject in (f"a-week-later@{at.strftime('%Y-%m-%dT%H:%M:%SZ')}", f"a-week-later@{at.strftime('%Y-%m-%dT%H:%M')}", f"a-week-later@{at.date()}"):
        page, _ = told.why(subject)
        assert (page["key"], page["answer"].split(". The firing of this date, a-week-later:")[0]) == (key, facts["answer"]), subject
        assert f"a-week-later:{at.date()}, is due at " in page["answer"] or subject.endswith("Z")
    assert told.why(f"a-week-later:{at.date()}")[0]["key"] == str(at.date())


def test_why_of_what_was_made_before_the_schedule_was_there_or_is_to_come_is_told(told):
    day = str(today(6, 9, "Europe/Berlin").date())
    assert told.answer(f"sales-daily@{day}").startswith("The schedule was not there yet")
    told.ok("backfill", "sales-daily", "--from", day, "--to", day)
    for subject in (f"sales-daily@{day}", f"sales-daily@{day}T06:00", f"sales-daily@{today(6, 9, 'Europe/Berlin').isoformat()}"):
        facts, _ = told.why(subject)
        assert facts["key"] == day and "a backfill that an operator asked for made it" in facts["answer"], subject
    told.db.execute("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) VALUES ('fresh', 'nothing', 'cron', '0 6 29 2 *', 'UTC')")
    assert told.answer("fresh").startswith("No firing of it was ever due, the first is that of 20")


def test_why_nothing_exists_names_the_reason(told):
    hour = today(0).replace(hour=datetime.datetime.now(UTC).hour)
    # Two days ago, or the day before, if that was the night on which the clock of Berlin changed.
    plain_day = next(day.date() for day in (today(12, n, "Europe/Berlin") for n in (2, 3))
                     if day.utcoffset() == (day - datetime.timedelta(days=1)).utcoffset())
    ago = lambda hours: (hour - datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M")  # noqa: E731
    for subject, beginning in {
            f"skips-hourly@{ago(2)}": "It was not run, and lies in a recorded gap: it was missed, planned later than misfire_grace",
            f"was-paused@{ago(25)}": "It was not run, and lies in a recorded gap: the schedule was paused",
            f"was-paused@{ago(40)}": "It was not run, and lies in a recorded gap: it was missed, and of missed firings only the latest",
            f"gone@{ago(1)}": "The schedule was deleted at ",
            f"gone@{ago(24 * 9)}": "The schedule was not there yet: it was written at ",
            "never-fires@2999-02-28": "Nothing of the schedule has been planned since ",
            f"starts-later@{today(6).strftime('%Y-%m-%dT%H:%M')}": "It lies before the schedule's starts_at, 2999-01-01T00:00:00Z",
            f"has-ended@{today(6).strftime('%Y-%m-%dT%H:%M')}": "It lies at or after the schedule's ends_at, 2001-01-01T00:00:00Z",
            "sales-daily@2999-04-12": "It is not due yet",
        "is-paused@2999-04-12": "It is not due yet, and will not be run unless the schedule is resumed before: it has been paused since ",
        "works-only@2199-04-10": "The rule of version 1 names it, and calendar works takes it away: 2199-04-10, a Wednesday, is no business day,"
                                 " but a holiday of works (outing) (nonbusiness skip)",
        "works-only@2199-04-13": "The rule of version 1 names it, and calendar works takes it away: 2199-04-13, a Saturday, is no business day (",
            f"skips-hourly@{ago(2)[:-2]}17": "The rule of version 1 does not name this time; the nearest before is ",
            f"follows-the-clock@{plain_day}": "The schedule fires 48 times on that date, first at ",
    }.items():
        assert told.answer(subject).startswith(beginning), (subject, told.answer(subject))
    facts, _ = told.why(f"skips-hourly@{ago(2)[:-2]}17")
    assert facts["due_at"] is None and facts["asked_at"] is not None and facts["key"] is None
    assert told.why(f"was-paused@{ago(25)}")[1]["paused"].startswith("version 2, by ")
    # The clock jumps from two to three on the last Sunday of March, and shows two twice on that of October.
    for month, hours in ((3, "The clock of Europe/Berlin jumps over this time"), (10, "The clock shows this time twice, again at ")):
        sunday = max(d for y in (datetime.date.today().year - 1, datetime.date.today().year) for d in
                     [datetime.date(y, month, 31) - datetime.timedelta(days=(datetime.date(y, month, 31).weekday() + 1) % 7)]
                     if d < datetime.date.today())
        assert hours in told.answer(f"follows-the-clock@{sunday}T02:30"), told.answer(f"follows-the-clock@{sunday}T02:30")
    gap = one(told.db, "SELECT to_char(to_fire_at, 'YYYY-MM-DD\"T\"HH24:MI:SS') || 'Z' FROM reports.schedule_gap WHERE reason = 'overlap_forbid'"
                       " ORDER BY id LIMIT 1")
    facts, steps = told.why(f"unserved@{gap}")
    assert "a job of the schedule was still open, and its overlap is forbid: that of " in facts["answer"] and "was made" in steps["open job"]
    key = one(told.db, "SELECT occurrence_key FROM reports.occurrence WHERE schedule = 'unserved'")
    assert told.answer(f"unserved:{key}").startswith('Its job waits for a worker, in queue "nobody"; no living worker serves it')
    for subject, code, text in (("sale-daily@2030-01-01", 3, "did you mean sales-daily?"), ("sales-daily:nobody-made-this", 3, "it names no time"),
                                ("sales-daily@noon", 2, "noon"), ("@2030-01-01", 2, "does not begin with the name of a schedule")):
        assert text in told.refused(code, "why", subject)


def test_why_nothing_is_planned_now_names_what_stands_in_the_way(told):
    db = told.db
    told.installation.daemons[0].stop()
    begin = one(db, "SELECT clock_timestamp()")
    last = "SELECT to_char(max(t), 'YYYY-MM-DD\"T\"HH24:MI:SS') || 'Z' FROM (SELECT next_fire_at + interval '2 s' AS t FROM reports.schedule_progress" \
           " WHERE schedule = 'unserved') x"
    harness.wait_until(lambda: one(db, "SELECT clock_timestamp()") > begin + datetime.timedelta(seconds=6), 20, "something is due")
    due = one(db, last)
    facts, steps = told.why(f"unserved@{due}")
    assert facts["answer"].startswith('It is due and not planned yet: scope "main" has had no leader since '), facts["answer"]
    assert "released" in steps["leader"]
    told.installation.reportctl("hold", "--scope", "main", "the house is moved")
    assert told.answer(f"unserved@{due}") == "It is due and not planned yet: its scope is held: the house is moved; reportctl holds"
    # Held, it is no fault; the hold lifted, and nobody there, it is.
    result = told.run("verify", "--grace", "0", "-o", "csv")
    assert result.returncode == 0 and ("look", "unserved", "held") in {(f[0], f[1], f[3]) for f in findings(result)}
    told.installation.reportctl("release-hold", one(db, "SELECT id FROM reports.hold WHERE lifted_at IS NULL"), "--yes")
    result = told.run("verify", "--grace", "0", "-o", "csv")
    assert result.returncode == 1 and ("wrong", "unserved", "overdue") in {(f[0], f[1], f[3]) for f in findings(result)}
    assert told.run("verify", "--grace", "3600").returncode == 0


def test_answers_fit_a_terminal_of_100_columns(told):
    hour = datetime.datetime.now(UTC).replace(minute=0) - datetime.timedelta(hours=25)
    for words in (f"why sales-daily@{today(6, 1, 'Europe/Berlin').date()}", f"why was-paused@{hour.strftime('%Y-%m-%dT%H:%M')}", "why unserved",
                  "verify --schedule sales-daily"):
        for line in on_terminal(told.installation, *words.split(), columns=100):
            assert len(line) <= 100, line
