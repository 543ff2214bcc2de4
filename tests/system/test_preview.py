"""What a user sees before it happens, against what then happens: reportctl plan and forecast, and a leader."""

import csv
import io
from collections import Counter
from datetime import date, datetime, timedelta, timezone

import pytest

import harness
from ctl import Ctl

FORM = "%Y-%m-%dT%H:%M:%SZ"
SETUP = "INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')"


@pytest.fixture(scope="module")
def installation(stack, request):
    with harness.installed(stack, request) as i:
        Ctl(i).db.execute(SETUP)
        i.start_scheduler()
        yield i


@pytest.fixture
def ctl(installation):
    return Ctl(installation)


def insert(ctl, name, kind, rule, **columns):
    given = {"name": name, "report": "nothing", "kind": kind, "rule": rule, **columns}
    ctl.db.execute(f"INSERT INTO reports.schedule ({', '.join(given)}) VALUES ({', '.join(['%s'] * len(given))})",
                   list(given.values()))
    taken_in(ctl, name)


def taken_in(ctl, name):
    """The leader's word for the row as it stands: its problem, or None."""
    sql = ("SELECT p.problem FROM reports.schedule_progress p WHERE p.schedule = %s AND p.version = "
           "(SELECT max(v.version) FROM reports.schedule_version v WHERE v.schedule = p.schedule)")
    ctl.installation.wait_until(lambda: ctl.db.execute(sql, [name]).fetchone(), 30, f"{name} is taken in")
    return ctl.db.execute(sql, [name]).fetchone()[0]


def fnv1a(text):
    value = 14695981039346656037
    for byte in text.encode():
        value = ((value ^ byte) * 1099511628211) % 2**64
    return value


def state_of(ctl, name):
    return [ctl.db.execute(f"SELECT count(*), max(version) FROM reports.{t} WHERE schedule = %s", [name]).fetchone()
            for t in ("schedule_version", "schedule_change")]


def as_told(ctl, name, now, days, *sets):
    """Apply the changes that plan tells to the firings as they were foretold: those that are to be, by key."""
    words = [word for one in sets for word in ("--set", one)]
    told = ctl.json("plan", name, *words, "--days", str(days), "--limit", "100000")
    firings = dict(now)
    for change in told["changes"]:
        key = change["occurrence_key"]
        assert (change["now_at"] is None) == (change["change"] == "added")
        if change["change"] != "added":
            assert firings.pop(key) == change["now_at"]
        if change["change"] != "removed":
            firings[key] = change["then_at"]
    counts = Counter(c["change"] for c in told["changes"])
    plan = told["plan"]
    kinds = ("added", "removed", "moved", "redated")
    assert [plan[c] for c in kinds] == [counts[c] for c in kinds]
    both = plan["kept"] + plan["moved"] + plan["redated"]
    assert (plan["firings_now"], plan["firings_then"]) == (both + plan["removed"], both + plan["added"])
    return told, firings


def foretold(ctl, name, count=4000):
    return {r["occurrence_key"]: r["fire_at"] for r in ctl.json("next", name, "--count", str(count))}


def assert_is_as_told(ctl, name, firings, until):
    """Of what is to come; what has become due since was told of and is not to come any more."""
    then = foretold(ctl, name)
    now = ctl.db.execute("SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')").fetchone()[0]
    assert {key: at for key, at in then.items() if now < at < until} == {
        key: at for key, at in firings.items() if now < at < until}


@pytest.mark.parametrize("name, columns, sets", [
    ("weekdays", {"rule": "30 7 * * *", "time_zone": "Europe/Berlin"}, ["rule=30 7 * * 1-5"]),
    ("later", {"rule": "30 7 * * *", "time_zone": "Europe/Berlin"}, ["rule=45 23 * * *", "time_zone=America/New_York"]),
    ("spread", {"rule": "0 4 * * *"}, ["jitter_s=3600"]),
    ("hourly", {"rule": "0 * * * *", "time_zone": "America/New_York"}, ["rule=0,30 8-18 * * *"]),
    ("ends", {"rule": "0 4 * * *"}, ["ends_at=2199-01-01Z", "starts_at=2198-12-01Z"]),
])
def test_edit_that_is_made_does_what_was_foretold(ctl, name, columns, sets):
    insert(ctl, name, "cron", **columns)
    before = state_of(ctl, name)
    told, firings = as_told(ctl, name, foretold(ctl, name), 90, *sets)
    assert state_of(ctl, name) == before, "nothing is changed by asking"
    assert told["changes"], "each of these edits changes firings"
    ctl.db.execute(told["plan"]["statement"])
    assert taken_in(ctl, name) is None
    assert_is_as_told(ctl, name, firings, told["plan"]["compared_until"])
    assert ctl.db.execute("SELECT key_form FROM reports.schedule_progress WHERE schedule = %s",
                          [name]).fetchone() == (told["plan"]["key_form"],)


