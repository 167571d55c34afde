"""Deleting a statement: everywhere, with a tombstone, whatever comes in between."""

from collections.abc import Callable, Sequence

import pytest

from instar.adapters.local.sqlite_ledger import SqliteTombstones
from instar.errors import Forbidden, Invalid, NotFound
from instar.ids import AgentId
from instar.memory import claims
from instar.memory.asking import Asked
from instar.memory.ports import Document, Documents, Listed
from instar.memory.recall import SearchRequest
from instar.memory.removal import MemoryRemover
from instar.principal import ALL_RIGHTS, Audience, Principal, owner
from instar.testing.builders import UnindexedMemory
from instar.wiring.embedded import Embedded

MAIN, ZOE = owner(AgentId("main")), owner(AgentId("zoe"))
GUEST = Principal(
    agent=AgentId("main"), audience=Audience.PRIVATE, guest="telegram:9", rights=ALL_RIGHTS
)
ASKED = Asked(reason="asked")


def text(embedded: Embedded, document: str = "MEMORY.md", who: Principal = MAIN) -> str:
    return embedded.memory.reader.get(who, document).text


def marks(embedded: Embedded, statement: str) -> int:
    wanted = claims.marks(statement, embedded.stores.mark_key())
    return len(SqliteTombstones(embedded.stores.database).known(AgentId("main"), wanted))


def test_a_statement_goes_from_every_document_and_its_neighbours_stay(embedded):
    save = embedded.memory.editor.save
    save(MAIN, "Anna likes tea", ASKED)
    save(MAIN, "Ben likes tea", ASKED)
    save(MAIN, "# People\n\nAnna likes tea.\n\nCleo, too", ASKED, document="memory/people.md")

    removed = embedded.memory.remover.delete(MAIN, "anna likes tea", ASKED)

    assert [row.document for row in removed.report] == ["MEMORY.md", "memory/people.md"]
    assert [row.lines for row in removed.report] == [((1, 1),), ((3, 3),)]
    assert text(embedded) == "- Ben likes tea\n"
    assert text(embedded, "memory/people.md") == "# People\n\nCleo, too\n"
    hits = embedded.memory.recall.search(MAIN, SearchRequest(query="likes tea")).hits
    assert [hit.text for hit in hits] == ["- Ben likes tea"]


def test_a_delete_can_be_undone(embedded, memory):
    saved = memory.editor.save(MAIN, "Anna likes tea", ASKED)
    memory.remover.delete(MAIN, "Anna likes tea", ASKED)

    memory.editor.restore(MAIN, "MEMORY.md", saved.revision, ASKED)

    assert text(embedded) == "- Anna likes tea\n"


def test_nothing_says_it_so_nothing_changes_and_what_is_near_is_shown(embedded):
    embedded.memory.editor.save(MAIN, "Anna likes green tea", ASKED)

    with pytest.raises(NotFound) as refusal:
        embedded.memory.remover.delete(MAIN, "Anna likes tea", ASKED)

    assert [near["text"] for near in refusal.value.extra["similar"]] == ["- Anna likes green tea"]
    assert text(embedded) == "- Anna likes green tea\n"
    assert marks(embedded, "Anna likes tea") == 0


def test_a_part_of_a_word_is_nothing_to_delete(embedded, memory):
    memory.editor.save(MAIN, "Anna likes steak", ASKED)

    with pytest.raises(NotFound):
        memory.remover.delete(MAIN, "tea", ASKED)

    assert text(embedded) == "- Anna likes steak\n"


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_blank_is_refused(embedded, memory, blank):
    memory.editor.save(MAIN, "one", ASKED)

    with pytest.raises(Invalid):
        memory.remover.delete(MAIN, blank, ASKED)

    assert text(embedded) == "- one\n"


def test_line_ends_of_windows_make_no_difference(embedded, memory, folder):
    (folder / "agents/main/memory").mkdir(parents=True)
    file = folder / "agents/main/memory/a.md"
    file.write_bytes(b"intro\r\n\r\none two\r\nthree\r\n\r\nend\r\n")

    memory.remover.delete(MAIN, "two\nthree", ASKED)

    assert file.read_bytes() == b"intro\r\n\r\none \r\n\r\nend\r\n"


