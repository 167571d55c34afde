"""The webhook function: a platform's call becomes one queued turn, or a typed refusal."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

TELEGRAM_SECRET = "telegram-secret-of-the-tests"
WEBHOOK_SECRET = "webhook-secret-of-the-tests"


@pytest.fixture
def call(account: Any, load_function: Any, context: Any) -> Callable[[dict[str, Any]], Any]:
    """The deployed function, its secrets stored, its owner Telegram's 4242."""
    account.secret("telegram_secret", TELEGRAM_SECRET)
    account.secret("webhook_secret", WEBHOOK_SECRET)
    handler = load_function("webhook", TelegramOwner="4242", WebhookOwner="owner@home")
    return lambda event: handler(event, context)


def signed(event: dict[str, Any], body: bytes, secret: str = WEBHOOK_SECRET) -> dict[str, Any]:
    """The event with this body and a signature of now."""
    now = str(int(time.time()))
    mac = hmac.new(secret.encode(), now.encode() + b"." + body, hashlib.sha256).hexdigest()
    event["headers"]["x-instar-signature"] = f"t={now},v1={mac}"
    event["body"] = base64.b64encode(body).decode()
    event["isBase64Encoded"] = True
    return event


def a_call(**changed: str) -> bytes:
    fields = {"id": "1", "text": "The door is open.", "sender": "bell", "conversation": "house"}
    return json.dumps(fields | changed).encode()


def test_a_message_of_the_owner_becomes_one_turn_of_its_session(
    call: Any, event: Any, account: Any
) -> None:
    answer = call(event("webhook_telegram_text"))

    (queued,) = account.take("TurnQueue")
    message = json.loads(queued["Body"])
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"]) == {"turn": message["turn"]}
    assert queued["Attributes"]["MessageGroupId"] == "telegram:main:4242"
    assert queued["Attributes"]["MessageDeduplicationId"] == message["turn"]
    assert message["text"] == "Merk dir: Anna verträgt keine Erdnüsse 🥜"
    assert message["principal"]["guest"] is None
    assert sorted(message["principal"]["rights"]) == ["tools:external", "tools:read", "tools:write"]


def test_a_second_delivery_of_an_update_gives_the_same_turn_and_nothing_new(
    call: Any, event: Any, account: Any
) -> None:
    first = call(event("webhook_telegram_text"))
    rows = account.rows("SessionsTable")

    second = call(event("webhook_telegram_text"))

    assert second["body"] == first["body"]
    assert account.rows("SessionsTable") == rows
    assert len(account.take("TurnQueue")) == 1


def test_updates_that_come_shuffled_are_turns_of_their_own(
    call: Any, event: Any, account: Any
) -> None:
    names = ("webhook_telegram_forwarded", "webhook_telegram_base64", "webhook_telegram_text")

    answers = [call(event(name)) for name in names]

    queued = {json.loads(each["Body"])["turn"] for each in account.take("TurnQueue")[:1]}
    turns = {row["pk"]["S"] for row in account.rows("SessionsTable") if row["sk"]["S"] == "turn"}
    assert [answer["statusCode"] for answer in answers] == [200, 200, 200]
    assert queued == {json.loads(answers[0]["body"])["turn"]}
    assert len(turns) == 3


def test_a_body_in_base64_is_read_as_the_platform_sent_it(
    call: Any, event: Any, account: Any
) -> None:
    answer = call(event("webhook_telegram_base64"))

    (queued,) = account.take("TurnQueue")
    assert answer["statusCode"] == 200
    assert json.loads(queued["Body"])["text"] == "Bist du da?"


def test_a_stranger_gets_a_turn_that_only_refuses(call: Any, event: Any, account: Any) -> None:
    answer = call(event("webhook_telegram_stranger"))

    (queued,) = account.take("TurnQueue")
    message = json.loads(queued["Body"])
    assert answer["statusCode"] == 200
    assert message["refused"] is True
    assert message["principal"]["guest"] == "777"
    assert message["principal"]["rights"] == []


@pytest.mark.parametrize("name", ["webhook_telegram_group", "webhook_telegram_edited"])
def test_what_needs_no_answer_is_acknowledged_and_not_queued(
    call: Any, event: Any, account: Any, name: str
) -> None:
    answer = call(event(name))

    assert (answer["statusCode"], json.loads(answer["body"])) == (200, {})
    assert account.take("TurnQueue") == []


