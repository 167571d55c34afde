"""Every error that Instar raises, grouped by what the caller does next.

    InstarError            .type, .status, .retryable
    ├── Refused            the request is wrong; repeating cannot help -> tell the requester
    │   ├── Invalid            malformed, too large, out of range              422
    │   ├── Unauthenticated    bad or missing signature, key or ticket         401
    │   ├── Forbidden          known caller, not allowed                       403
    │   ├── NotFound           no such thing, or not visible to the caller     404
    │   ├── Forgotten          the owner had this forgotten                    409
    │   └── TooLarge           over a hard limit                               413
    ├── Conflict           someone else wrote first -> read and decide again   409
    ├── Unavailable        a dependency is down or slow -> repeat later        503
    │   └── Throttled          with retry_after_seconds                        429
    ├── Exhausted          a budget is spent -> tell the owner                 402
    ├── ContextOverflow    the model cannot take this much -> compact          413
    └── Misconfigured      a deployment mistake -> alarm, never repeat         500

Class names and `type` words are contracts: state machines match the first, scripts the second.
A message names the thing and its value, never a secret or a whole payload; `fix` says what to do.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class InstarError(Exception):
    """The root; raise a leaf. `extra` holds further JSON fields of the answer (`similar`, ...)."""

    type: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(
        self, detail: str, *, fix: str = "", extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fix = fix
        self.extra: Mapping[str, Any] = extra or {}

    def problem(self) -> dict[str, Any]:
        """The JSON that command line and HTTP answer with."""
        return {"type": self.type, "detail": self.detail, "fix": self.fix, **self.extra}


class Refused(InstarError):
    """The request is wrong; repeating it cannot help."""

    type = "refused"
    status = 400


class Invalid(Refused):
    """Malformed, too large or out of range."""

    type = "invalid"
    status = 422


class TooLarge(Invalid):
    """Over a hard limit that the message names."""

    status = 413


class Unauthenticated(Refused):
    """A signature, key, cookie or ticket is bad or missing."""

    type = "unauthenticated"
    status = 401


class Forbidden(Refused):
    """A known caller that is not allowed."""

    type = "forbidden"
    status = 403


class NotFound(Refused):
    """No such thing, or none that this caller may see."""

    type = "not_found"
    status = 404


class Forgotten(Refused):
    """The owner had this statement forgotten; only the owner may lift that."""

    type = "forgotten"
    status = 409


class Conflict(InstarError):
    """Someone else wrote first: read again, decide again."""

    type = "conflict"
    status = 409
    retryable = True


class Unavailable(InstarError):
    """A dependency is down or slow: the same request may work later."""

    type = "unavailable"
    status = 503
    retryable = True


class Throttled(Unavailable):
    """A dependency asks us to slow down."""

    type = "throttled"
    status = 429

    def __init__(
        self, detail: str, *, retry_after_seconds: float | None = None, fix: str = ""
    ) -> None:
        super().__init__(detail, fix=fix)
        self.retry_after_seconds = retry_after_seconds


class Exhausted(InstarError):
    """A budget (money, tokens, iterations) is spent; repeating spends more."""

    type = "budget_exhausted"
    status = 402


class ContextOverflow(InstarError):
    """The model cannot take this much text."""

    type = "context_overflow"
    status = 413


class Misconfigured(InstarError):
    """A deployment or settings mistake: repeating cannot help, a person has to."""

    type = "misconfigured"
    status = 500
