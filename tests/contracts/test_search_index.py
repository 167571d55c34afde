"""Every SearchIndex adapter keeps these promises."""

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from instar.adapters.aws.opensearch_client import opensearch_client
from instar.adapters.aws.opensearch_index import OpenSearchIndex
from instar.adapters.builtin.index import BuiltinIndex
from instar.ids import AgentId
from instar.memory.analysis import Analyzer
from instar.memory.documents import agent_of
from instar.memory.passages import Source, passages
from instar.memory.ports import (
    Counted,
    Embedded,
    Entry,
    IndexChanges,
    IndexFilter,
    IndexQuery,
    Legs,
    Passage,
    SearchIndex,
)

KEY = "agents/main/memory/a.md"
OTHER = "agents/main/memory/b.md"
FOREIGN = "agents/guest/memory/a.md"
AT = datetime(2031, 5, 4, tzinfo=UTC)
ANALYZER = Analyzer()
MAIN = IndexFilter(agent=AgentId("main"))


@dataclass
class Engine:
    """An index and how a second process opens the same one, for any generation."""

    index: SearchIndex
    reopened: Callable[[str], SearchIndex]


def builtin(request: pytest.FixtureRequest) -> Engine:
    folder: Path = request.getfixturevalue("tmp_path")

    def reopened(generation: str = "three") -> SearchIndex:
        return BuiltinIndex(folder / "index", generation=generation, analyzer=Analyzer())

    return Engine(reopened("three"), reopened)


def opensearch(request: pytest.FixtureRequest) -> Engine:
    """The real node at OPENSEARCH_URL; `make opensearch-test` starts one."""
    url = os.environ.get("OPENSEARCH_URL")
    if not url:
        pytest.skip("OPENSEARCH_URL is not set: no OpenSearch node (make opensearch-test)")
    prefix = f"contract-{uuid.uuid4().hex[:12]}"
    client = opensearch_client(url)

    def reopened(generation: str = "three") -> SearchIndex:
        return OpenSearchIndex(client, prefix=prefix, generation=generation, search_seconds=60)

    request.addfinalizer(client.close)
    request.addfinalizer(OpenSearchIndex(client, prefix=prefix, generation="").clear)
    return Engine(reopened("three"), reopened)


ENGINES = [builtin, pytest.param(opensearch, marks=pytest.mark.opensearch)]


@pytest.fixture(params=ENGINES, ids=lambda build: build.__name__)
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param(request)


@pytest.fixture
def index(engine: Engine) -> SearchIndex:
    return engine.index


def cut(text: str, key: str = KEY, **fields) -> list[Passage]:
    whole = {
        "key": key,
        "name": key.split("/", 2)[2],
        "agent": agent_of(key),
        "kind": "note",
        "trust": "owner",
        "revision": "r1",
        "at": AT,
    }
    return passages(text, Source(**(whole | fields)))


def upsert(found: list[Passage], *vectors: list[float]) -> IndexChanges:
    padded = [*vectors, *([None] * len(found))]
    entries = [
        Entry(passage=passage, tokens=ANALYZER.fields(passage), vector=vector)
        for passage, vector in zip(found, padded, strict=False)
    ]
    text = "\n".join(each.text for each in found)
    tokens = ANALYZER.document(found[0].key.rpartition("/")[2], text)
    return IndexChanges(key=found[0].key, upserts=entries, document_tokens=tokens)


def ask(index: SearchIndex, question: str, vector=None, **scope) -> Legs:
    narrowed = replace(MAIN, **scope)
    tokens = ANALYZER.question(question)
    return index.search(IndexQuery(scope=narrowed, tokens=tokens, vector=vector))


def words(index: SearchIndex, question: str, **scope) -> list[str]:
    return [each.passage.body for each in ask(index, question, **scope).words]


def near(index: SearchIndex, vector, **scope) -> list[str]:
    return [each.passage.body for each in ask(index, "", vector, **scope).vectors]


X, Y, Z = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


def test_an_empty_index_answers_with_nothing(index):
    found = ask(index, "kayak", X)

    assert [list(found.words), list(found.vectors), dict(found.files)] == [[], [], {}]
    assert (found.passage_count, found.vector_count) == (0, 0)
    assert dict(index.keys()) == {}
    assert list(index.held(KEY)) == []


def test_what_was_applied_is_held_as_it_was(index):
    found = cut("# Ünï\n\n- kayak 🛶\n- 中文")
    index.apply([upsert(found, X)])

    held = index.held(KEY)

    assert [each.passage for each in held] == found
    assert [each.has_vector for each in held] == [True, False]
    assert dict(index.keys()) == {KEY: Counted(2, 1)}