def at_noon():
    """A zone in which it is about noon, and the time of its clock: its date is the same for hours, whenever this runs."""
    now = datetime.now(timezone.utc)
    east = 12 - now.hour
    return f"Etc/GMT{-east:+d}", now + timedelta(hours=east)


@pytest.mark.parametrize("name, hours_ago, edit", [
    ("spread-later", 0, "jitter_s=3600"),  # 3005 s: its time was past when it was written, and would be to come
    ("runs-again", 1, "rule={0.minute} 13 * * *"),  # it has fired today, and its new hour is to come
])
def test_date_that_an_edit_passes_over_is_not_foretold_for_today(ctl, name, hours_ago, edit):
    zone, noon = at_noon()
    ctl.db.execute("INSERT INTO reports.queue (name) VALUES (%s)", [name])
    with ctl.db.transaction():
        ctl.db.execute("INSERT INTO reports.schedule (name, report, kind, rule, time_zone, queue) VALUES (%s, 'nothing', 'cron', %s, %s, %s)",
                       [name, f"{noon.minute} {noon.hour - hours_ago} * * *", zone, name])
        ctl.db.execute("UPDATE reports.schedule_version SET effective_from = effective_from - make_interval(hours => %s) WHERE schedule = %s",
                       [2 * hours_ago, name])
    assert taken_in(ctl, name) is None
    made = "SELECT count(*) FROM reports.occurrence WHERE schedule = %s"
    ctl.installation.wait_until(lambda: ctl.db.execute(made, [name]).fetchone()[0] == hours_ago, 30, "what was due is planned")
    told, firings = as_told(ctl, name, foretold(ctl, name), 90, edit.format(noon))
    ctl.db.execute(told["plan"]["statement"])
    assert taken_in(ctl, name) is None
    tomorrow = str((noon + timedelta(days=1)).date())
    stored, = ctl.db.execute("SELECT to_char(next_fire_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') "
                             "FROM reports.schedule_progress WHERE schedule = %s", [name]).fetchone()
    assert list(foretold(ctl, name, 1).items()) == [(tomorrow, stored)]
    assert_is_as_told(ctl, name, firings, told["plan"]["compared_until"])
    assert ctl.json("plan", name, "--set", "paused=true", "--days", "3")["changes"][0]["occurrence_key"] == tomorrow
    assert ctl.json("forecast", "--days", "1", "--queue", name)["forecast"]["firings"] == 0, "it is more than a day until then"


def test_firings_that_stay_and_are_about_another_date_are_told(ctl):
    insert(ctl, "redated", "cron", "0 18 * * *", starts_at="2198-12-31Z")
    about = lambda: {r["occurrence_key"]: r["business_date"] for r in ctl.json("next", "redated", "--count", "3")}  # noqa: E731
    insert(ctl, "redated-now", "cron", "0 18 * * *")
    told, firings = as_told(ctl, "redated-now", foretold(ctl, "redated-now"), 90, "business_date=t_minus(1)")
    changes = told["changes"]
    assert len(changes) == told["plan"]["firings_now"] and {c["change"] for c in changes} == {"redated"}
    assert all(c["now_about"] == c["occurrence_key"] == str(date.fromisoformat(c["then_about"]) + timedelta(days=1)) for c in changes)
    assert "DATE THEN" in ctl.ok("plan", "redated-now", "--set", "business_date=t_minus(1)")
    assert "DATE THEN" not in ctl.ok("plan", "redated-now", "--set", "rule=0 19 * * *")
    ctl.db.execute("UPDATE reports.schedule SET business_date = 't_minus(1)' WHERE name = 'redated'")
    assert taken_in(ctl, "redated") is None
    assert about() == {"2198-12-31": "2198-12-30", "2199-01-01": "2198-12-31", "2199-01-02": "2199-01-01"}


