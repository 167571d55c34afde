"""The built-in demo model: scripted, no intelligence, no network.

It says what it is and where a real model goes, and turns a few command words (English, German,
Chinese) into real calls of the memory tools, so that everything around a model can be tried before
there is one.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from instar.ids import CallId, NewId, new_id
from instar.llm.estimate import estimated_usage
from instar.llm.request import (
    Finished,
    ModelEvent,
    ModelProfile,
    ModelRequest,
    TextDelta,
    ToolCallReady,
)
from instar.messages import Message, Text, ToolCall, ToolResult

ABOUT = (
    "I am Instar's built-in demo model: a script without any intelligence. I can save, search, "
    "forget and list memories:\n\n"
    "- remember that my tea is oolong\n"
    "- what do you know about tea\n"
    "- forget my tea is oolong\n"
    "- list memories\n\n"
    "For real answers, give me a model: on the settings page, or with INSTAR_MODEL and "
    "INSTAR_MODEL_API_KEY for a provider, or INSTAR_MODEL=openai-chat/NAME and "
    "INSTAR_MODEL_BASE_URL (for example http://127.0.0.1:11434/v1) for a local one."
)
SIGNATURE = "\n\n(demo model: a script, no intelligence; the settings page takes a real one)"

_FLAGS = re.IGNORECASE | re.DOTALL | re.MULTILINE
_COMMANDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (tool, re.compile(pattern, _FLAGS))
    for tool, pattern in (
        (
            "memory_save",
            r"^\s*(?:please\s+|bitte\s+)?(?:(?:remember(?:\s+that)?|save|note(?:\s+that)?"
            r"|merke?\s+dir(?:\s*,?\s*dass)?)(?=[\s:,])|记住|記住|请记住)\s*[:,，：]?\s*(?P<rest>\S.*)\Z",
        ),
        (
            "memory_delete",
            r"^\s*(?:please\s+|bitte\s+)?(?:(?:forget(?:\s+that)?|vergiss(?:\s*,?\s*dass)?)(?=[\s:,])|忘记|忘記)"
            r"\s*[:,，：]?\s*(?P<rest>\S.*)\Z",
        ),
        (
            "memory_get",
            r"^\s*(?:please\s+)?(?:(?:list|show)(?:\s+(?:all|me|my|your|the))*\s+memor(?:y|ies)"
            r"|(?:liste|zeige?)(?:\s+\w+)?\s+erinnerungen|列出记忆|列出記憶)(?P<rest>)\W*\Z",
        ),
        (
            "memory_search",
            r"^\s*(?:(?:what\s+do\s+you\s+(?:know|remember)\s+about|search(?:\s+for)?|find|recall"
            r"|was\s+weißt\s+du\s+(?:über|von)|suche?(?:\s+nach)?)(?=[\s:])|搜索|查找|你知道)"
            r"\s*[:：]?\s*(?P<rest>\S.*?)[\s?？.。!]*\Z",
        ),
        ("memory_search", r"^\s*(?P<rest>\S.*?)\s*[?？]\s*\Z"),
    )
)
_ARGUMENT = {"memory_save": "content", "memory_delete": "content", "memory_search": "query"}
_MEMORY = "MEMORY.md"


class DemoModel:
    """A Model without a provider."""

    def __init__(self, *, new_id: NewId = new_id) -> None:
        self._new_id = new_id

    @property
    def profile(self) -> ModelProfile:
        """It calls tools natively, on command words."""
        return ModelProfile(name="demo")

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See Model."""
        results = _results(request)
        if results:
            yield from _say(request, "\n\n".join(_answer(part) for part in results) + SIGNATURE)
            return
        command = _command(_question(request))
        if command is None:
            yield from _say(request, ABOUT)
            return
        name, rest = command
        if name not in {tool.name for tool in request.tools}:
            yield from _say(request, f"I may not use {name} in this conversation.{SIGNATURE}")
            return
        arguments = {_ARGUMENT[name]: rest} if name in _ARGUMENT else {"document": _MEMORY}
        call = ToolCall(call=CallId(f"demo_{self._new_id()}"), name=name, arguments=arguments)
        yield ToolCallReady(call)
        yield Finished("tool_calls", estimated_usage(request, len(name) + len(rest)))


def _say(request: ModelRequest, text: str) -> Iterator[ModelEvent]:
    for piece in re.findall(r"\S+\s*|\s+", text):
        yield TextDelta(piece)
    yield Finished("end", estimated_usage(request, len(text)))


def _results(request: ModelRequest) -> tuple[ToolResult, ...]:
    """The results that wait for an answer."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "tool":
        return ()
    return tuple(part for part in last.parts if isinstance(part, ToolResult))


def _question(request: ModelRequest) -> str:
    """What the person wrote last: the last text part, since context may stand before it."""
    asked: Message | None = next(
        (message for message in reversed(request.messages) if message.role == "user"), None
    )
    texts = [part.text for part in asked.parts if isinstance(part, Text)] if asked else []
    return texts[-1].strip() if texts else ""


def _command(text: str) -> tuple[str, str] | None:
    for tool, pattern in _COMMANDS:
        match = pattern.search(text)
        if match:
            return tool, match.group("rest").strip()
    return None


def _answer(result: ToolResult) -> str:
    """One tool result in words."""
    try:
        value = json.loads(result.content)
    except ValueError:
        value = {}
    value = value if isinstance(value, dict) else {}
    if result.is_error:
        return f"That did not work: {value.get('detail') or result.content}{_similar(value)}"
    match result.name:
        case "memory_save":
            return _saved(value)
        case "memory_search":
            return _found(value)
        case "memory_get":
            text = value.get("text")
            shown = text if isinstance(text, str) and text.strip() else "nothing yet"
            return f"{_MEMORY} says:\n\n{shown}"
        case _:
            return "Done: it is removed from memory."


def _saved(value: Mapping[str, Any]) -> str:
    if value.get("saved") is False:
        return "I knew that already."
    proposed = value.get("status") == "proposed"
    where = value.get("document") or _MEMORY
    return f"Proposed for {where}; you decide." if proposed else f"Saved in {where}."


def _found(value: Mapping[str, Any]) -> str:
    hits = value.get("hits")
    lines = [
        f"- {hit['text'].strip().removeprefix('- ')} ({hit.get('document', '?')})"
        for hit in (hits if isinstance(hits, list) else [])
        if isinstance(hit, dict) and isinstance(hit.get("text"), str)
    ]
    return "This is what memory has:\n\n" + "\n".join(lines) if lines else "Memory has nothing."


def _similar(value: Mapping[str, Any]) -> str:
    similar = value.get("similar")
    texts = [
        item if isinstance(item, str) else item.get("text", "")
        for item in (similar if isinstance(similar, list) else [])
        if isinstance(item, str | dict)
    ]
    return "".join(f"\n- similar: {text}" for text in texts if text)
