"""Count the single tests in what a test runner wrote.

Usage: tally.py cmocka|tap|pytest FILE

Prints "PASSED FAILED". A program that crashed, ended early or ran no test counts as a failure, and
so does a skipped test: whoever runs this has started the services, so nothing has a reason to skip.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree


def cmocka(path):
    """A JUnit file of ctest whose test cases are programs that print cmocka's messages."""
    passed = failed = 0
    for case in ElementTree.parse(path).iter("testcase"):
        output = "".join(case.itertext())

        def total(word, text=output):
            return sum(int(n) for n in re.findall(r"\[ *%s *\] (\d+) test\(s\)" % word, text))

        good, bad = total("PASSED"), total("FAILED") + total("SKIPPED")
        if case.get("status") != "run" or not good + bad:
            bad = max(bad, 1)
        passed, failed = passed + good, failed + bad
    return passed, failed


def tap(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        output = f.read()
    passed = len(re.findall(r"^ok \d(?!.*# SKIP)", output, re.M | re.I))
    failed = len(re.findall(r"^not ok \d(?!.*# TODO)|^ok \d.*# SKIP", output, re.M | re.I))
    # A wrong plan or a script that broke off shows in the verdict only.
    if not re.search(r"^Result: PASS", output, re.M) and failed == 0:
        failed = 1
    return passed, failed


def pytest(path):
    passed = failed = 0
    for case in ElementTree.parse(path).iter("testcase"):
        good = all(case.find(word) is None for word in ("failure", "error", "skipped"))
        passed, failed = passed + good, failed + (not good)
    return passed, failed


if __name__ == "__main__":
    try:
        print(*{"cmocka": cmocka, "tap": tap, "pytest": pytest}[sys.argv[1]](sys.argv[2]))
    except (OSError, ElementTree.ParseError):
        print(0, 1)  # the runner did not even write its file