def test_a_picture_is_told_to_the_agent_in_words(call: Any, event: Any, account: Any) -> None:
    call(event("webhook_telegram_photo"))

    (queued,) = account.take("TurnQueue")
    assert json.loads(queued["Body"])["text"] == (
        "[a photo came with this message; it cannot be read here]\nour new kitchen"
    )


def test_a_secret_in_a_message_never_reaches_row_or_queue(
    call: Any, event: Any, account: Any
) -> None:
    told = event("webhook_telegram_text")
    key = "sk-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2
    told["body"] = json.dumps(json.loads(told["body"])).replace("Merk dir", f"Merk dir {key}")

    call(told)

    (queued,) = account.take("TurnQueue")
    assert key not in queued["Body"]
    assert key not in json.dumps(account.rows("SessionsTable"))


def test_a_wrong_secret_is_401_and_stores_nothing(call: Any, event: Any, account: Any) -> None:
    answer = call(event("webhook_wrong_secret"))

    assert answer["statusCode"] == 401
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    assert json.loads(answer["body"])["type"] == "unauthenticated"
    assert account.rows("SessionsTable") == []
    assert account.take("TurnQueue") == []


def test_without_a_stored_secret_every_call_is_refused(
    load_function: Any, event: Any, context: Any
) -> None:
    handler = load_function("webhook", TelegramOwner="4242")

    answer = handler(event("webhook_telegram_text"), context)

    assert answer["statusCode"] == 401


def test_a_secret_that_is_stored_later_counts_without_a_new_deployment(
    load_function: Any, event: Any, context: Any, account: Any
) -> None:
    handler = load_function("webhook", TelegramOwner="4242")
    account.secret("telegram_secret", TELEGRAM_SECRET)

    answer = handler(event("webhook_telegram_text"), context)

    assert answer["statusCode"] == 200


def test_a_signed_call_is_202_and_its_sender_a_guest(call: Any, event: Any, account: Any) -> None:
    answer = call(signed(event("webhook_generic_signed"), a_call()))

    (queued,) = account.take("TurnQueue")
    message = json.loads(queued["Body"])
    assert answer["statusCode"] == 202
    assert json.loads(answer["body"]) == {"turn": message["turn"]}
    assert message["session"] == "generic:house"
    assert message["principal"]["guest"] == "bell"


def test_the_sender_that_the_settings_name_is_the_owner(
    call: Any, event: Any, account: Any
) -> None:
    call(signed(event("webhook_generic_signed"), a_call(sender="owner@home")))

    (queued,) = account.take("TurnQueue")
    assert json.loads(queued["Body"])["principal"]["guest"] is None


def test_a_form_content_type_with_json_is_read_as_json(call: Any, event: Any) -> None:
    answer = call(signed(event("webhook_generic_form"), a_call()))

    assert answer["statusCode"] == 202


def test_the_signature_is_over_the_decoded_bytes(call: Any, event: Any) -> None:
    plain = signed(event("webhook_generic_signed"), a_call(text="Grüße aus der Küche"))
    plain["body"] = base64.b64decode(plain["body"]).decode()
    plain["isBase64Encoded"] = False

    assert call(plain)["statusCode"] == 202


def test_the_same_id_with_another_text_is_409(call: Any, event: Any) -> None:
    first = call(signed(event("webhook_generic_signed"), a_call()))
    again = call(signed(event("webhook_generic_signed"), a_call()))

    other = call(signed(event("webhook_generic_signed"), a_call(text="The door is shut.")))

    assert again["body"] == first["body"]
    assert other["statusCode"] == 409
    assert json.loads(other["body"])["type"] == "conflict"


def test_a_captured_signature_is_stale_after_five_minutes(call: Any, event: Any) -> None:
    captured = event("webhook_generic_signed")

    answer = call(captured)

    assert answer["statusCode"] == 401
    assert "seconds off" in json.loads(answer["body"])["detail"]


@pytest.mark.parametrize(
    "body",
    [b"\xff\xfe\x00", b"{", b"[]", b'"text"', b"", b"[" * 100_000, a_call(text="  ")],
    ids=["utf-8", "cut off", "list", "string", "empty", "deep", "blank"],
)
def test_a_signed_body_that_is_no_message_is_422(call: Any, event: Any, body: bytes) -> None:
    answer = call(signed(event("webhook_generic_signed"), body))

    assert answer["statusCode"] == 422
    assert json.loads(answer["body"])["type"] == "invalid"


