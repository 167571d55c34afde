"""The port of a language model: one method."""

from collections.abc import Iterator
from typing import Protocol

from instar.llm.request import ModelEvent, ModelProfile, ModelRequest


class Model(Protocol):
    """A language model. Everything else (retries, fallback, metering) wraps this."""

    @property
    def profile(self) -> ModelProfile:
        """What the model can do."""
        ...

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """Yields events in order and ends with exactly one Finished.

        A stream that breaks off without its provider's end marker raises; it never ends silently.
        Raises Throttled, Unavailable, ContextOverflow, Exhausted (quota or billing),
        Unauthenticated or Misconfigured (a bad key), Invalid (the provider refuses the request).
        """
        ...
