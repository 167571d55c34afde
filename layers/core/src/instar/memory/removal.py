"""Taking statements out of memory, so that they do not come back.

*delete* makes a revision without the text; the older revisions keep it and can be restored. A
tombstone keeps the statement from being saved again.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from instar.errors import Invalid, NotFound, Refused
from instar.memory import claims
from instar.memory.asking import Asked, IndexMark, authorship
from instar.memory.documents import split_key
from instar.memory.edits import matching_lines, says, without
from instar.memory.ports import Document, Documents, Tombstones
from instar.memory.results import Removal, Removed
from instar.memory.similar import Similar
from instar.memory.write import Writer
from instar.principal import Principal


class MemoryRemover:
    """Removes statements from the documents of an agent, for one Principal at a time."""

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

    def delete(self, principal: Principal, content: str, asked: Asked) -> Removed:
        """Removes a statement from every document that makes it; leaves a tombstone.

        The tombstone comes first and a repeated call goes on where an earlier try was interrupted,
        so that what a crash leaves behind is never a text without a tombstone or a half removal.
        Raises Invalid (blank), NotFound with `similar` when nothing says exactly this.
        """
        principal.require_private_memory()
        if not content.strip():
            raise Invalid("nothing to delete was given", fix="Give the exact text to remove.")
        report = list(self._removed_before(principal, asked))
        done = {removal.document for removal in report}
        holders = [
            found.key
            for found in self._texts(principal)
            if split_key(found.key)[1] not in done and says(found.text, content)
        ]
        if not report and not holders:
            raise NotFound(
                f"no document says exactly {content[:200]!r}",
                fix="Give the text as it stands; `similar` shows what comes near.",
                extra={"similar": [s.json_value() for s in self._similar(principal, content)]},
            )
        self._tombstones.add(principal.agent, claims.marks(content, self._mark_key()))
        for key in sorted(holders):
            with suppress(NotFound):  # somebody else has just removed it there
                report.append(self._remove(principal, key, content, asked))
        return Removed(report=tuple(report))

    def _texts(self, principal: Principal) -> Sequence[Document]:
        keys = [found.key for found in self._documents.list(f"agents/{principal.agent}/")]
        found = []
        for key in keys:
            try:
                found.append(self._documents.get(key))
            except Refused:  # not text, or gone since: it says nothing that could be removed
                continue
        return found

    def _removed_before(self, principal: Principal, asked: Asked) -> tuple[Removal, ...]:
        """What an earlier try of the same call has removed."""
        if asked.effect is None:
            return ()
        keys = [found.key for found in self._documents.list(f"agents/{principal.agent}/")]
        found = [self._writer.earlier(asked.effect, key) for key in keys]
        return tuple(
            Removal(
                document=split_key(written.key)[1],
                lines=(),
                revision=written.revision,
                checkpoint=written.checkpoint,
            )
            for written in found
            if written is not None
        )

    def _remove(self, principal: Principal, key: str, content: str, asked: Asked) -> Removal:
        lines = tuple(matching_lines(self._documents.get(key).text, content))
        written = self._writer.edit(
            key, lambda text: without(text or "", content), authorship(principal, asked)
        )
        self._index.reached(key, written.revision)
        return Removal(
            document=split_key(key)[1],
            lines=lines,
            revision=written.revision,
            checkpoint=written.checkpoint,
        )
