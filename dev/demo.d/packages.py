"""Debian's package index into the warehouse: real data that is on every Debian machine."""

import subprocess

import psycopg


def stanzas():
    """One dict a package; continuation lines of long fields are not needed."""
    index = subprocess.Popen(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, text=True,
                             encoding="utf-8", errors="replace")
    fields = {}
    for line in index.stdout:
        if line == "\n":
            if fields:
                yield fields
            fields = {}
        elif line[0] not in " \t":
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields
    if index.wait() != 0:
        raise RuntimeError("apt-cache dumpavail failed")


def rows():
    seen = set()
    for p in stanzas():
        key = (p.get("Package"), p.get("Version"), p.get("Architecture"))
        if None in key or key in seen:
            continue
        seen.add(key)
        yield (*key, p.get("Section", "none"), p.get("Priority"), p.get("Maintainer", ""),
               int(p.get("Installed-Size", 0)), int(p.get("Size", 0)), p.get("Homepage"),
               p.get("Description", ""))


def load(conninfo, schema):
    with psycopg.connect(conninfo) as db:
        db.execute(schema.read_text())
        count = 0
        with db.cursor() as cursor, cursor.copy("COPY package FROM STDIN") as copy:
            for row in rows():
                copy.write_row(row)
                count += 1
        if count < 1000:
            raise RuntimeError(f"only {count} packages in the index: run apt-get update first")
    return count
