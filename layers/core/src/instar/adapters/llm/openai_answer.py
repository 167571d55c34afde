"""One chat-completions answer (pure): parsed chunks in, model events out."""

from collections.abc import Iterator, Mapping
from typing import Any

from instar.adapters.llm.tool_fragments import ToolFragments
from instar.adapters.well_formed import PieceJoiner
from instar.errors import Unavailable
from instar.ids import NewId
from instar.llm.estimate import estimated_usage, tokens
from instar.llm.request import (
    Finished,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallReady,
)
from instar.messages import Usage

_STOPS: Mapping[str, StopReason] = {"length": "length", "content_filter": "refusal"}


class ChatAnswer:
    """Takes streamed chunks or one whole answer; `end` closes it, or raises when it is torn."""

    def __init__(self, request: ModelRequest, new_id: NewId) -> None:
        self._request = request
        self._new_id = new_id
        self._fragments = ToolFragments()
        self._text = PieceJoiner()
        self._reasoning = PieceJoiner()
        self._characters = 0
        self._usage: Mapping[str, Any] | None = None
        self._refused = False
        self._has_choice = False
        self._finish: str | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the provider has said why the model stopped."""
        return self._finish is not None

    def take(self, chunk: Mapping[str, Any]) -> Iterator[ModelEvent]:
        """The events of a chunk; tool calls wait for the end."""
        usage = chunk.get("usage")
        if isinstance(usage, Mapping):
            self._usage = usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            return
        self._has_choice = True
        choice = choices[0]
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            yield from self._delta(delta)
        if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
            self._finish = choice["finish_reason"]

    def end(self, *, done: bool) -> Iterator[ModelEvent]:
        """The last events. `done`: the provider's own end marker came.

        Raises Unavailable when neither that nor a reason for the end was seen.
        """
        if self._finish == "error" or not (self.is_finished or (done and self._has_choice)):
            raise Unavailable("the model's stream broke off before its end")
        rest = self._text.rest()
        if rest:
            yield self._shown(TextDelta(rest))
        taken = {call.call for message in self._request.messages for call in message.calls()}
        calls = self._fragments.ready(
            cut_off=self._finish == "length", taken=taken, new_id=self._new_id
        )
        for call in calls:
            yield ToolCallReady(call)
        yield Finished(self._stop(has_calls=bool(calls)), self._counted())

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[ModelEvent]:
        thought = self._reasoning.feed(
            _text_of(delta.get("reasoning_content")) or _text_of(delta.get("reasoning"))
        )
        if thought:
            yield self._shown(ReasoningDelta(thought))
        refusal = _text_of(delta.get("refusal"))
        self._refused = self._refused or bool(refusal)
        text = self._text.feed(_text_of(delta.get("content")) + refusal)
        if text:
            yield self._shown(TextDelta(text))
        fragments = delta.get("tool_calls")
        for fragment in fragments if isinstance(fragments, list) else ():
            if isinstance(fragment, Mapping):
                self._fragments.add(fragment)

    def _shown(self, delta: TextDelta | ReasoningDelta) -> TextDelta | ReasoningDelta:
        self._characters += len(delta.text)
        return delta

    def _stop(self, *, has_calls: bool) -> StopReason:
        if self._refused:
            return "refusal"
        return _STOPS.get(self._finish or "", "tool_calls" if has_calls else "end")

    def _counted(self) -> Usage:
        written = self._characters + self._fragments.characters()
        usage = self._usage or {}
        read, output = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        if read is None or output is None:
            return estimated_usage(self._request, written)
        details = usage.get("prompt_tokens_details")
        cached = _count(details, "cached_tokens") if isinstance(details, Mapping) else None
        cached = _count(usage, "prompt_cache_hit_tokens") if cached is None else cached
        return Usage(
            input_tokens=read,
            output_tokens=output or tokens(written),
            cached_tokens=cached or 0,
            estimated=output == 0 and written > 0,
        )


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return int(value) if is_count and value is not None else None


def _text_of(content: Any) -> str:
    """Text of a content field: a string, or a list of typed parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        part["text"]
        for part in parts
        if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    )
