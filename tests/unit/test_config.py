"""Settings: one table, environment over file over default, everything wrong named at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar import config
from instar.errors import Invalid, Misconfigured


def test_the_defaults_work_alone():
    settings = config.read({})

    (model,) = settings.models
    assert (model.provider, model.timeout_seconds, model.tools) == ("demo", 60.0, "native")
    assert (settings.embeddings, settings.telegram_owner) == ("local", 0)
    assert (settings.memory_characters, settings.time_zone.key) == (12_000, "UTC")


def test_the_environment_wins_and_an_empty_variable_counts_as_unset():
    file = '[model]\nname = "openai-chat/a"\nbase_url = "http://127.0.0.1:1/v1"\n'

    from_file = config.read({"INSTAR_MODEL": ""}, file)
    from_environment = config.read({"INSTAR_MODEL": "openai-chat/b"}, file)

    assert from_file.models[0].name == "a"
    assert from_environment.models[0].name == "b"
    assert from_environment.models[0].base_url == "http://127.0.0.1:1/v1"


def test_a_name_with_slashes_is_kept_whole():
    (model,) = config.read({"INSTAR_MODEL": "openai-chat/org/name:tag"}).models

    assert model.name == "org/name:tag"


def test_several_models_have_their_own_address_and_secret():
    first, second = config.read(
        {
            "INSTAR_MODEL": "openai-chat/a, openai-chat/b",
            "INSTAR_MODEL_BASE_URL": "http://one/v1",
            "INSTAR_MODEL_2_BASE_URL": "http://two/v1",
            "INSTAR_MODEL_2_TIMEOUT_S": "5",
        }
    ).models

    assert (first.base_url, first.key_name, first.key_variable) == (
        "http://one/v1",
        "model_api_key",
        "INSTAR_MODEL_API_KEY",
    )
    assert (second.base_url, second.key_name, second.key_variable) == (
        "http://two/v1",
        "model_2_api_key",
        "INSTAR_MODEL_2_API_KEY",
    )
    assert (first.timeout_seconds, second.timeout_seconds) == (60.0, 5.0)


def test_everything_that_is_wrong_is_named_at_once():
    with pytest.raises(Misconfigured) as refusal:
        config.read(
            {
                "INSTAR_MODEL": "gpt",
                "INSTAR_TELEGRAM_OWNER": "@anna",
                "INSTAR_TIME_ZONE": "../etc/passwd",
                "INSTAR_MODEL_BASE_URL": "file:///x",
                "INSTAR_MODEL_TOOLS": "maybe",
            },
            "[nonsense]\nx = 1\n",
        )

    detail = refusal.value.detail
    for name in (
        "INSTAR_MODEL (",
        "INSTAR_TELEGRAM_OWNER",
        "INSTAR_TIME_ZONE",
        "INSTAR_MODEL_BASE_URL",
        "INSTAR_MODEL_TOOLS",
        "nonsense.x",
    ):
        assert name in detail


@pytest.mark.parametrize("kind", ["api_key", "token", "secret", "password", "model_2_api_key"])
def test_a_secret_in_the_file_is_refused_without_its_value(kind):
    with pytest.raises(Misconfigured) as refusal:
        config.read({}, f'[telegram]\n{kind} = "verysecret"\n')

    assert kind in refusal.value.detail
    assert "verysecret" not in str(refusal.value.problem())


def test_a_file_that_is_no_toml_says_where():
    with pytest.raises(Misconfigured, match="line 2"):
        config.read({}, "[model]\nname = \n")


def test_a_byte_order_mark_is_no_error():
    assert config.read({}, '\ufeff[model]\nname = "demo"\n').models[0].provider == "demo"


def test_secrets_come_from_the_environment_by_name():
    assert config.secrets_of(
        {
            "INSTAR_MODEL_API_KEY": "a",
            "INSTAR_MODEL_2_API_KEY": "b",
            "INSTAR_TELEGRAM_TOKEN": "c",
            "INSTAR_WEBHOOK_SECRET": "",
            "INSTAR_KEY": "d",
            "INSTAR_HOME": "e",
            "AWS_SECRET": "f",
        }
    ) == {"model_api_key": "a", "model_2_api_key": "b", "telegram_token": "c"}


def test_a_value_is_set_with_comments_and_order_kept():
    before = '# mine\n[model] # here\nname = "demo" # for now\n\n[owner]\ntime_zone = "UTC"\n'

    after = config.with_value(before, "model.name", "openai-chat/x")

    assert after == before.replace('"demo"', '"openai-chat/x"')
    assert config.with_value("", "telegram.owner", "42") == "[telegram]\nowner = 42\n"
    assert config.value_of({}, after, "model.name") == "openai-chat/x"


def test_a_blank_value_removes_the_setting():
    set_once = config.with_value("", "model.base_url", "http://x/v1")

    blank = config.with_value(set_once, "model.base_url", "")

    assert config.value_of({}, set_once, "model.base_url") == "http://x/v1"
    assert config.value_of({}, blank, "model.base_url") == ""
    assert config.value_of({}, config.with_value("", "model.name", ""), "model.name") == "demo"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nonsense", "x"),
        ("model", "x"),
        ("model.api_key", "x"),
        ("telegram.token", "x"),
        ("telegram.owner", "@anna"),
        ("owner.time_zone", "Mars"),
        ("model.base_url", "localhost:1"),
        ("model.tools", "maybe"),
        ("model.name", "gpt"),
    ],
)
def test_a_value_that_cannot_be_is_refused(key, value):
    with pytest.raises(Invalid):
        config.with_value("", key, value)


def test_all_values_are_shown_and_none_is_a_secret():
    shown = config.all_values({"INSTAR_MODEL_API_KEY": "verysecret"}, "")

    assert shown["model.name"] == "demo"
    assert "verysecret" not in str(shown)
    assert set(shown) == {setting.key for setting in config.SETTINGS}


@given(st.sampled_from(["openai-chat/x", "demo", "anthropic/y z", "gemini/ü"]), st.integers(0, 99))
def test_what_is_set_is_read_back(name, owner):
    text = config.with_value("", "model.name", name)
    text = config.with_value(text, "telegram.owner", str(owner))

    settings = config.read({}, text)

    assert settings.models[0].provider == name.partition("/")[0]
    assert settings.telegram_owner == owner
