"""The demo's story; dev/demo has installed, built and started the stack before."""

import argparse
import datetime
import os
import pathlib
import signal
import subprocess
import sys
import time

import psycopg
import psycopg.rows

import artifacts
import oracle
import packages

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "release"
STACK = pathlib.Path(os.environ["RS_STACK_DIR"]) / "demo"
TOPIC = "report.dispatch.v1"
SESSION_MS = 4000


def say(text):
    print(f"\n== {text}", flush=True)


def reportctl(*words, check=True):
    environment = dict(os.environ, REPORTCTL_DATABASE=os.environ["RS_PG_SUPER"])
    return subprocess.run([BUILD / "reportctl", *words], env=environment, check=check)


def conninfo(role):
    return (f"host=127.0.0.1 port={os.environ['RS_PG_PORT']} "
            f"dbname={os.environ['RS_PG_DATABASE']} user={role} sslmode=disable")


def scheduler_config(name):
    return f"""name = "{name}";
zookeeper = "{os.environ['RS_ZK']}";
zookeeper_session_ms = {SESSION_MS};
session_file = "{STACK / name}.session";
zookeeper_tick_ms = 500;
lease_margin_ms = 1000;
database = "{conninfo('report_scheduler')}";
scopes = ["main"];
kafka_brokers = "{os.environ['RS_KAFKA']}";
kafka_topic = "{TOPIC}";
http_port = 0;
"""


def worker_config(name):
    return f"""name = "{name}";
database = "{conninfo('report_worker')}";
kafka_brokers = "{os.environ['RS_KAFKA']}";
kafka_topic = "{TOPIC}";
incarnation_file = "{STACK / name}.incarnation";
http_port = 0;
queues = ["default"];
slots = 4;
keeper = "{BUILD / 'report-keeper'}";
artifact_stores = ( {{ name = "local"; directory = "{STACK / 'artifacts'}"; }} );
data_sources = ( {{ name = "warehouse"; conninfo = "{os.environ['RS_WAREHOUSE']} sslmode=disable"; }} );
programs = (
  {{ name = "host-facts"; arguments = ["/bin/uname", "-a"]; }},
  {{ name = "context-echo"; arguments = ["/bin/cat"]; }}
);
"""


class Daemon:
    def __init__(self, program, name, config):
        self.name = name
        self.program = program
        self.config = STACK / f"{name}.conf"
        self.config.write_text(config)
        self.log = open(STACK / f"{name}.log", "ab")
        self.process = subprocess.Popen([BUILD / program, "--config", self.config], stderr=self.log,
                                        stdin=subprocess.DEVNULL, start_new_session=True)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close_dead_session(self):
        """As the systemd unit does (ExecStopPost=)."""
        subprocess.run([BUILD / self.program, "--close-dead-session", "--config", self.config], stderr=self.log,
                       stdin=subprocess.DEVNULL, check=True)

    def ask_to_stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def wait_stopped(self):
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def check_alive(self):
        if self.process.poll() is not None:
            tail = (STACK / f"{self.name}.log").read_text()[-3000:]
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{tail}")


def wait_until(what, seconds, predicate):
    deadline = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def one(db, query, *arguments):
    row = db.execute(query, arguments).fetchone()
    return row[0] if row else None


def leader(db):
    """(member, generation) of the leader that plans, or None."""
    return db.execute("""SELECT member, generation FROM reports.fence
                          WHERE scope = 'main' AND activated_at IS NOT NULL AND released_at IS NULL""").fetchone()


def database_now(db):
    return one(db, "SELECT clock_timestamp()")


