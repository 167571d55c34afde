import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from instar.adapters.aws.errors import aws_failures, is_contention, was_repeated
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


def refusal(code: str, *, status: int = 400, reasons: tuple[str, ...] = (), **meta) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": "the secret text"},
        "ResponseMetadata": {"HTTPStatusCode": status, **meta},
        "CancellationReasons": [{"Code": reason} for reason in reasons],
    }
    return ClientError(response, "Operation")


def translated(error: Exception) -> InstarError:
    with pytest.raises(InstarError) as caught, aws_failures("the thing"):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ConditionalCheckFailedException", Conflict),
        ("PreconditionFailed", Conflict),
        ("412", Conflict),
        ("ConditionalRequestConflict", Conflict),
        ("ReceiptHandleIsInvalid", Conflict),
        ("NoSuchKey", NotFound),
        ("NoSuchVersion", NotFound),
        ("404", NotFound),
        ("MethodNotAllowed", NotFound),
        ("ParameterNotFound", NotFound),
        ("GoneException", NotFound),
        ("ThrottlingException", Throttled),
        ("ProvisionedThroughputExceededException", Throttled),
        ("SlowDown", Throttled),
        ("AccessDenied", Misconfigured),
        ("AccessDeniedException", Misconfigured),
        ("ResourceNotFoundException", Misconfigured),
        ("NoSuchBucket", Misconfigured),
        ("TransactionConflictException", Unavailable),
        ("InternalServerError", Unavailable),
        ("PayloadTooLargeException", TooLarge),
        ("KeyTooLongError", Invalid),
    ],
)
def test_a_code_decides_what_the_caller_does_next(code, kind):
    error = translated(refusal(code))

    assert type(error) is kind
    assert error.detail == f"the thing: {code}"
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("status", "kind"), [(429, Throttled), (500, Unavailable), (503, Unavailable)]
)
def test_an_unknown_code_is_judged_by_its_status(status, kind):
    assert type(translated(refusal("NewInTheCloud", status=status))) is kind


def test_an_unknown_refusal_is_a_bug_and_stays_as_it_came():
    with pytest.raises(ClientError), aws_failures("the thing"):
        raise refusal("ValidationException")
    with pytest.raises(ParamValidationError), aws_failures("the thing"):
        raise ParamValidationError(report="no")


def test_a_throttle_says_how_long_to_wait():
    error = translated(refusal("ThrottlingException", HTTPHeaders={"retry-after": "7"}))

    assert isinstance(error, Throttled)
    assert error.retry_after_seconds == 7


@pytest.mark.parametrize(
    ("reasons", "kind"),
    [
        (("None", "ConditionalCheckFailed"), Conflict),
        (("TransactionConflict", "ConditionalCheckFailed"), Conflict),
        (("TransactionConflict", "None"), Unavailable),
        (("ThrottlingError",), Throttled),
        (("ItemSizeLimitExceeded", "None"), TooLarge),
    ],
)
def test_a_cancelled_transaction_is_judged_by_its_reasons(reasons, kind):
    assert type(translated(refusal("TransactionCanceledException", reasons=reasons))) is kind


def test_only_others_writing_at_the_same_moment_is_contention():
    canceled = "TransactionCanceledException"

    assert is_contention(translated(refusal(canceled, reasons=("TransactionConflict",))))
    assert is_contention(translated(refusal("TransactionConflictException")))
    assert not is_contention(translated(refusal("InternalServerError")))
    assert not is_contention(translated(refusal(canceled, reasons=("ThrottlingError",))))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectTimeoutError(endpoint_url="https://x"), Unavailable),
        (ReadTimeoutError(endpoint_url="https://x"), Unavailable),
        (EndpointConnectionError(endpoint_url="https://x"), Unavailable),
        (NoCredentialsError(), Misconfigured),
    ],
)
def test_what_never_got_an_answer_is_judged_by_its_class(error, kind):
    assert type(translated(error)) is kind


def test_a_refusal_after_a_repeated_request_may_be_the_echo_of_a_success():
    assert was_repeated(translated(refusal("412", RetryAttempts=1)))
    assert not was_repeated(translated(refusal("412", RetryAttempts=0)))
    assert was_repeated(translated(ReadTimeoutError(endpoint_url="https://x")))
