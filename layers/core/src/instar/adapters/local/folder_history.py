"""The revisions of one document as files: `.revisions/<key>/<number>-<time>-<hash>`.

A revision is written as `<id>.pending` and gets its final name only when the document's current
file holds it; `<id>.swap` is the copy that changes places with the current file. Whoever writes
here holds the store's lock.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from instar.adapters.local.files import make_folders, read_regular, sync_folder, write_durably

_REVISION = re.compile(r"(\d{8})-(\d{8}T\d{9})Z-([0-9a-f]{16}|removed)")
_REMOVED = "removed"
_PENDING, _SWAP, _PARTIAL = ".pending", ".swap", ".partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A revision by its name: the name sorts by number, `at` is exact to the millisecond."""

    id: str
    number: int
    at: datetime
    fingerprint: str

    @property
    def is_removal(self) -> bool:
        """Whether the document was absent from here on."""
        return self.fingerprint == _REMOVED


def entry(id: str) -> Entry | None:
    """What the revision id says; None when it is none."""
    match = _REVISION.fullmatch(id)
    if match is None:
        return None
    number, time, fingerprint = match.groups()
    try:
        second = datetime.strptime(time[:-3], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    at = second + timedelta(milliseconds=int(time[-3:]))
    return Entry(id=id, number=int(number), at=at, fingerprint=fingerprint)


def fingerprint(data: bytes | None) -> str:
    """The content's part of a revision id; None is the removal."""
    return _REMOVED if data is None else hashlib.sha256(data).hexdigest()[:16]


class History:
    """The revision files of one document."""

    def __init__(self, folder: Path, *, root: Path) -> None:
        self._folder = folder
        self._root = root

    def entries(self) -> list[Entry]:
        """Every finished revision, oldest first."""
        return [found for name in sorted(self._names()) if (found := entry(name)) is not None]

    def newest(self) -> Entry | None:
        """The last finished revision."""
        names = sorted(self._names(), reverse=True)
        return next((found for name in names if (found := entry(name)) is not None), None)

    def living(self) -> Entry | None:
        """The last finished revision, unless it is a removal."""
        newest = self.newest()
        return None if newest is None or newest.is_removal else newest

    def read(self, revision: Entry | None) -> bytes | None:
        """The bytes of a revision; None for a removal and for none."""
        if revision is None or revision.is_removal:
            return None
        return read_regular(self._folder / revision.id)

    def begin(self, data: bytes | None, *, at: datetime) -> Entry:
        """Writes the next revision as pending; a failure leaves nothing behind."""
        newest = self.newest()
        number = 1 if newest is None else newest.number + 1
        at = at.astimezone(UTC)
        time = f"{at:%Y%m%dT%H%M%S}{at.microsecond // 1000:03d}"
        found = entry(f"{number:08d}-{time}Z-{fingerprint(data)}")
        if found is None:
            raise ValueError(f"revision {number} at {at} has no name")
        make_folders(self._folder, root=self._root)
        write_durably(self._pending(found), data or b"")
        return found

    def write_swap(self, revision: Entry, data: bytes, *, mode: int) -> Path:
        """Writes the copy that is to become the current file; it is there whole or not at all."""
        partial = self._folder / (revision.id + _PARTIAL)
        write_durably(partial, data, mode=mode)
        return partial.replace(self.swap(revision))

    def finish(self, revision: Entry) -> None:
        """Makes the pending revision a finished one, durably."""
        self._pending(revision).rename(self._folder / revision.id)
        sync_folder(self._folder)
        self.swap(revision).unlink(missing_ok=True)

    def discard(self, revision: Entry) -> None:
        """Drops a pending revision that never became current."""
        self.swap(revision).unlink(missing_ok=True)
        self._pending(revision).unlink(missing_ok=True)

    def swap(self, revision: Entry) -> Path:
        """Where the copy stands, and after the exchange what was current before."""
        return self._folder / (revision.id + _SWAP)

    def pending(self) -> list[tuple[Entry, bytes]]:
        """Revisions that a crash left unfinished, with what is on the disk of them."""
        names = sorted(name for name in self._names() if name.endswith(_PENDING))
        found = [(entry(name.removesuffix(_PENDING)), self._folder / name) for name in names]
        return [(named, read_regular(path) or b"") for named, path in found if named is not None]

    def sweep(self) -> None:
        """Removes copies that no pending revision needs any more."""
        for name in self._names():
            if name.endswith((_SWAP, _PARTIAL)):
                (self._folder / name).unlink(missing_ok=True)

    def _pending(self, revision: Entry) -> Path:
        return self._folder / (revision.id + _PENDING)

    def _names(self) -> list[str]:
        """The names of all files; none when there never was a revision."""
        try:
            with os.scandir(self._folder) as items:
                return [item.name for item in items]
        except FileNotFoundError:
            return []
