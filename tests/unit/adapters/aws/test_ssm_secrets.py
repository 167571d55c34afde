import json
import traceback

import pytest

from instar.adapters.aws.ssm_secrets import SsmSecrets
from instar.errors import InstarError, Invalid, TooLarge


class Elapsed:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def elapsed():
    return Elapsed()


@pytest.fixture
def secrets(aws, elapsed):
    return SsmSecrets(aws.ssm(), elapsed=elapsed)


def test_a_secret_is_an_encrypted_parameter_below_the_prefix(secrets, aws):
    secrets.set("telegram_token", "one")

    parameter = aws.ssm().get_parameter(Name="/instar/secrets/telegram_token")["Parameter"]
    assert parameter["Type"] == "SecureString"
    assert parameter["Value"] != "one"


def test_a_value_is_remembered_for_a_minute(secrets, aws, elapsed):
    other = SsmSecrets(aws.ssm())
    other.set("telegram_token", "one")
    assert secrets.get("telegram_token") == "one"
    other.set("telegram_token", "two")

    elapsed.seconds += 59
    assert secrets.get("telegram_token") == "one"
    elapsed.seconds += 2
    assert secrets.get("telegram_token") == "two"


def test_that_a_secret_is_missing_is_remembered_too(secrets, wire):
    assert secrets.get("telegram_token") is None
    assert secrets.get("telegram_token") is None

    assert len(wire.requests) == 1


def test_an_own_change_counts_at_once(secrets):
    assert secrets.get("telegram_token") is None
    secrets.set("telegram_token", "one")
    assert secrets.get("telegram_token") == "one"
    secrets.set("telegram_token", " ")

    assert secrets.get("telegram_token") is None


def test_names_of_other_paths_are_not_shown(secrets, aws):
    aws.ssm().put_parameter(Name="/instar/other", Value="x", Type="String")
    aws.ssm().put_parameter(Name="/instar/secrets/deep/er", Value="x", Type="String")
    for number in range(25):
        secrets.set(f"key_{number:02d}", "value")

    assert secrets.names() == [f"key_{number:02d}" for number in range(25)]


def test_no_error_carries_a_value(secrets, wire):
    value = "hunter" + "2"
    wire.next(
        wire.plain(
            400, json.dumps({"__type": "AccessDeniedException", "message": f"value {value!r} no"})
        )
    )
    with pytest.raises(InstarError) as caught:
        secrets.set("telegram_token", value)

    assert value not in "".join(traceback.format_exception(caught.value))


def test_what_a_parameter_cannot_hold_is_refused_before_it_is_sent(secrets, wire):
    with pytest.raises(TooLarge):
        secrets.set("telegram_token", "ü" * 2049)
    with pytest.raises(Invalid):
        secrets.set("telegram_token", "\ud83d")

    assert wire.requests == []
