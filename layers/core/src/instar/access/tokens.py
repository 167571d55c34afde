"""Pure: the shape of API keys and other bearer tokens, their digests, and the scopes of keys.

A key is `ik_<id>_<secret>`: the id finds the stored row, the secret (130 random bits) is compared
by its SHA-256 in constant time. A fast hash is enough: nobody guesses 130 bits.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

from instar.access.ports import StoredKey
from instar.errors import Invalid
from instar.principal import ALL_RIGHTS, Right

OWNER_SCOPE = "owner"
SCOPES = frozenset(
    {
        OWNER_SCOPE,
        "chat",
        "sessions:read",
        "memory:read",
        "memory:write",
        "status:read",
        *(right.value for right in Right),
    }
)
_KEY = re.compile(r"ik_([a-z2-7]{13})_([a-z2-7]{26})")


def make_key(id: str, secret: str) -> str:
    """The key as its bearer holds it; `id` has 13, `secret` 26 letters and digits."""
    return f"ik_{id}_{secret}"


def key_parts(key: str) -> tuple[str, str] | None:
    """Id and secret of a key, None when it is not shaped like one."""
    match = _KEY.fullmatch(key)
    return None if match is None else (match[1], match[2])


def digest_of(token: str) -> str:
    """SHA-256 of a token, hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, digest: str) -> bool:
    """Whether the digest is the token's, in constant time."""
    return hmac.compare_digest(digest_of(token), digest)


def checked_scopes(scopes: Iterable[str]) -> frozenset[str]:
    """The scopes as a set. Raises Invalid for none and for unknown ones, listing what there is."""
    wanted = frozenset(scope.strip() for scope in scopes if scope.strip())
    unknown = sorted(wanted - SCOPES)
    if not wanted or unknown:
        named = ", ".join(repr(scope[:40]) for scope in unknown) or "none"
        raise Invalid(
            f"not scopes that a key can have: {named}",
            fix=f"Choose from {', '.join(sorted(SCOPES))}.",
        )
    return wanted


def allows(scopes: frozenset[str], needed: str) -> bool:
    """Whether these scopes open what needs that one; the owner's opens everything."""
    return needed in scopes or OWNER_SCOPE in scopes


def rights_of(key: StoredKey) -> frozenset[Right]:
    """The tool rights of a key."""
    if OWNER_SCOPE in key.scopes:
        return ALL_RIGHTS
    return frozenset(right for right in Right if right.value in key.scopes)
