"""What goes wrong below the built-in index, translated in one place."""

from collections.abc import Iterator
from contextlib import contextmanager

from instar.errors import Unavailable


class DamagedIndex(Unavailable):
    """Files of the index cannot be read: it is set aside and made again from the documents."""


@contextmanager
def reading_index(part: str) -> Iterator[None]:
    """Turns whatever tantivy, NumPy or the file system raises into DamagedIndex."""
    try:
        yield
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise DamagedIndex(f"the {part} of the index cannot be read: {error}") from error
    except BaseException as error:
        # A panic inside tantivy arrives as a BaseException without an importable class.
        if type(error).__name__ != "PanicException":
            raise
        raise DamagedIndex(f"the {part} of the index cannot be read: {error}") from error
