"""`reportctl migrate` from outside, on databases of its own."""

import hashlib
import os
import subprocess
import uuid

import pytest

import harness

SQL = harness.ROOT / "sql"


class Database:
    """An empty database, and reportctl migrate on it."""

    def __init__(self, stack):
        self.stack = stack
        self.name = f"migrate_{uuid.uuid4().hex[:12]}"
        self.conninfo = stack.conninfo(self.name)

    def start(self, directory, *options, role="postgres"):
        return subprocess.Popen(
            [harness.build() / "reportctl", "--database", self.stack.conninfo(self.name, role),
             "migrate", "--dir", directory, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "LANG": "C"})

    def migrate(self, directory, *options, expect=0, role="postgres"):
        """(stdout, stderr) of a run that must end with the given code."""
        process = self.start(directory, *options, role=role)
        out, err = process.communicate(timeout=60)
        assert process.returncode == expect, out + err
        return out, err

    def rows(self, sql, *parameters):
        with self.stack.connect(self.name) as db:
            return db.execute(sql, parameters).fetchall()

    def ledger(self):
        return self.rows("SELECT number, name, checksum FROM reports.migration ORDER BY number")


@pytest.fixture
def database(stack):
    made = Database(stack)
    with stack.connect("postgres") as db:
        db.execute(f'CREATE DATABASE "{made.name}"')
    yield made
    with stack.connect("postgres") as db:
        db.execute(f'DROP DATABASE "{made.name}" WITH (FORCE)')


@pytest.fixture
def files(tmp_path):
    """Three small migrations."""
    (tmp_path / "0001_one.sql").write_text("CREATE TABLE reports.one (n integer);\n")
    (tmp_path / "0002_two.sql").write_text("CREATE TABLE reports.two (n integer);\n")
    (tmp_path / "0003_three.sql").write_text("CREATE TABLE reports.three (n integer);\n")
    return tmp_path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_empty_database_gets_every_file_and_its_checksum(database):
    out, _ = database.migrate(SQL)
    names = sorted(p for p in SQL.glob("[0-9]*.sql"))
    assert out == "".join(f"{p.stem} applied\n" for p in names)
    assert database.ledger() == [(i + 1, p.stem, sha256(p)) for i, p in enumerate(names)]
    assert database.rows("SELECT scope FROM reports.fence") == [("main",)]


def test_a_second_run_finds_nothing_to_do(database, files):
    database.migrate(files)
    before = database.ledger()
    assert database.migrate(files)[0] == "nothing to do: 3 migrations are applied\n"
    assert database.ledger() == before


def test_only_new_files_are_applied(database, files):
    database.migrate(files)
    (files / "0004_four.sql").write_text("CREATE TABLE reports.four (n integer);\n")
    assert database.migrate(files)[0] == "0004_four applied\n"


def test_runs_at_once_apply_each_file_once(database):
    runs = [database.start(SQL) for _ in range(4)]
    outputs = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0] * 4, outputs
    count = len(list(SQL.glob("[0-9]*.sql")))
    idle = f"nothing to do: {count} migrations are applied\n"
    assert sorted(out == idle for out, _ in outputs) == [False, True, True, True], outputs
    assert len(database.ledger()) == count


def test_a_run_waits_for_another_one_but_not_for_ever(database, files):
    with database.stack.connect(database.name) as db:
        db.execute("SELECT pg_advisory_lock(7235403218823168)")
        out, err = database.migrate(files, "--timeout", "1", expect=1)
        assert out == ""
        assert "another reportctl migrate has been running for 1 s" in err
    assert database.migrate(files)[0].count("applied") == 3


def test_a_changed_file_is_refused_by_name_and_nothing_is_done(database, files):
    database.migrate(files)
    (files / "0002_two.sql").write_text("CREATE TABLE reports.two (n bigint);\n")
    (files / "0004_four.sql").write_text("CREATE TABLE reports.four (n integer);\n")
    _, err = database.migrate(files, expect=1)
    assert err.startswith("reportctl: 0002_two.sql was changed after it was applied")
    assert err.count("\n") == 1
    assert len(database.ledger()) == 3


def test_a_database_made_by_a_newer_version_is_refused_by_name(database, files):
    database.migrate(files)
    (files / "0003_three.sql").unlink()
    _, err = database.migrate(files, expect=1)
    assert "the database has migration 0003_three, which this version does not know" in err


def test_a_missing_number_is_refused_before_anything_is_applied(database, files):
    (files / "0002_two.sql").unlink()
    _, err = database.migrate(files, expect=2)
    assert "number 0002 is missing before 0003_three.sql" in err
    assert database.rows("SELECT to_regclass('reports.migration')") == [(None,)]


def test_a_failing_statement_is_named_by_file_and_line_and_rolled_back(database, files):
    # The server counts characters, not bytes: the umlauts must not move the line.
    (files / "0002_two.sql").write_text(
        "CREATE TABLE reports.two (n integer);\n-- " + "äöü" * 40 + "\nSELECT 1;\n"
        "INSERT INTO reports.two\n  SELECT nonsense;\nSELECT 2;\n", encoding="utf-8")
    out, err = database.migrate(files, expect=1)
    assert out == "0001_one applied\n"
    assert err == (f'reportctl: {files}/0002_two.sql:5: column "nonsense" does not exist '
                   "(rolled back)\n")
    assert [row[1] for row in database.ledger()] == ["0001_one"]
    assert database.rows("SELECT to_regclass('reports.two')") == [(None,)]
    (files / "0002_two.sql").write_text("CREATE TABLE reports.two (n integer);\n")
    assert database.migrate(files)[0] == "0002_two applied\n0003_three applied\n"


def test_an_error_without_a_position_names_the_file(database, files):
    (files / "0001_one.sql").write_text(
        "DO $$ BEGIN RAISE EXCEPTION 'not like this' USING HINT = 'Like that.'; END $$;\n")
    _, err = database.migrate(files, expect=1)
    assert err == f"reportctl: {files}/0001_one.sql: not like this. Like that. (rolled back)\n"


def test_a_dry_run_lists_and_changes_nothing(database, files):
    out, _ = database.migrate(files, "--dry-run")
    assert out == ("0001_one would be applied\n0002_two would be applied\n"
                   "0003_three would be applied\n")
    assert database.rows("SELECT to_regnamespace('reports')") == [(None,)]
    database.migrate(files)
    (files / "0004_four.sql").write_text("SELECT 1;\n")
    out, _ = database.migrate(files, "--dry-run")
    assert out.endswith("0003_three is applied\n0004_four would be applied\n")
    assert len(database.ledger()) == 3


def test_nothing_to_do_needs_no_more_than_reading_the_ledger(database):
    database.migrate(SQL)
    out, err = database.migrate(SQL, role="report_worker")
    assert out.startswith("nothing to do: ")
    assert err == ""


def test_a_role_that_may_not_create_a_schema_is_told_in_one_line(database, files, stack):
    role = f"nobody_{uuid.uuid4().hex[:8]}"
    with stack.connect("postgres") as db:
        db.execute(f'CREATE ROLE "{role}" LOGIN')
    try:
        _, err = database.migrate(files, role=role, expect=1)
        assert "permission denied for database" in err
        assert "migrate needs a superuser, or a role that may create roles and schemas" in err
        assert err.count("\n") == 1
    finally:
        with stack.connect("postgres") as db:
            db.execute(f'DROP ROLE "{role}"')
