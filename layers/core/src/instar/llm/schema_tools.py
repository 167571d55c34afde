"""Tools for models that have no native tool calls but can be held to a JSON schema.

The request's tools are described in the system text, and the answer is constrained to either
`{"reply": "…"}` or `{"tool": "name", "arguments": {…}}`. The reply is streamed as it is decoded; a
tool's JSON becomes a call. Earlier calls and results stand in the history as text. What is not
valid is never executed: it becomes a call marked invalid, or plain text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from instar.errors import Invalid
from instar.ids import CallId, NewId
from instar.llm.ports import Model
from instar.llm.reply_reader import ReplyReader
from instar.llm.request import (
    Finished,
    ModelEvent,
    ModelProfile,
    ModelRequest,
    TextDelta,
    ToolCallReady,
    ToolSpec,
)
from instar.messages import Message, Part, Text, ToolCall, ToolResult

_TOOL_NAME = re.compile(r'"tool"\s*:\s*("(?:[^"\\]|\\.)*")')
_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL)


class SchemaTools:
    """A Model that gives `inner` tools by way of `response_schema`."""

    def __init__(self, inner: Model, *, new_id: NewId) -> None:
        self._inner = inner
        self._new_id = new_id

    @property
    def profile(self) -> ModelProfile:
        """The inner model's, which now calls tools by schema."""
        return replace(self._inner.profile, tools="schema")

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See Model."""
        spoken = replace(request, messages=_as_text(request.messages, wrapped=bool(request.tools)))
        if not request.tools:
            yield from self._inner.stream(spoken)
            return
        if request.response_schema is not None:
            raise Invalid("a request to this model has either tools or a schema of its own")
        constrained = replace(
            spoken,
            system=f"{request.system}\n\n{_instructions(request.tools)}".strip(),
            tools=(),
            response_schema=_schema(request.tools),
        )
        reader = ReplyReader()
        for event in self._inner.stream(constrained):
            if isinstance(event, TextDelta):
                piece = reader.feed(event.text)
                if piece:
                    yield TextDelta(piece)
            elif isinstance(event, Finished):
                yield from self._end(reader, event, request.tools)
            else:
                yield event

    def _end(
        self, reader: ReplyReader, finished: Finished, tools: Sequence[ToolSpec]
    ) -> Iterator[ModelEvent]:
        """What the whole answer was, unless its reply is out already."""
        if reader.has_started:
            yield finished
            return
        meaning = _meaning(reader.raw, tools, cut_off=finished.stop == "length")
        if isinstance(meaning, str):
            if meaning:
                yield TextDelta(meaning)
            yield finished
            return
        name, arguments, invalid = meaning
        call = CallId(f"call_{self._new_id()}")
        yield ToolCallReady(
            ToolCall(call=call, name=name, arguments=dict(arguments), invalid=invalid)
        )
        yield replace(finished, stop="length" if finished.stop == "length" else "tool_calls")


def _meaning(
    raw: str, tools: Sequence[ToolSpec], *, cut_off: bool
) -> str | tuple[str, Mapping[str, Any], str | None]:
    """The text of a reply, or a call: its name, arguments and why it may not run."""
    fenced = _FENCE.match(raw)
    try:
        parsed = json.loads(fenced.group(1) if fenced else raw)
    except (ValueError, RecursionError):
        return _broken(raw, tools, cut_off=cut_off)
    if not isinstance(parsed, dict):
        return raw
    if isinstance(parsed.get("tool"), str):
        arguments = parsed.get("arguments")
        if isinstance(arguments, dict):
            return parsed["tool"], arguments, None
        return parsed["tool"], {}, "the arguments are not a JSON object"
    return parsed["reply"] if isinstance(parsed.get("reply"), str) else raw


def _broken(
    raw: str, tools: Sequence[ToolSpec], *, cut_off: bool
) -> str | tuple[str, Mapping[str, Any], str]:
    """JSON that does not parse: a call of a known tool that was torn, else just text."""
    named = _TOOL_NAME.search(raw) if raw.lstrip().startswith("{") else None
    if named is not None and json.loads(named.group(1), strict=False) in {t.name for t in tools}:
        why = "were cut off by the output limit" if cut_off else "are not valid JSON"
        return json.loads(named.group(1), strict=False), {}, f"the arguments {why}"
    return raw


def _schema(tools: Sequence[ToolSpec]) -> Mapping[str, Any]:
    """One branch for a reply and one per tool; the order of the keys lets a reply be streamed."""
    reply = {
        "type": "object",
        "properties": {"reply": {"type": "string"}},
        "required": ["reply"],
        "additionalProperties": False,
    }
    branches = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, "arguments": dict(tool.parameters)},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {"anyOf": [reply, *branches]}


def _instructions(tools: Sequence[ToolSpec]) -> str:
    lines = [
        "Answer with one JSON object and nothing else.",
        'To answer the person: {"reply": "your answer"}',
        'To use a tool: {"tool": "its name", "arguments": {…}}; its result comes in the next '
        "message. Use a tool only when it is needed. The tools:",
    ]
    for tool in tools:
        schema = json.dumps(dict(tool.parameters), ensure_ascii=False)
        lines.append(f"- {tool.name}: {tool.description} Arguments: {schema}")
    shown = [_example(tool, *tool.example) for tool in tools if tool.example is not None]
    if shown:
        hello = 'The person says "Good morning!" and you answer {"reply": "Good morning!"}'
        lines += ["Examples:", *shown, hello]
    return "\n".join(lines)


def _example(tool: ToolSpec, said: str, arguments: Mapping[str, Any]) -> str:
    call = json.dumps({"tool": tool.name, "arguments": arguments}, ensure_ascii=False)
    return f'The person says "{said}" and you answer {call}'


def _as_text(messages: Sequence[Message], *, wrapped: bool) -> tuple[Message, ...]:
    """The history in plain text; the model's own words as the JSON it is asked for (`wrapped`)."""
    out = []
    for message in messages:
        if message.role == "tool":
            role, text = "user", "\n\n".join(_result(part) for part in message.parts)
        elif message.role == "assistant":
            role, text = "assistant", _assistant(message, wrapped=wrapped)
        else:
            out.append(message)
            continue
        parts: tuple[Part, ...] = (Text(text=text),) if text.strip() else ()
        out.append(message.model_copy(update={"role": role, "parts": parts}))
    return tuple(out)


def _assistant(message: Message, *, wrapped: bool) -> str:
    said = message.text()
    calls = [
        json.dumps({"tool": call.name, "arguments": call.arguments}, ensure_ascii=False)
        for call in message.calls()
    ]
    if calls:
        return "\n".join(calls)
    return json.dumps({"reply": said}, ensure_ascii=False) if wrapped and said.strip() else said


def _result(part: Part) -> str:
    """A result as JSON, so that nothing in it can pass for the person's own words."""
    if not isinstance(part, ToolResult):
        return part.text if isinstance(part, Text) else ""
    shown = {"result_of": part.name, "is_error": part.is_error, "content": part.content}
    return json.dumps(shown, ensure_ascii=False)
