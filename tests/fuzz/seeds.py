"""Inputs to begin with, made of the golden cases, the shipped calendars and the installed time zones.

Usage: seeds.py DIRECTORY      (writes DIRECTORY/NAME/* for each target fuzz_NAME)

They reach most of what a target can do, so that libFuzzer begins where it matters. The corpora in the tree,
tests/fuzz/NAME, are a small choice of them, beside what once broke something.
"""

import csv
import hashlib
import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ZONEINFO = os.environ.get("RS_TZDIR") or "/usr/share/zoneinfo"
# Each has something that the others have not: no transition, daylight time that is negative, of half an hour, of
# two hours, over a year's end; a day that is missing, changes at midnight, seconds in old offsets, a long table.
ZONES = ("UTC", "Asia/Tokyo", "Europe/Dublin", "Australia/Lord_Howe", "Antarctica/Troll", "Pacific/Apia", "Asia/Beirut",
         "America/Nuuk", "Africa/Monrovia", "Africa/Casablanca", "America/New_York")
HEADS = ("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y//EN\r\n", "END:VCALENDAR\r\n")


def rows(name):
    with open(os.path.join(TESTS, "cases", name), encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def local(text):
    """19970902T090000 as a local time."""
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}T{text[9:11]}:{text[11:13]}:{text[13:15]}"


def crons():
    for row in rows("cron_cases.csv") + rows("cron_invalid.csv"):
        yield row["expression"]


def rrules():
    for row in rows("rrule_cases.csv"):
        start, times = local(row["dtstart_local"]), row["expected_first5_local"].split(";")
        quoted = '","'.join(t.replace("T", " ") for t in times[:2])
        yield f"{start}\n{row['rrule']}"
        if times[-1]:
            yield f'{start}\n{row["rrule"]}\n{{"{quoted}"}}\n{{"{times[-1]}"}}'


def rules():
    yield "cron\nEurope/Berlin\n*/20 30 2 * * *"
    for row in rows("cron_cases.csv")[::5]:
        if row["dialect"] != "quartz6":
            yield f"cron\n{row['zone']}\n{row['expression']}"
        yield f"once\n{row['zone']}\n{row['expected_next_list'].split(';')[0][:19]}"
        yield f"once\n{row['zone']}\n{row['expected_next_list'].split(';')[0]}"
    for text in ("15 minutes", "1 hour 30 minutes", "2 days", "90 s", "20 s", "1 week 2 d", "1 month", "5 m", "100000 days"):
        yield f"interval\nEurope/Berlin\n{text}\n2026-03-29T00:00:00.5+01:00"
    for text in list(rrules())[::6]:
        start, rest = text.split("\n", 1)
        rule, *lists = rest.split("\n")
        yield "\n".join(["rrule", "America/New_York", rule, start, *lists])


def locals_and_instants():
    for row in rows("cron_cases.csv")[::4]:
        yield row["start_utc_or_local"]
        yield row["expected_next_list"].split(";")[0][:19]
    for row in rows("business_cases.csv")[::4]:
        yield row["input"]
    yield "2026-11-30T18:00:00.123456+05:45"
    yield '{"2030-04-13 06:00:00","2030-04-12 06:00:00","2030-04-13 06:00:00"}'


def calendars_csv():
    folder = os.path.join(TESTS, "..", "conf", "calendars")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".csv"):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                lines = f.readlines()
            yield "".join(lines[:30])
    yield "# weekend: none\n" + "".join(f"2026-{1 + i // 28:02}-{1 + i % 28:02},holiday,{i}\n" for i in range(56))


def calendars_ics():
    event = "BEGIN:VEVENT\r\nUID:{0}\r\nDTSTAMP:20260101T000000Z\r\n{1}\r\nSUMMARY:{2}\r\nEND:VEVENT\r\n"
    for i, (day, name) in enumerate((
            ("DTSTART;VALUE=DATE:20261225", "Christmas"),
            ("DTSTART;VALUE=DATE:20261231\r\nDTEND;VALUE=DATE:20270102", "Year\\, end"),
            ("DTSTART;VALUE=DATE:20260101\r\nDURATION:P2D", "Zwei Tage \u00e4"),
            ("DTSTART:20260101T100000Z", "a time of day"),
            ("DTSTART;VALUE=DATE:20260101\r\nRRULE:FREQ=YEARLY", "each year"),
            ("DTSTART;VALUE=DATE:20260101\r\nSTATUS:CANCELLED", "not at all"))):
        yield HEADS[0] + event.format(i, day, name) + HEADS[1]


def zones():
    for name in ZONES:
        with open(os.path.join(ZONEINFO, name), "rb") as f:
            yield f.read()


TARGETS = {
    "cron": crons, "rrule": rrules, "rule": rules, "local": locals_and_instants, "calendar_csv": calendars_csv,
    "calendar_ics": calendars_ics, "zone": zones,
}


def main(directory):
    for target, make in TARGETS.items():
        folder = os.path.join(directory, target)
        os.makedirs(folder, exist_ok=True)
        for seed in make():
            data = seed if isinstance(seed, bytes) else seed.encode()
            with open(os.path.join(folder, hashlib.sha256(data).hexdigest()[:16]), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
