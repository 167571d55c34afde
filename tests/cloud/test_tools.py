"""Tool calls from outside: once per Idempotency-Key, by keys that may, else refused in words."""

import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.cloud.stack import eventually

pytestmark = pytest.mark.cloud


def new_key(owner, scopes: list[str], tools: list[str] | None = None) -> str:
    made = owner.post("/v1/keys", json={"scopes": scopes, "tools": tools})
    assert made.status_code == 201, made.text
    return made.json()["key"]


def save(client, document: str, content: str, key: str | None = None) -> httpx.Response:
    headers = {} if key is None else {"idempotency-key": key}
    arguments = {"content": content, "document": document}
    return client.post("/v1/tools/memory_save", json=arguments, headers=headers)


def text_of(owner, document: str) -> str:
    return owner.get(f"/v1/documents/{document}").json()["text"]


def test_the_same_call_twice_is_one_line_one_ledger_row_and_one_answer(stack, owner, word):
    document = f"memory/{word}.md"

    first = save(owner, document, "The bicycle is blue", word)
    again = save(owner, document, "The bicycle is blue", word)

    assert first.status_code == again.status_code == 200, first.text
    assert first.content == again.content
    result = first.json()["result"]
    assert (result["saved"], result["document"]) == (True, document)
    assert text_of(owner, document) == "- The bicycle is blue\n"
    assert [row["state"] for row in stack.writes_of(document)] == ["done"]


def test_the_same_call_at_the_same_moment_writes_once(stack, owner, word):
    document = f"memory/{word}.md"

    def call(_: int) -> httpx.Response:
        return eventually_answered(lambda: save(owner, document, "The kite is red", word))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(call, range(4)))

    assert {answer.content for answer in answers} == {answers[0].content}
    assert text_of(owner, document) == "- The kite is red\n"
    assert [row["state"] for row in stack.writes_of(document)] == ["done"]


def test_another_body_under_the_same_key_is_a_conflict(owner, word):
    save(owner, f"memory/{word}.md", "One", word)

    refused = save(owner, f"memory/{word}.md", "Two", word)

    assert (refused.status_code, refused.json()["type"]) == (409, "conflict")


def test_a_form_as_curl_sends_it_is_read_as_json(owner, word):
    body = json.dumps({"content": f"Das Fahrrad ist grün {word}"}, ensure_ascii=False)

    answered = owner.post(
        "/v1/tools/memory_save",
        content=body.encode(),
        headers={"content-type": "application/x-www-form-urlencoded"},
    )

    assert answered.status_code == 200, answered.text
    assert answered.json()["result"]["saved"] is True
    assert f"grün {word}" in text_of(owner, "MEMORY.md")


def test_a_field_that_the_tool_does_not_know_is_named(owner):
    refused = owner.post("/v1/tools/memory_save", json={"content": "x", "agent": "other"})

    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["agent"]


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"text"', b"\xff\xfe", b""])
def test_what_is_no_object_is_refused(owner, body):
    refused = owner.post("/v1/tools/memory_save", content=body)

    assert (refused.status_code, refused.json()["type"]) == (422, "invalid"), refused.text


def test_a_body_over_the_limit_is_refused(owner):
    refused = owner.post("/v1/tools/memory_save", json={"content": "x" * 1_100_000})

    assert (refused.status_code, refused.json()["type"]) == (413, "invalid")


def test_a_key_that_may_only_read_finds_and_does_not_save(caller, owner, word):
    save(owner, f"memory/{word}.md", f"The {word} is in the attic")
    reader = caller(new_key(owner, ["tools:read"]))

    refused = save(reader, f"memory/{word}.md", "I was here")
    hits = eventually(lambda: search(reader, word))

    assert (refused.status_code, refused.json()["type"]) == (403, "forbidden")
    assert [hit["document"] for hit in hits] == [f"memory/{word}.md"]
    assert "memory_save" not in names(reader)


def test_a_key_narrowed_to_some_tools_knows_no_others(caller, owner):
    narrow = caller(new_key(owner, ["tools:read", "tools:write"], ["memory_get"]))

    assert names(narrow) == ["memory_get"]
    assert save(narrow, "memory/x.md", "x").status_code == 404
    assert narrow.post("/v1/tools/memory_get", json={"document": "MEMORY.md"}).status_code == 200


@pytest.mark.parametrize("key", ["x", "instar_unknown_key", "ik_0000.1111"])
def test_who_has_no_key_gets_nothing(caller, key):
    stranger = caller(key)

    assert stranger.get("/v1/tools").status_code == 401
    assert save(stranger, "memory/x.md", "x").status_code == 401
    assert stranger.get("/v1/sessions").status_code == 401


def test_a_revoked_key_is_dead_at_once(caller, owner):
    made = owner.post("/v1/keys", json={"scopes": ["tools:read"]}).json()
    client = caller(made["key"])
    assert client.get("/v1/tools").status_code == 200

    owner.delete(f"/v1/keys/{made['id']}")

    assert client.get("/v1/tools").status_code == 401


def test_an_unknown_tool_or_route_is_not_found(owner):
    assert owner.post("/v1/tools/memory_destroy", json={}).status_code == 404
    assert owner.get("/v1/no/such/route").status_code == 404


@pytest.mark.parametrize(
    "path", ["../x.md", "memory/a/b.md", "MEMORY.md\x00", "persona/../../config.toml", ""]
)
def test_a_path_that_is_no_document_is_refused_in_words(owner, path):
    answered = save(owner, path, "x")

    problem = answered.json() if answered.status_code != 200 else answered.json()["result"]
    assert answered.status_code in (200, 400, 422), answered.text
    assert answered.status_code != 200 or answered.json()["is_error"] is True
    assert problem["detail"]


def names(client) -> list[str]:
    return [tool["name"] for tool in client.get("/v1/tools").json()["tools"]]


def search(client, query: str):
    answered = client.post("/v1/tools/memory_search", json={"query": query})
    assert answered.status_code == 200, answered.text
    return [hit for hit in answered.json()["result"]["hits"] if query in hit["text"]]


def eventually_answered(call) -> httpx.Response:
    """Repeats a call that runs somewhere else right now, as its refusal says."""
    answers: list[httpx.Response] = []

    def try_again() -> bool:
        answers.append(call())
        return answers[-1].status_code != 409

    assert eventually(try_again), answers[-1].text
    return answers[-1]
