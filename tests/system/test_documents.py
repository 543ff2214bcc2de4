"""What the documents say works: their SQL runs or is refused as they show, their commands exist and print what they
show, their links lead somewhere, and what they name is in the code, as what the code has is in them."""

import re
import shlex
import subprocess

import psycopg
import pytest

import harness
from ctl import Ctl

ROOT = harness.ROOT
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.md")])
MANUALS = sorted(ROOT.glob("docs/man/*.[0-9]"))
# Pages whose SQL is an author's, in the order in which a reader meets it, and those whose SQL is an owner's.
GUIDES = [ROOT / "README.md", ROOT / "docs" / "schedules.md", ROOT / "docs" / "calendars.md"]
OWNERS = [ROOT / "docs" / "operations.md", ROOT / "docs" / "administration.md"]
# The first line of a block that does not simply run; what people then read stands behind it as comments.
REFUSED = "-- refused"
PROBLEM = "-- becomes a problem"


def page(name):
    return ROOT / "docs" / f"{name}.md"


def text_of(path):
    return path.read_text(encoding="utf-8")


def blocks(path, *languages):
    """(line, text) of each fenced block of these languages."""
    found, start, lines = [], None, []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if start is None and line.strip() in [f"```{language}" for language in languages]:
            start, lines = number + 1, []
        elif start is not None and line.strip() == "```":
            found.append((start, "\n".join(lines)))
            start = None
        elif start is not None:
            lines.append(line)
    return found


def prose(path):
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", text_of(path), flags=re.M | re.S)


def code_in(path):
    """What stands in backticks in the prose, one line each."""
    return [" ".join(c.split()) for c in re.findall(r"`([^`]+)`", prose(path))]


def section(path, title):
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", prose(path), flags=re.M | re.S)
    assert found, f"{name_of(path)}: there is no section {title}"
    return found.group(1)


def first_cells(text):
    """The names in the first column of the tables: separated by commas, with or without backticks."""
    rows = re.findall(r"^\| ([^|]*) \|", text, flags=re.M)
    return [n for row in rows[1:] for n in re.split(r",\s*", row.replace("`", "").strip()) if not re.fullmatch(r"-*:?", n)]


def anchors(path):
    """As GitHub makes them of headings."""
    found = set()
    for title in re.findall(r"^#+ +(.*)$", prose(path), flags=re.M):
        text = re.sub(r"[`*]", "", title.strip()).lower()
        found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text_of(path)))


def name_of(path):
    return str(path.relative_to(ROOT))


def reportctl(*words):
    return subprocess.run([harness.build() / "reportctl", *words], text=True, check=False, timeout=30,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL).stdout


# Of a schedule that stands in the guide; what else is shown needs no server.
FORETELLS = re.compile(r"reportctl next [a-z]")


def shown_commands(path):
    return [(line, command, shown) for line, block in blocks(path, "console")
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n?)*)", block, flags=re.M)]


# The guide's SQL ----------------------------------------------------------------------------------


def check_refused(author, where, text):
    shown = "\n".join(re.findall(r"^-- ((?:ERROR|HINT):  .*)$", text, flags=re.M))
    assert shown.startswith("ERROR:"), f"{where}: what people read is not shown"
    try:
        author.execute(text)
    except psycopg.Error as e:
        hint = f"\nHINT:  {e.diag.message_hint}" if e.diag.message_hint else ""
        assert f"ERROR:  {e.diag.message_primary}{hint}" == shown, where
    else:
        raise AssertionError(f"{where}: it is not refused")


