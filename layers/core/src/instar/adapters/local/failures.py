"""The one place where failures of SQLite and of the file system become Instar's errors.

What a person can do about it decides the class: wait or free space (Unavailable), repair or allow
(Misconfigured), ask for something else (Invalid). Everything unknown is told as Unavailable.
"""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from instar.errors import InstarError, Invalid, Misconfigured, Unavailable

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NOT_A_NAME = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EISDIR, errno.ENOTDIR})

FREE_SPACE = "Free some disk space and try again; nothing was changed."


@contextmanager
def file_failures(what: str) -> Iterator[None]:
    """Translates an OSError that leaves the block; `what` names the thing, never its content."""
    try:
        yield
    except OSError as error:
        raise _file_error(what, error) from error


def _file_error(what: str, error: OSError) -> InstarError:
    """The error of ours that says what to do about this one."""
    reason = f"{what}: {error.strerror or type(error).__name__}"
    if error.errno in _NO_SPACE:
        return Unavailable(reason, fix=FREE_SPACE)
    if error.errno in _NOT_ALLOWED:
        return Misconfigured(reason, fix="Give the user that runs Instar access to its home.")
    if error.errno in _NOT_A_NAME:
        return Invalid(reason, fix="Use a shorter or another name.")
    return Unavailable(reason, fix="Check the disk that holds Instar's home, then try again.")


@contextmanager
def database_failures(path: Path) -> Iterator[None]:
    """Translates what sqlite3 raises out of the block, but for broken constraints (our bugs)."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        raise _database_error(path, error) from error


def _database_error(path: Path, error: sqlite3.DatabaseError) -> InstarError:
    """The error of ours for SQLite's primary result code."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return Unavailable(f"the disk that holds {path} is full", fix=FREE_SPACE)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Unavailable(
            f"another process keeps {path} locked",
            fix="Wait for it, or end the process that hangs, and try again.",
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Misconfigured(
            f"the database {path} is damaged",
            fix=f"Stop Instar, put back a backup of it, or rescue what is left with "
            f"`sqlite3 {path.name} .recover | sqlite3 rescued.db`. Your documents are plain files "
            "beside it and are not affected.",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return Misconfigured(
            f"the database {path} cannot be opened for writing",
            fix="Give the user that runs Instar access to the file and its folder.",
        )
    if code == sqlite3.SQLITE_IOERR:
        return Unavailable(
            f"the disk failed while {path} was used",
            fix="Check free space and the disk's health, then try again.",
        )
    return Unavailable(f"the database {path} failed: {error}", fix="Try again.")
