"""Trying again and trying the next one: when, how long, and never after something was shown."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from instar.errors import (
    ContextOverflow,
    Exhausted,
    InstarError,
    Invalid,
    Misconfigured,
    Throttled,
    Unavailable,
)
from instar.llm.collect import collect
from instar.llm.request import (
    Finished,
    ModelEvent,
    ModelProfile,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolSpec,
)
from instar.llm.wrappers import Fallback, Retrying, RetryPolicy
from instar.messages import Usage

REQUEST = ModelRequest(system="", messages=())
TOOLS = (ToolSpec(name="f", description="", parameters={}),)
OK: Sequence[ModelEvent] = (TextDelta("ok"), Finished("end", Usage(output_tokens=1)))


class Recorded:
    """A model that replays recordings: events, each perhaps followed by an error."""

    def __init__(self, *recordings, name: str = "m", tools="native", context: int = 1000) -> None:
        self.profile = ModelProfile(name=name, context_tokens=context, tools=tools)
        self.calls = 0
        self._recordings = recordings

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        recording = self._recordings[min(self.calls, len(self._recordings) - 1)]
        self.calls += 1
        for item in recording:
            if isinstance(item, InstarError):
                raise item
            yield item


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.slept: list[float] = []

    def clock(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


def retrying(model: Recorded, time: Time, random: Callable[[], float] = lambda: 1.0, **policy):
    return Retrying(
        model, clock=time.clock, sleep=time.sleep, random=random, policy=RetryPolicy(**policy)
    )


def test_an_unavailable_model_is_asked_again_after_growing_waits():
    time = Time()
    model = Recorded([Unavailable("a")], [Unavailable("b")], OK)

    assert collect(retrying(model, time).stream(REQUEST)).text == "ok"

    assert time.slept == [1.0, 2.0]


def test_jitter_takes_up_to_half_of_the_wait():
    time = Time()

    collect(retrying(Recorded([Unavailable("a")], OK), time, lambda: 0.0).stream(REQUEST))

    assert time.slept == [0.5]


def test_attempts_are_bounded():
    model = Recorded([Unavailable("down")])

    with pytest.raises(Unavailable):
        collect(retrying(model, Time(), attempts=4).stream(REQUEST))

    assert model.calls == 4


def test_a_short_retry_after_is_waited_for():
    time = Time()

    collect(retrying(Recorded([Throttled("t", retry_after_seconds=30)], OK), time).stream(REQUEST))

    assert time.slept == [30]


def test_a_long_retry_after_is_raised_at_once():
    time = Time()
    model = Recorded([Throttled("t", retry_after_seconds=31)], OK)

    with pytest.raises(Throttled):
        collect(retrying(model, time).stream(REQUEST))

    assert (time.slept, model.calls) == ([], 1)


def test_no_wait_passes_the_deadline():
    time = Time()
    model = Recorded([Throttled("t", retry_after_seconds=20)])

    with pytest.raises(Throttled):
        collect(retrying(model, time, attempts=9, deadline_seconds=50).stream(REQUEST))

    assert time.slept == [20, 20]


@pytest.mark.parametrize("shown", [TextDelta("half"), ReasoningDelta("hm")])
def test_nothing_is_repeated_once_something_was_shown(shown):
    model = Recorded([shown, Unavailable("broke")], OK)
    other = Recorded(OK)

    with pytest.raises(Unavailable):
        collect(Fallback([retrying(model, Time()), other]).stream(REQUEST))

    assert (model.calls, other.calls) == (1, 0)


@pytest.mark.parametrize(
    "error", [Invalid("i"), ContextOverflow("c"), Exhausted("e"), Misconfigured("m")]
)
def test_what_repeating_cannot_help_is_not_repeated(error):
    model = Recorded([error], OK)

    with pytest.raises(type(error)):
        collect(retrying(model, Time()).stream(REQUEST))

    assert model.calls == 1


@pytest.mark.parametrize(
    "error", [Unavailable("u"), Throttled("t"), Exhausted("e"), Misconfigured("m")]
)
def test_the_next_model_answers_when_one_cannot(error):
    first, second, third = Recorded([error]), Recorded(OK), Recorded(OK)

    assert collect(Fallback([first, second, third]).stream(REQUEST)).text == "ok"

    assert (first.calls, second.calls, third.calls) == (1, 1, 0)


@pytest.mark.parametrize("error", [ContextOverflow("c"), Invalid("i")])
def test_the_requests_own_fault_is_raised_at_once(error):
    second = Recorded(OK)

    with pytest.raises(type(error)):
        collect(Fallback([Recorded([error]), second]).stream(REQUEST))

    assert second.calls == 0


def test_when_all_fail_the_error_names_all_and_can_be_retried_if_one_can():
    models = [Recorded([Misconfigured("bad key")]), Recorded([Unavailable("down")])]

    with pytest.raises(Unavailable) as caught:
        collect(Fallback(models).stream(REQUEST))

    assert type(caught.value) is Unavailable
    assert "bad key" in caught.value.detail
    assert "down" in caught.value.detail


def test_when_all_are_throttled_the_shortest_wait_counts():
    waits = (600.0, 90.0)
    models = [Recorded([Throttled("t", retry_after_seconds=wait)]) for wait in waits]

    with pytest.raises(Throttled) as caught:
        collect(Fallback(models).stream(REQUEST))

    assert caught.value.retry_after_seconds == 90


def test_a_model_without_tools_is_not_asked_to_call_any():
    plain, able = Recorded(OK, tools="none"), Recorded(OK)

    collect(Fallback([plain, able]).stream(ModelRequest(system="", messages=(), tools=TOOLS)))

    assert (plain.calls, able.calls) == (0, 1)


def test_the_profile_promises_no_more_context_than_every_model_has():
    models = [Recorded(OK, name="big", context=9000), Recorded(OK, name="small", context=100)]

    profile = Fallback(models).profile

    assert (profile.name, profile.context_tokens) == ("big", 100)


def test_a_chain_without_models_is_a_settings_mistake():
    with pytest.raises(Misconfigured):
        Fallback([])


def test_a_stream_without_its_end_marker_is_unavailable():
    with pytest.raises(Unavailable):
        collect(iter([TextDelta("half")]))
