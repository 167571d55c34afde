"""How a turn can end."""

from datetime import UTC, datetime

from instar.conversation.answers import failed, ordinary, refusal, reset, stopped
from instar.conversation.ports import Step
from instar.errors import Throttled, Unavailable
from instar.messages import Message, Text, ToolCall, ToolResult, Usage

AT = datetime(2031, 5, 4, tzinfo=UTC)


def step(number: int, text: str = "", *, called: bool = False, ran: bool = False) -> Step:
    call = ToolCall(call=f"c{number}", name="memory_save")
    parts = (*((Text(text=text),) if text else ()), *((call,) if called else ()))
    result = ToolResult(call=call.call, name=call.name, content="{}")
    tool = Message(id=f"t{number}", role="tool", parts=(result,), at=AT)
    return Step(
        number=number,
        assistant=Message(id=f"a{number}", role="assistant", parts=parts, at=AT),
        results=tool if ran else None,
        usage=Usage(),
    )


def ids(answer) -> list[str]:
    return [message.id for message in answer.messages]


def test_the_last_words_are_the_answer_and_everything_is_kept():
    answer = ordinary([step(1, "Wait.", called=True, ran=True), step(2, "Done.")])

    assert (answer.text, answer.state, answer.failure) == ("Done.", "completed", None)
    assert ids(answer) == ["a1", "t1", "a2"]


def test_silence_after_tools_gives_earlier_words():
    answer = ordinary([step(1, "I keep that.", called=True, ran=True), step(2)])

    assert (answer.text, answer.state) == ("I keep that.", "completed")
    assert ids(answer) == ["a1", "t1"]


def test_nothing_but_silence_is_a_failure_that_is_told():
    answer = ordinary([step(1)])

    assert answer.state == "failed"
    assert answer.text.startswith("I could not answer: the model answered nothing")
    assert answer.failure.problem["type"] == "unavailable"


def test_a_stopped_turn_keeps_what_was_said_and_no_open_call():
    answer = stopped([step(1, "One.", called=True, ran=True), step(2, "Two.", called=True)])

    assert (answer.text, answer.state) == ("Two.", "stopped")
    assert ids(answer) == ["a1", "t1"]
    assert stopped([]).text == "Stopped."


def test_a_failure_says_what_to_do_and_keeps_finished_steps():
    error = Throttled("the provider is busy.", retry_after_seconds=45, fix="Wait a little.")

    answer = failed(error, [step(1, "x", called=True, ran=True), step(2, "y", called=True)])

    assert answer.text == "I could not answer: the provider is busy. Wait a little."
    assert answer.failure.problem == {
        "type": "throttled",
        "detail": "the provider is busy.",
        "fix": "Wait a little.",
    }
    assert ids(answer) == ["a1", "t1"]
    assert failed(Unavailable("down"), ()).text == "I could not answer: down."


def test_a_refusal_and_a_reset_keep_no_question():
    assert refusal().keeps_question is False
    assert (reset().keeps_question, reset().notice) == (False, "/new")
