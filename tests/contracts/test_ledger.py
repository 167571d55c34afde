"""Every Ledger adapter keeps these promises."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from instar.adapters.aws.dynamo_ledger import DynamoLedger
from instar.adapters.local.sqlite_ledger import SqliteLedger
from instar.errors import Conflict
from instar.ids import CallId, CheckpointId, SessionId, TurnId
from instar.memory.ports import Ledger, LedgerEntry

AT = datetime(2031, 5, 4, 12, 30, 15, 123456, tzinfo=UTC)


def sqlite(request: pytest.FixtureRequest) -> Ledger:
    return SqliteLedger(request.getfixturevalue("database"))


def dynamo(request: pytest.FixtureRequest) -> Ledger:
    request.getfixturevalue("aws")
    return DynamoLedger()


@pytest.fixture(params=[sqlite, dynamo], ids=lambda build: build.__name__)
def ledger(request: pytest.FixtureRequest) -> Ledger:
    return request.param(request)


def entry(number: int, **fields) -> LedgerEntry:
    return LedgerEntry(
        checkpoint=CheckpointId(f"c{number}"),
        at=AT + timedelta(seconds=number),
        before=None,
        digest=f"{number:064x}",
        **({"key": "agents/main/MEMORY.md", "author": "owner", "reason": "said so"} | fields),
    )


def test_a_row_is_kept_with_all_its_fields(ledger):
    whole = entry(
        1,
        session=SessionId("telegram:1"),
        turn=TurnId("t1"),
        call=CallId("k1"),
        effect="t1:k1",
        added=3,
        removed=1,
    )

    assert ledger.begin(whole) == whole
    assert ledger.entries() == [whole]
    assert ledger.unfinished() == [whole]


def test_finishing_names_the_revision_it_led_to(ledger):
    ledger.begin(entry(1))
    ledger.finish(CheckpointId("c1"), after="r1")

    assert ledger.entries() == [replace(entry(1), state="done", after="r1")]
    assert ledger.unfinished() == []


def test_finishing_without_a_revision_abandons(ledger):
    ledger.begin(entry(1))
    ledger.finish(CheckpointId("c1"), after=None)

    assert ledger.entries() == [replace(entry(1), state="abandoned")]
    assert ledger.unfinished() == []


def test_what_is_done_stays_done(ledger):
    ledger.begin(entry(1))
    ledger.finish(CheckpointId("c1"), after="r1")
    ledger.finish(CheckpointId("c1"), after="r1")
    ledger.finish(CheckpointId("c1"), after=None)

    assert ledger.entries() == [replace(entry(1), state="done", after="r1")]


def test_finishing_an_unknown_row_changes_nothing(ledger):
    ledger.begin(entry(1))

    ledger.finish(CheckpointId("nobody"), after="r1")

    assert ledger.entries() == [entry(1)]


def test_a_writer_begins_anew_under_its_checkpoint(ledger):
    ledger.begin(entry(1, effect="e"))
    again = entry(1, effect="e", reason="tried anew")

    assert ledger.begin(again) == again
    assert ledger.entries() == [again]


def test_a_checkpoint_that_is_done_cannot_begin_again(ledger):
    ledger.begin(entry(1))
    ledger.finish(CheckpointId("c1"), after="r1")

    with pytest.raises(Conflict):
        ledger.begin(entry(1, reason="another"))

    assert ledger.entries() == [replace(entry(1), state="done", after="r1")]


def test_a_known_effect_returns_its_row_and_writes_nothing(ledger):
    ledger.begin(entry(1, effect="e"))
    ledger.finish(CheckpointId("c1"), after="r1")

    standing = ledger.begin(entry(2, effect="e"))

    assert standing == replace(entry(1, effect="e"), state="done", after="r1")
    assert ledger.entries() == [standing]


def test_an_abandoned_row_gives_its_effect_free(ledger):
    ledger.begin(entry(1, effect="e"))
    ledger.finish(CheckpointId("c1"), after=None)

    assert ledger.begin(entry(2, effect="e")) == entry(2, effect="e")
    assert [row.checkpoint for row in ledger.entries()] == ["c2", "c1"]


def test_rows_without_an_effect_are_all_different(ledger):
    ledger.begin(entry(1))
    ledger.begin(entry(2))

    assert [row.checkpoint for row in ledger.entries()] == ["c2", "c1"]


def test_rows_are_found_by_document_and_by_turn_newest_first(ledger):
    ledger.begin(entry(1, turn=TurnId("t1")))
    ledger.begin(entry(2, turn=TurnId("t1"), key="agents/main/memory/travel.md"))
    ledger.begin(entry(3, turn=TurnId("t2")))

    def found(**wanted) -> list[str]:
        return [row.checkpoint for row in ledger.entries(**wanted)]

    assert found() == ["c3", "c2", "c1"]
    assert found(key="agents/main/MEMORY.md") == ["c3", "c1"]
    assert found(turn=TurnId("t1")) == ["c2", "c1"]
    assert found(turn=TurnId("t1"), key="agents/main/MEMORY.md") == ["c1"]
    assert found(limit=2) == ["c3", "c2"]
    assert found(key="agents/main/nothing.md") == []


def test_of_many_writers_with_one_effect_one_begins(ledger):
    begun = []

    def begin(number: int) -> None:
        begun.append(ledger.begin(entry(number, effect="e")))

    threads = [Thread(target=begin, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (standing,) = ledger.entries()
    assert begun == [standing] * 8
