"""Keys and grants: made, recognised, revoked, expired."""

import pytest

from instar.access.keyring import BROWSER, SETUP, TICKET, Keyring
from instar.adapters.local.sqlite_access import SqliteGrants, SqliteKeys
from instar.errors import Invalid, Unauthenticated
from instar.ids import AgentId, new_id
from instar.principal import ALL_RIGHTS, Right

MAIN = AgentId("main")


@pytest.fixture
def keyring(embedded, clock):
    database = embedded.stores.database
    return Keyring(
        keys=SqliteKeys(database),
        grants=SqliteGrants(database, clock),
        clock=clock,
        new_id=new_id,
    )


def test_a_key_is_known_by_its_bearer_and_kept_as_a_digest(keyring, folder):
    key, row = keyring.create(["tools:read", "chat"])

    caller = keyring.caller_of_key(key, MAIN)

    assert (caller.name, caller.scopes) == (f"key:{row.id}", {"tools:read", "chat"})
    assert (caller.principal.rights, caller.principal.tools) == ({Right.READ}, None)
    secret = key.rpartition("_")[2]
    kept = b"".join(path.read_bytes() for path in folder.glob("instar.db*"))
    assert row.digest.encode() in kept
    assert secret.encode() not in kept


def test_a_list_of_tools_narrows_and_an_empty_one_leaves_none(keyring):
    some, _ = keyring.create(["owner"], [" memory_search ", ""])
    none, _ = keyring.create(["owner"], [""])

    assert keyring.caller_of_key(some, MAIN).principal.tools == {"memory_search"}
    assert keyring.caller_of_key(some, MAIN).principal.rights == ALL_RIGHTS
    assert keyring.caller_of_key(none, MAIN).principal.tools == frozenset()


def test_only_the_very_key_is_known(keyring):
    key, row = keyring.create(["owner"])
    other, _ = keyring.create(["chat"])

    for wrong in ("", "x", key[:-1], key + "a", f"ik_{row.id}_{other.rpartition('_')[2]}"):
        with pytest.raises(Unauthenticated):
            keyring.caller_of_key(wrong, MAIN)
    assert keyring.caller_of_key(key, MAIN).scopes == {"owner"}


def test_a_revoked_key_is_not_known_and_the_others_are(keyring):
    key, row = keyring.create(["owner"])
    other, _ = keyring.create(["owner"])

    keyring.keys.revoke(row.id)

    with pytest.raises(Unauthenticated):
        keyring.caller_of_key(key, MAIN)
    assert keyring.caller_of_key(other, MAIN).name != f"key:{row.id}"


def test_a_key_without_scopes_is_not_made(keyring):
    with pytest.raises(Invalid):
        keyring.create([])

    assert keyring.keys.list() == []


@pytest.mark.parametrize(("kind", "seconds"), [(SETUP, 600), (TICKET, 30)])
def test_a_code_is_redeemed_once_and_in_time(keyring, clock, kind, seconds):
    code, late, unused = (keyring.grant(kind, {"for": "me"}) for _ in range(3))

    assert keyring.redeem(kind, code) == {"for": "me"}
    with pytest.raises(Unauthenticated):
        keyring.redeem(kind, code)
    clock.advance(seconds - 1)
    assert keyring.redeem(kind, unused) == {"for": "me"}
    clock.advance(2)
    with pytest.raises(Unauthenticated):
        keyring.redeem(kind, late)


def test_a_code_of_one_kind_is_none_of_another(keyring):
    code = keyring.grant(TICKET)

    for kind in (SETUP, BROWSER):
        with pytest.raises(Unauthenticated):
            keyring.redeem(kind, code)
    assert keyring.redeem(TICKET, code) == {}


def test_a_browser_session_lasts_until_it_is_ended_or_over(keyring, clock):
    token, other = keyring.grant(BROWSER), keyring.grant(BROWSER)

    assert keyring.caller_of_browser(token, MAIN).scopes == {"owner"}
    keyring.end_browser(token)
    keyring.end_browser(token)
    with pytest.raises(Unauthenticated):
        keyring.caller_of_browser(token, MAIN)
    assert keyring.caller_of_browser(other, MAIN).principal.is_owner
    clock.advance(30 * 86_400)
    with pytest.raises(Unauthenticated):
        keyring.caller_of_browser(other, MAIN)
