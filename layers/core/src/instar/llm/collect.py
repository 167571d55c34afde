"""Folds the events of one model call into what was said."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from instar.errors import Unavailable
from instar.llm.request import (
    Finished,
    ModelEvent,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallReady,
)
from instar.messages import Text, ToolCall, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A finished answer."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    usage: Usage
    stop: StopReason

    def parts(self) -> tuple[Text | ToolCall, ...]:
        """The parts of an assistant message: text unless it is blank, then the calls."""
        text = (Text(text=self.text),) if self.text.strip() else ()
        return (*text, *self.calls)


def collect(
    events: Iterable[ModelEvent], *, seen: Callable[[ModelEvent], None] | None = None
) -> Collected:
    """Reads the stream to its end, showing each event to `seen` on the way.

    Raises Unavailable when the stream ends without Finished.
    """
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    for event in events:
        if seen is not None:
            seen(event)
        match event:
            case TextDelta():
                text.append(event.text)
            case ReasoningDelta():
                reasoning.append(event.text)
            case ToolCallReady():
                calls.append(event.call)
            case Finished():
                return Collected(
                    text="".join(text),
                    reasoning="".join(reasoning),
                    calls=tuple(calls),
                    usage=event.usage,
                    stop=event.stop,
                )
    raise Unavailable("the model's stream ended without an end marker")