def show_for(db, seconds, daemons):
    """What happens, a line each few seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for d in daemons:
            d.check_alive()
        done, queued, running, outbox, late = db.execute("""
            SELECT count(*) FILTER (WHERE state = 'succeeded'), count(*) FILTER (WHERE state = 'queued'),
                   count(*) FILTER (WHERE state = 'running'), (SELECT count(*) FROM reports.outbox),
                   (SELECT round(1000 * extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY planned_at - scheduled_for)))
                      FROM reports.occurrence WHERE planned_at > clock_timestamp() - interval '5 seconds')
              FROM reports.job""").fetchone()
        print(f"   {done:5} reports done, {queued:3} waiting, {running:2} running, {outbox:3} messages to publish, "
              f"due to durable {late if late is not None else '-'} ms (median)", flush=True)
        time.sleep(min(4, max(0, end - time.monotonic())))


def kill_leader(db, schedulers, daemons):
    name, generation = leader(db)
    victim = next(d for d in schedulers if d.name == name)
    say(f"kill -9 {name}, the leader of generation {generation}; report-scheduler --close-dead-session")
    killed_at = database_now(db)
    victim.kill()
    victim.close_dead_session()
    daemons.remove(victim)
    successor = wait_until("a new leader", 30,
                           lambda: (lambda now: now if now and now[1] > generation else None)(leader(db)))
    activated_at = one(db, "SELECT activated_at FROM reports.fence WHERE scope = 'main'")
    last = one(db, "SELECT max(planned_at) FROM reports.occurrence WHERE generation = %s", generation)
    first = wait_until("the new leader's first occurrence", 30, lambda: one(
        db, "SELECT min(planned_at) FROM reports.occurrence WHERE generation = %s", successor[1]))
    print(f"   {successor[0]} took over with generation {successor[1]}, {ms(activated_at - killed_at)} ms after the kill")
    print(f"   (its session would have lasted {SESSION_MS} ms)")
    print(f"   between the last occurrence of the old leader and the first of the new one: {ms(first - last)} ms")
    caught = one(db, """SELECT count(*) FROM reports.occurrence
                         WHERE generation = %s AND scheduled_for BETWEEN %s AND %s""", successor[1], last, first)
    print(f"   firings that fell due in between and were made up for: {caught}", flush=True)


def ms(interval):
    return round(interval.total_seconds() * 1000)


def load_expected(db, until):
    db.execute("CREATE TEMP TABLE proof_window (until timestamptz)")
    db.execute("INSERT INTO proof_window VALUES (%s)", (until,))
    db.execute("CREATE TEMP TABLE expected (schedule text, fire_at timestamptz, PRIMARY KEY (schedule, fire_at))")
    with db.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        schedules = cursor.execute("""SELECT s.name, s.kind, s.rule, s.time_zone, s.anchor, v.effective_from
                                        FROM reports.schedule s
                                        JOIN reports.schedule_version v ON v.schedule = s.name AND v.version = 1""").fetchall()
    with db.cursor() as cursor, cursor.copy("COPY expected FROM STDIN") as copy:
        for schedule in schedules:
            for at in oracle.firings(schedule, schedule["effective_from"], until):
                copy.write_row((schedule["name"], at))


def prove(db):
    say("the proof: due firings by an independent count, files hashed again, compared in SQL")
    until = database_now(db) - datetime.timedelta(milliseconds=1)
    wait_until("every due firing to be planned", 20, lambda: one(
        db, "SELECT NOT EXISTS (SELECT FROM reports.schedule_progress WHERE next_fire_at <= %s)", until))
    wait_until("all jobs to end", 40, lambda: one(
        db, """SELECT NOT EXISTS (SELECT FROM reports.job j JOIN reports.occurrence o ON o.job_id = j.id
                WHERE o.scheduled_for <= %s AND j.state NOT IN ('succeeded', 'failed', 'cancelled'))""", until))
    load_expected(db, until)
    artifacts.load_artifacts(db, STACK / "artifacts")
    good = True
    for what, n, must_be in db.execute((HERE / "proof.sql").read_text()).fetchall():
        fine = must_be == "shown" and n > 0 or must_be == "0" and n == 0
        good = good and fine
        print(f"   {'ok  ' if fine else 'FAIL'} {n:6}  {what}")
    for path, why in artifacts.wrong_files(db):
        print(f"               {path} {why}")
    return good


def next_steps(daemons):
    print(f"""
   Everything is left running ({STACK}: logs, and a configuration file for each daemon). Try:
     eval "$(RS_STACK={os.environ['RS_STACK']} {ROOT}/dev/stack env)"
     export REPORTCTL_DATABASE="$RS_PG_SUPER" PATH="{BUILD}:$PATH"
     reportctl status
     reportctl schedule totals
     reportctl occurrences totals
     reportctl trigger totals --key by-hand-1
     psql "$RS_PG_SUPER"
     ls {STACK}/artifacts     # the reports
     report-worker --config {STACK}/worker-1.conf     # a daemon that has ended, once more
     kill {' '.join(str(d.process.pid) for d in daemons if d.process.poll() is None)}; {ROOT}/dev/stack down --name {os.environ['RS_STACK']}""")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--seconds", type=int, default=20)
    arguments = parser.parse_args()
    STACK.mkdir(mode=0o755)
    (STACK / "artifacts").mkdir()
    begun = time.monotonic()

    say("loading Debian's package index as the warehouse")
    print(f"   {packages.load(os.environ['RS_WAREHOUSE'], HERE / 'warehouse.sql')} packages")
    say("the schema: reportctl migrate; the topic: reportctl topic create")
    reportctl("migrate", "--dir", ROOT / "sql")
    reportctl("topic", "create", TOPIC, "--partitions", "8", "--brokers", os.environ["RS_KAFKA"])

    daemons = []
    good = False
    try:
        with psycopg.connect(os.environ["RS_PG_SUPER"], autocommit=True) as db:
            db.execute((HERE / "definitions.sql").read_text())
            say(f"{one(db, 'SELECT count(*) FROM reports.schedule')} schedules; starting 3 schedulers and 2 workers")
            schedulers = [Daemon("report-scheduler", f"scheduler-{i}", scheduler_config(f"scheduler-{i}")) for i in (1, 2, 3)]
            daemons += schedulers
            daemons += [Daemon("report-worker", f"worker-{i}", worker_config(f"worker-{i}")) for i in (1, 2)]
            wait_until("a leader", 30, lambda: [d.check_alive() for d in daemons] and leader(db))
            print("   leader: %s, generation %s" % leader(db))
            show_for(db, arguments.seconds, daemons)
            kill_leader(db, schedulers, daemons)
            show_for(db, arguments.seconds, daemons)
            say("reportctl status")
            sys.stdout.flush()
            reportctl("status")
            good = prove(db)
        say(f"{'all is proved' if good else 'NOT proved'} after {time.monotonic() - begun:.0f} s")
    finally:
        # Kept above all when something went wrong: that is to be looked into.
        if arguments.keep and daemons:
            next_steps(daemons)
        else:
            for d in daemons:
                d.ask_to_stop()
            for d in daemons:
                d.wait_stopped()
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.CalledProcessError, psycopg.Error) as problem:
        print(f"dev/demo: {problem}", file=sys.stderr)
        sys.exit(1)
