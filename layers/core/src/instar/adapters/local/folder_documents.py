"""Documents as plain files that a person edits in any editor, with every revision kept.

The folder is the truth: what differs from the newest revision when get, put, delete or revisions
look at it is adopted as a new revision (a missing file as a removal). list() only looks at the
files' stat, so that 10,000 of them cost milliseconds; whoever sees a new token calls get. Two
edits of one size within one tick of the file system's clock may share a token.

Symbolic links below the root are never followed, so nothing outside is read or written and no
agent sees another's file. A byte order mark belongs to the file, not to the text: it is not in
`Document.text` and stays in the file when the text is replaced.
"""

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from instar.adapters.local.failures import file_failures
from instar.adapters.local.files import locked, read_regular
from instar.adapters.local.folder_history import Entry, History, entry
from instar.adapters.local.folder_place import Place
from instar.clock import Clock
from instar.errors import Conflict, Invalid, NotFound
from instar.memory.ports import Document, Listed, Revision

SETTINGS = "config.toml"
_MARK = b"\xef\xbb\xbf"
_REVISIONS = ".revisions"
_NAME_BYTES = 255
# Control characters, the other system's separator, bytes of a name that are not UTF-8.
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")


class FolderDocuments:
    """The embedded Documents: several processes and any editor may use one folder at once."""

    def __init__(self, root: Path, clock: Clock) -> None:
        with file_failures(f"the folder {root}"):
            self._root = root.resolve()
            self._revisions = self._root / _REVISIONS
            self._revisions.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._clock = clock
        self._lock_path = self._revisions / ".lock"
        with locked(self._lock_path):
            self._folds_case = (self._revisions / ".LOCK").exists()

    def get(self, key: str, *, revision: str | None = None) -> Document:
        """The current text or that of a revision. Raises NotFound, Invalid when not UTF-8."""
        with file_failures(f"the document {key!r}"):
            if revision is not None:
                return self._old(key, revision)
            target, history = self._target(key), self._history(key)
            current, newest = read_regular(target), history.living()
            if current is None and newest is None:
                raise NotFound(f"there is no document {key!r}")
            if newest is None or current is None or history.read(newest) != current:
                with self._placed(key) as place:
                    newest = place.level()
                    current = history.read(newest)
            if newest is None or current is None:
                raise NotFound(f"there is no document {key!r}")
            return _document(key, newest, current)

    def put(self, key: str, text: str, *, replaces: str | None) -> Document:
        """Writes a revision if `replaces` is current. Raises Conflict, Invalid."""
        data = _encoded(key, text)
        with file_failures(f"the document {key!r}"), self._placed(key, writing=True) as place:
            current = self._agreed(key, place, replaces)
            if current is None:
                self._refuse_taken(key)
            elif (self._history(key).read(current) or b"").startswith(_MARK):
                data = _MARK + data
            written = place.replace(data)
            if written is None:
                raise _conflict(key, replaces, place.level())
            return _document(key, written, data)

    def delete(self, key: str, *, replaces: str) -> str:
        """Removes the document, keeping its revisions. Raises Conflict."""
        with file_failures(f"the document {key!r}"), self._placed(key, writing=True) as place:
            self._agreed(key, place, replaces)
            removed = place.remove()
            if removed is None:
                raise _conflict(key, replaces, place.level())
            return removed.id

    def list(self, prefix: str) -> Sequence[Listed]:
        """The current documents under the prefix, sorted by key: names and stat only."""
        folder = prefix.rpartition("/")[0]
        start = self._root.joinpath(*folder.split("/")) if folder else self._root
        if folder and not _is_plain(folder.split("/")):
            return []
        with file_failures(f"the documents under {prefix!r}"):
            if self._passes_a_link(start):
                return []
            found = [
                Listed(key=key, token=_token(item))
                for key, item in _walk(start, f"{folder}/" if folder else "")
                if key.startswith(prefix)
            ]
        return sorted((item for item in found if item.token), key=lambda item: item.key)

    def revisions(self, key: str) -> Sequence[Revision]:
        """All revisions, newest first; what a person changed is adopted first."""
        with file_failures(f"the document {key!r}"):
            target, history = self._target(key), self._history(key)
            newest = history.living()
            if read_regular(target) != history.read(newest):
                with self._placed(key) as place:
                    place.level()
            return [
                Revision(revision=found.id, at=found.at, deleted=found.is_removal)
                for found in reversed(history.entries())
            ]

    def _old(self, key: str, revision: str) -> Document:
        """The text of a revision in any age."""
        self._target(key)
        found = entry(revision)
        data = self._history(key).read(found)
        if found is None or data is None:
            raise NotFound(f"document {key!r} has no text of revision {revision!r}")
        return _document(key, found, data)

    @contextmanager
    def _placed(self, key: str, *, writing: bool = False) -> Iterator[Place]:
        """The document's place, under the lock of the whole store."""
        with locked(self._lock_path):
            try:
                target = self._target(key)
            except NotFound as error:
                if not writing:
                    raise
                raise Invalid(
                    f"the document {key!r} stands behind a symbolic link",
                    fix="Put a real folder and a real file in its place.",
                ) from error
            yield Place(target, self._history(key), root=self._root, clock=self._clock)

    def _agreed(self, key: str, place: Place, replaces: str | None) -> Entry | None:
        """The current revision, None when absent. Raises Conflict unless it is `replaces`."""
        newest = place.level()
        current = None if newest is None or newest.is_removal else newest
        if (None if current is None else current.id) != replaces:
            raise _conflict(key, replaces, newest)
        return current

    def _target(self, key: str) -> Path:
        """The file of a key. Raises Invalid for what is no key, NotFound behind a link."""
        parts = key.split("/")
        if not _is_plain(parts) or not (key == SETTINGS or parts[-1].endswith(".md")):
            raise Invalid(
                f"not a document: {key[:200]!r}",
                fix=f"Use a path below home that ends in .md, or {SETTINGS}.",
            )
        target = self._root.joinpath(*parts)
        if self._passes_a_link(target) or (self._folds_case and self._twin(key) is not None):
            raise NotFound(f"there is no document {key!r}")
        return target

    def _history(self, key: str) -> History:
        return History(self._revisions.joinpath(*key.split("/")), root=self._revisions)

    def _passes_a_link(self, path: Path) -> bool:
        """Whether the path or a folder on its way, below the root, is a symbolic link."""
        return any(
            part.is_symlink() for part in (path, *path.parents) if part.is_relative_to(self._root)
        )

    def _twin(self, key: str) -> str | None:
        """A name in the folder that differs from a part of the key in case or composition only."""
        folder = self._root
        for part in key.split("/"):
            if not folder.is_dir():
                return None
            names = [path.name for path in folder.iterdir()]
            if part not in names:
                return next((name for name in names if _folded(name) == _folded(part)), None)
            folder /= part
        return None

    def _refuse_taken(self, key: str) -> None:
        """Two names that a Mac or Windows disk takes for one would overwrite each other there,
        and a folder stays a folder.
        """
        target = self._target(key)
        if target.exists() and not target.is_file():
            raise Invalid(f"{key!r} is not a file", fix="Choose another name.")
        twin = self._twin(key)
        if twin is not None:
            raise Invalid(
                f"{key!r} differs from {twin!r}, which is there, only in upper and lower case",
                fix=f"Write to {twin!r}, or choose another name.",
            )