def test_any_word_of_the_question_is_enough_and_rare_ones_weigh_more(index):
    index.apply([upsert(cut("- lake lake\n- kayak on a lake\n- the lake\n- tea"))])

    assert words(index, "kayak on the lake")[0] == "kayak on a lake"
    assert words(index, "kayak lake zebra")[0] == "kayak on a lake"
    assert words(index, "kayak lake zebra")[-1] == "tea"  # by its neighbours alone
    assert words(index, "zebra") == []


def test_speaker_header_context_and_common_words_are_searched(index):
    found = cut("# Holidays\n\n**Caroline:** hello there\n\nThe who\n")
    index.apply([upsert(found)])

    assert words(index, "caroline")[0] == "hello there"
    assert set(words(index, "holidays")) == {"hello there", "The who"}
    assert words(index, "Who?")[0] == "The who"


def test_document_scores_come_beside(index):
    index.apply([upsert(cut("- kayak\n- tea"))])
    index.apply([upsert(cut("- kayak kayak", OTHER))])
    index.apply([upsert(cut("- kayak", FOREIGN))])

    files = ask(index, "kayak").files

    assert set(files) == {KEY, OTHER}
    assert files[OTHER] > files[KEY] > 0


def test_coverage_is_the_share_of_the_questions_weight(index):
    index.apply([upsert(cut("- kayak lake\n- kayak\n- tea", name="memory/x.md"))])

    found = ask(index, "kayak lake")
    covered = {each.passage.body: found.coverage.get(each.passage.id) for each in found.words}

    assert covered["kayak lake"] == pytest.approx(1.0)
    assert 0 < covered["kayak"] < 0.5


def test_vectors_rank_by_cosine(index):
    index.apply([upsert(cut("- one\n- two\n- three"), X, [0.6, 0.8, 0.0], Y)])

    found = ask(index, "", X).vectors

    assert [each.passage.body for each in found] == ["one", "two", "three"]
    assert [each.score for each in found] == pytest.approx([1.0, 0.6, 0.0])


def test_a_leg_that_was_not_asked_for_is_empty(index):
    index.apply([upsert(cut("- one"), X)])

    assert list(ask(index, "one").vectors) == []
    assert list(ask(index, "", X).words) == []
    assert ask(index, "one").failed == {}


def test_every_leg_keeps_to_the_scope(index):
    index.apply([upsert(cut("- kayak mine"), X)])
    index.apply([upsert(cut("- kayak foreign", FOREIGN), X)])
    index.apply([upsert(cut("- kayak daily", OTHER, kind="daily"), X)])
    early = "agents/main/memory/early.md"
    index.apply([upsert(cut("- kayak early", early, at=AT - timedelta(days=9)), X)])

    def both(**scope) -> set[str]:
        found = ask(index, "kayak", X, **scope)
        by_words = {each.passage.body for each in found.words}
        assert by_words == {each.passage.body for each in found.vectors}
        assert found.passage_count == found.vector_count == len(by_words)
        assert set(found.files) >= {each.passage.key for each in found.words}
        return by_words

    assert both() == {"kayak mine", "kayak daily", "kayak early"}
    assert both(agent=AgentId("guest")) == {"kayak foreign"}
    assert both(agent=AgentId("nobody")) == set()
    assert both(key=OTHER) == {"kayak daily"}
    assert both(key=FOREIGN) == set()
    assert both(kinds=frozenset({"note"})) == {"kayak mine", "kayak early"}
    assert both(since=AT) == {"kayak mine", "kayak daily"}
    assert both(until=AT - timedelta(days=1)) == {"kayak early"}
    assert both(since=AT, until=AT, kinds=frozenset({"daily"})) == {"kayak daily"}


def test_a_passage_without_a_time_lies_in_no_span_of_time(index):
    index.apply([upsert([replace(each, at=None) for each in cut("- kayak")], X)])

    assert words(index, "kayak") == near(index, X) == ["kayak"]
    assert words(index, "kayak", since=AT) == near(index, X, until=AT) == []


def test_dropped_passages_are_gone_from_every_leg(index):
    found = cut("- kayak\n- canoe")
    index.apply([upsert(found, X, Y)])

    index.apply([IndexChanges(key=KEY, drops=[found[0].id], document_tokens=["cano"])])

    assert words(index, "kayak canoe") == ["canoe"]
    assert near(index, X) == ["canoe"]
    assert [each.passage.body for each in index.held(KEY)] == ["canoe"]
    assert ask(index, "kayak").files == {}


def test_a_document_that_goes_leaves_nothing(index):
    found = cut("- kayak")
    index.apply([upsert(found, X), upsert(cut("- kayak", OTHER), X)])

    index.apply([IndexChanges(key=KEY, drops=[found[0].id], document_tokens=())])

    assert dict(index.keys()) == {OTHER: Counted(1, 1)}
    assert set(ask(index, "kayak").files) == {OTHER}
    assert len(near(index, X)) == 1