def test_sql_of_the_guides_runs_or_is_refused_as_shown_and_the_leader_plans_or_names_the_problem_as_shown(installation):
    author = installation.connect()
    author.execute("SET ROLE report_author")
    expected, counts = {}, {"ran": 0, "refused": 0}
    for path in GUIDES:
        for line, text in blocks(path, "sql"):
            where = f"{name_of(path)}:{line}"
            if text.startswith(REFUSED):
                check_refused(author, where, text)
                counts["refused"] += 1
                continue
            try:
                author.execute(text)
            except psycopg.Error as e:
                raise AssertionError(f"{where}: {e}") from e
            counts["ran"] += 1
            if text.startswith(PROBLEM):
                schedule = re.search(r"VALUES \('([^']+)'", text).group(1)
                expected[schedule] = re.search(r"^-- PROBLEM:  (.*)$", text, flags=re.M).group(1)
    assert counts["ran"] >= 10 and counts["refused"] >= 6 and expected, "the guides lost their examples"
    db = installation.connect()
    installation.start_scheduler()
    installation.wait_until(
        lambda: db.execute("SELECT count(*) = 0 FROM reports.schedule_change").fetchone()[0],
        30, "the leader takes all examples in")
    problems = db.execute("SELECT schedule, problem FROM reports.schedule_progress WHERE problem IS NOT NULL").fetchall()
    assert dict(problems) == expected
    ran = 0
    for path in GUIDES:
        for line, command, shown in shown_commands(path):
            if FORETELLS.match(command):
                assert Ctl(installation).ok(*shlex.split(command)[1:]).strip() == shown.strip(), f"{name_of(path)}:{line}: {command}"
                ran += 1
    assert ran >= 3, "the guides lost what is foretold of their examples"


def cells(row):
    return [c.strip() for c in row.strip("|").split(" | ")]


