import pytest
from botocore.exceptions import ClientError

from instar.adapters.aws.contention import LONGEST_PAUSE_SECONDS, TRIES, Raced, persist, races
from instar.adapters.aws.errors import aws_failures
from instar.errors import Conflict, Unavailable


def test_a_lost_race_is_run_again():
    outcomes = iter([Raced(), Raced(), "won"])
    pauses = []

    def attempt():
        outcome = next(outcomes)
        if isinstance(outcome, Raced):
            raise outcome
        return outcome

    assert persist("the row", attempt, pauses.append) == "won"
    assert len(pauses) == 2


def test_races_end_with_an_error_that_may_be_tried_later():
    pauses = []

    def attempt():
        with races():
            raise Conflict("again")

    with pytest.raises(Unavailable, match="the row"):
        persist("the row", attempt, pauses.append)

    assert len(pauses) == TRIES
    assert max(pauses) <= LONGEST_PAUSE_SECONDS


def test_contention_is_repeated_and_an_outage_is_not():
    calls = []

    def refused(code: str):
        def attempt():
            calls.append(code)
            if len(calls) == 3:
                return "done"
            with aws_failures("the row"):
                raise ClientError({"Error": {"Code": code}}, "Operation")

        return attempt

    assert persist("the row", refused("TransactionConflictException"), lambda _: None) == "done"
    calls.clear()
    with pytest.raises(Unavailable):
        persist("the row", refused("InternalServerError"), lambda _: None)
    assert len(calls) == 1
