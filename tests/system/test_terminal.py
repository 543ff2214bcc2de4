"""`reportctl` on a terminal of 120 columns: with ordinary data no line is broken, and what there was
no room for is named."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

import pytest

import harness
from proof import one

COLUMNS = 120

DEFINITIONS = """
    INSERT INTO reports.queue (name, description, max_outstanding)
    VALUES ('warehouse', 'heavy queries against the warehouse, a few at a time', 2);
    INSERT INTO reports.report (name, kind, data_source, query, format) VALUES
        ('sales', 'sql', 'warehouse', 'SELECT g AS day FROM generate_series(1, 5) g', 'csv'),
        ('broken', 'sql', 'warehouse', 'SELECT * FROM no_such_table', 'csv');
    INSERT INTO reports.schedule (name, report, kind, rule, time_zone, queue, max_attempts) VALUES
        ('warehouse-sales-daily', 'sales', 'cron', '30 6 * * 1-5', 'America/New_York', 'warehouse', 3),
        ('broken-table-hourly', 'broken', 'cron', '0 * * * *', 'Europe/Berlin', 'default', 1),
        ('never-fires', 'sales', 'cron', '0 6 31 2 *', 'UTC', 'default', 1)"""


def on_terminal(installation, *words, columns=COLUMNS, ends=(0,)):
    """The lines that reportctl writes on a terminal, its notes among them."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    with subprocess.Popen([harness.build() / "reportctl", *map(str, words)], stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=theirs,
                          env={**os.environ, "LANG": "C.UTF-8",
                               "REPORTCTL_DATABASE": installation.stack.conninfo(installation.database)}) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                some = os.read(ours, 65536)
            except OSError:  # EIO: nobody has the other end any more
                break
            if not some:
                break
            text += some
        os.close(ours)
        assert process.wait(60) in ends, text.decode()
    return text.decode().replace("\r\n", "\n").splitlines()


@pytest.fixture
def busy(installation):
    """An installation in which a little of everything has happened."""
    harness.away_from_the_half_hour()  # nothing fires by itself
    db = installation.connect()
    db.execute(DEFINITIONS)
    installation.start_scheduler("scheduler-1")
    installation.start_worker("worker-1", queues=["default", "warehouse"])
    installation.wait_until(installation.leader, 30, "somebody leads")
    ctl = installation.reportctl
    ctl("trigger", "warehouse-sales-daily", "--key", "2020-04-12")
    ctl("trigger", "broken-table-hourly", "--key", "2020-04-12T06:00")
    installation.wait_until(lambda: one(db, "SELECT count(*) FROM reports.job WHERE state IN ('succeeded', 'failed')") == 2,
                            30, "both have run")
    ctl("pause", "broken-table-hourly", "--reason", "the table is being moved to the other schema")
    ctl("queue", "hold", "warehouse", "--reason", "load window until the morning")
    ctl("trigger", "warehouse-sales-daily", "--key", "2020-04-13")
    ctl("cancel", "warehouse-sales-daily:2020-04-13", "--reason", "not needed any more")
    job = one(db, "SELECT job_id FROM reports.occurrence WHERE occurrence_key = '2020-04-12'")
    ctl("cancel", job, expect=4)  # by its id, and refused
    return installation


def test_ordinary_data_fits_a_terminal_of_120_columns(busy):
    shown = {}
    for words in ("status", "leaders", "schedules", "schedules --problem", "schedules --paused",
                  "schedule warehouse-sales-daily", "schedule never-fires", "occurrences",
                  "occurrences warehouse-sales-daily", "jobs", "jobs --state failed", "job warehouse-sales-daily:2020-04-12",
                  "job broken-table-hourly:2020-04-12T06:00", "workers", "outbox", "events", "events --refused",
                  "requests", "queues", "holds", "holds --all"):
        shown[words] = on_terminal(busy, *words.split())
        for line in shown[words]:
            # A path or a hash is one word, and stands alone behind its name.
            assert len(line) <= COLUMNS or line.split()[0] == "path", f"reportctl {words}\n" + "\n".join(shown[words])
    # What people look for is still there.
    requests = "\n".join(shown["requests"])
    assert "warehouse-sales-daily:2020-04-12 " in requests and " refused " in requests
    assert len(shown["requests"][1].split()[0]) == 36  # the id, whole
    assert shown["requests"][0].split() == ["ID", "REQUESTED", "KIND", "SUBJECT", "STATE", "ANSWER"]
    assert shown["requests"][-1] == "reportctl: left out for want of room: BY, ARGUMENT, SCOPE; -o wide shows all"
    assert "no_such_table" in "\n".join(shown["jobs --state failed"])
    assert "never fires" in "\n".join(shown["schedules"])
    artifact = [x.split(None, 1) for x in shown["job warehouse-sales-daily:2020-04-12"]]
    assert ["store", "local"] in artifact and ["rows", "5"] in artifact
    assert len(dict(x for x in artifact if len(x) == 2)["sha256"]) == 64


