"""Real faults on real daemons."""

import os
import re
import signal
import time

from harness import LONG_SESSION_MS, SESSION_MS
from load import seconds
from proof import check_artifacts, check_schedule, one

EACH_SECOND = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.schedule (name, report, kind, rule, misfire, misfire_max)
    VALUES ('tick', 'nothing', 'interval', '1 second', 'run_all', 1000)"""

ON_REQUEST = """
    INSERT INTO reports.report (name, kind, program, format) VALUES ('script', 'program', 'script', 'txt');
    INSERT INTO reports.schedule (name, report, kind, rule, retry_base)
    VALUES ('script', 'script', 'once', '2999-01-01T00:00', '100 ms')"""

CLAIM_LEASE_S = 4  # short, so that a dead worker's jobs come back within the test


def ticks(db):
    return one(db, "SELECT count(*) FROM reports.occurrence WHERE schedule = 'tick'")


def wait_for_leader(installation, after=0):
    """(member, generation) of a leader with a generation above `after`."""
    def newer():
        leader = installation.leader()
        return leader if leader and leader[1] > after else None

    return installation.wait_until(newer, 40, f"somebody leads with a generation above {after}")


def named(installation, name):
    return next(d for d in installation.daemons if d.name == name)


def write_script(installation, text):
    script = installation.directory / "script.sh"
    script.write_text("#!/bin/sh\n" + text)
    script.chmod(0o755)
    return [{"name": "script", "arguments": [str(script)]}]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_killed_leader_is_followed_and_nothing_is_lost_or_doubled(installation):
    db = installation.connect()
    db.execute(EACH_SECOND)
    for name in ("one", "two", "three"):
        installation.start_scheduler(name)
    installation.start_worker()
    first, generation = wait_for_leader(installation)
    installation.wait_until(lambda: ticks(db) >= 5, 30, "five firings are planned")

    named(installation, first).kill()
    killed_at = time.monotonic()
    second, _ = wait_for_leader(installation, after=generation)
    took_s = time.monotonic() - killed_at

    assert second != first
    # Expiry is at most the session and a tick; the rest is for a busy machine.
    assert took_s < SESSION_MS / 1000 + 0.5 + 25
    before = ticks(db)
    installation.wait_until(lambda: ticks(db) > before + 3, 20, "the new leader plans")
    check_schedule(installation, db, "tick")


def test_stopped_leader_wakes_to_find_its_late_write_refused_and_recorded(installation, proxy):
    db = installation.connect()
    db.execute(EACH_SECOND)
    through_proxy = installation.stack.conninfo(installation.database, "report_scheduler", proxy.port)
    old = installation.start_scheduler("old", database=through_proxy)
    _, generation = wait_for_leader(installation)
    installation.start_scheduler("new")
    installation.start_worker()
    installation.wait_until(lambda: ticks(db) >= 5, 30, "five firings are planned")

    # A write is on its way when the leader stops, and arrives long after.
    proxy.hold(b"plan_batch")
    assert proxy.caught.wait(40), "the leader planned nothing for 40 s"
    old.freeze()
    frozen_at = time.monotonic()
    successor, _ = wait_for_leader(installation, after=generation)
    assert successor == "new"
    sessions = seconds(1.5, 3)
    installation.wait_until(lambda: time.monotonic() - frozen_at > sessions * SESSION_MS / 1000, 30,
                            f"{sessions} sessions have passed")
    proxy.release()
    refused = installation.wait_until(
        lambda: db.execute("SELECT generation, stored_generation FROM reports.fence_rejection").fetchall(),
        10, "the late write is recorded")
    assert refused[0][0] == generation < refused[0][1]
    old.thaw()

    # Its log, not the diary: that is written only if its connection outlived the stop.
    installation.wait_until(lambda: re.findall(r"event=\"lifecycle\" .* to=(\w+) ", old.log_text())[-1:] == ["FOLLOWING"],
                            30, "the old leader steps down and follows")
    assert installation.leader()[0] == "new"
    late = """SELECT count(*) FROM reports.occurrence o, reports.fence f
               WHERE f.scope = 'main' AND o.generation < f.generation AND o.planned_at > f.established_at"""
    assert one(db, late) == 0
    check_schedule(installation, db, "tick")


def test_job_of_a_killed_worker_is_done_by_another_with_one_artifact(installation):
    db = installation.connect()
    db.execute("UPDATE reports.installation SET claim_lease = make_interval(secs => %s), reap_grace = '1 second'",
               (CLAIM_LEASE_S,))
    db.execute(ON_REQUEST)
    pid_file = installation.directory / "pid"
    # The first attempt says who it is and lingers; later ones are quick.
    programs = write_script(installation, f"""
