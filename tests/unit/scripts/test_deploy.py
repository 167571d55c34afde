"""What deployment checks before it asks."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def deploy():
    path = list(sys.path)
    spec = importlib.util.spec_from_file_location("deploy_script", ROOT / "scripts" / "deploy.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["deploy_script"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = path
    del sys.modules["deploy_script"]


def role(action: str, resource: str) -> str:
    statement = f"{{Effect: Allow, Action: {action}, Resource: {resource}}}"
    return (
        "Resources:\n  Some:\n    Properties:\n      Policies:\n"
        f"        - Statement: [{statement}]\n"
    )


def test_a_role_that_may_do_everything_is_named(deploy):
    assert list(deploy.too_wide(role('"s3:*"', "!GetAtt Bucket.Arn"))) == ["Some"]
    assert list(deploy.too_wide(role("s3:GetObject", '"*"'))) == ["Some"]
    assert list(deploy.too_wide(role("s3:GetObject", "!GetAtt Bucket.Arn"))) == []


def test_the_template_itself_allows_nobody_everything(deploy):
    assert deploy.policies().status == "ok"
    assert deploy.template().status == "ok"


def test_without_a_model_the_demo_is_warned_of(deploy):
    assert deploy.model({}).status == "warn"


def test_a_model_without_key_or_address_fails_naming_the_variable(deploy):
    result = deploy.model({"INSTAR_MODEL": "openai-chat/gpt"})

    assert (result.status, "INSTAR_MODEL_API_KEY" in result.detail) == ("fail", True)


def test_the_price_follows_the_search_engine(deploy):
    made = "\n".join(deploy.price_lines({}))
    own = "\n".join(deploy.price_lines({"INSTAR_SEARCH_ENDPOINT": "https://search.example"}))

    assert "27.50" in made
    assert "your own cluster" in own
    assert "27.50" not in own


def test_a_check_that_breaks_is_a_failed_check_and_stops_no_other(deploy, capsys):
    def breaks():
        raise OSError("no network")

    passed = deploy.report([("one", breaks), ("two", lambda: deploy.Result("ok", "fine"))])

    assert passed is False
    assert capsys.readouterr().out.splitlines() == ["fail  one: no network", "ok    two: fine"]
