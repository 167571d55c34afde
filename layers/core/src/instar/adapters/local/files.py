"""Files that survive a crash: locks between processes, durable writes, swapping two names at once.

Everything here is a thin, named layer over system calls; what a document or a secret is, others
know.
"""

import ctypes
import errno
import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from instar.adapters.local.failures import file_failures
from instar.errors import Unavailable

LOCK_SECONDS = 30.0
_AT_FDCWD = -100
_EXCHANGE = 2
_NOREPLACE = 1
# The file system or the kernel does not know the flag.
_NOT_KNOWN = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.ENOTTY})


@contextmanager
def locked(path: Path, *, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Holds the lock file alone among threads and processes; it falls with its holder.

    Raises Unavailable when someone else keeps it longer than `seconds`.
    """
    with file_failures(f"the lock {path}"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not _took(descriptor, seconds):
            raise Unavailable(
                f"another process keeps {path} locked",
                fix="Wait for it, or end the process that hangs, and try again.",
            )
        yield
    finally:
        os.close(descriptor)


def _took(descriptor: int, seconds: float) -> bool:
    """Whether the lock was got in time: flock itself cannot wait with a limit."""
    until = time.monotonic() + seconds
    pause = 0.001
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def read_regular(path: Path) -> bytes | None:
    """The bytes of a regular file; None when nothing, a link or anything else stands there."""
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        )
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def write_durably(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Writes a new file and waits until its bytes are on the disk; a failure leaves no file."""
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Waits until the folder's names are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path, *, root: Path) -> None:
    """Makes the folders between `root`, which is there, and `folder`, durably."""
    missing = [path for path in (folder, *folder.parents) if not path.is_dir()]
    for path in reversed([path for path in missing if path.is_relative_to(root)]):
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        sync_folder(path.parent)


def exchange(one: Path, other: Path) -> bool:
    """Swaps what two names stand for, at once; False where the system cannot."""
    return _renameat2(one, other, _EXCHANGE)


def move_to_free_name(source: Path, target: Path) -> bool:
    """Moves a file to a name that nothing has; False when something has it."""
    try:
        if _renameat2(source, target, _NOREPLACE):
            return True
    except FileExistsError:
        return False
    if target.is_symlink() or target.exists():
        return False
    source.rename(target)
    return True


def _renameat2(source: Path, target: Path, flags: int) -> bool:
    """Linux renameat2; False where it or the flag is not known."""
    call: Callable[..., int] | None = None
    if sys.platform == "linux":
        call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    names = (os.fsencode(source), os.fsencode(target))
    if call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(flags)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_KNOWN:
        return False
    raise OSError(code, os.strerror(code), str(target))
