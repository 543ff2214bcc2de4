"""What the daemons measure: the pages of real ones under promtool's eyes, the alert rules and the
dashboard against what is measured, and what a replica still sees when others are gone."""

import json
import re
import subprocess
import urllib.request

from harness import LONG_SESSION_MS, ROOT
from proof import one

RULES = ROOT / "conf" / "prometheus" / "report-scheduler.rules.yml"
RULES_TEST = ROOT / "tests" / "system" / "prometheus" / "rules.test.yml"
DASHBOARD = ROOT / "conf" / "prometheus" / "dashboard.json"

DEFINITIONS = """
    INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop');
    INSERT INTO reports.report (name, kind, data_source, query, format)
    VALUES ('rows', 'sql', 'warehouse', 'SELECT 1 AS x', 'csv');
    INSERT INTO reports.schedule (name, report, kind, rule, misfire)
    VALUES ('tick', 'nothing', 'interval', '1 second', 'run_all'),
           ('file', 'rows', 'interval', '1 second', 'run_all')"""


def promtool(*words, stdin=""):
    """(exit status, output) of promtool, wherever dev/setup has put it."""
    directory = subprocess.run(
        ["bash", "-c", f". '{ROOT}/dev/stack.d/paths.sh'; tool_dir prometheus"],
        capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    result = subprocess.run([f"{directory}/usr/bin/promtool", *map(str, words)], input=stdin,
                            text=True, capture_output=True, timeout=60, check=False)
    return result.returncode, result.stdout + result.stderr


def page(daemon):
    """The metrics page of a daemon that was started with http_port = 0."""
    ports = re.findall(r'event="HTTP listens".*\bport=(\d+)', daemon.log_text())
    if not ports:
        return ""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[-1]}/metrics", timeout=20) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def value(daemon, series):
    """The number of one series, written as on the page; None when it is not there."""
    for line in page(daemon).splitlines():
        name, _, number = line.rpartition(" ")
        if name == series:
            return float(number)
    return None


def at_least(daemon, series, least):
    return (value(daemon, series) or 0) >= least


def metric_names():
    """Every metric of the reference, which a unit test compares with the code; histograms by the names
    of their series."""
    names = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", (ROOT / "docs" / "metrics.md").read_text(), re.M):
        names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    assert len(names) > 60
    return names


def unknown_names(expression):
    return set(re.findall(r"\b(?:report_(?:scheduler|worker|database|kafka|build|metrics)_|process_)\w+",
                          expression)) - metric_names()


def alerts():
    """{name: text of its rule}, in order."""
    parts = re.split(r"^ +- alert: (\w+)$", RULES.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


# Rules, runbook, dashboard ----------------------------------------------------------------------


def test_alert_rules_are_valid_and_fire_when_they_should():
    status, output = promtool("check", "rules", RULES)
    assert status == 0, output
    status, output = promtool("test", "rules", RULES_TEST)
    assert status == 0, output


def test_every_alert_was_seen_to_fire_in_the_rules_test():
    blocks = re.findall(r"alertname: (\w+)\n\s+exp_alerts:(?: (\[\]))?", RULES_TEST.read_text())
    assert set(alerts()) - {name for name, nothing in blocks if not nothing} == set()


def test_every_alert_names_group_and_scope_and_has_a_number_and_a_runbook_section():
    headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / "operations.md").read_text(), re.M)
    anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    for name, text in alerts().items():
        assert re.search(r"labels: \{severity: (page|ticket), group: \w+", text), name
        assert "scope: all" in text or re.search(r"by \([^)]*\bscope\b", text), f"{name} has no scope"
        assert "absent(" in text or re.search(r"description:.*\{\{ \$value", text), f"{name} has no number"
        runbook = re.search(r"runbook: docs/operations\.md#(\S+)", text)
        assert runbook and runbook.group(1) in anchors, f"{name}: no such section in docs/operations.md"


def test_every_runbook_section_belongs_to_an_alert():
    sections = re.findall(r"^### Alert: (\w+)$", (ROOT / "docs" / "operations.md").read_text(), re.M)
    assert sorted(sections) == sorted(alerts())


def test_rules_and_dashboard_name_only_what_is_measured():
    for name, text in alerts().items():
        assert unknown_names(text) == set(), name
    board = json.loads(DASHBOARD.read_text())
    ids = [p["id"] for p in board["panels"]]
    assert len(ids) == len(set(ids))
    panels = [p for p in board["panels"] if p["type"] != "row"]
    assert len(panels) >= 20
    for panel in panels:
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert unknown_names(target["expr"]) == set(), panel["title"]
            assert re.search(r"report_|process_", target["expr"]), panel["title"]


def metric_labels():
    """{series: its labels} by the reference."""
    labels = {}
    for name, kind, of in re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", (ROOT / "docs" / "metrics.md").read_text(), re.M):
        for end in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
            labels[name + end] = set(re.findall(r"`(\w+)`", of)) | {"instance", "job"} | ({"le"} if end == "_bucket" else set())
    return labels


