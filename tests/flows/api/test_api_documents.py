"""Documents, search and tools over HTTP."""

import pytest

NEW = {"if-none-match": "*"}


def put(client, name, text, revision=None):
    headers = NEW if revision is None else {"if-match": f'"{revision}"'}
    return client.put(f"/v1/documents/{name}", json={"text": text}, headers=headers)


def test_a_document_is_made_read_listed_and_found(instar):
    with instar.client("memory:read", "memory:write") as client:
        made = put(client, "memory/travel.md", "The train to Bergen leaves at seven.\n")
        read = client.get("/v1/documents/memory/travel.md")
        listed = client.get("/v1/documents").json()["documents"]
        found = client.get("/v1/memory/search", params={"q": "Bergen"}).json()

    assert made.status_code == 200
    assert made.json()["revision"] == read.json()["revision"]
    assert made.headers["etag"] == f'"{read.json()["revision"]}"' == read.headers["etag"]
    assert read.json()["text"] == "The train to Bergen leaves at seven.\n"
    assert {"document": "memory/travel.md", "kind": "note"} in listed
    assert [hit["document"] for hit in found["hits"]] == ["memory/travel.md"]


def test_a_change_of_a_stale_revision_is_a_conflict_and_changes_nothing(instar):
    with instar.client() as client:
        first = put(client, "MEMORY.md", "- one\n").json()["revision"]
        second = put(client, "MEMORY.md", "- two\n", first)
        stale = put(client, "MEMORY.md", "- three\n", first)
        text = client.get("/v1/documents/MEMORY.md").json()["text"]

    assert second.status_code == 200
    assert (stale.status_code, stale.json()["type"], stale.json()["status"]) == (
        412,
        "conflict",
        412,
    )
    assert text == "- two\n"


def test_a_change_has_to_name_its_revision(instar):
    with instar.client() as client:
        answer = client.put("/v1/documents/MEMORY.md", json={"text": "x"})
        put(client, "MEMORY.md", "- one\n")
        again = put(client, "MEMORY.md", "- other\n")
        missing = put(client, "memory/none.md", "x", "0123")

    assert (answer.status_code, answer.json()["type"]) == (428, "precondition_required")
    assert again.status_code == missing.status_code == 412


def test_history_shows_a_diff_and_restores(instar):
    with instar.client() as client:
        first = put(client, "MEMORY.md", "- one\n").json()["revision"]
        put(client, "MEMORY.md", "- two\n", first)
        revisions = client.get("/v1/documents/MEMORY.md/history").json()["revisions"]
        ends = {"old": revisions[1]["revision"], "new": revisions[0]["revision"]}
        diff = client.get("/v1/documents/MEMORY.md/diff", params=ends).json()["diff"]
        restored = client.post("/v1/documents/MEMORY.md/restore", json={"revision": first})
        text = client.get("/v1/documents/MEMORY.md").json()["text"]

    assert revisions[1]["revision"] == first
    assert "-- one\n+- two\n" in diff
    assert restored.status_code == 200
    assert text == "- one\n"


def test_the_raw_view_is_plain_text_that_no_browser_runs(instar):
    with instar.client() as client:
        put(client, "memory/x.md", "<script>alert(1)</script>\n")
        raw = client.get("/v1/documents/memory/x.md?view=raw")
        shown = client.get("/v1/documents/memory/x.md?view=html").json()["html"]

    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert raw.headers["x-content-type-options"] == "nosniff"
    assert raw.text == "<script>alert(1)</script>\n"
    assert "<script" not in shown


