"""The one place where failures of AWS become Instar's errors: by code and status, never by text.

A code that is in no table and no status that says "later" is a bug of ours: it propagates as it
came. Messages of AWS stay in the cause; ours carry what was asked for and the code.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigNotFound,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    ResponseStreamingError,
)
from botocore.exceptions import ConnectionError as BotocoreConnectionError

from instar.errors import (
    Conflict,
    InstarError,
    Invalid,
    Misconfigured,
    NotFound,
    Throttled,
    TooLarge,
    Unavailable,
)

CONTENTION = frozenset(
    {"TransactionConflict", "TransactionConflictException", "TransactionInProgressException"}
)
_CANCELED = "TransactionCanceledException"
_CODES: Mapping[type[InstarError], tuple[str, ...]] = {
    Conflict: (
        "ConditionalCheckFailed",
        "ConditionalCheckFailedException",
        "PreconditionFailed",
        "412",
        "ConditionalRequestConflict",
        "409",
        "ReceiptHandleIsInvalid",
        "MessageNotInflight",
        "AWS.SimpleQueueService.MessageNotInflight",
    ),
    NotFound: (
        "NoSuchKey",
        "NoSuchVersion",
        "404",
        "MethodNotAllowed",  # the version is a delete marker
        "405",
        "ParameterNotFound",
        "GoneException",
        "410",
    ),
    Throttled: (
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "TooManyUpdates",
        "SlowDown",
        "429",
    ),
    Misconfigured: (
        "AccessDenied",
        "AccessDeniedException",
        "UnauthorizedOperation",
        "403",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
        "NoSuchBucket",
        "ResourceNotFoundException",  # a table, a function: things of the template
        "QueueDoesNotExist",
        "AWS.SimpleQueueService.NonExistentQueue",
        "InvalidKeyId",
    ),
    TooLarge: ("EntityTooLarge", "PayloadTooLargeException", "ItemSizeLimitExceeded"),
    Invalid: ("InvalidArgument", "KeyTooLongError", "InvalidMessageContents"),
    Unavailable: (*CONTENTION, "InternalError", "InternalServerError", "ServiceUnavailable", "503"),
}
_CLASS_OF = {code: kind for kind, codes in _CODES.items() for code in codes}
_SETUP = (
    NoCredentialsError,
    PartialCredentialsError,
    NoRegionError,
    ProfileNotFound,
    ConfigNotFound,
)
_NETWORK = (HTTPClientError, BotocoreConnectionError, ResponseStreamingError)
_FIXES = {
    Misconfigured: "Check the role of this function and the names of the stack's resources.",
    Unavailable: "Try again in a moment.",
    Conflict: "Read it again.",
}


@contextmanager
def aws_failures(what: str) -> Iterator[None]:
    """Translates what botocore raises out of the block; `what` names the thing, no content."""
    try:
        yield
    except ClientError as error:
        translated = _of_client_error(what, error)
        if translated is None:
            raise
        raise translated from error
    except BotoCoreError as error:
        if isinstance(error, _SETUP):
            raise _made(Misconfigured, f"{what}: {type(error).__name__}") from error
        if isinstance(error, _NETWORK):
            raise _made(Unavailable, f"{what}: {type(error).__name__}") from error
        raise


def codes_of(error: ClientError) -> tuple[str, ...]:
    """The code, or of a cancelled transaction the codes of those items that caused it."""
    response: Mapping[str, Any] = error.response
    code = str(response.get("Error", {}).get("Code", ""))
    if code != _CANCELED:
        return (code,)
    reasons = [str(reason.get("Code", "None")) for reason in _reasons(response)]
    return tuple(reason for reason in reasons if reason != "None") or (code,)


def is_contention(error: BaseException) -> bool:
    """Whether nothing was written only because others wrote at that moment: repeat as it was."""
    cause = error.__cause__
    return isinstance(cause, ClientError) and not CONTENTION.isdisjoint(codes_of(cause))


def was_repeated(error: BaseException) -> bool:
    """Whether botocore had sent the request before: the refusal may be the echo of a success."""
    cause = error.__cause__
    if not isinstance(cause, ClientError):
        return cause is not None
    return bool(cause.response.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def _of_client_error(what: str, error: ClientError) -> InstarError | None:
    """The error of ours; None for what is a bug."""
    codes = codes_of(error)
    kinds = {_CLASS_OF[code] for code in codes if code in _CLASS_OF}
    # A failed condition decides even when other items of the transaction were merely busy.
    kind = next((kind for kind in _CODES if kind in kinds), None) or _by_status(error)
    if kind is None:
        return None
    detail = f"{what}: {', '.join(sorted(set(codes)))}"
    if kind is Throttled:
        return Throttled(detail, retry_after_seconds=_retry_after(error), fix=_FIXES[Unavailable])
    return _made(kind, detail)


def _by_status(error: ClientError) -> type[InstarError] | None:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status == 429:
        return Throttled
    return Unavailable if status >= 500 else None


def _retry_after(error: ClientError) -> float | None:
    value = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("retry-after", "")
    return float(value) if str(value).isdecimal() else None


def _reasons(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    reasons: list[Mapping[str, Any]] = response.get("CancellationReasons", [])
    return reasons


def _made(kind: type[InstarError], detail: str) -> InstarError:
    return kind(detail, fix=_FIXES.get(kind, ""))
