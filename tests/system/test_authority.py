"""Guards of authority on real services: a ZooKeeper ensemble that was rebuilt empty or restored from an
older state, a PostgreSQL that was failed over with and without loss, restarted, and copied.

After each: nothing goes on by itself that should not, what people must do is said, and after it everything
that was due is there once.
"""

import json
import os
import pathlib
import pty
import shutil
import subprocess
import time

import pytest

import harness
import servers
from harness import LONG_SESSION_MS, SESSION_MS
from load import Load, soaking, start
from proof import check_everything, check_planned_and_done

ZOOKEEPERS = ("zk1", "zk2", "zk3")
EXPIRY_S = SESSION_MS / 1000 + 30


def zookeeper_data():
    """The data directories of the stack's ZooKeeper servers, without the file that says who each is."""
    return [pathlib.Path(os.environ["RS_STACK_DIR"]) / name / "data" / "version-2" for name in ZOOKEEPERS]


def all_in(installation, state):
    """Are all schedulers that run in that state, by their last step?"""
    last = [[line.split(" to=")[1].split()[0] for line in d.log_text().splitlines() if " to=" in line]
            for d in installation.daemons if d.program == "report-scheduler" and d.is_alive()]
    return all(steps and steps[-1] == state for steps in last)


def refused(installation, code, *words):
    """The error of a reportctl run that must end so."""
    result = subprocess.run([harness.build() / "reportctl", *map(str, words)], stdin=subprocess.DEVNULL, text=True,
                            capture_output=True, timeout=60, check=False,
                            env={**os.environ, "REPORTCTL_DATABASE": installation.stack.conninfo(installation.database)})
    assert result.returncode == code, result.stdout + result.stderr
    return result.stderr


def answered(installation, answer, *words):
    """(exit code, output) of a reportctl run at a terminal where somebody answers what it asks."""
    master, slave = pty.openpty()
    process = subprocess.Popen([harness.build() / "reportctl", *map(str, words)], stdin=slave, stdout=slave, stderr=slave,
                               env={**os.environ, "REPORTCTL_DATABASE": installation.stack.conninfo(installation.database)})
    os.close(slave)
    text = b""
    try:
        while b"(yes/no)" not in text:
            text += os.read(master, 4096)
        os.write(master, answer.encode() + b"\n")
        while True:
            text += os.read(master, 4096)
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(master)
    return process.wait(30), text.decode()


# ZooKeeper ------------------------------------------------------------------------------------------

def test_rebuilt_ensemble_is_held_until_rebased_and_nothing_is_lost(installation, healing):
    load = start(installation, schedulers=2)
    load.wait_for_leader()
    healing.fault("kill", *ZOOKEEPERS)
    for data in zookeeper_data():
        shutil.rmtree(data)
    healing.fault("start", *ZOOKEEPERS)
    load.wait_until(lambda: all_in(installation, "HELD"), 60 + EXPIRY_S, "both see an ensemble that nobody knows")
    assert load.one("SELECT count(*) FROM reports.hold") == 0, "one that is wrongly connected must not stop the others"
    shown = json.loads(installation.reportctl("status", "-o", "json"))
    problem = next(p for p in shown["problems"] if p["kind"] == "ensemble")
    assert "ensemble_unknown: scheduler-1, scheduler-2 see a ZooKeeper ensemble" in problem["problem"]
    assert problem["remedy"].endswith("reportctl fence rebase")
    for daemon in [d for d in installation.daemons if d.program == "report-scheduler"]:
        assert "ensemble_unknown" in daemon.log_text()  # the diary has it only from who still had a connection
    fence = json.loads(installation.reportctl("fence", "show", "-o", "json"))
    assert {r["member"] for r in fence["ensembles_refused"]} == {"scheduler-1", "scheduler-2"}
    installation.reportctl("fence", "audit")
    installation.reportctl("fence", "audit", "--strict", expect=1)
    for daemon in [d for d in installation.daemons if d.program == "report-scheduler"]:
        assert daemon.stop(60) == 0
        daemon.start()  # it remembers nothing of what it did
    load.wait_until(lambda: all_in(installation, "HELD"), 30, "a restart does not help")
    # Who is not asked does nothing, and neither does who says no.
    assert "add --yes" in refused(installation, 2, "fence", "rebase", "--reason", "disks lost")
    code, text = answered(installation, "no", "fence", "rebase", "--reason", "disks lost")
    assert code == 4 and "nothing was done" in text
    assert load.one("SELECT count(*) FROM reports.ensemble") == 1
    code, text = answered(installation, "yes", "fence", "rebase", "--reason", "disks lost")
    assert code == 0 and "is adopted as incarnation 2" in text, text
    after = load.wait_until(installation.leader, 30, "somebody leads again")  # by numbers from lower down, if the stack is an old one
    assert "no high-water mark in ZooKeeper; the database is taken as it is" in \
        next(d for d in installation.daemons if d.name == after[0]).log_text()
    load.wait_flowing()
    assert load.db.execute("SELECT incarnation, reason, adopted_by FROM reports.ensemble ORDER BY incarnation DESC").fetchone() \
        == (2, "disks lost", "postgres")
    installation.reportctl("fence", "audit")
    check_everything(installation, load.db)


