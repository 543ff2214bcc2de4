"""What stands beside a rule, seen from outside: what is foretold is what a leader does, and both texts are told."""

import pytest

from ctl import Ctl

SETUP = "INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')"


@pytest.fixture
def ctl(installation):
    c = Ctl(installation)
    c.db.execute(SETUP)
    return c


def fnv1a(text):
    value = 14695981039346656037
    for byte in text.encode():
        value = ((value ^ byte) * 1099511628211) % 2**64
    return value


def insert(ctl, name, kind, rule, **columns):
    given = {"name": name, "report": "nothing", "kind": kind, "rule": rule, **columns}
    ctl.db.execute(f"INSERT INTO reports.schedule ({', '.join(given)}) VALUES ({', '.join(['%s'] * len(given))})",
                   list(given.values()))


def foretold(ctl, name, count=5):
    return [(r["fire_at"], r["occurrence_key"]) for r in ctl.json("next", name, "--count", str(count))]


def test_firings_are_made_as_they_were_foretold(ctl):
    insert(ctl, "late", "cron", "*/2 * * * * *", jitter_s=3600, misfire="run_all")
    insert(ctl, "minutely", "rrule", "FREQ=MINUTELY;BYSECOND=0,10,20,30,40,50", start_local="2026-01-01 00:00", misfire="run_all")
    ctl.installation.start_scheduler()
    # The first of a new schedule is one after it was made; the delay comes on top.
    first = ctl.db.execute("SELECT effective_from FROM reports.schedule_version WHERE schedule = 'late'").fetchone()[0]
    ctl.installation.wait_until(
        lambda: ctl.db.execute("SELECT count(*) FROM reports.schedule_progress WHERE next_fire_at IS NOT NULL").fetchone()[0] == 2,
        30, "both are taken in")
    due, nominal = ctl.db.execute("SELECT next_fire_at, next_nominal AT TIME ZONE 'UTC' FROM reports.schedule_progress "
                                  "WHERE schedule = 'late'").fetchone()
    assert (due - nominal).total_seconds() == fnv1a("late") % 3600
    assert 0 <= (nominal - first).total_seconds() < 2
    told = foretold(ctl, "minutely", 2)
    ctl.installation.wait_until(
        lambda: ctl.db.execute("SELECT count(*) FROM reports.occurrence WHERE schedule = 'minutely' AND occurrence_key = ANY (%s)",
                               [[key for _, key in told]]).fetchone()[0] == 2, 60, "what was foretold is made")
    made = ctl.db.execute("SELECT to_char(scheduled_for AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), occurrence_key "
                          "FROM reports.occurrence WHERE schedule = 'minutely' AND occurrence_key = ANY (%s) ORDER BY scheduled_for",
                          [[key for _, key in told]]).fetchall()
    assert [(at.replace("+00:00", "Z"), key) for at, key in told] == made
    ctl.ok("verify")


def test_each_column_beside_a_rule_has_its_part_in_what_is_foretold(ctl):
    insert(ctl, "fortnight", "rrule", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", start_local="2199-01-07 08:00", time_zone="Europe/Berlin",
           exdates=["2199-01-21 08:00"], rdates=["2199-01-22 09:30"])
    assert [key for _, key in foretold(ctl, "fortnight", 3)] == ["2199-01-07", "2199-01-22", "2199-02-04"]
    insert(ctl, "imported", "cron", "0 30 6 ? * 2", dialect="quartz", starts_at="2199-01-01Z")
    assert [key for _, key in foretold(ctl, "imported", 2)] == ["2199-01-07", "2199-01-14"]
    insert(ctl, "spread", "cron", "0 6 1 1 *", jitter_s=3600)
    (at, key), = foretold(ctl, "spread", 1)
    seconds = fnv1a("spread") % 3600
    assert at[10:19] == f"T06:{seconds // 60:02}:{seconds % 60:02}" and key == at[:10]


def test_a_rule_of_quartz_is_shown_with_what_it_means(ctl):
    insert(ctl, "imported", "cron", "0 30 6 ? * MON-FRI", dialect="quartz")
    ctl.installation.start_scheduler()
    ctl.installation.wait_until(lambda: ctl.json("schedule", "imported")["schedule"]["version_in_force"] == 1, 30, "it is taken in")
    row = ctl.json("schedule", "imported")["schedule"]
    assert (row["rule"], row["dialect"], row["rule_std"]) == ("0 30 6 ? * MON-FRI", "quartz", "30 6 * * MON-FRI")


