"""Count the single tests in what a test runner wrote.

Usage: tally.py cmocka|tap|pytest FILE [SECOND]
       tally.py --again cmocka|pytest FILE

Prints "PASSED FAILED SKIPPED", then a line for each test that did not pass. A program that crashed,
ended early or ran no test counts as a failure. So does a skipped test, since whoever runs this has
started the services; but one whose reason begins with CANNOT is counted as skipped: the kernel or the
container forbids what it needs, which nothing here can install.

SECOND is what those wrote that failed in FILE and ran again: it stands for them, and a test that
failed in FILE only is named as unsteady. With --again: the programs, or the tests, that may run again
since they failed; none if they are more than AGAIN_MAX, which is no accident of timing any more.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

AGAIN_MAX = 3
CANNOT = "this machine cannot "


def cases(path, second):
    """The test cases of a JUnit file by name; what ran a second time comes from there."""
    found = {}
    for file in filter(None, (path, second)):
        latest = {}
        for case in ElementTree.parse(file).iter("testcase"):
            latest.setdefault((case.get("classname"), case.get("name")), []).append(case)
        found.update(latest)
    return [case for same in found.values() for case in same]


def cmocka(path, second=None):
    """A JUnit file of ctest whose test cases are programs that print cmocka's messages."""
    passed, bad_ones = 0, []
    for case in cases(path, second):
        output = "".join(case.itertext())
        # The list that cmocka closes with names each again, without the time of its run.
        names = re.findall(r"\[ *(?:FAILED|SKIPPED) *\] ([a-z]\w+)", output)
        good = sum(int(n) for n in re.findall(r"\[ *PASSED *\] (\d+) test\(s\)", output))
        bad = sum(int(n) for n in re.findall(r"\[ *(?:FAILED|SKIPPED) *\] (\d+) test\(s\)", output))
        if case.get("status") != "run" or not good + bad:
            bad = max(bad, 1)
        passed += good
        found = list(dict.fromkeys(names))[:bad]
        bad_ones += [f"{case.get('name')}: {name}" for name in found]
        bad_ones += [f"{case.get('name')}: a test that it did not name"] * (bad - len(found))
    return passed, bad_ones, []


def tap(path, second=None):
    assert second is None, "the SQL tests do not run again"
    with open(path, encoding="utf-8", errors="replace") as f:
        output = f.read()
    passed = len(re.findall(r"^ok \d(?!.*# SKIP)", output, re.M | re.I))
    bad_ones = re.findall(r"^(not ok \d(?!.*# TODO).*|ok \d.*# SKIP.*)", output, re.M | re.I)
    # A wrong plan or a script that broke off shows in the verdict only.
    if not re.search(r"^Result: PASS", output, re.M) and not bad_ones:
        bad_ones = ["no verdict of success"]
    return passed, bad_ones, []


def pytest(path, second=None):
    passed, bad_ones, skipped = 0, [], []
    for case in cases(path, second):
        name = f"{case.get('classname')}::{case.get('name')}"
        trouble = next((e for e in case if e.tag in ("failure", "error", "skipped")), None)
        if trouble is None:
            passed += 1
            continue
        said = (trouble.get("message") or trouble.tag).strip()
        cannot = trouble.tag == "skipped" and said.startswith(CANNOT)
        (skipped if cannot else bad_ones).append(f"{name}: {said.splitlines()[0][:200]}")
    return passed, bad_ones, skipped


def again(kind, path):
    """What to run again, by the name that its runner takes."""
    bad_ones = KINDS[kind](path)[1]
    if len(bad_ones) > AGAIN_MAX:
        return []
    if kind == "cmocka":
        return list(dict.fromkeys(bad.split(": ")[0] for bad in bad_ones))
    bad_names = {bad.split(": ")[0] for bad in bad_ones}
    return [f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}" for case in cases(path, None)
            if f"{case.get('classname')}::{case.get('name')}" in bad_names]


def print_tally(kind, path, second=None):
    try:
        first = KINDS[kind](path)
        passed, bad_ones, skipped = KINDS[kind](path, second) if second else first
    except (OSError, ElementTree.ParseError):
        unwritten = path if second is None else f"{path} or {second}"
        first = passed, bad_ones, skipped = 0, [f"{unwritten} was not written"], []
    still = {bad.split(": ")[0] for bad in bad_ones}
    print(passed, len(bad_ones), len(skipped))
    for line in bad_ones:
        print(f"failed: {line}")
    for line in first[1]:
        if line.split(": ")[0] not in still:
            print(f"unsteady, passed when run again: {line}")
    for line in skipped:
        print(f"skipped: {line}")


KINDS = {"cmocka": cmocka, "tap": tap, "pytest": pytest}

if __name__ == "__main__":
    if sys.argv[1] == "--again":
        print(*again(*sys.argv[2:]), sep="\n")
    else:
        print_tally(*sys.argv[1:])
