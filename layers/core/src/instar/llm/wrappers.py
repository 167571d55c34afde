"""Behaviour around any Model: try again, try the next one. Each wrapper is itself a Model.

Neither acts once something visible came out (text, reasoning, a tool call): what was shown cannot
be taken back, so the error goes to the caller. Both decide by the error's class alone.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from instar.clock import Clock, Deadline, Sleep
from instar.errors import (
    Exhausted,
    InstarError,
    Misconfigured,
    Throttled,
    Unauthenticated,
    Unavailable,
)
from instar.llm.ports import Model
from instar.llm.request import Finished, ModelEvent, ModelProfile, ModelRequest

_log = logging.getLogger(__name__)

Random = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long. Every wait counts against the deadline, and so do the attempts."""

    attempts: int = 3
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 30.0
    deadline_seconds: float = 120.0


class Retrying:
    """Tries again on Unavailable and Throttled, with growing waits and jitter.

    A Retry-After longer than the policy's longest wait is not waited for: Throttled is raised at
    once, for a fallback or the owner. So is an error whose wait would pass the deadline.
    """

    def __init__(
        self,
        inner: Model,
        *,
        clock: Clock,
        sleep: Sleep,
        random: Random,
        policy: RetryPolicy = RetryPolicy(),
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._sleep = sleep
        self._random = random
        self._policy = policy

    @property
    def profile(self) -> ModelProfile:
        """The wrapped model's."""
        return self._inner.profile

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See Model."""
        deadline = Deadline.after(self._policy.deadline_seconds, self._clock)
        for attempt in range(1, self._policy.attempts + 1):
            visible = False
            try:
                for event in self._inner.stream(request):
                    visible = visible or not isinstance(event, Finished)
                    yield event
                return
            except Unavailable as error:
                wait = self._wait_seconds(error, attempt, deadline)
                if visible or wait is None:
                    raise
                _log.warning(
                    "model %s: %s, attempt %d, again in %.1f s",
                    self.profile.name,
                    error.type,
                    attempt,
                    wait,
                )
            self._sleep(wait)

    def _wait_seconds(self, error: Unavailable, attempt: int, deadline: Deadline) -> float | None:
        """How long to wait before the next attempt; None when there is to be none."""
        policy = self._policy
        if attempt >= policy.attempts:
            return None
        wait = min(policy.first_wait_seconds * 2 ** (attempt - 1), policy.longest_wait_seconds)
        wait *= 0.5 + self._random() / 2
        asked = error.retry_after_seconds if isinstance(error, Throttled) else None
        if asked is not None:
            if asked > policy.longest_wait_seconds:
                return None
            wait = max(wait, asked)
        return wait if wait < deadline.remaining_seconds() else None


class Fallback:
    """Asks the next model when one is down, throttled, out of credit or has a bad key.

    ContextOverflow and Invalid are the request's fault and raised at once. A model that cannot call
    tools is not asked when the request has some. The profile is the first model's, with the
    smallest context of all, since any of them may have to take the request.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise Misconfigured("there is no model", fix="Set INSTAR_MODEL.")
        self._models = tuple(models)

    @property
    def profile(self) -> ModelProfile:
        """What the models have in common."""
        smallest = min(model.profile.context_tokens for model in self._models)
        return replace(self._models[0].profile, context_tokens=smallest)

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See Model. When all fail, the error names each; it is retryable if one of them was."""
        failures: list[InstarError] = []
        for model in self._able(request):
            visible = False
            try:
                for event in model.stream(request):
                    visible = visible or not isinstance(event, Finished)
                    yield event
                return
            except (Unavailable, Exhausted, Misconfigured, Unauthenticated) as error:
                if visible:
                    raise
                _log.warning("model %s: %s, next one", model.profile.name, error.type)
                failures.append(error)
        raise _together(failures)

    def _able(self, request: ModelRequest) -> Sequence[Model]:
        able = [model for model in self._models if model.profile.tools != "none"]
        return able if request.tools and able else self._models


def _together(failures: Sequence[InstarError]) -> InstarError:
    """One error for all: the first retryable one's class, else the first one's."""
    if len(failures) == 1:
        return failures[0]
    chosen = next((error for error in failures if error.retryable), failures[0])
    detail = "no model answered: " + "; ".join(error.detail for error in failures)
    if not isinstance(chosen, Throttled):
        kind = Unavailable if chosen.retryable else type(chosen)
        return kind(detail, fix=chosen.fix)
    if any(error.retryable and not isinstance(error, Throttled) for error in failures):
        return Unavailable(detail)
    waits = [error.retry_after_seconds for error in failures if isinstance(error, Throttled)]
    known = [wait for wait in waits if wait is not None]
    return Throttled(detail, retry_after_seconds=min(known) if known else None)
