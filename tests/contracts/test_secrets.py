"""Every Secrets adapter keeps these promises."""

from pathlib import Path

import pytest

from instar.access.ports import Secrets
from instar.adapters.aws.clients import Clients
from instar.adapters.aws.ssm_secrets import SsmSecrets
from instar.adapters.local.file_secrets import FileSecrets
from instar.errors import Invalid


def file(request: pytest.FixtureRequest) -> Secrets:
    tmp_path: Path = request.getfixturevalue("tmp_path")
    return FileSecrets(tmp_path / "secrets")


def ssm(request: pytest.FixtureRequest) -> Secrets:
    aws: Clients = request.getfixturevalue("aws")
    return SsmSecrets(aws.ssm())


@pytest.fixture(params=[file, ssm], ids=lambda build: build.__name__)
def secrets(request: pytest.FixtureRequest) -> Secrets:
    return request.param(request)


def test_a_secret_that_was_never_set_is_none(secrets):
    assert secrets.get("telegram_token") is None
    assert secrets.names() == []


def test_a_secret_is_kept_and_replaced(secrets):
    secrets.set("telegram_token", "one")
    secrets.set("telegram_token", 'zwei "2"\nü')

    assert secrets.get("telegram_token") == 'zwei "2"\nü'


def test_names_are_sorted_and_show_no_value(secrets):
    secrets.set("slack_token", "s")
    secrets.set("anthropic_key", "a")

    assert secrets.names() == ["anthropic_key", "slack_token"]


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_blank_value_removes_the_secret(secrets, blank):
    secrets.set("telegram_token", "one")
    secrets.set("telegram_token", blank)
    secrets.set("telegram_token", blank)

    assert secrets.get("telegram_token") is None
    assert secrets.names() == []


@pytest.mark.parametrize("name", ["", "Telegram", "a b", "../x", "1st", "a" * 65, "ü"])
def test_what_is_no_name_is_invalid(secrets, name):
    with pytest.raises(Invalid):
        secrets.set(name, "value")
    with pytest.raises(Invalid):
        secrets.get(name)
