"""Every Channel that is a webhook keeps these promises; below, what each platform adds."""

import hashlib
import hmac
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from instar.adapters.channels.generic_webhook import GenericWebhookChannel
from instar.adapters.channels.telegram import TelegramChannel
from instar.adapters.http import Egress, Trust, json_post
from instar.channels.outcomes import NotDelivered, PartlySent, Uncertain
from instar.channels.ports import Channel, WebhookRequest
from instar.errors import (
    Invalid,
    Misconfigured,
    Throttled,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from instar.principal import Audience
from instar.testing.wire import BotApiServer, Step, bot_error, cut_step

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
SECRET = "s3cret"
TOKEN = "123:AbC"
OWNER = 42


def request(body: bytes, headers: dict[str, str], at: datetime = NOW) -> WebhookRequest:
    return WebhookRequest(account="main", headers=headers, body=body, received_at=at)


@dataclass
class Platform:
    """A channel, how its platform signs a body, and one message of its kind."""

    channel: Callable[[str | None], Channel]
    signed: Callable[[bytes, str], dict[str, str]]
    message: Callable[[str], dict[str, Any]]
    extra: dict[str, Any] = field(default_factory=dict)

    def call(self, body: bytes, *, secret: str = SECRET) -> WebhookRequest:
        return request(body, self.signed(body, secret))


def telegram_update(text: str = "hello", **message: Any) -> dict[str, Any]:
    base = {
        "message_id": 5,
        "date": 1,
        "from": {"id": OWNER, "is_bot": False},
        "chat": {"id": OWNER, "type": "private"},
        "text": text,
    }
    merged = {**base, **message}
    return {"update_id": 17, "message": {k: v for k, v in merged.items() if v is not None}}


def generic_message(text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"id": "17", "text": text, "sender": "ann", "conversation": "home", **fields}


def telegram_headers(body: bytes, secret: str) -> dict[str, str]:
    return {"x-telegram-bot-api-secret-token": secret}


def generic_headers(body: bytes, secret: str, at: datetime = NOW) -> dict[str, str]:
    time = str(int(at.timestamp()))
    mac = hmac.new(secret.encode(), f"{time}.".encode() + body, hashlib.sha256).hexdigest()
    return {"x-instar-signature": f"t={time},v1={mac}"}


def telegram(secret: str | None = SECRET, owner: int | None = OWNER) -> TelegramChannel:
    return TelegramChannel(token=lambda: TOKEN, secret=lambda: secret, owner=owner)


def generic(secret: str | None = SECRET) -> GenericWebhookChannel:
    return GenericWebhookChannel(secret=lambda: secret, owner_sender="ann")


@pytest.fixture(params=["telegram", "generic"])
def platform(request) -> Platform:
    if request.param == "telegram":
        return Platform(telegram, telegram_headers, telegram_update)
    return Platform(generic, generic_headers, generic_message)


def test_a_signed_message_is_received(platform):
    body = json.dumps(platform.message("Grüße 👋")).encode()

    [incoming] = platform.channel(SECRET).receive(platform.call(body))

    assert incoming.text == "Grüße 👋"
    assert incoming.is_owner
    assert incoming.audience is Audience.PRIVATE


def test_the_same_delivery_has_the_same_identity(platform):
    body = json.dumps(platform.message("hello")).encode()
    channel = platform.channel(SECRET)

    assert channel.receive(platform.call(body)) == channel.receive(platform.call(body))


@pytest.mark.parametrize("secret", ["wrong", "", "s3cre", "s3cret\u00e9"])
def test_a_bad_signature_is_refused(platform, secret):
    body = json.dumps(platform.message("hello")).encode()

    with pytest.raises(Unauthenticated):
        platform.channel(SECRET).receive(platform.call(body, secret=secret))


def test_a_missing_signature_is_refused(platform):
    body = json.dumps(platform.message("hello")).encode()

    with pytest.raises(Unauthenticated):
        platform.channel(SECRET).receive(request(body, {}))


@pytest.mark.parametrize("configured", [None, ""])
def test_without_a_configured_secret_everything_is_refused(platform, configured):
    body = json.dumps(platform.message("hello")).encode()

    with pytest.raises(Unauthenticated):
        platform.channel(configured).receive(platform.call(body, secret=configured or ""))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[]", b"null", b"[" * 100_000, b"{}"])
def test_a_body_that_is_not_the_platforms_is_invalid(platform, body):
    with pytest.raises(Invalid):
        platform.channel(SECRET).receive(platform.call(body))


def test_a_body_over_a_megabyte_is_too_large(platform):
    with pytest.raises(TooLarge):
        platform.channel(SECRET).receive(platform.call(b" " * 1_000_001))


def test_lone_surrogates_become_replacement_characters(platform):
    body = json.dumps(platform.message("a\ud83cb")).encode()

    [incoming] = platform.channel(SECRET).receive(platform.call(body))

    assert incoming.text == "a\N{REPLACEMENT CHARACTER}b"


def test_receiving_loads_no_http_client():
    script = (
        "import sys; import instar.adapters.channels.telegram, "
        "instar.adapters.channels.generic_webhook; "
        "sys.exit(any(name in sys.modules for name in ('httpx', 'fastapi', 'boto3')))"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# The generic webhook


def receive_generic(message: dict[str, Any]):
    body = json.dumps(message).encode()
    [incoming] = generic().receive(request(body, generic_headers(body, SECRET)))
    return incoming


@pytest.mark.parametrize("seconds", [-301, 301, 61_200])
def test_a_signature_older_or_newer_than_five_minutes_is_refused(seconds):
    body = json.dumps(generic_message()).encode()
    at = NOW - timedelta(seconds=seconds)

    with pytest.raises(Unauthenticated):
        generic().receive(request(body, generic_headers(body, SECRET, at)))


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_a_signature_within_five_minutes_is_fine(seconds):
    body = json.dumps(generic_message()).encode()
    at = NOW - timedelta(seconds=seconds)

    assert generic().receive(request(body, generic_headers(body, SECRET, at)))


@pytest.mark.parametrize("header", ["", "t=1", "v1=ab", "t=x,v1=ab", "t=1,t=2,v1=ab", "t=-1,v1=ab"])
def test_a_signature_header_of_another_shape_is_refused(header):
    with pytest.raises(Unauthenticated):
        generic().receive(request(b"{}", {"x-instar-signature": header}))


def test_the_body_is_signed_byte_for_byte():
    body = json.dumps(generic_message()).encode()
    headers = generic_headers(body, SECRET)

    with pytest.raises(Unauthenticated):
        generic().receive(request(body + b" ", headers))


def test_a_sender_whom_the_settings_do_not_name_is_a_guest():
    incoming = receive_generic(generic_message(sender="bob", is_owner=True, owner="bob"))

    assert not incoming.is_owner
    assert incoming.audience is Audience.SHARED
    assert (incoming.identity, incoming.session, incoming.sender) == ("17", "home", "bob")


@pytest.mark.parametrize(
    "fields",
    [
        {"id": ""},
        {"id": 17},
        {"id": "x" * 181},
        {"sender": None},
        {"conversation": "a\nb"},
        {"conversation": " "},
        {"text": ""},
        {"text": " \n"},
        {"text": ["a"]},
        {"text": "x" * 100_001},
    ],
)
def test_a_field_that_is_missing_or_of_another_kind_is_invalid(fields):
    with pytest.raises(Invalid):
        receive_generic(generic_message(**fields))


# Telegram, receiving


def receive_telegram(update: dict[str, Any], owner: int | None = OWNER):
    body = json.dumps(update).encode()
    return telegram(owner=owner).receive(request(body, telegram_headers(body, SECRET)))


def test_without_a_configured_owner_telegram_is_refused():
    with pytest.raises(Unauthenticated):
        receive_telegram(telegram_update(), owner=None)


def test_an_update_is_known_by_its_number():
    [incoming] = receive_telegram(telegram_update())

    assert incoming.identity == "update:17"
    assert (incoming.session, incoming.conversation, incoming.sender) == ("42", "42", "42")


@pytest.mark.parametrize(
    "message",
    [
        {"from": {"id": 43, "is_bot": False}},
        {"from": {"id": "42", "is_bot": False}, "chat": {"id": 42, "type": "private"}},
        {"chat": {"id": -100, "type": "group"}},
        {"sender_chat": {"id": 42}},
        {"chat": {"id": 42}},
    ],
)
def test_nobody_else_and_nowhere_else_is_the_owner(message):
    assert not any(incoming.is_owner for incoming in receive_telegram(telegram_update(**message)))


def test_a_group_is_a_shared_audience():
    [incoming] = receive_telegram(telegram_update(chat={"id": -100, "type": "supergroup"}))

    assert incoming.audience is Audience.SHARED


@pytest.mark.parametrize(
    "mark",
    [
        {"forward_origin": {"type": "hidden_user"}},
        {"forward_date": 1},
        {"forward_from": {"id": OWNER}},
        {"forward_sender_name": "Jo"},
    ],
)
def test_forwarded_text_is_marked(mark):
    [incoming] = receive_telegram(telegram_update(**mark))

    assert incoming.forwarded


@pytest.mark.parametrize(
    "update",
    [
        {"update_id": 1, "edited_message": telegram_update()["message"]},
        {"update_id": 1, "channel_post": telegram_update()["message"]},
        {"update_id": 1, "callback_query": {}},
        {"update_id": 1},
        telegram_update(**{"from": {"id": 9, "is_bot": True}}),
        telegram_update(text=None, new_chat_members=[]),
    ],
)
def test_edits_bots_and_unknown_kinds_give_nothing(update):
    assert receive_telegram(update) == ()


def test_a_caption_is_the_text_and_what_cannot_be_read_is_named():
    [incoming] = receive_telegram(telegram_update(text=None, caption="look", photo=[]))
    [voice] = receive_telegram(telegram_update(text=None, voice={}))

    assert (incoming.text, incoming.unread) == ("look", "photo")
    assert (voice.text, voice.unread) == ("", "voice")


def test_a_topic_is_a_thread_and_a_chain_of_replies_is_not():
    forum = {"id": -100200, "type": "supergroup", "is_forum": True}
    [topic] = receive_telegram(telegram_update(chat=forum, message_thread_id=55))
    [chain] = receive_telegram(
        telegram_update(chat={"id": -1, "type": "supergroup"}, message_thread_id=55)
    )

    assert (topic.thread, topic.session) == ("55", "-100200:55")
    assert (chain.thread, chain.session) == (None, "-1")


# Telegram, sending


@dataclass
class Bot:
    channel: TelegramChannel
    server: BotApiServer

    def send(self, text: str, *, thread: str | None = None, skip_parts: int = 0) -> list[dict]:
        self.channel.send("42", thread, text, key="r1", skip_parts=skip_parts)
        return self.server.sent


@pytest.fixture
def bot() -> Iterator[Bot]:
    with BotApiServer() as server:
        channel = TelegramChannel(
            token=lambda: TOKEN,
            secret=lambda: SECRET,
            owner=OWNER,
            post=json_post(lambda: Egress().client(Trust.OWNER, timeout_seconds=5)),
            api_base=server.url + "/",
        )
        yield Bot(channel, server)


THREE = "\n\n".join(letter * 4000 for letter in "abc")


def test_markdown_goes_out_as_html(bot):
    [sent] = bot.send("**hi** <you>")

    assert sent["chat_id"] == 42
    assert (sent["text"], sent["parse_mode"]) == ("<b>hi</b> &lt;you&gt;", "HTML")
    assert bot.server.paths == [f"/bot{TOKEN}/sendMessage"]


def test_every_part_goes_to_the_topic_in_order(bot):
    sent = bot.send(THREE, thread="55")

    assert [body["text"].strip()[0] for body in sent] == ["a", "b", "c"]
    assert {body["message_thread_id"] for body in sent} == {55}


def test_the_general_topic_takes_no_thread(bot):
    [sent] = bot.send("hi", thread="1")

    assert "message_thread_id" not in sent


def test_markup_that_telegram_cannot_parse_is_sent_once_as_plain_text(bot):
    bot.server.fail(bot_error(400))

    [sent] = bot.send("**hi**")

    assert sent["text"] == "**hi**"
    assert "parse_mode" not in sent


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([bot_error(400), bot_error(400)], NotDelivered),
        ([bot_error(403)], NotDelivered),
        ([bot_error(429, retry_after=33)], Throttled),
        ([bot_error(500)], Unavailable),
        ([bot_error(502)], Unavailable),
        ([Step(status=502, chunks=(b"<html>",))], Unavailable),
        ([bot_error(401)], Misconfigured),
        ([bot_error(404)], Misconfigured),
        ([cut_step()], Uncertain),
    ],
)
def test_what_an_answer_means_for_the_first_part(bot, answers, kind):
    bot.server.fail(*answers)

    with pytest.raises(kind) as caught:
        bot.send(THREE)

    assert type(caught.value) is kind
    assert TOKEN not in str(caught.value.problem())
    assert bot.server.sent == []


def test_telegrams_wait_is_passed_on(bot):
    bot.server.fail(bot_error(429, retry_after=33))

    with pytest.raises(Throttled) as caught:
        bot.send("hi")

    assert caught.value.retry_after_seconds == 33


def test_nobody_listening_is_unavailable_and_nothing_went_out():
    with BotApiServer() as server:
        address = server.url
    post = json_post(lambda: Egress().client(Trust.OWNER, timeout_seconds=2))
    channel = TelegramChannel(
        token=lambda: TOKEN, secret=lambda: None, owner=None, post=post, api_base=address
    )

    with pytest.raises(Unavailable) as caught:
        channel.send("42", None, "hi", key="r1")

    assert type(caught.value) is Unavailable


def test_after_a_refused_second_part_only_the_rest_is_sent_again(bot):
    bot.server.fail(None, bot_error(429, retry_after=7))

    with pytest.raises(PartlySent) as caught:
        bot.send(THREE)
    assert (caught.value.parts_sent, caught.value.retry_after_seconds) == (1, 7)
    sent = bot.send(THREE, skip_parts=caught.value.parts_sent)

    assert [body["text"].strip()[0] for body in sent] == ["a", "b", "c"]


def test_a_second_part_that_broke_off_is_uncertain(bot):
    bot.server.fail(None, cut_step())

    with pytest.raises(Uncertain) as caught:
        bot.send(THREE)

    assert type(caught.value) is Uncertain


def test_ten_thousand_characters_arrive_as_three_messages(bot):
    sent = bot.send("word " * 2000)

    assert len(sent) == 3
    assert "".join(body["text"] for body in sent) == "word " * 2000


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_reply_is_not_delivered(bot, text):
    with pytest.raises(NotDelivered):
        bot.send(text)


def test_a_channel_made_for_receiving_does_not_send():
    with pytest.raises(Misconfigured):
        telegram().send("42", None, "hi", key="r1")


def test_a_place_that_is_no_chat_is_not_delivered(bot):
    with pytest.raises(NotDelivered):
        bot.channel.send("somewhere", None, "hi", key="r1")
