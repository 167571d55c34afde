"""Find, validate, authorise, run, cap."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from instar.clock import Deadline
from instar.errors import Forbidden, NotFound, Refused
from instar.ids import AgentId, CallId
from instar.messages import ToolCall
from instar.principal import ALL_RIGHTS, Principal, Right, owner
from instar.testing.clock import MovingClock
from instar.tools.ports import CallContext
from instar.tools.toolbox import RESULT_CHARACTERS, InvalidArguments, Toolbox, parameters_of

OWNER = owner(AgentId("main"))
READER = OWNER.narrowed(frozenset({Right.READ}))


class Given(BaseModel):
    """Arguments of the test's tools."""

    model_config = ConfigDict(extra="forbid")
    word: str = "x"
    count: int = 1


@dataclass
class Does:
    """A tool that does what a test says."""

    name: str
    right: Right = Right.READ
    does: Callable[[Given, CallContext], Mapping[str, Any]] = lambda given, _: {"word": given.word}
    description: str = "For a test."
    arguments: type[BaseModel] = Given

    def run(self, arguments: Given, context: CallContext) -> Mapping[str, Any]:
        return self.does(arguments, context)


@dataclass
class Order:
    """Who began and ended when."""

    seen: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str) -> None:
        with self.lock:
            self.seen.append(what)


def context(principal: Principal = OWNER, *, tainted: bool = False) -> CallContext:
    return CallContext(
        principal=principal,
        call=CallId("c"),
        effect="turn:1",
        deadline=Deadline.after(25, MovingClock()),
        tainted=tainted,
    )


def call(name: str, number: int = 0, **arguments: Any) -> ToolCall:
    return ToolCall(call=CallId(f"c{number}"), name=name, arguments=arguments)


BOX = Toolbox([Does("look"), Does("write", Right.WRITE), Does("post", Right.EXTERNAL)])


def names(principal: Principal) -> list[str]:
    return [spec.name for spec in BOX.specs(principal)]


def test_a_caller_is_shown_what_it_may_use():
    assert names(OWNER) == ["look", "write", "post"]
    assert names(READER) == ["look"]
    assert names(OWNER.narrowed(ALL_RIGHTS, frozenset({"write"}))) == ["write"]
    assert names(OWNER.narrowed(ALL_RIGHTS, frozenset())) == []


def test_a_missing_right_is_forbidden_and_what_is_not_listed_is_not_there():
    listed = OWNER.narrowed(ALL_RIGHTS, frozenset({"look"}))

    assert BOX.run("look", {}, context(listed)) == {"word": "x"}
    with pytest.raises(Forbidden, match="tools:write"):
        BOX.run("write", {}, context(READER))
    for name in ("write", "nothing", ""):
        with pytest.raises(NotFound):
            BOX.run(name, {}, context(listed))


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({"agent": "zoe"}, ["agent"]),
        ({"count": "many"}, ["count"]),
        ({"word": None, "count": []}, ["word", "count"]),
    ],
)
def test_arguments_that_do_not_fit_name_every_field(arguments, fields):
    with pytest.raises(InvalidArguments) as refusal:
        BOX.run("look", arguments, context())

    assert [error["field"] for error in refusal.value.extra["errors"]] == fields
    assert refusal.value.status == 422


def test_untrusted_text_changes_nothing_and_may_look():
    assert BOX.run("look", {}, context(tainted=True)) == {"word": "x"}
    for name in ("write", "post"):
        with pytest.raises(Forbidden, match="not the owner's own"):
            BOX.run(name, {}, context(tainted=True))


def test_results_keep_the_order_of_the_calls_and_one_failure_stops_no_other():
    slow = threading.Event()

    def fails(given: Given, _: CallContext) -> Mapping[str, Any]:
        raise Refused("no such luck", fix="Try again.")

    box = Toolbox(
        [
            Does("slow", does=lambda given, _: {"waited": slow.wait(0.1)}),
            Does("quick"),
            Does("fails", does=fails),
        ]
    )

    results = box.results(
        [call("slow", 0), call("fails", 1), call("quick", 2), call("nothing", 3)], context()
    )

    assert [(result.call, result.is_error) for result in results] == [
        ("c0", False),
        ("c1", True),
        ("c2", False),
        ("c3", True),
    ]
    assert json.loads(results[1].content) == {
        "type": "refused",
        "detail": "no such luck",
        "fix": "Try again.",
    }


def test_reading_tools_run_side_by_side_and_others_one_after_the_other():
    both = threading.Barrier(2, timeout=2)
    order = Order()

    def reads(given: Given, _: CallContext) -> Mapping[str, Any]:
        both.wait()
        return {}

    def writes(given: Given, _: CallContext) -> Mapping[str, Any]:
        order.note(f"begin {given.word}")
        order.note(f"end {given.word}")
        return {}

    box = Toolbox([Does("read", does=reads), Does("write", Right.WRITE, does=writes)])

    results = box.results(
        [
            call("write", 0, word="a"),
            call("read", 1),
            call("read", 2),
            call("write", 3, word="b"),
        ],
        context(),
    )

    assert [result.is_error for result in results] == [False] * 4
    assert order.seen == ["begin a", "end a", "begin b", "end b"]


def test_a_look_after_a_write_sees_what_was_written():
    written: list[str] = []

    def writes(given: Given, _: CallContext) -> Mapping[str, Any]:
        threading.Event().wait(0.02)
        written.append(given.word)
        return {}

    box = Toolbox(
        [
            Does("look", does=lambda given, _: {"seen": list(written)}),
            Does("write", Right.WRITE, does=writes),
        ]
    )

    before, _, after = box.results(
        [call("look", 0), call("write", 1, word="a"), call("look", 2)], context()
    )

    assert json.loads(before.content) == {"seen": []}
    assert json.loads(after.content) == {"seen": ["a"]}


def test_each_call_has_an_effect_of_its_own():
    seen: list[tuple[str, str]] = []

    def notes(given: Given, here: CallContext) -> Mapping[str, Any]:
        seen.append((here.call, here.effect))
        return {}

    box = Toolbox([Does("write", Right.WRITE, does=notes)])
    box.results([call("write", 7), call("write", 8)], context())

    assert seen == [("c7", "turn:1:0"), ("c8", "turn:1:1")]


def test_invalid_arguments_are_never_executed():
    ran: list[str] = []
    box = Toolbox([Does("write", Right.WRITE, does=lambda given, _: ran.append("x") or {})])
    cut = call("write").model_copy(update={"invalid": "the arguments were cut off"})

    (result,) = box.results([cut], context())

    assert result.is_error
    assert "cut off" in json.loads(result.content)["detail"]
    assert ran == []


def test_a_long_result_is_cut_visibly():
    box = Toolbox([Does("look", does=lambda given, _: {"text": "y" * 60_000})])

    (result,) = box.results([call("look")], context())

    assert result.content.endswith("more characters; ask for less]")
    assert len(result.content) < RESULT_CHARACTERS + 100


def test_parameters_are_a_schema_without_titles_that_forbids_the_unknown():
    schema = parameters_of(Given)

    assert schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "word": {"type": "string", "default": "x"},
            "count": {"type": "integer", "default": 1},
        },
    }
