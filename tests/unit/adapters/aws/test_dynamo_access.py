from datetime import timedelta

import pytest

from instar.access.ports import Grant
from instar.adapters.aws.dynamo_access import DynamoCalls, DynamoGrants
from instar.tools.ports import CallAnswer


@pytest.fixture
def calls(aws, clock):
    return DynamoCalls(clock)


def test_what_is_short_lived_expires_by_itself(calls, clock, aws):
    calls.claim("call", digest="d")
    expires_at = clock() + timedelta(seconds=30)
    grant = Grant(kind="ticket", digest="d", expires_at=expires_at, data={})
    DynamoGrants(clock).put(grant)

    items = aws.dynamodb().scan(TableName="access")["Items"]
    now = int(clock().timestamp())
    assert sorted(int(item["expires"]["N"]) for item in items) == [now + 31, now + 86401]


def test_a_long_answer_and_a_long_name_are_kept(calls):
    name, answer = "ü" * 5000, CallAnswer(status=200, body={"text": "x" * 1_000_000})
    calls.claim(name, digest="d")
    calls.settle(name, answer)

    assert calls.claim(name, digest="d") == answer


def test_settling_what_was_never_claimed_keeps_nothing(calls):
    calls.settle("call", CallAnswer(status=200, body={}))

    assert calls.claim("call", digest="d") is None
