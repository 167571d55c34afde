"""Which scope opens which route: one table, and what is not in it stays shut.

A route needs one of its scopes; the owner's opens all. `OPEN` routes ask for no credential: the
page itself, its assets, the health check, webhooks (they verify signatures), and the trade of a
set-up code for a browser session.
"""

from collections.abc import Mapping

from instar.access.tokens import OWNER_SCOPE, SCOPES, allows
from instar.principal import Right

OPEN: frozenset[str] = frozenset()
ANY_CREDENTIAL = SCOPES
OWNER = frozenset({OWNER_SCOPE})
CHAT = frozenset({"chat"})
FOLLOW = frozenset({"chat", "sessions:read"})
TOOLS = frozenset(right.value for right in Right)

_SESSION = "/v1/sessions/{session:path}"
_DOCUMENT = "/v1/documents/{document:path}"

ROUTES: Mapping[tuple[str, str], frozenset[str]] = {
    ("GET", "/"): OPEN,
    ("GET", "/favicon.ico"): OPEN,
    ("GET", "/assets/{name}"): OPEN,
    ("GET", "/v1/health"): OPEN,
    ("POST", "/v1/setup"): OPEN,
    ("POST", "/webhooks/{channel}/{account}"): OPEN,
    ("GET", "/openapi.json"): ANY_CREDENTIAL,
    ("POST", "/v1/login"): OWNER,
    ("POST", "/v1/logout"): ANY_CREDENTIAL,
    ("GET", "/v1/sessions"): frozenset({"sessions:read"}),
    ("GET", _SESSION): frozenset({"sessions:read"}),
    ("GET", f"{_SESSION}/events"): FOLLOW,
    ("POST", f"{_SESSION}/messages"): CHAT,
    ("POST", f"{_SESSION}/stop"): CHAT,
    ("GET", "/v1/turns/{turn}"): FOLLOW,
    ("POST", "/v1/ticket"): FOLLOW,
    ("GET", "/v1/tools"): TOOLS,
    ("POST", "/v1/tools/{name}"): TOOLS,
    ("GET", "/v1/documents"): frozenset({"memory:read"}),
    ("GET", f"{_DOCUMENT}/history"): frozenset({"memory:read"}),
    ("GET", f"{_DOCUMENT}/diff"): frozenset({"memory:read"}),
    ("GET", _DOCUMENT): frozenset({"memory:read"}),
    ("PUT", _DOCUMENT): frozenset({"memory:write"}),
    ("POST", f"{_DOCUMENT}/restore"): frozenset({"memory:write"}),
    ("GET", "/v1/memory/search"): frozenset({"memory:read"}),
    ("GET", "/v1/doctor"): frozenset({"status:read"}),
    ("GET", "/v1/keys"): OWNER,
    ("POST", "/v1/keys"): OWNER,
    ("DELETE", "/v1/keys/{key}"): OWNER,
    ("GET", "/v1/settings"): OWNER,
    ("PUT", "/v1/settings"): OWNER,
    ("POST", "/v1/settings/models"): OWNER,
    ("POST", "/v1/settings/test"): OWNER,
}


def needed_scopes(method: str, path: str) -> frozenset[str] | None:
    """The scopes of which a caller needs one; None for a route that nobody may call."""
    return ROUTES.get((method, path))


def opens(held: frozenset[str], needed: frozenset[str]) -> bool:
    """Whether a caller with these scopes may use a route that needs one of those."""
    return any(allows(held, scope) for scope in needed)
