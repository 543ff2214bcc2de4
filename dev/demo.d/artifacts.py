"""What the demo compares with the artifacts of reports.artifact: their files, hashed apart from the worker."""

import hashlib

SHOWN = 5


def load_artifacts(db, root):
    """The rows first, then the files they name: work goes on meanwhile, and a file is there before its row is."""
    db.execute("CREATE TEMP TABLE artifact_then AS SELECT path, size_bytes, sha256 FROM reports.artifact")
    db.execute("CREATE TEMP TABLE file (path text PRIMARY KEY, size_bytes bigint, sha256 bytea)")
    paths = [path for path, in db.execute("SELECT path FROM artifact_then").fetchall()]
    with db.cursor() as cursor, cursor.copy("COPY file FROM STDIN") as copy:
        for path in paths:
            if (root / path).is_file():
                content = (root / path).read_bytes()
                copy.write_row((path, len(content), hashlib.sha256(content).digest()))


WRONG = """SELECT a.path, CASE WHEN f.path IS NULL THEN 'is missing'
                               WHEN f.size_bytes <> a.size_bytes THEN format('has %%s bytes, not %%s', f.size_bytes, a.size_bytes)
                               ELSE 'has another hash' END
             FROM artifact_then a LEFT JOIN file f ON f.path = a.path
            WHERE f.path IS NULL OR f.size_bytes <> a.size_bytes OR f.sha256 <> a.sha256
            ORDER BY a.path LIMIT %s"""


def wrong_files(db):
    """(path, what is wrong with it) of the first few that the proof blames."""
    return db.execute(WRONG, (SHOWN,)).fetchall()
