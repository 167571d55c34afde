"""A webhook call from verification to the queue."""

import json

import pytest

from instar.adapters.channels.telegram import TelegramChannel
from instar.channels.ports import WebhookRequest
from instar.channels.webhooks import Doors
from instar.conversation.webhooks import Webhooks
from instar.errors import NotFound, TooLarge, Unauthenticated
from instar.ids import MAIN_AGENT


@pytest.fixture
def webhooks(talk):
    telegram = TelegramChannel(token=lambda: "t", secret=lambda: "s", owner=7)
    return Webhooks(
        doors=Doors(channels={"telegram": telegram}), ingest=talk.ingest, agent=MAIN_AGENT
    )


def request(talk, body: bytes, *, secret: str = "s", account: str = "main") -> WebhookRequest:
    headers = {"x-telegram-bot-api-secret-token": secret}
    return WebhookRequest(account=account, headers=headers, body=body, received_at=talk.clock())


def update(text: str, sender: int = 7) -> bytes:
    person = {"id": sender, "type": "private"}
    message = {"message_id": 1, "chat": person, "from": {"id": sender}, "text": text}
    return json.dumps({"update_id": 1, "message": message}).encode()


def test_an_update_becomes_a_turn_and_200(talk, webhooks):
    status, body = webhooks.call("telegram", request(talk, update("Hi")))

    assert status == 200
    assert talk.turns.get(body["turn"]).message.text == "Hi"


def test_what_is_no_message_is_200_without_a_turn(talk, webhooks):
    assert webhooks.call("telegram", request(talk, b'{"update_id": 1}')) == (200, {})


@pytest.mark.parametrize(
    ("channel", "fields", "body", "kind"),
    [
        ("fax", {}, update("Hi"), NotFound),
        ("telegram", {"account": "other"}, update("Hi"), NotFound),
        ("telegram", {"secret": "wrong"}, update("Hi"), Unauthenticated),
        ("telegram", {}, b"x" * 1_048_577, TooLarge),
    ],
)
def test_a_refusal_stores_nothing(talk, webhooks, channel, fields, body, kind):
    with pytest.raises(kind):
        webhooks.call(channel, request(talk, body, **fields))

    assert talk.turn_queue.receive(30) is None
    assert talk.sessions.list() == []
