"""Compare our zone tables with Python's zoneinfo: every change of offset from 1970 to 2100, a second, an hour
and a day either way, random instants, and local times around every gap and overlap; both directions.

Usage: zone_table.py PROGRAM [--directory DIR] [--zones N] [--seed S] [--known-wrong NAME,...]
The zones of DIR ($RS_TZDIR, else the system's) are compared with zoneinfo on the system's own files, so that files
that another zic made are compared with those; --zones N: a sample of N, always with the difficult ones."""

import argparse
import datetime
import os
import random
import subprocess
import sys
import zoneinfo

DIFFICULT = ["Europe/Dublin", "Africa/Casablanca", "Africa/El_Aaiun", "Asia/Gaza", "America/Nuuk", "America/Santiago",
             "Antarctica/Troll", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein", "America/St_Johns",
             "Africa/Monrovia", "Africa/Cairo", "Asia/Tehran", "Europe/Volgograd", "America/New_York", "UTC"]
RESERVED = ("right/", "posix/")
FIRST = 0
LAST = int(datetime.datetime(2101, 1, 1, tzinfo=datetime.timezone.utc).timestamp())
EPOCH = datetime.datetime(1970, 1, 1)
STEP = 6 * 3600  # shorter than any two changes are apart, but for what the search below splits


def names_of(directory):
    with open(os.path.join(directory, "tzdata.zi"), encoding="ascii") as f:
        found = set()
        for line in f:
            words = line.split()
            if words and words[0] == "Z":
                found.add(words[1])
            elif words and words[0] == "L":
                found.add(words[2])
    return sorted(n for n in found if not n.startswith(RESERVED) and n not in ("Factory", "localtime", "posixrules")
                  and os.path.exists(os.path.join(directory, n)))


def offset_at(zone, second):
    at = datetime.datetime.fromtimestamp(second, tz=zone)
    return int(at.utcoffset().total_seconds())


def changes_of(zone):
    """[(instant, offset before, offset after)], found by looking: zoneinfo tells no transitions."""
    found = []
    day = 86400
    before = offset_at(zone, FIRST)
    for start in range(FIRST, LAST, day):
        after = offset_at(zone, start + day)
        if after == before:
            continue
        low, high = start, start + day
        while high - low > 1:
            middle = (low + high) // 2
            if offset_at(zone, middle) == before:
                low = middle
            else:
                high = middle
        found.append((high, before, after))
        before = after
    return found


def instants_of(changes, rng):
    points = {t + d for t, _, _ in changes for d in (-86400, -3600, -1, 0, 1, 3600, 86400)}
    return sorted(points | {rng.randrange(FIRST, LAST) for _ in range(300)})


def locals_of(changes, rng):
    points = set()
    for t, before, after in changes:
        low, high = t + min(before, after), t + max(before, after)
        points |= {low - 86400, low - 1, low, (low + high) // 2, high - 1, high, high + 86400}
    return sorted(points | {rng.randrange(FIRST + 86400, LAST - 86400) for _ in range(200)})


def local_truth(zone, second):
    """By PEP 495: the offsets that fold=0 and fold=1 give are those before and after."""
    wall = EPOCH + datetime.timedelta(seconds=second)
    before = int(wall.replace(tzinfo=zone, fold=0).utcoffset().total_seconds())
    after = int(wall.replace(tzinfo=zone, fold=1).utcoffset().total_seconds())
    kind = "unique" if before == after else "gap" if after > before else "overlap"
    return f"{kind} {before} {after}"


def questions(name, zone, rng):
    """[(line to ask, answer)] of one zone."""
    changes = changes_of(zone)
    yield from ((f"U {t}", str(offset_at(zone, t))) for t in instants_of(changes, rng))
    yield from ((f"L {t}", local_truth(zone, t)) for t in locals_of(changes, rng))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--directory", default=os.environ.get("RS_TZDIR") or "/usr/share/zoneinfo")
    parser.add_argument("--zones", type=int, default=0)
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--known-wrong", default="")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    names = names_of(options.directory)
    if options.zones:
        sample = set(rng.sample(names, min(options.zones, len(names)))) | set(DIFFICULT)
        names = [n for n in names if n in sample]
    zoneinfo.reset_tzpath(["/usr/share/zoneinfo"])
    asked = []
    for name in names:
        asked.append((name, f"Z {name}", None))
        asked += [(name, line, want) for line, want in questions(name, zoneinfo.ZoneInfo(name), rng)]
    run = subprocess.run([options.program], input="\n".join(a[1] for a in asked) + "\n", text=True, check=True,
                         capture_output=True, env={**os.environ, "RS_TZDIR": options.directory})
    answers = run.stdout.splitlines()
    assert len(answers) == len(asked), f"{len(asked)} questions, {len(answers)} answers"
    wrong = {}
    for (name, line, want), got in zip(asked, answers):
        if (want is None and got.startswith("ERROR")) or (want is not None and got != want):
            wrong.setdefault(name, []).append(f"{line}: {got}, zoneinfo {want}")
    known = set(filter(None, options.known_wrong.split(",")))
    instants = sum(a[1].startswith("U") for a in asked)
    local = sum(a[1].startswith("L") for a in asked)
    print(f"{len(names)} zones, {instants} instants, {local} local times, {sum(map(len, wrong.values()))} wrong, seed {options.seed}")
    for name, lines in sorted(wrong.items()):
        print(f"{name}: {len(lines)} wrong{' (known)' if name in known else ''}, the first: {lines[0]}")
    good = not set(wrong) - known
    print("[  PASSED  ] 1 test(s)." if good else "[  FAILED  ] zone_table\n[  FAILED  ] 1 test(s)")  # as dev/test counts
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