def test_pause_with_an_end_is_looked_past(ctl):
    insert(ctl, "rests", "cron", "0 4 * * *")
    until = (datetime.now(timezone.utc) + timedelta(days=10)).strftime("%Y-%m-%dT12:00:00Z")
    before = foretold(ctl, "rests")
    told, firings = as_told(ctl, "rests", before, 30, "paused=true", f"paused_until={until}")
    assert {c["change"] for c in told["changes"]} == {"removed"}
    assert {c["occurrence_key"] for c in told["changes"]} == {key for key, at in before.items() if at < until}
    assert f"the firings of the pause become one gap when it goes on, at {until}" in str(told["rule_then"])
    ctl.db.execute(told["plan"]["statement"])
    assert taken_in(ctl, "rests") is None
    assert_is_as_told(ctl, "rests", firings, told["plan"]["compared_until"])
    # What is changed during the pause shows after it; what ends it shows at once.
    told, later = as_told(ctl, "rests", firings, 30, "rule=0 5 * * *")
    assert {c["change"] for c in told["changes"]} == {"moved"} and all(c["now_at"] > until for c in told["changes"])
    assert "until its pause ends" in str(told["rule_then"]) and "gives way" not in str(told["rule_then"])
    told, at_once = as_told(ctl, "rests", firings, 30, "paused=false", "paused_until=NULL")
    assert {c["change"] for c in told["changes"]} == {"added"}
    assert {c["then_at"] for c in told["changes"]} == {at for at in before.values() if at < until}


def test_announced_edit_is_compared_from_when_it_begins(ctl):
    insert(ctl, "announced", "cron", "0 4 * * *")
    begins = (datetime.now(timezone.utc) + timedelta(days=10)).strftime("%Y-%m-%dT12:00:00Z")
    told, firings = as_told(ctl, "announced", foretold(ctl, "announced"), 30, "rule=0 5 * * *", f"effective_from={begins}")
    assert told["plan"]["edit_begins_at"] == begins
    assert all(c["change"] == "moved" and c["now_at"] > begins for c in told["changes"])
    ctl.db.execute(told["plan"]["statement"])
    assert_is_as_told(ctl, "announced", firings, told["plan"]["compared_until"])
    again = ctl.json("plan", "announced", "--set", "effective_from=NULL", "--set", "rule=0 4 * * *", "--days", "30")
    assert {c["change"] for c in again["changes"]} == {"moved"}
    assert "gives way" in [w["text"] for w in again["rule_then"] if w["about"] == "edit"][0]


def test_next_tells_an_announced_edit_as_it_will_be_taken_in(ctl):
    """Its first date had not fired, and its new time is past when the edit begins: it is due then, not passed over."""
    insert(ctl, "moved", "cron", "0 18 * * *", starts_at="2198-12-31Z")
    ctl.db.execute("UPDATE reports.schedule SET rule = '0 6 * * *', effective_from = '2199-01-01T12:00Z' WHERE name = 'moved'")
    assert list(foretold(ctl, "moved", 3).items()) == [
        ("2198-12-31", "2198-12-31T18:00:00Z"), ("2199-01-01", "2199-01-01T06:00:00Z"), ("2199-01-02", "2199-01-02T06:00:00Z")]


def test_author_plans_an_edit_and_a_reader_the_future_only(ctl):
    insert(ctl, "rights", "cron", "0 4 * * *")
    for group in ("report_author", "report_reader"):
        ctl.db.execute(f'DROP ROLE IF EXISTS "preview-{group}"')
        ctl.db.execute(f'CREATE ROLE "preview-{group}" LOGIN IN ROLE {group}')
    try:
        told = ctl.json("plan", "rights", "--set", "rule=0 5 * * *", role="preview-report_author")
        assert told["plan"]["moved"] == 90
        assert "plan needs report_author" in ctl.refused(1, "plan", "rights", "--set", "rule=0 5 * * *", role="preview-report_reader")
        assert ctl.json("forecast", role="preview-report_reader")["forecast"]["firings"] >= 7
    finally:
        for group in ("report_author", "report_reader"):
            ctl.db.execute(f'DROP ROLE "preview-{group}"')


