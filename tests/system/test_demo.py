"""The proof of dev/demo: it judges what there was when it began, and says what it blames."""

import hashlib
import subprocess
import sys
import uuid

import harness

DEMO = harness.ROOT / "dev" / "demo.d"
sys.path.append(str(DEMO))
import artifacts  # noqa: E402


class Store:
    """An artifact directory; each look into it finds that another report was finished meanwhile."""

    def __init__(self, db, root):
        self.db = db
        self.root = root

    def finish(self, name):
        """As a worker does: the file, then its row."""
        (self.root / name).write_bytes(name.encode())
        self.db.execute("""INSERT INTO reports.artifact (job_id, attempt, store, path, media_type, size_bytes, sha256)
                           VALUES (%s, 1, 'local', %s, 'text/csv', %s, %s)""",
                        (uuid.uuid4(), name, len(name), hashlib.sha256(name.encode()).digest()))

    def __truediv__(self, path):
        if not (self.root / f"{path}.later").exists():
            self.finish(f"{path}.later")
        return self.root / path


def test_proof_blames_no_report_that_is_finished_meanwhile_and_names_the_files_that_are_wrong(installation, tmp_path):
    db = installation.connect()
    workers = installation.connect()
    workers.execute("SET session_replication_role = replica")  # an artifact without a job
    store = Store(workers, tmp_path)
    for name in ("sound", "gone", "longer", "other"):
        store.finish(name)
    (tmp_path / "gone").unlink()
    (tmp_path / "longer").write_bytes(b"longer!")
    (tmp_path / "other").write_bytes(b"ether")
    db.execute("CREATE TEMP TABLE proof_window AS SELECT clock_timestamp() AS until")
    db.execute("CREATE TEMP TABLE expected (schedule text, fire_at timestamptz)")
    artifacts.load_artifacts(db, store)
    assert db.execute("SELECT count(*) FROM reports.artifact").fetchone()[0] > 4, "reports were finished meanwhile"
    counts = {what: n for what, n, _ in db.execute((DEMO / "proof.sql").read_text()).fetchall()}
    assert counts["artifacts whose file is missing or has another size or hash"] == 3
    assert artifacts.wrong_files(db) == [("gone", "is missing"), ("longer", "has 7 bytes, not 6"), ("other", "has another hash")]


def test_help_says_how_two_people_use_one_machine():
    told = subprocess.run([harness.ROOT / "dev" / "demo", "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=30, check=True).stdout
    assert "RS_STACK=NAME" in told
