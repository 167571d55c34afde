"""What deployment checks before it asks."""

import importlib.util
import sys
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

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


def marked(lines: list[str]) -> list[str]:
    return [line.split()[-1] for line in lines if "->" in line]


def together(lines: list[str]) -> str:
    (line,) = (line for line in lines if "together" in line)
    return " ".join(line.split()[-3:])


def test_the_price_follows_the_search_engine(deploy):
    made = deploy.price_lines({})
    own = deploy.price_lines({"INSTAR_SEARCH_ENDPOINT": "https://search.example"})

    assert (marked(made), together(made)) == (["27.50"], "27.85 to 28.25")
    assert (marked(own), together(own)) == (["0.00"], "0.35 to 0.75")


def test_a_small_quota_is_warned_of_and_says_what_to_ask_for(deploy):
    few, many = deploy.of_quota(10.0), deploy.of_quota(1000.0)

    assert (few.status, many.status) == ("warn", "ok")
    assert "L-B99A9384" in few.fix


def test_a_variable_that_the_stack_does_not_know_is_named(deploy):
    known = {"INSTAR_MODEL": "demo", "INSTAR_TELEGRAM_TOKEN": "7:x", "INSTAR_STACK": "mine"}

    fine = deploy.settings(known)
    odd = deploy.settings(known | {"INSTAR_MODEL_2_BASE_URL": "http://127.0.0.1:1"})

    assert (fine.status, fine.detail) == ("ok", "1 settings and 1 secrets go along")
    assert (odd.status, "Model2BaseUrl" in odd.detail) == ("warn", True)


def test_every_parameter_has_a_default_so_that_a_deployment_forgets_what_is_not_set(deploy):
    values = deploy.choose_parameters(deploy.declared(), {"Model": "openai-chat/m"})

    assert values["Model"] == "openai-chat/m"
    assert values["ModelBaseUrl"] == ""
    assert values["LogRetentionDays"] == "30"


@pytest.mark.parametrize(("said", "meant"), [("y", True), (" YES ", True), ("", False), ("no", 0)])
def test_only_a_yes_is_a_yes(deploy, said, meant):
    assert deploy.is_yes(lambda: said) is bool(meant)


def test_where_nobody_can_be_asked_nothing_is_deployed(deploy):
    def ask():
        raise EOFError

    assert deploy.is_yes(ask) is False


def test_secrets_are_stored_encrypted_and_only_their_names_are_printed(deploy, capsys):
    with mock_aws():
        ssm = boto3.client("ssm")
        deploy.store_secrets(ssm, {"model_api_key": "sk-1"})
        deploy.store_secrets(ssm, {"model_api_key": "sk-2"})
        found = ssm.get_parameter(Name="/instar/secrets/model_api_key", WithDecryption=True)

    assert (found["Parameter"]["Type"], found["Parameter"]["Value"]) == ("SecureString", "sk-2")
    assert capsys.readouterr().out == "stored the secret model_api_key\n" * 2


def test_a_refusal_says_what_to_do(deploy, capsys):
    from instar.errors import Unavailable

    def breaks():
        raise Unavailable("the provider is away", fix="Try again in a moment.")

    deploy.report([("model", breaks)])

    assert capsys.readouterr().out.splitlines() == [
        "fail  model: the provider is away",
        "      Try again in a moment.",
    ]


def test_a_check_that_breaks_is_a_failed_check_and_stops_no_other(deploy, capsys):
    def breaks():
        raise OSError("no network")

    passed = deploy.report([("one", breaks), ("two", lambda: deploy.Result("ok", "fine"))])

    assert passed is False
    assert capsys.readouterr().out.splitlines() == ["fail  one: no network", "ok    two: fine"]
