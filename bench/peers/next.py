"""Peers of bench/next in Python: croniter, dateutil. Prints `peer figure rate` by processor time.

Usage: next.py SECONDS      (of each figure)
"""

import datetime
import random
import sys
import time
import zoneinfo

import croniter
from dateutil import rrule

ZONE = zoneinfo.ZoneInfo("America/New_York")
LOW, HIGH = (int(datetime.datetime(y, 1, 1, tzinfo=datetime.timezone.utc).timestamp()) for y in (2020, 2040))


def rate(peer, figure, seconds, call):
    instants = [datetime.datetime.fromtimestamp(random.randrange(LOW, HIGH), ZONE) for _ in range(4096)]
    count, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        call(instants[count % len(instants)])
        count += 1
    print(peer, figure, round(count / (time.process_time() - begin)), flush=True)


def main():
    seconds = float(sys.argv[1])
    random.seed(20261130)
    rate("croniter", "weekday_new_york", seconds,
         lambda t: croniter.croniter("30 9 * * 1-5", t).get_next(datetime.datetime))
    texts = ["30 9 * * 1-5", "*/15 8-18 * * MON-FRI", "0 0 1 */3 *"]
    start = datetime.datetime(2019, 1, 7, 9, 30)
    rate("croniter", "parse", seconds, lambda t: croniter.croniter(texts[t.second % 3]))
    for figure, text in (("rrule_weekly", "FREQ=WEEKLY;BYDAY=MO,WE,FR"), ("rrule_monthly", "FREQ=MONTHLY;BYDAY=-1FR")):
        rule = rrule.rrulestr(text, dtstart=start)
        rate("dateutil", figure, seconds, lambda t, rule=rule: rule.after(t.replace(tzinfo=None)))


if __name__ == "__main__":
    main()
