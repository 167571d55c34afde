"""The folder that holds everything of one person: documents, database, secrets, index.

Any number of processes may use a home; only one of them may be its server.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from instar.adapters.local.failures import file_failures
from instar.errors import Conflict

# Whoever asks server_running() holds the lock for a moment.
_TRIES, _PAUSE_SECONDS = 25, 0.02


class Home:
    """Where things are below one folder, and who serves it."""

    def __init__(self, path: Path) -> None:
        """Makes the folder, for its owner alone; one that is there keeps its mode."""
        with file_failures(f"the home {path}"):
            path = path.expanduser()
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path = path.resolve()

    @property
    def database(self) -> Path:
        """The file of the embedded database."""
        return self.path / "instar.db"

    @property
    def secrets(self) -> Path:
        """The folder of the secrets."""
        return self.path / "secrets"

    @property
    def index(self) -> Path:
        """The folder of the search index: it can be thrown away."""
        return self.path / "index"

    @contextmanager
    def serve_lock(self) -> Iterator[None]:
        """Makes this process the home's server until the block ends, or the process does.

        Raises Conflict when another process is.
        """
        descriptor = self._open_lock()
        try:
            if not _try_lock(descriptor, tries=_TRIES):
                pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                raise Conflict(
                    f"process {pid or 'unknown'} serves {self.path}",
                    fix="Use that one, stop it, or choose another home with --home.",
                )
            with file_failures(f"the lock of {self.path}"):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(descriptor)

    def server_running(self) -> bool:
        """Whether some process serves this home now."""
        descriptor = self._open_lock()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _open_lock(self) -> int:
        with file_failures(f"the lock of {self.path}"):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            return os.open(self.path / "server.lock", flags, 0o600)


def _try_lock(descriptor: int, *, tries: int) -> bool:
    """Whether the lock was got within some tries."""
    for _ in range(tries):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False
