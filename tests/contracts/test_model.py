"""Every Model keeps these promises: adapters, the demo model, and the wrappers around them."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from instar.adapters.http import Egress, Trust
from instar.adapters.llm.demo import DemoModel
from instar.adapters.llm.openai_chat import ChatEndpoint, OpenAIChatModel
from instar.clock import utc_now
from instar.errors import Throttled, Unavailable
from instar.ids import CallId, MessageId, new_id
from instar.llm.collect import collect
from instar.llm.ports import Model
from instar.llm.request import Finished, ModelRequest, TextDelta, ToolCallReady, ToolSpec
from instar.llm.schema_tools import SchemaTools
from instar.llm.wrappers import Fallback, Retrying
from instar.messages import Message, Text, ToolCall, ToolResult
from instar.testing.wire import (
    ScriptedModelServer,
    Step,
    call_delta,
    cut_step,
    cut_stream_step,
    delta,
    error_step,
    sse,
    text_step,
    tool_step,
    usage,
)

SAVE = ToolSpec(
    name="memory_save",
    description="Saves a statement.",
    parameters={
        "type": "object",
        "properties": {"content": {"type": "string"}},
        "required": ["content"],
    },
)


def message(role: str, *parts) -> Message:
    return Message(id=MessageId(new_id()), role=role, parts=parts, at=datetime.now(UTC))


def asked(text: str, *, tools=(SAVE,)) -> ModelRequest:
    return ModelRequest(
        system="You are Instar.", messages=(message("user", Text(text=text)),), tools=tools
    )


@dataclass
class Subject:
    """A model, and how its provider is told what to say next."""

    model: Model
    server: ScriptedModelServer | None
    as_json: bool = False

    def will_say(self, text: str) -> None:
        if self.server:
            said = json.dumps({"reply": text}) if self.as_json else text
            self.server.add(text_step(said))

    def will_call(self, name: str, arguments: Mapping[str, object]) -> None:
        if self.server and self.as_json:
            self.server.add(text_step(json.dumps({"tool": name, "arguments": arguments})))
        elif self.server:
            self.server.add(tool_step((name, arguments)))

    def will_fail(self, *steps: Step) -> None:
        assert self.server
        self.server.add(*steps)


def openai_chat(inner: Model) -> Model:
    return inner


def retrying(inner: Model) -> Model:
    return Retrying(inner, clock=utc_now, sleep=lambda seconds: None, random=lambda: 0.5)


def fallback(inner: Model) -> Model:
    return Fallback([inner])


def schema_tools(inner: Model) -> Model:
    return SchemaTools(inner, new_id=new_id)


@pytest.fixture
def endpoint() -> Iterator[tuple[Model, ScriptedModelServer]]:
    with ScriptedModelServer() as server, Egress().client(Trust.OWNER, timeout_seconds=5) as client:
        yield OpenAIChatModel(ChatEndpoint(model="m", base_url=server.base_url), client), server


@pytest.fixture(
    params=[openai_chat, retrying, fallback, schema_tools], ids=lambda build: build.__name__
)
def provided(request, endpoint) -> Subject:
    """Models with a provider behind them, which can fail."""
    build: Callable[[Model], Model] = request.param
    return Subject(build(endpoint[0]), endpoint[1], as_json=build is schema_tools)


@pytest.fixture(params=["demo", openai_chat, retrying, fallback, schema_tools], ids=str)
def subject(request) -> Subject:
    if request.param == "demo":
        return Subject(DemoModel(), None)
    model, server = request.getfixturevalue("endpoint")
    return Subject(request.param(model), server, as_json=request.param is schema_tools)


def test_a_stream_ends_with_its_only_end_marker(subject):
    subject.will_say("Good morning to you")

    events = list(subject.model.stream(asked("hello")))

    assert [event for event in events if isinstance(event, Finished)] == [events[-1]]
    assert events[-1].stop == "end"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip()


def test_a_reply_with_text_never_counts_as_no_output(subject):
    subject.will_say("Good morning")

    usage = collect(subject.model.stream(asked("hello"))).usage

    assert usage.output_tokens > 0
    assert usage.input_tokens > 0


def test_a_tool_call_comes_whole_and_with_an_id(subject):
    subject.will_call("memory_save", {"content": "my tea is oolong"})

    answer = collect(subject.model.stream(asked("remember that my tea is oolong")))

    [call] = answer.calls
    assert (call.name, call.arguments, call.invalid) == (
        "memory_save",
        {"content": "my tea is oolong"},
        None,
    )
    assert call.call
    assert answer.stop == "tool_calls"


def test_a_history_with_calls_and_results_is_answered(subject):
    subject.will_say("It is saved.")
    call = ToolCall(call=CallId("call_1"), name="memory_save", arguments={"content": "tea"})
    result = ToolResult(call=CallId("call_1"), name="memory_save", content='{"saved":true}')
    history = ModelRequest(
        system="You are Instar.",
        messages=(
            message("user", Text(text="remember tea")),
            message("assistant", call),
            message("tool", result),
        ),
        tools=(SAVE,),
    )

    answer = collect(subject.model.stream(history))

    assert "saved" in answer.text.lower()
    assert answer.calls == ()


def test_the_request_is_not_changed(subject):
    subject.will_say("Hello")
    request = asked("hello")
    before = (request.system, tuple(request.messages), tuple(request.tools))

    collect(subject.model.stream(request))

    assert (request.system, tuple(request.messages), tuple(request.tools)) == before


def test_a_stream_that_breaks_off_raises_after_what_was_shown(provided):
    torn = '{"reply": "I was about ' if provided.as_json else "I was about "
    provided.will_fail(cut_stream_step(torn))

    seen = []
    with pytest.raises(Unavailable):
        collect(provided.model.stream(asked("hello")), seen=seen.append)

    assert "".join(event.text for event in seen if isinstance(event, TextDelta)) == "I was about "


def test_a_provider_that_hangs_up_is_unavailable(provided):
    tries = 3 if isinstance(provided.model, Retrying) else 1
    provided.will_fail(*[cut_step() for _ in range(tries)])

    with pytest.raises(Unavailable):
        collect(provided.model.stream(asked("hello")))


def test_a_long_retry_after_is_passed_on_at_once(provided):
    provided.will_fail(error_step(429, headers={"retry-after": "600"}))

    with pytest.raises(Throttled) as caught:
        collect(provided.model.stream(asked("hello")))

    assert caught.value.retry_after_seconds == 600


def test_arguments_that_were_cut_off_are_marked_and_empty(provided):
    torn = '{"tool": "memory_save", "arguments": {"content": "# Pl' if provided.as_json else None
    provided.will_fail(cut_off_call(torn))

    seen = []
    collect(provided.model.stream(asked("save it")), seen=seen.append)

    [ready] = [event for event in seen if isinstance(event, ToolCallReady)]
    assert ready.call.name == "memory_save"
    assert ready.call.arguments == {}
    assert ready.call.invalid == "the arguments were cut off by the output limit"


def cut_off_call(text: str | None) -> Step:
    if text is not None:
        return Step(chunks=(sse(delta(content=text), delta("length"), usage(5, 5)),))
    fragment = call_delta(0, id="c1", name="memory_save", arguments='{"content": "# Pl')
    return Step(chunks=(sse(fragment, delta("length"), usage(5, 5)),))
