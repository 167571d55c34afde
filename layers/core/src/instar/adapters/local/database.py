"""The embedded database: one SQLite file for everything that is not a document.

Several processes (server, command line) and many threads use one file at once: each thread has its
own connection, readers never wait (WAL), every write is one BEGIN IMMEDIATE transaction that is on
the disk when it returns (synchronous=FULL). Deleted text is overwritten (secure_delete), because
what the owner erases may not live on in free pages.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from instar.adapters.local.failures import database_failures, file_failures
from instar.adapters.local.files import locked
from instar.adapters.local.schema import MIGRATIONS
from instar.errors import Misconfigured

BUSY_SECONDS = 30
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Whole microseconds since 1970 UTC: how the database keeps moments, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(micros: int) -> datetime:
    """The aware UTC moment of that many microseconds."""
    return _EPOCH + micros * _MICROSECOND


class _Connection:
    """A thread's connection; closed with its thread, never by a process that inherited it."""

    def __init__(self, path: Path) -> None:
        self.pid = os.getpid()
        self.sqlite = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.sqlite.row_factory = sqlite3.Row
        self.sqlite.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        self.sqlite.execute("PRAGMA synchronous = FULL")
        self.sqlite.execute("PRAGMA secure_delete = ON")

    def close(self) -> None:
        if self.pid == os.getpid():
            self.sqlite.close()

    def __del__(self) -> None:
        # A connect() that failed leaves no `sqlite` behind.
        if hasattr(self, "sqlite"):
            self.close()


class Database:
    """Connections and transactions on one file; opening it brings its tables up to date."""

    def __init__(self, path: Path, *, migrations: Sequence[str] = MIGRATIONS) -> None:
        """Raises Misconfigured when the file is damaged or was written by a newer Instar."""
        self.path = path
        self._thread = threading.local()
        self._open: weakref.WeakSet[_Connection] = weakref.WeakSet()
        with file_failures(f"the database {path}"):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite would create it under the umask; -wal and -shm take this file's mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        # Turning WAL on does not wait for others, so only one process at a time may try.
        with locked(path.with_name(path.name + ".lock")), database_failures(path):
            self._prepare(migrations)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with; two statements may see two states."""
        with database_failures(self.path):
            yield self._connection()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among all writers: committed at the end, or undone by an error."""
        with database_failures(self.path):
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # A full disk may have ended the transaction already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Closes the connections of all threads; the next use opens new ones."""
        for connection in list(self._open):
            connection.close()
        self._open.clear()
        self._thread = threading.local()

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection; a forked child opens its own."""
        held: _Connection | None = getattr(self._thread, "held", None)
        if held is None or held.pid != os.getpid():
            held = _Connection(self.path)
            self._thread.held = held
            self._open.add(held)
        return held.sqlite

    def _prepare(self, migrations: Sequence[str]) -> None:
        """WAL and every migration that the file has not had, each in its own transaction."""
        connection = self._connection()
        connection.execute("PRAGMA journal_mode = WAL")
        version = self._version(connection)
        if version > len(migrations):
            raise Misconfigured(
                f"{self.path} is of version {version}, this Instar knows {len(migrations)}",
                fix="Update Instar, or use another home.",
            )
        for number in range(version, len(migrations)):
            try:
                connection.executescript(
                    f"BEGIN IMMEDIATE; {migrations[number]}; PRAGMA user_version = {number + 1};"
                    "COMMIT;"
                )
            except sqlite3.DatabaseError:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @staticmethod
    def _version(connection: sqlite3.Connection) -> int:
        """How many migrations the file has had."""
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
