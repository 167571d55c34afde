"""The shape of keys, and what their scopes open."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.access.ports import StoredKey
from instar.access.tokens import (
    SCOPES,
    allows,
    checked_scopes,
    digest_of,
    key_parts,
    make_key,
    matches,
    rights_of,
)
from instar.errors import Invalid
from instar.ids import new_id
from instar.principal import ALL_RIGHTS, Right


def key(*scopes: str) -> StoredKey:
    return StoredKey(
        id="a" * 13,
        digest="",
        scopes=frozenset(scopes),
        tools=None,
        created_at=datetime(2031, 5, 4, tzinfo=UTC),
    )


def test_a_key_comes_apart_again():
    id, secret = new_id()[:13], new_id()

    assert key_parts(make_key(id, secret)) == (id, secret)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "ik_",
        "ik_aaaaaaaaaaaaa",
        f"ik_{'a' * 12}_{'b' * 26}",
        f"ik_{'a' * 13}_{'b' * 27}",
        f"IK_{'a' * 13}_{'b' * 26}",
        f"ik_{'a' * 13}_{'b' * 26}\n",
        f"ik_{'1' * 13}_{'b' * 26}",
    ],
)
def test_what_is_not_shaped_like_a_key_is_none(wrong):
    assert key_parts(wrong) is None


@given(st.text(), st.text())
def test_a_digest_fits_its_token_alone(one, other):
    assert matches(one, digest_of(one))
    assert matches(one, digest_of(other)) == (one == other)
    assert one not in digest_of(one) or len(one) < 8


def test_scopes_are_checked_by_name():
    assert checked_scopes([" chat ", "tools:read", ""]) == {"chat", "tools:read"}
    for wrong in ([], [""], ["everything"], ["chat", "Tools:read"], ["tools:*"]):
        with pytest.raises(Invalid, match="not scopes"):
            checked_scopes(wrong)


def test_the_owners_scope_opens_everything_and_others_only_themselves():
    for needed in SCOPES:
        assert allows(frozenset({"owner"}), needed)
        assert allows(frozenset({needed}), needed)
        assert not allows(frozenset(), needed)
    assert not allows(frozenset({"tools:read"}), "tools:write")


def test_rights_follow_from_scopes():
    assert rights_of(key("owner")) == ALL_RIGHTS
    assert rights_of(key("tools:read", "chat")) == {Right.READ}
    assert rights_of(key("chat", "memory:write")) == frozenset()
