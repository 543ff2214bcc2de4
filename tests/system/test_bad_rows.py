"""One bad row stops nothing else (invariant I12).

All tests here share one scheduler and one worker. Around each of them a companion schedule fires
each second: it must be planned on time and done, and the leader must stay the leader. What people
see of the bad row (`problem`, the job's error, the refusal) is read as they would read it.
"""

import json
import os
import time

import psycopg
import pytest

import harness
from proof import one

LATE_S = 10    # a firing of the companion is durable by then, on a busy machine too; whoever waited for the bad row would wait longer
DONE_S = 20    # and done, without its Kafka message by the pull path
CLAIM_LEASE_S = 60  # no worker dies here, and none may lose a job because the machine stood still

COMPANION = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.schedule (name, report, kind, rule, misfire, misfire_max)
    VALUES ('tick', 'nothing', 'interval', '1 second', 'run_all', 1000)"""

SCRIPTS = {
    "fails": "echo 'no such customer' >&2; exit 3",
    "hangs": "exec /bin/sleep 600",
    "deaf": "trap '' TERM; while :; do /bin/sleep 1; done",
    "floods": "exec /bin/cat /dev/zero",
    # Away from its process group and session, and from its parent.
    "forks": 'setsid sh -c "setsid /bin/sleep 600 & echo \\$! >{directory}/forked.part; '
             'mv {directory}/forked.part {directory}/forked" >/dev/null 2>&1 & wait; '
             "while [ ! -e {directory}/forked ]; do :; done; echo done",
    "echoes": "exec /bin/cat",
}


class Place:
    """The installation and what its tests do over and over."""

    def __init__(self, installation):
        self.installation = installation
        self.db = installation.connect()
        self.late_s = LATE_S
        self.number = 0
        self.sessions = []

    def start(self):
        i = self.installation
        programs = []
        for name, text in SCRIPTS.items():
            script = i.directory / f"{name}.sh"
            script.write_text("#!/bin/sh\n" + text.format(directory=i.directory) + "\n")
            script.chmod(0o755)
            programs.append({"name": name, "arguments": [str(script)], "max_output_bytes": 1 << 20})
        (i.directory / "text").write_text("this is no program\n")
        (i.directory / "text").chmod(0o755)
        programs += [{"name": "no-program", "arguments": [str(i.directory / "text")]},
                     {"name": "missing", "arguments": [str(i.directory / "nowhere")]}]
        self.db.execute("UPDATE reports.installation SET claim_lease = make_interval(secs => %s), "
                        "reap_grace = '1 second'", (CLAIM_LEASE_S,))
        self.db.execute(COMPANION)
        i.start_scheduler(zookeeper_session_ms=harness.LONG_SESSION_MS)
        self.worker = i.start_worker(programs=programs, slots=8, kill_grace_ms=500, sweep_ms=1000)
        i.wait_until(lambda: one(self.db, "SELECT count(*) >= 2 FROM reports.v_job "
                                          "WHERE schedule = 'tick' AND state = 'succeeded'"),
                     30, "the companion runs")

    def one(self, query, *arguments):
        return one(self.db, query, arguments)

    def wait_until(self, predicate, timeout, what):
        return self.installation.wait_until(predicate, timeout, what)

    def refusal(self, statement, *arguments, role="report_author"):
        """The text psql would show: message and hint."""
        self.db.execute(f"SET ROLE {role}")
        try:
            self.db.execute(statement, arguments)
        except psycopg.Error as e:
            return f"{e.diag.message_primary} ({e.diag.message_hint})"
        finally:
            self.db.execute("RESET ROLE")
        raise AssertionError(f"not refused: {statement} {arguments}")

    def session(self, statement):
        """An open psql session that holds what the statement locks until rollback(), or the test's end."""
        session = self.installation.connect(autocommit=False)
        session.execute(statement)
        self.sessions.append(session)
        return session

    def name(self, what):
        self.number += 1
        return f"{what}-{self.number}"

    def report(self, **columns):
        """Insert a report and a schedule of it that fires by hand only; their name."""
        name = self.name("bad")
        self.insert("report", name=name, **columns)
        return name

    def insert(self, table, **columns):
        names = ", ".join(columns)
        marks = ", ".join(["%s"] * len(columns))
        self.db.execute(f"INSERT INTO reports.{table} ({names}) VALUES ({marks})", list(columns.values()))

    def schedule(self, report, **columns):
        self.insert("schedule", **{"name": report, "report": report, "kind": "once",
                                   "rule": "2999-01-01T00:00", "retry_base": "200 ms", **columns})
        return report

    def fire(self, schedule, key="k"):
        self.installation.reportctl("trigger", schedule, "--key", key)

    def job(self, schedule, key="k"):
        return self.db.execute("SELECT state::text, attempt, error, id FROM reports.job WHERE schedule = %s "
                               "AND occurrence_key = %s", (schedule, key)).fetchone()

    def ends(self, schedule, state, timeout=20, key="k"):
        """Wait for the job's final state; what `reportctl job` says of it, in one line."""
        self.wait_until(lambda: self.job(schedule, key)[0] == state, timeout, f"the job of {schedule} is {state}")
        return " ".join(self.installation.reportctl("job", f"{schedule}:{key}").split())

    def fails(self, schedule, timeout=20, state="failed"):
        """Fire it; what people read of the job once it has failed for good, and its attempts."""
        self.fire(schedule)
        text = self.ends(schedule, state, timeout)
        return text, self.job(schedule)[1]

    def problem(self, schedule):
        """What `reportctl schedule` says is wrong, once it says something."""
        return self.wait_until(
            lambda: self.one("SELECT problem FROM reports.v_schedule WHERE name = %s", schedule),
            5, f"{schedule} has a problem")

    def listed(self, schedule):
        """Its line among the problems that `reportctl status` shows first."""
        rows = json.loads(self.installation.reportctl("schedules", "-o", "json"))
        return next(r for r in rows if r["name"] == schedule)["problem"]


