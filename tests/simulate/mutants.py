#!/usr/bin/python3
"""Break each rule on purpose and see that a test notices.

Usage: mutants.py simulate PROGRAM [--seeds N] [NAME...]
       mutants.py sql REPORTCTL [NAME...]     (environment: what `dev/stack env` prints)
       mutants.py list

simulate: PROGRAM is tests/simulate of a build with -DRS_MUTANTS=ON. Each mutant below runs with seeds
1, 2, 3 ... until the checker finds a violation, then with those of tests/simulate/seeds; none within N (1000)
and them is a hole in the checker. What counts is a seed that goes well without the mutant.

sql: each mutant is one or a few replacements of text in a copy of sql/, migrated into a fresh database;
the named files of tests/pgtap must fail there.

The last thing printed is a table; the exit status is 0 only if every mutant was caught.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLEAN_SEEDS = 20

# Name in MUTANT("...") and what it breaks: rules of the product's C code, and rules that live in SQL, which stand
# in the simulation's database, one function for each of sql/.
IN_CODE = {
    "lease_from_reply": "the lease is counted from the answer of the beat, not from its sending",
    "lease_of_any_session": "a scope decides by the lease of a session that its candidate node is not of",
    "enrolls_in_any_session": "a scope is enrolled in a session that it has not heard of",
    "resumes_after_lease": "a session confirmed after the lease had run out goes on leading",
    "resume_forgets_lead": "a replica that loses its connection twice does not know any more that it led",
    "leads_on_when_cut": "a lost connection does not suspend the leader",
    "decides_without_lease": "nobody looks at the lease before a protected call",
    "order_by_name": "candidates are ordered by name instead of czxid",
    "first_without_relist": "a watch that fires means: I am first",
    "leads_on_when_fenced": "a refused write does not make the leader step down",
    "releases_before_drain": "leadership is released while the relay still works",
    "deletes_before_report": "an outbox row is deleted before its delivery report",
    "planner_drops_gaps": "firings that do not run are passed over without a gap",
    "works_beyond_claim": "a worker works on for three leases after its last renewal",
    "never_pulls": "workers rely on messages alone",
}
IN_DATABASE = {
    "fence_ge": "the fence lets lower generations pass",
    "establish_accepts_lower": "a lower generation may establish",
    "progress_without_version": "a batch is written whatever the progress and version are",
    "plans_early": "the database does not check that a firing is due",
    "queued_without_message": "a released job is queued without its message",
    "claim_without_state": "any job may be claimed, whatever its state",
    "heartbeat_by_worker": "a heartbeat renews all claims of the worker",
    "reap_early": "claims are reaped half a lease early",
    "reap_without_pause": "claims are reaped at once after a silence or a step of the clock",
    "lease_by_clock_alone": "a lease begins by the clock also when the leader's last beat is ahead of it",
    "reap_from_ahead": "a claim whose lease began while the clock was ahead is reaped",
    "outcome_without_token": "an outcome closes the job whatever its token is",
    "overlap_without_lock": "overlap is decided by what was there before the call waited",
    "capacity_ignored": "queues are filled beyond their bound",
    "budget_forgotten": "of missed firings more are released in a minute than catch_up_per_minute",
    "hold_ignored": "planning and claiming do not look at holds",
}
SIMULATED = {**IN_CODE, **IN_DATABASE}

PROGRESS_LOCKED = """WHERE q.schedule = g.schedule AND q.scope = p_scope AND q.version = g.version AND q.step = g.step
                                FOR UPDATE SKIP LOCKED) p"""
FENCE_EQUAL = ("IF f.incarnation = p_incarnation AND f.generation = p_generation AND f.owner = p_owner "
               "AND f.released_at IS NULL THEN")

# Name: (what it breaks, files of tests/pgtap that must fail, [(file of sql/, text, replacement)...]).
SQL = {
    "fence_ge": (
        SIMULATED["fence_ge"], ["stale_writes", "fence"],
        [("0003_authority", FENCE_EQUAL,
          "IF (f.incarnation, f.generation) >= (p_incarnation, p_generation) AND f.released_at IS NULL THEN")]),
    "fence_without_owner": (
        "the fence does not compare the owner", ["fence", "stale_writes"],
        [("0003_authority", " AND f.generation = p_generation AND f.owner = p_owner AND f.released_at IS NULL THEN",
          " AND f.generation = p_generation AND f.released_at IS NULL THEN")]),
    "fence_unlocked": (
        "the fence is compared without a lock", ["concurrency_fence"],
        [("0003_authority", "    PERFORM pg_advisory_xact_lock_shared(reports.scope_lock_key(p_scope));\n"
          "    SELECT * INTO f FROM reports.fence WHERE scope = p_scope FOR SHARE;",
          "    SELECT * INTO f FROM reports.fence WHERE scope = p_scope;")]),
    "establish_accepts_lower": (
        SIMULATED["establish_accepts_lower"], ["fence"],
        [("0003_authority", "(stored_incarnation, stored_generation) >= (p_incarnation, p_generation) THEN",
          "(stored_incarnation, stored_generation) = (p_incarnation, p_generation) THEN")]),
    "progress_without_version": (
        SIMULATED["progress_without_version"], ["planning"],
        [("0005_planning", PROGRESS_LOCKED,
          "WHERE q.schedule = g.schedule AND q.scope = p_scope\n"
          "                                FOR UPDATE SKIP LOCKED) p"),
         ("0005_planning", "         WHERE p.schedule = g.schedule AND p.step = g.step AND p.version = g.version\n"
          "           AND NOT (g.overlap", "         WHERE p.schedule = g.schedule\n           AND NOT (g.overlap")]),
    "progress_unlocked": (
        "two batches may both advance a schedule", ["concurrency_planning"],
        [("0005_planning", PROGRESS_LOCKED, PROGRESS_LOCKED.replace("\n                                FOR UPDATE SKIP LOCKED", ""))]),
    "plans_early": (
        SIMULATED["plans_early"], ["planning"],
        [("0005_planning", "IF EXISTS (SELECT FROM unnest(f_fire_at) t WHERE t > clock_timestamp()) THEN",
          "IF false THEN")]),
    "queued_without_message": (
        SIMULATED["queued_without_message"], ["planning"],
        [("0005_planning", "         WHERE j.waits_for IS NULL\n    ), gap AS (", "         WHERE false\n    ), gap AS (")]),
    "taken_key_dropped": (
        "a firing whose key is taken is passed over without a gap", ["planning"],
        [("0005_planning", "WHERE (f.job IN (SELECT m.job_id FROM made m)) IS NOT TRUE", "WHERE false")]),
    "claim_without_state": (
        SIMULATED["claim_without_state"], ["claims"],
        [("0008_claims", "         WHERE j.id = ANY (p_ids) AND j.state::text = 'queued'\n        RETURNING j AS job",
          "         WHERE j.id = ANY (p_ids)\n        RETURNING j AS job"),
         ("0008_claims", "WHERE j.id = ANY (p_ids) AND j.state::text = 'queued' AND j.run_after",
          "WHERE j.id = ANY (p_ids) AND j.run_after")]),
    "heartbeat_by_worker": (
        SIMULATED["heartbeat_by_worker"], ["claims"],
        [("0008_claims", "WHERE w.id = p_worker AND j.id = ANY (ARRAY(SELECT m.id FROM mine m))",
          "WHERE w.id = p_worker AND j.worker = p_worker AND j.state::text = 'running'")]),
    "reap_early": (
        "claims are reaped before lease and grace have ended", ["tending"],
        [("0006_tending", "AND lease_until + grace < database_now", "AND lease_until - grace < database_now")]),
    "reap_without_pause": (
        SIMULATED["reap_without_pause"], ["tending"],
        [("0006_tending", "database_now >= p.reap_not_before AND stepped IS NOT TRUE AND beaten", "beaten")]),
    "lease_by_clock_alone": (
        SIMULATED["lease_by_clock_alone"], ["claims"],
        [("0003_authority", "greatest(clock_timestamp(), p.beat_at) AS at", "clock_timestamp() AS at")]),
    "reap_from_ahead": (
        SIMULATED["reap_from_ahead"], ["tending"],
        [("0006_tending", "AND lease_until + grace < database_now\n",
          "AND (lease_until + grace < database_now OR lease_until > database_now + longest + grace + interval '10 seconds')\n"),
         ("0006_tending", "UPDATE reports.job j SET lease_until = database_now + longest\n     WHERE",
          "UPDATE reports.job j SET lease_until = database_now + longest\n     WHERE false AND")]),
    "outcome_without_token": (
        SIMULATED["outcome_without_token"], ["outcomes"],
        [("0008_claims", "                WHERE q.id = g.id AND q.attempt_token = g.token AND q.state::text = 'running'\n"
          "                  FOR UPDATE SKIP LOCKED) j\n    ), verdict",
          "                WHERE q.id = g.id AND q.state::text = 'running'\n"
          "                  FOR UPDATE SKIP LOCKED) j\n    ), verdict")]),
    "artifact_of_a_failure": (
        "an attempt that did not succeed leaves a visible artifact", ["outcomes"],
        [("0008_claims", "WHERE v.recorded = 'succeeded' AND v.store IS NOT NULL", "WHERE v.store IS NOT NULL")]),
    "overlap_without_lock": (
        "a job is replaced while another session decides over it", ["concurrency_overlap"],
        [("0005_planning", "WHEN 'replace' THEN NOT reports.may_replace(p_scope, g.schedule)", "WHEN 'replace' THEN false")]),
    "capacity_ignored": (
        SIMULATED["capacity_ignored"], ["capacity"],
        [("0006_tending", "least(greatest(q.max_outstanding - ready.jobs - coalesce(r.jobs, 0), 0), p_limit)", "p_limit")]),
    "budget_forgotten": (
        SIMULATED["budget_forgotten"], ["catch_up"],
        [("0006_tending", "THEN s.catch_up_per_minute - reports.catch_up_used(p_scope) END", "THEN s.catch_up_per_minute END")]),
    "budget_of_a_leader": (
        "the next leader begins with the whole of the budget", ["catch_up"],
        [("0003_authority", "    verdict := 'established';\n",
          "    DELETE FROM reports.catch_up_release r WHERE r.scope = p_scope;\n    verdict := 'established';\n")]),
    "hold_ignored": (
        SIMULATED["hold_ignored"], ["holds"],
        [("0003_authority", "RETURN EXISTS (SELECT FROM reports.v_hold h WHERE h.queue IS NULL AND",
          "RETURN EXISTS (SELECT FROM reports.v_hold h WHERE false AND h.queue IS NULL AND")]),
    "older_zones_move": (
        "stored firings that newer time zone data computed are moved by older ones", ["zones"],
        [("0018_zones", "\n                                AND NOT (q.zone_digest <> g.zone_digest AND reports.tzdata_is_newer(q.tzdata, p_tzdata))", "")]),
    "older_zones_plan": (
        "what newer time zone data computed is put off by a plan by older ones", ["zones"],
        [("0005_planning", "AND (p.zone_digest <> g.zone_digest AND reports.tzdata_is_newer(p.tzdata, p_tzdata)",
          "AND (false AND p.zone_digest <> g.zone_digest AND reports.tzdata_is_newer(p.tzdata, p_tzdata)")]),
    "acknowledges_a_range": (
        "an acknowledgement deletes messages between those it names", ["outbox"],
        [("0007_outbox", "         WHERE scope = p_scope AND id = ANY (p_ids)\n           AND id BETWEEN",
          "         WHERE scope = p_scope\n           AND id BETWEEN")]),
}


def table(rows):
    widths = [max(len(str(r[i])) for r in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def in_files(*directories):
    """Names of MUTANT("...") in the C files."""
    found = set()
    for directory in directories:
        for file in pathlib.Path(ROOT, directory).rglob("*.[ch]"):
            if file.name != "mutant.h":
                found.update(re.findall(r'MUTANT\("(\w+)"\)', file.read_text(encoding="utf-8")))
    return found


def chosen(names, table_of):
    unknown = [n for n in names if n not in table_of]
    if unknown:
        sys.exit(f"mutants.py: there is no mutant {unknown[0]}; there are {', '.join(table_of)}")
    return names or list(table_of)


def simulate_run(program, name, first, count):
    environment = dict(os.environ, RS_MUTANT=name)
    command = [program, "--quiet", "--seed", str(first), "--count", str(count)]
    try:
        return subprocess.run(command, env=environment, text=True, capture_output=True, check=False,
                              timeout=60 + 2 * count)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", "it did not end\n")


FAILED = re.compile(r"^seed (\d+) FAILED at (\S+) s: (\S+): (.*)$", re.M)


def is_clean(program, seed):
    return simulate_run(program, "", seed, 1).returncode == 0


def kept_seeds():
    with open(os.path.join(ROOT, "tests/simulate/seeds"), encoding="utf-8") as f:
        return [int(number) for number in re.findall(r"^(\d+)", f.read(), re.M)]


def hunt(program, name, seeds):
    """What caught it, in which seed: seeds in ever longer rows, since most are caught by the first few."""
    first, count = 1, 2
    while first <= seeds:
        count = min(count, seeds - first + 1)
        run = simulate_run(program, name, first, count)
        found = [f for f in FAILED.finditer(run.stdout) if is_clean(program, f.group(1))]
        if found:
            return found[0].group(3), found[0].group(1), found[0].group(4)
        if run.returncode not in (0, 1):
            print(run.stdout[-2000:] + run.stderr[-2000:])
            return f"CRASH {run.returncode}", f"{first} or later", "the program ended by itself"
        first, count = first + count, count * 2
    for seed in kept_seeds():  # what only one of ten thousand meets
        found = FAILED.search(simulate_run(program, name, seed, 1).stdout)
        if found and is_clean(program, seed):
            return found.group(3), str(seed), found.group(4)
    return None, "", ""


def simulated(program, seeds, names):
    for name in (in_files("common", "scheduler", "worker") ^ set(IN_CODE)) | (in_files("tests/simulate") ^ set(IN_DATABASE)):
        sys.exit(f"mutants.py: mutant {name} is in C files and not listed here, or the other way round")
    dirty = [seed for seed in range(1, CLEAN_SEEDS + 1) if not is_clean(program, seed)]
    if dirty:
        print(f"seeds {dirty} fail without a mutant and count for none", flush=True)
    rows, survived = [("mutant", "caught by", "seed", "seconds", "how")], []
    for name in chosen(names, SIMULATED):
        begun = time.monotonic()
        invariant, seed, how = hunt(program, name, seeds)
        if invariant is None or invariant.startswith("CRASH"):
            survived.append(name)
        rows.append((name, invariant or "NOTHING", seed, f"{time.monotonic() - begun:.1f}", how[:110]))
        print(*rows[-1], flush=True)
    return rows, survived


def mutate_sql(name, directory):
    shutil.copytree(os.path.join(ROOT, "sql"), directory)
    for file, text, replacement in SQL[name][2]:
        path = os.path.join(directory, file + ".sql")
        with open(path, encoding="utf-8") as f:
            whole = f.read()
        if whole.count(text) != 1:
            sys.exit(f"mutants.py: {file}.sql has the text of mutant {name} {whole.count(text)} times; "
                     f"once is meant:\n{text}")
        with open(path, "w", encoding="utf-8") as f:
            f.write(whole.replace(text, replacement))


def pgtap_fails(reportctl, directory, file):
    run = subprocess.run([os.path.join(ROOT, "dev/test.d/pgtap"), reportctl, f"tests/pgtap/{file}.sql"], cwd=ROOT,
                         env=dict(os.environ, RS_SQL=directory), text=True, capture_output=True, check=False,
                         timeout=300)
    failed = re.search(r"^not ok \d+ - (.*)$", run.stdout, re.M)
    if run.returncode != 0 and not failed and "Result: FAIL" not in run.stdout:
        print(run.stdout[-2000:] + run.stderr[-2000:])
        sys.exit(f"mutants.py: {file}.sql could not be run")
    if run.returncode == 0:
        return None
    return f"{file}.sql: {failed.group(1) if failed else 'it ended early'}"


def sql(reportctl, names):
    rows, survived = [("mutant", "caught by", "breaks")], []
    reportctl = os.path.abspath(reportctl)
    names = chosen(names, SQL)
    for file in sorted({file for name in names for file in SQL[name][1]}):
        failed = pgtap_fails(reportctl, os.path.join(ROOT, "sql"), file)
        if failed:
            sys.exit(f"mutants.py: without a mutant fails {failed}; mend that first")
    for name in names:
        with tempfile.TemporaryDirectory(prefix="mutant-") as work:
            directory = os.path.join(work, "sql")
            mutate_sql(name, directory)
            caught = [pgtap_fails(reportctl, directory, file) for file in SQL[name][1]]
        if None in caught:
            survived.append(name)
        rows.append((name, "; ".join(c or "NOTHING" for c in caught)[:110], SQL[name][0]))
        print(*rows[-1], flush=True)
    return rows, survived


def main():
    arguments = sys.argv[1:]
    seeds = 1000
    if "--seeds" in arguments:
        at = arguments.index("--seeds")
        seeds = int(arguments[at + 1])
        del arguments[at:at + 2]
    if arguments == ["list"]:
        print("\n".join(f"{name}: {what}" for name, what in SIMULATED.items()))
        print("\n".join(f"sql {name}: {entry[0]}" for name, entry in SQL.items()))
        return 0
    if len(arguments) < 2 or arguments[0] not in ("simulate", "sql"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if arguments[0] == "simulate":
        rows, survived = simulated(arguments[1], seeds, arguments[2:])
    else:
        rows, survived = sql(arguments[1], arguments[2:])
    print()
    table(rows)
    print(f"{len(rows) - 1 - len(survived)} of {len(rows) - 1} mutants were caught"
          + (": not " + ", ".join(survived) if survived else ""))
    return 1 if survived else 0


sys.exit(main())
