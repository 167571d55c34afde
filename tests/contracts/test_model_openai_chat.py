"""What chat-completions providers really send, replayed over a socket."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from instar.adapters.http import Egress, Trust
from instar.adapters.llm.openai_chat import (
    ChatEndpoint,
    OpenAIChatModel,
    chat_base_url,
    check_model,
    list_models,
)
from instar.errors import (
    ContextOverflow,
    Exhausted,
    Invalid,
    Misconfigured,
    Throttled,
    Unavailable,
)
from instar.ids import CallId, MessageId, new_id
from instar.llm.collect import Collected, collect
from instar.llm.request import ModelRequest, ReasoningDelta, TextDelta, ToolSpec
from instar.messages import Message, Text, ToolCall, ToolResult, Usage
from instar.testing.wire import (
    Abort,
    Pause,
    ScriptedModelServer,
    Step,
    call_delta,
    delta,
    error_step,
    json_step,
    sse,
    text_step,
    usage,
)

KEY = "sk-secret-0123456789abcdef"


class Wire:
    """A scripted provider and the model in front of it."""

    def __init__(self, server: ScriptedModelServer, model: OpenAIChatModel, ask) -> None:
        self.server = server
        self.model = model
        self._ask = ask

    def answer(self, *steps: Step, request: ModelRequest | None = None) -> Collected:
        self.server.add(*steps)
        return collect(self.model.stream(request or question()))

    def stream(self, *objects, done: bool = True) -> Collected:
        return self.answer(Step(chunks=(sse(*objects, done=done),)))


def message(role: str, *parts) -> Message:
    return Message(id=MessageId(new_id()), role=role, parts=parts, at=datetime.now(UTC))


def question(*history: Message, tools=(), **fields) -> ModelRequest:
    return ModelRequest(
        system="S", messages=(*history, message("user", Text(text="hello?"))), tools=tools, **fields
    )


@pytest.fixture
def wire() -> Iterator[Wire]:
    with ScriptedModelServer() as server, Egress().client(Trust.OWNER, timeout_seconds=5) as client:
        endpoint = ChatEndpoint(
            model="m", base_url=server.base_url + "/", api_key=lambda: KEY, timeout_seconds=5
        )
        yield Wire(server, OpenAIChatModel(endpoint, client), question)


def calls_of(wire: Wire, *fragments, finish: str = "tool_calls") -> list[tuple[str, object]]:
    answer = wire.stream(*fragments, delta(finish))
    assert len({call.call for call in answer.calls}) == len(answer.calls)
    assert all(call.call and call.invalid is None for call in answer.calls)
    return [(call.name, call.arguments) for call in answer.calls]


TWO = [("f", {"a": 1}), ("g", {"b": 2})]


def test_the_request_carries_what_the_provider_needs(wire):
    tool = ToolSpec(name="f", description="d", parameters={"type": "object"})
    schema = {"type": "object"}

    wire.answer(text_step("ok"), request=question(tools=(tool,), response_schema=schema))

    [sent] = wire.server.requests
    body = sent.json()
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert body["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "hello?"},
    ]
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 4096
    assert body["tools"][0]["function"]["name"] == "f"
    assert body["response_format"]["json_schema"]["schema"] == schema


def test_usage_is_what_the_provider_counted(wire):
    answer = wire.stream(delta(content="hi"), delta("stop"), usage(100, 7, cached=64))

    assert answer.usage == Usage(input_tokens=100, output_tokens=7, cached_tokens=64)


def test_usage_is_estimated_by_characters_when_the_provider_does_not_count(wire):
    answer = wire.stream(delta(content="12345"), delta("stop"))

    assert answer.usage.output_tokens == 2
    assert answer.usage.estimated


def test_a_count_of_zero_for_a_reply_with_text_is_not_believed(wire):
    answer = wire.stream(delta(content="12345"), delta("stop"), usage(9, 0))

    assert answer.usage == Usage(input_tokens=9, output_tokens=2, estimated=True)


def test_bytes_may_be_torn_anywhere(wire):
    raw = b": hi\r\n\r\n" + sse(delta(content="Grüße 👩‍👩‍👧‍👦 漢字"), delta("stop")).replace(
        b"\n", b"\r\n"
    )

    answer = wire.answer(Step(chunks=[bytes([byte]) for byte in raw]))

    assert answer.text == "Grüße 👩‍👩‍👧‍👦 漢字"


def test_a_pair_torn_between_deltas_is_joined_and_a_lone_half_replaced(wire):
    halves = b'data: {"choices":[{"delta":{"content":"a\\ud83c"}}]}\n\n' + (
        b'data: {"choices":[{"delta":{"content":"\\udf78b\\ud83c"}}]}\n\n'
    )

    answer = wire.answer(Step(chunks=(halves, sse(delta("stop")))))

    assert answer.text == "a🍸b\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thinking_is_told_apart_from_the_answer(wire, name):
    wire.server.add(Step(chunks=(sse(delta(**{name: "hm"}), delta(content="42"), delta("stop")),)))

    events = list(wire.model.stream(question()))

    assert events[:2] == [ReasoningDelta("hm"), TextDelta("42")]


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", "end"), ("length", "length"), ("content_filter", "refusal"), ("eos", "end")],
)
def test_the_reason_for_the_end_is_translated(wire, finish, stop):
    assert wire.stream(delta(content="x"), delta(finish)).stop == stop


def test_a_refusal_is_text_and_a_reason(wire):
    answer = wire.stream(delta(refusal="I will not"), delta("stop"))

    assert (answer.text, answer.stop) == ("I will not", "refusal")


def test_a_stream_without_its_marker_but_with_a_reason_is_whole(wire):
    assert wire.stream(delta(content="x"), delta("stop"), done=False).text == "x"


def test_a_connection_that_breaks_after_the_reason_lost_nothing(wire):
    step = Step(chunks=(sse(delta(content="x"), delta("stop"), done=False), Abort()))

    assert wire.answer(step).text == "x"


@pytest.mark.parametrize(
    "chunks",
    [
        (),
        (sse(done=True),),
        (sse(delta(content="half"), done=False),),
        (sse(delta(content="half"), done=False), Abort()),
        (b"data: {not json\n\n",),
        (sse(delta(content="half"), delta("error")),),
    ],
)
def test_a_stream_without_a_proper_end_is_unavailable(wire, chunks):
    with pytest.raises(Unavailable):
        wire.answer(Step(chunks=chunks))


def test_an_answer_that_is_not_streamed_is_taken_whole(wire):
    whole = {
        "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }

    answer = wire.answer(json_step(whole))

    assert (answer.text, answer.usage.output_tokens) == ("hi", 1)


def test_a_web_page_is_a_wrong_address(wire):
    page = Step(chunks=(b"<html>",), headers={"content-type": "text/html; charset=utf-8"})

    with pytest.raises(Misconfigured):
        wire.answer(page)


def test_silence_is_given_up_and_comments_are_silence():
    never = threading.Event()
    comments = [piece for _ in range(20) for piece in (b": ping\n\n", Pause(seconds=0.1))]
    with (
        ScriptedModelServer(
            Step(hold=never),
            Step(chunks=comments),
            Step(chunks=(sse(delta(content="a"), done=False), Pause(never))),
        ) as server,
        Egress().client(Trust.OWNER, timeout_seconds=0.3) as client,
    ):
        endpoint = ChatEndpoint(model="m", base_url=server.base_url, timeout_seconds=0.3)
        for _ in range(3):
            with pytest.raises(Unavailable):
                collect(OpenAIChatModel(endpoint, client).stream(question()))


def test_nobody_listening_is_unavailable():
    with ScriptedModelServer() as server:
        address = server.base_url
    with Egress().client(Trust.OWNER, timeout_seconds=2) as client:
        model = OpenAIChatModel(ChatEndpoint(model="m", base_url=address), client)
        with pytest.raises(Unavailable):
            collect(model.stream(question()))


def test_deltas_are_shown_while_the_provider_is_still_writing(wire):
    release = threading.Event()
    wire.server.add(
        Step(chunks=(sse(delta(content="one"), done=False), Pause(release), sse(delta("stop"))))
    )

    events = wire.model.stream(question())
    first = next(events)
    release.set()

    assert first == TextDelta("one")
    list(events)


def test_parallel_calls_by_index(wire):
    assert (
        calls_of(
            wire,
            call_delta(1, id="x", name="f", arguments=""),
            call_delta(2, id="y", name="g", arguments='{"b"'),
            call_delta(1, arguments='{"a": 1'),
            call_delta(2, arguments=": 2}"),
            call_delta(1, arguments="}"),
        )
        == TWO
    )


def test_two_ids_under_one_index_are_two_calls(wire):
    assert (
        calls_of(
            wire,
            call_delta(0, id="x", name="f", arguments='{"a":'),
            call_delta(0, arguments=" 1}"),
            call_delta(0, id="y", name="g", arguments='{"b":'),
            call_delta(0, arguments=" 2}"),
        )
        == TWO
    )


def test_calls_without_index_are_told_apart_by_id(wire):
    assert (
        calls_of(
            wire,
            call_delta(None, id="x", name="f", arguments='{"a": '),
            call_delta(None, id="y", name="g", arguments='{"b": '),
            call_delta(None, id="x", arguments="1}"),
            call_delta(None, id="y", arguments="2}"),
        )
        == TWO
    )


def test_a_fragment_without_index_and_id_continues_the_last_call(wire):
    assert (
        calls_of(
            wire,
            call_delta(None, id="x", name="f", arguments='{"a"'),
            call_delta(None, arguments=": 1}"),
            call_delta(None, id="y", name="g"),
            call_delta(None, arguments='{"b": 2}'),
        )
        == TWO
    )


def test_a_tail_under_the_next_index_belongs_to_the_last_head(wire):
    assert (
        calls_of(
            wire,
            call_delta(0, id="x", name="f", arguments='{"a": 1}'),
            call_delta(0, id="y", name="g", arguments=""),
            call_delta(1, arguments='{"b": 2}'),
        )
        == TWO
    )


@pytest.mark.parametrize("indexes", [(0, 1), (0, 0), (None, None)])
def test_calls_with_empty_ids_get_ids_of_their_own(wire, indexes):
    assert (
        calls_of(
            wire,
            call_delta(indexes[0], id="", name="f", arguments='{"a": 1}'),
            call_delta(indexes[1], id="", name="g", arguments='{"b": 2}'),
        )
        == TWO
    )


def test_the_same_tool_twice_in_whole_pieces_is_two_calls(wire):
    piece = call_delta(None, name="f", arguments='{"a": 1}')

    assert calls_of(wire, piece, piece) == [TWO[0], TWO[0]]


def test_id_and_name_repeated_in_every_fragment_are_one_call(wire):
    assert (
        calls_of(
            wire,
            call_delta(0, id="x", name="f", arguments='{"a"'),
            call_delta(0, id="x", name="f", arguments=": 1}"),
            call_delta(0, id="x", name="f", arguments=""),
        )
        == TWO[:1]
    )


def test_one_id_for_two_calls_is_made_two(wire):
    assert (
        calls_of(
            wire,
            call_delta(0, id="x", name="f", arguments='{"a": 1}'),
            call_delta(1, id="x", name="g", arguments='{"b": 2}'),
        )
        == TWO
    )


def test_arguments_may_come_as_an_object_or_not_at_all(wire):
    assert calls_of(
        wire,
        call_delta(0, id="x", name="f", arguments={"a": 1}),
        call_delta(1, id="y", name="h"),
        finish="stop",
    ) == [TWO[0], ("h", {})]


def test_an_id_that_the_history_has_already_is_replaced(wire):
    earlier = message("assistant", ToolCall(call=CallId("call_0"), name="f"))
    wire.server.add(Step(chunks=(sse(call_delta(0, id="call_0", name="f"), delta("tool_calls")),)))

    answer = collect(wire.model.stream(question(earlier)))

    assert answer.calls[0].call != "call_0"


@pytest.mark.parametrize(
    ("arguments", "finish", "why"),
    [
        ('{"path":"plan.md","content":"# Plan\n- fir', "length", "cut off"),
        ("", "length", "cut off"),
        ('{"a": ', "tool_calls", "not valid JSON"),
        ('{"a": NaN}', "tool_calls", "not valid JSON"),
        ("[1]", "tool_calls", "not a JSON object"),
        ('"text"', "tool_calls", "not a JSON object"),
        ("null", "tool_calls", "not a JSON object"),
        ("[" * 100_000, "tool_calls", "not valid JSON"),
    ],
)
def test_arguments_that_are_no_object_are_never_executed(wire, arguments, finish, why):
    answer = wire.stream(call_delta(0, id="x", name="f", arguments=arguments), delta(finish))

    [call] = answer.calls
    assert call.arguments == {}
    assert why in call.invalid


def test_surrogates_in_arguments_become_characters(wire):
    arguments = r'{"pair": "\ud83c\udf78", "lone": "\ud83c"}'

    [(_, parsed)] = calls_of(wire, call_delta(0, id="x", name="f", arguments=arguments))

    assert parsed == {"pair": "🍸", "lone": "\N{REPLACEMENT CHARACTER}"}


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (error_step(401), Misconfigured),
        (error_step(403), Misconfigured),
        (error_step(404, code="model_not_found"), Misconfigured),
        (error_step(400, code="context_length_exceeded"), ContextOverflow),
        (error_step(400, type="exceed_context_size_error"), ContextOverflow),
        (error_step(500, type="exceed_context_size_error"), ContextOverflow),
        (error_step(413), ContextOverflow),
        (error_step(400, type="invalid_request_error", message="429 overloaded"), Invalid),
        (error_step(422), Invalid),
        (error_step(402), Exhausted),
        (error_step(429, code="insufficient_quota"), Exhausted),
        (error_step(429, type="insufficient_quota"), Exhausted),
        (error_step(429), Throttled),
        (error_step(408), Unavailable),
        (error_step(500, message="context_length_exceeded 401"), Unavailable),
        (error_step(503), Unavailable),
        (error_step(529), Unavailable),
        (error_step(307), Misconfigured),
        (json_step({"error": "model 'x' not found"}, status=404), Misconfigured),
        (json_step([{"error": {"code": 429, "status": "X"}}], status=429), Throttled),
        (Step(chunks=(b"<html>busy",), status=502), Unavailable),
    ],
)
def test_a_refusal_is_typed_by_code_and_status(wire, step, kind):
    with pytest.raises(kind) as caught:
        wire.answer(step)

    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "rate_limit_exceeded", "message": "x"}, Throttled),
        ({"code": 429, "message": "x"}, Throttled),
        ({"code": 502, "message": "x"}, Unavailable),
        ({"type": "server_error", "message": "x"}, Unavailable),
        ({"code": "insufficient_quota"}, Exhausted),
        ({"code": "context_length_exceeded"}, ContextOverflow),
        ("something", Unavailable),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_typed_too(wire, error, kind):
    with pytest.raises(kind) as caught:
        wire.stream(delta(content="half"), {"error": error}, delta("stop"))

    assert type(caught.value) is kind


def test_the_fix_names_the_variable_of_the_key_and_the_key_stays_secret(wire):
    with pytest.raises(Misconfigured) as caught:
        wire.answer(error_step(401, message=f"Incorrect API key provided: {KEY}"))

    assert "INSTAR_MODEL_API_KEY" in caught.value.fix
    assert KEY not in str(caught.value.problem())


def test_a_long_refusal_is_cut_and_the_key_in_it_masked(wire):
    with pytest.raises(Invalid) as caught:
        wire.answer(error_step(400, message=f"{KEY} {'x' * 100_000}"))

    assert len(caught.value.detail) < 1000
    assert KEY not in caught.value.detail


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ({"retry-after": "33"}, 33),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
    ],
)
def test_a_retry_after_is_read_in_seconds_or_as_a_date(wire, header, seconds):
    with pytest.raises(Throttled) as caught:
        wire.answer(error_step(429, headers=header))

    assert caught.value.retry_after_seconds == seconds


def test_a_date_in_the_future_is_counted_from_the_clock():
    at = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
    step = error_step(429, headers={"retry-after": "Tue, 01 Jan 2030 12:02:00 GMT"})
    with (
        ScriptedModelServer(step) as server,
        Egress().client(Trust.OWNER, timeout_seconds=5) as client,
    ):
        endpoint = ChatEndpoint(model="m", base_url=server.base_url)
        with pytest.raises(Throttled) as caught:
            collect(OpenAIChatModel(endpoint, client, clock=lambda: at).stream(question()))

    assert caught.value.retry_after_seconds == 120


@pytest.mark.parametrize(
    "refusal",
    [
        error_step(400, param="stream_options"),
        error_step(400, code="unknown_parameter", param="stream_options.include_usage"),
        json_step(
            {"detail": [{"loc": ["body", "stream_options"], "type": "extra_forbidden"}]}, status=422
        ),
    ],
)
def test_a_provider_that_refuses_stream_options_is_asked_without_them(wire, refusal):
    answer = wire.answer(refusal, Step(chunks=(sse(delta(content="12345"), delta("stop")),)))

    assert answer.usage.estimated
    assert "stream_options" not in wire.server.requests[1].json()


def test_a_provider_that_wants_the_other_name_of_the_limit_gets_it(wire):
    wire.answer(error_step(400, code="unsupported_parameter", param="max_tokens"), text_step("ok"))

    body = wire.server.requests[1].json()
    assert body["max_completion_tokens"] == 4096
    assert "max_tokens" not in body


def test_a_history_whose_ids_are_refused_is_sent_with_ids_that_all_accept(wire):
    call = ToolCall(call=CallId("call_0fypS1hVXabcdefghij"), name="f")
    result = ToolResult(call=call.call, name="f", content="1")
    request = question(message("assistant", call), message("tool", result))

    wire.answer(error_step(400, type="invalid_request_error"), text_step("ok"), request=request)

    first, second = (sent.json()["messages"] for sent in wire.server.requests)
    assert first[1]["tool_calls"][0]["id"] == "call_0fypS1hVXabcdefghij"
    short = second[1]["tool_calls"][0]["id"]
    assert len(short) == 9
    assert short.isalnum()
    assert second[2]["tool_call_id"] == short


def test_lone_surrogates_leave_as_replacement_characters(wire):
    request = ModelRequest(system="", messages=(message("user", Text(text="a\ud83cb")),))

    wire.answer(text_step("ok"), request=request)

    assert wire.server.requests[0].json()["messages"][0]["content"] == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:11434/v1///", "http://127.0.0.1:11434/v1"),
        (" https://api.openai.com/v1 ", "https://api.openai.com/v1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_a_base_url_is_trimmed(url, base):
    assert chat_base_url(url) == base


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://host/v1",
        "http://",
        "https://user:pass@host/v1",
        "https://host/v1?key=x",
        "http://host:99999/",
    ],
)
def test_what_is_no_base_url_is_refused(url):
    with pytest.raises(Invalid):
        chat_base_url(url)


def test_the_endpoint_in_place_of_the_base_url_is_refused_with_the_right_one():
    with pytest.raises(Invalid) as caught:
        chat_base_url("https://host/v1/chat/completions/")

    assert caught.value.fix == "https://host/v1"


def test_models_are_listed_by_name():
    steps = [
        json_step({"object": "list", "data": [{"id": "b"}, {"id": "a"}]}),
        json_step({"models": [{"name": "llama"}]}),
        error_step(401),
    ]
    with (
        ScriptedModelServer(*steps) as server,
        Egress().client(Trust.OWNER, timeout_seconds=5) as client,
    ):
        endpoint = ChatEndpoint(model="", base_url=server.base_url, api_key=lambda: KEY)
        assert list_models(endpoint, client) == ("a", "b")
        assert list_models(endpoint, client) == ("llama",)
        with pytest.raises(Misconfigured):
            list_models(endpoint, client)
    assert server.requests[0].path == "/v1/models"


def test_checking_a_model_asks_for_one_token():
    with (
        ScriptedModelServer(text_step("OK")) as server,
        Egress().client(Trust.OWNER, timeout_seconds=5) as client,
    ):
        check_model(ChatEndpoint(model="m", base_url=server.base_url), client)

    assert server.requests[0].json()["max_tokens"] == 1


def test_a_key_with_odd_characters_is_a_settings_mistake():
    with ScriptedModelServer() as server, Egress().client(Trust.OWNER, timeout_seconds=5) as client:
        endpoint = ChatEndpoint(model="m", base_url=server.base_url, api_key=lambda: "sk-é\n1")
        with pytest.raises(Misconfigured):
            check_model(endpoint, client)


def test_the_wire_server_complains_about_too_many_and_too_few_calls():
    with (
        pytest.raises(AssertionError, match="unexpected call"),
        ScriptedModelServer() as server,
        Egress().client(Trust.OWNER, timeout_seconds=5) as client,
        pytest.raises(Unavailable),
    ):
        check_model(ChatEndpoint(model="m", base_url=server.base_url), client)
    with pytest.raises(AssertionError, match="never asked"), ScriptedModelServer(text_step("x")):
        pass