@pytest.fixture(scope="module")
def shared(stack, request):
    i = harness.Installation(stack)
    before = request.session.testsfailed
    try:
        i.create()
        place = Place(i)
        place.start()
        yield place
    finally:
        i.remove(keep_files=request.session.testsfailed > before)


@pytest.fixture
def place(shared):
    """The shared place; afterwards all that was due meanwhile is planned on time and done."""
    shared.late_s = LATE_S
    led = shared.installation.leader()
    begun = shared.one("SELECT date_trunc('second', clock_timestamp())")
    yield shared
    while shared.sessions:
        shared.sessions.pop().close()
    shared.wait_until(lambda: shared.one("SELECT max(scheduled_for) > %s FROM reports.occurrence WHERE schedule = 'tick'", begun),
                      5, "the companion fired at least once meanwhile")
    ended = shared.one("SELECT clock_timestamp() - interval '1 ms'")
    due = shared.db.execute("SELECT t FROM reports.schedule, generate_series(anchor, %s, '1 second') t "
                            "WHERE name = 'tick' AND t > %s", (ended, begun)).fetchall()
    fired = """SELECT o.scheduled_for, o.planned_at - o.scheduled_for AS late, j.finished_at - o.scheduled_for AS done
                 FROM reports.occurrence o JOIN reports.job j ON j.id = o.job_id
                WHERE o.schedule = 'tick' AND o.scheduled_for > %s AND o.scheduled_for <= %s
                  AND j.state = 'succeeded' ORDER BY 1"""
    shared.wait_until(lambda: len(shared.db.execute(fired, (begun, ended)).fetchall()) == len(due), DONE_S + 5,
                      "the companion's firings are done")
    rows = shared.db.execute(fired, (begun, ended)).fetchall()
    assert [t for t, *_ in rows] == [t for t, in due]
    assert max(late for _, late, _ in rows).total_seconds() < shared.late_s
    assert max(done for *_, done in rows).total_seconds() < shared.late_s + DONE_S
    assert shared.installation.leader() == led


