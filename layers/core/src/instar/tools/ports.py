"""The port of a tool, and what the toolbox keeps about calls from outside."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from instar.clock import Deadline
from instar.ids import CallId
from instar.principal import Principal, Right

Effect = Literal["read", "memory", "outside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What a tool may know beyond its arguments; the model can forge none of it.

    `effect` is the idempotency key: a call repeated under it must not do its work twice.
    `tainted`: untrusted text stands in the turn's context since the owner's last message.
    """

    principal: Principal
    call: CallId
    effect: str
    deadline: Deadline
    tainted: bool = False


class Tool(Protocol):
    """One tool. `arguments` is a frozen pydantic model that forbids unknown fields."""

    @property
    def name(self) -> str:
        """The name that models and callers use."""
        ...

    @property
    def description(self) -> str:
        """What it does and when to use it, for the model."""
        ...

    @property
    def arguments(self) -> type[BaseModel]:
        """The shape of its arguments."""
        ...

    @property
    def right(self) -> Right:
        """The right that a caller needs."""
        ...

    def run(self, arguments: Any, context: CallContext) -> Mapping[str, Any]:
        """Does it and returns JSON. Raises InstarError for what the caller should be told."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """What an outside call was answered; kept for a repeat under the same idempotency key."""

    status: int
    body: Mapping[str, Any]


class Calls(Protocol):
    """Idempotency keys of outside tool calls: per API key and tool, for 24 hours."""

    def claim(self, name: str, *, digest: str) -> CallAnswer | None:
        """The earlier answer under this name; None when the caller should go on and settle.

        Raises Conflict when another body stands under it, or the same call is running now.
        """
        ...

    def settle(self, name: str, answer: CallAnswer | None) -> None:
        """Keeps the answer, or frees the name when the call did nothing (None)."""
        ...
