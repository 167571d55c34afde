"""Time and identifiers that a test holds in its hand."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count


class MovingClock:
    """A Clock that stands still until it is moved; its `sleep` moves it."""

    def __init__(self, now: datetime = datetime(2031, 5, 4, 12, 30, 15, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """The moment it stands at."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Moves it on."""
        self.now += timedelta(seconds=seconds)

    sleep = advance


def numbered_ids(prefix: str = "id") -> Callable[[], str]:
    """A NewId that counts: id1, id2, …"""
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"
