"""What a question finds, in which order, for whom, and what is said when it finds nothing."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from instar.errors import Forbidden, Invalid, Unavailable
from instar.ids import MAIN_AGENT
from instar.memory.ports import Candidate, Legs, Passage
from instar.memory.ranking import VECTOR_SHARE, rank
from instar.memory.recall import Recall, SearchRequest
from instar.principal import Audience, owner

OLD = datetime(2030, 1, 1, tzinfo=UTC)


def a_passage(name: str, **fields) -> Passage:
    whole = {
        "id": name,
        "key": f"agents/main/memory/{name}.md",
        "agent": MAIN_AGENT,
        "start_line": 1,
        "end_line": 1,
        "ordinal": 0,
        "text": name,
        "body": name,
        "speaker": "",
        "context": "",
        "header": "",
        "kind": "note",
        "trust": "owner",
        "revision": "r1",
        "at": OLD,
        "words": 5,
        "asks": False,
    }
    return Passage(**(whole | fields))


def legs(words=(), vectors=(), *, files=None, coverage=None) -> Legs:
    def leg(scored):
        return [Candidate(p if isinstance(p, Passage) else a_passage(p), s) for p, s in scored]

    return Legs(
        words=leg(words),
        vectors=leg(vectors),
        files=files or {},
        coverage=coverage or {},
        passage_count=9,
        vector_count=9,
    )


def order(found: Legs, question: str = "q", *, floor: float = 0.0) -> list[str]:
    return [each.passage.id for each in rank(question, found, floor=floor)]


def test_legs_are_scaled_and_joined_and_no_passage_comes_twice():
    found = legs([("a", 10), ("b", 6), ("c", 2)], [("c", 0.9), ("a", 0.8), ("d", 0.7)])

    ranked = rank("q", found, floor=0)

    assert [each.passage.id for each in ranked] == ["a", "c", "b", "d"]
    assert ranked[0].fused - ranked[0].prior == pytest.approx(1 - VECTOR_SHARE / 2)
    assert (ranked[1].words_rank, ranked[1].vectors_rank) == (3, 1)


def test_an_exact_hit_beats_what_only_sounds_alike():
    near = [(f"n{number}", 0.5 - number / 100) for number in range(5)]

    assert order(legs([("exact", 12.0)], near))[0] == "exact"


def test_the_document_counts_with_its_passages():
    files = {"agents/main/memory/b.md": 5.0}

    assert order(legs([("a", 10), ("b", 9), ("c", 1)], files=files)) == ["b", "a", "c"]


def test_ties_go_to_the_newer_then_to_the_smaller_id():
    newer = a_passage("z", at=OLD + timedelta(days=1))
    scored = [("b", 1.0), ("a", 1.0), (newer, 1.0)]

    assert order(legs(scored)) == ["z", "a", "b"]
    assert order(legs(scored[::-1])) == ["z", "a", "b"]


def test_long_statements_rise_and_bare_questions_sink():
    scored = [(a_passage("asks", asks=True), 1.0), (a_passage("long", words=40), 1.0), ("a", 1.0)]

    assert order(legs(scored)) == ["long", "a", "asks"]


def test_in_chats_with_an_assistant_the_side_asked_for_rises():
    said = [(a_passage("theirs", speaker="AI"), 1.0), (a_passage("mine", speaker="Ann"), 1.0)]

    assert order(legs(said), "What did you recommend?") == ["theirs", "mine"]
    assert order(legs(said), "你给我推荐了什么书") == ["theirs", "mine"]
    assert order(legs(said), "What did I want to read?") == ["mine", "theirs"]


def test_what_only_the_vectors_found_needs_to_be_near():
    found = legs([("word", 1.0)], [("near", 0.9), ("far", 0.7), ("word", 0.6)])

    assert set(order(found, floor=0.8)) == {"word", "near"}


def test_the_score_is_absolute():
    found = legs([("a", 1.0)], [("a", 0.8)], coverage={"a": 0.5})

    assert rank("q", found, floor=0)[0].score == pytest.approx(0.65)
    assert rank("q", legs([("a", 9.0)], coverage={"a": 0.5}), floor=0)[0].score == 0.5
    assert rank("q", legs([], [("a", 0.8)]), floor=0)[0].score == 0.8


def test_hits_carry_place_revision_and_kind(home):
    home.write("memory/travel.md", "# Rome\n\n- pasta\n- the hotel is Albergo Sole\n")
    home.indexer.level()

    hit = home.search("Albergo").hits[0]

    assert hit.document == "memory/travel.md"
    assert hit.lines == (4, 4)
    assert hit.text == "- the hotel is Albergo Sole"
    assert hit.revision == home.documents.get("agents/main/memory/travel.md").revision
    assert (hit.kind, hit.trust) == ("note", "owner")
    assert 0 < hit.score <= 1
    assert "explain" not in hit.json_value()


def test_explain_tells_where_a_hit_comes_from(home, server):
    home.opened(server.embeddings())
    home.write("memory/a.md", "kayak on the lake")
    home.indexer.level()
    home.embed()

    (hit,) = home.search("kayak", explain=True).hits

    assert hit.explain.words_rank == 1
    assert hit.explain.vectors_rank == 1
    assert hit.explain.coverage == 1.0
    assert hit.json_value()["explain"]["cosine"] > 0


def test_only_the_owner_in_private_may_search(home):
    home.write("memory/a.md", "kayak")
    home.indexer.level()
    request = SearchRequest(query="kayak")
    whole = owner(MAIN_AGENT)

    for refused in (
        whole.model_copy(update={"guest": "telegram:7"}),
        whole.model_copy(update={"audience": Audience.SHARED}),
    ):
        with pytest.raises(Forbidden):
            home.recall.search(refused, request)
    assert home.recall.search(whole, request).hits


def test_an_agent_finds_its_own_documents_alone(home, server):
    home.opened(server.embeddings())
    home.write("memory/a.md", "kayak of main")
    home.write("memory/b.md", "kayak of other", agent="other")
    home.indexer.level()
    home.embed()

    assert [hit.text for hit in home.search("kayak").hits] == ["kayak of main"]
    assert [hit.text for hit in home.search("kayak", agent="other").hits] == ["kayak of other"]
    assert home.search("kayak", agent="third").hits == ()


def test_a_question_may_be_narrowed(home, server):
    home.opened(server.embeddings())
    home.write("MEMORY.md", "kayak fact")
    home.write("memory/2024-03-01.md", "kayak in march")
    home.write("memory/2024-05-01.md", "kayak in may")
    home.write("transcripts/s1.md", "**Ann:** kayak said")
    home.indexer.level()
    home.embed()

    def found(**narrowed: object) -> list[str]:
        return sorted(home.found("kayak", **narrowed))

    assert len(found()) == 4
    assert found(document="MEMORY.md") == ["MEMORY.md"]
    assert found(kind="transcript") == ["transcripts/s1.md"]
    assert found(kind="daily", since=datetime(2024, 4, 1, tzinfo=UTC)) == ["memory/2024-05-01.md"]
    assert found(until=datetime(2024, 3, 1, tzinfo=UTC)) == ["memory/2024-03-01.md"]
    with pytest.raises(Invalid):
        found(document="../secret.md")
    with pytest.raises(ValidationError):
        found(kind="secret")


@pytest.mark.parametrize("limit", [0, -1, 51])
def test_a_limit_out_of_range_is_invalid(home, limit):
    with pytest.raises(Invalid):
        home.search("kayak", limit=limit)


def test_a_larger_limit_only_extends_the_list(home):
    home.write("memory/a.md", "\n".join(f"- kayak {n} " + "x " * (n % 5) for n in range(30)))
    home.indexer.level()

    few, many = home.search("kayak", limit=3).hits, home.search("kayak", limit=20).hits

    assert many[:3] == few
    assert len(many) == 20
    assert [home.search("kayak", limit=3).hits for _ in range(5)] == [few] * 5


def test_dates_and_names_of_documents_are_found(home):
    home.write("memory/2026-03-16.md", "Met the roofer.")
    home.write("memory/2026-03-17.md", "On 16 April the roof was done.")
    home.write("memory/garden.md", "roses")
    home.indexer.level()

    assert home.found("2026-03-16")[0] == "memory/2026-03-16.md"
    assert home.found("2026-03-16.md")[0] == "memory/2026-03-16.md"
    assert home.found("What happened on 16 March 2026?")[0] == "memory/2026-03-16.md"
    assert home.found("garden") == ["memory/garden.md"]


def test_the_exact_spelling_ranks_first(home):
    home.write("memory/a.md", "Muller kauft Karten")
    home.write("memory/b.md", "Müller kauft Karten")
    home.indexer.level()

    assert home.found("Müller") == ["memory/b.md", "memory/a.md"]
    assert home.found("Muller")[0] == "memory/a.md"


def test_a_note_is_not_crowded_out_by_transcripts(home):
    home.write("MEMORY.md", "- the garden gate code is on the blue card")
    turns = "\n".join(f"**Ann:** the garden is nice, day {n}" for n in range(300))
    home.write("transcripts/s.md", turns)
    home.indexer.level()

    found = home.search("the garden gate code is on the blue card", limit=3)

    assert found.hits[0].document == "MEMORY.md"


def test_a_question_in_german_finds_a_german_note(home):
    home.write("memory/a.md", "Der Schlüssel für die Garage liegt in der Küche.")
    home.write("memory/b.md", "Die Rechnung ist bezahlt.")
    home.indexer.level()

    assert home.found("Wo liegt der Schlüssel zur Garage?") == ["memory/a.md"]


@pytest.mark.parametrize(
    "query",
    ["", "   ", "(", '"', "*", "a:b", "NOT", "foo~2^", "title:x OR", "\0", "\ud800", "x" * 20_000,
     "word " * 5_000, r"^(foo|bar)\d{2,}$ && echo \"done\" #1?", "🎉", "交互"],
)  # fmt: skip
def test_any_text_is_a_legal_question(home, server, query):
    home.opened(server.embeddings())
    home.write("memory/a.md", "nothing of that")
    home.indexer.level()
    home.embed()

    found = home.search(query)

    assert found.hits or found.reason


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(max_size=60))
def test_any_string_is_a_legal_question_and_finds_itself(home, query):
    home.write("memory/a.md", "kayak")
    home.indexer.look("agents/main/memory/a.md")

    home.search(query)


def test_nothing_found_says_why(home):
    assert home.search("kayak").reason == "nothing is indexed in this scope"
    home.write("memory/a.md", "canoe")
    home.indexer.level()

    assert "none of 1 passages" in home.search("kayak").reason
    assert "no word" in home.search("...").reason
    assert home.search("canoe").reason == ""


def test_what_lies_below_the_floor_is_named(home, server):
    embeddings = server.embeddings()
    home.opened(embeddings)
    home.write("memory/a.md", "canoe")
    home.indexer.level()
    home.embed()
    strict = Recall(home.index, analyzer=home.analyzer, embeddings=embeddings, vector_floor=0.99)

    found = strict.search(owner(MAIN_AGENT), SearchRequest(query="zebra"))

    assert found.hits == ()
    assert "1 candidates below the floor" in found.reason


@pytest.mark.parametrize("status", [401, 429, 500])
def test_words_answer_when_the_embedder_fails(home, server, status):
    home.opened(server.embeddings())
    home.write("memory/a.md", "kayak")
    home.indexer.level()
    home.embed()
    server.status = status

    found = home.search("kayak")

    assert [hit.document for hit in found.hits] == ["memory/a.md"]
    assert (found.mode, found.degraded) == ("words", True)
    assert "embedder" in found.reason


def test_words_answer_when_the_embedder_hangs(home, server):
    embeddings = server.embeddings()
    home.opened(embeddings)
    home.write("memory/a.md", "kayak")
    home.indexer.level()
    home.embed()
    server.before = lambda: time.sleep(3)
    recall = Recall(
        home.index,
        analyzer=home.analyzer,
        embeddings=embeddings,
        vector_wait=timedelta(milliseconds=50),
    )

    start = time.monotonic()
    found = recall.search(owner(MAIN_AGENT), SearchRequest(query="kayak"))

    assert time.monotonic() - start < 2
    assert [hit.document for hit in found.hits] == ["memory/a.md"]
    assert found.degraded


class BrokenWords:
    """A real index whose words cannot be read for a while."""

    def __init__(self, index) -> None:
        self._index = index

    def search(self, query):
        whole = self._index.search(query)
        return Legs(
            words=None,
            vectors=whole.vectors,
            files={},
            coverage={},
            passage_count=whole.passage_count,
            vector_count=whole.vector_count,
            failed={"words": "the words cannot be read"},
        )


def test_vectors_answer_when_words_fail(home, server):
    embeddings = server.embeddings()
    home.opened(embeddings)
    home.write("memory/a.md", "kayak")
    home.indexer.level()
    home.embed()

    recall = Recall(BrokenWords(home.index), analyzer=home.analyzer, embeddings=embeddings)
    found = recall.search(owner(MAIN_AGENT), SearchRequest(query="kayak"))

    assert [hit.document for hit in found.hits] == ["memory/a.md"]
    assert (found.mode, found.degraded) == ("vectors", True)
    assert "cannot be read" in found.reason


class DownIndex:
    """An index behind a connection that is down."""

    def search(self, query):
        raise Unavailable("the index is down")


def test_an_index_that_is_down_is_an_error_and_not_an_empty_list(home):
    recall = Recall(DownIndex(), analyzer=home.analyzer)

    with pytest.raises(Unavailable):
        recall.search(owner(MAIN_AGENT), SearchRequest(query="kayak"))