def rows_of(text, last_title):
    """Cells of the rows of all tables whose last column has this title."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", text + "\n", flags=re.M):
        lines = table.strip().splitlines()
        if cells(lines[0])[-1] == last_title:
            found += [cells(line) for line in lines[2:]]
    return found


def rule_kind(rule):
    if rule.startswith("FREQ="):
        return "rrule"
    if re.match(r"\d{4}-\d\d-\d\dT", rule):
        return "once"
    return "interval" if re.fullmatch(r"\d+ [a-z]+", rule) else "cron"


def test_what_people_say_fires_when_the_guide_says(installation):
    db = installation.connect()
    db.execute("INSERT INTO reports.report (name, kind) VALUES ('sales', 'noop')")
    db.execute("INSERT INTO reports.calendar (name) VALUES ('office')")
    holidays, = (text for _, text in blocks(page("schedules"), "sql") if "SELECT 'office', unnest(" in text)
    db.execute(holidays)
    text = text_of(page("schedules"))
    rows = rows_of(text[text.index("## What people say, and what to write"):], "first")
    # One schedule for each firing that a row shows, which begins just after the one before.
    wanted = {}
    db.execute("BEGIN")
    for said, row, first in rows:
        rule, *others = re.findall(r"`([^`]*)`", row)
        columns = {"rule": rule, "kind": rule_kind(rule), "starts_at": "2030-01-01 00:00 Europe/Berlin"}
        columns |= {k: v for k, v in (re.fullmatch(r"(\w+) = '?(.*?)'?", o).groups() for o in others)}
        for fires in first.split(", "):
            name = f"said-{len(wanted)}"
            db.execute(f"INSERT INTO reports.schedule (name, report, time_zone, {', '.join(columns)})"
                       f" VALUES (%s, 'sales', 'Europe/Berlin', {', '.join(['%s'] * len(columns))})", [name, *columns.values()])
            wanted[name] = (said, fires)
            columns["starts_at"], = db.execute("SELECT %s::timestamp AT TIME ZONE 'Europe/Berlin' + interval '1 second'", [fires]).fetchone()
    db.execute("COMMIT")
    installation.start_scheduler()
    planned = ("SELECT schedule, regexp_replace(to_char(next_fire_at AT TIME ZONE 'Europe/Berlin', 'YYYY-MM-DD HH24:MI:SS'), ':00$', '')"
               " FROM reports.schedule_progress WHERE next_fire_at IS NOT NULL OR problem IS NOT NULL")
    installation.wait_until(lambda: len(db.execute(planned).fetchall()) == len(wanted), 60, "the leader has taken all of them in")
    found = {name: (wanted[name][0], at) for name, at in db.execute(planned).fetchall()}
    assert found == wanted
    assert len(rows) >= 60


def test_the_two_nights_of_the_guide_are_as_it_says():
    nights = {"2030-03-31": "2030-03-30T22:59:59Z", "2030-10-27": "2030-10-26T21:59:59Z"}
    rows = rows_of(section(page("schedules"), "The two nights, dated"), "2030-10-27")
    for row, *shown in rows:
        rule, *others = re.findall(r"`([^`]*)`", row)
        options = [w for o in others for w in re.sub(r"^(\w+) = '(\w+)'$", lambda m: f"--{m[1].replace('_', '-')} {m[2]}", o).split()]
        for (date, after), cell in zip(nights.items(), shown):
            fires = reportctl("next", "--cron", rule, "--time-zone", "Europe/Berlin", "--after", after, "--count", "12", *options).split()
            assert ", ".join(f[11:16] + f[19:] for f in fires if f.startswith(date)) == cell.replace("none", ""), row
    assert len(rows) >= 8


def test_what_people_ask_of_a_schedule_is_done_as_the_guide_writes_it(installation):
    ctl = Ctl(installation)
    ctl.db.execute("INSERT INTO reports.report (name, kind) VALUES ('sales', 'noop')")
    ctl.db.execute("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) VALUES ('sales-daily', 'sales', 'cron', '30 6 * * *', 'Europe/Berlin')")
    author = installation.connect()
    author.execute("SET ROLE report_author")
    installation.start_scheduler()
    taken_in = "SELECT NOT EXISTS (SELECT FROM reports.schedule_change WHERE made_at <= clock_timestamp()) AND EXISTS (SELECT FROM reports.schedule_progress)"
    rows = rows_of(section(page("schedules"), "All else"), "write")
    for said, write in rows:
        installation.wait_until(lambda: ctl.db.execute(taken_in).fetchone()[0], 30, f"what comes before \"{said}\" is taken in")
        what, = re.findall(r"^`(.*)`$", write)
        if what.startswith("reportctl "):
            ctl.ok(*shlex.split(what)[1:])
        else:
            assert author.execute(what).rowcount == 1, said
    made = ctl.db.execute("SELECT count(*) FROM reports.occurrence WHERE occurrence_key LIKE '2026-01-%'").fetchone()[0]
    assert len(rows) >= 30 and made == 31


def test_sql_for_owners_runs_as_a_member_of_report_owner(installation):
    db = installation.connect()
    db.execute("SET ROLE report_owner")
    ran = 0
    for path in OWNERS:
        for line, text in blocks(path, "sql"):
            try:
                db.execute(text)
            except psycopg.Error as e:
                raise AssertionError(f"{name_of(path)}:{line}: {e}") from e
            ran += 1
    assert ran >= 3


# Restoring, by the steps of docs/administration.md ------------------------------------------------


def succeeded(db, above=""):
    return {k for k, in db.execute("SELECT j.occurrence_key FROM reports.job j WHERE j.state = 'succeeded' AND j.occurrence_key > %s",
                                   (above,)).fetchall()}


def test_database_restored_by_the_steps_of_the_page_runs_what_it_forgot_but_not_what_was_cancelled(installation):
    db = installation.connect()
    db.execute("INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')")
    # run_all: on a slow machine the restore may take longer than misfire_grace.
    db.execute("INSERT INTO reports.schedule (name, report, kind, rule, misfire, misfire_max)"
               " VALUES ('tick', 'nothing', 'interval', '1 second', 'run_all', 1000)")
    scheduler, worker = installation.start_scheduler(), installation.start_worker()
    installation.wait_until(lambda: len(succeeded(db)) >= 2, 30, "the first firings are done")
    dump = installation.directory / "dump.sql"
    conninfo = installation.stack.conninfo(installation.database)
    subprocess.run(["pg_dump", "--create", "--format=plain", "--file", dump, conninfo], check=True, timeout=60)
    known = max(k for k, in db.execute("SELECT occurrence_key FROM reports.occurrence").fetchall())
    installation.wait_until(lambda: len(succeeded(db, known)) >= 3, 30, "firings after the backup are done")
    worker.stop()
    scheduler.stop()
    forgotten = succeeded(db, known)
    with installation.stack.connect("postgres") as server:
        server.execute(f'DROP DATABASE "{installation.database}" WITH (FORCE)')
    subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", dump, installation.stack.conninfo("postgres")],
                   check=True, timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    db = installation.connect()
    assert not succeeded(db, known)

    scheduler.start()
    hold, = installation.wait_until(lambda: db.execute("SELECT id FROM reports.hold WHERE cause = 'database_rewound'").fetchone(), 30,
                                    "it is held by itself")
    installation.reportctl("queue", "hold", "default", "--reason", "restored")
    installation.reportctl("release-hold", hold, "--yes")
    installation.wait_until(lambda: forgotten <= {k for k, in db.execute("SELECT occurrence_key FROM reports.job WHERE state = 'queued'")
                                                  .fetchall()}, 30, "what was forgotten is planned again")
    unwanted = max(forgotten)
    installation.reportctl("cancel", f"tick:{unwanted}", "--reason", "ran before the restore")
    worker.start()
    installation.wait_until(lambda: db.execute("SELECT count(*) FROM reports.worker WHERE state = 'alive'").fetchone()[0], 20,
                            "the worker has registered")
    assert not succeeded(db, known)
    installation.reportctl("queue", "resume", "default")
    installation.wait_until(lambda: forgotten - succeeded(db, known) == {unwanted}, 30, "all but the cancelled one run")
    assert db.execute("SELECT j.state::text, j.attempt FROM reports.job j WHERE j.occurrence_key = %s",
                      (unwanted,)).fetchone() == ("cancelled", 0)


# What is shown to type ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_of_a_page_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        other = (path.parent / file).resolve() if file else path
        assert other.exists(), f"{name_of(path)}: {target} does not exist"
        if anchor and other.suffix == ".md":
            assert anchor in anchors(other), f"{name_of(path)}: {target}: no such heading"


def test_every_page_can_be_found_from_the_readme():
    linked = set(re.findall(r"\]\(([^)#\s]+)", prose(ROOT / "README.md")))
    assert {name_of(path) for path in ROOT.glob("docs/*.md")} - linked == set()


def test_commands_that_pages_show_exist():
    text = reportctl("help", "--markdown")
    known = set(re.findall(r"^### ([a-z -]+)$", text, flags=re.M)) | {"help"}
    later = set(re.findall(r"^- `([a-z]+)`", text[text.index("## Not available yet"):], flags=re.M))
    assert len(known) > 25 and "catchup" in later
    first_words = {words.split()[0] for words in known}
    for path in DOCUMENTS:
        shown = [(f"line {line}", w) for line, block in blocks(path, "", "sh", "bash", "console")
                 for w in re.findall(r"^\s*(?:\$ )?reportctl ([a-z][a-z-]*(?: [a-z][a-z-]*)?)", block, flags=re.M)]
        prose_words = [("prose", w) for c in code_in(path)
                       for w in re.findall(r"^reportctl ([a-z][a-z-]*(?: [a-z][a-z-]*)?)", c)]
        for where, words in shown + prose_words:
            first = words.split()[0]
            fits = words in known or first in known or (first in first_words and words == first)
            assert fits or (where == "prose" and first in later), f"{name_of(path)}: {where}: there is no command {words}"


def test_commands_print_what_pages_show():
    ran = 0
    for path in DOCUMENTS:
        for line, command, shown in shown_commands(path):
            words = shlex.split(command)
            assert words[0] == "reportctl", f"{name_of(path)}:{line}"
            if not FORETELLS.match(command):
                assert reportctl(*words[1:]).strip() == shown.strip(), f"{name_of(path)}:{line}: {command}"
                ran += 1
    assert ran >= 6


@pytest.mark.parametrize("path", MANUALS, ids=name_of)
def test_manual_pages_are_formatted_without_a_warning(path):
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", path], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    there = {p.name for p in MANUALS}
    for name, number in re.findall(r"\\fB([\w.\\-]+)\\fR\((\d)\)", text_of(path)):
        assert f"{name.replace(chr(92), '')}.{number}" in there, f"{name}({number}) is not a page of ours"


# What is named ------------------------------------------------------------------------------------


def checked_words(db, table, column):
    """The words that the CHECK on a column allows."""
    definition, = db.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass AND conname = %s",
        (f"reports.{table}", f"{table}_{column}_check")).fetchone()
    return set(re.findall(r"'(\w+)'::text", definition.partition(" OR reports.refuse")[0]))


def test_states_and_reasons_of_a_scope_are_those_of_the_lifecycle():
    table = reportctl("lifecycle", "-o", "markdown")
    states, edges = (re.findall(r"^\| (.*) \|$", part, flags=re.M)[2:] for part in table.split("## Edges"))
    states = {row.split(" | ")[0] for row in states}
    reasons = {row.split(" | ")[5].strip() for row in edges} - {""}
    assert "ACTIVE" in states and "fenced" in reasons
    operations = page("operations")
    assert set(first_cells(section(operations, "Lifecycle states of a scope on a replica"))) == states
    assert set(first_cells(section(operations, "Reasons a leader gives up"))) == reasons


def test_reasons_of_gaps_are_those_of_the_planner_and_of_planning_in_sql():
    planner = text_of(ROOT / "scheduler" / "planner" / "planner.c")
    body = planner[planner.index("const char *gap_reason_name("):]
    reasons = set(re.findall(r'return "(\w+)";', body[:body.index("\n}")])) - {"unknown"}
    planning = text_of(ROOT / "sql" / "0005_planning.sql")
    for insert in re.findall(r"suppressed AS MATERIALIZED \(.*?\n    \)|INSERT INTO reports\.schedule_gap.*?;", planning, flags=re.S):
        reasons |= set(re.findall(r"'([a-z]+_[a-z_]+)'", insert))
    assert {"paused", "overlap_forbid", "key_taken"} < reasons
    text = section(page("schedules"), "When nobody was there in time")
    assert set(first_cells(text[text.index("| reason |"):])) == reasons


def test_words_of_the_tables_are_in_the_pages(installation):
    db = installation.connect()
    states = {s for s, in db.execute("SELECT unnest(enum_range(NULL::reports.job_state))::text").fetchall()}
    text = section(page("operations"), "States of a job")
    assert set(first_cells(text)) == states
    emphasised = set(re.findall(r"\*([\w]+)\*", text))
    assert checked_words(db, "job_attempt", "outcome") <= emphasised
    assert checked_words(db, "occurrence", "cause") <= emphasised
    assert checked_words(db, "worker", "state") <= emphasised
    schedules = page("schedules")
    assert set(first_cells(section(schedules, "Kinds of reports"))) == checked_words(db, "report", "kind")
    assert set(first_cells(section(schedules, "Kinds of schedules"))) == checked_words(db, "schedule", "kind")
    policies = first_cells(section(schedules, "When the one before is still open"))
    assert {p.split()[0] for p in policies} == checked_words(db, "schedule", "overlap")
    text = section(schedules, "When nobody was there in time")
    assert set(first_cells(text[:text.index("| reason |")])) == checked_words(db, "schedule", "misfire")


def test_guide_names_every_column_of_a_schedule(installation):
    columns = installation.connect().execute("SELECT column_name FROM information_schema.columns"
                                             " WHERE table_schema = 'reports' AND table_name = 'schedule'").fetchall()
    assert set(first_cells(section(page("schedules"), "The columns of a schedule"))) == {c for c, in columns}


def test_tables_and_columns_that_pages_name_exist_and_every_table_has_its_writers(installation):
    db = installation.connect()
    columns = {}
    for table, column in db.execute("SELECT table_name, column_name FROM information_schema.columns "
                                    "WHERE table_schema = 'reports'").fetchall():
        columns.setdefault(table, set()).add(column)
    functions = {f for f, in db.execute("SELECT proname FROM pg_proc WHERE pronamespace = 'reports'::regnamespace").fetchall()}
    relations = {t for t, in db.execute("SELECT relname FROM pg_class WHERE relkind = 'r' "
                                        "AND relnamespace = 'reports'::regnamespace").fetchall()}
    listed = set()
    for row in re.findall(r"^\| (.*?) \|", section(page("architecture"), "Tables"), flags=re.M):
        listed |= set(re.findall(r"`(\w+)`", row.split("the claim columns of")[0]))
    assert listed == relations
    for path in DOCUMENTS:
        for code in code_in(path):
            named = re.fullmatch(r"(?:reports\.)?(\w+)\.(\w+)(?:\(.*\))?", code)
            if named and named.group(1) in columns and named.group(2) not in ("conf", "md", "c", "h", "py", "sql"):
                assert named.group(2) in columns[named.group(1)], f"{name_of(path)}: {code} does not exist"
            alone = re.fullmatch(r"reports\.(\w+)", code)
            if alone:
                assert alone.group(1) in columns.keys() | functions, f"{name_of(path)}: {code} does not exist"


def test_alerts_metrics_and_settings_that_pages_name_exist():
    rules = text_of(ROOT / "conf" / "prometheus" / "report-scheduler.rules.yml")
    alerts = dict(re.findall(r"- alert: (\w+)\n.*?severity: (\w+)", rules, flags=re.S))
    sections = re.findall(r"^### Alert: (\w+)$", prose(page("operations")), flags=re.M)
    paging = [name for name in sections if alerts[name] == "page"]
    assert "The first nine page somebody" in section(page("operations"), "Alerts") and sections[:9] == paging
    metrics = set(re.findall(r"^\| `(\w+)` \|", text_of(page("metrics")), flags=re.M)) | {"report_metrics_dropped_total"}
    settings = set(re.findall(r"^#+ `(?:\w+\[\]\.)?(\w+)`$", text_of(page("configuration")), flags=re.M))
    assert len(metrics) > 60 and len(settings) > 40
    for path in DOCUMENTS:
        for code in code_in(path) + re.findall(r"\bReport[A-Z]\w+", prose(path)):
            if re.fullmatch(r"Reports?[A-Z]\w+", code):
                assert code in alerts, f"{name_of(path)}: there is no alert {code}"
            if re.fullmatch(r"report_(scheduler|worker|database|kafka)_\w+", code):
                assert code in metrics, f"{name_of(path)}: there is no metric {code}"
            if re.fullmatch(r"\w+_(ms|file|files|url)", code):
                assert code in settings, f"{name_of(path)}: there is no setting {code}"


def test_tests_and_files_that_pages_name_exist():
    names = set()
    for path in [*ROOT.glob("tests/**/*.c"), *ROOT.glob("tests/**/*.py")]:
        names |= set(re.findall(r"^(?:static void|def) (test_\w+)\(", text_of(path), flags=re.M))
    assert len(names) > 300
    for path in DOCUMENTS:
        for code in code_in(path):
            if re.fullmatch(r"test_[a-z0-9_]+", code):
                assert code in names, f"{name_of(path)}: there is no test {code}"
            if re.fullmatch(r"(common|scheduler|worker|admin|sql|tests|conf|docs|bench|dev|systemd)/[\w./-]+\w", code) and "NNNN" not in code:
                assert (ROOT / code).exists() or "X" in code, f"{name_of(path)}: there is no file {code}"


def test_every_invariant_names_the_tests_that_show_it():
    guarantees = page("guarantees")
    invariants = {f"I{n}" for n in range(1, 13)}
    assert invariants <= set(re.findall(r"^\| (I\d+) \|", text_of(guarantees)[:text_of(guarantees).index("## Where")], flags=re.M))
    rows = dict(re.findall(r"^\| (I\d+) \| (.*) \|$", section(guarantees, "Where it is shown"), flags=re.M))
    assert set(rows) == invariants
    for invariant, row in rows.items():
        assert re.search(r"`test_\w+`", row), f"{invariant} names no test"