def _walk(folder: Path, base: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Keys and entries of all documents below; a folder that cannot be read is an error."""
    try:
        items = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for item in items:
        if not _is_plain([item.name]):
            continue
        if item.is_dir(follow_symlinks=False):
            yield from _walk(Path(item.path), f"{base}{item.name}/")
        elif item.is_file(follow_symlinks=False) and (
            item.name.endswith(".md") or base + item.name == SETTINGS
        ):
            yield base + item.name, item


def _token(item: os.DirEntry[str]) -> str:
    """Changes with the content; "" for a file that has just gone."""
    try:
        seen = item.stat(follow_symlinks=False)
    except FileNotFoundError:
        return ""
    return f"{seen.st_mtime_ns:x}-{seen.st_ctime_ns:x}-{seen.st_size:x}-{seen.st_ino:x}"


def _is_plain(parts: Sequence[str]) -> bool:
    """Whether these are names of ordinary files and folders: not hidden, not an editor's own."""
    return all(
        part
        and not part.startswith((".", "~"))
        and not _NOT_IN_NAMES.search(part)
        and len(part.encode()) <= _NAME_BYTES
        for part in parts
    )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _encoded(key: str, text: str) -> bytes:
    """The text in UTF-8, without a byte order mark. Raises Invalid for half characters."""
    try:
        return text.lstrip("\ufeff").encode()
    except UnicodeEncodeError as error:
        raise Invalid(
            f"the text for {key!r} has a lone surrogate at character {error.start}",
            fix="Send whole characters.",
        ) from None


def _document(key: str, revision: Entry, data: bytes) -> Document:
    """The revision with its text. Raises Invalid when that is not UTF-8."""
    try:
        text = data.decode().lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise Invalid(
            f"the document {key!r} is not UTF-8 text (byte {error.start} of {revision.id})",
            fix="Save the file as UTF-8, or restore an earlier revision.",
        ) from None
    return Document(key=key, revision=revision.id, text=text, at=revision.at)


def _conflict(key: str, replaces: str | None, newest: Entry | None) -> Conflict:
    current = "absent" if newest is None or newest.is_removal else f"at {newest.id}"
    expected = "absent" if replaces is None else f"at {replaces}"
    return Conflict(f"document {key!r} is {current}, not {expected}", fix="Read it again.")
