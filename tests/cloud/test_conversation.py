"""From a Telegram update to a fact that another conversation knows, and who is not let in."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from instar.testing.wire import (
    Pause,
    Step,
    WireRequest,
    bot_error,
    delta,
    sse,
    text_step,
    tool_step,
    usage,
)
from tests.cloud.model_server import system_text
from tests.cloud.stack import eventually
from tests.cloud.telegram import SECRET

pytestmark = pytest.mark.cloud

STRANGER = 666


def line_with(word: str):
    """A model that answers with the line of its prompt that holds the word."""

    def answer(request: WireRequest) -> Step:
        lines = [line for line in system_text(request).splitlines() if word in line]
        assert lines, f"nothing about {word} stands in the prompt"
        return text_step(f"I remember: {lines[0].removeprefix('- ')}")

    return answer


def test_what_is_said_on_telegram_is_known_in_every_later_conversation(
    stack, owner, model, new_chat, word
):
    fact = f"Anna cannot eat {word}"
    model.expect(
        f"remember {word}", tool_step(("memory_save", {"content": fact})), text_step("Noted.")
    )
    model.expect(f"same chat {word}", line_with(word))
    model.expect(f"other session {word}", line_with(word))
    chat = new_chat()
    before = len(versions(stack, "MEMORY.md"))

    answered = chat.say(f"Please remember {word} for Anna")
    eventually(lambda: len(chat.replies()) == 1)

    assert answered.status_code == 200
    assert chat.replies() == ["Noted."]
    assert f"- {fact}" in memory_text(stack)
    assert len(versions(stack, "MEMORY.md")) == before + 1
    [written] = [
        row for row in stack.writes_of("MEMORY.md") if row.get("turn") == turn_of(answered)
    ]
    assert (written["state"], written["author"]) == ("done", "agent:main")
    hits = eventually(lambda: found(owner, word))
    assert [hit["document"] for hit in hits] == ["MEMORY.md"]

    began = time.monotonic()
    assert chat.say("/new").status_code == 200
    assert chat.say(f"same chat {word}: what about Anna?").status_code == 200
    assert time.monotonic() - began < 2, "a warm webhook answers within a second"
    eventually(lambda: len(chat.replies()) == 3)
    said = owner.post(
        f"/v1/sessions/cloud-{word}/messages?wait=25",
        json={"text": f"other session {word}: what about Anna?"},
    )

    assert chat.replies()[2] == f"I remember: {fact}"
    assert said.status_code == 200, said.text
    assert said.json()["reply"] == f"I remember: {fact}"


def test_the_event_of_the_bucket_alone_indexes_what_the_owner_uploads(stack, owner, word):
    key = f"agents/main/memory/{word}.md"
    stack.client("s3").put_object(
        Bucket=stack.outputs["DocumentsBucket"],
        Key=key,
        Body=f"# Garage\n\nDie {word} liegt im dritten Regal.\n".encode(),
    )

    hits = eventually(lambda: found(owner, word))

    assert [hit["document"] for hit in hits] == [f"memory/{word}.md"]
    stack.client("s3").delete_object(Bucket=stack.outputs["DocumentsBucket"], Key=key)
    assert eventually(lambda: not found(owner, word)), "a removed document is no longer found"


def test_the_same_update_gives_one_reply_however_often_it_comes(model, new_chat, word):
    model.expect(word, text_step("Once."))
    chat = new_chat()
    update = chat.update(f"say {word}")

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(chat.post, [update] * 5))
    answers.append(chat.post(update))
    eventually(chat.replies)
    answers.append(chat.post(update))
    time.sleep(2)

    assert {answer.status_code for answer in answers} == {200}
    assert len({turn_of(answer) for answer in answers}) == 1
    assert chat.replies() == ["Once."]


def test_a_stranger_gets_a_polite_refusal_and_nothing_else(stack, model, new_chat, word):
    chat = new_chat(STRANGER)
    before = memory_text(stack)

    chat.say(f"remember that the owner owes me {word}")
    chat.say("/new")
    eventually(lambda: len(chat.replies()) == 2)

    assert [text for text in chat.replies() if "only my owner" not in text] == []
    assert memory_text(stack) == before
    assert stack.rows("SessionsTable", f"session#telegram:main:{chat.number}") == [] or not any(
        word in json.dumps(row, default=str)
        for row in stack.rows("SessionsTable", f"session#telegram:main:{chat.number}")
        if row["sk"].startswith("messages#")
    )


@pytest.mark.parametrize("secret", ["wrong", "", "hook-secret-2"])
def test_a_wrong_secret_stores_and_queues_nothing(stack, new_chat, secret):
    chat = new_chat()

    refused = chat.post(chat.update("let me in"), secret)

    assert refused.status_code == 401
    assert refused.json()["type"] == "unauthenticated"
    assert stack.rows("SessionsTable", f"session#telegram:main:{chat.number}") == []
    listed = {row["sk"] for row in stack.rows("SessionsTable", "sessions")}
    assert f"telegram:main:{chat.number}" not in listed
    assert stack.queued("TurnQueueUrl") == 0


@pytest.mark.parametrize(
    "kind", ["edited_message", "my_chat_member", "callback_query", "a_kind_of_the_future"]
)
def test_an_update_of_another_kind_is_acknowledged_and_does_nothing(stack, new_chat, kind):
    chat = new_chat()
    update = chat.update("not for you")
    update[kind] = update.pop("message")

    answered = chat.post(update)

    assert (answered.status_code, answered.json()) == (200, {})
    listed = {row["sk"] for row in stack.rows("SessionsTable", "sessions")}
    assert f"telegram:main:{chat.number}" not in listed


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{not json", 422),
        (b'{"update_id": 1, "message": "\xff"}', 422),
        (b"[]", 422),
        (b'{"message": {}}', 422),
        (b'{"update_id": 1, "pad": "' + b"x" * 1_100_000 + b'"}', 413),
    ],
    ids=["json", "utf-8", "list", "number", "size"],
)
def test_a_body_that_is_no_update_is_refused_in_words(anybody, body, status):
    # As a binary body, which API Gateway hands on as it came: in a text it mends bad UTF-8.
    content_type = {"content-type": "application/octet-stream"}
    headers = {"x-telegram-bot-api-secret-token": SECRET, **content_type}

    refused = anybody.post("/webhooks/telegram/main", content=body, headers=headers)

    assert refused.status_code == status, refused.text
    assert refused.headers["content-type"].startswith("application/problem+json")
    assert refused.json()["type"] == "invalid"
    assert refused.json()["detail"]


@pytest.mark.parametrize("path", ["telegram/other", "carrier-pigeon/main"])
def test_an_unknown_channel_or_account_is_not_found(anybody, path):
    assert anybody.post(f"/webhooks/{path}", json={}).status_code == 404


def test_a_reply_that_the_platform_did_not_take_comes_again_soon(model, bot, new_chat, word):
    model.expect(word, text_step("At last."))
    bot.fail(bot_error(503), bot_error(429, retry_after=1))
    chat = new_chat()

    chat.say(f"say {word}")
    eventually(chat.replies, 30)

    assert chat.replies() == ["At last."]


def test_two_conversations_go_on_side_by_side_and_one_stays_in_order(model, new_chat, word):
    released = threading.Event()
    slow = Step(
        chunks=(sse(delta(content="Slow"), done=False), Pause(released, 60), sse(*ending(" one.")))
    )
    model.expect(f"first {word}", slow)
    model.expect(f"second {word}", text_step("Second."))
    model.expect(f"third {word}", text_step("Third."))
    held, other = new_chat(), new_chat()

    held.say(f"first {word}")
    held.say(f"second {word}")
    other.say(f"third {word}")
    eventually(other.replies)

    assert other.replies() == ["Third."]
    assert held.replies() == [], "the first is held, so the second waits"
    released.set()
    eventually(lambda: len(held.replies()) == 2)
    assert held.replies() == ["Slow one.", "Second."]


def ending(text: str):
    return delta(content=text), delta("stop"), usage(10, 2)


def turn_of(answer) -> str:
    return answer.json()["turn"]


def found(owner, query: str):
    """The hits that hold the word: a document's name finds its other passages too."""
    hits = owner.get("/v1/memory/search", params={"q": query}).json()["hits"]
    return [hit for hit in hits if query in hit["text"]]


def memory_text(stack) -> str:
    client = stack.client("s3")
    try:
        found = client.get_object(
            Bucket=stack.outputs["DocumentsBucket"], Key="agents/main/MEMORY.md"
        )
    except client.exceptions.NoSuchKey:
        return ""
    return found["Body"].read().decode()


def versions(stack, document: str):
    listed = stack.client("s3").list_object_versions(
        Bucket=stack.outputs["DocumentsBucket"], Prefix=f"agents/main/{document}"
    )
    return listed.get("Versions", [])
