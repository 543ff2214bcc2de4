#!/usr/bin/python3 -B
"""Run the integration, contract and pgTAP tests when the clock shows awkward instants: a test must not depend on when it runs.

Usage: instants.py BUILD [--at INSTANT]... [NAME...]      (BUILD: a build directory without sanitizers)
Environment: what `dev/stack env` prints. NAME: test_work, concurrency.sql, contract; all by default. INSTANT: 2030-12-31T23:59:52, UTC;
those of INSTANTS by default. PostgreSQL is a server of its own; its clock, the test programs' and psql's are the machine's plus an offset
(libfaketime), ZooKeeper, Kafka and programs with a client of Kafka keep the machine's. Each program begins at its instant. Prints what
failed, and exits with 1 then."""

import argparse
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "system"), str(ROOT)]

import servers  # noqa: E402

UTC = datetime.timezone.utc
INSTANTS = (
    "2027-01-05T23:59:55",  # a day ends while the test runs
    "2027-01-06T00:00:04",  # and has just begun: what fell due then is late and not missed
    "2027-01-07T10:59:56",  # the full hour
    "2026-12-31T23:59:56",  # the year
    "2028-02-28T23:59:56",  # the 29th of February
    "2027-02-28T23:59:56",  # none
    "2027-03-14T06:59:56",  # New York springs forward at 07:00 UTC
    "2027-03-28T00:59:56",  # Berlin at 01:00
    "2027-10-31T00:59:56",  # and back
    "2027-11-07T05:59:56",  # New York, back
    "2028-02-29T12:00:00",
    "2027-08-01T12:00:00",  # the first of a month, a Sunday
    "2027-05-31T12:00:00",  # the last of one, a Monday
)
# Whoever uses librdkafka: it waits until a time of the clock that libfaketime shows, by a function that libfaketime does not know.
MACHINE_CLOCK = {"test_relay", "test_relay_broker", "test_dispatch", "test_dispatch_faults", "test_handoff", "test_messages", "test_scope",
                 "test_scope_guards", "contract"}


def programs(build):
    """[(name, command)] of all there are."""
    found = [(p.name.removeprefix("integration_"), [str(p)]) for p in sorted((build / "tests").glob("integration_test_*"))]
    found.append(("contract", [str(build / "tests" / "contract_real")]))
    return found + [(p.name, [str(ROOT / "dev/test.d/pgtap"), str(build / "reportctl"), str(p.relative_to(ROOT))])
                    for p in sorted((ROOT / "tests" / "pgtap").glob("*.sql"))]


def run_at(instant, name, command, postgres, log):
    at = datetime.datetime.fromisoformat(instant).replace(tzinfo=UTC)
    postgres.step(round((at - datetime.datetime.now(UTC)).total_seconds()))
    environment = dict(os.environ, RS_PG_HOST="127.0.0.1", RS_PG_PORT=str(postgres.port),
                       RS_PG_SUPER=f"host=127.0.0.1 port={postgres.port} dbname=postgres user=postgres")
    if name not in MACHINE_CLOCK:
        environment.update(LD_PRELOAD=servers.FAKETIME, FAKETIME_TIMESTAMP_FILE=str(postgres.offset), FAKETIME_DONT_FAKE_MONOTONIC="1",
                           FAKETIME_NO_CACHE="1")
    with open(log, "w", encoding="utf-8") as out:
        try:
            return subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=300,
                                  check=False).returncode
        except subprocess.TimeoutExpired:
            return 124


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--at", action="append", default=[])
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    known = programs(options.build.resolve())
    unknown = set(options.names) - {name for name, _ in known}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(name for name, _ in known)}")
    logs = pathlib.Path(tempfile.mkdtemp(prefix="report-instants."))
    postgres, failed, count = servers.SteppablePostgres(), [], 0
    try:
        for name, command in known:
            for instant in (options.at or INSTANTS) if not options.names or name in options.names else ():
                log = logs / f"{name}.{instant.replace(':', '')}"
                status = run_at(instant, name, command, postgres, log)
                count += 1
                if status != 0:
                    failed.append(f"{name} at {instant}: status {status}, {log}")
                    print(failed[-1], flush=True)
    finally:
        postgres.remove()
    print(f"{count} runs, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
