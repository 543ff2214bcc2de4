"""Count the single tests in what a test runner wrote.

Usage: tally.py cmocka|tap|pytest FILE

Prints "PASSED FAILED SKIPPED", then a line for each test that did not pass. A program that crashed,
ended early or ran no test counts as a failure. So does a skipped test, since whoever runs this has
started the services; but one whose reason begins with CANNOT is counted as skipped: the kernel or the
container forbids what it needs, which nothing here can install.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

CANNOT = "this machine cannot "


def cmocka(path):
    """A JUnit file of ctest whose test cases are programs that print cmocka's messages."""
    passed, bad_ones = 0, []
    for case in ElementTree.parse(path).iter("testcase"):
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


def tap(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        output = f.read()
    passed = len(re.findall(r"^ok \d(?!.*# SKIP)", output, re.M | re.I))
    bad_ones = re.findall(r"^(not ok \d(?!.*# TODO).*|ok \d.*# SKIP.*)", output, re.M | re.I)
    # A wrong plan or a script that broke off shows in the verdict only.
    if not re.search(r"^Result: PASS", output, re.M) and not bad_ones:
        bad_ones = ["no verdict of success"]
    return passed, bad_ones, []


def pytest(path):
    passed, bad_ones, skipped = 0, [], []
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        trouble = next((e for e in case if e.tag in ("failure", "error", "skipped")), None)
        if trouble is None:
            passed += 1
            continue
        said = (trouble.get("message") or trouble.tag).strip()
        cannot = trouble.tag == "skipped" and said.startswith(CANNOT)
        (skipped if cannot else bad_ones).append(f"{name}: {said.splitlines()[0][:200]}")
    return passed, bad_ones, skipped


def main(kind, path):
    try:
        passed, bad_ones, skipped = {"cmocka": cmocka, "tap": tap, "pytest": pytest}[kind](path)
    except (OSError, ElementTree.ParseError):
        passed, bad_ones, skipped = 0, [f"{path} was not written"], []
    print(passed, len(bad_ones), len(skipped))
    for line in bad_ones:
        print(f"failed: {line}")
    for line in skipped:
        print(f"skipped: {line}")


if __name__ == "__main__":
    main(*sys.argv[1:])