# Rows that another session holds ----------------------------------------------------------------

def each_second(place, name):
    place.insert("schedule", name=name, report="nothing", kind="interval", rule="1 second", misfire="run_all", misfire_max=1000)
    place.wait_until(lambda: place.one("SELECT count(*) FROM reports.occurrence WHERE schedule = %s", name),
                     5, f"{name} fires")


def fired(place, name):
    return place.one("SELECT count(*) FROM reports.occurrence WHERE schedule = %s", name)


def the_companion_goes_on(place):
    """While the row is locked: what becomes due from now on is planned."""
    now = place.one("SELECT clock_timestamp()")
    place.wait_until(lambda: place.one("SELECT count(*) FROM reports.occurrence WHERE schedule = 'tick' AND scheduled_for > %s", now),
                     5, "another schedule fires")


def nothing_was_lost(place, name):
    place.wait_until(lambda: place.one("SELECT next_fire_at > clock_timestamp() FROM reports.schedule_progress "
                                       "WHERE schedule = %s", name), 5, f"{name} is planned up to now")
    # In one look, as it goes on firing.
    due, made = place.db.execute("""
        SELECT (SELECT count(*) FROM generate_series(s.anchor, p.last_fire_at, '1 second') t
                 WHERE t > (SELECT min(effective_from) FROM reports.schedule_version v WHERE v.schedule = s.name)),
               (SELECT count(*) FROM reports.occurrence o WHERE o.schedule = s.name AND o.scheduled_for <= p.last_fire_at)
          FROM reports.schedule s JOIN reports.schedule_progress p ON p.schedule = s.name WHERE s.name = %s""", (name,)).fetchone()
    assert made == due


@pytest.mark.parametrize("query", ["SELECT FROM reports.schedule WHERE name = 'held-def' FOR UPDATE",
                                   "SELECT FROM reports.report WHERE name = 'nothing' FOR UPDATE",
                                   "SELECT FROM reports.queue WHERE name = 'default' FOR UPDATE",
                                   "SELECT FROM reports.scope WHERE name = 'main' FOR UPDATE"])
def test_definition_locked_by_an_open_session_holds_up_no_firing(place, query):
    if not place.one("SELECT count(*) FROM reports.schedule WHERE name = 'held-def'"):
        each_second(place, "held-def")
    before = fired(place, "held-def")
    session = place.session(query)
    place.wait_until(lambda: fired(place, "held-def") >= before + 2, 5, "it fires although its row is locked")
    the_companion_goes_on(place)
    session.rollback()
    nothing_was_lost(place, "held-def")


def test_progress_row_locked_by_an_open_session_makes_its_own_schedule_late_and_no_other(place):
    each_second(place, "held")
    session = place.session("SELECT FROM reports.schedule_progress WHERE schedule = 'held' FOR UPDATE")
    before = fired(place, "held")
    due = place.one("SELECT next_fire_at FROM reports.schedule_progress WHERE schedule = 'held'")
    place.wait_until(lambda: place.one("SELECT clock_timestamp() > %s + interval '2.5 s'", due), 6, "two more were due")
    assert fired(place, "held") == before
    the_companion_goes_on(place)
    # People see that something is late.
    assert place.one("SELECT due_lag_s FROM reports.v_scope WHERE scope = 'main'") > 1
    session.rollback()
    nothing_was_lost(place, "held")
    assert place.one("SELECT count(*) FROM reports.schedule_gap WHERE schedule = 'held'") == 0


# Rows that planning stumbles over ---------------------------------------------------------------

