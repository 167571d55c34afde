"""Changing memory, one use case a method: save, put (a person's edit), restore.

Removing is `removal.py`, reading `reader.py` (by name) and `recall.py` (by question). Every method
takes the Principal that the edge made; results are the JSON of interface and tools.

    save: right -> size, blank -> secrets -> tombstones -> duplicates -> edit -> index mark
"""

from collections.abc import Callable, Sequence

from instar.errors import Forbidden, Forgotten, Invalid, NotFound, Refused, TooLarge
from instar.memory import claims
from instar.memory.asking import Asked, IndexMark, authorship
from instar.memory.documents import (
    PROMPT_DOCUMENT,
    document_key,
    is_memory,
    new_document_key,
)
from instar.memory.edits import appended, matching_lines
from instar.memory.ports import Documents, Tombstones
from instar.memory.results import (
    Duplicate,
    Restored,
    Saved,
    SimilarClaim,
)
from instar.memory.secrets import find_secrets
from instar.memory.similar import Similar
from instar.memory.write import Writer, Written
from instar.principal import Principal

CONTENT_BYTES = 51_200
SIMILAR_SHOWN = 5


class SecretFound(Refused):
    """The text holds what looks like a key, token or card number: memory never keeps those."""

    type = "secret"
    status = 422


class MemoryEditor:
    """Changes the documents of an agent, for one Principal at a time."""

    def __init__(
        self,
        documents: Documents,
        writer: Writer,
        *,
        tombstones: Tombstones,
        mark_key: Callable[[], bytes],
        index: IndexMark,
        similar: Similar,
    ) -> None:
        self._documents = documents
        self._writer = writer
        self._tombstones = tombstones
        self._mark_key = mark_key
        self._index = index
        self._similar = similar

    # --- writing ---------------------------------------------------------------------------

    def save(
        self,
        principal: Principal,
        content: str,
        asked: Asked,
        *,
        document: str | None = None,
        replace: bool = False,
        unforget: bool = False,
    ) -> Saved | Duplicate:
        """Adds a statement to a document (MEMORY.md unless named), or replaces the document.

        Raises Invalid (blank, no document's name), TooLarge (over 51,200 bytes), SecretFound,
        Forgotten, Forbidden.
        """
        principal.require_private_memory()
        name = PROMPT_DOCUMENT if document is None else document
        key = new_document_key(principal.agent, name)
        if asked.call is not None and not is_memory(name):
            raise Forbidden(
                f"a tool does not write {name!r}",
                fix="Use MEMORY.md or memory/NAME.md; the others are the owner's to edit.",
            )
        self._check_content(content)
        earlier = self._writer.earlier(asked.effect, key)
        if earlier is not None:
            return self._saved(name, earlier, ())
        self._check_tombstones(principal, content, unforget=unforget)
        similar = () if replace else tuple(self._similar(principal, content))
        holders = [] if replace else [name, *_holders(similar, content)]
        for holder in holders:
            place = self._place_in(document_key(principal.agent, holder), content)
            if place is not None:
                return Duplicate(duplicate_of=_place(holder, place))

        def edit(text: str | None) -> str:
            return _whole(content) if replace else appended(text, content)

        written = self._writer.edit(
            key, _unless_said(edit, content, replace=replace), authorship(principal, asked)
        )
        if not written.changed and not replace:
            place = self._place_in(key, content) or (1, 1)
            return Duplicate(duplicate_of=_place(name, place))
        return self._saved(name, written, similar[:SIMILAR_SHOWN])

    def put(
        self, principal: Principal, document: str, text: str, asked: Asked, *, replaces: str | None
    ) -> Restored:
        """Replaces a document's text by an edit of a person that read revision `replaces`.

        None creates it. Raises Conflict when it has changed since, TooLarge, SecretFound.
        """
        principal.require_private_memory()
        secrets = find_secrets(text)
        key = document_key(principal.agent, document)
        if replaces is None:
            key = new_document_key(principal.agent, document)
        else:
            known = {found.name for found in find_secrets(self._documents.get(key).text)}
            secrets = [found for found in secrets if found.name not in known]
        _refuse_secrets([found.name for found in secrets])

        def edit(current: str | None) -> str:
            if replaces is None and current is not None:
                raise Invalid(
                    f"{document} exists already",
                    fix="Read it and send its revision with your change.",
                )
            return text

        written = self._writer.edit(key, edit, authorship(principal, asked), replaces=replaces)
        self._index.reached(key, written.revision)
        return Restored(revision=written.revision, checkpoint=written.checkpoint)

    def restore(self, principal: Principal, document: str, revision: str, asked: Asked) -> Restored:
        """Brings a revision's text back as a new revision. Raises NotFound."""
        principal.require_private_memory()
        key = document_key(principal.agent, document)
        text = self._documents.get(key, revision=revision).text
        written = self._writer.edit(key, lambda _: text, authorship(principal, asked))
        self._index.reached(key, written.revision)
        return Restored(revision=written.revision, checkpoint=written.checkpoint)

    # --- parts -----------------------------------------------------------------------------

    def _check_content(self, content: str) -> None:
        if not content.strip():
            raise Invalid("nothing to save was given", fix="Give the text to remember.")
        size = len(content.encode("utf-8", "surrogatepass"))
        if size > CONTENT_BYTES:
            raise TooLarge(
                f"{size:,} bytes to save; one save takes at most {CONTENT_BYTES:,}",
                fix="Split it into several saves or documents.",
            )
        _refuse_secrets([found.name for found in find_secrets(content)])

    def _check_tombstones(self, principal: Principal, content: str, *, unforget: bool) -> None:
        marks = claims.marks(content, self._mark_key())
        known = self._tombstones.known(principal.agent, marks)
        if not known:
            return
        if not unforget:
            raise Forgotten(
                "the owner had this statement forgotten",
                fix="The owner can save it again with `memory save TEXT --unforget`.",
            )
        if not principal.is_owner or principal.turn is not None:
            raise Forbidden("only the owner may lift a tombstone, and not through the model")
        self._tombstones.lift(principal.agent, sorted(known))

    def _saved(self, name: str, written: Written, similar: tuple[SimilarClaim, ...]) -> Saved:
        return Saved(
            document=name,
            revision=written.revision,
            checkpoint=written.checkpoint,
            indexed=self._index.reached(written.key, written.revision),
            similar=similar,
        )

    def _place_in(self, key: str, content: str) -> tuple[int, int] | None:
        try:
            spans = matching_lines(self._documents.get(key).text, content)
        except NotFound:
            return None
        return spans[0] if spans else None


def _unless_said(
    edit: Callable[[str | None], str], content: str, *, replace: bool
) -> Callable[[str | None], str]:
    """The edit, but a text that says the content already stays as it is: another came first."""

    def guarded(text: str | None) -> str:
        if text is not None and not replace and matching_lines(text, content):
            return text
        return edit(text)

    return guarded


def _whole(content: str) -> str:
    return content if content.endswith("\n") else content + "\n"


def _holders(similar: Sequence[SimilarClaim], content: str) -> list[str]:
    """Documents that say the same as far as the index knows: it may lag behind, they may not."""
    wanted = claims.normalised(content)
    return [
        found.document
        for found in similar
        if is_memory(found.document) and claims.normalised(found.text) == wanted
    ]


def _place(document: str, lines: tuple[int, int]) -> dict[str, object]:
    return {"document": document, "lines": list(lines)}


def _refuse_secrets(names: list[str]) -> None:
    if names:
        raise SecretFound(
            f"the text holds what looks like {names[0]}; memory keeps no secrets",
            fix="Leave it out. Keys for Instar itself belong into `instar secret set NAME`.",
        )
