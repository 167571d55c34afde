"""What the tests of the local adapters share: a clock that a test moves, and a database."""

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from instar.adapters.local.database import Database


class MovingClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = datetime(2031, 5, 4, 12, 30, 15, 250000, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "instar.db")
    yield database
    database.close()


class Children:
    """Python programs beside the test, to write at once with it or to be killed."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def start(self, program: str, *arguments: object) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started.append(child)
        return child

    def end(self) -> None:
        for child in self._started:
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()


@pytest.fixture
def children() -> Iterator[Children]:
    children = Children()
    yield children
    children.end()


@contextmanager
def _limited_files(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def limited_files() -> Callable[[int], AbstractContextManager[None]]:
    """No file can grow beyond so many bytes: how a full disk feels."""
    return _limited_files


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB that is really full when it is full; needs the right to mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)
