"""The door of a conversation: what an edge has verified becomes a turn in the queue, once.

    edge (verified) -> mask secrets -> inbox (once per identity) -> turn queue (group = session)

The turn's id follows from the message's identity, so every delivery of a message names the same
turn. Queueing again is harmless: the queue drops it, or the turn finds itself done.
"""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from instar.channels.ports import Incoming
from instar.clock import Clock
from instar.conversation.envelopes import InboundMessage, ReplyAddress
from instar.conversation.ports import Inbox, TurnQueue
from instar.errors import Invalid, TooLarge
from instar.ids import AgentId, SessionId, TurnId, session_id
from instar.principal import ALL_RIGHTS, Audience, Principal

MESSAGE_CHARACTERS = 32_000


def turn_id(identity: str) -> TurnId:
    """The turn of a message: 26 letters and digits of the SHA-256 of its identity."""
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()
    return TurnId(base64.b32encode(digest).decode().lower()[:26])


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message as an edge has verified it."""

    identity: str
    session: SessionId
    text: str
    principal: Principal
    address: ReplyAddress
    refused: bool = False
    forwarded: bool = False

    def digest(self) -> str:
        """What tells a repeat from another message under the same identity."""
        meaning = f"{self.session}\0{self.principal.author}\0{self.text}"
        return hashlib.sha256(meaning.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """Accepts messages. `mask` replaces secrets before anything is written."""

    inbox: Inbox
    queue: TurnQueue
    clock: Clock
    mask: Callable[[str], str]

    def accept(self, draft: Draft) -> TurnId:
        """Accepts one message and returns its turn, also for a repeated delivery.

        Raises Invalid (blank), TooLarge, Conflict (another text under the same identity).
        """
        _check_text(draft.text)
        turn = turn_id(draft.identity)
        message = InboundMessage(
            turn=turn,
            identity=draft.identity,
            digest=draft.digest(),
            session=draft.session,
            text=_whole_characters(self.mask(draft.text)),
            principal=draft.principal.model_copy(update={"session": draft.session, "turn": turn}),
            address=draft.address,
            at=self.clock(),
            refused=draft.refused,
            forwarded=draft.forwarded,
        )
        self.inbox.accept(message)
        self.queue.put(message)
        return turn


def _whole_characters(text: str) -> str:
    """Halves of a surrogate pair are joined, lone ones become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _check_text(text: str) -> None:
    if not text.strip():
        raise Invalid("the message has no text", fix="Send some text.")
    if len(text) > MESSAGE_CHARACTERS:
        raise TooLarge(
            f"the message has {len(text):,} characters; at most {MESSAGE_CHARACTERS:,} fit",
            fix="Send it in parts, or put it into a document.",
        )


def draft_of(
    channel: str, account: str, incoming: Incoming, agent: AgentId, *, answers_guests: bool
) -> Draft | None:
    """What a platform's message becomes; None when it is a stranger's in a group.

    A stranger in private gets the polite refusal, unless the channel answers guests; a stranger's
    command gets nothing else anywhere.
    """
    private = incoming.audience is Audience.PRIVATE
    if not incoming.is_owner and not answers_guests and not private:
        return None
    principal = Principal(
        agent=agent,
        audience=incoming.audience,
        guest=None if incoming.is_owner else incoming.sender,
        rights=ALL_RIGHTS if incoming.is_owner and private else frozenset(),
    )
    prefix = channel if channel == "generic" else f"{channel}:{account}"
    return Draft(
        identity=f"{channel}:{account}:{incoming.identity}",
        session=session_id(f"{prefix}:{incoming.session}"),
        text=_readable(incoming),
        principal=principal,
        address=ReplyAddress(
            channel=channel,
            account=account,
            conversation=incoming.conversation,
            thread=incoming.thread,
        ),
        refused=not incoming.is_owner
        and (not answers_guests or incoming.text.lstrip().startswith("/")),
        forwarded=incoming.forwarded,
    )


def _readable(incoming: Incoming) -> str:
    """The text, with a word about what came beside it and cannot be read."""
    if incoming.unread is None:
        return incoming.text
    note = f"[a {incoming.unread.replace('_', ' ')} came with this message; it cannot be read here]"
    return f"{note}\n{incoming.text}".strip()