def test_restored_ensemble_is_proved_held_and_rebased(installation, healing):
    load = start(installation, schedulers=2)
    load.wait_for_leader()
    healing.fault("term", *ZOOKEEPERS)
    backups = [(data, installation.directory / f"backup-{n}") for n, data in enumerate(zookeeper_data())]
    for data, backup in backups:
        shutil.copytree(data, backup)
    # Numbers begin with the count of the ensemble's elections: after two more it is above what one that is
    # restored from the backup comes to.
    for _ in range(3):
        healing.fault("start", *ZOOKEEPERS)
        healing.fault("term", *ZOOKEEPERS)
    healing.fault("start", *ZOOKEEPERS)
    for name in ("scheduler-1", "scheduler-2"):
        daemon = next(d for d in installation.daemons if d.name == name)
        assert daemon.stop(60) == 0
    daemon.start()
    _, generation = load.wait_for_leader(timeout=60)
    load.wait_flowing()
    healing.fault("kill", *ZOOKEEPERS)
    for data, backup in backups:
        shutil.rmtree(data)
        shutil.copytree(backup, data)
    healing.fault("start", *ZOOKEEPERS)
    load.wait_until(lambda: load.one("SELECT cause FROM reports.hold WHERE lifted_at IS NULL") == "zxid_regressed",
                    60 + EXPIRY_S, "it is proved")
    load.wait_until(lambda: all_in(installation, "HELD"), 30, "and held")
    hold, scope, reason = load.db.execute("SELECT id, scope, reason FROM reports.hold").fetchone()
    assert scope == "main" and f"after number {generation} had been in use" in reason
    assert "reportctl fence rebase" in json.loads(installation.reportctl("status", "-o", "json"))["problems"][0]["remedy"]
    assert "fence rebase lifts it" in refused(installation, 2, "release-hold", hold)
    # Another replica is stopped by it too; restarting does not help.
    next(d for d in installation.daemons if d.name == "scheduler-1").start()
    load.wait_until(lambda: all_in(installation, "HELD"), 30, "the other one is held as well")
    load.last(3)
    assert load.one("SELECT count(*) FROM reports.hold") == 1
    assert load.one("SELECT max(planned_at) < clock_timestamp() - interval '3 s' FROM reports.occurrence")
    if not soaking():  # the old leader has been silent for long enough: as if it were later already
        load.db.execute("UPDATE reports.fence_pulse SET beat_at = beat_at - interval '20 s'")
    load.wait_until(lambda: load.one("SELECT beat_at < clock_timestamp() - interval '20 s' FROM reports.fence_pulse"), 30,
                    "the old leader is silent for long enough")
    installation.reportctl("fence", "rebase", "--reason", "restored from last night", "--yes")
    after = load.wait_until(installation.leader, 30, "somebody leads again")
    assert after[1] <= generation, "numbers of the new incarnation count from lower down"
    load.wait_flowing()
    assert load.one("SELECT count(*) FROM reports.hold WHERE lifted_at IS NULL") == 0
    installation.reportctl("fence", "audit")
    check_everything(installation, load.db)


