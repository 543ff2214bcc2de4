"""Time zone data are replaced under a running leader, as a package does it: next firings move, keys stay, nobody
restarts, and reportctl shows what differs."""

import json
import os
import shutil
import subprocess

import pytest

import harness

SYSTEM = "/usr/share/zoneinfo"
ZONE = "America/Vancouver"


class Machine:
    """A directory of time zones with the system's list, in which Vancouver's clock is what a test says."""

    def __init__(self, path, version, hours):
        self.path = path
        for name in ("UTC", ZONE):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.join(SYSTEM, name), path / name)
        self.replace(version, hours)

    def replace(self, version, hours):
        """File by file, the list first: a reader in between meets a mixture."""
        with open(os.path.join(SYSTEM, "tzdata.zi"), encoding="ascii") as f:
            rest = f.read().partition("\n")[2]
        (self.path / "fresh").write_text(f"# version {version}\n{rest}", encoding="ascii")
        (self.path / "fresh").rename(self.path / "tzdata.zi")
        source = self.path / "source"
        source.write_text(f"Zone {ZONE} {hours}:00 - X{abs(hours)}X\n", encoding="ascii")
        made = self.path / "made"
        subprocess.run(["/usr/sbin/zic", "-b", "fat", "-d", made, source], check=True)
        (made / ZONE).rename(self.path / ZONE)
        source.unlink()
        shutil.rmtree(made)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, "2030a", -8)


def tz(installation, monkeypatch, machine, *words):
    monkeypatch.setenv("RS_TZDIR", str(machine.path))
    return json.loads(installation.reportctl("tz", *words, "-o", "json"))


def stored(db, schedule):
    return db.execute("SELECT next_fire_at, next_nominal, next_offset_s, tzdata FROM reports.schedule_progress "
                      "WHERE schedule = %s", (schedule,)).fetchone()


def test_replaced_data_move_firings_of_a_running_leader_and_keep_their_keys(installation, machine, tmp_path_factory, monkeypatch):
    db = installation.connect()
    scheduler = installation.start_scheduler("one", tz_directory=machine.path, tz_poll_ms=300)
    leader = installation.wait_until(installation.leader, 30, "somebody leads")
    # By the old clock both are to come; by the new one, an hour ahead, the first is past.
    db.execute("INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')")
    db.execute("""INSERT INTO reports.schedule (name, report, kind, rule, time_zone)
                  SELECT x.name, 'nothing', 'cron', to_char(at, 'FMMI FMHH24 * * *'), %s
                    FROM (VALUES ('soon', now() AT TIME ZONE 'UTC' - interval '7 hours 30 minutes'),
                                 ('later', now() AT TIME ZONE 'UTC' - interval '5 hours')) AS x (name, at)""", (ZONE,))
    db.execute("INSERT INTO reports.schedule (name, report, kind, rule) VALUES ('utc', 'nothing', 'cron', '0 6 29 2 *')")
    installation.wait_until(lambda: db.execute("SELECT count(*) FROM reports.schedule_progress WHERE next_fire_at > now()").fetchone()[0] == 3,
                            30, "the schedules are taken in")
    soon, later, utc = stored(db, "soon"), stored(db, "later"), stored(db, "utc")
    assert later[2:] == (-8 * 3600, "2030a")
    status = {r["time_zone"]: r for r in tz(installation, monkeypatch, machine, "status")}
    assert status[ZONE]["schedules"] == 2 and status[ZONE]["standing"] == "same" and status[ZONE]["next_change_at"] is None
    assert tz(installation, monkeypatch, machine, "drift") == []

    # What would move is seen before anything is replaced.
    other = Machine(tmp_path_factory.mktemp("other"), "2030b", -7)
    assert {r["time_zone"]: r["standing"] for r in tz(installation, monkeypatch, other, "status")} == {ZONE: "older", "UTC": "same"}
    drift = tz(installation, monkeypatch, other, "drift")
    assert [(r["schedule"], r["later_s"], r["tzdata"]) for r in drift] == [("later", -3600, "2030a"), ("soon", -3600, "2030a")]
    assert drift[0]["stored"].endswith("-08:00") and drift[0]["here"] == drift[0]["stored"].replace("-08:00", "-07:00")
    assert installation.reportctl("tz", "drift", "--time-zone", "UTC", "-o", "csv").count("\n") == 1
    with pytest.raises(AssertionError, match='"Berlin"'):
        installation.reportctl("tz", "drift", "--time-zone", "Berlin")

    machine.replace("2030b", -7)
    installation.wait_until(lambda: stored(db, "later")[3] == "2030b", 30, "the new data count")
    moved = stored(db, "later")
    assert (moved[0] - later[0]).total_seconds() == -3600 and moved[1] == later[1] and moved[2] == -7 * 3600
    installation.wait_until(lambda: db.execute("SELECT count(*) FROM reports.occurrence").fetchone()[0] > 0, 30, "the one that is past is run")
    assert db.execute("SELECT schedule, occurrence_key, nominal_local, offset_s, scheduled_for < now() FROM reports.occurrence").fetchall() == [
        ("soon", str(soon[1].date()), soon[1], -7 * 3600, True)]
    assert stored(db, "soon")[1] > soon[1] and stored(db, "utc") == utc
    assert tz(installation, monkeypatch, machine, "drift") == []

    lines = [x for x in scheduler.log_text().splitlines() if "next firing moved" in x]
    assert len(lines) == 2 and all(f"time_zone={ZONE} tzdata_old=2030a tzdata_new=2030b" in x for x in lines)
    line = next(x for x in lines if "schedule=later " in x)
    assert f"old={drift[0]['stored']} new={drift[0]['here']}" in line
    assert scheduler.is_alive() and installation.leader() == leader
    assert not harness.unreadable_lines(scheduler.log_text())


def test_a_leader_with_older_data_leaves_what_newer_data_computed_and_shows_it(installation, machine, tmp_path_factory, monkeypatch):
    db = installation.connect()
    newer = Machine(tmp_path_factory.mktemp("newer"), "2030b", -7)
    first = installation.start_scheduler("newer", tz_directory=newer.path, tz_poll_ms=300)
    installation.wait_until(installation.leader, 30, "somebody leads")
    db.execute("INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')")
    db.execute("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) VALUES ('yearly', 'nothing', 'cron', '0 6 1 1 *', %s)", (ZONE,))
    installation.wait_until(lambda: db.execute("SELECT FROM reports.zone_state WHERE time_zone = %s", (ZONE,)).fetchone() is not None,
                            30, "the schedule is taken in, and its zone with it")
    before = stored(db, "yearly")
    first.stop()
    installation.start_scheduler("older", tz_directory=machine.path, tz_poll_ms=300)
    installation.wait_until(installation.leader, 30, "the other leads")
    installation.wait_until(lambda: db.execute("SELECT settled FROM reports.zone_state WHERE tzdata = '2030a'").fetchone() == (True,),
                            30, "it has gone through the zone")
    assert stored(db, "yearly") == before
    problems = [p for p in json.loads(installation.reportctl("status", "-o", "json"))["problems"] if p["kind"] == "time zones"]
    assert len(problems) == 1 and "older than 2030b that another leader had" in problems[0]["problem"]
    assert [r["standing"] for r in tz(installation, monkeypatch, machine, "status")] == ["newer"]
    machine.replace("2030b", -7)
    installation.wait_until(lambda: not [p for p in json.loads(installation.reportctl("status", "-o", "json"))["problems"]
                                         if p["kind"] == "time zones"], 30, "its data are as new, and nothing is wrong")
    assert stored(db, "yearly") == before
