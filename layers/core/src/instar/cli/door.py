"""How a command reaches Instar: the same operations through a home or through a URL."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Door(Protocol):
    """One operation by name ("memory.save") with its arguments, answered as JSON."""

    def call(self, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Runs it. Raises InstarError; Invalid when this door does not offer the operation."""
        ...


Serve = Callable[[str, tuple[str, ...], int | None], None]
