import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from instar.adapters.aws.dynamo_inbox import DynamoInbox
from instar.adapters.aws.dynamo_sessions import DynamoSessions
from instar.conversation.envelopes import InboundMessage, ReplyAddress
from instar.conversation.ports import SessionSummary
from instar.errors import TooLarge
from instar.ids import MAIN_AGENT, SessionId, TurnId
from instar.principal import owner

AT = datetime(2031, 5, 4, 12, 0, tzinfo=UTC)


def inbound(turn: str, **fields) -> InboundMessage:
    whole = {
        "turn": TurnId(turn),
        "identity": turn,
        "digest": "d",
        "session": SessionId("telegram:1"),
        "text": "hello",
        "principal": owner(MAIN_AGENT),
        "address": ReplyAddress(channel="telegram", account="main", conversation="1"),
        "at": AT,
    }
    return InboundMessage(**(whole | fields))


@pytest.fixture
def inbox(aws):
    return DynamoInbox(aws.dynamodb(), "sessions", sleep=lambda _: None)


def test_the_webhook_loads_no_heavy_library():
    program = (
        "import sys; import instar.adapters.aws.dynamo_inbox, instar.adapters.aws.sqs_queues, "
        "instar.adapters.aws.ssm_secrets, instar.adapters.aws.clients; "
        "print([name for name in ('fastapi', 'pynamodb', 'opensearchpy', 'starlette', 'numpy') "
        "if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


def test_an_accepted_message_puts_its_session_on_the_list(inbox, clock):
    inbox.accept(inbound("t1"))

    assert DynamoSessions(clock).list() == [
        SessionSummary(session="telegram:1", channel="telegram", address="main:1", at=AT)
    ]


def test_an_older_message_does_not_take_the_session_down_the_list(inbox, clock):
    inbox.accept(inbound("t1"))
    inbox.accept(inbound("t2", at=AT - timedelta(hours=1)))

    (summary,) = DynamoSessions(clock).list()
    assert summary.at == AT


def test_a_request_that_is_sent_again_is_the_same_transaction(inbox, wire):
    wire.next(None, None, wire.plain(500))

    assert inbox.accept(inbound("t1")) is True

    first, again = (json.loads(request.body) for request in wire.requests[-2:])
    assert first["ClientRequestToken"]
    assert first == again


def test_a_session_that_is_written_to_at_that_moment_is_tried_again(inbox, wire):
    reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
    canceled = wire.dynamodb_error("TransactionCanceledException", CancellationReasons=reasons)
    wire.next(None, None, canceled)

    assert inbox.accept(inbound("t1")) is True


def test_a_message_that_no_item_holds_is_too_large(inbox, wire):
    with pytest.raises(TooLarge):
        inbox.accept(inbound("t1", text="ü" * 200_000))

    assert wire.requests == []
