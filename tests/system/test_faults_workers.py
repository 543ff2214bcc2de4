"""Faults of one worker: no disk, frozen, full, a lost answer, a stop under load, two signals."""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from load import CLAIM_LEASE_S, LONG_LEASE_S, Load, seconds
from proof import check_artifacts, check_everything, check_no_orphans, one

ON_REQUEST = """
    INSERT INTO reports.report (name, kind, program, format) VALUES ('script', 'program', 'script', 'txt');
    INSERT INTO reports.schedule (name, report, kind, rule, retry_base, max_attempts)
    VALUES ('script', 'script', 'once', '2999-01-01T00:00', '200 ms', 10);
    UPDATE reports.installation SET claim_lease = '%d seconds', reap_grace = '1 second'"""


def prepare(installation, script):
    """A scheduler, and a report `script` that is run by hand; (connection, programs for workers)."""
    db = installation.connect()
    db.execute(ON_REQUEST % CLAIM_LEASE_S)
    path = installation.directory / "script.sh"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    installation.start_scheduler()
    installation.wait_until(installation.leader, 40, "somebody leads")
    return db, [{"name": "script", "arguments": [str(path)]}]


def state(db, key):
    return one(db, "SELECT state::text FROM reports.job WHERE occurrence_key = %s", (key,))


def wait_state(installation, db, key, wanted, timeout=40):
    installation.wait_until(lambda: state(db, key) == wanted, timeout, f"the job {key} is {wanted}")


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def counted(worker, name):
    """What the worker has counted under that name, as it says on SIGUSR1."""
    lines = worker.log_text().count('event="counts"')
    worker.process.send_signal(signal.SIGUSR1)
    end = time.monotonic() + 40
    while worker.log_text().count('event="counts"') == lines:
        assert time.monotonic() < end, "no counts in the log"
        time.sleep(0.02)
    found = re.findall(rf"\b{name}=(\d+)", worker.log_text())
    return int(found[-1]) if found else 0


# A full disk --------------------------------------------------------------------------------------

DISK_BYTES = 1 << 20