BOOBY_TRAP = """
    CREATE OR REPLACE FUNCTION public.booby_trap() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.schedule = 'raises' THEN
            RAISE EXCEPTION 'the audit trigger refuses this row' USING ERRCODE = 'check_violation';
        ELSIF NEW.schedule = 'crawls' THEN
            PERFORM pg_sleep(30);
        END IF;
        RETURN NEW;
    END
    $$;
    CREATE TRIGGER booby_trap BEFORE INSERT ON reports.occurrence FOR EACH ROW EXECUTE FUNCTION public.booby_trap()"""


@pytest.fixture
def booby_trap(place):
    """An audit trigger that somebody put on our table, and that some rows cannot pass."""
    place.db.execute(BOOBY_TRAP)
    yield
    place.db.execute("DROP TRIGGER booby_trap ON reports.occurrence")


def test_row_that_raises_in_planning_gets_the_reason_as_its_problem_and_a_gap_when_mended(place, booby_trap):
    place.insert("schedule", name="raises", report="nothing", kind="interval", rule="1 second", misfire="run_all")
    assert "the audit trigger refuses this row" in place.problem("raises")
    assert "the audit trigger refuses this row" in place.listed("raises")
    assert "the audit trigger refuses this row" in place.installation.reportctl("schedule", "raises")
    place.db.execute("ALTER TABLE reports.occurrence DISABLE TRIGGER booby_trap")
    place.db.execute("UPDATE reports.schedule SET description = 'mended' WHERE name = 'raises'")
    place.wait_until(lambda: fired(place, "raises"), 5, "the mended schedule fires")
    assert place.db.execute("SELECT DISTINCT reason FROM reports.schedule_gap WHERE schedule = 'raises'").fetchall() == [
        ("problem_mended",)]


def test_row_that_planning_takes_too_long_over_is_set_aside_and_named(place, booby_trap):
    # Each try costs the others the statement's bound of one second, until it stands alone.
    place.late_s = 2 * LATE_S
    place.insert("schedule", name="crawls", report="nothing", kind="interval", rule="1 second", misfire="run_all")
    problem = place.wait_until(lambda: place.one("SELECT problem FROM reports.v_schedule WHERE name = 'crawls'"),
                               40, "the slow row is found")
    assert "it failed alone" in problem and "others were planned" in problem
    place.db.execute("DELETE FROM reports.schedule WHERE name = 'crawls'")


@pytest.mark.parametrize("rule, zone, text", [
    ("61 * * * *", "UTC", "61"),
    ("0 0 30 2 *", "UTC", "never"),
    ("0 6 * * 1-9", "UTC", "9"),
    ("0 6 * * *", "CEST", "zone"),
    ("0 6 * * *", "EST5EDT4", "zone"),
])
def test_rule_that_only_our_parser_can_judge_has_its_problem_within_a_second_or_two(place, rule, zone, text):
    name = place.name("rule")
    try:
        place.insert("schedule", name=name, report="nothing", kind="cron", rule=rule, time_zone=zone)
    except psycopg.Error as e:
        # Better still: told at once, with the way out.
        assert name in e.diag.message_primary and text in str(e).lower() and e.diag.message_hint
        return
    begun = time.monotonic()
    problem = place.problem(name)
    assert time.monotonic() - begun < 20, "by notification: the slow look comes each 30 s"
    assert text in problem.lower(), problem


