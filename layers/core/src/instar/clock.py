"""Time as an argument: a Clock is any function that returns an aware UTC datetime."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
Sleep = Callable[[float], None]


def utc_now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


def sleep(seconds: float) -> None:
    """The real wait."""
    time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which work has to stop, on the clock that made it."""

    at: datetime
    clock: Clock

    @classmethod
    def after(cls, seconds: float, clock: Clock) -> "Deadline":
        """A deadline that many seconds from now."""
        return cls(clock() + timedelta(seconds=seconds), clock)

    def remaining_seconds(self) -> float:
        """Seconds left; negative once it has passed."""
        return (self.at - self.clock()).total_seconds()

    def has_passed(self) -> bool:
        """Whether the moment is over."""
        return self.remaining_seconds() <= 0
