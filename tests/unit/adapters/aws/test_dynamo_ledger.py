from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from instar.adapters.aws.dynamo_ledger import DynamoLedger, DynamoTombstones
from instar.errors import Conflict, Throttled
from instar.ids import MAIN_AGENT, CheckpointId, TurnId
from instar.memory.ports import LedgerEntry

AT = datetime(2031, 5, 4, 12, 30, 15, 123456, tzinfo=UTC)


@pytest.fixture
def ledger(aws):
    return DynamoLedger(sleep=lambda _: None)


def entry(number: int, **fields) -> LedgerEntry:
    whole = {
        "checkpoint": CheckpointId(f"c{number}"),
        "key": "agents/main/MEMORY.md",
        "at": AT + timedelta(seconds=number),
        "author": "owner",
        "reason": "said so",
        "before": None,
        "digest": f"{number:064x}",
    }
    return LedgerEntry(**(whole | fields))


def test_a_row_that_is_begun_anew_moves_with_everything_that_points_to_it(ledger):
    ledger.begin(entry(1, turn=TurnId("t1"), effect="e1"))
    anew = entry(1, key="agents/main/memory/a.md", turn=TurnId("t2"), effect="e2", digest="d")

    assert ledger.begin(anew) == anew
    assert ledger.entries() == [anew]
    assert ledger.unfinished() == [anew]
    assert ledger.entries(key="agents/main/MEMORY.md") == []
    assert ledger.entries(turn=TurnId("t1")) == []
    assert ledger.entries(turn=TurnId("t2")) == [anew]
    assert ledger.begin(entry(2, effect="e1")) == entry(2, effect="e1")
    assert ledger.begin(entry(3, effect="e2")) == anew


def test_an_abandoned_row_whose_effect_was_taken_anew_cannot_be_done(ledger):
    ledger.begin(entry(1, effect="e"))
    ledger.finish(CheckpointId("c1"), after=None)
    ledger.begin(entry(2, effect="e"))

    with pytest.raises(Conflict):
        ledger.finish(CheckpointId("c1"), after="r1")

    assert [row.state for row in ledger.entries()] == ["begun", "abandoned"]


def test_an_abandoned_row_that_is_done_after_all_has_its_effect_again(ledger):
    ledger.begin(entry(1, effect="e"))
    ledger.finish(CheckpointId("c1"), after=None)
    ledger.finish(CheckpointId("c1"), after="r1")
    done = replace(entry(1, effect="e"), state="done", after="r1")

    assert ledger.begin(entry(2, effect="e")) == done


def test_an_effect_of_any_length_is_a_key(ledger):
    ledger.begin(entry(1, effect="ü" * 5000))

    assert ledger.begin(entry(2, effect="ü" * 5000)) == entry(1, effect="ü" * 5000)
    assert ledger.begin(entry(3, effect="ü" * 5001)) == entry(3, effect="ü" * 5001)


def test_a_write_that_raced_is_decided_again(ledger, wire):
    reasons = [{"Code": "ConditionalCheckFailed"}]
    wire.next(
        None, wire.dynamodb_error("TransactionCanceledException", CancellationReasons=reasons)
    )

    assert ledger.begin(entry(1)) == entry(1)


def test_no_question_is_a_scan(ledger, wire):
    ledger.begin(entry(1, turn=TurnId("t1"), effect="e"))
    ledger.finish(CheckpointId("c1"), after="r1")
    ledger.entries(turn=TurnId("t1"), limit=3)
    ledger.unfinished()

    asked = {
        request.headers["X-Amz-Target"].decode().partition(".")[2] for request in wire.requests
    }
    assert asked == {"GetItem", "Query", "BatchGetItem", "TransactWriteItems"}


def test_items_that_a_batch_leaves_unprocessed_are_sent_again(aws, wire):
    tombstones = DynamoTombstones()
    unprocessed = (
        '{"UnprocessedItems": {"ledger": [{"PutRequest": {"Item": '
        '{"pk": {"S": "tombstone#main"}, "sk": {"S": "mark#a"}}}}]}}'
    )
    wire.next(*[wire.plain(200, unprocessed)] * 2)

    tombstones.add(MAIN_AGENT, ["a"])

    assert tombstones.known(MAIN_AGENT, ["a"]) == {"a"}


def test_a_batch_that_stays_unprocessed_is_an_error(aws, wire):
    unprocessed = (
        '{"UnprocessedItems": {"ledger": [{"PutRequest": {"Item": '
        '{"pk": {"S": "tombstone#main"}, "sk": {"S": "mark#a"}}}}]}}'
    )
    wire.next(*[wire.plain(200, unprocessed)] * 20)

    with pytest.raises(Throttled):
        DynamoTombstones().add(MAIN_AGENT, ["a"])


def test_no_rows_are_asked_for_and_none_come(ledger):
    ledger.begin(entry(1))

    assert ledger.entries(limit=0) == []


def test_abandoning_twice_is_once(ledger):
    ledger.begin(entry(1))
    ledger.finish(CheckpointId("c1"), after=None)
    ledger.finish(CheckpointId("c1"), after=None)

    assert [row.state for row in ledger.entries()] == ["abandoned"]
