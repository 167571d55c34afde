"""Which of this machine's INSTAR_ variables become template parameters, and which secrets."""

from collections.abc import Mapping

PREFIX = "INSTAR_"
SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET")
# The owner's key to a running Instar: it is read from a stack, never given to one.
OWNER_KEY = "INSTAR_KEY"
# These are for the commands on this machine.
LOCAL = (
    "INSTAR_CACHE",
    "INSTAR_CLOUD_",
    "INSTAR_HOME",
    "INSTAR_OPENSEARCH_",
    "INSTAR_PORT",
    "INSTAR_URL",
)


def choose_parameters(
    declared: Mapping[str, str | None], wanted: Mapping[str, str]
) -> dict[str, str]:
    """A value for each declared parameter: the wanted one, else the template's default.

    The defaults are said too, because a deployment keeps the last value of what it is not told.
    """
    values = {name: default for name, default in declared.items() if default is not None}
    return values | {name: value for name, value in wanted.items() if name in declared}


def parameters_in(environment: Mapping[str, str]) -> dict[str, str]:
    """INSTAR_MODEL_BASE_URL becomes ModelBaseUrl; an empty variable counts as none."""
    return {
        camel_case(name.removeprefix(PREFIX)): value
        for name, value in environment.items()
        if value and is_setting(name) and not is_secret(name)
    }


def secrets_in(environment: Mapping[str, str]) -> dict[str, str]:
    """INSTAR_TELEGRAM_TOKEN becomes telegram_token."""
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if value and is_setting(name) and is_secret(name)
    }


def is_setting(name: str) -> bool:
    return name.startswith(PREFIX) and name != OWNER_KEY and not name.startswith(LOCAL)


def is_secret(name: str) -> bool:
    return name.endswith(SECRET_ENDINGS)


def camel_case(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def quoted(name: str, value: str) -> str:
    """As `sam --parameter-overrides` reads it back, whatever the value."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'