# PostgreSQL -----------------------------------------------------------------------------------------

class Pair(harness.Stack):
    """Two PostgreSQL servers of the test's own in place of the stack's; clients try one after the other."""

    def __init__(self):
        super().__init__()
        self.primary = servers.Postgres()
        self.standby = None

    def copy(self, standby):
        """A base backup of the primary, started: following it, or for itself."""
        copy = servers.Postgres(backup_of=self.primary, standby=standby)
        if standby:
            self.standby = copy
        return copy

    def conninfo(self, database, role="postgres", port=None):
        if port is not None:
            return super().conninfo(database, role, port)
        ports = [self.primary.port] + ([self.standby.port] if self.standby else [])
        return (f"host={','.join('127.0.0.1' for _ in ports)} port={','.join(map(str, ports))} "
                f"target_session_attrs=read-write dbname={database} user={role}")

    def remove(self):
        for server in (self.standby, self.primary):
            if server is not None:
                server.remove()


@pytest.fixture
def pair(request):
    pair = Pair()
    try:
        yield pair
    finally:
        pair.remove()


@pytest.fixture
def apart(pair, request):
    """An installation on the pair."""
    with harness.installed(pair, request) as i:
        yield i


def copy_role_settings(db, original, copy):
    """They belong to a database by name, and are lost in a dump without --create."""
    for role in ("report_scheduler", "report_worker"):
        for setting, in db.execute("SELECT unnest(setconfig) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = setrole "
                                   "JOIN pg_database d ON d.oid = setdatabase WHERE rolname = %s AND datname = %s",
                                   (role, original)).fetchall():
            name, _, value = setting.partition("=")
            value = value if name == "search_path" else f"'{value}'"
            db.execute(f'ALTER ROLE {role} IN DATABASE "{copy}" SET {name} = {value}')


def test_failover_without_loss_goes_on_under_the_same_generation(apart, pair):
    pair.copy(standby=True)
    load = Load(apart)
    apart.start_scheduler("scheduler-1", database_unhealthy_ms=60000, zookeeper_session_ms=LONG_SESSION_MS)
    load.start_worker("worker-1")
    load.wait_flowing()
    leader = apart.leader()
    with pair.primary.connect("postgres") as db:
        db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        db.execute("SELECT pg_reload_conf()")
    load.wait_until(lambda: load.one("SELECT sync_state FROM pg_stat_replication") == "sync", 20, "the standby is synchronous")
    load.wait_flowing()
    pair.primary.stop()
    with pair.standby.connect("postgres") as db:
        db.execute("ALTER SYSTEM RESET synchronous_standby_names")
        db.execute("SELECT pg_reload_conf()")
    pair.standby.promote()
    load.reconnect()
    load.wait_flowing()
    assert apart.leader() == leader
    moved, timeline = load.db.execute("SELECT detail, (SELECT timeline FROM reports.fence WHERE scope = 'main') "
                                      "FROM reports.leadership_event WHERE event = 'moved'").fetchone()
    assert timeline == 2 and "timeline 2 (was 1)" in moved
    assert load.one("SELECT count(*) FROM reports.hold") == 0
    check_everything(apart, load.db)


