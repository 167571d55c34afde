"""A turn from lease to commit, whatever happens on the way."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from instar.conversation.answers import REFUSAL
from instar.conversation.turn import Completed, Continued
from instar.errors import (
    Conflict,
    ContextOverflow,
    InstarError,
    Misconfigured,
    NotFound,
    Unavailable,
)
from instar.ids import SessionId
from instar.llm.request import Finished, TextDelta, ToolCallReady
from instar.messages import ToolCall, Usage
from instar.principal import Right
from instar.tools.ports import CallContext


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid")
    word: str = "x"


@dataclass
class Note:
    """A tool that writes down what it was called with."""

    name: str = "note"
    description: str = "Notes a word."
    arguments: type[BaseModel] = Given
    right: Right = Right.WRITE
    seen: list[tuple[str, str]] = field(default_factory=list)
    fails: InstarError | None = None
    found: str = ""

    def run(self, arguments: Given, context: CallContext) -> Mapping[str, Any]:
        self.seen.append((arguments.word, context.effect))
        if self.fails:
            raise self.fails
        return {"noted": self.found or arguments.word}


@pytest.fixture
def note(talk):
    tool = Note()
    talk.tools.append(tool)
    return tool


def test_a_plain_answer_ends_the_turn(talk, script):
    talk.model.answers = [script["says"]("Hello.")]
    message = talk.accepted("Hi")

    outcome = talk.run(message)

    assert isinstance(outcome, Completed)
    assert (outcome.record.state, outcome.record.reply.text) == ("completed", "Hello.")
    assert talk.texts() == [("user", "Hi"), ("assistant", "Hello.")]
    assert talk.kinds() == ["turn_started", "text_delta", "reply"]
    assert talk.delivery_queue.receive(30).body == outcome.record.reply.model_dump_json()


def test_tools_run_in_order_and_the_model_hears_their_results(talk, script, note):
    talk.model.answers = [
        script["calls"](("note", {"word": "a"}), ("note", {"word": "b"})),
        script["says"]("Both."),
    ]
    message = talk.accepted("Hi")

    talk.run(message)

    assert note.seen == [("a", f"{message.turn}:1:0"), ("b", f"{message.turn}:1:1")]
    results = talk.model.requests[1].messages[-1]
    assert [part.content for part in results.parts] == ['{"noted": "a"}', '{"noted": "b"}']
    assert talk.kinds()[1:5] == ["tool_call", "tool_call", "tool_result", "tool_result"]


def test_a_tool_that_fails_stops_no_other(talk, script, note):
    talk.model.answers = [
        script["calls"](("nothing", {}), ("note", {"wrong": 1}), ("note", {"word": "b"})),
        script["says"]("Done."),
    ]

    talk.run(talk.accepted())

    results = talk.model.requests[1].messages[-1].parts
    assert [part.is_error for part in results] == [True, True, False]
    assert [word for word, _ in note.seen] == ["b"]


def test_a_turn_that_is_done_hands_its_reply_over_again_and_nothing_else(talk, script):
    talk.model.answers = [script["says"]("Hello.")]
    message = talk.accepted()
    first = talk.run(message)
    with talk.database.write() as connection:
        connection.execute("DELETE FROM queue_seen")

    again = talk.run(message)

    assert again == first
    assert len(talk.model.requests) == 1
    assert talk.texts() == [("user", "Hi"), ("assistant", "Hello.")]


def test_a_resumed_turn_repeats_neither_answer_nor_finished_tool(talk, script, note):
    class Killed(BaseException):
        pass

    def kill() -> None:
        if len(talk.model.requests) == 2:
            raise Killed

    talk.model.answers = [script["calls"](("note", {"word": "a"})), script["says"]("Done.")]
    talk.model.before = kill
    message = talk.accepted()
    with pytest.raises(Killed):
        talk.run(message)
    talk.clock.advance(91)

    outcome = talk.run(message)

    assert outcome.record.reply.text == "Done."
    assert (outcome.record.attempts, outcome.record.crashes) == (2, 1)
    assert [word for word, _ in note.seen] == ["a"]
    assert len(talk.model.requests) == 3


def test_a_tool_that_was_interrupted_runs_again_under_the_same_effect(talk, script, note):
    class Killed(BaseException):
        pass

    note.fails = Killed()  # type: ignore[assignment]
    talk.model.answers = [script["calls"](("note", {"word": "a"})), script["says"]("Done.")]
    message = talk.accepted()
    with pytest.raises(Killed):
        talk.run(message)
    note.fails = None
    talk.clock.advance(91)

    talk.run(message)

    assert note.seen == [("a", f"{message.turn}:1:0")] * 2
    assert len(talk.model.requests) == 2


def test_nobody_works_on_a_turn_that_is_held(talk, script):
    talk.model.answers = [script["says"]("Hello.")]
    message = talk.accepted()
    talk.turns.lease(message.turn, seconds=90)

    with pytest.raises(Conflict):
        talk.run(message)

    talk.clock.advance(91)
    assert talk.run(message).record.state == "completed"


def test_a_slow_twin_writes_nothing(talk, script):
    """The lease runs out while the model thinks, and somebody else takes the turn."""
    message = talk.accepted()
    renewed = threading.Event()

    def taken_over() -> None:
        if not renewed.is_set():
            renewed.set()
            talk.clock.advance(91)
            twin = talk.turns.lease(message.turn, seconds=90)
            assert twin.fence == 2
            threading.Event().wait(0.2)

    talk.model.before = taken_over
    talk.model.answers = [script["says"]("Too late.")]

    with pytest.raises(Conflict):
        talk.run(message)

    assert talk.texts() == []
    assert talk.turns.get(message.turn).state == "running"
    assert talk.outbox.unsent() == []


def test_near_the_deadline_the_turn_is_handed_over_and_that_is_no_crash(talk, script, note):
    talk.model.answers = [script["calls"](("note", {"word": "a"})), script["says"]("Done.")]
    talk.model.before = lambda: talk.clock.advance(50)
    message = talk.accepted()

    assert isinstance(talk.run(message, seconds=100), Continued)
    outcome = talk.run(message)

    assert outcome.record.reply.text == "Done."
    assert (outcome.record.attempts, outcome.record.crashes) == (2, 0)
    assert [word for word, _ in note.seen] == ["a"]


def test_after_three_crashes_the_owner_hears_and_no_model_is_asked(talk):
    message = talk.accepted()
    for _ in range(3):
        talk.turns.lease(message.turn, seconds=10)
        talk.clock.advance(11)

    outcome = talk.run(message)

    assert outcome.record.state == "failed"
    assert "stop three times" in outcome.record.reply.text
    assert talk.model.requests == []


@pytest.mark.parametrize(
    "error", [Unavailable("down"), Misconfigured("no key", fix="Set it."), NotFound("model?")]
)
def test_a_failure_of_the_model_is_told_and_the_question_kept(talk, error):
    talk.model.answers = [error]

    outcome = talk.run(talk.accepted("Hi"))

    assert outcome.record.state == "failed"
    assert outcome.record.failure == error.problem()
    assert error.detail in outcome.record.reply.text
    assert talk.texts() == [("user", "Hi"), ("notice", f"failed: {error.detail}")]
    assert talk.kinds()[-1] == "turn_failed"


def test_a_bug_is_no_reply_and_the_lease_stays_until_it_runs_out(talk):
    talk.model.answers = [ZeroDivisionError()]
    message = talk.accepted()

    with pytest.raises(ZeroDivisionError):
        talk.run(message)
    with pytest.raises(Conflict):
        talk.run(message)

    assert talk.outbox.unsent() == []


def test_too_much_text_is_halved_until_it_fits(talk, script):
    for number in range(4):
        talk.model.answers = [script["says"](f"answer {number}")]
        talk.run(talk.accepted(f"question {number}", number=number + 1))
    talk.model.answers = [ContextOverflow("x"), ContextOverflow("x"), script["says"]("fits")]

    outcome = talk.run(talk.accepted("last", number=9))

    assert outcome.record.reply.text == "fits"
    sizes = [len(request.messages) for request in talk.model.requests[-3:]]
    assert sizes == [9, 5, 1] or sizes[0] > sizes[1] > sizes[2]
    assert talk.model.requests[-1].messages[-1].text().endswith("last")


def test_a_question_that_never_fits_is_told(talk):
    talk.model.answers = [ContextOverflow("too long")]

    outcome = talk.run(talk.accepted())

    assert outcome.record.failure["type"] == "context_overflow"


def test_rounds_of_tools_have_an_end(talk, script, note):
    from dataclasses import replace

    talk.settings = replace(talk.settings, iterations=2)
    talk.model.answers = [script["calls"](("note", {"word": w})) for w in "abc"]

    outcome = talk.run(talk.accepted())

    assert outcome.record.failure["type"] == "budget_exhausted"
    assert [word for word, _ in note.seen] == ["a", "b"]
    assert [bool(request.tools) for request in talk.model.requests] == [True, True, False]


def test_memory_and_the_owners_time_are_in_the_request(talk, script):
    talk.memory = "- Anna likes tea\n"
    talk.model.answers = [script["says"]("Hello.")]

    talk.run(talk.accepted("Hi"))

    request = talk.model.requests[0]
    assert "- Anna likes tea" in request.system
    assert request.messages[-1].text() == "[Sunday, 2031-05-04 20:30 Asia/Shanghai]\n\nHi"


def test_a_guest_is_offered_neither_memory_nor_tools(talk, script, note):
    talk.memory = "- the safe is behind the painting\n"
    draft = talk.draft()
    guest = draft.principal.model_copy(update={"guest": "bob", "rights": frozenset()})
    talk.model.answers = [script["calls"](("note", {"word": "a"})), script["says"]("No.")]

    talk.run(talk.accepted(principal=guest))

    assert "painting" not in talk.model.requests[0].system
    assert talk.model.requests[0].tools == ()
    assert talk.model.requests[1].messages[-1].parts[0].is_error
    assert note.seen == []


def test_forwarded_text_runs_no_tool_that_changes_anything(talk, script, note):
    talk.model.answers = [script["calls"](("note", {"word": "a"})), script["says"]("No.")]

    talk.run(talk.accepted(forwarded=True))

    (result,) = talk.model.requests[1].messages[-1].parts
    assert (result.is_error, '"forbidden"' in result.content) == (True, True)
    assert note.seen == []


def test_a_stranger_is_refused_without_a_model_and_nothing_is_kept(talk):
    outcome = talk.run(talk.accepted("remember me", refused=True))

    assert (outcome.record.state, outcome.record.reply.text) == ("completed", REFUSAL)
    assert talk.texts() == []
    assert talk.model.requests == []


@pytest.mark.parametrize("command", ["/new", "/RESET", " /new@instar_bot "])
def test_a_command_begins_anew(talk, script, command):
    talk.model.answers = [script["says"]("One."), script["says"]("Two.")]
    talk.run(talk.accepted("first", number=1))

    talk.run(talk.accepted(command, number=2))
    talk.run(talk.accepted("second", number=3))

    assert [m.text().rpartition("\n")[2] for m in talk.model.requests[1].messages] == ["second"]
    assert ("user", "first") in talk.texts()


@pytest.mark.parametrize("text", ["/newer", "what is /new?", "/new conversation @ home"])
def test_what_only_looks_like_a_command_goes_to_the_model(talk, script, text):
    talk.model.answers = [script["says"]("Hm.")]

    assert talk.run(talk.accepted(text)).record.reply.text == "Hm."


def test_a_stop_ends_the_turn_between_two_rounds(talk, script, note):
    message = talk.accepted()

    def stop() -> None:
        assert talk.stops.stop(SessionId("telegram:main:7"))
        threading.Event().wait(0.3)

    talk.model.before = stop
    talk.model.answers = [
        [TextDelta("So far."), ToolCallReady(ToolCall(call="c", name="note")), *script["says"]("")]
    ]

    outcome = talk.run(message)

    assert outcome.record.state == "stopped"
    assert note.seen == []
    assert talk.texts()[0] == ("user", "Hi")


def test_the_queues_message_is_kept_with_the_lease(talk, script):
    kept: list[float] = []
    talk.model.before = lambda: threading.Event().wait(0.3)
    talk.model.answers = [script["says"]("Hello.")]
    message = talk.accepted()

    from instar.clock import Deadline

    talk.runner.run(message, Deadline.after(3600, talk.clock), kept.append)

    assert kept
    assert set(kept) == {90.0}


def test_a_secret_the_model_says_or_passes_on_is_kept_nowhere(talk, script, note):
    key = "ghp_" + "a1B2c3" * 6
    talk.model.answers = [
        [TextDelta(f"key {key[:9]}"), *script["calls"](("note", {"word": key}))],
        [TextDelta("It is ghp_"), TextDelta(key[4:]), TextDelta("."), Finished("end", Usage())],
    ]

    outcome = talk.run(talk.accepted())

    assert outcome.record.reply.text == "It is [a GitHub token was removed]."
    assert note.seen == []
    with talk.database.read() as connection:
        for table in ("steps", "messages", "events", "turns", "outbox"):
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            assert rows
            assert key[8:] not in str([tuple(row) for row in rows])


def test_a_secret_that_a_tool_finds_is_kept_nowhere_and_shown_to_no_model(talk, script, note):
    key = "ghp_" + "a1B2c3" * 6
    talk.tools[:] = [Note(right=Right.READ, found=f"server 10.0.0.7, token {key}")]
    talk.model.answers = [script["calls"](("note", {})), script["says"]("10.0.0.7.")]

    talk.run(talk.accepted())

    (result,) = talk.model.requests[1].messages[-1].parts
    assert "server 10.0.0.7, token [a GitHub token was removed]" in result.content
    with talk.database.read() as connection:
        kept = str([tuple(row) for row in connection.execute("SELECT * FROM messages")])
        events = str([tuple(row) for row in connection.execute("SELECT * FROM events")])
    assert "10.0.0.7" in kept
    assert "10.0.0.7" in events
    assert key not in kept + events
