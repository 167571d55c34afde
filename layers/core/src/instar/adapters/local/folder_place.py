"""The place of one document in the folder: its current file, kept level with its history.

Replacing takes four steps, and a crash after any of them is resolved by content when the place is
next looked at: (1) the new text as a pending revision, (2) a copy of it beside, (3) the copy and
the current file exchange names at once, (4) the pending revision gets its final name. Step 3 shows
what was really replaced: an edit that a person saved in the meantime comes out, is put back and
wins. Whoever uses a Place holds the store's lock; editors do not know that lock.

What remains: a program that opened the old file for writing before step 3, without truncating it,
and writes only after the comparison, writes into a file that is gone. Where the system cannot
exchange names (not Linux, some network file systems) an edit saved between comparison and rename
is replaced, too.
"""

import stat
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from instar.adapters.local.files import (
    exchange,
    make_folders,
    move_to_free_name,
    read_regular,
    sync_folder,
)
from instar.adapters.local.folder_history import Entry, History, fingerprint
from instar.clock import Clock

# Editors that truncate and write again need a moment; nobody trims a file this often.
_SETTLE_LOOKS = 5
_SETTLE_SECONDS = 0.02
_FRESH_SECONDS = 1.0


class Place:
    """One document's current file and its history, under the lock."""

    def __init__(self, target: Path, history: History, *, root: Path, clock: Clock) -> None:
        self._target = target
        self._history = history
        self._root = root
        self._clock = clock

    def level(self) -> Entry | None:
        """Finishes what a crash left and adopts what a person changed; the newest revision.

        A changed or added file becomes a revision, a missing one a removal.
        """
        for pending, data in self._history.pending():
            self._resolve(pending, data)
        self._history.sweep()
        living = self._history.living()
        before = self._history.read(living)
        current = self._settled(before)
        if current is None and living is not None:
            return self._record(None)
        if current is not None and (living is None or current != before):
            return self._record(current)
        return self._history.newest()

    def replace(self, data: bytes) -> Entry | None:
        """Makes `data` the current text; None when a person changed the file since level()."""
        before = self._history.read(self._history.living())
        make_folders(self._target.parent, root=self._root)
        pending = self._history.begin(data, at=self._clock())
        try:
            swap = self._history.write_swap(pending, data, mode=self._mode())
        except BaseException:
            self._history.discard(pending)
            raise
        try:
            placed = self._place(swap, before)
        except OSError:
            self._resolve(pending, data)
            raise
        if placed == "came_too_late":
            self._history.discard(pending)
            return None
        if placed == "took_out_an_edit":
            self._resolve(pending, data)
            return None
        try:
            sync_folder(self._target.parent)
            self._history.finish(pending)
        except OSError:
            self._take_back(swap, before)
            self._history.discard(pending)
            raise
        return pending

    def remove(self) -> Entry | None:
        """Removes the current file; None when a person changed it since level()."""
        before = self._history.read(self._history.living())
        pending = self._history.begin(None, at=self._clock())
        swap = self._history.swap(pending)
        try:
            self._target.rename(swap)
        except FileNotFoundError:
            self._history.discard(pending)
            return None
        except OSError:
            self._history.discard(pending)
            raise
        if read_regular(swap) != before:
            self._resolve(pending, b"")
            return None
        try:
            sync_folder(self._target.parent)
            self._history.finish(pending)
        except OSError:
            move_to_free_name(swap, self._target)
            self._history.discard(pending)
            raise
        return pending

    def _place(
        self, swap: Path, before: bytes | None
    ) -> Literal["placed", "took_out_an_edit", "came_too_late"]:
        """Brings the copy to its place, unless a person's edit was there first."""
        if before is None:
            return "placed" if move_to_free_name(swap, self._target) else "came_too_late"
        try:
            if exchange(swap, self._target):
                return "placed" if read_regular(swap) == before else "took_out_an_edit"
        except FileNotFoundError:
            return "came_too_late"
        if read_regular(self._target) != before:
            return "came_too_late"
        swap.replace(self._target)
        return "placed"

    def _take_back(self, swap: Path, before: bytes | None) -> None:
        """Undoes _place() for a write that cannot be finished."""
        if before is None:
            self._target.unlink(missing_ok=True)
        elif swap.exists():
            exchange(swap, self._target)

    def _resolve(self, pending: Entry, data: bytes) -> None:
        """Decides by content what became of a write that was not finished."""
        swapped = read_regular(self._history.swap(pending))
        before = self._history.read(self._history.living())
        if pending.is_removal:
            self._resolve_removal(pending, swapped, before)
        elif fingerprint(data) != pending.fingerprint:
            self._history.discard(pending)
        elif swapped is not None and swapped not in (data, before):
            self._resolve_overwritten(pending, data, swapped)
        elif swapped not in (None, data) or read_regular(self._target) == data:
            sync_folder(self._target.parent)
            self._history.finish(pending)
        else:
            self._history.discard(pending)

    def _resolve_removal(self, pending: Entry, swapped: bytes | None, before: bytes | None) -> None:
        """A removal counts once the very text that it meant was taken out."""
        if swapped is not None and swapped == before:
            self._history.finish(pending)
            return
        if swapped is not None and not move_to_free_name(self._history.swap(pending), self._target):
            self._history.discard(pending)
            self._record(swapped)
            return
        self._history.discard(pending)

    def _resolve_overwritten(self, pending: Entry, data: bytes, swapped: bytes) -> None:
        """A person's edit came out: it goes back; nothing that anyone wrote is lost."""
        if read_regular(self._target) != data:
            # The person wrote once more: everything becomes history, in its order.
            self._history.finish(pending)
            self._record(swapped)
            return
        swap = self._history.swap(pending)
        exchange(swap, self._target)
        late = read_regular(swap)
        self._history.discard(pending)
        if late not in (None, data):
            self._record(late)

    def _record(self, data: bytes | None) -> Entry:
        """Adds a revision for what the folder shows already."""
        pending = self._history.begin(data, at=self._edited_at(data))
        self._history.finish(pending)
        return pending

    def _edited_at(self, data: bytes | None) -> datetime:
        """When a person made the edit: the file's time, after the revision before, not ahead."""
        now = self._clock()
        try:
            seconds = self._target.lstat().st_mtime if data is not None else None
        except FileNotFoundError:
            seconds = None
        if seconds is None:
            return now
        newest = self._history.newest()
        edited = datetime.fromtimestamp(seconds, UTC)
        return min(now, edited if newest is None else max(edited, newest.at))

    def _settled(self, before: bytes | None) -> bytes | None:
        """The current bytes; a file that looks half saved just now gets a moment to be whole."""
        current = read_regular(self._target)
        for _ in range(_SETTLE_LOOKS):
            if before is None or current == before or not self._is_fresh():
                break
            if current is not None and not before.startswith(current):
                break
            time.sleep(_SETTLE_SECONDS)
            current = read_regular(self._target)
        return current

    def _is_fresh(self) -> bool:
        """Whether the file, or for a missing one its folder, changed within the last moment."""
        for path in (self._target, self._target.parent):
            try:
                return abs(time.time() - path.lstat().st_mtime) < _FRESH_SECONDS
            except (FileNotFoundError, NotADirectoryError):
                continue
        return False

    def _mode(self) -> int:
        """The permissions of the file that is replaced; private for a new one."""
        try:
            return stat.S_IMODE(self._target.lstat().st_mode)
        except FileNotFoundError:
            return 0o600
