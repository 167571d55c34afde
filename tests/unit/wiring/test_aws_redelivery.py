"""When a queued message that failed comes back."""

import pytest

from instar.channels.outcomes import Uncertain
from instar.conversation.envelopes import Reply
from instar.errors import Conflict, Throttled, Unavailable
from instar.wiring.aws_redelivery import again_in


def unreadable() -> Exception:
    try:
        Reply.model_validate_json("{}")
    except ValueError as error:
        return error
    raise AssertionError("an empty reply was read")


@pytest.mark.parametrize(
    ("error", "receives", "seconds"),
    [
        (unreadable(), 7, 0),
        (Conflict("held by another worker"), 7, 10),
        (Uncertain("it may have gone out"), 1, 60),
        (Unavailable("down"), 1, 5),
        (Unavailable("down"), 4, 40),
        (Unavailable("down"), 19, 900),
        (RuntimeError("a bug"), 2, 10),
        (Throttled("slow down", retry_after_seconds=33), 1, 33),
        (Throttled("slow down"), 1, 5),
        (Throttled("slow down", retry_after_seconds=86_400), 1, 900),
    ],
)
def test_it_comes_back_when_it_may_go_better(
    error: Exception, receives: int, seconds: float
) -> None:
    assert again_in(error, receives) == seconds