def test_what_tables_or_leader_would_refuse_is_refused_in_their_words(ctl):
    insert(ctl, "daily", "cron", "0 4 * * *")
    before = state_of(ctl, "daily")
    assert "a cron rule has five fields" in ctl.refused(2, "plan", "daily", "--set", "rule=0 4 * *")
    assert "name and scope never change" in ctl.refused(2, "plan", "daily", "--set", "name=other")
    assert "did you mean time_zone?" in ctl.refused(2, "plan", "daily", "--set", "timezone=UTC")
    assert "gives rule twice" in ctl.refused(2, "plan", "daily", "--set", "rule=@daily", "--set", "rule=@hourly")
    assert "write COLUMN=VALUE" in ctl.refused(2, "plan", "daily", "--set", "rule")
    assert "unknown time zone 'Nowhere'" in ctl.refused(2, "plan", "daily", "--set", "time_zone=Nowhere")
    assert "did you mean daily?" in ctl.refused(3, "plan", "dayly", "--set", "rule=0 5 * * *")
    finer = ctl.refused(2, "plan", "daily", "--set", "rule=0 * * * *")
    assert state_of(ctl, "daily") == before
    ctl.db.execute("UPDATE reports.schedule SET rule = '0 * * * *' WHERE name = 'daily'")
    problem = taken_in(ctl, "daily")
    assert problem in finer and "make a new schedule for it" in problem
    told, firings = as_told(ctl, "daily", {}, 90, "rule=0 5 * * *")
    assert set(c["change"] for c in told["changes"]) == {"added"}
    assert problem in [w["text"] for w in told["rule_then"] if w["about"] == "edit"][0]
    ctl.db.execute(told["plan"]["statement"])
    assert taken_in(ctl, "daily") is None
    assert_is_as_told(ctl, "daily", firings, told["plan"]["compared_until"])


def test_edit_that_changes_nothing_or_no_firing_says_so(ctl):
    insert(ctl, "same", "cron", "0 4 * * *")
    nothing = ctl.run("plan", "same", "--set", "rule=0 4 * * *")
    assert nothing.returncode == 0 and "the edit changes nothing" in nothing.stderr
    told = ctl.json("plan", "same", "--set", "priority=5", "--set", "description=it's", "--days", "10")
    assert told["changes"] == [] and told["plan"]["kept"] == 10
    assert told["plan"]["statement"] == (
        "UPDATE reports.schedule SET priority = '5', description = 'it''s' WHERE name = 'same';")
    text = ctl.ok("plan", "same", "--set", "paused=true", "--days", "10")
    assert "nothing fires while it is paused" in text and text.count("\nremoved  20") == 10
    rows = list(csv.DictReader(io.StringIO(ctl.ok("plan", "same", "--set", "paused=true", "--days", "3", "-o", "csv"))))
    assert [r["change"] for r in rows] == ["removed"] * 3


def test_asking_waits_for_no_editor_for_long(ctl):
    insert(ctl, "locked", "cron", "0 4 * * *")
    other = ctl.installation.connect()
    with other.transaction():
        other.execute("SELECT FROM reports.schedule WHERE name = 'locked' FOR UPDATE")
        assert "try again" in ctl.refused(1, "plan", "locked", "--set", "rule=0 5 * * *")