@pytest.mark.parametrize(
    "path",
    [
        "%2e%2e/x.md",
        "memory/%2e%2e/%2e%2e/config.toml",
        "memory/a/b.md",
        "MEMORY.md%00",
        "MEMORY.md%0a",
        "memory//x.md",
        "/etc/passwd",
        "memory/..%5cx.md",
        "MEMORY.MD",
        "",
        "%2e",
        "memory/%ff.md",
        "memory/" + "n" * 1000 + ".md",
        "%E2%80%AEMEMORY.md",
        "config.toml",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_path_that_is_no_document_is_refused_by_type(calm_instar, method, path):
    with calm_instar.client() as client:
        answer = client.request(
            method, f"/v1/documents/{path}", json={"text": "x"}, headers={"if-none-match": "*"}
        )

    assert answer.status_code in (404, 405, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] in ("invalid", "not_found", "method_not_allowed")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 422),
        (b"\xff\xfe", 422),
        (b"[]", 422),
        (b'{"text":1}', 422),
        (b'{"text":"a","more":1}', 422),
        (b'{"text":"\\ud800"}', 422),
        (b"[" * 100_000, 422),
        (b'{"text":"' + b"x" * 300_000 + b'"}', 413),
        (b'{"text":"' + b"x" * 1_100_000 + b'"}', 413),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_body_that_does_not_fit_is_refused_by_type(calm_instar, body, status):
    headers = {"content-type": "application/json", **NEW}
    with calm_instar.client() as client:
        answer = client.put("/v1/documents/memory/x.md", content=body, headers=headers)

    assert answer.status_code == status
    assert answer.json()["type"] == "invalid"
    assert set(answer.json()) >= {"type", "title", "status", "detail", "fix"}


def test_unknown_routes_and_methods_are_problems_too(instar):
    with instar.client() as client:
        nowhere = client.get("/v2/anything")
        wrong = client.patch("/v1/sessions")

    assert (nowhere.status_code, nowhere.json()["type"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["type"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("query", ["", '"', "AND OR (", "\u0000", "ü" * 5000, "茶 🍵", "%' --"])
def test_any_text_is_a_query(calm_instar, query):
    with calm_instar.client("memory:read") as client:
        answer = client.get("/v1/memory/search", params={"q": query})

    assert answer.status_code == 200
    assert answer.json()["hits"] == []


@pytest.mark.parametrize("narrowed", ["limit=0", "limit=x", "kind=odd", "since=yesterday", "odd=1"])
def test_a_search_that_is_narrowed_wrongly_names_the_field(calm_instar, narrowed):
    with calm_instar.client("memory:read") as client:
        answer = client.get(f"/v1/memory/search?q=tea&{narrowed}")

    assert answer.status_code == 422
    assert narrowed.split("=")[0] in answer.text


def test_another_agent_of_the_owner_has_documents_of_its_own(instar):
    with instar.client() as client:
        put(client, "MEMORY.md?agent=garden", "- roses\n")

        assert client.get("/v1/documents?agent=garden").json()["documents"] != []
        assert client.get("/v1/documents").json()["documents"] == []
        assert client.get("/v1/documents?agent=../x").status_code == 422


def test_tools_are_listed_and_called_once_per_idempotency_key(instar):
    once = {"idempotency-key": "k"}
    with instar.client("tools:read", "tools:write") as client:
        names = [tool["name"] for tool in client.get("/v1/tools").json()["tools"]]
        save = {"content": "The tea is oolong."}
        first = client.post("/v1/tools/memory_save", json=save, headers=once)
        again = client.post("/v1/tools/memory_save", json=save, headers=once)
        other = client.post("/v1/tools/memory_save", json={"content": "x"}, headers=once)
        wrong = client.post("/v1/tools/memory_save", json={"contents": "x"})
        unknown = client.post("/v1/tools/memory_sing", json={})

    assert "memory_save" in names
    assert first.json()["result"]["saved"] is True
    assert first.json() == again.json()
    assert other.status_code == 409
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "content")
    assert unknown.status_code == 404


def test_a_key_uses_the_tools_it_names_and_no_others(instar):
    with instar.client("tools:read", tools=["memory_get"]) as client:
        listed = [tool["name"] for tool in client.get("/v1/tools").json()["tools"]]
        outside = client.post("/v1/tools/memory_search", json={"query": "x"})
    with instar.client("tools:read") as client:
        forbidden = client.post("/v1/tools/memory_save", json={"content": "x"})

    assert listed == ["memory_get"]
    assert (outside.status_code, forbidden.status_code) == (404, 403)


def test_the_api_describes_itself_with_every_route_of_the_table(instar):
    with instar.client("chat") as client:
        described = client.get("/openapi.json").json()

    assert "/v1/documents/{document}" in described["paths"]
    assert "/v1/sessions/{session}/messages" in described["paths"]
    assert "Problem" in described["components"]["schemas"]
