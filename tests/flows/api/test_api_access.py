"""Who gets in, and as what."""

import re

import pytest

from instar.access.keyring import SETUP
from instar.web.scopes import OPEN, ROUTES

OPEN_GETS = ["/", "/v1/health", "/assets/app.js", "/favicon.ico"]


def an_address(path: str) -> str:
    """A route's path with something in place of its parameters."""
    return re.sub(r"\{[^}]+\}", "x", path)


GUARDED = sorted(
    (method, an_address(path)) for (method, path), needed in ROUTES.items() if needed != OPEN
)


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_without_a_credential_a_route_is_shut_whatever_the_body(calm_instar, method, path):
    with calm_instar.stranger() as client:
        answer = client.request(method, path, content=b"\xff{not json")

    assert answer.status_code == 401
    assert answer.json()["type"] == "unauthenticated"
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", OPEN_GETS)
def test_the_page_its_files_and_the_health_check_are_open(calm_instar, path):
    with calm_instar.stranger() as client:
        assert client.get(path).status_code == 200


def test_a_key_for_chat_opens_nothing_else(instar):
    with instar.client("chat") as client:
        refused = {
            (method, path): client.request(method, path, json={}).status_code
            for method, path in GUARDED
            if "sessions" not in path and path not in ("/v1/ticket", "/v1/turns/x")
        }

    allowed = {("GET", "/openapi.json"), ("POST", "/v1/logout")}
    assert {call for call, status in refused.items() if status != 403} == allowed


@pytest.mark.parametrize(
    "authorization",
    ["Bearer nonsense", "Bearer ik_aaaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaa", "Basic eDp5", ""],
)
def test_a_bad_credential_is_refused(calm_instar, authorization):
    with calm_instar.stranger() as client:
        answer = client.get("/v1/sessions", headers={"authorization": authorization})

    assert answer.status_code == 401


def test_a_key_in_the_address_opens_nothing(instar):
    with instar.stranger() as client:
        assert client.get(f"/v1/sessions?key={instar.key()}").status_code == 401


def test_a_set_up_code_works_once_and_gives_a_cookie_no_script_can_read(instar):
    code = instar.embedded.keyring.grant(SETUP)

    with instar.stranger() as client:
        first = client.post("/v1/setup", json={"code": code})
        signed_in = client.get("/v1/sessions")
    with instar.stranger() as another:
        second = another.post("/v1/setup", json={"code": code})

    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert signed_in.status_code == 200
    assert (second.status_code, second.json()["type"]) == (401, "unauthenticated")


def test_an_owner_key_signs_a_browser_in_and_a_lesser_key_does_not(instar):
    with instar.client() as owner:
        assert "set-cookie" in owner.post("/v1/login").headers
    with instar.client("chat", "memory:read") as other:
        assert other.post("/v1/login").status_code == 403


def test_signing_out_ends_the_session_for_good(instar):
    with instar.browser() as browser:
        cookies = dict(browser.cookies)
        assert browser.post("/v1/logout").status_code == 200
        assert browser.get("/v1/sessions").status_code == 401
        browser.cookies.update(cookies)
        assert browser.get("/v1/sessions").status_code == 401


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "http://127.0.0.1:1"])
def test_a_cookie_changes_nothing_for_a_page_of_another_origin(calm_instar, origin):
    with calm_instar.browser() as browser:
        del browser.headers["origin"]
        headers = {} if origin is None else {"origin": origin}
        answer = browser.post("/v1/keys", json={"scopes": ["owner"]}, headers=headers)

    assert (answer.status_code, answer.json()["type"]) == (403, "forbidden")


def test_a_set_up_code_is_not_taken_from_a_page_of_another_origin(instar):
    code = instar.embedded.keyring.grant(SETUP)

    with instar.stranger() as client:
        evil = {"origin": "https://evil.example"}
        assert client.post("/v1/setup", json={"code": code}, headers=evil).status_code == 403
        assert client.post("/v1/setup", json={"code": code}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", ""])
def test_an_unknown_host_is_misdirected(calm_instar, host):
    with calm_instar.stranger() as client:
        answer = client.get("/v1/health", headers={"host": host})

    assert (answer.status_code, answer.json()["type"]) == (421, "misdirected")


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "LOCALHOST:9", "[::1]:8420"])
def test_this_machine_s_own_names_are_served(calm_instar, host):
    with calm_instar.stranger() as client:
        assert client.get("/v1/health", headers={"host": host}).status_code == 200


def test_an_owner_makes_lists_and_revokes_keys(instar):
    with instar.client() as owner:
        made = owner.post("/v1/keys", json={"scopes": ["chat"], "tools": ["memory_get"]}).json()
        listed = owner.get("/v1/keys").json()["keys"]
        bearer = {"authorization": f"Bearer {made['key']}"}
        before = owner.post("/v1/ticket", headers=bearer).status_code
        owner.delete(f"/v1/keys/{made['id']}")
        after = owner.post("/v1/ticket", headers=bearer).status_code

    assert made["scopes"] == ["chat"]
    assert made["tools"] == ["memory_get"]
    assert made["id"] in [row["id"] for row in listed]
    assert all("key" not in row and "digest" not in row for row in listed)
    assert (before, after) == (200, 401)


def test_answers_forbid_what_a_browser_should_not_do(instar):
    with instar.stranger() as client:
        page = client.get("/").headers
        refusal = client.get("/v1/sessions").headers

    for headers in (page, refusal):
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_settings_show_no_secret(instar):
    with instar.client() as owner:
        shown = owner.get("/v1/settings")

    assert shown.json()["has_key"] is True
    assert "sk-test" not in shown.text


def test_a_signed_webhook_needs_no_key_and_an_unsigned_one_is_refused(instar):
    with instar.stranger() as client:
        unsigned = client.post("/webhooks/generic/main", json={"id": "1", "text": "hi"})
        unknown = client.post("/webhooks/nowhere/main", json={})

    assert (unsigned.status_code, unknown.status_code) == (401, 404)


def test_a_bug_answers_as_a_problem_without_details(broken_instar):
    with broken_instar.client() as client:
        answer = client.get("/v1/doctor")

    assert (answer.status_code, answer.json()["type"]) == (500, "internal")
    assert "nobody should see" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
