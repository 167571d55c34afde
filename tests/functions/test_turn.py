"""The turn function: a queued message becomes one committed reply, however often it comes."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from instar.testing.wire import ScriptedModelServer, error_step, text_step, tool_step

MEMORY = "agents/main/MEMORY.md"


@pytest.fixture
def received(account: Any, event: Any) -> Callable[[str], dict[str, Any]]:
    """An event whose message the webhook has received and Lambda has taken from the queue."""

    def receive(name: str) -> dict[str, Any]:
        from instar.adapters.aws.clients import Clients
        from instar.adapters.aws.dynamo_inbox import DynamoInbox
        from instar.adapters.aws.sqs_queues import SqsTurnQueue
        from instar.conversation.envelopes import InboundMessage

        found: dict[str, Any] = event(name)
        (record,) = found["Records"]
        message = InboundMessage.model_validate_json(record["body"])
        clients = Clients(account.session)
        DynamoInbox(clients.dynamodb(), account.name("SessionsTable")).accept(message)
        SqsTurnQueue(clients.sqs(), account.name("TurnQueue")).put(message)
        (taken,) = account.take("TurnQueue")
        record["receiptHandle"] = taken["ReceiptHandle"]
        return found

    return receive


def turn_rows(account: Any) -> list[tuple[str, str]]:
    """State and session of every turn."""
    rows = [row for row in account.rows("SessionsTable") if row["sk"]["S"] == "turn"]
    return [(row["state"]["S"], row["session"]["S"]) for row in rows]


def replies(account: Any) -> list[dict[str, Any]]:
    """What was handed over for delivery."""
    return [json.loads(message["Body"]) for message in account.take("DeliveryQueue")]


def test_a_message_is_answered_once_by_the_model(
    load_function: Any, received: Any, context: Any, account: Any
) -> None:
    account.put(MEMORY, "- The owner is called Anna.\n")
    account.secret("model_api_key", "sk-of-the-tests")
    told = received("turn_message")
    with ScriptedModelServer(text_step("Gemerkt.")) as model:
        handler = load_function("turn", Model="openai-chat/m", ModelBaseUrl=model.base_url)

        answer = handler(told, context)

    (request,) = model.requests
    (reply,) = replies(account)
    assert answer == {"batchItemFailures": []}
    assert request.headers["authorization"] == "Bearer sk-of-the-tests"
    assert "The owner is called Anna." in request.body.decode()
    assert reply["text"] == "Gemerkt."
    assert reply["address"]["conversation"] == "4242"
    assert turn_rows(account) == [("completed", "telegram:main:4242")]


def test_a_redelivered_turn_asks_the_model_nothing_and_hands_its_reply_over_again(
    load_function: Any, received: Any, context: Any, account: Any, event: Any
) -> None:
    told = received("turn_message")
    with ScriptedModelServer(text_step("Gemerkt.")) as model:
        handler = load_function("turn", Model="openai-chat/m", ModelBaseUrl=model.base_url)
        handler(told, context)
        first = replies(account)
        lose_deliveries(account)

        answer = handler(event("turn_redelivered"), context)

    assert answer == {"batchItemFailures": []}
    assert replies(account) == first
    assert [reply["text"] for reply in first] == ["Gemerkt."]


def lose_deliveries(account: Any) -> None:
    """A new delivery queue: what was handed over is gone, and SQS remembers no id of it."""
    queue, sqs = account.name("DeliveryQueue"), account.client("sqs")
    sqs.delete_queue(QueueUrl=queue)
    sqs.create_queue(QueueName=queue.rpartition("/")[2], Attributes={"FifoQueue": "true"})


def test_a_tool_call_of_the_model_is_written_before_the_reply_goes_out(
    load_function: Any, received: Any, context: Any, account: Any
) -> None:
    told = received("turn_message")
    fact = {"content": "Anna cannot eat peanuts."}
    with ScriptedModelServer(tool_step(("memory_save", fact)), text_step("Noted.")) as model:
        handler = load_function("turn", Model="openai-chat/m", ModelBaseUrl=model.base_url)

        answer = handler(told, context)

    done = [row for row in account.rows("LedgerTable") if row.get("state") == {"S": "done"}]
    assert answer == {"batchItemFailures": []}
    assert account.text(MEMORY) == "- Anna cannot eat peanuts.\n"
    assert [row["author"]["S"] for row in done] == ["agent:main"]
    assert [reply["text"] for reply in replies(account)] == ["Noted."]


def test_a_refused_message_gets_the_polite_refusal_and_no_model(
    load_function: Any, received: Any, context: Any, account: Any
) -> None:
    told = received("turn_refused")
    with ScriptedModelServer() as model:
        handler = load_function("turn", Model="openai-chat/m", ModelBaseUrl=model.base_url)

        answer = handler(told, context)

    (reply,) = replies(account)
    assert answer == {"batchItemFailures": []}
    assert reply["address"]["conversation"] == "777"
    assert account.client("s3").list_objects_v2(Bucket=account.bucket)["KeyCount"] == 0


def test_a_model_that_fails_gives_an_honest_reply_and_no_redelivery(
    load_function: Any, received: Any, context: Any, account: Any
) -> None:
    told = received("turn_message")
    with ScriptedModelServer(error_step(401, code="invalid_api_key")) as model:
        handler = load_function("turn", Model="openai-chat/m", ModelBaseUrl=model.base_url)

        answer = handler(told, context)

    (reply,) = replies(account)
    assert answer == {"batchItemFailures": []}
    assert "INSTAR_MODEL_API_KEY" in reply["text"]
    assert turn_rows(account) == [("failed", "telegram:main:4242")]


def test_new_needs_no_model(load_function: Any, received: Any, context: Any, account: Any) -> None:
    told = received("turn_new")

    answer = load_function("turn")(told, context)

    assert answer == {"batchItemFailures": []}
    assert turn_rows(account) == [("completed", "api:1")]


def test_a_turn_near_the_deadline_keeps_its_message_and_goes_on_next_time(
    load_function: Any, received: Any, context: Any, account: Any
) -> None:
    told = received("turn_message")
    context.seconds = 1
    with ScriptedModelServer(text_step("Gemerkt.")) as model:
        handler = load_function("turn", Model="openai-chat/m", ModelBaseUrl=model.base_url)
        first = handler(told, context)
        asked_before = len(model.requests)
        visible_at_once = len(account.take("TurnQueue"))
        context.seconds = 300

        second = handler(told, context)

    assert first == {"batchItemFailures": [{"itemIdentifier": told["Records"][0]["messageId"]}]}
    assert asked_before == 0
    assert visible_at_once == 1
    assert second == {"batchItemFailures": []}
    assert [reply["text"] for reply in replies(account)] == ["Gemerkt."]


def test_a_message_that_cannot_be_read_comes_back_and_stops_only_its_group(
    load_function: Any, received: Any, event: Any, context: Any, account: Any
) -> None:
    good, broken, behind = (
        received("turn_new")["Records"][0],
        event("turn_unreadable")["Records"][0],
        copy.deepcopy(received("turn_message")["Records"][0]),
    )

    answer = load_function("turn")({"Records": [good, broken, behind]}, context)

    assert answer == {
        "batchItemFailures": [
            {"itemIdentifier": broken["messageId"]},
            {"itemIdentifier": behind["messageId"]},
        ]
    }
    assert sorted(turn_rows(account)) == [("completed", "api:1"), ("queued", "telegram:main:4242")]


def test_a_message_whose_turn_is_not_in_the_table_comes_back(
    load_function: Any, event: Any, context: Any
) -> None:
    told = event("turn_message")

    answer = load_function("turn")(told, context)

    assert answer == {"batchItemFailures": [{"itemIdentifier": told["Records"][0]["messageId"]}]}
