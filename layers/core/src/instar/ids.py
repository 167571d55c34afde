"""Identifiers: their types, the one place that makes new ones, the one place that checks them."""

import re
import secrets
from collections.abc import Callable
from typing import NewType

from instar.errors import Invalid

AgentId = NewType("AgentId", str)
SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
MessageId = NewType("MessageId", str)
CallId = NewType("CallId", str)
ReplyId = NewType("ReplyId", str)
CheckpointId = NewType("CheckpointId", str)

NewId = Callable[[], str]

MAIN_AGENT = AgentId("main")
_AGENT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
SESSION_CHARACTERS = 200


def new_id() -> str:
    """128 random bits in 26 lower-case letters and digits (RFC 4648 base 32 without padding)."""
    alphabet = "abcdefghijklmnopqrstuvwxyz234567"
    bits = secrets.randbits(128)
    return "".join(alphabet[(bits >> shift) & 31] for shift in range(125, -1, -5))


def agent_id(text: str) -> AgentId:
    """The agent of that name. Raises Invalid unless it is [a-z0-9][a-z0-9-]{0,62}."""
    if not _AGENT.fullmatch(text):
        raise Invalid(
            f"not an agent name: {text[:80]!r}",
            fix="Use 1 to 63 lower-case letters, digits and hyphens, not starting with a hyphen.",
        )
    return AgentId(text)


def session_id(text: str) -> SessionId:
    """The session of that name. Raises Invalid when it is blank, long or has control characters."""
    if not text.strip() or len(text) > SESSION_CHARACTERS or not text.isprintable():
        raise Invalid(
            f"not a session name: {text[:80]!r}",
            fix=f"Use 1 to {SESSION_CHARACTERS} printable characters.",
        )
    return SessionId(text)
