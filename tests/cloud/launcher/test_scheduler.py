"""Schedules fire at the clock time of their own zone, on the second."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

pytestmark = pytest.mark.cloud

ZONE = "Etc/GMT+5"


def test_schedules_fire_in_their_zone(cloud, outputs, wait_for):
    scheduler = cloud.client("scheduler")
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=5)
    minute = soon.replace(second=0) + timedelta(minutes=1)
    here, there = soon.astimezone(ZoneInfo(ZONE)), minute.astimezone(ZoneInfo(ZONE))
    name = uuid.uuid4().hex
    expressions = {
        f"at-{name}": f"at({here:%Y-%m-%dT%H:%M:%S})",
        f"cron-{name}": f"cron({there.minute} {there.hour} * * ? *)",
        # Read as UTC it would be due in the same minute; in its zone that is five hours later.
        f"other-{name}": f"cron({minute.minute} {minute.hour} * * ? *)",
    }
    for schedule, expression in expressions.items():
        scheduler.create_schedule(
            Name=schedule,
            ScheduleExpression=expression,
            ScheduleExpressionTimezone=ZONE,
            FlexibleTimeWindow={"Mode": "OFF"},
            ActionAfterCompletion="DELETE",
            Target={
                "Arn": outputs["FiredArn"],
                "RoleArn": outputs["SchedulerRole"],
                "Input": json.dumps({"schedule": schedule}),
            },
        )

    fired = {}

    def receive():
        queue, url = cloud.client("sqs"), outputs["FiredUrl"]
        for message in queue.receive_message(QueueUrl=url).get("Messages", []):
            fired[json.loads(message["Body"])["schedule"]] = datetime.now(UTC)
            queue.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return len(fired) == 2

    wait_for(receive, 75)
    left = {given["Name"] for given in scheduler.list_schedules()["Schedules"]}
    for schedule in expressions.keys() & left:
        scheduler.delete_schedule(Name=schedule)

    assert set(fired) == {f"at-{name}", f"cron-{name}"}
    assert timedelta(0) <= fired[f"at-{name}"] - soon < timedelta(seconds=6)
    assert timedelta(0) <= fired[f"cron-{name}"] - minute < timedelta(seconds=6)
    assert f"at-{name}" not in left