def dashboard_targets():
    """(panel, target, the series it asks for) of each query."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            series, = set(re.findall(r"\b(?:report|process)_\w+", target["expr"]))
            yield panel, target, series


def test_dashboard_queries_parse_and_use_labels_that_their_metric_has(tmp_path):
    known = metric_labels()
    rules = []
    for panel, target, series in dashboard_targets():
        where = f"{panel['title']}: {target['expr']}"
        used = set(re.findall(r"[{,](\w+)=", target["expr"]))
        kept = set(re.findall(r"\w+", " ".join(re.findall(r"\bby \(([^)]*)\)", target["expr"]))))
        assert (used | kept) - known[series] == set(), where
        # A legend can show only what the query keeps.
        legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert legend <= (kept - {"le"} if kept else known[series]), where
        assert legend == kept - {"le"} or not kept, f"{where}: lines that the legend does not tell apart"
        # The coordination loop belongs to no scope: its label is empty, and choosing a scope must not hide it.
        if series == "report_scheduler_loop_stall_seconds":
            assert 'scope=~"$scope|"' in target["expr"], where
        rules.append({"record": f"r{len(rules)}", "expr": target["expr"].replace("$scope", "main")})
    file = tmp_path / "dashboard.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    status, output = promtool("check", "rules", file)
    assert status == 0, output


def test_dashboard_units_and_titles_say_what_is_shown():
    titles = [p["title"] for p in json.loads(DASHBOARD.read_text())["panels"]]
    assert len(titles) == len(set(titles))
    for panel, target, series in dashboard_targets():
        expression = target["expr"]
        unit = panel["fieldConfig"]["defaults"]["unit"]
        if "_seconds" in series:
            expected = "s"
        elif series.endswith("_bytes"):
            expected = "bytes"
        else:
            expected = "ops" if "rate(" in expression else "short"
        assert unit == expected, panel["title"]
        counter = series.endswith("_total")
        assert not counter or re.search(r"\b(rate|increase)\(", expression), f"{panel['title']}: a counter as it is"
        assert "increase(" not in expression or "(1 h)" in panel["title"], f"{panel['title']}: over which time?"
        if "histogram_quantile(0.99" in expression:
            assert "99 %" in panel["title"] + target["legendFormat"], panel["title"]
    # What the database decides is not in the counter of the process.
    assert "report_scheduler_gap_firings_total" not in DASHBOARD.read_text()


def test_every_fact_of_the_database_is_in_a_panel_or_an_alert():
    reference = (ROOT / "docs" / "metrics.md").read_text()
    facts = re.findall(r"^\| `(report_scheduler_\w+)`", reference.split("These are facts of the database", 1)[1], re.M)
    assert "report_scheduler_catch_up_waiting" in facts
    shown = set(re.findall(r"\breport_\w+", DASHBOARD.read_text() + RULES.read_text()))
    # Identities: to be read next to each other, not drawn.
    assert set(facts) - shown == {"report_scheduler_fence_incarnation", "report_scheduler_fence_generation"}


def test_every_metric_stands_in_a_table_of_the_reference():
    tables = {"common/base/process_metrics.c", "scheduler/base/scheduler_metrics.c", "worker/base/worker_metrics.c",
              "common/base/metrics.c"}
    families = {str(path.relative_to(ROOT)) for part in ("common", "scheduler", "worker")
                for path in (ROOT / part).rglob("*.c") if ".kind = METRIC_" in path.read_text()}
    assert families == tables


# Real daemons -----------------------------------------------------------------------------------


def test_pages_of_working_daemons_are_clean_and_tell_what_they_did(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    scheduler = installation.start_scheduler(http_port=0, observe_ms=1000, zookeeper_session_ms=LONG_SESSION_MS)  # leads once
    worker = installation.start_worker(http_port=0)
    wait = installation.wait_until
    wait(lambda: at_least(worker, 'report_worker_attempts_total{outcome="succeeded"}', 6), 40,
         "jobs have run")
    wait(lambda: at_least(scheduler, 'report_scheduler_workers{scope="main",queue="default"}', 1), 10,
         "the observer sees the worker")
    wait(lambda: at_least(scheduler, 'report_scheduler_relay_published_total{scope="main"}', 6), 20,
         "messages were published")

    for daemon in (scheduler, worker):
        status, output = promtool("check", "metrics", stdin=page(daemon))
        assert (status, output) == (0, ""), f"{daemon.name}: {output}"

    generation = one(db, "SELECT generation FROM reports.fence WHERE scope = 'main'")
    for series, expected in {
            'report_scheduler_leader{scope="main"}': 1,
            'report_scheduler_state{scope="main",state="ACTIVE"}': 1,
            'report_scheduler_state{scope="main",state="FOLLOWING"}': 0,
            'report_scheduler_generation{scope="main"}': generation,
            'report_scheduler_fence_generation{scope="main"}': generation,
            'report_scheduler_leaderships_total{scope="main"}': 1,
            'report_scheduler_prepare_seconds_count{scope="main"}': 1,
            'report_scheduler_step_downs_total{scope="main",reason="fenced"}': 0,
            'report_scheduler_leaderless_seconds{scope="main"}': 0,
            'report_scheduler_relay_kafka_reachable{scope="main"}': 1,
            'report_scheduler_problem_schedules{scope="main"}': 0,
            'report_scheduler_edits_taken_total{scope="main"}': 2}.items():
        wait(lambda s=series, e=expected: value(scheduler, s) == e, 20, f"{series} is {expected}")
    for series in ('report_scheduler_planned_total{scope="main"}', "report_scheduler_heartbeat_seconds_count",
                   "report_scheduler_lease_seconds", "report_kafka_ack_seconds_count",
                   'report_database_call_seconds_count{statement="plan_batch"}',
                   'report_database_call_seconds_count{statement="scope_figures"}',
                   "process_start_time_seconds", "process_resident_memory_bytes"):
        wait(lambda s=series: at_least(scheduler, s, 0.001), 20, f"{series} is there")
    for series in ('report_worker_run_seconds_count{kind="noop"}', 'report_worker_run_seconds_count{kind="sql"}',
                   "report_worker_start_late_seconds_count", "report_worker_outcome_seconds_count",
                   "report_worker_artifact_bytes_total", 'report_worker_heartbeats_total{result="ok"}',
                   "report_worker_slots", "report_worker_registered",
                   'report_database_call_seconds_count{statement="record_outcomes"}'):
        wait(lambda s=series: at_least(worker, s, 0.001), 20, f"{series} is there")
    # What a job waited is measured by the database clock: never more than the test has lasted.
    assert value(worker, "report_worker_start_late_seconds_sum") / value(
        worker, "report_worker_start_late_seconds_count") < 60
    names = {re.sub(r"[{ ].*", "", line) for line in (page(scheduler) + page(worker)).splitlines()
             if line and not line.startswith("#")}
    assert names - metric_names() == set()


def test_losing_the_leader_loses_no_sight(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    # Long, so that there is time to see that firings wait.
    replicas = [installation.start_scheduler(name, http_port=0, observe_ms=1000, zookeeper_session_ms=LONG_SESSION_MS)
                for name in ("one", "two")]
    wait = installation.wait_until

    def leader():
        return next((r for r in replicas if value(r, 'report_scheduler_leader{scope="main"}') == 1), None)

    first = wait(leader, 40, "somebody leads")
    other = next(r for r in replicas if r is not first)
    wait(lambda: value(other, 'report_scheduler_leaderless_seconds{scope="main"}') == 0, 20,
         "the follower sees that somebody leads")
    assert value(other, 'report_scheduler_relay_kafka_reachable{scope="main"}') is None
    first.kill()
    wait(lambda: at_least(other, 'report_scheduler_due_lag_seconds{scope="main"}', 1), 20,
         "the follower sees that firings wait")
    wait(lambda: value(other, 'report_scheduler_leader{scope="main"}') == 1, 40, "the follower leads")
    wait(lambda: value(other, 'report_scheduler_leaderless_seconds{scope="main"}') == 0, 20,
         "the scope has a leader again")


def test_frozen_scheduler_shows_its_stall_and_its_step_down(installation):
    db = installation.connect()
    db.execute(DEFINITIONS)
    one_, two = (installation.start_scheduler(name, http_port=0, observe_ms=1000) for name in ("one", "two"))
    wait = installation.wait_until
    first = wait(lambda: next((r for r in (one_, two)
                               if value(r, 'report_scheduler_leader{scope="main"}') == 1), None), 40,
                 "somebody leads")
    other = two if first is one_ else one_
    first.freeze()
    try:
        wait(lambda: value(other, 'report_scheduler_leader{scope="main"}') == 1, 40, "the other leads")
    finally:
        first.thaw()
    wait(lambda: at_least(first, 'report_scheduler_loop_stall_seconds{loop="scope",scope="main"}', 2), 20,
         "the stall is told")
    wait(lambda: at_least(first, 'report_scheduler_loop_stall_seconds{loop="coordination",scope=""}', 2), 20,
         "that of the other loop, too")
    wait(lambda: value(first, 'report_scheduler_leader{scope="main"}') == 0, 20, "the first gave up")
    wait(lambda: re.findall(r'step_downs_total\{scope="main",reason="(\w+)"\} [1-9]', page(first)), 20, "the reason is counted")


def test_worker_without_database_shows_the_age_of_its_heartbeat(installation):
    worker = installation.start_worker(http_port=0, heartbeat_ms=500)
    wait = installation.wait_until
    wait(lambda: value(worker, "report_worker_registered") == 1, 30, "the worker is registered")
    wait(lambda: at_least(worker, 'report_worker_heartbeats_total{result="ok"}', 2), 20, "it beats")
    installation.stack.fault("stop", "pg")
    try:
        wait(lambda: at_least(worker, "report_worker_heartbeat_age_seconds", 4), 40,
             "the last heartbeat grows old")
    finally:
        installation.stack.fault("cont", "pg")
    wait(lambda: (value(worker, "report_worker_heartbeat_age_seconds") or 99) < 2, 40,
         "heartbeats get through again")
