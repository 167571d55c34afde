"""Saving, editing and restoring, over the real adapters of a home."""

import pytest

from instar.errors import Conflict, Forbidden, Forgotten, Invalid, NotFound, TooLarge
from instar.ids import AgentId, CallId, TurnId
from instar.memory.asking import Asked
from instar.memory.editor import MemoryEditor, SecretFound
from instar.memory.recall import SearchRequest
from instar.memory.results import Duplicate, Saved
from instar.principal import ALL_RIGHTS, Audience, Principal, owner
from instar.testing.builders import UnindexedMemory
from instar.wiring.embedded import Embedded

MAIN, ZOE = owner(AgentId("main")), owner(AgentId("zoe"))
GUEST = Principal(
    agent=AgentId("main"), audience=Audience.PRIVATE, guest="telegram:9", rights=ALL_RIGHTS
)
SHARED = MAIN.model_copy(update={"audience": Audience.SHARED})
ASKED = Asked(reason="asked")


@pytest.fixture
def editor(memory: UnindexedMemory) -> MemoryEditor:
    return memory.editor


@pytest.fixture
def indexed(embedded: Embedded) -> MemoryEditor:
    return embedded.memory.editor


def text(embedded: Embedded, document: str = "MEMORY.md", who: Principal = MAIN) -> str:
    return embedded.memory.reader.get(who, document).text


def found(embedded: Embedded, query: str, who: Principal = MAIN) -> list[str]:
    return [hit.text for hit in embedded.memory.recall.search(who, SearchRequest(query=query)).hits]


def test_a_save_stands_in_memory_and_is_found_at_once(embedded, indexed, folder):
    saved = indexed.save(MAIN, "Anna cannot eat peanuts", ASKED)

    assert isinstance(saved, Saved)
    assert (saved.saved, saved.document, saved.indexed) == (True, "MEMORY.md", True)
    file = folder / "agents" / "main" / "MEMORY.md"
    assert file.read_text() == "- Anna cannot eat peanuts\n"
    assert found(embedded, "peanuts") == ["- Anna cannot eat peanuts"]
    assert embedded.stores.ledger.entries()[0].checkpoint == saved.checkpoint


@pytest.mark.parametrize("again", ["Anna likes tea", "- anna likes **tea**.", "ANNA  LIKES TEA"])
def test_a_duplicate_is_told_where_it_stands_and_not_written(embedded, editor, again):
    editor.save(MAIN, "Ben does not", ASKED)
    editor.save(MAIN, "Anna likes tea", ASKED)

    said = editor.save(MAIN, again, ASKED)

    assert said == Duplicate(duplicate_of={"document": "MEMORY.md", "lines": [2, 2]})
    assert text(embedded) == "- Ben does not\n- Anna likes tea\n"
    assert len(embedded.stores.ledger.entries()) == 2


def test_a_duplicate_in_another_document_is_one_too(indexed):
    indexed.save(MAIN, "Anna likes tea", ASKED, document="memory/people.md")

    said = indexed.save(MAIN, "Anna likes tea", ASKED)

    assert said == Duplicate(duplicate_of={"document": "memory/people.md", "lines": [1, 1]})


def test_an_index_that_lags_behind_makes_no_duplicate(embedded, indexed, folder):
    indexed.save(MAIN, "Anna likes tea", ASKED, document="memory/people.md")
    (folder / "agents/main/memory/people.md").write_text("- Ben does not\n")

    said = indexed.save(MAIN, "Anna likes tea", ASKED)

    assert isinstance(said, Saved)
    assert text(embedded) == "- Anna likes tea\n"


def test_a_transcript_that_says_it_is_no_memory_of_it(embedded, indexed, folder):
    (folder / "agents/main/transcripts").mkdir(parents=True)
    (folder / "agents/main/transcripts/web-1.md").write_text("Anna likes tea\n")
    embedded.memory.indexer.level()

    said = indexed.save(MAIN, "Anna likes tea", ASKED)

    assert isinstance(said, Saved)
    assert text(embedded) == "- Anna likes tea\n"


def test_similar_statements_are_shown_and_not_refused(embedded, indexed):
    others = "\n\n".join(f"# {word}\n\nSomething about {word}." for word in "abcdefgh")
    indexed.put(MAIN, "memory/others.md", others, ASKED, replaces=None)
    indexed.save(MAIN, "Anna likes green tea with honey", ASKED)

    said = indexed.save(MAIN, "Anna likes black tea with honey", ASKED)

    assert isinstance(said, Saved)
    assert [claim.text for claim in said.similar] == ["- Anna likes green tea with honey"]
    assert len(text(embedded).splitlines()) == 2


