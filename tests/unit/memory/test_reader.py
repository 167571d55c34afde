"""Reading documents by name."""

import pytest

from instar.errors import Forbidden, Invalid, NotFound
from instar.ids import AgentId, TurnId
from instar.memory.asking import Asked
from instar.principal import ALL_RIGHTS, Audience, Principal, owner

MAIN, ZOE = owner(AgentId("main")), owner(AgentId("zoe"))
GUEST = Principal(
    agent=AgentId("main"), audience=Audience.PRIVATE, guest="telegram:9", rights=ALL_RIGHTS
)
SHARED = MAIN.model_copy(update={"audience": Audience.SHARED})
ASKED = Asked(reason="asked")


@pytest.fixture
def three(memory):
    """MEMORY.md with three lines, one save each."""
    return [memory.editor.save(MAIN, word, ASKED) for word in ("one", "two", "three")]


def test_a_document_is_read_whole_in_part_and_as_it_was(embedded, three):
    reader = embedded.memory.reader

    assert reader.get(MAIN, "MEMORY.md").text == "- one\n- two\n- three\n"
    assert reader.get(MAIN, "MEMORY.md").revision == three[-1].revision
    assert reader.get(MAIN, "MEMORY.md", lines=(2, 3)).text == "- two\n- three\n"
    assert reader.get(MAIN, "MEMORY.md", lines=(3, 99)).text == "- three\n"
    assert reader.get(MAIN, "MEMORY.md", lines=(7, 9)).text == ""
    assert reader.get(MAIN, "MEMORY.md", revision=three[0].revision).text == "- one\n"


@pytest.mark.parametrize("lines", [(0, 1), (2, 1), (-1, 1)])
def test_a_span_that_is_none_is_refused(embedded, three, lines):
    with pytest.raises(Invalid, match="span of lines"):
        embedded.memory.reader.get(MAIN, "MEMORY.md", lines=lines)


def test_what_is_not_there_is_not_found(embedded, three):
    reader = embedded.memory.reader
    for missing in (
        lambda: reader.get(MAIN, "memory/nothing.md"),
        lambda: reader.get(MAIN, "MEMORY.md", revision="nonsense"),
        lambda: reader.history(MAIN, "memory/nothing.md"),
        lambda: reader.get(ZOE, "MEMORY.md"),
        lambda: reader.get(ZOE, "MEMORY.md", revision=three[0].revision),
        lambda: reader.history(ZOE, "MEMORY.md"),
        lambda: reader.diff(ZOE, "MEMORY.md", three[0].revision, three[1].revision),
    ):
        with pytest.raises(NotFound):
            missing()


@pytest.mark.parametrize("who", [GUEST, SHARED])
def test_nobody_else_reads(embedded, three, who):
    reader = embedded.memory.reader
    for attempt in (
        lambda: reader.get(who, "MEMORY.md"),
        lambda: reader.history(who, "MEMORY.md"),
        lambda: reader.diff(who, "MEMORY.md", three[0].revision, three[1].revision),
        lambda: reader.list(who),
    ):
        with pytest.raises(Forbidden):
            attempt()

    assert [row.document for row in reader.list(MAIN).documents] == ["MEMORY.md"]
    assert reader.list(ZOE).documents == ()


def test_the_history_is_newest_first_and_says_who_and_why(embedded, memory, three, folder):
    turn = MAIN.model_copy(update={"turn": TurnId("t1"), "session": "web:1"})
    memory.editor.save(turn, "four", Asked(reason="saved"))
    (folder / "agents/main/MEMORY.md").write_text("by hand\n")

    rows = embedded.memory.reader.history(MAIN, "MEMORY.md").revisions

    assert [(row.author, row.reason, row.turn) for row in rows] == [
        ("owner", "edited outside Instar", None),
        ("agent:main", "saved", "t1"),
        ("owner", "asked", None),
        ("owner", "asked", None),
        ("owner", "asked", None),
    ]
    assert [row.revision for row in rows[2:]] == [saved.revision for saved in reversed(three)]


def test_a_file_removed_by_hand_keeps_its_history(embedded, three, folder):
    (folder / "agents/main/MEMORY.md").unlink()

    rows = embedded.memory.reader.history(MAIN, "MEMORY.md").revisions

    assert (rows[0].deleted, rows[0].reason) == (True, "removed outside Instar")
    assert embedded.memory.reader.get(MAIN, "MEMORY.md", revision=rows[1].revision).text == (
        "- one\n- two\n- three\n"
    )


def test_a_diff_shows_what_changed(embedded, three):
    first, last = three[0].revision, three[2].revision

    diff = embedded.memory.reader.diff(MAIN, "MEMORY.md", first, last).diff

    assert diff.splitlines() == [
        f"--- MEMORY.md@{first}",
        f"+++ MEMORY.md@{last}",
        "@@ -1 +1,3 @@",
        " - one",
        "+- two",
        "+- three",
    ]


def test_documents_are_listed_with_their_kind(embedded, three, folder):
    (folder / "agents/main/memory").mkdir()
    (folder / "agents/main/memory/2026-02-14.md").write_text("a day\n")
    (folder / "agents/main/memory/Q&A + plan (50%).md").write_text("notes\n")
    (folder / "agents/main/persona").mkdir()
    (folder / "agents/main/persona/SOUL.md").write_text("terse\n")

    listed = embedded.memory.reader.list(MAIN).documents

    assert [(row.document, row.kind) for row in listed] == [
        ("MEMORY.md", "fact"),
        ("memory/2026-02-14.md", "daily"),
        ("memory/Q&A + plan (50%).md", "note"),
        ("persona/SOUL.md", "persona"),
    ]
    for row in listed:
        assert embedded.memory.reader.get(MAIN, row.document).text
