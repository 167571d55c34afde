"""The two shapes that cross queues, versioned: InboundMessage and Reply."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from instar.ids import ReplyId, SessionId, TurnId
from instar.principal import Principal


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReplyAddress(_Frozen):
    """Where a reply goes; `conversation` and `thread` are the channel's own ids.

    Channel `session` has no outside: its reply stands in the session itself.
    """

    channel: str
    account: str = ""
    conversation: str = ""
    thread: str | None = None

    def group(self) -> str:
        """Replies to one place keep their order: the FIFO group."""
        return ":".join((self.channel, self.account, self.conversation, self.thread or ""))


class InboundMessage(_Frozen):
    """A message that was accepted. `identity` is what makes two deliveries the same message.

    `identity` is unique over all channels ("telegram:main:update:17"); `digest` is the SHA-256 of
    what the sender sent, to tell a repeat from another message under the same identity. A `refused`
    message gets the polite refusal and no model.
    """

    version: Literal[1] = 1
    turn: TurnId
    identity: str
    digest: str
    session: SessionId
    text: str
    principal: Principal
    address: ReplyAddress
    at: datetime
    refused: bool = False
    forwarded: bool = False


class Reply(_Frozen):
    """A finished reply on its way out; `id` is its idempotency key."""

    version: Literal[1] = 1
    id: ReplyId
    turn: TurnId
    session: SessionId
    address: ReplyAddress
    text: str