def small_disk(directory):
    """A command that becomes another one which sees a small file system of its own at `directory`.
    Needs no right but a user namespace; root needs none of those, which a container or a chroot may
    forbid. None where the kernel lets us make neither."""
    for namespaces in (["--user", "--map-root-user", "--mount"], ["--mount"]):
        command = ["unshare", *namespaces, "sh", "-c",
                   f'mount -t tmpfs -o size={DISK_BYTES} none "$0" && exec "$@"', str(directory)]
        if subprocess.run([*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
            return command
    return None


def test_full_artifact_disk_fails_jobs_with_the_reason_and_they_succeed_once_there_is_room(installation):
    prefix = small_disk(installation.artifacts)
    if prefix is None:
        pytest.skip("this machine cannot mount a small disk: neither a user namespace nor, as root, one of mounts")
    db, programs = prepare(installation, 'exec head -c 300000 /dev/zero\n')
    db.execute("INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')")
    db.execute("INSERT INTO reports.schedule (name, report, kind, rule, misfire, misfire_max) "
               "VALUES ('tick', 'nothing', 'interval', '1 second', 'run_all', 1000)")
    worker = installation.start_worker(prefix=prefix, programs=programs, sweep_ms=1000)
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.worker"), 20, "the worker has registered")
    installation.artifacts = pathlib.Path(f"/proc/{worker.pid}/root{installation.artifacts}")
    ballast = installation.artifacts / "ballast"
    ballast.write_bytes(b"x" * (DISK_BYTES - 200_000))

    for n in range(3):
        installation.reportctl("trigger", "script", "--key", f"k{n}")
    reason = installation.wait_until(
        lambda: one(db, "SELECT error FROM reports.job WHERE error IS NOT NULL"), 20, "a job fails")
    assert re.search(r'artifact store "local" \(.*\): cannot write .*No space left on device; '
                     "free space there, the job is tried again", reason), reason
    assert one(db, "SELECT count(*) FROM reports.artifact") == 0
    before = one(db, "SELECT count(*) FROM reports.job WHERE schedule = 'tick' AND state = 'succeeded'")
    installation.wait_until(
        lambda: one(db, "SELECT count(*) FROM reports.job WHERE schedule = 'tick' AND state = 'succeeded'") > before + 2,
        20, "what needs no disk goes on")
    # Nothing half-written takes up what little room there is.
    installation.wait_until(lambda: [p.name for p in installation.artifacts.rglob("*") if p.is_file()] == ["ballast"]
                            or state(db, "k0") == "running", 10, "failed attempts leave nothing")
    ballast.unlink()
    db.execute("UPDATE reports.job SET run_after = now() WHERE state = 'retry_wait'")  # not the whole backoff
    for n in range(3):
        wait_state(installation, db, f"k{n}", "succeeded")
    check_artifacts(installation, db)
    check_no_orphans(installation, db)


# Frozen and overtaken -----------------------------------------------------------------------------

def test_worker_frozen_beyond_its_lease_has_no_program_left_and_one_artifact_comes_out(installation):
    pid_file = installation.directory / "pid"
    db, programs = prepare(installation, f"""
if [ "$REPORT_ATTEMPT" = 1 ]; then
    echo "late output of attempt 1"
    echo $$ >{pid_file}.part && mv {pid_file}.part {pid_file}
    exec /bin/sleep 600
fi
grep -q '^State:.[^ZX]' /proc/$(cat {pid_file})/status 2>/dev/null && echo "beside attempt 1"
echo "attempt $REPORT_ATTEMPT"
""")
    frozen = installation.start_worker("frozen", programs=programs, sweep_ms=1000)
    installation.reportctl("trigger", "script", "--key", "k")
    installation.wait_until(pid_file.exists, 30, "the first attempt runs")
    child = int(pid_file.read_text())
    frozen.freeze()
    frozen_at = time.monotonic()
    installation.start_worker("heir", programs=programs, sweep_ms=1000)
    installation.wait_until(lambda: not is_running(child), CLAIM_LEASE_S + 30, "the program is gone")
    # Its keeper ended it before anybody else could be given the job: the second attempt would have seen it.
    wait_state(installation, db, "k", "succeeded", CLAIM_LEASE_S + 30)
    installation.wait_until(lambda: time.monotonic() > frozen_at + seconds(0, 60), 70, "it stays frozen")
    frozen.thaw()
    installation.wait_until(lambda: "claim was lost" in frozen.log_text() or "refused, the claim had moved on" in frozen.log_text(),
                            20, "the thawed worker sees that it has lost the job")
    assert db.execute("SELECT attempt, outcome FROM reports.job_attempt ORDER BY attempt").fetchall() == [
        (1, "lost"), (2, "succeeded")]
    path = one(db, "SELECT path FROM reports.artifact")
    assert (installation.artifacts / path).read_text() == "attempt 2\n"
    check_artifacts(installation, db)
    check_no_orphans(installation, db)


# No free slot -------------------------------------------------------------------------------------

def test_full_worker_lets_its_messages_go_and_another_pulls_the_jobs(installation):
    release = installation.directory / "release"
    db, programs = prepare(installation, f"""
case $REPORT_OCCURRENCE_KEY in long*) while [ ! -e {release} ]; do /bin/sleep 0.1; done ;; esac
echo "$REPORT_OCCURRENCE_KEY"
""")
    full = installation.start_worker("full", programs=programs, slots=1)
    installation.reportctl("trigger", "script", "--key", "long")
    wait_state(installation, db, "long", "running")
    for n in range(4):
        installation.reportctl("trigger", "script", "--key", f"k{n}")
    installation.wait_until(lambda: counted(full, "shed") >= 4, 30, "the full worker has let the messages go")
    assert {state(db, f"k{n}") for n in range(4)} == {"queued"}
    # Without Kafka: nothing but the pull can bring it these jobs.
    installation.start_worker("idle", programs=programs, kafka_brokers="")
    for n in range(4):
        wait_state(installation, db, f"k{n}", "succeeded", 15)
    assert state(db, "long") == "running"
    release.touch()
    wait_state(installation, db, "long", "succeeded")
    assert one(db, "SELECT max(attempt) FROM reports.job") == 1
    check_artifacts(installation, db)


# A lost answer ------------------------------------------------------------------------------------

def test_claim_whose_answer_was_lost_is_adopted_and_run_once(installation, proxy):
    runs = installation.directory / "runs"
    db, programs = prepare(installation, f'echo run >>{runs}; echo "$REPORT_OCCURRENCE_KEY"\n')
    worker = installation.start_worker(
        programs=programs, pull_idle_ms=30000, database=installation.stack.conninfo(installation.database, "report_worker", proxy.port))
    installation.reportctl("trigger", "script", "--key", "warm")
    wait_state(installation, db, "warm", "succeeded")
    installation.wait_until(lambda: counted(worker, "messages") >= 1, 20, "its message is taken, too")
    # The claim by the id that a message brings; the pull is too slow to come before it.
    proxy.swallow(b"claim_ids")
    installation.reportctl("trigger", "script", "--key", "k")
    installation.wait_until(lambda: state(db, "k") != "queued" or proxy.swallowed.is_set(), 20, "the job is claimed")
    wait_state(installation, db, "k", "succeeded")
    assert proxy.swallowed.is_set()
    assert counted(worker, "adopted") == 1
    assert db.execute("SELECT a.attempt, a.outcome FROM reports.job_attempt a JOIN reports.job j ON j.id = a.job_id "
                      "WHERE j.occurrence_key = 'k'").fetchall() == [(1, "succeeded")]
    assert runs.read_text() == "run\nrun\n"
    check_artifacts(installation, db)


def test_lost_claim_whose_row_somebody_holds_is_not_adopted_before_it_can_be_renewed(installation, proxy):
    runs = installation.directory / "runs"
    db, programs = prepare(installation, f'echo run >>{runs}; echo x\n')
    db.execute("UPDATE reports.installation SET claim_lease = '60 seconds'")
    worker = installation.start_worker(
        programs=programs, pull_idle_ms=30000, database=installation.stack.conninfo(installation.database, "report_worker", proxy.port))
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.worker"), 20, "the worker has registered")
    proxy.swallow(b"reports.claim_ids")
    proxy.hold(b"reports.claims_of")
    installation.reportctl("trigger", "script", "--key", "k")
    assert proxy.caught.wait(40), "it wants to know what became of the claim"
    with installation.connect(autocommit=False) as other:
        other.execute("SELECT FROM reports.job WHERE occurrence_key = 'k' FOR UPDATE")
        proxy.release()
        installation.wait_until(lambda: one(db, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'report-worker claims' "
                                            "AND state = 'idle' AND query LIKE '%%reports.heartbeat(%%'"), 30, "it wanted to renew what it found")
        assert counted(worker, "adopted") == 0 and not runs.exists()
        other.rollback()
    wait_state(installation, db, "k", "succeeded")
    assert counted(worker, "adopted") == 1 and runs.read_text() == "run\n"


def test_job_killed_with_its_claim_is_a_failed_attempt_and_is_not_adopted_as_the_same_one(installation, proxy):
    runs = installation.directory / "runs"
    db, programs = prepare(installation, f'echo "$REPORT_OCCURRENCE_KEY $REPORT_ATTEMPT" >>{runs}\n'
                           '[ "$REPORT_OCCURRENCE_KEY" = k ] && exec sleep 600\necho x\n')
    db.execute("UPDATE reports.schedule SET max_attempts = 1")
    # Long enough that a statement is given up, and the database heard again, before the leader reaps.
    db.execute("UPDATE reports.installation SET claim_lease = '12 seconds'")
    worker = installation.start_worker(
        programs=programs, slots=4, database=installation.stack.conninfo(installation.database, "report_worker", proxy.port))
    installation.reportctl("trigger", "script", "--key", "k")
    installation.wait_until(runs.exists, 20, "it runs")
    proxy.black_hole()
    installation.wait_until(lambda: "claims could not be renewed in time" in worker.log_text()
                            and "claim failed" in worker.log_text(), 60, "its claim is given up, and another is in doubt")
    proxy.heal()
    wait_state(installation, db, "k", "failed")
    installation.reportctl("trigger", "script", "--key", "after")
    wait_state(installation, db, "after", "succeeded")
    assert runs.read_text().splitlines() == ["k 1", "after 1"]
    assert counted(worker, "adopted") == 0
    assert db.execute("SELECT a.attempt FROM reports.job_attempt a JOIN reports.job j ON j.id = a.job_id "
                      "WHERE j.occurrence_key = 'k'").fetchall() == [(1,)]


def test_outcome_whose_answer_was_lost_is_sent_again_and_counts_once(installation, proxy):
    db, programs = prepare(installation, 'echo "$REPORT_OCCURRENCE_KEY"\n')
    worker = installation.start_worker(
        programs=programs, database=installation.stack.conninfo(installation.database, "report_worker", proxy.port))
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.worker"), 20, "the worker has registered")
    proxy.swallow(b"record_outcomes")
    installation.reportctl("trigger", "script", "--key", "k")
    wait_state(installation, db, "k", "succeeded")
    # Once or more: it is repeated until it is answered.
    installation.wait_until(lambda: counted(worker, "outcome_repeats") >= 1, 20, "the repeat is counted")
    assert db.execute("SELECT attempt, outcome FROM reports.job_attempt").fetchall() == [(1, "succeeded")]
    check_artifacts(installation, db)
    check_no_orphans(installation, db)


# Stopping -----------------------------------------------------------------------------------------

def test_worker_stopped_under_load_finishes_or_hands_back_and_the_rest_goes_on(installation):
    load = Load(installation, ticks=20, files=4, lease_s=LONG_LEASE_S)
    installation.start_scheduler()
    first = load.start_worker("first", drain_ms=60000)
    load.start_worker("second")
    load.wait_flowing(60)
    begun = time.monotonic()
    assert first.stop(50) == os.EX_OK
    assert time.monotonic() - begun < 50, "nothing here runs long"
    assert load.one("SELECT state FROM reports.worker WHERE name = 'first'") == "stopped"
    load.wait_flowing(60)
    assert load.one("SELECT count(*) FROM reports.job_attempt WHERE outcome NOT IN ('succeeded', 'handed_back')") == 0
    check_everything(installation, load.db)


def test_second_signal_cuts_the_wait_for_running_jobs_short(installation):
    db, programs = prepare(installation, '[ "$REPORT_ATTEMPT" != 1 ] || exec /bin/sleep 600\necho done\n')
    worker = installation.start_worker("first", programs=programs, drain_ms=60000, kill_grace_ms=500)
    installation.reportctl("trigger", "script", "--key", "k")
    wait_state(installation, db, "k", "running")
    worker.process.send_signal(signal.SIGTERM)
    installation.wait_until(lambda: "jobs may finish" in worker.log_text(), 10, "the worker is stopping")
    assert worker.is_alive()
    begun = time.monotonic()
    assert worker.stop(50) == os.EX_OK
    assert time.monotonic() - begun < 50, "drain_ms is 60 s"
    installation.start_worker("second", programs=programs)
    wait_state(installation, db, "k", "succeeded")
    assert db.execute("SELECT attempt, outcome FROM reports.job_attempt ORDER BY attempt").fetchall() == [
        (1, "handed_back"), (2, "succeeded")]
    check_artifacts(installation, db)
