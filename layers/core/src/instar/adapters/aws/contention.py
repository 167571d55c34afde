"""What to do when others write at the same moment: decide again, a bounded number of times.

This repeats decisions, not requests: requests that fail are botocore's to repeat.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from instar.adapters.aws.errors import is_contention
from instar.clock import Sleep
from instar.errors import Conflict, Unavailable

T = TypeVar("T")
TRIES = 60
LONGEST_PAUSE_SECONDS = 0.25


class Raced(Exception):
    """Somebody else wrote between our look and our write: look again. Never leaves `persist`."""


@contextmanager
def races() -> Iterator[None]:
    """Turns a failed condition inside the block into Raced."""
    try:
        yield
    except Conflict as error:
        raise Raced from error


def persist(what: str, attempt: Callable[[], T], sleep: Sleep) -> T:
    """The first result of `attempt`, which looks and writes; it is called anew when it lost.

    Raises Unavailable when others kept winning, and whatever else the attempt raises.
    """
    for number in range(TRIES):
        try:
            return attempt()
        except Raced:
            pass
        except Unavailable as error:
            if not is_contention(error):
                raise
        sleep(min(LONGEST_PAUSE_SECONDS, 0.005 * 1.5**number) * random.random())  # noqa: S311
    raise Unavailable(f"{what}: too many write at once", fix="Try again in a moment.")
