"""What access keeps: keys and grants stored hashed, secrets stored by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """An API key without its secret. `tools` narrows tool calls; None is no narrowing."""

    id: str
    digest: str
    scopes: frozenset[str]
    tools: frozenset[str] | None
    created_at: datetime
    revoked: bool = False


class Keys(Protocol):
    """API keys, by the id that is part of every key."""

    def add(self, key: StoredKey) -> None:
        """Keeps a new key. Raises Conflict when the id is taken."""
        ...

    def find(self, id: str) -> StoredKey | None:
        """The key of that id, revoked or not."""
        ...

    def list(self) -> Sequence[StoredKey]:
        """All keys, oldest first."""
        ...

    def revoke(self, id: str) -> None:
        """Revokes it; revoking twice is no error. Raises NotFound."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Something that its bearer may do until it expires; stored under the hash of its token."""

    kind: str
    digest: str
    expires_at: datetime
    data: Mapping[str, str]


class Grants(Protocol):
    """Set-up codes, browser sessions, socket tickets: short-lived, some of a single use."""

    def put(self, grant: Grant) -> None:
        """Keeps it until it expires."""
        ...

    def get(self, kind: str, digest: str) -> Grant | None:
        """The grant if it stands and has not expired."""
        ...

    def take(self, kind: str, digest: str) -> Grant | None:
        """The same, and nobody gets it again: of two takers one gets None."""
        ...


class Secrets(Protocol):
    """Secret values by lower-case name ("telegram_token"): read late, never logged."""

    def get(self, name: str) -> str | None:
        """The value, None when it was never set. Raises Unavailable when it cannot be read."""
        ...

    def set(self, name: str, value: str) -> None:
        """Keeps the value; a blank one removes it."""
        ...

    def names(self) -> Sequence[str]:
        """The names that have a value, sorted."""
        ...
