"""A session as chat-completions messages (pure): always legal for the provider.

Every call is followed at once by exactly one result: missing ones get a stub, repeated and orphan
ones are dropped, late ones move up. No message is empty, neighbours of one role are joined. Ids go
out as they are when they are short, plain and unique, else as nine letters and digits made from
their hash; with `short_ids` all do, for providers that accept nothing else. Stored history is only
read.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from instar.llm.request import ModelRequest, ToolSpec
from instar.messages import Message, Text, ToolCall, ToolResult

NO_RESULT = "No result: the call was interrupted; it may or may not have run."
NO_OUTPUT = "(no output)"
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_ODD_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def chat_messages(request: ModelRequest, *, short_ids: bool = False) -> list[dict[str, Any]]:
    """The `messages` of the request's body."""
    ids = _OutgoingIds(short_ids)
    out: list[dict[str, Any]] = []
    if request.system.strip():
        out.append({"role": "system", "content": request.system})
    for position, message in enumerate(request.messages):
        if message.role == "user":
            _append(out, "user", _text(message))
        elif message.role == "assistant":
            calls = message.calls()
            if not calls:
                _append(out, "assistant", _text(message))
                continue
            results = _results_after(request.messages, position)
            out.extend(_round(_text(message), calls, results, ids))
    return out


def chat_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The `tools` of the request's body."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def _round(
    text: str, calls: Sequence[ToolCall], results: dict[str, list[str]], ids: "_OutgoingIds"
) -> list[dict[str, Any]]:
    """The assistant's message with its calls, and a result for each."""
    entries, answers = [], []
    for call in calls:
        outgoing = ids.of(call.call)
        entries.append(
            {
                "id": outgoing,
                "type": "function",
                "function": {
                    "name": _ODD_IN_NAME.sub("_", call.name)[:64] or "unnamed",
                    "arguments": json.dumps(call.arguments, ensure_ascii=False),
                },
            }
        )
        found = results.get(call.call)
        content = found.pop(0) if found else NO_RESULT
        answers.append(
            {
                "role": "tool",
                "tool_call_id": outgoing,
                "content": content if content.strip() else NO_OUTPUT,
            }
        )
    return [{"role": "assistant", "content": text or None, "tool_calls": entries}, *answers]


def _results_after(messages: Sequence[Message], position: int) -> dict[str, list[str]]:
    """Results by call id, from behind the message up to where an id is used for another call."""
    wanted = {call.call for call in messages[position].calls()}
    found: dict[str, list[str]] = {}
    for message in messages[position + 1 :]:
        wanted -= {call.call for call in message.calls()}
        for part in message.parts:
            if isinstance(part, ToolResult) and part.call in wanted:
                found.setdefault(part.call, []).append(part.content)
    return found


def _append(out: list[dict[str, Any]], role: str, text: str) -> None:
    """Adds a message, joined to the one before when that is of the same role and plain."""
    if not text:
        return
    last = out[-1] if out else {}
    if last.get("role") == role and "tool_calls" not in last:
        last["content"] = f"{last['content']}\n\n{text}"
    else:
        out.append({"role": role, "content": text})


def _text(message: Message) -> str:
    pieces = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]
    return "\n\n".join(pieces)


class _OutgoingIds:
    """Maps stored ids to outgoing ones: the same history always gets the same ids."""

    def __init__(self, short: bool) -> None:
        self._short = short
        self._used: set[str] = set()

    def of(self, stored: str) -> str:
        plain = _PLAIN_ID.fullmatch(stored) and not self._short and stored not in self._used
        outgoing = stored if plain else self._hashed(stored)
        self._used.add(outgoing)
        return outgoing

    def _hashed(self, stored: str) -> str:
        for attempt in range(1_000_000):
            digest = hashlib.sha256(f"{attempt}:{stored}".encode("utf-8", "replace")).digest()
            outgoing = "".join(_ALPHANUMERIC[byte % 62] for byte in digest[:9])
            if outgoing not in self._used:
                return outgoing
        raise AssertionError("a million ids were taken")
