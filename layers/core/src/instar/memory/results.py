"""What memory answers: the JSON of command line, HTTP and tools, as frozen models."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from instar.ids import CheckpointId, SessionId, TurnId


class Result(BaseModel):
    """A frozen answer; `json_value()` is what goes out."""

    model_config = ConfigDict(frozen=True)

    def json_value(self) -> dict[str, Any]:
        """The answer as JSON data; fields that do not apply are left out."""
        return self.model_dump(mode="json", exclude_none=False)


class SimilarClaim(Result):
    """A statement much like another: shown, never refused."""

    document: str
    lines: tuple[int, int]
    text: str
    score: float


class Saved(Result):
    """A write that happened. `indexed`: the new text can be found by now."""

    saved: bool = True
    document: str
    revision: str
    checkpoint: CheckpointId | None
    indexed: bool
    similar: tuple[SimilarClaim, ...] = ()


class Duplicate(Result):
    """Nothing was written: memory says this already."""

    saved: bool = False
    duplicate_of: Mapping[str, Any]


class Read(Result):
    """A document's text, or some of its lines, at a revision."""

    document: str
    revision: str
    text: str


class Removal(Result):
    """One document that a removal changed."""

    document: str
    lines: tuple[tuple[int, int], ...]
    revision: str
    checkpoint: CheckpointId | None


class Removed(Result):
    """A removal: what was done, what is left and could not be removed."""

    done: bool = True
    remaining: tuple[str, ...] = ()
    report: tuple[Removal, ...]


class RevisionRow(Result):
    """A revision with what the ledger knows of it."""

    revision: str
    at: datetime
    author: str
    reason: str
    session: SessionId | None
    turn: TurnId | None
    deleted: bool = False


class History(Result):
    """All revisions of a document, newest first."""

    revisions: tuple[RevisionRow, ...]


class Diff(Result):
    """A unified diff."""

    diff: str


class Restored(Result):
    """The revision that a restore or an edit made."""

    revision: str
    checkpoint: CheckpointId | None


class DocumentRow(Result):
    """A line of the list of documents."""

    document: str
    kind: str


class DocumentList(Result):
    """The documents of an agent."""

    documents: tuple[DocumentRow, ...]
