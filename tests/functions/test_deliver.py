"""The deliver function: replies go out through their channel, in order, each once."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from instar.testing.wire import BotApiServer, bot_error, cut_step

GROUP = "telegram:main:4242:"
Committed = Callable[..., dict[str, Any]]


@pytest.fixture
def bot() -> Iterator[BotApiServer]:
    with BotApiServer() as bot:
        yield bot


@pytest.fixture
def deliver(
    account: Any, load_function: Any, context: Any, bot: BotApiServer
) -> Callable[[dict[str, Any]], Any]:
    """The deployed function; what it sends to Telegram comes to `bot`."""
    account.secret("telegram_token", "7:token")
    handler = load_function("deliver", TelegramOwner="4242", TelegramApiBase=bot.url)
    return lambda event: handler(event, context)


@pytest.fixture
def committed(account: Any, event: Any) -> Committed:
    """The reply of a turn that has ended: its row stands in the outbox."""

    def commit(number: int = 1, *, name: str = "deliver_reply") -> dict[str, Any]:
        from instar.adapters.aws.clients import Clients
        from instar.adapters.aws.dynamo_inbox import DynamoInbox
        from instar.adapters.aws.dynamo_sessions import DynamoSessions
        from instar.adapters.aws.dynamo_turns import DynamoTurns
        from instar.adapters.aws.rows import bind_tables
        from instar.clock import utc_now
        from instar.conversation.envelopes import InboundMessage, Reply
        from instar.conversation.ports import TurnCommit
        from instar.ids import TurnId

        table = account.name("SessionsTable")
        bind_tables(sessions=table)
        reply = json.loads(event(name)["Records"][0]["body"])
        reply |= {"id": f"reply{number}", "turn": f"turn{number}", "text": f"Reply {number}"}
        message = json.loads(event("turn_message")["Records"][0]["body"])
        message |= {"turn": reply["turn"], "session": reply["session"]}
        inbox = DynamoInbox(Clients(account.session).dynamodb(), table)
        inbox.accept(InboundMessage.model_validate(message))
        lease = DynamoTurns(utc_now).lease(TurnId(reply["turn"]), seconds=90)
        end = TurnCommit(
            messages=[],
            state="completed",
            reply=Reply.model_validate(reply),
            events=[],
            at=datetime.now(UTC),
        )
        DynamoSessions(utc_now).commit(lease, end)
        return dict(reply)

    return commit


def sent(bot: BotApiServer) -> list[str]:
    return [body["text"] for body in bot.sent]


def states(account: Any) -> dict[str, str]:
    """How far every reply is."""
    rows = [row for row in account.rows("SessionsTable") if row["sk"]["S"] == "reply"]
    return {row["pk"]["S"]: row["state"]["S"] for row in rows}


def test_a_reply_goes_out_to_its_chat_and_is_marked_sent(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any, account: Any
) -> None:
    reply = committed()

    answer = deliver(batch((GROUP, json.dumps(reply))))

    assert answer == {"batchItemFailures": []}
    assert bot.paths == ["/bot7:token/sendMessage"]
    assert [(body["chat_id"], body["text"]) for body in bot.sent] == [(4242, "Reply 1")]
    assert states(account) == {"reply#reply1": "sent"}


def test_a_redelivered_reply_is_not_sent_again(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any
) -> None:
    told = batch((GROUP, json.dumps(committed())))

    answers = [deliver(told), deliver(told)]

    assert answers == [{"batchItemFailures": []}] * 2
    assert sent(bot) == ["Reply 1"]


def test_what_goes_out_is_the_outboxs_text_whatever_the_queue_says(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any
) -> None:
    forged = committed() | {"text": "forged"}

    deliver(batch((GROUP, json.dumps(forged))))

    assert sent(bot) == ["Reply 1"]


def test_when_message_2_fails_it_and_the_rest_of_its_group_come_back(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any, failed: Any
) -> None:
    first, second, third, other = (json.dumps(committed(number)) for number in (1, 2, 3, 4))
    bot.fail(None, bot_error(500))

    answer = deliver(
        batch((GROUP, first), (GROUP, second), (GROUP, third), ("telegram:main:9:", other))
    )

    assert failed(answer) == ["m2", "m3"]
    assert sent(bot) == ["Reply 1", "Reply 4"]


def test_what_came_back_goes_out_in_order_the_next_time(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any
) -> None:
    replies = [json.dumps(committed(number)) for number in (1, 2, 3)]
    bot.fail(None, bot_error(500))
    deliver(batch(*((GROUP, reply) for reply in replies)))

    answer = deliver(batch(*((GROUP, reply) for reply in replies[1:])))

    assert answer == {"batchItemFailures": []}
    assert sent(bot) == ["Reply 1", "Reply 2", "Reply 3"]


def test_a_whole_batch_that_fails_comes_back_item_by_item(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any, failed: Any
) -> None:
    bot.fail(bot_error(429, retry_after=3))

    answer = deliver(batch((GROUP, json.dumps(committed()))))

    assert failed(answer) == ["m1"]


def test_a_reply_whose_fate_is_unknown_stays_claimed_and_comes_back(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any, failed: Any, account: Any
) -> None:
    bot.fail(cut_step())
    told = batch((GROUP, json.dumps(committed())))

    first, second = deliver(told), deliver(told)

    assert (failed(first), failed(second)) == (["m1"], ["m1"])
    assert states(account) == {"reply#reply1": "sending"}


def test_a_reply_that_telegram_refuses_for_good_is_given_up(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any, account: Any
) -> None:
    bot.fail(bot_error(403), bot_error(403))

    answer = deliver(batch((GROUP, json.dumps(committed()))))

    assert answer == {"batchItemFailures": []}
    assert states(account) == {"reply#reply1": "given_up"}


def test_a_reply_of_the_session_channel_has_nowhere_else_to_go(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any, account: Any
) -> None:
    reply = committed(name="deliver_session")

    answer = deliver(batch(("session::api:1:", json.dumps(reply))))

    assert answer == {"batchItemFailures": []}
    assert bot.calls == []
    assert states(account) == {"reply#reply1": "sent"}


def test_a_body_that_is_no_reply_comes_back_and_stops_only_its_group(
    deliver: Any, committed: Any, bot: BotApiServer, batch: Any, failed: Any
) -> None:
    good, behind = json.dumps(committed(1)), json.dumps(committed(2))

    answer = deliver(batch(("other", good), (GROUP, "not json"), (GROUP, behind)))

    assert failed(answer) == ["m2", "m3"]
    assert sent(bot) == ["Reply 1"]


def test_a_bot_without_a_token_leaves_the_reply_for_later(
    load_function: Any, committed: Any, context: Any, batch: Any, failed: Any, account: Any
) -> None:
    told = batch((GROUP, json.dumps(committed())))

    answer = load_function("deliver", TelegramOwner="4242")(told, context)

    assert failed(answer) == ["m1"]
    assert states(account) == {"reply#reply1": "pending"}