def test_guests_and_other_agents_remove_nothing(embedded):
    embedded.memory.editor.save(MAIN, "Anna likes tea", ASKED)

    with pytest.raises(Forbidden):
        embedded.memory.remover.delete(GUEST, "Anna likes tea", ASKED)
    with pytest.raises(NotFound) as refusal:
        embedded.memory.remover.delete(ZOE, "Anna likes tea", ASKED)

    assert refusal.value.extra["similar"] == []
    assert text(embedded) == "- Anna likes tea\n"


class Killed(BaseException):
    """The process ends here."""


class Passing(Documents):
    """Real documents that call back before a put of a key."""

    def __init__(self, inner: Documents) -> None:
        self._inner = inner
        self.before_put: dict[str, Callable[[], None]] = {}

    def get(self, key: str, *, revision: str | None = None) -> Document:
        return self._inner.get(key, revision=revision)

    def put(self, key: str, text: str, *, replaces: str | None) -> Document:
        self.before_put.pop(key, lambda: None)()
        return self._inner.put(key, text, replaces=replaces)

    def delete(self, key: str, *, replaces: str) -> str:
        return self._inner.delete(key, replaces=replaces)

    def list(self, prefix: str) -> Sequence[Listed]:
        return self._inner.list(prefix)

    def revisions(self, key: str):
        return self._inner.revisions(key)


def in_two_documents(memory: UnindexedMemory) -> tuple[Passing, MemoryRemover]:
    memory.editor.save(MAIN, "Anna likes tea", ASKED)
    both = "Anna likes tea\n\nCleo, too"
    memory.editor.save(MAIN, both, ASKED, document="memory/people.md")
    documents = Passing(memory.embedded.stores.documents)
    return documents, memory.remover_over(documents)


@pytest.mark.parametrize("at", ["agents/main/MEMORY.md", "agents/main/memory/people.md"])
def test_killed_in_the_middle_the_repeat_removes_the_rest(embedded, memory, at):
    documents, remover = in_two_documents(memory)
    asked = Asked(reason="deleted", effect="t1:1:0")

    def kill() -> None:
        raise Killed

    documents.before_put[at] = kill
    with pytest.raises(Killed):
        remover.delete(MAIN, "Anna likes tea", asked)
    assert marks(embedded, "Anna likes tea") == 1

    removed = remover.delete(MAIN, "Anna likes tea", asked)
    again = remover.delete(MAIN, "Anna likes tea", asked)

    names = ["MEMORY.md", "memory/people.md"]
    assert sorted(row.document for row in removed.report) == names
    assert sorted(row.document for row in again.report) == names
    assert text(embedded) == ""
    assert text(embedded, "memory/people.md") == "Cleo, too\n"


def test_somebody_who_removes_it_first_is_no_error(embedded, memory, folder):
    documents, remover = in_two_documents(memory)
    documents.before_put["agents/main/MEMORY.md"] = lambda: (
        folder / "agents/main/MEMORY.md"
    ).write_text("- by hand\n")

    removed = remover.delete(MAIN, "Anna likes tea", ASKED)

    assert [row.document for row in removed.report] == ["memory/people.md"]
    assert text(embedded) == "- by hand\n"
    assert text(embedded, "memory/people.md") == "Cleo, too\n"
    assert marks(embedded, "Anna likes tea") == 1


def test_a_file_that_is_not_text_stops_nothing(embedded, memory, folder):
    memory.editor.save(MAIN, "Anna likes tea", ASKED)
    (folder / "agents/main/memory").mkdir()
    (folder / "agents/main/memory/photo.md").write_bytes(b"\xff\xfe\x00")

    memory.remover.delete(MAIN, "Anna likes tea", ASKED)

    assert text(embedded) == ""
    assert (folder / "agents/main/memory/photo.md").read_bytes() == b"\xff\xfe\x00"
