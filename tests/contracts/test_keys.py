"""Every Keys adapter keeps these promises."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from instar.access.ports import Keys, StoredKey
from instar.adapters.aws.dynamo_access import DynamoKeys
from instar.adapters.local.sqlite_access import SqliteKeys
from instar.errors import Conflict, NotFound

KEY = StoredKey(
    id="k1",
    digest="d1",
    scopes=frozenset({"tools:read", "tools:write"}),
    tools=None,
    created_at=datetime(2031, 5, 4, 12, 0, 0, 123456, tzinfo=UTC),
)


def sqlite(request: pytest.FixtureRequest) -> Keys:
    return SqliteKeys(request.getfixturevalue("database"))


def dynamo(request: pytest.FixtureRequest) -> Keys:
    request.getfixturevalue("aws")
    return DynamoKeys()


@pytest.fixture(params=[sqlite, dynamo], ids=lambda build: build.__name__)
def keys(request: pytest.FixtureRequest) -> Keys:
    return request.param(request)


def test_a_key_is_found_by_its_id(keys):
    keys.add(KEY)

    assert keys.find("k1") == KEY
    assert keys.find("k2") is None


def test_no_list_of_tools_and_an_empty_one_are_different(keys):
    narrow = replace(KEY, id="k2", tools=frozenset())
    named = replace(KEY, id="k3", tools=frozenset({"memory_search"}), scopes=frozenset())
    for key in (KEY, narrow, named):
        keys.add(key)

    assert (keys.find("k1"), keys.find("k2"), keys.find("k3")) == (KEY, narrow, named)


def test_a_taken_id_is_a_conflict_and_changes_nothing(keys):
    keys.add(KEY)

    with pytest.raises(Conflict):
        keys.add(replace(KEY, digest="d2"))

    assert keys.find("k1") == KEY


def test_keys_are_listed_oldest_first(keys):
    older = replace(KEY, id="zz", created_at=KEY.created_at - timedelta(microseconds=1))
    keys.add(KEY)
    keys.add(older)

    assert keys.list() == [older, KEY]


def test_a_revoked_key_is_still_found_and_says_so(keys):
    keys.add(KEY)
    keys.revoke("k1")
    keys.revoke("k1")

    assert keys.find("k1") == replace(KEY, revoked=True)
    assert keys.list() == [replace(KEY, revoked=True)]


def test_revoking_an_unknown_key_is_not_found(keys):
    with pytest.raises(NotFound):
        keys.revoke("k1")