def test_huge_values_are_refused_or_have_a_problem_and_fire_nothing(place):
    for kind, rule, more in [
            ("interval", "2000000000 hours", {}), ("interval", "100000 years", {}),
            ("interval", "1 second", {"anchor": "294276-12-31 00:00+00"}),
            ("interval", "1 second", {"anchor": "4000-01-01 00:00+00 BC"}),
            ("cron", "* * * * *", {"starts_at": "294276-12-30 00:00+00"}),
            ("cron", "* * * * *", {"ends_at": "-infinity"}), ("cron", "* * * * *", {"starts_at": "infinity"}),
            ("once", "9999-12-31T23:59", {}), ("once", "0001-01-01T00:00", {}),
            ("cron", "0 " + ",".join(str(n % 24) for n in range(230)) + " * * *", {"ends_at": "2001-01-01"}),
            ("cron", "* * * * *", {"misfire_max": 1000, "misfire_age": "3660 days", "starts_at": "1900-01-01",
                                   "ends_at": "1900-01-02"})]:
        name = place.name("huge")
        try:
            place.insert("schedule", name=name, report="nothing", kind=kind, rule=rule, **more)
        except psycopg.Error as e:
            assert e.diag.message_primary
            continue
        # Taken in, one way or another, and never planned wildly: nothing of what was due before it was written.
        place.wait_until(lambda: not place.one("SELECT count(*) FROM reports.schedule_change WHERE schedule = %s", name),
                         5, f"{kind} {rule} {more} is taken in")
        place.db.execute("DELETE FROM reports.schedule WHERE name = %s", (name,))
        since = place.one("SELECT extract(epoch FROM clock_timestamp() - min(effective_from))::integer FROM reports.schedule_version "
                          "WHERE schedule = %s", name)
        assert fired(place, name) <= 3 + since, (kind, rule, more)


def test_edits_in_the_middle_of_planning_lose_and_double_nothing(place):
    each_second(place, "edited")
    author = place.installation.connect()
    end = time.monotonic() + 3
    edits = 0
    while time.monotonic() < end:
        edits += 1
        author.execute("UPDATE reports.schedule SET priority = %s WHERE name = 'edited'", (edits % 1000,))
    place.wait_until(lambda: not place.one("SELECT count(*) FROM reports.schedule_change WHERE schedule = 'edited'"),
                     30, f"all {edits} edits are taken in")
    assert place.one("SELECT version FROM reports.schedule_progress WHERE schedule = 'edited'") == edits + 1
    nothing_was_lost(place, "edited")
    assert place.one("SELECT count(*) FROM reports.schedule_gap WHERE schedule = 'edited'") == 0
    place.db.execute("DELETE FROM reports.schedule WHERE name = 'edited'")


# What is refused where it is written --------------------------------------------------------------

def test_names_that_are_not_there_are_refused_with_the_way_out(place):
    insert = ("INSERT INTO reports.schedule (name, report, kind, rule, queue, scope, time_zone) "
              "VALUES ('refused', %s, 'cron', '@daily', %s, %s, %s)")
    assert place.refusal(insert, "nowhere", "default", "main", "UTC") == (
        'schedule "refused": report "nowhere" does not exist (Insert it into reports.report first, or correct the name.)')
    assert 'queue "nowhere" does not exist' in place.refusal(insert, "nothing", "nowhere", "main", "UTC")
    assert 'scope "nowhere" does not exist' in place.refusal(insert, "nothing", "default", "nowhere", "UTC")
    assert place.refusal(insert, "nothing", "default", "main", "Mars/Olympus") == (
        "schedule \"refused\": unknown time zone 'Mars/Olympus' (Write an IANA name such as Europe/Berlin or UTC.)")


def test_what_is_in_use_is_not_deleted_and_says_by_whom(place):
    assert place.refusal("DELETE FROM reports.scope WHERE name = 'main'") == (
        'scope "main" cannot be deleted or renamed: its fence must outlive every leader '
        "(Delete its schedules instead; an empty scope costs nothing.)")
    assert 'report "nothing" is in use by schedule ' in place.refusal("DELETE FROM reports.report WHERE name = 'nothing'")
    assert 'queue "default" is in use by schedule ' in place.refusal("DELETE FROM reports.queue WHERE name = 'default'")


