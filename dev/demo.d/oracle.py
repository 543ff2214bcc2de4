"""When a rule of the demo fires, computed apart from the scheduler: minute by minute with Python's
zoneinfo. Only what the demo's definitions use; no clock change lies in its few minutes, and a rule
that would need one is refused rather than guessed."""

import datetime
import re
import zoneinfo

UTC = datetime.timezone.utc


def field_matches(text, value, low):
    for item in text.split(","):
        part, _, step = item.partition("/")
        if part == "*":
            first, last = low, 99
        else:
            first, _, last = part.partition("-")
            first, last = int(first), int(last or first)
        if first <= value <= last and (value - first) % int(step or 1) == 0:
            return True
    return False


def cron_firings(rule, zone_name, after, until):
    minute, hour, day, month, weekday = rule.split()
    zone = zoneinfo.ZoneInfo(zone_name)
    if after.astimezone(zone).utcoffset() != until.astimezone(zone).utcoffset():
        raise RuntimeError(f"a clock change in {zone_name} during the demo: run it again later")
    at = after.replace(second=0, microsecond=0) + datetime.timedelta(minutes=1)
    while at <= until:
        local = at.astimezone(zone)
        days = (field_matches(day, local.day, 1), field_matches(weekday, local.isoweekday() % 7, 0))
        # Both restricted: either may match.
        both = day != "*" and weekday != "*"
        if (
            field_matches(minute, local.minute, 0)
            and field_matches(hour, local.hour, 0)
            and field_matches(month, local.month, 1)
            and (any(days) if both else all(days))
        ):
            yield at
        at += datetime.timedelta(minutes=1)


def interval_firings(rule, anchor, after, until):
    length = datetime.timedelta(seconds=int(re.fullmatch(r"(\d+) seconds", rule).group(1)))
    steps = max(0, (after - anchor) // length + 1)
    at = anchor + steps * length
    while at <= until:
        if at > after:
            yield at
        at += length


def once_firings(rule, zone_name, after, until):
    local = datetime.datetime.fromisoformat(rule).replace(tzinfo=zoneinfo.ZoneInfo(zone_name))
    at = local.astimezone(UTC)
    if after < at <= until:
        yield at


def firings(schedule, after, until):
    """Instants of a schedule row (a dict) in (after, until]."""
    if schedule["kind"] == "cron":
        return cron_firings(schedule["rule"], schedule["time_zone"], after, until)
    if schedule["kind"] == "interval":
        return interval_firings(schedule["rule"], schedule["anchor"], after, until)
    return once_firings(schedule["rule"], schedule["time_zone"], after, until)
