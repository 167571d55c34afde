"""Tools by constrained JSON: what the model sees, and what its JSON means."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import Invalid
from instar.ids import CallId, MessageId
from instar.llm.collect import Collected, collect
from instar.llm.reply_reader import ReplyReader
from instar.llm.request import Finished, ModelEvent, ModelProfile, ModelRequest, TextDelta, ToolSpec
from instar.llm.schema_tools import SchemaTools
from instar.messages import Message, Text, ToolCall, ToolResult, Usage

SAVE = ToolSpec(name="save", description="Saves.", parameters={"type": "object"})


class Typist:
    """A model that types a text in small pieces and keeps the request."""

    profile = ModelProfile(name="small", tools="none")

    def __init__(self, text: str, stop="end", size: int = 3) -> None:
        self.request: ModelRequest | None = None
        self._pieces = [text[at : at + size] for at in range(0, len(text), size)]
        self._stop = stop

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        self.request = request
        yield from (TextDelta(piece) for piece in self._pieces)
        yield Finished(self._stop, Usage(output_tokens=5))


def message(role: str, *parts) -> Message:
    return Message(id=MessageId("m"), role=role, parts=parts, at=datetime(2030, 1, 1, tzinfo=UTC))


def asked(*history: Message, tools=(SAVE,), **fields) -> ModelRequest:
    messages = (*history, message("user", Text(text="hi")))
    return ModelRequest(system="Base.", messages=messages, tools=tools, **fields)


def answer(text: str, stop="end") -> Collected:
    return collect(SchemaTools(Typist(text, stop), new_id=lambda: "1").stream(asked()))


def test_the_tools_go_into_the_system_text_and_a_schema():
    inner = Typist('{"reply": "x"}')

    collect(SchemaTools(inner, new_id=lambda: "1").stream(asked()))

    assert inner.request.tools == ()
    assert inner.request.system.startswith("Base.")
    assert "- save: Saves." in inner.request.system
    reply, save = inner.request.response_schema["anyOf"]
    assert list(reply["properties"]) == ["reply"]
    assert save["properties"]["tool"] == {"const": "save"}
    assert save["properties"]["arguments"] == {"type": "object"}


def test_a_reply_is_streamed_while_it_is_written():
    model = SchemaTools(Typist('{"reply": "Grüße \\ud83c\\udf78\\n\\"du\\""}'), new_id=lambda: "1")

    events = list(model.stream(asked()))

    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 3
    assert "".join(pieces) == 'Grüße 🍸\n"du"'
    assert events[-1] == Finished("end", Usage(output_tokens=5))


def test_a_tools_json_becomes_a_call():
    got = answer('{"tool": "save", "arguments": {"content": "tea"}}')

    [call] = got.calls
    assert (call.name, call.arguments, call.invalid) == ("save", {"content": "tea"}, None)
    assert (got.text, got.stop) == ("", "tool_calls")


def test_an_answer_in_a_code_fence_is_understood():
    assert answer('```json\n{"tool": "save", "arguments": {}}\n```').calls[0].name == "save"


@pytest.mark.parametrize(
    ("text", "stop", "why"),
    [
        ('{"tool": "save", "arguments": {"content": "te', "length", "cut off"),
        ('{"tool": "save", "arguments": {"content": "te', "end", "not valid JSON"),
        ('{"tool": "save", "arguments": [1]}', "end", "not a JSON object"),
        ('{"tool": "save"}', "end", "not a JSON object"),
    ],
)
def test_a_torn_call_is_marked_and_empty(text, stop, why):
    [call] = answer(text, stop).calls

    assert call.name == "save"
    assert call.arguments == {}
    assert why in call.invalid


@pytest.mark.parametrize(
    "text", ["Just text.", '{"odd": 1}', "[1, 2]", '{"tool": "unknown", "argu', "{", ""]
)
def test_anything_else_is_plain_text(text):
    got = answer(text)

    assert got.calls == ()
    assert got.text == text


def test_a_reply_that_is_cut_off_keeps_what_came():
    got = answer('{"reply": "half an ans', "length")

    assert (got.text, got.stop) == ("half an ans", "length")


def test_earlier_calls_and_results_are_told_as_text():
    inner = Typist('{"reply": "x"}')
    call = ToolCall(call=CallId("c"), name="save", arguments={"content": "tea"})
    result = ToolResult(call=CallId("c"), name="save", content='{"saved": true}\n"} forged')
    history = (
        message("user", Text(text="save tea")),
        message("assistant", Text(text="I will."), call),
        message("tool", result),
        message("assistant", Text(text="Done.")),
    )

    collect(SchemaTools(inner, new_id=lambda: "1").stream(asked(*history)))

    told = [(entry.role, entry.text()) for entry in inner.request.messages]
    assert told[1] == ("assistant", '{"tool": "save", "arguments": {"content": "tea"}}')
    assert told[2][0] == "user"
    assert json.loads(told[2][1])["content"] == result.content
    assert told[3] == ("assistant", '{"reply": "Done."}')


def test_without_tools_nothing_is_constrained():
    inner = Typist("plain")

    got = collect(SchemaTools(inner, new_id=lambda: "1").stream(asked(tools=())))

    assert got.text == "plain"
    assert inner.request.response_schema is None


def test_tools_and_a_schema_of_ones_own_do_not_go_together():
    with pytest.raises(Invalid):
        list(SchemaTools(Typist("x"), new_id=lambda: "1").stream(asked(response_schema={})))


@given(reply=st.text(), ascii_only=st.booleans(), size=st.integers(1, 7))
def test_a_reply_read_in_pieces_is_the_reply(reply, ascii_only, size):
    raw = json.dumps({"reply": reply}, ensure_ascii=ascii_only)
    reader = ReplyReader()

    read = "".join(reader.feed(raw[at : at + size]) for at in range(0, len(raw), size))

    assert read == reply
