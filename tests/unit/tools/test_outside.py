"""Calls from outside: authorised, then once per key."""

from dataclasses import replace

import pytest
from pydantic import BaseModel, ConfigDict

from instar.adapters.local.sqlite_access import SqliteCalls
from instar.errors import Conflict, Invalid, Refused, Throttled, Unavailable
from instar.ids import AgentId
from instar.principal import Right, owner
from instar.tools.outside import OutsideCalls
from instar.tools.toolbox import Toolbox

OWNER = owner(AgentId("main"))


class By(BaseModel):
    model_config = ConfigDict(extra="forbid")
    by: int = 1


class Counting:
    """A tool that counts, and fails as told."""

    name = "count"
    description = "Counts."
    right = Right.WRITE
    arguments = By

    def __init__(self) -> None:
        self.total = 0
        self.effects: list[str] = []
        self.fails: list[Exception] = []

    def run(self, arguments, context):
        self.effects.append(context.effect)
        if self.fails:
            raise self.fails.pop()
        self.total += arguments.by
        return {"total": self.total}


@pytest.fixture
def tool():
    return Counting()


@pytest.fixture
def outside(embedded, clock, new_id, tool):
    return OutsideCalls(
        toolbox=Toolbox([tool]),
        calls=SqliteCalls(embedded.stores.database, clock),
        clock=clock,
        new_id=new_id,
    )


def test_tools_are_listed_with_their_parameters(outside):
    (listed,) = outside.tools(OWNER)["tools"]

    assert (listed["name"], listed["description"]) == ("count", "Counts.")
    assert listed["parameters"]["additionalProperties"] is False
    assert outside.tools(OWNER.narrowed(frozenset({Right.READ}))) == {"tools": []}


def test_one_key_is_one_call(outside, tool):
    first = outside.call("key:a", OWNER, "count", {"by": 2}, "k")
    again = outside.call("key:a", OWNER, "count", {"by": 2}, "k")
    other = outside.call("key:a", OWNER, "count", {"by": 2}, "l")

    assert first == again
    assert (first.body["result"], other.body["result"]) == ({"total": 2}, {"total": 4})
    assert first.body["call"] != other.body["call"]


def test_without_a_key_every_call_counts(outside, tool):
    for _ in range(2):
        outside.call("key:a", OWNER, "count", {}, None)

    assert tool.total == 2


def test_a_tool_that_refuses_is_an_answer_and_kept(outside, tool):
    tool.fails = [Refused("no", fix="Do not.")]

    first = outside.call("key:a", OWNER, "count", {}, "k")
    again = outside.call("key:a", OWNER, "count", {}, "k")

    assert first == again
    assert (first.status, first.body["is_error"]) == (200, True)
    assert first.body["result"] == {"type": "refused", "detail": "no", "fix": "Do not."}


@pytest.mark.parametrize(
    "error", [Unavailable("down"), Throttled("slow down"), ZeroDivisionError("bug")]
)
def test_what_may_work_later_frees_the_key(outside, tool, error):
    tool.fails = [error]

    with pytest.raises(type(error)):
        outside.call("key:a", OWNER, "count", {}, "k")
    answer = outside.call("key:a", OWNER, "count", {}, "k")

    assert answer.body["result"] == {"total": 1}
    assert tool.effects[0] == tool.effects[1]


def test_a_call_that_runs_is_not_begun_again(outside, tool, clock, embedded):
    seen: list[str] = []
    run = tool.run

    def runs(arguments, context):
        with pytest.raises(Conflict, match="running now"):
            outside.call("key:a", OWNER, "count", {}, "k")
        seen.append("inside")
        return run(arguments, context)

    tool.run = runs

    outside.call("key:a", OWNER, "count", {}, "k")

    assert seen == ["inside"]
    assert tool.total == 1


class Killed(BaseException):
    """The process ends here."""


class Dying(SqliteCalls):
    """Calls of a process that ends before it can settle anything."""

    def settle(self, name, answer):
        raise Killed


def test_a_crashed_call_may_be_repeated_after_a_while_under_its_effect(
    outside, tool, clock, embedded
):
    dying = replace(outside, calls=Dying(embedded.stores.database, clock))
    with pytest.raises(Killed):
        dying.call("key:a", OWNER, "count", {}, "k")
    with pytest.raises(Conflict):
        outside.call("key:a", OWNER, "count", {}, "k")

    clock.advance(121)
    outside.call("key:a", OWNER, "count", {}, "k")

    assert len(tool.effects) == 2
    assert len(set(tool.effects)) == 1


@pytest.mark.parametrize("arguments", [None, [], "x", 1])
def test_a_body_that_is_no_object_is_refused(outside, tool, arguments):
    with pytest.raises(Invalid, match="JSON object"):
        outside.call("key:a", OWNER, "count", arguments, "k")

    assert tool.effects == []
