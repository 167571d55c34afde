"""Secrets in one JSON file that only its owner can read: folder 700, file 600.

The file is read on every use, so a secret set by another process counts at once. No error carries
a value or a part of the file.
"""

import json
import logging
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from instar.adapters.local.failures import file_failures
from instar.adapters.local.files import locked, read_regular, sync_folder, write_durably
from instar.errors import Invalid, Misconfigured

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_log = logging.getLogger(__name__)


class FileSecrets:
    """The embedded Secrets."""

    def __init__(self, folder: Path) -> None:
        """Raises Misconfigured when the folder cannot be made private."""
        self._path = folder / "secrets.json"
        with file_failures(f"the secrets folder {folder}"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(folder, 0o700)

    def get(self, name: str) -> str | None:
        """The value, None when it was never set. Raises Unavailable, Misconfigured."""
        return self._read().get(_checked(name))

    def set(self, name: str, value: str) -> None:
        """Keeps the value; a blank one removes it. Raises Invalid, Unavailable."""
        _checked(name)
        # Asked, not caught: the codec's error would carry the value.
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Invalid(f"the value of {name!r} is not text", fix="Set it as UTF-8 text.")
        with locked(self._path.with_name(".lock")):
            values = self._read()
            values.pop(name, None)
            if value.strip():
                values[name] = value
            data = json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True).encode()
            with file_failures("the secrets file"):
                partial = self._path.with_name(".secrets.partial")
                write_durably(partial, data)
                partial.replace(self._path)
                sync_folder(self._path.parent)

    def names(self) -> Sequence[str]:
        """The names that have a value, sorted."""
        return sorted(self._read())

    def _read(self) -> dict[str, str]:
        """All values. Raises Misconfigured when the file is damaged."""
        with file_failures("the secrets file"):
            if self._path.exists():
                _make_private(self._path, 0o600)
            data = read_regular(self._path)
        if data is None:
            if self._path.exists() or self._path.is_symlink():
                raise Misconfigured(
                    f"{self._path} is not a regular file", fix="Put a real file in its place."
                )
            return {}
        try:
            values = json.loads(data)
        except ValueError:
            values = None
        if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
            # Without a cause: a JSON error carries the whole file.
            raise Misconfigured(
                f"the secrets file {self._path} is damaged",
                fix="Repair the JSON, or move it away and set the secrets again.",
            )
        return values


def _checked(name: str) -> str:
    """The name. Raises Invalid unless it is lower-case."""
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"not a secret's name: {name[:80]!r}",
            fix="Use 1 to 64 lower-case letters, digits and underscores.",
        )
    return name


def _make_private(path: Path, mode: int) -> None:
    """Takes others' rights away, and says so: they may have read it."""
    if path.stat().st_mode & _OTHERS:
        path.chmod(mode)
        _log.warning("%s was open to other users; its mode is %o now", path, mode)
