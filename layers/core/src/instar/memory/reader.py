"""Reading documents by name: text, history, differences, the list. By question: `recall.py`."""

import difflib

from instar.errors import Invalid, NotFound
from instar.memory.documents import document_key, is_indexed, kind_of, split_key
from instar.memory.ports import Documents, Ledger
from instar.memory.results import Diff, DocumentList, DocumentRow, History, Read, RevisionRow
from instar.principal import Principal


class MemoryReader:
    """Shows the documents of an agent, for one Principal at a time."""

    def __init__(self, documents: Documents, ledger: Ledger) -> None:
        self._documents = documents
        self._ledger = ledger

    def get(
        self,
        principal: Principal,
        document: str,
        *,
        lines: tuple[int, int] | None = None,
        revision: str | None = None,
    ) -> Read:
        """A document's text, or some of its lines. Raises NotFound, Invalid."""
        principal.require_private_memory()
        found = self._documents.get(document_key(principal.agent, document), revision=revision)
        text = found.text
        if lines is not None:
            start, end = lines
            if start < 1 or end < start:
                raise Invalid(f"not a span of lines: {start}-{end}", fix="Use a-b, from 1.")
            text = "".join(text.splitlines(keepends=True)[start - 1 : end])
        return Read(document=document, revision=found.revision, text=text)

    def history(self, principal: Principal, document: str) -> History:
        """A document's revisions, newest first, with what the ledger knows. Raises NotFound."""
        principal.require_private_memory()
        key = document_key(principal.agent, document)
        known = {row.after: row for row in self._ledger.entries(key=key) if row.state == "done"}
        rows = []
        for revision in self._documents.revisions(key):
            row = known.get(revision.revision)
            by_hand = "removed outside Instar" if revision.deleted else "edited outside Instar"
            rows.append(
                RevisionRow(
                    revision=revision.revision,
                    at=revision.at,
                    author=row.author if row else "owner",
                    reason=row.reason if row else by_hand,
                    session=row.session if row else None,
                    turn=row.turn if row else None,
                    deleted=revision.deleted,
                )
            )
        if not rows:
            raise NotFound(f"there is no document {document!r}", fix="See `memory search`.")
        return History(revisions=tuple(rows))

    def diff(self, principal: Principal, document: str, old: str, new: str) -> Diff:
        """A unified diff from one revision to another. Raises NotFound."""
        principal.require_private_memory()
        key = document_key(principal.agent, document)
        before = self._documents.get(key, revision=old).text.splitlines()
        after = self._documents.get(key, revision=new).text.splitlines()
        lines = difflib.unified_diff(
            before, after, f"{document}@{old}", f"{document}@{new}", lineterm=""
        )
        return Diff(diff="".join(line + "\n" for line in lines))

    def list(self, principal: Principal) -> DocumentList:
        """The agent's documents, sorted by name."""
        principal.require_private_memory()
        rows = [
            DocumentRow(document=split_key(listed.key)[1], kind=_kind(listed.key))
            for listed in self._documents.list(f"agents/{principal.agent}/")
        ]
        return DocumentList(documents=tuple(rows))


def _kind(key: str) -> str:
    return kind_of(key) if is_indexed(key) else "persona"
