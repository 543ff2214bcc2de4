"""How dev/test counts: nothing that did not pass may look as if it had."""

import pathlib
import subprocess
import sys

TALLY = pathlib.Path(__file__).parents[2] / "dev" / "test.d" / "tally.py"


def tally(tmp_path, kind, text):
    path = tmp_path / "written"
    path.write_text(text)
    return subprocess.run([sys.executable, "-B", TALLY, kind, path], capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_skipped_test_is_a_failure_unless_the_machine_forbids_what_it_needs(tmp_path):
    said = tally(tmp_path, "pytest", """<testsuites><testsuite>
        <testcase classname="m" name="good"/>
        <testcase classname="m" name="bad"><failure message="first line&#10;second">text</failure></testcase>
        <testcase classname="m" name="lazy"><skipped message="no service"/></testcase>
        <testcase classname="m" name="forbidden"><skipped message="this machine cannot mount a disk"/></testcase>
        </testsuite></testsuites>""")
    assert said == ["1 2 1", "failed: m::bad: first line", "failed: m::lazy: no service",
                    "skipped: m::forbidden: this machine cannot mount a disk"]


def test_a_program_that_crashed_or_skipped_is_a_failure_and_is_named(tmp_path):
    said = tally(tmp_path, "cmocka", """<testsuite>
        <testcase name="one" status="run"><system-out>[  PASSED  ] 2 test(s).
[  FAILED  ] test_x
[  FAILED  ] tests: 1 test(s), listed below:
[  FAILED  ] test_x
[  FAILED  ] 1 test(s)</system-out></testcase>
        <testcase name="two" status="fail"><system-out>Segmentation fault</system-out></testcase>
        </testsuite>""")
    assert said == ["2 2 0", "failed: one: test_x", "failed: two: a test that it did not name"]


def test_sql_tests_without_a_verdict_are_a_failure(tmp_path):
    assert tally(tmp_path, "tap", "ok 1 - a\nok 2 - b # SKIP c\nResult: PASS\n") == ["1 1 0", "failed: ok 2 - b # SKIP c"]
    assert tally(tmp_path, "tap", "ok 1 - a\n")[0] == "1 1 0"


def test_a_file_that_was_not_written_is_a_failure(tmp_path):
    said = subprocess.run([sys.executable, "-B", TALLY, "pytest", tmp_path / "none"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("0 1 0\n")


ONCE_BAD = """<testsuites><testsuite>
    <testcase classname="tests.system.m" name="good"/>
    <testcase classname="tests.system.m" name="bad[1]"><failure message="too late">text</failure></testcase>
    <testcase classname="tests.system.m" name="worse"><failure message="wrong">text</failure></testcase>
    </testsuite></testsuites>"""


def again(tmp_path, kind, text):
    path = tmp_path / "written"
    path.write_text(text)
    return subprocess.run([sys.executable, "-B", TALLY, "--again", kind, path], capture_output=True, text=True, check=True).stdout.split()


def test_what_passes_when_it_runs_again_is_named_and_what_fails_again_is_a_failure(tmp_path):
    assert again(tmp_path, "pytest", ONCE_BAD) == ["tests/system/m.py::bad[1]", "tests/system/m.py::worse"]
    second = tmp_path / "second"
    second.write_text("""<testsuites><testsuite>
        <testcase classname="tests.system.m" name="bad[1]"/>
        <testcase classname="tests.system.m" name="worse"><failure message="still wrong">text</failure></testcase>
        </testsuite></testsuites>""")
    path = tmp_path / "written"
    said = subprocess.run([sys.executable, "-B", TALLY, "pytest", path, second], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["2 1 0", "failed: tests.system.m::worse: still wrong",
                                 "unsteady, passed when run again: tests.system.m::bad[1]: too late"]


def test_a_program_that_runs_again_counts_once(tmp_path):
    first = """<testsuite><testcase name="part/one" status="fail"><system-out>[  FAILED  ] test_x
[  PASSED  ] 4 test(s).
[  FAILED  ] 1 test(s)</system-out></testcase>
        <testcase name="part/two" status="run"><system-out>[  PASSED  ] 2 test(s).</system-out></testcase></testsuite>"""
    assert again(tmp_path, "cmocka", first) == ["part/one"]
    second = tmp_path / "second"
    second.write_text('<testsuite><testcase name="part/one" status="run"><system-out>[  PASSED  ] 5 test(s).</system-out></testcase></testsuite>')
    said = subprocess.run([sys.executable, "-B", TALLY, "cmocka", tmp_path / "written", second], capture_output=True, text=True,
                          check=True).stdout
    assert said.splitlines() == ["7 0 0", "unsteady, passed when run again: part/one: test_x"]


def test_many_failures_do_not_run_again(tmp_path):
    many = "".join(f'<testcase classname="m" name="n{i}"><failure message="x"/></testcase>' for i in range(4))
    assert again(tmp_path, "pytest", f"<testsuites><testsuite>{many}</testsuite></testsuites>") == []
    assert again(tmp_path, "pytest", '<testsuites><testsuite><testcase classname="m" name="n"/></testsuite></testsuites>') == []


def test_a_second_run_that_wrote_nothing_is_a_failure(tmp_path):
    (tmp_path / "written").write_text(ONCE_BAD)
    said = subprocess.run([sys.executable, "-B", TALLY, "pytest", tmp_path / "written", tmp_path / "none"], capture_output=True,
                          text=True, check=True).stdout
    assert said.startswith("0 1 0\n")
