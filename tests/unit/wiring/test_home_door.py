"""The command line's operations on a home."""

import pytest

from instar.errors import Invalid, Misconfigured, NotFound
from instar.testing.builders import embedded_at
from instar.wiring.home_door import HomeDoor


@pytest.fixture
def door(embedded):
    return HomeDoor(embedded)


def test_an_unknown_operation_is_refused(door):
    with pytest.raises(Invalid, match="unknown operation"):
        door.call("memory.explode", {})


def test_a_secret_is_kept_under_its_plain_name_and_never_shown(door, embedded, folder):
    for name in ("INSTAR_TELEGRAM_TOKEN", "telegram_token"):
        assert door.call("secret.set", {"name": name, "value": "verysecret"}) == {
            "name": "telegram_token",
            "set": True,
        }

    assert embedded.stores.secret("telegram_token") == "verysecret"
    assert "verysecret" not in str(door.call("config.show", {}))
    assert "verysecret" not in str(door.call("doctor", {}))
    modes = [path.stat().st_mode & 0o077 for path in (folder / "secrets").rglob("*")]
    assert modes
    assert set(modes) == {0}
    door.call("secret.set", {"name": "telegram_token", "value": ""})
    assert embedded.stores.secret("telegram_token") is None


@pytest.mark.parametrize("name", ["", "PATH", "../x_key", "model_api_key/x", "telegram_owner"])
def test_what_is_no_secrets_name_is_refused(door, name):
    with pytest.raises(Invalid, match="not a secret's name"):
        door.call("secret.set", {"name": name, "value": "x"})


def test_settings_are_a_document_with_revisions(door, embedded, folder):
    door.call("config.set", {"key": "telegram.owner", "value": "42"})
    door.call("config.set", {"key": "owner.time_zone", "value": "Asia/Shanghai"})

    assert door.call("config.get", {"key": "telegram.owner"})["value"] == "42"
    assert embedded.stores.settings().time_zone.key == "Asia/Shanghai"
    assert (folder / "config.toml").read_text().startswith("[telegram]\nowner = 42\n")
    assert len(embedded.stores.documents.revisions("config.toml")) == 2
    assert [row.reason for row in embedded.stores.ledger.entries()] == [
        "set owner.time_zone",
        "set telegram.owner",
    ]


def test_keys_are_made_listed_and_revoked(door):
    made = door.call("key.create", {"scopes": ["chat", "tools:read"], "tools": ["memory_get"]})

    assert made["key"].startswith(f"ik_{made['id']}_")
    (row,) = door.call("key.list", {})["keys"]
    assert (row["scopes"], row["tools"], row["revoked"]) == (
        ["chat", "tools:read"],
        ["memory_get"],
        False,
    )
    assert made["key"].rpartition("_")[2] not in str(row)
    door.call("key.revoke", {"id": made["id"]})
    assert door.call("key.list", {})["keys"][0]["revoked"] is True
    with pytest.raises(NotFound):
        door.call("key.revoke", {"id": "nobody"})


def test_settings_that_cannot_be_used_queue_nothing(home):
    embedded = embedded_at(home, {"INSTAR_MODEL_TIMEOUT_S": "soon"})

    with pytest.raises(Misconfigured):
        HomeDoor(embedded).call("chat.send", {"session": "main", "text": "Hi"})

    assert embedded.stores.turn_queue.receive(1) is None


def test_a_search_that_does_not_fit_is_named(door):
    for request in ({"query": "x", "limit": 0}, {"query": "x", "since": "yesterday"}):
        with pytest.raises(Invalid):
            door.call("memory.search", request)


def test_the_index_can_be_made_again(door):
    door.call("memory.save", {"content": "the bike is green"})

    assert door.call("index.rebuild", {}) == {"documents": 1, "failed": 0}
    assert len(door.call("memory.search", {"query": "bike"})["hits"]) == 1