def test_forecast_adds_up_to_what_next_tells_of_each_schedule(ctl):
    ctl.db.execute("INSERT INTO reports.scope (name) VALUES ('busy')")
    ctl.db.execute("INSERT INTO reports.queue (name) VALUES ('heavy')")
    for i in range(5):
        ctl.db.execute("INSERT INTO reports.schedule (name, report, scope, kind, rule, queue) VALUES (%s, 'nothing', 'busy', 'cron', "
                       "'0 6 * * *', 'heavy')", [f"together-{i}"])
    for name, kind, rule, more in (("often", "cron", "*/5 * * * *", {}), ("stopped", "cron", "* * * * *", {"paused": True}),
                                   ("spread-out", "cron", "0 6 * * *", {"jitter_s": 3600}),
                                   ("second", "cron", "* * * * * *", {}), ("steps", "interval", "7 hours", {"anchor": "2026-01-01T00:02:30Z"})):
        given = {"name": name, "report": "nothing", "scope": "busy", "kind": kind, "rule": rule, **more}
        ctl.db.execute(f"INSERT INTO reports.schedule ({', '.join(given)}) VALUES ({', '.join(['%s'] * len(given))})",
                       list(given.values()))
    told = ctl.json("forecast", "--days", "7", "--scope", "busy", "--limit", "1000")
    facts = told["forecast"]
    assert facts["firings"] == sum(d["firings"] for d in told["days"]) == sum(q["firings"] for q in told["queues"])
    assert [d["day"] for d in told["days"]][:2] == [facts["after"][:10], (datetime.fromisoformat(facts["after"][:10])
                                                                          + timedelta(days=1)).strftime("%Y-%m-%d")]
    assert facts["schedules"] == sum(q["schedules"] for q in told["queues"]) == 9
    assert (facts["paused"], facts["coarse_schedules"], facts["coarse_firings"]) == (1, 1, 7 * 86400)
    assert [(q["queue"], q["firings"]) for q in told["queues"]][1] == ("heavy", 35)

    after, before = (datetime.fromisoformat(facts[end].replace("Z", "+00:00")) for end in ("after", "before"))
    midnight = after.replace(hour=0, minute=0, second=0, microsecond=0)
    six = [midnight + timedelta(days=d, hours=6) for d in range(-1, 9)]
    dues = (5 * six + [at + timedelta(seconds=fnv1a("spread-out") % 3600) for at in six]
            + [midnight + timedelta(minutes=5 * i) for i in range(9 * 288)]
            + [datetime(2026, 1, 1, 0, 2, 30, tzinfo=timezone.utc) + timedelta(hours=7 * i) for i in range(40000)])
    expected = Counter(at.strftime(FORM) for at in dues if after < at < before)
    assert facts["firings"] - facts["coarse_firings"] == sum(expected.values())
    shared = {s["second"]: s["schedules"] for s in told["seconds"]}
    assert shared == {at: n for at, n in expected.items() if n > 1}
    assert facts["collisions"] == len(shared) == 7 and set(shared.values()) == {6}
    minutes = Counter()
    for at, n in expected.items():
        minutes[at[:17] + "00Z"] += n
    assert told["minutes"][0]["firings"] == max(minutes.values()) and told["minutes"][0]["most_in_a_second"] == 6
    assert all(minutes[m["minute"]] == m["firings"] for m in told["minutes"])

    only = ctl.json("forecast", "--days", "7", "--scope", "busy", "--queue", "heavy")
    assert only["forecast"]["firings"] == 35 and only["seconds"][0]["schedules"] == 5
    rows = list(csv.DictReader(io.StringIO(ctl.ok("forecast", "--scope", "busy", "--queue", "heavy", "-o", "csv"))))
    assert [sum(int(r["firings"]) for r in rows if r["about"] == about) for about in ("day", "queue")] == [35, 35]
    assert "SECONDS THAT SCHEDULES SHARE" in ctl.ok("forecast", "--scope", "busy")
    assert "busy" in ctl.refused(3, "forecast", "--scope", "bussy")
    begins = (datetime.now(timezone.utc) + timedelta(days=3)).strftime("%Y-%m-%dT12:00:00Z")
    ctl.db.execute("UPDATE reports.schedule SET rule = '0 18 * * *', effective_from = %s WHERE name = 'together-0'", [begins])
    facts = ctl.json("forecast", "--days", "7", "--scope", "busy", "--queue", "heavy")["forecast"]
    keys = ctl.json("next", "together-0", "--count", "20")
    assert facts["firings"] == 28 + sum(facts["after"][:19] < k["fire_at"][:19] < facts["before"][:19] for k in keys)
    assert len({k["occurrence_key"] for k in keys}) == 20
