"""Every Tombstones adapter keeps these promises."""

import pytest

from instar.adapters.aws.dynamo_ledger import DynamoTombstones
from instar.adapters.local.sqlite_ledger import SqliteTombstones
from instar.ids import AgentId
from instar.memory.ports import Tombstones

MAIN, ZOE = AgentId("main"), AgentId("zoe")


def sqlite(request: pytest.FixtureRequest) -> Tombstones:
    return SqliteTombstones(request.getfixturevalue("database"))


def dynamo(request: pytest.FixtureRequest) -> Tombstones:
    request.getfixturevalue("aws")
    return DynamoTombstones()


@pytest.fixture(params=[sqlite, dynamo], ids=lambda build: build.__name__)
def tombstones(request: pytest.FixtureRequest) -> Tombstones:
    return request.param(request)


def test_the_marks_that_stand_are_known(tombstones):
    tombstones.add(MAIN, ["a", "b"])

    assert tombstones.known(MAIN, ["b", "c", "a"]) == {"a", "b"}
    assert tombstones.known(MAIN, ["c"]) == frozenset()
    assert tombstones.known(MAIN, []) == frozenset()


def test_marks_of_another_agent_are_not_known(tombstones):
    tombstones.add(MAIN, ["a"])

    assert tombstones.known(ZOE, ["a"]) == frozenset()


def test_adding_twice_is_no_error(tombstones):
    tombstones.add(MAIN, ["a", "a"])
    tombstones.add(MAIN, ["a"])
    tombstones.lift(MAIN, ["a"])

    assert tombstones.known(MAIN, ["a"]) == frozenset()


def test_lifting_takes_only_the_named_marks_of_that_agent(tombstones):
    tombstones.add(MAIN, ["a", "b"])
    tombstones.add(ZOE, ["a"])
    tombstones.lift(MAIN, ["a", "unknown"])

    assert tombstones.known(MAIN, ["a", "b"]) == {"b"}
    assert tombstones.known(ZOE, ["a"]) == {"a"}


def test_thousands_of_marks_are_one_question(tombstones):
    marks = [f"{number:064x}" for number in range(2500)]
    tombstones.add(MAIN, marks[::2])

    assert tombstones.known(MAIN, marks) == frozenset(marks[::2])
