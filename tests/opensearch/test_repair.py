"""What goes wrong under a living index: deletions, old versions, several makers at once."""

import json
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from instar.adapters.aws.opensearch_index import OpenSearchIndex
from instar.adapters.aws.opensearch_schema import Schema
from instar.clock import utc_now
from instar.errors import Invalid
from instar.ids import AgentId
from instar.memory.analysis import Analyzer
from instar.memory.index import passages_of
from instar.memory.ports import (
    Counted,
    Document,
    Embedded,
    Entry,
    IndexChanges,
    IndexFilter,
    IndexQuery,
)

pytestmark = pytest.mark.opensearch

KEY = "agents/main/memory/a.md"
ANALYZER = Analyzer()


def changes(text: str, *vectors: list[float], key: str = KEY) -> IndexChanges:
    """The first indexing of a document."""
    found = passages_of(Document(key=key, revision="r1", text=text, at=utc_now()))
    padded = [*vectors, *([None] * len(found))]
    entries = [
        Entry(passage=passage, tokens=ANALYZER.fields(passage), vector=vector)
        for passage, vector in zip(found, padded, strict=False)
    ]
    return IndexChanges(key=key, upserts=entries, document_tokens=ANALYZER.document("a.md", text))


def count(index: OpenSearchIndex) -> Counted:
    return index.keys().get(KEY, Counted(0, 0))


def test_an_index_deleted_under_us_is_made_again_by_the_next_level(remember, opened, client):
    memory = remember()
    memory.write("memory/a.md", "- the kayak leaks\n- tea\n")
    memory.level()
    [name] = client.indices.get_alias(name=Schema(client, memory.index._schema.prefix, "").alias)

    client.indices.delete(index=name)

    assert memory.found("kayak") == []
    memory.level()
    assert memory.found("kayak")[0] == "- the kayak leaks"
    assert memory.indexer.drift() == []
    mapping = next(iter(client.indices.get_mapping(index=name).values()))["mappings"]
    assert mapping["dynamic"] == "strict"


def test_an_index_that_lost_its_alias_is_found_again(opened, client, prefix):
    index = opened()
    index.apply([changes("- kayak")])
    schema = Schema(client, prefix, "")
    client.indices.delete_alias(index=f"{schema.alias}-1", name=schema.alias)
    assert dict(index.keys()) == {}

    index.apply([changes("- canoe", key="agents/main/memory/b.md")])

    assert len(index.keys()) == 2


def test_writes_never_make_an_index_with_a_guessed_mapping(opened, client, prefix):
    opened("one").apply([changes("- kayak", [1.0, 0.0])])

    [found] = client.indices.get(index=f"{prefix}-*").values()

    vectors = {
        name: field for name, field in found["mappings"]["properties"].items() if "vector" in name
    }
    assert [field["method"]["engine"] for field in vectors.values()] == ["lucene"]
    assert found["settings"]["index"]["number_of_shards"] == "1"


def test_many_makers_at_once_make_one_index_and_lose_nothing(opened, client, prefix):
    indexes = [opened("one") for _ in range(8)]
    keys = [f"agents/main/memory/{number}.md" for number in range(8)]

    with ThreadPoolExecutor(8) as pool:
        each = [
            pool.submit(index.apply, [changes("- kayak", [1.0, 0.0], key=key)])
            for index, key in zip(indexes, keys, strict=True)
        ]
        for future in each:
            future.result()

    assert dict(indexes[0].keys()) == dict.fromkeys(keys, Counted(1, 1))
    assert len(client.indices.get(index=f"{prefix}-*")) == 1


def test_two_processes_on_the_same_documents_end_level(remember, url, prefix, tmp_path):
    memory = remember()
    for number in range(12):
        memory.write(f"memory/{number}.md", f"- kayak {number}\n- canoe {number}\n")
    program = textwrap.dedent(f"""
        import pathlib, sys
        from instar.adapters.aws.opensearch_client import opensearch_client
        from instar.adapters.aws.opensearch_index import OpenSearchIndex
        from instar.adapters.local.database import Database
        from instar.adapters.local.folder_documents import FolderDocuments
        from instar.adapters.local.sqlite_ledger import SqliteManifest
        from instar.clock import utc_now
        from instar.memory.analysis import Analyzer
        from instar.memory.index import Indexer
        home = pathlib.Path({str(memory.folder)!r})
        index = OpenSearchIndex(opensearch_client({url!r}), prefix={prefix!r}, generation="")
        manifest = SqliteManifest(Database(home / f"{{sys.argv[1]}}.db"))
        documents = FolderDocuments(home, utc_now)
        report = Indexer(documents, index, manifest, analyzer=Analyzer()).level()
        assert not report.failed, report
    """)
    running = [
        subprocess.Popen([sys.executable, "-c", program, name], stderr=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]

    errors = [process.communicate(timeout=120)[1] for process in running]

    assert [process.returncode for process in running] == [0, 0], errors
    assert memory.indexer.drift() == []
    assert set(memory.index.keys().values()) == {Counted(2, 0)}


def test_writers_in_a_race_for_one_passage_all_get_through(opened):
    index = opened("one")
    index.apply([changes("- kayak")])
    [held] = index.held(KEY)
    late = IndexChanges(key=KEY, vectors=[Embedded(passage=held.passage, vector=[0.0, 1.0])])

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(index.apply, [late]) for _ in range(12)]:
            future.result()

    assert count(index) == Counted(1, 1)


