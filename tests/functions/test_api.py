"""The API function: the same FastAPI app as on a laptop, behind API Gateway's events."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

KITCHEN = "agents/main/memory/kitchen.md"


@pytest.fixture
def call(load_function: Any, context: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The deployed function."""
    handler = load_function("api")
    return lambda event: dict(handler(event, context))


@pytest.fixture
def keyed(event: Any, key: Any) -> Callable[..., dict[str, Any]]:
    """An event with a key of these scopes, the owner's unless others are given."""

    def build(name: str, *scopes: str) -> dict[str, Any]:
        found: dict[str, Any] = event(name)
        found["headers"]["authorization"] = f"Bearer {key(*(scopes or ('owner',)))}"
        return found

    return build


def problem(answer: dict[str, Any]) -> tuple[int, str]:
    """Status and type of a refusal; Mangum sends what it does not know as text in base64."""
    assert answer["headers"]["content-type"] == "application/problem+json"
    body = base64.b64decode(answer["body"]) if answer["isBase64Encoded"] else answer["body"]
    return answer["statusCode"], json.loads(body)["type"]


def test_health_needs_no_key(call: Any, event: Any) -> None:
    answer = call(event("api_health"))

    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["ok"] is True


def test_the_page_comes_with_its_headers_and_may_connect_to_the_socket(
    call: Any, event: Any
) -> None:
    answer = call(event("api_page"))

    policy = answer["headers"]["content-security-policy"]
    assert answer["statusCode"] == 200
    assert answer["headers"]["content-type"].startswith("text/html")
    assert "wss://instar-Socket.execute-api.eu-central-1.amazonaws.com" in policy
    assert "unsafe-inline" not in policy
    assert answer["headers"]["x-content-type-options"] == "nosniff"


def test_without_a_key_a_guarded_route_is_401(call: Any, event: Any) -> None:
    assert problem(call(event("api_no_key"))) == (401, "unauthenticated")


def test_a_key_without_the_scope_is_403(call: Any, keyed: Any) -> None:
    assert problem(call(keyed("api_documents", "chat"))) == (403, "forbidden")


def test_an_unknown_route_is_404(call: Any, event: Any) -> None:
    assert problem(call(event("api_unknown_route"))) == (404, "not_found")


def test_a_message_is_202_and_one_queued_turn(call: Any, keyed: Any, account: Any) -> None:
    answer = call(keyed("api_message"))

    (queued,) = account.take("TurnQueue")
    assert answer["statusCode"] == 202
    assert json.loads(answer["body"]) == {"turn": json.loads(queued["Body"])["turn"]}
    assert queued["Attributes"]["MessageGroupId"] == "api:1"


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff\xfe", b"[]", b'{"text":1}', b'{"text":"x","agent":"other"}'],
    ids=["cut off", "utf-8", "list", "number", "unknown field"],
)
def test_a_body_that_is_no_message_is_422(call: Any, keyed: Any, body: bytes) -> None:
    told = keyed("api_message")
    told["body"], told["isBase64Encoded"] = base64.b64encode(body).decode(), True

    assert problem(call(told)) == (422, "invalid")


def test_a_body_in_base64_is_read_as_it_was_sent(call: Any, keyed: Any, account: Any) -> None:
    told = keyed("api_message")
    told["body"] = base64.b64encode(json.dumps({"text": "Grüß dich"}).encode()).decode()
    told["isBase64Encoded"] = True

    answer = call(told)

    (queued,) = account.take("TurnQueue")
    assert answer["statusCode"] == 202
    assert json.loads(queued["Body"])["text"] == "Grüß dich"


def test_a_body_over_a_megabyte_is_413(call: Any, keyed: Any) -> None:
    told = keyed("api_message")
    told["body"] = json.dumps({"text": "x" * 1_048_577})

    assert call(told)["statusCode"] == 413


def test_a_document_is_made_read_and_kept_against_a_stale_writer(
    call: Any, keyed: Any, account: Any
) -> None:
    making = keyed("api_document_put")
    del making["headers"]["if-match"]
    unnamed = call(making)
    making["headers"]["if-none-match"] = "*"
    made = call(making)
    stale = call(keyed("api_document_put"))

    assert problem(unnamed) == (428, "precondition_required")
    assert made["statusCode"] == 200
    assert account.text(KITCHEN) == "# Kitchen\n\n- Anna cannot eat peanuts.\n"
    assert made["headers"]["etag"] == f'"{json.loads(made["body"])["revision"]}"'
    assert problem(stale) == (412, "conflict")


def test_documents_are_listed(call: Any, keyed: Any, account: Any) -> None:
    account.put(KITCHEN, "- The kitchen is green.\n")

    answer = call(keyed("api_documents", "memory:read"))

    listed = json.loads(answer["body"])["documents"]
    assert [each["document"] for each in listed] == ["memory/kitchen.md"]


def test_a_search_while_the_engine_is_down_is_503(call: Any, keyed: Any) -> None:
    told = keyed("api_documents")
    told["rawPath"] = told["requestContext"]["http"]["path"] = "/v1/memory/search"
    told["rawQueryString"], told["queryStringParameters"] = "q=Anna", {"q": "Anna"}

    assert problem(call(told)) == (503, "unavailable")


def test_an_owner_signs_in_for_a_cookie_that_no_script_can_read_and_the_cookie_opens_the_api(
    call: Any, keyed: Any, event: Any
) -> None:
    signing = keyed("api_message")
    signing["rawPath"] = signing["requestContext"]["http"]["path"] = "/v1/login"
    cookie = call(signing)["cookies"][0]

    reading = event("api_no_key")
    reading["cookies"] = [cookie.partition(";")[0]]
    read = call(reading)
    foreign = event("api_message")
    del foreign["headers"]["authorization"]
    foreign["cookies"] = reading["cookies"]
    foreign["headers"]["origin"] = "https://evil.example"

    assert all(word in cookie for word in ("HttpOnly", "Secure", "SameSite=strict"))
    assert read["statusCode"] == 200
    assert problem(call(foreign)) == (403, "forbidden")


def test_a_ticket_names_the_sockets_own_address(call: Any, keyed: Any) -> None:
    told = keyed("api_message", "chat")
    told["rawPath"] = told["requestContext"]["http"]["path"] = "/v1/ticket"

    answer = json.loads(call(told)["body"])

    assert answer["url"] == "wss://instar-Socket.execute-api.eu-central-1.amazonaws.com/live"
    assert answer["ticket"]


def test_webhooks_have_a_function_of_their_own(call: Any, event: Any) -> None:
    assert problem(call(event("webhook_telegram_text"))) == (404, "not_found")