def test_an_announced_edit_is_foretold_from_when_it_begins(ctl):
    insert(ctl, "daily", "cron", "0 6 * * *", starts_at="2198-12-30Z")
    ctl.db.execute("UPDATE reports.schedule SET rule = '0 18 * * *', effective_from = '2199-01-01T12:00Z' WHERE name = 'daily'")
    assert [at for at, _ in foretold(ctl, "daily", 5)] == [
        "2198-12-30T06:00:00Z", "2198-12-31T06:00:00Z", "2199-01-01T06:00:00Z", "2199-01-02T18:00:00Z", "2199-01-03T18:00:00Z"], (
            "the date on which it begins has fired already")
    assert ctl.json("schedule", "daily")["schedule"]["effective_from"] == "2199-01-01T12:00:00Z"
    assert [(v["version"], v["announced"]) for v in ctl.json("schedule", "daily")["versions"]] == [(2, True), (1, False)]
    told = words(ctl, "daily")
    assert [text for about, text in told if about == "version"] == [
        "until 2199-01-01T12:00:00+00:00 (version 1)", "from 2199-01-01T12:00:00+00:00 on, as announced (version 2)"]
    assert [text for about, text in told if about == "rule"] == [
        "at 06:00 every day, by the clock of UTC", "at 18:00 every day, by the clock of UTC"]
    assert "\nUntil 2199-01-01T12:00:00+00:00 (version 1):\nAt 06:00 every day" in ctl.ok("next", "daily", "--explain")
    ctl.db.execute("UPDATE reports.schedule SET paused = true WHERE name = 'daily'")
    assert [at for at, _ in foretold(ctl, "daily", 5)] == ["2198-12-30T06:00:00Z", "2198-12-31T06:00:00Z", "2199-01-01T06:00:00Z"]


def words(ctl, name):
    return [(r["about"], r["text"]) for r in ctl.json("schedule", name)["rule_in_words"]]


def test_a_cron_rule_is_shown_in_words_with_what_the_clocks_do_to_it(ctl):
    insert(ctl, "early", "cron", "30 2 * * *", time_zone="Europe/Berlin")
    rows = words(ctl, "early")
    assert rows[0] == ("rule", "at 02:30 every day, by the clock of Europe/Berlin")
    assert [about for about, _ in rows[1:]] == ["clock", "note", "note"]
    assert all("the clock of Europe/Berlin" in text for _, text in rows[2:])
    explained = ctl.ok("next", "early", "--count", "2", "--explain").splitlines()
    assert explained[2:4] == ["", "At 02:30 every day, by the clock of Europe/Berlin."] and explained[5].startswith("Note: on ")
    assert explained[:2] == ctl.ok("next", "early", "--count", "2").splitlines()
    insert(ctl, "imported", "cron", "0 30 6 ? * L", dialect="quartz", time_zone="UTC")
    assert words(ctl, "imported") == [("rule", "at 06:30 on Saturday, by the clock of UTC"), ("std", "30 6 * * 6")]


def test_rules_of_all_kinds_are_shown_in_words_with_what_surrounds_them(ctl):
    ctl.db.execute("INSERT INTO reports.calendar (name) VALUES ('works')")
    insert(ctl, "often", "interval", "15 minutes", anchor="2199-01-01Z", ends_at="2199-01-01 01:00Z")
    assert words(ctl, "often") == [
        ("rule", "every 15 minutes, counted from 2199-01-01T00:00:00Z, whatever the clocks do; its dates are those of UTC"),
        ("bounds", "nothing fires from 2199-01-01T01:00:00Z on"),
        ("note", "it fires 4 times in the 24 hours from 2199-01-01T00:00:00+00:00 on"),
        ("note", "it ends: its last firing is that of 2199-01-01T00:45:00+00:00")]
    insert(ctl, "fortnight", "rrule", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", start_local="2199-01-07 08:00", jitter_s=3600,
           calendar="works", nonbusiness="preceding")
    rows = dict(words(ctl, "fortnight"))
    assert list(rows) == ["rule", "days", "delay"]
    assert rows["rule"].startswith("at 08:00 on Monday, every 2nd week counted from that of 2199-01-07")
    assert rows["days"].startswith('a date that is no business day of calendar "works" moves to the business day before')
    assert rows["delay"] == f"each firing is due {fnv1a('fortnight') % 3600} seconds later than the rule says (jitter_s)"
    insert(ctl, "one", "once", "2199-04-12T06:00")
    assert words(ctl, "one") == [("rule", "once, at 2199-04-12T06:00:00+00:00, by the clock of UTC")]
    planned = ctl.json("plan", "fortnight", "--set", "rule=FREQ=WEEKLY;COUNT=2")
    assert planned["rule_now"][0]["text"] == rows["rule"] and "2 times in all" in planned["rule_then"][0]["text"]
    assert ["it ends" in r["text"] for r in planned["rule_then"] if r["about"] == "note"] == [True]


def test_a_schedule_whose_every_date_is_left_out_says_so_wherever_it_is_looked_at(ctl):
    ctl.db.execute("INSERT INTO reports.calendar (name) VALUES ('works')")
    insert(ctl, "weekend", "cron", "0 6 * * SAT", calendar="works", nonbusiness="skip")
    left_out = 'every date that it names is left out: none of them is a business day of calendar "works" (nonbusiness skip)'
    done = ctl.run("next", "weekend")
    assert (done.returncode, done.stdout) == (0, "") and left_out in done.stderr
    assert any(about == "note" and left_out in text for about, text in words(ctl, "weekend"))
    insert(ctl, "fine", "cron", "0 6 * * FRI", calendar="works", nonbusiness="skip")
    assert "the calendar skips every date" in ctl.refused(2, "plan", "fine", "--set", "rule=0 6 * * SAT,SUN")