def test_parameters_that_no_job_could_use_are_refused(place):
    insert = "INSERT INTO reports.report (name, kind, data_source, query, parameters) VALUES ('refused', 'sql', 'warehouse', 'SELECT 1', %s)"
    for builtin in ("business_date", "window_start", "window_end", "scheduled_for", "schedule", "attempt", "occurrence_key"):
        assert place.refusal(insert, json.dumps({builtin: "x"})) == (
            f'report "refused": parameter "{builtin}" is built in and cannot be set (Give it another name.)')
    assert "is null, a list or an object" in place.refusal(insert, '{"x": {"y": 1}}')
    assert "larger than 65536 bytes" in place.refusal(insert, json.dumps({"x": "y" * 65536}))
    assert "more than 1000" in place.refusal(insert, json.dumps({f"p{n}": n for n in range(1001)}))


def test_parameters_that_are_too_many_only_together_fail_their_job_with_the_bound(place):
    report = place.report(kind="sql", data_source="warehouse", query="SELECT 1",
                          parameters=json.dumps({f"a{n}": n for n in range(600)}))
    text, attempts = place.fails(place.schedule(report, parameters=json.dumps({f"b{n}": n for n in range(600)})))
    assert "parameters cannot be read (at most 1000)" in text and attempts == 1


# Queries ------------------------------------------------------------------------------------------

def query(place, text, **columns):
    return place.schedule(place.report(kind="sql", data_source=columns.pop("data_source", "warehouse"), query=text),
                          **columns)


def test_unknown_data_source_is_named_and_tried_elsewhere(place):
    text, attempts = place.fails(query(place, "SELECT 1", data_source="nowhere", max_attempts=2))
    assert 'data source "nowhere" is not in this worker\'s worker.conf' in text and attempts == 2


def test_query_that_cannot_work_fails_at_once_in_the_servers_words(place):
    text, attempts = place.fails(query(place, "SELECT 1 / 0"))
    assert "SQLSTATE 22012: division by zero" in text and attempts == 1


def test_query_on_a_table_that_is_loaded_anew_is_tried_again(place):
    with place.installation.stack.connect("warehouse") as warehouse:
        table = f"load_{place.installation.group[-12:]}"
        schedule = query(place, f"SELECT count(*) FROM {table}", max_attempts=20)
        place.fire(schedule)
        place.wait_until(lambda: place.job(schedule)[2], 10, "the first attempt has failed")
        assert f'relation "{table}" does not exist' in place.job(schedule)[2]
        warehouse.execute(f"CREATE TABLE {table} (x integer)")
        try:
            place.ends(schedule, "succeeded")
        finally:
            warehouse.execute(f"DROP TABLE {table}")


def test_query_that_never_ends_is_ended_as_timeout(place):
    text, attempts = place.fails(query(place, "SELECT pg_sleep(600)", timeout="1 second", max_attempts=1))
    assert "ran longer than the schedule's timeout of 1000 ms" in text and attempts == 1
    with place.installation.stack.connect("warehouse") as warehouse:
        place.wait_until(lambda: not one(warehouse, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' "
                                                    "AND query LIKE 'SELECT pg_sleep(600)%%' AND datname = 'warehouse'"),
                         5, "the server has stopped it too")


def test_query_that_writes_is_refused_by_the_data_source(place):
    for statement, words in [("CREATE TABLE made_by_a_report (x integer)", "cannot execute CREATE TABLE in a read-only transaction"),
                             ("DELETE FROM pg_largeobject", "cannot execute DELETE in a read-only transaction"),
                             ("COMMIT", "the query returns no rows"),
                             ("SELECT 1; SELECT 2", "cannot insert multiple commands"),
                             ("SELECT set_config('transaction_read_only', 'off', false)", "read-write mode must be set before any query")]:
        text, _ = place.fails(query(place, statement, max_attempts=1))
        assert words in text, text


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def test_query_with_millions_of_rows_streams_through_a_worker_that_does_not_grow(place):
    rows = int(os.environ.get("RS_SOAK_ROWS", 10_000_000))
    place.late_s = 3 * LATE_S  # the machine is busy with it
    small = query(place, "SELECT generate_series(1, 100000) AS n, 'some text' AS t")
    place.fire(small)
    place.ends(small, "succeeded", 30)
    before = resident_kib(place.worker.pid)
    big = query(place, f"SELECT generate_series(1, {rows}) AS n, 'some text' AS t")
    place.fire(big)
    seen = []

    def done():
        seen.append(resident_kib(place.worker.pid))
        return place.job(big)[0] == "succeeded"

    place.wait_until(done, 60 + rows / 50_000, "the rows have come through")
    assert place.one("SELECT row_count FROM reports.artifact a JOIN reports.job j ON j.id = a.job_id WHERE j.schedule = %s",
                     big) == rows
    assert max(seen) < before + 8 * 1024, (before, max(seen))


