"""Which variables become template parameters, and which secrets. Needs no cloud."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[3] / "scripts" / "cloud" / "parameters.py"


@pytest.fixture(scope="module")
def parameters():
    spec = importlib.util.spec_from_file_location("cloud_parameters", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ENVIRONMENT = {
    "INSTAR_MODEL": "anthropic/a, demo",
    "INSTAR_MODEL_BASE_URL": "http://127.0.0.1:1",
    "INSTAR_MODEL_2_BASE_URL": "http://127.0.0.1:2",
    "INSTAR_MODEL_TIMEOUT_S": "60",
    "INSTAR_EMBEDDINGS": "",
    "INSTAR_TELEGRAM_TOKEN": "t",
    "INSTAR_MODEL_API_KEY": "k",
    "INSTAR_MODEL_2_API_KEY": "k2",
    "INSTAR_WEBHOOK_SECRET": "s",
    "INSTAR_KEY": "owner",
    "INSTAR_HOME": "h",
    "INSTAR_PORT": "8420",
    "INSTAR_CLOUD_PORT": "4566",
    "PATH": "p",
}


def test_settings_become_camel_case_parameters(parameters):
    assert parameters.parameters_in(ENVIRONMENT) == {
        "Model": "anthropic/a, demo",
        "ModelBaseUrl": "http://127.0.0.1:1",
        "Model2BaseUrl": "http://127.0.0.1:2",
        "ModelTimeoutS": "60",
    }


def test_secrets_are_kept_apart_and_the_owner_key_is_not_one(parameters):
    assert parameters.secrets_in(ENVIRONMENT) == {
        "telegram_token": "t",
        "model_api_key": "k",
        "model_2_api_key": "k2",
        "webhook_secret": "s",
    }


def test_only_declared_parameters_are_said_and_defaults_are_said_again(parameters):
    declared = {"Model": "", "MonthlyBudgetUsd": "20", "OwnerEmail": None}
    wanted = {"Model": "demo", "Unknown": "x"}

    chosen = parameters.choose_parameters(declared, wanted)

    assert chosen == {"Model": "demo", "MonthlyBudgetUsd": "20"}
