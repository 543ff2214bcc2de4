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


def one(db, query, arguments=None):
    row = db.execute(query, arguments).fetchone()
    return row[0] if row else None


def check_schedule(installation, db, schedule):
    """Everything due until now is planned, once, and done; then checks the files."""
    about = {"schedule": schedule, "until": one(db, "SELECT clock_timestamp() - interval '1 ms'")}
    installation.wait_until(
        lambda: one(db, "SELECT next_fire_at > %(until)s FROM reports.schedule_progress "
                        "WHERE schedule = %(schedule)s", about),
        30, f"{schedule} is planned until {about['until']}")
    installation.wait_until(lambda: one(db, UNFINISHED, about) == 0, 40,
                            f"all jobs of {schedule} have succeeded")
    due = db.execute(DUE, about).fetchall()
    assert due, "the test is too short: nothing was due"
    assert db.execute(MADE, about).fetchall() == due
    assert one(db, "SELECT count(*) FROM reports.schedule_gap WHERE schedule = %(schedule)s", about) == 0
    check_artifacts(installation, db)


def check_artifacts(installation, db):
    """At most one artifact a job, and its file is there with that size and hash."""
    rows = db.execute("SELECT job_id, path, size_bytes, sha256 FROM reports.artifact").fetchall()
    assert len({job for job, *_ in rows}) == len(rows)
    for _, path, size, digest in rows:
        content = (installation.artifacts / path).read_bytes()
        assert (len(content), hashlib.sha256(content).digest()) == (size, digest), path