def test_append_is_the_default_and_replacing_is_explicit_and_undoable(embedded, editor):
    first = editor.save(MAIN, "one", ASKED, document="memory/2026-05-02.md")
    editor.save(MAIN, "two", ASKED, document="memory/2026-05-02.md")
    assert text(embedded, "memory/2026-05-02.md") == "- one\n- two\n"

    editor.save(MAIN, "# New", ASKED, document="memory/2026-05-02.md", replace=True)
    assert text(embedded, "memory/2026-05-02.md") == "# New\n"

    restored = editor.restore(MAIN, "memory/2026-05-02.md", first.revision, ASKED)
    assert text(embedded, "memory/2026-05-02.md") == "- one\n"
    assert restored.checkpoint is not None
    assert len(embedded.memory.reader.history(MAIN, "memory/2026-05-02.md").revisions) == 4


@pytest.mark.parametrize("blank", ["", " ", "\n\t\n"])
def test_a_blank_is_refused(embedded, editor, blank):
    editor.save(MAIN, "one", ASKED)

    with pytest.raises(Invalid, match="nothing to save"):
        editor.save(MAIN, blank, ASKED)

    assert text(embedded) == "- one\n"


def test_51200_bytes_are_saved_and_one_more_is_not(embedded, editor):
    words = ("word " * 10_240)[:51_199] + "."
    editor.save(MAIN, words, ASKED)

    with pytest.raises(TooLarge, match=r"51,201 bytes.*51,200"):
        editor.save(MAIN, words + "!", ASKED)

    assert text(embedded) == f"- {words}\n"


def test_a_document_that_would_pass_its_cap_is_refused_and_stays(embedded, editor, folder):
    editor.save(MAIN, "one", ASKED)
    (folder / "agents/main/MEMORY.md").write_text("x" * 262_000)

    with pytest.raises(TooLarge, match="262,144"):
        editor.save(MAIN, "y" * 500, ASKED)

    assert text(embedded) == "x" * 262_000


def test_a_secret_is_refused_without_naming_it(embedded, editor, folder):
    key = "sk-proj-" + "a1B2c3D4" * 4
    editor.save(MAIN, "the PIN of the lock is 4417", ASKED)

    with pytest.raises(SecretFound) as refusal:
        editor.save(MAIN, f"my key is {key}", ASKED)

    assert refusal.value.type == "secret"
    assert key not in str(refusal.value.problem())
    assert text(embedded) == "- the PIN of the lock is 4417\n"
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"4417" in kept
    assert key.encode() not in kept


@pytest.mark.parametrize("document", ["", "../x.md", "memory/a/b.md", "MEMORY.md%00", "x.md"])
def test_a_bad_name_is_refused_and_nothing_is_written(embedded, editor, document):
    editor.save(MAIN, "one", ASKED)

    with pytest.raises(Invalid):
        editor.save(MAIN, "two", ASKED, document=document)

    assert text(embedded) == "- one\n"
    assert len(embedded.stores.ledger.entries()) == 1


def test_a_tool_writes_memory_and_nothing_else(embedded, editor):
    by_tool = Asked(reason="saved", call=CallId("c1"))
    editor.save(MAIN, "one", by_tool)

    for document in ("persona/SOUL.md", "transcripts/web-1.md"):
        with pytest.raises(Forbidden, match=document):
            editor.save(MAIN, "obey", by_tool, document=document)

    listed = embedded.memory.reader.list(MAIN).documents
    assert [row.document for row in listed] == ["MEMORY.md"]
    editor.save(MAIN, "You are terse.", ASKED, document="persona/SOUL.md")
    assert text(embedded, "persona/SOUL.md") == "- You are terse.\n"


@pytest.mark.parametrize("who", [GUEST, SHARED])
def test_guests_and_audiences_change_nothing(embedded, editor, who):
    saved = editor.save(MAIN, "one", ASKED)

    for attempt in (
        lambda: editor.save(who, "two", ASKED),
        lambda: editor.put(who, "MEMORY.md", "two", ASKED, replaces=saved.revision),
        lambda: editor.restore(who, "MEMORY.md", saved.revision, ASKED),
    ):
        with pytest.raises(Forbidden):
            attempt()

    assert text(embedded) == "- one\n"


def test_two_agents_share_nothing(embedded, indexed):
    indexed.save(MAIN, "Anna likes tea", ASKED)

    said = indexed.save(ZOE, "Anna likes tea", ASKED)

    assert isinstance(said, Saved)
    assert said.similar == ()
    assert text(embedded, who=ZOE) == text(embedded, who=MAIN) == "- Anna likes tea\n"
    indexed.save(ZOE, "Zoe rides a kayak", ASKED)
    assert found(embedded, "kayak", ZOE)[0] == "- Zoe rides a kayak"
    assert found(embedded, "kayak", MAIN) == []


def test_the_same_effect_saves_once_and_answers_the_same_revision(embedded, editor):
    asked = Asked(reason="saved", effect="t1:1:0", call=CallId("c1"))

    first = editor.save(MAIN, "one", asked)
    editor.save(MAIN, "two", ASKED)
    again = editor.save(MAIN, "one", asked)

    assert (again.saved, again.revision, again.checkpoint) == (
        True,
        first.revision,
        first.checkpoint,
    )
    assert text(embedded) == "- one\n- two\n"


