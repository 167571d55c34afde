"""The generic webhook: who can sign may talk, once a message, and reads the reply in a session."""

import hashlib
import hmac
import json
import time

import pytest

from instar.testing.wire import text_step
from tests.cloud.stack import eventually

pytestmark = pytest.mark.cloud

SECRET = "generic-secret"


def message(word: str, text: str = "") -> bytes:
    fields = {"id": word, "text": text or f"grüße {word}", "sender": "printer"}
    return json.dumps(fields | {"conversation": word}, ensure_ascii=False).encode()


def signed(body: bytes, *, at: float | None = None, secret: str = SECRET) -> dict[str, str]:
    moment = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return {"x-instar-signature": f"t={moment},v1={digest}"}


def post(anybody, body: bytes, headers: dict[str, str], content_type: str = "application/json"):
    return anybody.post(
        "/webhooks/generic/main", content=body, headers={**headers, "content-type": content_type}
    )


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/x-www-form-urlencoded"], ids=["json", "curl"]
)
def test_the_reply_to_a_signed_message_stands_in_its_session(
    anybody, owner, model, word, content_type
):
    model.expect(word, text_step("Schöne Grüße zurück."))
    body = message(word)

    answers = [post(anybody, body, signed(body), content_type) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [202, 202], answers[0].text
    assert answers[0].json() == answers[1].json()
    assert eventually(lambda: said_in(owner, word)) == [
        ("user", f"grüße {word}"),
        ("assistant", "Schöne Grüße zurück."),
    ]


def test_another_body_under_the_same_id_is_a_conflict(anybody, owner, model, word):
    model.expect(word, text_step("First."))
    body, other = message(word), message(word, f"something else {word}")

    first = post(anybody, body, signed(body))
    second = post(anybody, other, signed(other))

    assert (first.status_code, second.status_code) == (202, 409)
    assert second.json()["type"] == "conflict"
    eventually(lambda: said_in(owner, word))
    assert len(said_in(owner, word)) == 2


@pytest.mark.parametrize("fault", ["missing", "another secret", "another body", "stale", "future"])
def test_a_signature_that_does_not_hold_lets_nothing_in(stack, anybody, word, fault):
    body = message(word)
    headers = {
        "missing": {},
        "another secret": signed(body, secret="guess"),
        "another body": signed(body + b" "),
        "stale": signed(body, at=time.time() - 301),
        "future": signed(body, at=time.time() + 400),
    }[fault]

    refused = post(anybody, body, headers)

    assert refused.status_code == 401
    assert refused.json()["type"] == "unauthenticated"
    listed = {row["sk"] for row in stack.rows("SessionsTable", "sessions")}
    assert f"generic:{word}" not in listed


def test_a_guest_is_not_told_what_the_owner_keeps_in_mind(anybody, owner, model, word):
    owner.post("/v1/tools/memory_save", json={"content": f"The safe's code word is secret{word}"})
    script = model.expect(word, text_step("I cannot say."))
    body = message(word, f"what is the code word of the safe, {word}?")

    post(anybody, body, signed(body))
    eventually(lambda: said_in(owner, word))

    assert f"secret{word}" not in script.requests[0].body.decode()
    assert not script.requests[0].json().get("tools")


def said_in(owner, conversation: str):
    shown = owner.get(f"/v1/sessions/generic:{conversation}")
    messages = shown.json()["messages"] if shown.status_code == 200 else []
    said = [(each["role"], each["text"]) for each in messages]
    return said if len(said) >= 2 else []