def test_an_upsert_replaces_and_loses_its_vector_unless_it_brings_one(index):
    found = cut("- kayak")
    index.apply([upsert(found, X)])

    index.apply([upsert(found)])
    assert [each.has_vector for each in index.held(KEY)] == [False]
    assert words(index, "kayak") == ["kayak"]

    index.apply([upsert(found, Y)])
    assert [each.score for each in ask(index, "", Y).vectors] == pytest.approx([1.0])


def test_a_moved_passage_keeps_tokens_and_vector_and_says_its_new_place(index):
    found = cut("- kayak")
    index.apply([upsert(found, X)])
    moved = replace(found[0], start_line=7, end_line=8, revision="r2", at=AT + timedelta(days=2))

    index.apply([IndexChanges(key=KEY, moved=[moved])])

    assert [(each.passage, each.has_vector) for each in index.held(KEY)] == [(moved, True)]
    assert words(index, "kayak", since=AT + timedelta(days=1)) == ["kayak"]
    assert near(index, X, since=AT + timedelta(days=1)) == ["kayak"]
    assert near(index, X, until=AT) == []


def test_vectors_come_later_and_only_for_the_text_they_were_made_of(index):
    first, second = cut("- kayak\n- canoe")
    index.apply([upsert([first, second])])
    changed = replace(second, context="something else")

    index.apply(
        [
            IndexChanges(
                key=KEY,
                vectors=[
                    Embedded(passage=first, vector=X),
                    Embedded(passage=changed, vector=Y),
                    Embedded(passage=replace(first, id="0" * 32), vector=Z),
                ],
            )
        ]
    )

    assert [each.has_vector for each in index.held(KEY)] == [True, False]
    assert near(index, X) == ["kayak"]


def test_applying_twice_is_the_same_as_once(index):
    found = cut("- kayak\n- canoe")
    changes = [upsert(found, X, Y), IndexChanges(key=OTHER, drops=["0" * 32], document_tokens=())]
    index.apply(changes)
    before = ask(index, "kayak", X)

    index.apply(changes)

    assert ask(index, "kayak", X) == before
    assert dict(index.keys()) == {KEY: Counted(2, 2)}


def test_another_process_sees_a_commit_at_once(engine):
    reader = engine.reopened("three")
    assert words(reader, "kayak") == []
    found = cut("- kayak")

    engine.index.apply([upsert(found, X)])
    assert words(reader, "kayak") == near(reader, X) == ["kayak"]

    engine.index.apply([IndexChanges(key=KEY, drops=[found[0].id], document_tokens=())])
    assert words(reader, "kayak") == near(reader, X) == []


def test_vectors_of_two_generations_never_mix(engine):
    found = cut("- kayak")
    engine.index.apply([upsert(found, X)])
    other = engine.reopened("four")

    assert [each.has_vector for each in other.held(KEY)] == [False]
    other.apply(
        [IndexChanges(key=KEY, vectors=[Embedded(passage=found[0], vector=[0.0, 0.0, 0.0, 1.0])])]
    )

    assert near(other, [0.0, 0.0, 0.0, 1.0]) == ["kayak"]
    assert near(engine.index, X) == ["kayak"]


def test_a_vector_of_another_length_fails_its_leg_alone(index):
    index.apply([upsert(cut("- kayak"), X)])

    found = ask(index, "kayak", [1.0, 0.0])

    assert [each.passage.body for each in found.words] == ["kayak"]
    assert found.vectors is None
    assert "dimensions" in found.failed["vectors"]
    assert near(index, X) == ["kayak"]


def test_many_small_changes_keep_every_entry(index):
    for number in range(60):
        key = f"agents/main/memory/n{number}.md"
        index.apply([upsert(cut(f"- kayak {number}", key), X)])
    for number in range(0, 60, 2):
        key = f"agents/main/memory/n{number}.md"
        held = index.held(key)
        drops = [each.passage.id for each in held]
        index.apply([IndexChanges(key=key, drops=drops, document_tokens=())])

    found = ask(index, "kayak", X)

    assert len(found.words) == len(found.vectors) == len(found.files) == 30
    assert found.passage_count == found.vector_count == 30


def test_the_limit_holds_for_each_leg(index):
    index.apply([upsert(cut("\n".join(f"- kayak {n}" for n in range(30))), *[X] * 30)])
    query = IndexQuery(scope=MAIN, tokens=["kayak"], vector=X, limit=7)

    found = index.search(query)

    assert (len(found.words), len(found.vectors)) == (7, 7)
    assert found.passage_count == 30
    assert index.search(query) == found


@pytest.mark.parametrize("token", ["AND", "*", 'a"b', "key:x", "(", "\\", "ü", "中文", "x" * 100])
def test_tokens_are_data_and_never_syntax(index, token):
    index.apply([upsert(cut("- kayak"))])
    query = IndexQuery(scope=MAIN, tokens=[token, "kayak", "kayak"], vector=None)

    assert [each.passage.body for each in index.search(query).words] == ["kayak"]