def test_the_ledger_says_who_wrote(embedded, editor):
    turn = MAIN.model_copy(update={"turn": TurnId("t1"), "session": "web:1"})
    editor.save(MAIN, "by the owner", ASKED)
    editor.save(turn, "by the model", Asked(reason="saved", call=CallId("c1")))

    by_model, by_owner = embedded.stores.ledger.entries()
    assert (by_owner.author, by_owner.turn) == ("owner", None)
    assert (by_model.author, by_model.turn, by_model.call) == ("agent:main", "t1", "c1")


# --- tombstones --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "again",
    [
        "the locker code is 4417",
        "- The **locker** code is 4417.",
        "# Codes\n\nThe locker code is 4417",
    ],
)
def test_what_was_forgotten_does_not_come_back(embedded, memory, editor, again):
    editor.save(MAIN, "the locker code is 4417", ASKED)
    editor.save(MAIN, "the bike is green", ASKED)
    memory.remover.delete(MAIN, "the locker code is 4417", ASKED)

    with pytest.raises(Forgotten, match="had this statement forgotten"):
        editor.save(MAIN, again, ASKED)

    assert text(embedded) == "- the bike is green\n"
    assert isinstance(editor.save(MAIN, "the locker code is 4418", ASKED), Saved)


def test_the_owner_alone_lifts_a_tombstone(embedded, memory, editor):
    editor.save(MAIN, "the bike is green", ASKED)
    memory.remover.delete(MAIN, "the bike is green", ASKED)
    in_a_turn = MAIN.model_copy(update={"turn": TurnId("t1")})

    with pytest.raises(Forbidden, match="not through the model"):
        editor.save(in_a_turn, "the bike is green", ASKED, unforget=True)
    with pytest.raises(Forgotten):
        editor.save(MAIN, "the bike is green", ASKED)

    editor.save(MAIN, "the bike is green", ASKED, unforget=True)
    assert text(embedded) == "- the bike is green\n"
    editor.save(in_a_turn, "the bike is fast", ASKED)


def test_a_tombstone_of_one_agent_is_none_of_the_others(embedded, memory, editor):
    editor.save(MAIN, "the bike is green", ASKED)
    memory.remover.delete(MAIN, "the bike is green", ASKED)

    assert isinstance(editor.save(ZOE, "the bike is green", ASKED), Saved)
    with pytest.raises(Forgotten):
        editor.save(MAIN, "the bike is green", ASKED)


# --- a person's edit ---------------------------------------------------------------------------


def test_a_persons_edit_replaces_the_revision_that_was_read(embedded, indexed):
    read = indexed.save(MAIN, "one", ASKED)

    written = indexed.put(MAIN, "MEMORY.md", "# Mine\n\ntea\n", ASKED, replaces=read.revision)

    assert text(embedded) == "# Mine\n\ntea\n"
    assert written.revision != read.revision
    assert found(embedded, "tea") == ["# Mine\n\ntea"]


def test_a_persons_edit_of_an_old_revision_is_a_conflict(embedded, editor):
    read = editor.save(MAIN, "one", ASKED)
    editor.save(MAIN, "two", ASKED)

    with pytest.raises(Conflict):
        editor.put(MAIN, "MEMORY.md", "mine\n", ASKED, replaces=read.revision)

    assert text(embedded) == "- one\n- two\n"


def test_a_new_document_is_made_once(embedded, editor):
    editor.put(MAIN, "memory/travel.md", "Lisbon\n", ASKED, replaces=None)

    with pytest.raises(Invalid, match="exists already"):
        editor.put(MAIN, "memory/travel.md", "Porto\n", ASKED, replaces=None)

    assert text(embedded, "memory/travel.md") == "Lisbon\n"


def test_a_person_may_edit_around_a_secret_that_stands_there_but_add_none(embedded, editor, folder):
    key = "ghp_" + "a1B2c3" * 6
    (folder / "agents/main/memory").mkdir(parents=True)
    (folder / "agents/main/memory/old.md").write_text(f"token {key}\n")
    read = embedded.memory.reader.get(MAIN, "memory/old.md")

    edited = editor.put(
        MAIN, "memory/old.md", f"token {key}\nmore\n", ASKED, replaces=read.revision
    )
    with pytest.raises(SecretFound):
        editor.put(MAIN, "memory/old.md", "AKIAIOSFODNN7EXAMPLE\n", ASKED, replaces=edited.revision)

    assert text(embedded, "memory/old.md") == f"token {key}\nmore\n"


def test_restoring_an_unknown_revision_changes_nothing(embedded, editor):
    editor.save(MAIN, "one", ASKED)

    with pytest.raises(NotFound):
        editor.restore(MAIN, "MEMORY.md", "00000009-20300101T000000000Z-0123456789abcdef", ASKED)

    assert text(embedded) == "- one\n"


def test_a_restore_is_itself_undoable(embedded, editor):
    first = editor.save(MAIN, "one", ASKED)
    second = editor.save(MAIN, "two", ASKED)

    editor.restore(MAIN, "MEMORY.md", first.revision, ASKED)
    editor.restore(MAIN, "MEMORY.md", second.revision, ASKED)

    assert text(embedded) == "- one\n- two\n"
