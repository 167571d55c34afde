"""The one write path, on a real folder and a real ledger."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from instar.adapters.local.database import Database
from instar.adapters.local.folder_documents import FolderDocuments
from instar.adapters.local.sqlite_ledger import SqliteLedger
from instar.errors import Conflict, Invalid, NotFound, TooLarge
from instar.ids import CheckpointId
from instar.memory.edits import appended, without
from instar.memory.ports import Document, LedgerEntry
from instar.memory.write import ABANDONED_AFTER, Authorship, Writer, digest, line_changes
from instar.testing.clock import MovingClock

KEY = "agents/main/MEMORY.md"
OTHER = "agents/zoe/MEMORY.md"
SAID = Authorship(author="owner", reason="said so")


class Bench:
    """A writer on a folder; `interrupt` runs before a put, once."""

    def __init__(self, root: Path, clock: MovingClock, new_id: Callable[[], str]) -> None:
        self.folder = root
        self.clock = clock
        self.database = Database(root / "instar.db")
        self.ledger = SqliteLedger(self.database)
        self.documents = Interrupted(root, clock)
        self.writer = Writer(
            self.documents,
            self.ledger,
            clock=clock,
            new_id=new_id,
            sleep=clock.sleep,
            jitter=lambda: 0.5,
        )

    def append(self, text: str, key: str = KEY, **who: str):
        return self.writer.edit(key, lambda old: appended(old, text), replace(SAID, **who))

    def text(self, key: str = KEY) -> str:
        return self.documents.get(key).text


class Interrupted(FolderDocuments):
    """The folder, with somebody else who comes in between."""

    before_put: Callable[[], None] | None = None
    after_put: Callable[[], None] | None = None

    def put(self, key: str, text: str, *, replaces: str | None) -> Document:
        meanwhile, self.before_put = self.before_put, None
        if meanwhile:
            meanwhile()
        written = super().put(key, text, replaces=replaces)
        then, self.after_put = self.after_put, None
        if then:
            then()
        return written


class Killed(BaseException):
    """The process ends here."""


def kill() -> None:
    raise Killed


@pytest.fixture
def bench(tmp_path, clock, new_id) -> Bench:
    made = Bench(tmp_path, clock, new_id)
    yield made
    made.database.close()


def test_a_write_is_a_revision_and_a_finished_ledger_row(bench):
    first = bench.append("Anna likes tea")
    second = bench.append("Ben does not", author="agent:main", session="s", turn="t", call="c")

    assert bench.text() == "- Anna likes tea\n- Ben does not\n"
    newest, oldest = bench.ledger.entries(key=KEY)
    assert newest == LedgerEntry(
        checkpoint=second.checkpoint,
        key=KEY,
        at=bench.clock.now,
        author="agent:main",
        reason="said so",
        before=first.revision,
        after=second.revision,
        digest=digest(bench.text()),
        state="done",
        session="s",
        turn="t",
        call="c",
        added=1,
        removed=0,
    )
    assert (oldest.before, oldest.after, oldest.state) == (None, first.revision, "done")


def test_an_edit_that_changes_nothing_writes_nothing(bench):
    first = bench.append("Anna likes tea")

    again = bench.writer.edit(KEY, lambda old: old or "", SAID)

    assert (again.changed, again.revision, again.checkpoint) == (False, first.revision, None)
    assert len(bench.ledger.entries()) == 1


def test_somebody_elses_newer_text_is_merged(bench):
    bench.append("one")
    bench.documents.before_put = lambda: (bench.folder / KEY).write_text("- one\n- by hand\n")

    written = bench.append("two")

    assert bench.text() == "- one\n- by hand\n- two\n"
    assert [row.state for row in bench.ledger.entries()] == ["done", "done"]
    assert bench.ledger.entries()[0].after == written.revision


def test_a_merge_revives_nothing_that_was_removed_meanwhile(bench):
    bench.append("one")
    bench.append("two")
    bench.documents.before_put = lambda: (bench.folder / KEY).write_text("- two\n")

    bench.append("three")

    assert bench.text() == "- two\n- three\n"


def test_a_stale_person_is_refused_and_the_newer_text_stays(bench):
    first = bench.append("one")
    bench.append("two")

    with pytest.raises(Conflict, match="no longer at revision"):
        bench.writer.edit(KEY, lambda _: "mine\n", SAID, replaces=first.revision)

    assert bench.text() == "- one\n- two\n"


def test_a_person_who_loses_the_race_is_refused_and_the_row_is_abandoned(bench):
    first = bench.append("one")
    bench.documents.before_put = lambda: (bench.folder / KEY).write_text("- by hand\n")

    with pytest.raises(Conflict):
        bench.writer.edit(KEY, lambda _: "mine\n", SAID, replaces=first.revision)

    assert bench.text() == "- by hand\n"
    assert [row.state for row in bench.ledger.entries()] == ["abandoned", "done"]


def test_a_writer_that_always_loses_gives_up_at_the_deadline(bench):
    bench.append("one")
    numbers = iter(range(10_000))

    def somebody_writes() -> None:
        (bench.folder / KEY).write_text(f"- hand {next(numbers)}\n")
        bench.clock.advance(6)
        bench.documents.before_put = somebody_writes

    bench.documents.before_put = somebody_writes
    started = bench.clock.now

    with pytest.raises(Conflict):
        bench.append("two")

    assert 20 <= (bench.clock.now - started).total_seconds() < 25
    assert bench.text().startswith("- hand ")
    assert [row.state for row in bench.ledger.entries()] == ["abandoned", "done"]


def test_a_refusal_of_the_edit_leaves_the_document_and_no_open_row(bench):
    bench.append("one")

    with pytest.raises(NotFound):
        bench.writer.edit(KEY, lambda old: without(old or "", "two"), SAID)

    assert bench.text() == "- one\n"
    assert bench.ledger.unfinished() == []


def test_a_document_grows_to_its_cap_and_may_shrink_above_it(bench):
    with pytest.raises(TooLarge, match="262,144"):
        bench.writer.edit(KEY, lambda _: "x" * 262_145, SAID)
    bench.writer.edit(KEY, lambda _: "x" * 262_144, SAID)
    (bench.folder / KEY).write_text("y" * 300_000)

    with pytest.raises(TooLarge):
        bench.append("one more")
    bench.writer.edit(KEY, lambda old: (old or "")[:290_000], SAID)

    assert bench.text() == "y" * 290_000


def test_the_same_effect_writes_once_and_answers_the_same(bench):
    first = bench.append("one", effect="t1:1:0")
    again = bench.append("one", effect="t1:1:0")

    assert again == first
    assert bench.text() == "- one\n"
    assert [row.effect for row in bench.ledger.entries()] == [f"t1:1:0@{KEY}"]


def test_one_effect_may_write_several_documents(bench):
    bench.append("one", effect="e")
    bench.append("one", key=OTHER, effect="e")

    assert bench.text(KEY) == bench.text(OTHER) == "- one\n"
    assert {row.effect for row in bench.ledger.entries()} == {f"e@{KEY}", f"e@{OTHER}"}


def test_killed_before_the_put_the_repeat_writes(bench):
    bench.documents.before_put = kill
    with pytest.raises(Killed):
        bench.append("one", effect="e")
    assert [row.state for row in bench.ledger.entries()] == ["begun"]

    again = bench.append("one", effect="e")

    assert bench.text() == "- one\n"
    assert [row.state for row in bench.ledger.entries()] == ["done", "abandoned"]
    assert bench.ledger.entries()[0].after == again.revision


@pytest.mark.parametrize("earlier", [[], ["zero"], ["zero", None]])
def test_killed_after_the_put_the_repeat_finds_it(bench, earlier):
    """On an absent document, on one that is there, and on one that was there once."""
    for text in earlier:
        if text is None:
            bench.documents.delete(KEY, replaces=bench.documents.get(KEY).revision)
        else:
            bench.append(text)
    bench.documents.after_put = kill
    with pytest.raises(Killed):
        bench.append("one", effect="e")
    (bench.folder / KEY).write_text(f"{bench.text()}- by hand\n")

    again = bench.append("one", effect="e")

    assert bench.text().endswith("- one\n- by hand\n")
    assert bench.text().count("one") == 1
    row = bench.ledger.entries()[0]
    assert (row.state, row.after) == ("done", again.revision)
    assert bench.documents.get(KEY, revision=again.revision).text.endswith("- one\n")


def test_what_a_crash_left_is_settled_after_a_while_and_not_before(bench):
    bench.append("zero")
    bench.documents.after_put = kill
    with pytest.raises(Killed):
        bench.append("one")
    bench.documents.before_put = kill
    with pytest.raises(Killed):
        bench.append("two")
    assert bench.writer.settle_unfinished() == 0

    bench.clock.advance(ABANDONED_AFTER.total_seconds() + 1)

    assert bench.writer.settle_unfinished() == 2
    assert [row.state for row in bench.ledger.entries()] == ["abandoned", "done", "done"]
    assert bench.ledger.unfinished() == []


def test_an_unreadable_document_is_not_an_empty_one(bench):
    bench.append("one")
    (bench.folder / KEY).write_bytes(b"- caf\xe9\n")

    with pytest.raises(Invalid, match="UTF-8"):
        bench.append("two")

    assert (bench.folder / KEY).read_bytes() == b"- caf\xe9\n"


def test_twenty_writers_at_once_lose_no_line(bench):
    def write(number: int) -> None:
        bench.append(f"line {number}")

    threads = [Thread(target=write, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(bench.text().splitlines()) == sorted(f"- line {n}" for n in range(20))
    assert [row.state for row in bench.ledger.entries()] == ["done"] * 20
    assert len({row.checkpoint for row in bench.ledger.entries()}) == 20


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("", "a\n", (1, 0)),
        ("a\nb\n", "b\n", (0, 1)),
        ("a\na\n", "a\nb\n", (1, 1)),
        ("a\nb\n", "b\na\n", (0, 0)),
    ],
)
def test_line_changes_count_added_and_removed(old, new, changes):
    assert line_changes(old, new) == changes


def test_nothing_is_found_under_an_unknown_effect(bench):
    bench.append("one", effect="e")

    assert bench.writer.earlier("other", KEY) is None
    assert bench.writer.earlier(None, KEY) is None
    assert bench.writer.earlier("e", KEY, CheckpointId("id1")) is None
    assert bench.writer.earlier("e", KEY) is not None
