#!/usr/bin/python3
"""Compare `reportctl next --rrule` with dateutil: random rules, local times without a zone.

Usage: rrule_dateutil.py REPORTCTL [--cases N] [--seed S] [--times N]
Rules that the two read differently on purpose are counted by reason (REASONS); any other difference is printed and
makes the exit status 1. dateutil goes on until year 9999 where nothing ever comes, so each of its answers has a bound."""

import argparse
import collections
import datetime
import random
import signal
import subprocess
import sys

from dateutil import rrule

WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
BOUND_S = 0.3  # of one answer of dateutil
HORIZON = datetime.timedelta(days=400 * 366)

# Each is asked, in this order, whether it is why a rule differs.
REASONS = [
    ("the first week of BYSETPOS: ours is whole, dateutil's begins at the start",
     lambda r: r["FREQ"] == "WEEKLY" and "BYSETPOS" in r),
    ("the year of a week number with INTERVAL or BYSETPOS: ours is the week's, dateutil's the calendar's",
     lambda r: "BYWEEKNO" in r and ("INTERVAL" in r or "BYSETPOS" in r)),
    ("the first days of a year in week 52 or 53 of the one before: dateutil counts that one's weeks by the wrong year",
     lambda r: {"52", "53"} & set(r.get("BYWEEKNO", "").split(","))),
    ("BYDAY with and without numbers: ours takes the days of either, dateutil those of both",
     lambda r: len({item[0].isalpha() for item in r.get("BYDAY", "MO").split(",")}) == 2),
]


class TooSlow(Exception):
    pass


def numbers(rng, low, high, most, turn=False):
    found = sorted({rng.randint(low, high) for _ in range(rng.randint(1, most))})
    return ",".join(str(-n if turn and rng.random() < 0.3 else n) for n in found)


def weekdays(rng, rule):
    numbered = rule["FREQ"] in ("MONTHLY", "YEARLY") and "BYWEEKNO" not in rule
    most = 53 if rule["FREQ"] == "YEARLY" and "BYMONTH" not in rule else 5
    items = []
    for day in sorted(set(rng.choices(WEEKDAYS, k=rng.randint(1, 4)))):
        number = rng.choice([-1, 1]) * rng.randint(1, most) if numbered and rng.random() < 0.5 else ""
        items.append(f"{number}{day}")
    return ",".join(items)


def random_rule(rng):
    """The parts of a rule that RFC 5545 allows, and its start."""
    start = datetime.datetime(2020, 1, 1) + datetime.timedelta(minutes=30 * rng.randint(0, 48 * 365 * 12))
    freq = rng.choice(["MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
    rule = {"FREQ": freq}
    if rng.random() < 0.5:
        rule["INTERVAL"] = str(rng.randint(2, {"MINUTELY": 100, "HOURLY": 30, "YEARLY": 4}.get(freq, 12)))
    if rng.random() < 0.3:
        rule["WKST"] = rng.choice(WEEKDAYS)
    if rng.random() < 0.25:
        rule["BYMONTH"] = numbers(rng, 1, 12, 4)
    if freq == "YEARLY" and rng.random() < 0.25:
        rule["BYWEEKNO"] = numbers(rng, 1, rng.choice([5, 53]), 4, turn=True)
    if freq in ("MINUTELY", "HOURLY", "YEARLY") and rng.random() < 0.15:
        rule["BYYEARDAY"] = numbers(rng, 1, 366, 12, turn=True)
    if freq != "WEEKLY" and rng.random() < 0.25:
        rule["BYMONTHDAY"] = numbers(rng, 1, 31, 8, turn=True)
    if rng.random() < 0.4 or ("BYWEEKNO" in rule and not {"BYMONTHDAY", "BYYEARDAY"} & rule.keys()):
        rule["BYDAY"] = weekdays(rng, rule)
    if rng.random() < 0.3:
        rule["BYHOUR"] = numbers(rng, 0, 23, 4)
    if rng.random() < 0.25:
        rule["BYMINUTE"] = numbers(rng, 0, 59, 4)
    if rng.random() < 0.1:
        rule["BYSECOND"] = numbers(rng, 0, 59, 3)
    if rng.random() < 0.25 and any(name.startswith("BY") for name in rule):
        rule["BYSETPOS"] = numbers(rng, 1, 5, 3, turn=True)
    if rng.random() < 0.2:
        rule["COUNT"] = str(rng.randint(1, 20))
    elif rng.random() < 0.2:
        until = start + datetime.timedelta(days=rng.randint(0, 900), hours=rng.randint(0, 23))
        rule["UNTIL"] = until.strftime("%Y%m%dT%H%M%S")
    return rule, start


def ours(reportctl, text, start, times):
    """The times, or None where it is refused as never firing."""
    command = [reportctl, "next", "--rrule", text, "--start", start.isoformat(), "--time-zone", "UTC", "--count", str(times)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 2 and "never fires" in done.stderr:
        return None
    if done.returncode != 0:
        raise SystemExit(f"{text} from {start}: exit {done.returncode}: {done.stderr}")
    return [datetime.datetime.fromisoformat(line).replace(tzinfo=None) for line in done.stdout.splitlines()]


def theirs(text, start, times):
    def too_slow(*_):
        raise TooSlow

    signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, BOUND_S)
    try:
        found = []
        for time in rrule.rrulestr(text, dtstart=start):
            if len(found) == times or time > start + HORIZON:
                break
            found.append(time)
        return found
    except ValueError as fault:
        if not any(words in str(fault) for words in ("empty set", "empty rule")):  # an interval that misses all hours or minutes
            raise
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reportctl")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--times", type=int, default=12)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    tally = collections.Counter()
    faults = 0
    for _ in range(options.cases):
        rule, start = random_rule(rng)
        text = ";".join(f"{name}={value}" for name, value in rule.items())
        mine = ours(options.reportctl, text, start, options.times)
        try:
            other = theirs(text, start, options.times)
        except TooSlow:
            tally[f"dateutil took longer than {BOUND_S} s; {'we say it never fires' if mine is None else 'not compared'}"] += 1
            continue
        # dateutil is asked no further than the horizon; twelve times of a rare rule may lie beyond.
        near = [time for time in mine or [] if time <= start + HORIZON]
        if near == other:
            tally["alike" if mine else "alike: it never fires"] += 1
            continue
        why = next((reason for reason, holds in REASONS if holds(rule)), None)
        if why is not None:
            tally[f"differs: {why}"] += 1
            continue
        faults += 1
        print(f"{text} from {start.isoformat()}\n  ours    {mine and [str(t) for t in mine[:6]]}\n  dateutil {[str(t) for t in other[:6]]}")
    for reason, count in sorted(tally.items()):
        print(f"{count:7} {reason}")
    print(f"{options.cases} rules, {faults} differ without an explanation, seed {options.seed}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