def test_wide_shows_all_columns_whatever_the_terminal(busy):
    narrow = on_terminal(busy, "jobs", columns=80)
    assert "ID" not in narrow[0].split()
    note = " ".join(narrow[next(i for i, x in enumerate(narrow) if x.startswith("reportctl: ")):])
    assert "left out for want of room: " in note and ", ID; " in note, narrow
    wide = on_terminal(busy, "jobs", "-o", "wide", columns=80)
    assert "ID" in wide[0].split() and len(wide) == 4, wide
    assert wide == busy.reportctl("jobs").splitlines()  # as without a terminal


NAME = "x-" + "quarterly-statement-of-the-department-of-long-names-and-more"  # 62 characters
LISTS = ("status", "leaders", "schedules", "schedules --problem", "schedules --paused", f"schedule {NAME}", "occurrences",
         f"occurrences {NAME}", "jobs", "jobs --state queued", "jobs --state failed", f"jobs --schedule {NAME}", "workers",
         "outbox", "outbox --dead", "events", "events --refused", "requests", "queues", "holds", "holds --all", "clocks",
         "fence show", "fence audit", "tz status", "calendar list", "verify")


def test_no_list_is_wider_than_its_terminal_whatever_the_names(installation):
    """Everything has a name of 62 characters and reasons of a few hundred."""
    reason = "the warehouse answers late and /a/path/without/blanks/that/is/longer/than/any/column/would/be.csv is not there " * 2
    with installation.connect() as db:
        db.execute("INSERT INTO reports.scope (name) VALUES (%s)", (NAME,))
        db.execute("INSERT INTO reports.queue (name, description) VALUES (%s, %s)", (NAME, reason))
        db.execute("INSERT INTO reports.report (name, kind) VALUES (%s, 'noop')", (NAME,))
        db.execute("INSERT INTO reports.schedule (name, scope, report, kind, rule, time_zone, queue) VALUES"
                   " (%s, %s, %s, 'cron', '30 6 * * 1-5', 'America/Argentina/ComodRivadavia', %s)", (NAME,) * 4)
        db.execute("INSERT INTO reports.schedule_progress (schedule, scope, version, switched_at, next_fire_at, next_nominal,"
                   " next_offset_s, key_form, problem, problem_since) VALUES (%s, %s, 1, now(), now(), now()::timestamp, 0,"
                   " 'date', %s, now())", (NAME, NAME, reason))
        for state in ("queued", "failed"):
            db.execute("WITH o AS (INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for,"
                       " business_date, cause, version, incarnation, generation) VALUES (%(n)s, %(s)s::text, %(n)s, gen_random_uuid(),"
                       " now(), current_date, 'schedule', 1, 1, 1) RETURNING job_id)"
                       " INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority, state, run_after,"
                       " max_attempts, retry_base, retry_cap, timeout, finished_at, error) SELECT job_id, %(n)s, %(s)s, %(n)s,"
                       " %(n)s, %(n)s, 0, %(s)s::reports.job_state, now() - interval '1 minute', 3, '1 s', '1 s', '1 h',"
                       " CASE %(s)s::text WHEN 'failed' THEN now() END, CASE %(s)s::text WHEN 'failed' THEN %(r)s END FROM o",
                       {"n": NAME, "s": state, "r": reason})
        db.execute("INSERT INTO reports.hold (scope, reason, cause) VALUES (%s, %s, 'zxid_regressed')", (NAME, reason))
        db.execute("INSERT INTO reports.leadership_event (scope, event, member, reason, detail, generation)"
                   " VALUES (%s, 'stepped_down', %s, 'database_unhealthy', %s, 4294967297)", (NAME, NAME, reason))
        db.execute("INSERT INTO reports.worker (id, name, pid, version, queues, slots)"
                   " VALUES (gen_random_uuid(), %s, 1, '0.1.0', ARRAY[%s, 'default'], 4)", (NAME, NAME))
        db.execute("INSERT INTO reports.request (id, kind, scope, subject, argument, deadline)"
                   " VALUES (gen_random_uuid(), 'pause', %s, %s, %s, now() + interval '1 minute')", (NAME, NAME, reason))
    broken = []
    for columns in (80, 120):
        for words in LISTS:
            lines = on_terminal(installation, *words.split(), columns=columns, ends=(0, 1) if words == "verify" else (0,))
            # A value of facts that is one long word stands whole behind its name.
            if any(len(x) > columns and len(x.split()) > 2 for x in lines):
                broken.append(f"{columns}: reportctl {words}\n" + "\n".join(lines))
    assert not broken, "\n\n".join(broken)
    assert "database_unhealthy" in "\n".join(on_terminal(installation, "events", columns=80))
