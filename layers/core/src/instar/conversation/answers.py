"""Pure: how a turn can end, as values, and the words for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from instar.conversation.envelopes import InboundMessage, Reply
from instar.conversation.ports import Step, TurnState
from instar.errors import InstarError, Unavailable
from instar.ids import ReplyId
from instar.messages import Message

REFUSAL = "Sorry, I am a personal agent and answer only my owner."
NEW_STARTED = "A new conversation starts here. I still remember what I was told to."


@dataclass(frozen=True, slots=True)
class Failure:
    """A turn that failed: the problem as callers see it."""

    problem: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of a turn: what is kept, what is said."""

    text: str
    state: TurnState = "completed"
    messages: Sequence[Message] = ()
    keeps_question: bool = True
    notice: str | None = None
    failure: Failure | None = None

    def reply_to(self, message: InboundMessage) -> Reply:
        """The reply; its id follows from the turn, so it is one however often it is made."""
        return Reply(
            id=ReplyId(f"{message.turn}-reply"),
            turn=message.turn,
            session=message.session,
            address=message.address,
            text=self.text,
        )


def refusal() -> Answer:
    """A stranger asked: nothing of it is kept in a conversation."""
    return Answer(text=REFUSAL, keeps_question=False)


def reset() -> Answer:
    """The conversation starts anew: the notice ends what the model sees."""
    return Answer(text=NEW_STARTED, keeps_question=False, notice="/new")


def ordinary(steps: Sequence[Step]) -> Answer:
    """The model's last words, or the last it said beside a tool call; never silence."""
    text = next((step.assistant.text() for step in reversed(steps) if step.assistant.text()), "")
    if not text:
        silence = Unavailable(
            "the model answered nothing, twice", fix="Try again, or choose another model."
        )
        return failed(silence, tuple(steps))
    return Answer(text=text, messages=_kept(steps))


def stopped(steps: Sequence[Step]) -> Answer:
    """The owner stopped the turn; what was said so far stands."""
    said = [step.assistant.text() for step in steps if step.assistant.text()]
    return Answer(text=said[-1] if said else "Stopped.", state="stopped", messages=_kept(steps))


def failed(error: InstarError, steps: Sequence[Step]) -> Answer:
    """An honest message about what went wrong and what to do; finished steps are kept."""
    fix = f" {error.fix}" if error.fix else ""
    return Answer(
        text=f"I could not answer: {error.detail.rstrip('.')}.{fix}",
        state="failed",
        messages=_kept([step for step in steps if step.results is not None]),
        notice=f"failed: {error.detail}",
        failure=Failure(error.problem()),
    )


def _kept(steps: Sequence[Step]) -> list[Message]:
    """The messages of the steps; calls whose results are missing are not kept."""
    kept: list[Message] = []
    for step in steps:
        if step.results is None and step.assistant.calls():
            continue
        if step.assistant.parts:
            kept.append(step.assistant)
        if step.results is not None:
            kept.append(step.results)
    return kept