def test_failover_that_lost_commits_is_held_shows_what_may_repeat_and_goes_on_when_released(apart, pair):
    pair.copy(standby=True)
    load = Load(apart)
    apart.start_scheduler("scheduler-1", database_unhealthy_ms=20000)
    apart.start_scheduler("scheduler-2", database_unhealthy_ms=20000)
    load.start_worker("worker-1")
    load.wait_flowing()
    pair.standby.follow_nobody()
    kept = load.now()
    load.wait_flowing()
    lost = load.db.execute("SELECT schedule, occurrence_key FROM reports.occurrence WHERE planned_at > %s "
                           "ORDER BY planned_at LIMIT 1", (kept,)).fetchone()
    pair.primary.stop()
    pair.standby.promote()
    load.reconnect()
    load.wait_until(lambda: load.one("SELECT cause FROM reports.hold WHERE lifted_at IS NULL") == "database_rewound", 40,
                    "the loss is noticed")
    load.wait_until(lambda: all_in(apart, "HELD"), 40, "all schedulers are HELD")
    count, claimed = load.db.execute("SELECT (SELECT count(*) FROM reports.occurrence), (SELECT max(claimed_at) FROM reports.job)").fetchone()
    load.last(4)
    assert load.db.execute("SELECT (SELECT count(*) FROM reports.occurrence), (SELECT max(claimed_at) FROM reports.job)").fetchone() \
        == (count, claimed), "nothing is planned and nothing is claimed"
    assert claimed < kept, "nor was it before the loss was noticed"
    hold, mark, at = load.db.execute("SELECT id, mark, reports.time_of_job(mark) FROM reports.hold").fetchone()
    assert at > kept
    status = json.loads(apart.reportctl("status", "-o", "json"))
    assert f"does not know job {mark}" in status["problems"][0]["problem"]
    shown = apart.reportctl("release-hold", hold, expect=2)
    assert "PLANNED AGAIN" in shown and lost[0] in shown and "WHICH MAY HAVE RUN" in shown
    code, text = answered(apart, "yes", "release-hold", hold)
    assert code == 0 and f"hold {hold} on scope main" in text
    load.wait_for_leader()
    load.wait_flowing()
    load.wait_until(lambda: load.one("SELECT count(*) FROM reports.occurrence WHERE schedule = %s AND occurrence_key = %s", *lost) == 1,
                    20, "what was lost is planned under the same key")
    # The other one, which remembers other jobs, is content too.
    _, generation = apart.leader()
    leader = next(d for d in apart.daemons if d.name == apart.leader()[0])
    assert leader.stop() == 0
    load.wait_for_leader(after=generation)
    assert load.one("SELECT count(*) FROM reports.hold WHERE lifted_at IS NULL") == 0
    for schedule, in load.db.execute("SELECT name FROM reports.schedule").fetchall():
        check_planned_and_done(apart, load.db, schedule)


def test_database_restored_from_a_dump_is_held_by_the_mark_alone(installation):
    """No process remembers anything: the schedulers were stopped for the restore."""
    load = Load(installation)
    scheduler = installation.start_scheduler("scheduler-1")
    load.start_worker("worker-1")
    load.wait_flowing()
    with installation.stack.connect("postgres") as db:
        # As a backup would be: what is committed now, and nothing later.
        for daemon in installation.daemons:
            assert daemon.stop(60) == 0
        load.db.close()
        db.execute(f'CREATE DATABASE "{installation.database}_backup" TEMPLATE "{installation.database}"')
        copy_role_settings(db, installation.database, f"{installation.database}_backup")
        for daemon in installation.daemons:
            daemon.start()
        load.reconnect()
        load.wait_flowing()
        for daemon in installation.daemons:
            assert daemon.stop(60) == 0
        for connection in installation.connections:
            connection.close()
        db.execute(f'DROP DATABASE "{installation.database}" WITH (FORCE)')
        db.execute(f'ALTER DATABASE "{installation.database}_backup" RENAME TO "{installation.database}"')
    load.reconnect()
    for daemon in installation.daemons:
        daemon.start()
    load.wait_until(lambda: load.one("SELECT cause FROM reports.hold WHERE lifted_at IS NULL") == "database_rewound", 40,
                    "ZooKeeper's mark tells")
    load.wait_until(lambda: all_in(installation, "HELD"), 20, "and it is held")
    # It never was accepted, so it has nothing to release: no write of a former leader was refused.
    assert load.one("SELECT count(*) FROM reports.fence_rejection") == 0
    installation.reportctl("release-hold", load.one("SELECT id FROM reports.hold"), "--yes")
    load.wait_for_leader()
    assert scheduler.is_alive()
    load.wait_flowing()
    for schedule, in load.db.execute("SELECT name FROM reports.schedule").fetchall():
        check_planned_and_done(installation, load.db, schedule)