# Programs -----------------------------------------------------------------------------------------

def program(place, name, **columns):
    return place.schedule(place.report(kind="program", program=name, format="txt"), max_attempts=1, **columns)


@pytest.mark.parametrize("name, columns, state, words", [
    ("fails", {}, "failed", "the program ended with status 3; stderr: no such customer"),
    ("hangs", {"timeout": "1 second"}, "failed", "ran longer than the schedule's timeout of 1000 ms"),
    ("deaf", {"timeout": "1 second"}, "failed", "ran longer than the schedule's timeout of 1000 ms"),
    ("floods", {}, "failed", "the program wrote more than max_output_bytes (1048576); it was killed"),
    ("no-program", {}, "failed", "the program could not be started: Exec format error"),
    ("missing", {}, "failed", "the program could not be started: No such file or directory"),
    ("unlisted", {}, "failed", 'program "unlisted" is not in this worker\'s worker.conf'),
])
def test_program_that_goes_wrong_says_how_in_its_jobs_error(place, name, columns, state, words):
    text, attempts = place.fails(program(place, name, **columns), state=state)
    assert words in text and attempts == 1


def test_program_that_forks_away_leaves_nothing_running(place):
    schedule = program(place, "forks")
    place.fire(schedule)
    place.ends(schedule, "succeeded")
    pid = int((place.installation.directory / "forked").read_text())
    place.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 5, "the process that forked away is gone")


def test_program_gets_nested_parameters_as_they_are(place):
    report = place.report(kind="program", program="echoes", format="txt", parameters='{"x": {"y": [1, 2.50, null]}}')
    place.fire(place.schedule(report))
    place.ends(report, "succeeded")
    path = place.one("SELECT path FROM reports.artifact a JOIN reports.job j ON j.id = a.job_id WHERE j.schedule = %s", report)
    context = (place.installation.artifacts / path).read_text()
    assert json.loads(context)["parameters"] == {"x": {"y": [1, 2.5, None]}} and "2.50" in context


# Outcomes -----------------------------------------------------------------------------------------

def test_outcome_that_the_database_refuses_fails_alone_and_the_batch_goes_on(place):
    report = place.report(kind="program", program="echoes", format="txt")
    place.schedule(report, max_attempts=2)
    place.db.execute("""
        CREATE FUNCTION public.refuse_file() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (SELECT FROM reports.job WHERE id = NEW.job_id AND occurrence_key = 'bad') THEN
                RAISE EXCEPTION 'no file for this one' USING ERRCODE = 'check_violation';
            END IF;
            RETURN NEW;
        END
        $$;
        CREATE TRIGGER refuse_file BEFORE INSERT ON reports.artifact FOR EACH ROW EXECUTE FUNCTION public.refuse_file()""")
    try:
        for key in ("a", "bad", "b", "c"):
            place.fire(report, key)
        text = place.ends(report, "failed", key="bad")
        assert "the outcome was refused by the database" in text and "no file for this one" in text
        for key in ("a", "b", "c"):
            place.ends(report, "succeeded", key=key)
    finally:
        place.db.execute("DROP TRIGGER refuse_file ON reports.artifact")
    names = {p.name for p in place.installation.artifacts.rglob("*") if p.is_file() and report in str(p.parent)}
    assert len(names) == 3, "the refused file is removed"
