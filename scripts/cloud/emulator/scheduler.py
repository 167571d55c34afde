"""Repair: EventBridge Scheduler ignores ScheduleExpressionTimezone and is up to 12 seconds late.

Seen as: an `at()` or `cron()` of the owner's zone fires at that clock time in UTC. Repaired, the
emulator's own sweep is replaced by this one, which looks every second.
"""

import logging
import re
import time
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ministack.core.responses import (
    get_account_id,
    get_region,
    new_uuid,
    set_request_account_id,
    set_request_region,
)
from ministack.services import eventbridge, scheduler

SWEEP_SECONDS = 1

logger = logging.getLogger(__name__)

Schedule = dict[str, Any]
Key = tuple[str, str, str]


def repair() -> None:
    scheduler._tick_schedules = sweep
    scheduler._SCHEDULE_TICK_INTERVAL = SWEEP_SECONDS


def sweep() -> None:
    now = time.time()
    caller = get_account_id(), get_region()
    fired = scheduler._schedule_last_fired
    try:
        for key, schedule in list(scheduler._schedules._data.items()):
            deletes = schedule.get("ActionAfterCompletion") == "DELETE"
            if has_ended(schedule, now):
                if deletes:
                    forget(key)
            elif is_due(schedule, fired.setdefault(key, first_look(schedule, now)), now):
                fired[key] = now
                fire(key, schedule, now)
                if deletes and at_instant(schedule) is not None:
                    forget(key)
    finally:
        set_request_account_id(caller[0])
        set_request_region(caller[1])


def first_look(schedule: Schedule, now: float) -> float:
    """When a schedule that never fired is thought to have: `at()` long ago, `rate()` when made."""
    if at_instant(schedule) is not None:
        return 0
    is_rate = eventbridge._parse_rate_seconds(expression(schedule)) is not None
    return float(schedule.get("CreationDate", now)) if is_rate else now


def has_ended(schedule: Schedule, now: float) -> bool:
    end = scheduler._to_epoch(schedule.get("EndDate"))
    return schedule.get("State") == "ENABLED" and end is not None and now > end


def is_due(schedule: Schedule, last: float, now: float) -> bool:
    start = scheduler._to_epoch(schedule.get("StartDate"))
    if schedule.get("State") != "ENABLED" or (start is not None and now < start):
        return False
    instant = at_instant(schedule)
    if instant is not None:
        return last < instant <= now
    seconds = eventbridge._parse_rate_seconds(expression(schedule))
    if seconds is not None:
        return now - last >= float(seconds)
    fields = eventbridge._parse_cron_fields(expression(schedule))
    if fields is None:
        return False
    following = eventbridge._cron_next_fire(fields, datetime.fromtimestamp(last, zone(schedule)))
    # As instants: within one zone Python compares clock times, which repeat in autumn.
    return following is not None and following.timestamp() <= now


def at_instant(schedule: Schedule) -> float | None:
    found = re.fullmatch(r"\s*at\((.+)\)\s*", expression(schedule))
    if not found:
        return None
    try:
        moment = datetime.fromisoformat(found[1].strip())
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone(schedule))).timestamp()


def expression(schedule: Schedule) -> str:
    return str(schedule.get("ScheduleExpression", ""))


def zone(schedule: Schedule) -> tzinfo:
    try:
        return ZoneInfo(schedule.get("ScheduleExpressionTimezone") or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def fire(key: Key, schedule: Schedule, now: float) -> None:
    account, region, name = key
    target = schedule.get("Target") or {}
    if not target.get("Arn"):
        return
    set_request_account_id(account)
    set_request_region(region)
    event = {
        "EventId": new_uuid(),
        "Source": "aws.scheduler",
        "DetailType": "Scheduled Event",
        "Detail": "{}",
        "Time": now,
        "Resources": [schedule.get("Arn", "")],
        "Account": account,
        "Region": region,
    }
    try:
        eventbridge._invoke_target(target, event, schedule)
    except Exception:  # one target's fault must not stop the others
        logger.exception("schedule %s of %s could not fire", name, account)


def forget(key: Key) -> None:
    scheduler._schedules._data.pop(key, None)
    scheduler._schedule_last_fired.pop(key, None)
