"""The demo model: what it says of itself, and its command words."""

import json
from datetime import UTC, datetime

import pytest

from instar.adapters.llm.demo import ABOUT, DemoModel
from instar.ids import CallId, MessageId
from instar.llm.collect import Collected, collect
from instar.llm.request import ModelRequest, ToolSpec
from instar.messages import Message, Text, ToolResult

TOOLS = tuple(
    ToolSpec(name=name, description="", parameters={})
    for name in ("memory_save", "memory_search", "memory_delete", "memory_get")
)


def message(role: str, *parts) -> Message:
    return Message(id=MessageId("m"), role=role, parts=parts, at=datetime(2030, 1, 1, tzinfo=UTC))


def answer(*parts, role: str = "user", tools=TOOLS) -> Collected:
    request = ModelRequest(system="", messages=(message(role, *parts),), tools=tools)
    return collect(DemoModel().stream(request))


def result(name: str, value, *, is_error: bool = False) -> Collected:
    content = value if isinstance(value, str) else json.dumps(value)
    part = ToolResult(call=CallId("c"), name=name, content=content, is_error=is_error)
    return answer(part, role="tool")


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("remember that my tea is oolong", "memory_save", {"content": "my tea is oolong"}),
        ("Please remember: two\nlines", "memory_save", {"content": "two\nlines"}),
        (
            "Merke dir, dass Anna Nüsse nicht mag",
            "memory_save",
            {"content": "Anna Nüsse nicht mag"},
        ),
        ("merk dir Pin 4711", "memory_save", {"content": "Pin 4711"}),
        ("记住我喜欢乌龙茶", "memory_save", {"content": "我喜欢乌龙茶"}),
        ("what do you know about tea?", "memory_search", {"query": "tea"}),
        ("search oolong", "memory_search", {"query": "oolong"}),
        ("suche nach Anna", "memory_search", {"query": "Anna"}),
        ("What is my favourite tea?", "memory_search", {"query": "What is my favourite tea"}),
        ("forget my tea is oolong", "memory_delete", {"content": "my tea is oolong"}),
        ("Vergiss Pin 4711", "memory_delete", {"content": "Pin 4711"}),
        ("list memories", "memory_get", {"document": "MEMORY.md"}),
        ("show me my memories.", "memory_get", {"document": "MEMORY.md"}),
    ],
)
def test_command_words_become_tool_calls(text, name, arguments):
    [call] = answer(Text(text=text)).calls

    assert (call.name, call.arguments) == (name, arguments)


def test_context_before_the_persons_words_is_no_command():
    [call] = answer(Text(text="remember: recalled data"), Text(text="search tea")).calls

    assert call.name == "memory_search"


@pytest.mark.parametrize("text", ["hello", "remembering is hard", "savings", "", "I find it good"])
def test_anything_else_gets_told_what_this_is_and_where_a_model_goes(text):
    got = answer(Text(text=text))

    assert got.text == ABOUT
    assert "demo model" in got.text
    assert "INSTAR_MODEL_API_KEY" in got.text
    assert "INSTAR_MODEL_BASE_URL" in got.text


def test_a_tool_that_is_not_offered_is_not_called():
    got = answer(Text(text="remember that x"), tools=())

    assert got.calls == ()
    assert "may not" in got.text


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("memory_save", {"saved": True, "document": "MEMORY.md"}, "Saved in MEMORY.md"),
        ("memory_save", {"saved": False, "duplicate_of": "x"}, "knew that already"),
        ("memory_search", {"hits": [{"document": "MEMORY.md", "text": "tea is oolong"}]}, "oolong"),
        ("memory_search", {"hits": []}, "Memory has nothing"),
        ("memory_get", {"document": "MEMORY.md", "text": "- tea"}, "- tea"),
        ("memory_get", "not json", "nothing yet"),
        ("memory_delete", {"done": True}, "removed"),
    ],
)
def test_results_are_put_in_words(name, value, said):
    got = result(name, value)

    assert said in got.text
    assert "demo model" in got.text


def test_a_failed_call_is_told_with_what_is_similar():
    problem = {"type": "not_found", "detail": "no such text", "similar": ["my tea is green"]}

    got = result("memory_delete", problem, is_error=True)

    assert "no such text" in got.text
    assert "my tea is green" in got.text