def test_half_a_surrogate_in_json_is_accepted_and_replaced(
    call: Any, event: Any, account: Any
) -> None:
    body = b'{"id":"1","text":"half \\ud83e","sender":"bell","conversation":"house"}'

    answer = call(signed(event("webhook_generic_signed"), body))

    (queued,) = account.take("TurnQueue")
    assert answer["statusCode"] == 202
    assert json.loads(queued["Body"])["text"] == "half \N{REPLACEMENT CHARACTER}"


def test_a_body_over_a_megabyte_is_413(call: Any, event: Any, account: Any) -> None:
    answer = call(signed(event("webhook_generic_signed"), a_call(text="x" * 1_048_577)))

    assert answer["statusCode"] == 413
    assert account.rows("SessionsTable") == []


def test_a_message_over_the_limit_is_413(call: Any, event: Any) -> None:
    answer = call(signed(event("webhook_generic_signed"), a_call(text="x" * 32_001)))

    assert answer["statusCode"] == 413


def test_base64_that_is_none_is_422(call: Any, event: Any) -> None:
    broken = event("webhook_telegram_base64")
    broken["body"] = "a"

    assert call(broken)["statusCode"] == 422


def test_an_unknown_channel_is_404(call: Any, event: Any) -> None:
    answer = call(event("webhook_unknown_channel"))

    assert answer["statusCode"] == 404
    assert "pigeon" in json.loads(answer["body"])["detail"]


def test_an_unknown_account_is_404(call: Any, event: Any) -> None:
    other = event("webhook_telegram_text")
    other["rawPath"] = other["requestContext"]["http"]["path"] = "/webhooks/telegram/other"

    assert call(other)["statusCode"] == 404


def test_a_route_that_is_no_webhook_is_404(call: Any, event: Any) -> None:
    other = event("webhook_telegram_text")
    other["rawPath"] = other["requestContext"]["http"]["path"] = "/webhooks/telegram/main/x"

    answer = call(other)

    assert answer["statusCode"] == 404
    assert json.loads(answer["body"])["type"] == "not_found"


def test_a_queue_that_does_not_answer_is_503_and_the_platform_calls_again(
    load_function: Any,
    event: Any,
    context: Any,
    account: Any,
    closed_port: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account.secret("telegram_secret", TELEGRAM_SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", closed_port)
    down = load_function("webhook", TelegramOwner="4242")(event("webhook_telegram_text"), context)
    monkeypatch.delenv("AWS_ENDPOINT_URL_SQS")

    again = load_function("webhook")(event("webhook_telegram_text"), context)

    assert (down["statusCode"], json.loads(down["body"])["type"]) == (503, "unavailable")
    assert again["statusCode"] == 200
    assert len(account.take("TurnQueue")) == 1


@pytest.mark.parametrize("lost", ["SessionsTable", "TurnQueue"])
def test_a_resource_that_is_gone_is_500_and_says_where_to_look(
    call: Any, event: Any, account: Any, lost: str
) -> None:
    if lost == "TurnQueue":
        account.client("sqs").delete_queue(QueueUrl=account.name(lost))
    else:
        account.client("dynamodb").delete_table(TableName=account.name(lost))

    answer = call(event("webhook_telegram_text"))

    problem = json.loads(answer["body"])
    assert (answer["statusCode"], problem["type"]) == (500, "misconfigured")
    assert (
        problem["fix"] == "Check the role of this function and the names of the stack's resources."
    )


def test_settings_in_the_bucket_name_the_owner_without_a_deployment(
    load_function: Any, event: Any, context: Any, account: Any
) -> None:
    account.secret("telegram_secret", TELEGRAM_SECRET)
    account.put("config.toml", "[telegram]\nowner = 4242\n")

    load_function("webhook")(event("webhook_telegram_text"), context)

    (queued,) = account.take("TurnQueue")
    assert json.loads(queued["Body"])["refused"] is False


def test_a_function_without_its_resources_names_all_that_are_missing(
    load_function: Any, monkeypatch: pytest.MonkeyPatch, account: Any
) -> None:
    from instar.errors import Misconfigured

    for _, given in account.of_type("AWS::Serverless::Function"):
        if given["CodeUri"] == "functions/webhook":
            lacking = dict(given["Environment"]["Variables"])
    whole = account.environment
    account.environment = lambda name: whole(name) | dict.fromkeys(lacking, "")

    with pytest.raises(Misconfigured) as caught:
        load_function("webhook")

    assert all(name in caught.value.detail for name in lacking)
