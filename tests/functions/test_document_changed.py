"""The indexer's function: S3's events, a writer's nudge, the schedule, in any order and number."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

MEMORY, KITCHEN = "agents/main/MEMORY.md", "agents/main/memory/kitchen.md"
Changed = Callable[[dict[str, Any]], Any]


@pytest.fixture
def changed(engine: Any, load_function: Any, context: Any) -> Changed:
    """The deployed function before a search engine that is up."""
    handler = load_function("document_changed")
    return lambda event: handler(event, context)


def states(account: Any) -> dict[str, str]:
    """How far the index is with each document."""
    rows = [row for row in account.rows("LedgerTable") if row["pk"]["S"] == "manifest"]
    return {row["sk"]["S"].removeprefix("key#"): row["state"]["S"] for row in rows}


def records_for(event: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The event with one record for each key."""
    (first, *_) = event["Records"]
    records = []
    for key in keys:
        record = copy.deepcopy(first)
        record["s3"]["object"]["key"] = key
        records.append(record)
    return {"Records": records}


def test_a_created_document_is_indexed_and_its_revision_marked(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    revision = account.put(MEMORY, "- Anna cannot eat peanuts.\n")

    answer = changed(event("document_changed_created"))

    (row,) = (row for row in account.rows("LedgerTable") if row["pk"]["S"] == "manifest")
    assert answer == {"looked": 1, "pending": 0}
    assert engine.texts(MEMORY) == ["- Anna cannot eat peanuts."]
    assert (row["revision"]["S"], row["state"]["S"]) == (revision, "indexed")


def test_a_key_with_spaces_and_han_characters_is_decoded(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    key = "agents/main/memory/食物 und Küche.md"
    account.put(key, "- Anna mag Käsekuchen.\n")

    answer = changed(event("document_changed_encoded"))

    assert answer == {"looked": 1, "pending": 0}
    assert engine.texts(key) == ["- Anna mag Käsekuchen."]


def test_an_event_that_comes_twice_is_looked_at_once(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    account.put(MEMORY, "- Anna cannot eat peanuts.\n")

    answer = changed(event("document_changed_twice"))

    assert answer == {"looked": 1, "pending": 0}
    assert engine.bulks == 1


def test_a_late_event_of_an_old_revision_changes_nothing(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    account.put(MEMORY, "- Anna cannot eat nuts.\n")
    account.put(MEMORY, "- Anna cannot eat peanuts.\n")
    changed(event("document_changed_created"))
    before, bulks = dict(engine.entries), engine.bulks

    answer = changed(event("document_changed_created"))

    assert answer == {"looked": 1, "pending": 0}
    assert engine.entries == before
    assert engine.bulks == bulks


def test_a_deleted_document_leaves_the_index_and_the_manifest(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    account.put(KITCHEN, "- The kitchen is green.\n")
    changed(records_for(event("document_changed_created"), KITCHEN))
    account.client("s3").delete_object(Bucket=account.bucket, Key=KITCHEN)

    answer = changed(event("document_changed_deleted"))

    assert answer == {"looked": 1, "pending": 0}
    assert engine.entries == {}
    assert states(account) == {}


def test_a_deletion_event_that_comes_after_the_document_is_back_keeps_it(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    account.put(KITCHEN, "- The kitchen is green.\n")

    changed(event("document_changed_deleted"))

    assert engine.texts(KITCHEN) == ["- The kitchen is green."]


def test_a_deletion_event_for_what_was_never_indexed_is_no_error(
    changed: Changed, event: Any
) -> None:
    assert changed(event("document_changed_deleted")) == {"looked": 1, "pending": 0}


def test_a_nudge_does_what_the_event_would(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    account.put(MEMORY, "- Anna cannot eat peanuts.\n")

    answer = changed(event("document_changed_nudge"))

    assert answer == {"looked": 1, "pending": 0}
    assert states(account) == {MEMORY: "indexed"}


@pytest.mark.parametrize(
    "key",
    [
        "agents/main/persona/SOUL.md",
        "agents/main/memory/a/b.md",
        "agents/main/memory/.hidden.md",
        "agents/main/photo.jpg",
        "config.toml",
        "elsewhere/MEMORY.md",
    ],
)
def test_what_is_no_searchable_document_is_not_looked_at(
    changed: Changed, event: Any, account: Any, engine: Any, key: str
) -> None:
    account.put(key, "text")

    answer = changed(records_for(event("document_changed_created"), key))

    assert answer == {"looked": 0, "pending": 0}
    assert engine.entries == {}


def test_one_bad_key_does_not_stop_the_others_and_the_event_is_tried_again(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    from instar.errors import Unavailable

    other = "agents/main/memory/garden.md"
    for key in (MEMORY, KITCHEN, other):
        account.put(key, f"- About {key}.\n")
    engine.broken.add(KITCHEN)

    with pytest.raises(Unavailable) as caught:
        changed(records_for(event("document_changed_created"), MEMORY, KITCHEN, other))

    assert caught.value.detail == f"not indexed: {KITCHEN}"
    assert engine.texts(MEMORY) == [f"- About {MEMORY}."]
    assert engine.texts(other) == [f"- About {other}."]
    engine.broken.clear()
    assert changed(records_for(event("document_changed_created"), KITCHEN))["looked"] == 1
    assert engine.texts(KITCHEN) == [f"- About {KITCHEN}."]


def test_a_document_that_is_no_text_is_marked_as_failed_and_not_tried_for_ever(
    changed: Changed, event: Any, account: Any
) -> None:
    account.client("s3").put_object(Bucket=account.bucket, Key=MEMORY, Body=b"\xff\xfe\x00")

    answer = changed(event("document_changed_created"))

    assert answer == {"looked": 1, "pending": 0}
    assert states(account) == {MEMORY: "failed"}


def test_the_schedule_repairs_what_lost_events_left_behind(
    changed: Changed, event: Any, account: Any, engine: Any
) -> None:
    account.put(KITCHEN, "- The kitchen is green.\n")
    changed(records_for(event("document_changed_created"), KITCHEN))
    account.client("s3").delete_object(Bucket=account.bucket, Key=KITCHEN)
    account.put(MEMORY, "- Anna cannot eat peanuts.\n")

    answer = changed(event("document_changed_level"))

    assert answer == {"looked": 1, "dropped": 1, "failed": 0, "refused": 0, "pending": 0}
    assert engine.texts(MEMORY) == ["- Anna cannot eat peanuts."]
    assert engine.texts(KITCHEN) == []


def test_an_engine_that_is_down_raises_so_that_lambda_tries_again(
    load_function: Any, event: Any, context: Any, account: Any
) -> None:
    from instar.errors import Unavailable

    account.put(MEMORY, "- Anna cannot eat peanuts.\n")
    handler = load_function("document_changed")

    with pytest.raises(Unavailable, match=r"not indexed: agents/main/MEMORY\.md"):
        handler(event("document_changed_created"), context)
