"""Who is asking, for which agent, before which audience.

A Principal is made once, at the edge, from verified identity: never from tool arguments, payload
text or a missing value. It crosses queues inside the inbound message, so it is a pydantic model.
"""

from enum import StrEnum
from typing import Self

from pydantic import BaseModel, ConfigDict

from instar.errors import Forbidden
from instar.ids import AgentId, SessionId, TurnId


class Audience(StrEnum):
    """Who reads what is answered. Unknown means shared."""

    PRIVATE = "private"
    SHARED = "shared"


class Right(StrEnum):
    """What a caller may do with tools; each tool asks for exactly one."""

    READ = "tools:read"
    WRITE = "tools:write"
    EXTERNAL = "tools:external"


ALL_RIGHTS = frozenset(Right)


class Principal(BaseModel):
    """`guest` is None for the owner, else the guest's id on their channel."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: AgentId
    audience: Audience
    guest: str | None
    rights: frozenset[Right]
    session: SessionId | None = None
    turn: TurnId | None = None
    tools: frozenset[str] | None = None

    @property
    def is_owner(self) -> bool:
        """Whether the owner is asking."""
        return self.guest is None

    @property
    def author(self) -> str:
        """How the ledger names this caller."""
        return "owner" if self.guest is None else f"guest:{self.guest}"

    def require_private_memory(self) -> None:
        """Raises Forbidden unless the owner asks in private: nobody else reads or writes memory."""
        if not self.is_owner or self.audience is not Audience.PRIVATE:
            raise Forbidden(
                f"memory of agent {self.agent!r} is not shown to {self.author} "
                f"before a {self.audience} audience",
                fix="Ask as the owner, in a private chat.",
            )

    def narrowed(self, rights: frozenset[Right], tools: frozenset[str] | None = None) -> Self:
        """The same caller with no more than these rights and tools: never wider."""
        if self.tools is None:
            allowed = tools
        else:
            allowed = self.tools if tools is None else self.tools & tools
        return self.model_copy(update={"rights": self.rights & rights, "tools": allowed})


def owner(
    agent: AgentId, *, session: SessionId | None = None, turn: TurnId | None = None
) -> Principal:
    """The owner in private, with every right: for edges that have verified exactly that."""
    return Principal(
        agent=agent,
        audience=Audience.PRIVATE,
        guest=None,
        rights=ALL_RIGHTS,
        session=session,
        turn=turn,
    )
