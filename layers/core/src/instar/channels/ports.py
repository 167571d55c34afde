"""The port of a channel: receive (verify and parse) and send."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from instar.principal import Audience


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """A call to a channel's webhook: header names in lower case, the body's decoded bytes."""

    account: str
    headers: Mapping[str, str]
    body: bytes
    received_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One message as the platform sent it, after verification.

    `identity` is unique within channel and account and means the same message in every delivery.
    `session` is the conversation's part of the session name. `is_owner` comes from the verified
    sender alone; `forwarded` text is not the sender's own word. `unread` names what came with the
    message and cannot be read ("photo"); `text` is its caption, or empty.
    """

    identity: str
    session: str
    sender: str
    is_owner: bool
    audience: Audience
    text: str
    conversation: str
    thread: str | None = None
    forwarded: bool = False
    unread: str | None = None


class Channel(Protocol):
    """A platform that people write on."""

    @property
    def name(self) -> str:
        """The channel's name in routes, addresses and sessions."""
        ...

    def receive(self, request: WebhookRequest) -> tuple[Incoming, ...]:
        """The messages in a webhook call; empty for kinds that are not for us.

        Raises Unauthenticated when the signature is bad, missing or stale (also when none is
        configured), Invalid or TooLarge for a body that is not the platform's.
        """
        ...

    def send(
        self, conversation: str, thread: str | None, text: str, *, key: str, skip_parts: int = 0
    ) -> None:
        """Sends Markdown text, split and rendered as the platform wants it.

        The split depends on the text alone; `skip_parts` leaves out parts that are known to be out.
        Raises Unavailable when nothing went out and it may be tried again, NotDelivered when it
        never will (the person blocked us), PartlySent when the first parts are out and the next is
        not, Uncertain when it may have gone out.
        """
        ...