if [ "$REPORT_ATTEMPT" = 1 ]; then
    echo $$ >{pid_file}.part && mv {pid_file}.part {pid_file}
    exec /bin/sleep 300
fi
echo "attempt $REPORT_ATTEMPT of $REPORT_OCCURRENCE_KEY"
""")
    installation.start_scheduler()
    wait_for_leader(installation)
    doomed = installation.start_worker("doomed", programs=programs)
    installation.reportctl("trigger", "script", "--key", "by-hand")
    installation.wait_until(pid_file.exists, 30, "the first attempt runs")

    doomed.kill()
    killed_at = time.monotonic()
    child = int(pid_file.read_text())
    installation.wait_until(lambda: not is_running(child), 10, "the program is gone with its worker")
    installation.start_worker("heir", programs=programs)
    installation.wait_until(
        lambda: one(db, "SELECT state = 'succeeded' FROM reports.job"), CLAIM_LEASE_S + 40, "the job has succeeded")

    # Not before the dead worker's lease could end: until then it might have been alive.
    assert time.monotonic() - killed_at > CLAIM_LEASE_S / 2
    attempts = db.execute("SELECT attempt, outcome FROM reports.job_attempt ORDER BY attempt").fetchall()
    assert attempts == [(1, "lost"), (2, "succeeded")]
    paths = db.execute("SELECT path FROM reports.artifact").fetchall()
    assert len(paths) == 1
    assert (installation.artifacts / paths[0][0]).read_text() == "attempt 2 of by-hand\n"
    check_artifacts(installation, db)


def test_message_delivered_twice_runs_its_job_once(installation):
    db = installation.connect()
    db.execute(ON_REQUEST)
    runs = installation.directory / "runs"
    programs = write_script(installation, f'echo run >>{runs}\necho "$REPORT_OCCURRENCE_KEY"\n')
    installation.start_scheduler()
    wait_for_leader(installation)
    worker = installation.start_worker(programs=programs)

    def run_by_hand(key):
        installation.reportctl("trigger", "script", "--key", key)
        installation.wait_until(
            lambda: one(db, "SELECT state = 'succeeded' FROM reports.job WHERE occurrence_key = %s", (key,)),
            40, f"the job {key} has succeeded")

    run_by_hand("twice")
    # The same message three times more, through the real relay and broker.
    db.execute("""
        INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, generation)
        SELECT j.scope, j.id, 1, j.schedule, j.occurrence_key, j.queue, clock_timestamp(), 1
          FROM reports.job j, generate_series(1, 3)""")
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.outbox") == 0, 30, "they are published")
    run_by_hand("behind")

    def repeats_counted():
        worker.process.send_signal(signal.SIGUSR1)
        return any(int(n) >= 3 for n in re.findall(r"duplicate=(\d+)", worker.log_text()))

    installation.wait_until(repeats_counted, 20, "the worker has counted the repeats")

    assert runs.read_text() == "run\nrun\n"
    assert one(db, "SELECT count(*) FROM reports.job_attempt") == 2
    assert one(db, "SELECT max(attempt) FROM reports.job") == 1
    assert one(db, "SELECT count(*) FROM reports.artifact") == 2
    check_artifacts(installation, db)


def test_leader_asked_to_stop_hands_over_within_a_second_or_two(installation):
    db = installation.connect()
    db.execute(EACH_SECOND)
    for name in ("one", "two"):
        installation.start_scheduler(name, zookeeper_session_ms=LONG_SESSION_MS)
    installation.start_worker()
    first, generation = wait_for_leader(installation)
    other = named(installation, "two" if first == "one" else "one")
    installation.wait_until(lambda: "to=FOLLOWING" in other.log_text(), 30, "the other one follows")
    installation.wait_until(lambda: ticks(db) >= 2, 30, "two firings are planned")

    assert named(installation, first).stop() == os.EX_OK
    second, _ = wait_for_leader(installation, after=generation)
    assert second != first
    handover = """SELECT f.activated_at - e.at FROM reports.fence f, reports.leadership_event e
                   WHERE f.scope = 'main' AND e.event = 'released' AND e.generation = %s"""
    # Far below the session: the node was deleted, nobody waited for an expiry.
    assert one(db, handover, (generation,)).total_seconds() < LONG_SESSION_MS / 2000
    check_schedule(installation, db, "tick")
