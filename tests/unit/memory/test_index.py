"""The index follows the documents: after edits, crashes, lost events, damage, two processes."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.clock import Deadline
from instar.memory.analysis import Analyzer
from instar.memory.index import DROP_DOCUMENTS, passages_of, plan
from instar.memory.ports import Document, Held, IndexChanges

KEY = "agents/main/memory/note.md"
AT = datetime(2031, 5, 4, 12, 30, tzinfo=UTC)
ANALYZER = Analyzer()


def cut(text: str):
    return passages_of(Document(key=KEY, revision="r1", text=text, at=AT))


def applied(old, changes):
    """What a faithful index holds after the changes."""
    held = {each.passage.id: each for each in old}
    for name in changes.drops:
        del held[name]
    for passage in changes.moved:
        held[passage.id] = replace(held[passage.id], passage=passage)
    for entry in changes.upserts:
        held[entry.passage.id] = Held(passage=entry.passage, has_vector=False)
    return sorted(held.values(), key=lambda each: each.passage.ordinal)


LINES = st.lists(st.sampled_from(["- a", "- b", "- c", "# h", "", "text"]), max_size=12)


@given(LINES, LINES)
def test_a_plan_turns_what_is_held_into_the_new_passages(before, after):
    old = [Held(passage=each, has_vector=True) for each in cut("\n".join(before))]
    new = cut("\n".join(after))

    changes = plan(KEY, old, new, ANALYZER.fields)

    held = applied(old, changes)
    assert [each.passage for each in held] == new
    again = plan(KEY, held, new, ANALYZER.fields)
    assert (again.upserts, again.moved, again.drops) == ([], [], [])


def test_a_passage_that_only_moved_keeps_its_vector():
    lines = "\n".join(f"- {n}" for n in range(9))
    old = [Held(passage=each, has_vector=True) for each in cut(lines)]

    changes = plan(KEY, old, cut("- new\n" + lines), ANALYZER.fields)

    assert len(changes.upserts) == 3  # the new one and the two whose context it joined
    assert len(changes.moved) == 7
    assert changes.drops == []


def test_what_is_written_is_found_and_what_is_gone_is_not(home):
    key = home.write("memory/hobby.md", "I bought a kayak\n\nand a tent")

    row = home.indexer.look(key)

    assert (row.state, row.passages, row.vectors) == ("indexed", 2, 0)
    assert home.found("kayak") == ["memory/hobby.md"]
    home.write("memory/hobby.md", "I sold it\n\nand a tent")
    home.indexer.look(key)
    assert home.found("kayak") == []
    assert home.found("tent") == ["memory/hobby.md"]
    home.remove("memory/hobby.md")
    assert home.indexer.look(key) is None
    assert home.found("tent") == []
    assert home.manifest.get(key) is None


def test_looking_twice_changes_nothing(home):
    key = home.write("MEMORY.md", "- one\n- two")

    first = home.indexer.look(key)
    held = home.index.held(key)

    assert home.indexer.look(key) == first
    assert home.index.held(key) == held


def test_persona_and_settings_are_not_indexed(home):
    home.write("persona/SOUL.md", "kayak")
    home.write("memory/a.md", "kayak")

    report = home.indexer.level()

    assert report.looked_at == ("agents/main/memory/a.md",)
    assert home.found("kayak") == ["memory/a.md"]


def test_level_looks_only_at_what_differs(home):
    home.write("memory/a.md", "one")
    changed = home.write("memory/b.md", "two")
    home.indexer.level()

    home.write("memory/b.md", "three")

    assert home.indexer.level().looked_at == (changed,)
    assert home.indexer.level().looked_at == ()


def test_a_document_that_is_not_text_is_failed_with_a_reason_and_stops_no_other(home):
    bad = home.write("memory/bad.md", b"\xff\xfe\x00\xd8 latin \xe9")
    home.write("memory/good.md", "kayak")

    report = home.indexer.level()

    assert list(report.failed) == [bad]
    assert home.manifest.get(bad).state == "failed"
    assert home.manifest.get(bad).reason
    assert home.found("kayak") == ["memory/good.md"]
    home.write("memory/bad.md", "canoe")
    assert home.indexer.level().failed == {}
    assert home.found("canoe") == ["memory/bad.md"]


def test_many_missing_documents_are_not_dropped_without_being_forced(home):
    for number in range(DROP_DOCUMENTS + 20):
        home.write(f"memory/n{number}.md", f"kayak {number}")
    home.indexer.level()
    for number in range(DROP_DOCUMENTS + 1):
        home.remove(f"memory/n{number}.md")
    new = home.write("memory/new.md", "canoe")

    report = home.indexer.level()

    assert len(report.refused) == DROP_DOCUMENTS + 1
    assert report.looked_at == (new,)
    assert len(home.index.keys()) == DROP_DOCUMENTS + 21
    forced = home.indexer.level(force=True)
    assert len(forced.dropped) == DROP_DOCUMENTS + 1
    assert len(home.index.keys()) == 20


def test_level_of_one_agent_leaves_the_others_alone(home):
    home.write("memory/a.md", "kayak")
    home.write("memory/a.md", "canoe", agent="other")
    home.indexer.level()
    shutil.rmtree(home.path / "agents" / "other")

    home.indexer.level("agents/main/")

    assert list(home.index.keys()) == ["agents/main/memory/a.md", "agents/other/memory/a.md"]


def test_drift_names_what_differs(home):
    same = home.write("memory/a.md", "one")
    home.write("memory/b.md", "two")
    home.indexer.level()
    assert home.indexer.drift() == []

    changed = home.write("memory/b.md", "three")
    held = home.index.held(same)
    home.index.apply([IndexChanges(key=same, drops=[held[0].passage.id])])

    assert home.indexer.drift() == [same, changed]
    home.indexer.level()
    assert home.indexer.drift() == []


def test_vectors_come_after_words(home, server):
    home.opened(server.embeddings())
    key = home.write("memory/a.md", "kayak trip\n\nquiet lake")

    assert home.indexer.look(key).state == "pending"
    assert home.search("kayak").mode == "words"
    assert home.search("kayak").degraded

    report = home.indexer.embed_pending(Deadline.after(60, lambda: AT))

    assert (report.embedded, report.pending, report.reason) == (2, 0, "")
    assert home.manifest.get(key).state == "indexed"
    found = home.search("kayak")
    assert (found.mode, found.degraded, found.reason) == ("hybrid", False, "")


def test_the_vector_is_made_of_text_and_context(home, server):
    home.opened(server.embeddings())
    home.write("memory/a.md", "- one\n- two\n- three")
    home.indexer.level()

    home.embed()

    assert server.texts[1] == "- two\none\nthree"


def test_a_failing_embedder_leaves_documents_pending_and_findable(home, server):
    server.status = 429
    home.opened(server.embeddings())
    key = home.write("memory/a.md", "kayak")
    home.indexer.level()

    report = home.indexer.embed_pending(Deadline.after(60, lambda: AT))

    assert report.pending == 1
    assert "429" in report.reason
    assert home.manifest.get(key).reason == report.reason
    assert home.found("kayak") == ["memory/a.md"]
    server.status = 200
    home.embed()
    assert home.manifest.get(key).state == "indexed"
    assert home.manifest.get(key).reason == ""


def test_one_refused_text_does_not_block_the_others(home, server):
    server.refuses = "poison"
    home.opened(server.embeddings())
    bad = home.write("memory/a.md", "- fine\n- ok\n- good\n- well\n- great\n- poison")
    home.write("memory/b.md", "kayak")
    home.indexer.level()

    report = home.indexer.embed_pending(Deadline.after(60, lambda: AT))

    assert report.embedded == 4  # all but the refused text and the two that have it as context
    assert report.pending == 3
    assert home.manifest.get(bad).state == "pending"


def test_a_deadline_stops_between_batches_and_the_next_run_goes_on(home, server):
    moments = iter([AT, AT, AT, AT + timedelta(hours=1)])
    now = [AT]
    home.opened(server.embeddings())
    home.write("memory/a.md", "\n".join(f"- item {n}" for n in range(40)))
    home.indexer.level()

    def clock() -> datetime:
        now[0] = next(moments, now[0])
        return now[0]

    first = home.indexer.embed_pending(Deadline.after(60, clock))

    assert 0 < first.embedded < 40
    assert first.pending == 40 - first.embedded
    home.embed()
    assert home.manifest.get("agents/main/memory/a.md").vectors == 40
    assert len(server.texts) == 40


def test_another_model_computes_vectors_anew_and_keeps_the_words(home, server):
    home.opened(server.embeddings("first"))
    key = home.write("memory/a.md", "kayak")
    home.indexer.level()
    home.embed()

    server.dimensions = 32
    home.opened(server.embeddings("second"))

    found = home.search("kayak")
    assert (found.mode, found.degraded) == ("words", True)
    assert [hit.document for hit in found.hits] == ["memory/a.md"]
    home.indexer.level()
    home.embed()
    assert home.search("kayak").mode == "hybrid"
    assert home.manifest.get(key).generation == server.embeddings("second").fingerprint


def test_a_vector_of_an_older_text_is_never_kept(home, server):
    home.opened(server.embeddings())
    key = home.write("memory/a.md", "kayak\n\nold neighbour")
    home.indexer.look(key)

    def change_meanwhile() -> None:
        server.before = lambda: None
        home.write("memory/a.md", "kayak\n\nnew neighbour")
        home.indexer.look(key)

    server.before = change_meanwhile
    home.embed()
    assert [each.has_vector for each in home.index.held(key)] == [False, False]
    home.embed()

    assert [each.has_vector for each in home.index.held(key)] == [True, True]
    assert "kayak\nnew neighbour" in server.texts


def test_a_damaged_index_is_set_aside_and_made_again(home):
    for number in range(3):
        home.write(f"memory/n{number}.md", f"kayak {number}")
    home.indexer.level()
    words = next(home.path.glob("index/words-*"))
    for path in words.glob("*"):
        if path.is_file():
            path.write_bytes(b"not an index")

    home.opened(None)
    home.indexer.level()

    assert sorted(home.found("kayak")) == ["memory/n0.md", "memory/n1.md", "memory/n2.md"]
    assert (home.path / "index" / "damaged").is_dir()
    assert home.indexer.drift() == []


def test_lost_vectors_are_noticed_and_computed_again(home, server):
    home.opened(server.embeddings())
    home.write("memory/a.md", "kayak")
    home.indexer.level()
    home.embed()
    for folder in home.path.glob("index/vectors-*"):
        shutil.rmtree(folder)

    home.opened(server.embeddings())
    home.indexer.level()
    home.embed()

    assert home.search("kayak").mode == "hybrid"


WRITER = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from instar.adapters.builtin.index import BuiltinIndex
from instar.adapters.local.database import Database
from instar.adapters.local.folder_documents import FolderDocuments
from instar.adapters.local.sqlite_ledger import SqliteManifest
from instar.memory.analysis import Analyzer
from instar.memory.index import Indexer

home, rounds = Path(sys.argv[1]), int(sys.argv[2])
analyzer = Analyzer()
indexer = Indexer(
    FolderDocuments(home, lambda: datetime.now(UTC)),
    BuiltinIndex(home / "index", generation="none", analyzer=analyzer),
    SqliteManifest(Database(home / "instar.db")),
    analyzer=analyzer,
)
print("ready", flush=True)
for number in range(rounds):
    for name in "abc":
        path = home / "agents" / "main" / "memory" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\\n".join(f"- {name} {n} of {number}" for n in range(number % 7 + 1)))
        indexer.look(f"agents/main/memory/{name}.md")
"""


def start_writer(home, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home.path), str(rounds)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )


@pytest.mark.parametrize("delay", [0.01, 0.05, 0.13, 0.3])
def test_after_a_kill_anywhere_the_next_level_repairs(home, delay):
    writer = start_writer(home, 1_000)
    assert writer.stdout.readline() == "ready\n"
    threading.Event().wait(delay)

    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    home.indexer.level()

    assert home.indexer.drift() == []
    assert home.manifest.rows()
    assert all(row.state == "indexed" for row in home.manifest.rows())


def test_two_processes_may_look_at_the_same_documents(home):
    writers = [start_writer(home, 8) for _ in range(2)]
    errors = [writer.communicate(timeout=60) and writer.returncode for writer in writers]

    home.indexer.level()

    assert errors == [0, 0]
    assert home.indexer.drift() == []
    assert all(row.state == "indexed" for row in home.manifest.rows())
