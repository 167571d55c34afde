"""Every TurnQueue and DeliveryQueue keeps these promises, seen by whoever consumes the queue."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from instar.adapters.aws.clients import Clients
from instar.adapters.aws.sqs_queues import SqsDeliveryQueue, SqsTurnQueue
from instar.adapters.local.sqlite_queues import SqliteDeliveryQueue, SqliteQueue, SqliteTurnQueue
from instar.conversation.envelopes import InboundMessage, Reply
from instar.conversation.ports import DeliveryQueue, TurnQueue
from instar.ids import new_id


@dataclass
class Queues:
    """Both queues, and the next body of each; what was taken is acknowledged."""

    turns: TurnQueue
    deliveries: DeliveryQueue
    next_turn: Callable[[], str | None]
    next_delivery: Callable[[], str | None]


def sqlite(request: pytest.FixtureRequest) -> Queues:
    database, clock = request.getfixturevalue("database"), request.getfixturevalue("clock")
    turns = SqliteQueue(database, clock, new_id, name="turns", max_receives=3)
    deliveries = SqliteQueue(database, clock, new_id, name="deliver", max_receives=3)

    def take(queue: SqliteQueue) -> str | None:
        received = queue.receive(30)
        if received is None:
            return None
        queue.delete(received.receipt)
        return received.body

    return Queues(
        SqliteTurnQueue(turns),
        SqliteDeliveryQueue(deliveries),
        lambda: take(turns),
        lambda: take(deliveries),
    )


def sqs(request: pytest.FixtureRequest) -> Queues:
    aws: Clients = request.getfixturevalue("aws")
    client = aws.sqs()
    turns, deliveries = (
        client.get_queue_url(QueueName=name)["QueueUrl"] for name in ("turns.fifo", "deliver.fifo")
    )

    def take(url: str) -> str | None:
        for message in client.receive_message(QueueUrl=url).get("Messages", []):
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return message["Body"]
        return None

    return Queues(
        SqsTurnQueue(client, turns),
        SqsDeliveryQueue(client, deliveries),
        lambda: take(turns),
        lambda: take(deliveries),
    )


@pytest.fixture(params=[sqlite, sqs], ids=lambda build: build.__name__)
def queues(request: pytest.FixtureRequest) -> Queues:
    return request.param(request)


def test_a_message_crosses_the_queue_unchanged(queues, conversation):
    message = conversation.inbound("t1")
    queues.turns.put(message)

    assert InboundMessage.model_validate_json(queues.next_turn()) == message
    assert queues.next_turn() is None
    assert queues.next_delivery() is None


def test_a_reply_crosses_the_queue_unchanged(queues, conversation):
    reply = conversation.reply("t1")
    queues.deliveries.put(reply)

    assert Reply.model_validate_json(queues.next_delivery()) == reply
    assert queues.next_delivery() is None
    assert queues.next_turn() is None


def test_messages_of_a_session_keep_their_order(queues, conversation):
    messages = [conversation.inbound(f"t{number}") for number in (3, 1, 2)]
    for message in messages:
        queues.turns.put(message)

    assert [InboundMessage.model_validate_json(queues.next_turn()) for _ in messages] == messages


def test_a_repeat_of_a_turn_within_minutes_is_dropped_even_after_it_was_taken(queues, conversation):
    queues.turns.put(conversation.inbound("t1"))
    queues.turns.put(conversation.inbound("t1"))
    queues.next_turn()
    queues.turns.put(conversation.inbound("t1"))

    assert queues.next_turn() is None


def test_a_repeat_of_a_reply_within_minutes_is_dropped(queues, conversation):
    queues.deliveries.put(conversation.reply("t1"))
    queues.deliveries.put(conversation.reply("t1"))
    queues.next_delivery()

    assert queues.next_delivery() is None
