"""Every Calls adapter keeps these promises."""

from threading import Thread

import pytest

from instar.adapters.aws.dynamo_access import DynamoCalls
from instar.adapters.local.sqlite_access import SqliteCalls
from instar.errors import Conflict
from instar.tools.ports import CallAnswer, Calls

ANSWER = CallAnswer(status=200, body={"result": {"saved": True}, "is_error": False})
HOUR = 3600


def sqlite(request: pytest.FixtureRequest) -> Calls:
    return SqliteCalls(request.getfixturevalue("database"), request.getfixturevalue("clock"))


def dynamo(request: pytest.FixtureRequest) -> Calls:
    request.getfixturevalue("aws")
    return DynamoCalls(request.getfixturevalue("clock"))


@pytest.fixture(params=[sqlite, dynamo], ids=lambda build: build.__name__)
def calls(request: pytest.FixtureRequest) -> Calls:
    return request.param(request)


def test_a_repeat_gets_the_earlier_answer(calls):
    assert calls.claim("k1:save:7", digest="d") is None
    calls.settle("k1:save:7", ANSWER)

    assert calls.claim("k1:save:7", digest="d") == ANSWER
    assert calls.claim("k1:save:8", digest="d") is None


def test_another_body_under_the_name_is_a_conflict(calls):
    calls.claim("name", digest="d")
    with pytest.raises(Conflict):
        calls.claim("name", digest="other")
    calls.settle("name", ANSWER)
    with pytest.raises(Conflict):
        calls.claim("name", digest="other")

    assert calls.claim("name", digest="d") == ANSWER


def test_the_same_call_while_it_runs_is_a_conflict(calls, clock):
    calls.claim("name", digest="d")
    clock.advance(119)

    with pytest.raises(Conflict):
        calls.claim("name", digest="d")


def test_a_claim_left_by_a_crash_is_free_after_two_minutes(calls, clock):
    calls.claim("name", digest="d")
    clock.advance(121)

    assert calls.claim("name", digest="d") is None
    with pytest.raises(Conflict):
        calls.claim("name", digest="d")


def test_a_call_that_did_nothing_frees_its_name(calls):
    calls.claim("name", digest="d")
    calls.settle("name", None)

    assert calls.claim("name", digest="other") is None


def test_an_answer_that_stands_is_not_freed(calls):
    calls.claim("name", digest="d")
    calls.settle("name", ANSWER)
    calls.settle("name", None)
    calls.settle("name", CallAnswer(status=500, body={}))

    assert calls.claim("name", digest="d") == ANSWER


def test_an_answer_is_kept_for_a_day(calls, clock):
    calls.claim("name", digest="d")
    calls.settle("name", ANSWER)
    clock.advance(24 * HOUR - 1)
    assert calls.claim("name", digest="d") == ANSWER
    clock.advance(2)

    assert calls.claim("name", digest="other") is None


def test_of_many_callers_at_once_one_goes_on(calls):
    outcomes = []

    def claim() -> None:
        try:
            outcomes.append(calls.claim("name", digest="d"))
        except Conflict:
            outcomes.append("conflict")

    threads = [Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert outcomes.count(None) == 1
    assert outcomes.count("conflict") == 7