def test_plain_restart_of_postgresql_is_over_within_two_seconds(installation, healing):
    load = start(installation, settings={"database_unhealthy_ms": 60000, "zookeeper_session_ms": LONG_SESSION_MS})
    leader = installation.leader()
    healing.fault("term", "pg")
    healing.fault("start", "pg")
    up = time.monotonic()
    load.reconnect()
    started = load.one("SELECT pg_postmaster_start_time()")
    load.wait_until(lambda: load.one("SELECT count(*) FROM reports.job WHERE claimed_at > %s", started) > 0, 10, "jobs are claimed again")
    took = time.monotonic() - up
    print(f"over after {took:.2f} s")
    # dev/test may have a busy machine; nobody gives up for as long as database_unhealthy_ms.
    assert took < (2.5 if soaking() else 30), "nobody gave up or waited for a lease"
    assert load.one("SELECT server_started_at FROM reports.fence WHERE scope = 'main'") == started
    assert installation.leader() == leader
    check_everything(installation, load.db)


# Copies ---------------------------------------------------------------------------------------------

def check_copy_does_nothing(installation, conninfo, connect):
    """A worker on the copy claims nothing, says why once, and the queued jobs of the copy stay."""
    worker = installation.start_worker("copy", database=conninfo, kafka_group="copy", sweep_ms=3600000)
    with connect() as db:
        queued = db.execute("SELECT count(*) FROM reports.job WHERE state = 'queued'").fetchone()[0]
        assert queued > 0, "there is something to claim"
        installation.wait_until(lambda: "no leader has looked at this PostgreSQL server" in worker.log_text(), 20, "it says why")
        # It pulls each second.
        installation.wait_until(lambda: db.execute("SELECT clock_timestamp() - started_at > interval '8 s' FROM reports.worker "
                                                   "WHERE name = 'copy'").fetchone()[0], 20, "time enough to claim")
        assert db.execute("SELECT count(*) FROM reports.job WHERE claimed_at > (SELECT started_at FROM reports.worker "
                          "WHERE name = 'copy')").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM reports.job WHERE state = 'queued'").fetchone() == (queued,)
        installation.wait_until(lambda: db.execute("SELECT count(*) FROM reports.v_problem WHERE kind = 'server'").fetchone() == (1,), 20,
                                "people are told, ten seconds after the server's start")
    assert worker.log_text().count("no leader has looked at this PostgreSQL server") == 1
    assert worker.stop(30) == 0


def with_queued_jobs(load, installation):
    """The worker is stopped, so that jobs are queued in what is copied now."""
    worker = next(d for d in installation.daemons if d.name == "worker-1")
    assert worker.stop(60) == 0
    load.wait_until(lambda: load.one("SELECT count(*) FROM reports.job WHERE state = 'queued'") > 3, 20, "jobs wait")
    return worker


def test_worker_on_a_base_backup_sends_nothing_and_the_original_goes_on(apart, pair):
    load = Load(apart)
    apart.start_scheduler("scheduler-1")
    load.start_worker("worker-1")
    load.wait_flowing()
    worker = with_queued_jobs(load, apart)
    copy = pair.copy(standby=False)
    try:
        worker.start()
        check_copy_does_nothing(apart, pair.conninfo(apart.database, "report_worker", copy.port), lambda: copy.connect(apart.database))
        load.wait_flowing()
        check_everything(apart, load.db)
    finally:
        copy.remove()


def test_worker_on_a_copy_within_the_cluster_sends_nothing(installation):
    load = Load(installation)
    scheduler = installation.start_scheduler("scheduler-1")
    load.start_worker("worker-1")
    load.wait_flowing()
    worker = with_queued_jobs(load, installation)
    assert scheduler.stop(60) == 0
    load.db.close()
    copy = f"{installation.database}_copy"
    with installation.stack.connect("postgres") as db:
        db.execute(f'CREATE DATABASE "{copy}" TEMPLATE "{installation.database}"')
        try:
            copy_role_settings(db, installation.database, copy)
            check_copy_does_nothing(installation, installation.stack.conninfo(copy, "report_worker"),
                                    lambda: installation.stack.connect(copy))
        finally:
            db.execute(f'DROP DATABASE "{copy}" WITH (FORCE)')
    load.reconnect()
    scheduler.start()
    worker.start()
    load.wait_flowing()
    check_everything(installation, load.db)
