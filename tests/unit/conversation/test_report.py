"""A turn as `chat --once` answers with it."""

import pytest

from instar.conversation.report import TurnFailed, step_rows, tool_calls, turn_result, usage
from instar.errors import Throttled
from instar.llm.request import Finished, TextDelta
from instar.messages import Usage


def test_reply_calls_and_the_sum_of_all_rounds(talk, script):
    talk.model.answers = [script["calls"](("nothing", {"a": 1})), script["says"]("Hello.")]

    record = talk.run(talk.accepted()).record

    assert turn_result(record) == {
        "turn": record.message.turn,
        "session": "telegram:main:7",
        "reply": "Hello.",
        "tool_calls": [{"name": "nothing", "arguments": {"a": 1}, "is_error": True}],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 4,
            "cached_tokens": 0,
            "estimated": False,
        },
    }
    assert [(row["number"], row["text"]) for row in step_rows(record)] == [(1, ""), (2, "Hello.")]


def test_output_is_never_0_for_a_reply_with_text(talk):
    talk.model.answers = [[TextDelta("Hello there."), Finished("end", Usage(input_tokens=3))]]

    record = talk.run(talk.accepted()).record

    assert usage(record) == {
        "input_tokens": 3,
        "output_tokens": 3,
        "cached_tokens": 0,
        "estimated": True,
    }


def test_a_failed_turn_raises_the_problem_that_was_told(talk):
    talk.model.answers = [Throttled("busy", retry_after_seconds=45, fix="Wait.")]
    record = talk.run(talk.accepted()).record

    with pytest.raises(TurnFailed) as failure:
        turn_result(record)

    assert failure.value.problem() == {
        "type": "throttled",
        "detail": "busy",
        "fix": "Wait.",
        "turn": record.message.turn,
    }
    assert failure.value.status == 429
    assert tool_calls(record) == []
