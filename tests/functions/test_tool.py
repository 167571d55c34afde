"""The tool function: tool calls from outside, by key, once per Idempotency-Key."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

MEMORY = "agents/main/MEMORY.md"
Call = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]


@pytest.fixture
def call(load_function: Any, context: Any) -> Call:
    """The deployed function: status and body of its answer."""
    handler = load_function("tool")

    def run(event: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        answer = handler(event, context)
        return answer["statusCode"], json.loads(answer["body"])

    return run


@pytest.fixture
def keyed(event: Any, key: Any) -> Callable[..., dict[str, Any]]:
    """An event with a key of these scopes, the owner's unless others are given."""

    def build(name: str, *scopes: str, tools: list[str] | None = None) -> dict[str, Any]:
        found: dict[str, Any] = event(name)
        made = key(*(scopes or ("owner",)), tools=tools)
        found["headers"]["authorization"] = f"Bearer {made}"
        return found

    return build


def test_a_save_lands_in_the_document_once_although_the_index_is_down(
    call: Call, keyed: Any, account: Any
) -> None:
    told = keyed("tool_save")

    first, second = call(told), call(told)

    done = [row for row in account.rows("LedgerTable") if row.get("state") == {"S": "done"}]
    status, body = first
    assert status == 200
    assert body["is_error"] is False
    assert body["result"]["saved"] is True
    assert body["result"]["indexed"] is False
    assert second == first
    assert account.text(MEMORY) == "- Anna cannot eat peanuts.\n"
    assert len(done) == 1


def test_another_body_under_the_same_key_is_409(call: Call, keyed: Any, account: Any) -> None:
    told = keyed("tool_save")
    told["body"] = json.dumps({"content": " "})
    call(told)

    told["body"] = json.dumps({"content": "Anna can eat peanuts."})
    status, body = call(told)

    assert (status, body["type"]) == (409, "conflict")


def test_a_key_is_authorised_before_an_earlier_answer_is_given_again(
    call: Call, keyed: Any
) -> None:
    told = keyed("tool_save")
    told["body"] = json.dumps({"content": " "})
    call(told)

    other = keyed("tool_save", "tools:read")
    other["body"] = told["body"]
    status, body = call(other)

    assert (status, body["type"]) == (403, "forbidden")


def test_two_callers_may_use_the_same_idempotency_key(call: Call, keyed: Any) -> None:
    first = keyed("tool_save")
    first["body"] = json.dumps({"content": " "})
    second = keyed("tool_save", "tools:write")
    second["body"] = json.dumps({"content": "\t"})

    answers = [call(first), call(second)]

    assert [status for status, _ in answers] == [200, 200]
    assert answers[0][1]["call"] != answers[1][1]["call"]


def test_a_refusal_of_the_tool_is_an_answer_with_is_error(call: Call, keyed: Any) -> None:
    told = keyed("tool_save")
    told["body"] = json.dumps({"content": "x", "document": "../x.md"})

    status, body = call(told)

    assert (status, body["is_error"], body["result"]["type"]) == (200, True, "invalid")


@pytest.mark.parametrize("document", ["../x.md", "memory/a/b.md", "MEMORY.md%00", "/etc/passwd"])
def test_no_path_leaves_the_agents_documents(
    call: Call, keyed: Any, account: Any, document: str
) -> None:
    told = keyed("tool_save")
    told["body"] = json.dumps({"content": "x", "document": document})

    _, body = call(told)

    assert body["result"]["type"] == "invalid"
    assert account.client("s3").list_objects_v2(Bucket=account.bucket)["KeyCount"] == 0


def test_the_list_names_what_the_key_may_call(call: Call, keyed: Any) -> None:
    whole = call(keyed("tool_list"))
    reading = call(keyed("tool_list", "tools:read"))
    narrowed = call(keyed("tool_list", "tools:read", tools=["memory_get"]))

    def names(answer: Any) -> set[str]:
        return {tool["name"] for tool in answer[1]["tools"]}

    assert whole[0] == 200
    assert {"memory_save", "memory_search", "memory_get", "memory_delete"} <= names(whole)
    assert "memory_save" not in names(reading)
    assert names(narrowed) == {"memory_get"}


def test_a_form_in_base64_that_holds_json_is_read_as_json(
    call: Call, keyed: Any, account: Any
) -> None:
    status, body = call(keyed("tool_save_form"))

    assert (status, body["result"]["saved"]) == (200, True)
    assert account.text(MEMORY) == "- Anna mag Käsekuchen.\n"


@pytest.mark.parametrize(
    "body",
    [b"content=Anna", b"", b"\xff\xfe", b"[1]", b"null", b"[" * 100_000],
    ids=["form", "empty", "utf-8", "list", "null", "deep"],
)
def test_a_body_that_is_no_json_object_is_422(call: Call, keyed: Any, body: bytes) -> None:
    told = keyed("tool_save")
    told["body"], told["isBase64Encoded"] = base64.b64encode(body).decode(), True

    status, answer = call(told)

    assert (status, answer["type"]) == (422, "invalid")


def test_an_unknown_field_is_422_and_named(call: Call, keyed: Any) -> None:
    status, body = call(keyed("tool_unknown_field"))

    assert status == 422
    assert [error["field"] for error in body["errors"]] == ["agent"]


def test_a_body_over_the_limit_is_413(call: Call, keyed: Any) -> None:
    told = keyed("tool_save")
    told["body"] = json.dumps({"content": "x" * 1_048_577})

    assert call(told)[0] == 413


@pytest.mark.parametrize("name", ["tool_bad_key", "tool_no_key", "tool_list"])
def test_a_call_without_a_known_key_is_401(call: Call, event: Any, name: str) -> None:
    status, body = call(event(name))

    assert (status, body["type"]) == (401, "unauthenticated")
    assert body["fix"]


def test_a_reading_key_may_not_write(call: Call, keyed: Any, account: Any) -> None:
    status, body = call(keyed("tool_save", "tools:read"))

    assert (status, body["type"]) == (403, "forbidden")
    assert account.rows("LedgerTable") == []


def test_a_tool_outside_the_keys_list_does_not_exist_for_it(call: Call, keyed: Any) -> None:
    assert call(keyed("tool_save", "tools:write", tools=["memory_delete"]))[0] == 404


def test_an_unknown_tool_is_404(call: Call, keyed: Any) -> None:
    status, body = call(keyed("tool_unknown"))

    assert (status, body["type"]) == (404, "not_found")


def test_an_unknown_route_is_404(call: Call, keyed: Any) -> None:
    told = keyed("tool_list")
    told["rawPath"] = told["requestContext"]["http"]["path"] = "/v1/tools/memory_save/now"

    assert call(told)[0] == 404


def test_a_search_while_the_engine_is_down_is_503_and_may_be_repeated(
    call: Call, keyed: Any
) -> None:
    told = keyed("tool_search")
    told["headers"]["idempotency-key"] = "k"

    answers = [call(told), call(told)]

    assert [(status, body["type"]) for status, body in answers] == [(503, "unavailable")] * 2


def test_a_stored_document_can_be_read_while_the_engine_is_down(
    call: Call, keyed: Any, account: Any
) -> None:
    revision = account.put(MEMORY, "- Anna cannot eat peanuts.\n")
    told = keyed("tool_save")
    told["rawPath"] = told["requestContext"]["http"]["path"] = "/v1/tools/memory_get"
    told["body"] = json.dumps({"document": "MEMORY.md"})

    status, body = call(told)

    assert status == 200
    assert body["result"]["text"] == "- Anna cannot eat peanuts.\n"
    assert body["result"]["revision"] == revision
