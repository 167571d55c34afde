"""Sessions, messages and events as JSON, with safe HTML beside the text that a page shows."""

from collections.abc import Sequence
from typing import Any

from instar.conversation.ports import Event, Session, Sessions, SessionSummary
from instar.ids import SessionId
from instar.messages import Message
from instar.web.markdown import rendered

PAGE = 500
TITLE_CHARACTERS = 80
RENDERED_KINDS = frozenset({"reply", "turn_failed", "notice"})
CLOSING_KINDS = frozenset({"reply", "turn_failed"})


def event_json(event: Event) -> dict[str, Any]:
    """An event as routes and sockets send it."""
    shown = {
        "n": event.n,
        "kind": event.kind,
        "at": event.at.isoformat(),
        "session": event.session,
        **event.data,
    }
    if event.kind in RENDERED_KINDS:
        shown["html"] = rendered(str(event.data.get("text", "")))
    return shown


def session_json(session: Session, *, full: bool) -> list[dict[str, Any]]:
    """The messages of a session; `full` adds their parts: tool calls and results too."""
    shown = [_message_json(message, full=full) for message in session.messages]
    return shown if full else [message for message in shown if message["text"]]


def summary_json(summary: SessionSummary) -> dict[str, Any]:
    """A line of the session list."""
    return {
        "session": summary.session,
        "channel": summary.channel,
        "address": summary.address,
        "at": summary.at.isoformat(),
    }


def title_of(session: Session) -> str:
    """The first words that a person said in it, on one line."""
    said = (message.text() for message in session.messages if message.role == "user")
    words = " ".join(next(said, "").split())
    return words if len(words) <= TITLE_CHARACTERS else words[: TITLE_CHARACTERS - 1] + "…"


def last_number(sessions: Sessions, session: SessionId) -> int:
    """The number of the newest event, 0 when there is none; in a logarithm of the reads."""

    def first_after(number: int) -> int | None:
        found = sessions.events(session, after=number, limit=1)
        return found[0].n if found else None

    low, step = 0, 1
    while (found := first_after(low + step - 1)) is not None:
        low, step = found, step * 2
    high = low + step - 1  # nothing stands after it, and `low` is there (or 0)
    while low < high:
        middle = (low + high) // 2
        found = first_after(middle)
        if found is None:
            high = middle
        else:
            low = found
    return low


def quiet_number(sessions: Sessions, session: SessionId) -> int:
    """After which event a page that has all messages should follow: the end of the last turn that
    ended, so that the events of a running one are seen from their start."""
    start = max(0, last_number(sessions, session) - PAGE)
    events: Sequence[Event] = sessions.events(session, after=start, limit=2 * PAGE)
    closing = [event.n for event in events if event.kind in CLOSING_KINDS]
    return closing[-1] if closing else start


def _message_json(message: Message, *, full: bool) -> dict[str, Any]:
    text = message.text()
    shown: dict[str, Any] = {
        "id": message.id,
        "role": message.role,
        "text": text,
        "at": message.at.isoformat(),
        "turn": message.turn,
    }
    if message.role in ("assistant", "notice") and text:
        shown["html"] = rendered(text)
    if full:
        shown["parts"] = [part.model_dump(mode="json") for part in message.parts]
    return shown
