"""What must hold after every story: nothing lost, nothing doubled, each file what its row says."""

import hashlib

# Instants an interval schedule was due at, computed apart from the scheduler.
DUE = """
    SELECT t FROM reports.schedule s
      JOIN reports.schedule_version v ON v.schedule = s.name AND v.version = 1,
           generate_series(s.anchor, %(until)s, s.rule::interval) t
     WHERE s.name = %(schedule)s AND t > v.effective_from"""

MADE = """
    SELECT scheduled_for FROM reports.occurrence
     WHERE schedule = %(schedule)s AND cause <> 'manual' AND scheduled_for <= %(until)s
     ORDER BY scheduled_for"""

UNFINISHED = """
    SELECT count(*) FROM reports.occurrence o JOIN reports.job j ON j.id = o.job_id
     WHERE o.schedule = %(schedule)s AND o.scheduled_for <= %(until)s AND j.state <> 'succeeded'"""

LEFT = """
    SELECT j.occurrence_key, j.state::text, j.attempt, j.run_after, j.lease_until, j.worker::text, j.error, w.state, w.heartbeat_at,
           clock_timestamp()
      FROM reports.job j LEFT JOIN reports.worker w ON w.id = j.worker
     WHERE j.schedule = %(schedule)s AND j.state <> 'succeeded' ORDER BY j.id LIMIT 10"""


def one(db, query, arguments=None):
    row = db.execute(query, arguments).fetchone()
    return row[0] if row else None


def check_planned_and_done(installation, db, schedule):
    """Everything of the schedule due until now is planned, once, and done."""
    about = {"schedule": schedule, "until": one(db, "SELECT clock_timestamp() - interval '1 ms'")}
    installation.wait_until(
        lambda: one(db, "SELECT next_fire_at > %(until)s FROM reports.schedule_progress "
                        "WHERE schedule = %(schedule)s", about),
        30, f"{schedule} is planned until {about['until']}")
    try:
        installation.wait_until(lambda: one(db, UNFINISHED, about) == 0, 40,
                                f"all jobs of {schedule} have succeeded")
    except AssertionError as e:
        left = db.execute(LEFT, about).fetchall()
        raise AssertionError(f"{e}\n--- what is left of {schedule}\n" + "\n".join(map(str, left))) from None
    due = db.execute(DUE, about).fetchall()
    assert due, "the test is too short: nothing was due"
    assert db.execute(MADE, about).fetchall() == due
    assert one(db, "SELECT count(*) FROM reports.schedule_gap WHERE schedule = %(schedule)s", about) == 0


def check_schedule(installation, db, schedule):
    """Everything due until now is planned, once, and done; then checks the files."""
    check_planned_and_done(installation, db, schedule)
    check_artifacts(installation, db)


def check_everything(installation, db):
    """check_schedule for every schedule that fires each so often, then that no file is left over."""
    schedules = [name for name, in db.execute("SELECT name FROM reports.schedule WHERE kind = 'interval' ORDER BY name")]
    for schedule in schedules:
        check_planned_and_done(installation, db, schedule)
    check_artifacts(installation, db)
    check_no_orphans(installation, db)


def check_artifacts(installation, db):
    """At most one artifact a job, and its file is there with that size and hash."""
    rows = db.execute("SELECT job_id, path, size_bytes, sha256 FROM reports.artifact").fetchall()
    assert len({job for job, *_ in rows}) == len(rows)
    for _, path, size, digest in rows:
        content = (installation.artifacts / path).read_bytes()
        assert (len(content), hashlib.sha256(content).digest()) == (size, digest), path
    # Of programs and queries exactly one: success without a file is none.
    assert one(db, """SELECT count(*) FROM reports.job j JOIN reports.report r ON r.name = j.report
                       WHERE j.state = 'succeeded' AND r.kind <> 'noop'
                         AND NOT EXISTS (SELECT FROM reports.artifact a WHERE a.job_id = j.id)""") == 0


def check_no_orphans(installation, db):
    """Once nothing runs, the sweep leaves no file that no row names. Workers need sweep_ms = 1000."""
    def none_left():
        # Files first: one whose job ends meanwhile has its row by the time of the second look.
        there = {str(p.relative_to(installation.artifacts)) for p in installation.artifacts.rglob("*") if p.is_file()}
        running = one(db, "SELECT count(*) FROM reports.job j JOIN reports.report r ON r.name = j.report "
                          "WHERE j.state = 'running' AND r.kind <> 'noop'")
        return running == 0 and there <= {path for path, in db.execute("SELECT path FROM reports.artifact")}

    installation.wait_until(none_left, 30, "every file has its row while no job runs")