def test_a_move_of_a_passage_that_changed_meanwhile_is_passed_over(opened):
    index = opened()
    index.apply([changes("- kayak")])
    [stale] = [each.passage for each in index.held(KEY)]
    newer = replace(stale, context="written by another process")
    index.apply([IndexChanges(key=KEY, upserts=[Entry(passage=newer, tokens={})])])

    index.apply([IndexChanges(key=KEY, moved=[replace(stale, start_line=9)])])

    assert [each.passage for each in index.held(KEY)] == [newer]


def test_a_bad_item_stops_no_other_and_is_named(opened):
    index = opened("one")
    other = "agents/main/memory/b.md"
    bad = changes("- canoe", [0.0, 0.0], key=other)  # no direction, so no cosine

    with pytest.raises(Invalid, match=r"b\.md"):
        index.apply([bad, changes("- kayak", [1.0, 0.0])])

    assert count(index) == Counted(1, 1)


def test_a_vector_of_another_length_under_one_fingerprint_is_refused(opened):
    index = opened("one")
    index.apply([changes("- kayak", [1.0, 0.0])])

    with pytest.raises(Invalid, match=r"a\.md"):
        index.apply([changes("- kayak", [1.0, 0.0, 0.0])])


def test_only_the_latest_generations_keep_their_vectors(opened):
    other = "agents/main/memory/b.md"
    opened("one").apply([changes("- kayak", [1.0, 0.0])])
    passages = [each.passage for each in opened("one").held(KEY)]
    late = [Embedded(passage=passage, vector=[0.0, 1.0]) for passage in passages]
    opened("two").apply([IndexChanges(key=KEY, vectors=late)])

    opened("three").apply([changes("- canoe", [1.0, 1.0], key=other)])

    until = time.monotonic() + 30
    while count(opened("one")).vectors and time.monotonic() < until:
        opened("three").apply([changes("- canoe", [1.0, 1.0], key=other)])
    assert [count(opened(name)).vectors for name in ("one", "two", "three")] == [0, 1, 0]


def test_an_index_of_another_version_goes_when_this_one_is_made(opened, client, prefix):
    for name in (f"{prefix}-passages-0.9-1", f"{prefix}-passages-mine"):
        client.indices.create(index=name)

    opened().apply([changes("- kayak")])

    left = set(client.indices.get(index=f"{prefix}-*"))
    assert left == {f"{Schema(client, prefix, '').alias}-1", f"{prefix}-passages-mine"}


def test_a_document_of_very_many_passages_is_held_whole_and_in_order(opened):
    index = opened()
    text = "\n".join(f"- item number {number}" for number in range(2_345))
    index.apply([changes(text)])

    held = [each.passage for each in index.held(KEY)]

    assert [passage.ordinal for passage in held] == list(range(2_345))
    assert count(index) == Counted(2_345, 0)


def test_a_question_of_very_many_words_is_answered(opened):
    index = opened()
    index.apply([changes("- kayak")])
    tokens = ["kayak", *(f"word{number}" for number in range(5_000)), "\ud800", "\0"]

    found = index.search(
        IndexQuery(scope=IndexFilter(agent=AgentId("main")), tokens=tokens, vector=None)
    )

    assert [each.passage.body for each in found.words] == ["kayak"]
    assert found.failed == {}


def test_few_of_ours_among_many_near_ones_of_others_are_found(opened):
    index = opened("one")
    foreign = "agents/guest/memory/a.md"
    text = "\n".join(f"- note {number}" for number in range(500))
    near = [[1.0, number / 10_000] for number in range(500)]
    index.apply([changes(text, *near, key=foreign)])
    index.apply([changes("- a\n- b\n- c", *[[0.1, 1.0]] * 3)])

    scope = IndexFilter(agent=AgentId("main"))
    found = index.search(IndexQuery(scope=scope, tokens=(), vector=[1.0, 0.0], limit=3))

    assert len(found.vectors) == found.vector_count == 3
    assert [each.score for each in found.vectors] == pytest.approx([0.0995] * 3, abs=1e-3)


def test_what_is_cleared_is_gone_and_can_be_filled_again(opened):
    index = opened("one")
    index.clear()
    index.apply([changes("- kayak", [1.0, 0.0])])

    index.clear()
    index.clear()

    assert json.dumps(dict(index.keys())) == "{}"
    index.apply([changes("- kayak", [1.0, 0.0])])
    assert count(index) == Counted(1, 1)
