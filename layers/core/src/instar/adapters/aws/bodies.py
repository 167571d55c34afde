"""Texts of any length in rows: up to 300 KB inline, longer ones in part items beside their row.

An item holds 400 KB. Parts are named by the hash of the whole text and written before the row that
points to them, so a reader never meets half a text and writing again changes nothing. Parts of a
write that lost stay in the partition, unseen, and go with it.
"""

import hashlib
from dataclasses import dataclass
from typing import Protocol

from instar.adapters.aws.row_access import rows_of, write_all
from instar.adapters.aws.rows import AccessPart, SessionPart
from instar.errors import Unavailable

INLINE_BYTES = 300_000
PART_BYTES = 300_000
PartModel = type[SessionPart] | type[AccessPart]


@dataclass(frozen=True, slots=True)
class Body:
    """The attributes of the row: the text, or with `parts` the name of its parts."""

    body: str
    parts: int | None


class HasBody(Protocol):
    """A row that was read."""

    @property
    def pk(self) -> str: ...

    @property
    def body(self) -> str | None: ...

    @property
    def parts(self) -> float | None: ...


def stored(model: PartModel, pk: str, text: str) -> Body:
    """Keeps the parts of a long text; what the row has to say."""
    data = text.encode()
    if len(data) <= INLINE_BYTES:
        return Body(text, None)
    name = hashlib.sha256(data).hexdigest()
    pieces = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    write_all(
        model, [model(pk, f"{_prefix(name)}{n:06d}", data=piece) for n, piece in enumerate(pieces)]
    )
    return Body(name, len(pieces))


def fetched(model: PartModel, row: HasBody) -> str:
    """The text of a row. Raises Unavailable when parts of it are not there."""
    text = row.body or ""
    if row.parts is None:
        return text
    parts = rows_of(model, row.pk, model.sk.startswith(_prefix(text)))
    if len(parts) != row.parts:
        raise Unavailable(f"row {row.pk!r} has {len(parts)} of {row.parts} parts")
    return b"".join(part.data for part in parts).decode()


def _prefix(name: str) -> str:
    return f"part#{name}#"
