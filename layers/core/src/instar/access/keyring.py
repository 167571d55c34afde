"""API keys and short-lived grants: made, recognised, revoked.

Who may make keys is the edges' business: a process that opens the home, the account's AWS
credentials, an owner key over the API; never a tool, a model or a channel.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from instar.access.ports import Grant, Grants, Keys, StoredKey
from instar.access.tokens import (
    OWNER_SCOPE,
    checked_scopes,
    digest_of,
    key_parts,
    make_key,
    matches,
    rights_of,
)
from instar.clock import Clock
from instar.errors import Unauthenticated
from instar.ids import AgentId, NewId
from instar.principal import Principal, owner

SETUP, BROWSER, TICKET = "setup", "browser", "ticket"
LIFETIMES = {
    SETUP: timedelta(minutes=10),
    BROWSER: timedelta(days=30),
    TICKET: timedelta(seconds=30),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who came through an edge: `scopes` open routes, `principal` opens tools and memory.

    `name` tells callers apart for idempotency keys; it is no secret.
    """

    name: str
    scopes: frozenset[str]
    principal: Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """The one place that turns a bearer's token into a Caller."""

    keys: Keys
    grants: Grants
    clock: Clock
    new_id: NewId

    def create(
        self, scopes: Iterable[str], tools: Iterable[str] | None = None
    ) -> tuple[str, StoredKey]:
        """A new key, shown this once, and its row. Raises Invalid; an empty list of tools is none
        at all, not all of them.
        """
        id, secret = self.new_id()[:13], self.new_id()
        row = StoredKey(
            id=id,
            digest=digest_of(secret),
            scopes=checked_scopes(scopes),
            tools=None if tools is None else frozenset(t.strip() for t in tools if t.strip()),
            created_at=self.clock(),
        )
        self.keys.add(row)
        return make_key(id, secret), row

    def caller_of_key(self, key: str, agent: AgentId) -> Caller:
        """Who holds this key. Raises Unauthenticated for anything but a standing key."""
        parts = key_parts(key)
        row = None if parts is None else self.keys.find(parts[0])
        if parts is None or row is None or row.revoked or not matches(parts[1], row.digest):
            raise Unauthenticated(
                "the API key is not known", fix="Make one with `instar key create --scopes …`."
            )
        return Caller(
            name=f"key:{row.id}",
            scopes=row.scopes,
            principal=owner(agent).narrowed(rights_of(row), row.tools),
        )

    def caller_of_browser(self, token: str, agent: AgentId) -> Caller:
        """Who holds this browser session: the owner. Raises Unauthenticated."""
        if self.grants.get(BROWSER, digest_of(token)) is None:
            raise Unauthenticated(
                "the browser session has ended", fix="Open the set-up link again."
            )
        return _browser(agent)

    def grant(self, kind: str, data: Mapping[str, str] | None = None) -> str:
        """A new token of that kind; only its digest is kept."""
        token = self.new_id()
        self.grants.put(
            Grant(
                kind=kind,
                digest=digest_of(token),
                expires_at=self.clock() + LIFETIMES[kind],
                data=data or {},
            )
        )
        return token

    def redeem(self, kind: str, token: str) -> Mapping[str, str]:
        """What a single-use token stands for; nobody redeems it again. Raises Unauthenticated."""
        grant = self.grants.take(kind, digest_of(token))
        if grant is None:
            raise Unauthenticated(
                f"this {kind} code is unknown, used or expired",
                fix="Ask for a new one."
                if kind == TICKET
                else "Start Instar again for a new link.",
            )
        return grant.data

    def end_browser(self, token: str) -> None:
        """Ends a browser session; ending twice is no error."""
        self.grants.take(BROWSER, digest_of(token))


def _browser(agent: AgentId) -> Caller:
    return Caller(name="browser", scopes=frozenset({OWNER_SCOPE}), principal=owner(agent))
