"""Settings: the one table of them, and the only reader of the environment.

Every setting has a key in `config.toml` ("model.base_url"), a variable (INSTAR_MODEL_BASE_URL) and
a default. The environment wins; an empty variable counts as unset. Secrets (`*_KEY`, `*_TOKEN`,
`*_SECRET`) are no settings: they come from the environment or from `Secrets`, and `config.toml`
refuses them.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import tomlkit
from tomlkit.exceptions import TOMLKitError

from instar.errors import Invalid, Misconfigured

ToolMode = Literal["native", "schema", "none"]
PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock", "demo")
_SECRET = re.compile(r"(^|[_.])(key|token|secret|password)(_\d+)?$")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `kind` is how its text is read; `choices` are all it may be, when few."""

    key: str
    variable: str
    kind: Literal["text", "integer", "number", "url", "zone"]
    default: str = ""
    choices: tuple[str, ...] = ()


SETTINGS = (
    Setting("model.name", "INSTAR_MODEL", "text", "demo"),
    Setting("model.base_url", "INSTAR_MODEL_BASE_URL", "url"),
    Setting("model.timeout_s", "INSTAR_MODEL_TIMEOUT_S", "number", "60"),
    Setting("model.tools", "INSTAR_MODEL_TOOLS", "text", "native", ("native", "schema", "none")),
    Setting("model.context_tokens", "INSTAR_MODEL_CONTEXT_TOKENS", "integer", "128000"),
    Setting("embeddings.name", "INSTAR_EMBEDDINGS", "text", "local"),
    Setting("embeddings.base_url", "INSTAR_EMBEDDINGS_BASE_URL", "url"),
    Setting("embeddings.dimensions", "INSTAR_EMBEDDINGS_DIMENSIONS", "integer", "0"),
    Setting("telegram.owner", "INSTAR_TELEGRAM_OWNER", "integer", "0"),
    Setting("telegram.api_base", "INSTAR_TELEGRAM_API_BASE", "url", "https://api.telegram.org"),
    Setting("webhook.owner", "INSTAR_WEBHOOK_OWNER", "text"),
    Setting("prompt.memory_characters", "INSTAR_PROMPT_MEMORY_CHARACTERS", "integer", "12000"),
    Setting("owner.time_zone", "INSTAR_TIME_ZONE", "zone", "UTC"),
    Setting("search.endpoint", "INSTAR_SEARCH_ENDPOINT", "url"),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS}
# A second model and further ones: only what tells how to reach them.
_FURTHER = re.compile(r"model\.([2-9])\.(base_url|timeout_s|tools|context_tokens)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model to try. `key_name` names its secret, `key_variable` the variable for messages."""

    provider: str
    name: str
    base_url: str
    timeout_seconds: float
    tools: ToolMode
    context_tokens: int
    key_name: str
    key_variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, read and checked."""

    models: tuple[ModelChoice, ...]
    embeddings: str
    embeddings_base_url: str
    embeddings_dimensions: int
    telegram_owner: int
    telegram_api_base: str
    webhook_owner: str
    memory_characters: int
    time_zone: ZoneInfo
    search_endpoint: str


def environment() -> Mapping[str, str]:
    """The process's environment: for wiring alone."""
    return os.environ


def read(environ: Mapping[str, str], config: str = "") -> Settings:
    """The settings of an environment and a `config.toml`.

    Raises Misconfigured naming everything that is wrong at once.
    """
    values = _Values(environ, _flat(parse(config)))
    settings = Settings(
        models=_models(values),
        embeddings=values.text("embeddings.name"),
        embeddings_base_url=values.text("embeddings.base_url"),
        embeddings_dimensions=values.integer("embeddings.dimensions"),
        telegram_owner=values.integer("telegram.owner"),
        telegram_api_base=values.text("telegram.api_base"),
        webhook_owner=values.text("webhook.owner"),
        memory_characters=values.integer("prompt.memory_characters"),
        time_zone=values.zone("owner.time_zone"),
        search_endpoint=values.text("search.endpoint"),
    )
    if values.problems:
        raise Misconfigured(
            "settings that cannot be used: " + "; ".join(values.problems),
            fix="Correct them in the environment, or with `instar config set KEY VALUE`.",
        )
    return settings


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The secrets that stand in the environment, by lower-case name without INSTAR_."""
    names = (name for name in environ if name.startswith("INSTAR_") and name != "INSTAR_KEY")
    return {
        name.removeprefix("INSTAR_").lower(): environ[name]
        for name in names
        if _SECRET.search(name.lower()) and environ[name]
    }


def parse(config: str) -> dict[str, Any]:
    """The tables of a `config.toml`. Raises Misconfigured with the place of an error."""
    try:
        return tomllib.loads(config.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(
            f"config.toml is no TOML: {error}", fix="Correct that line in config.toml."
        ) from error


def value_of(environ: Mapping[str, str], config: str, key: str) -> str:
    """The value in force of one setting, as text. Raises Invalid for an unknown key."""
    return _Values(environ, _flat(parse(config))).raw(_known(key))


def all_values(environ: Mapping[str, str], config: str) -> dict[str, str]:
    """Every setting in force, as text."""
    values = _Values(environ, _flat(parse(config)))
    return {setting.key: values.raw(setting) for setting in SETTINGS}


def with_value(config: str, key: str, value: str) -> str:
    """The `config.toml` with that setting, comments and order kept; a blank value removes it.

    Raises Invalid for unknown keys, secrets and values that the setting cannot have.
    """
    setting = _known(key)
    values = _Values({}, {key: value} if value else {})
    values.checked(setting)
    if key == "model.name":
        _models(values)
    if values.problems:
        raise Invalid(values.problems[0], fix="Give a value that fits.")
    try:
        document = tomlkit.parse(config.removeprefix("\ufeff"))
    except TOMLKitError as error:
        raise Misconfigured(f"config.toml is no TOML: {error}") from error
    *path, name = key.split(".")
    table: Any = document
    for part in path:
        if not isinstance(table.get(part), dict):
            table[part] = tomlkit.table()
        table = table[part]
    if value:
        table[name] = int(value) if setting.kind == "integer" else value
    else:
        table.pop(name, None)
    return tomlkit.dumps(document)


def _known(key: str) -> Setting:
    if _SECRET.search(key.lower()):
        raise Invalid(
            f"{key!r} is a secret and does not belong into config.toml",
            fix=f"Use `instar secret set {key.replace('.', '_').upper()}` (value on stdin).",
        )
    further = _FURTHER.fullmatch(key)
    if further:
        like = _BY_KEY[f"model.{further[2]}"]
        variable = f"INSTAR_MODEL_{further[1]}_{further[2].upper()}"
        return Setting(key, variable, like.kind, like.default, like.choices)
    if key not in _BY_KEY:
        raise Invalid(f"unknown setting: {key!r}", fix=f"Settings are {', '.join(_BY_KEY)}.")
    return _BY_KEY[key]


def _flat(tables: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in tables.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            flat |= _flat(value, key + ".")
        elif _SECRET.search(key.lower()):
            raise Misconfigured(
                f"config.toml holds the secret {key!r}",
                fix="Remove it there, then use `instar secret set`; consider it leaked.",
            )
        else:
            flat[key] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return flat


class _Values:
    """Reads settings, collecting what is wrong."""

    def __init__(self, environ: Mapping[str, str], config: Mapping[str, str]) -> None:
        self._environ = environ
        self._config = config
        self.problems: list[str] = [
            f"unknown setting {key!r} in config.toml" for key in config if not _is_known(key)
        ]

    def raw(self, setting: Setting) -> str:
        given = self._environ.get(setting.variable) or self._config.get(setting.key)
        return setting.default if given is None else given

    def text(self, key: str) -> str:
        return self.checked(_known(key))

    def integer(self, key: str) -> int:
        return int(self.checked(_known(key)) or 0)

    def number(self, key: str) -> float:
        return float(self.checked(_known(key)) or 0)

    def zone(self, key: str) -> ZoneInfo:
        return ZoneInfo(self.checked(_known(key)))

    def checked(self, setting: Setting) -> str:
        """The value, or the default with a problem noted."""
        value = self.raw(setting)
        problem = _problem(setting, value)
        if problem:
            self.problems.append(f"{setting.variable} ({setting.key}) {problem}")
            return setting.default
        return value


def _is_known(key: str) -> bool:
    return key in _BY_KEY or _FURTHER.fullmatch(key) is not None


def _problem(setting: Setting, value: str) -> str | None:
    if setting.choices and value not in setting.choices:
        return f"is {value!r}, not one of {', '.join(setting.choices)}"
    match setting.kind:
        case "integer" if not re.fullmatch(r"-?\d{1,18}", value):
            return f"is {value!r}, not a whole number"
        case "number" if not re.fullmatch(r"\d{1,6}(\.\d+)?", value):
            return f"is {value!r}, not a number"
        case "url" if value and not _is_url(value):
            return f"is {value!r}, not an http(s) address with a host"
        case "zone" if not _is_zone(value):
            return f"is {value!r}, not a time zone such as Europe/Berlin"
    return None


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _is_zone(value: str) -> bool:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _models(values: _Values) -> tuple[ModelChoice, ...]:
    names = [name.strip() for name in values.text("model.name").split(",") if name.strip()]
    choices = []
    for number, full_name in enumerate(names, 1):
        provider, _, name = full_name.partition("/")
        if provider not in PROVIDERS or (provider != "demo" and not name):
            values.problems.append(
                f"INSTAR_MODEL (model.name) is {full_name!r}, not PROVIDER/NAME with a provider "
                f"of {', '.join(PROVIDERS)}"
            )
        middle = "" if number == 1 else f"{number}."
        infix = "" if number == 1 else f"{number}_"
        choices.append(
            ModelChoice(
                provider=provider,
                name=name,
                base_url=values.text(f"model.{middle}base_url"),
                timeout_seconds=values.number(f"model.{middle}timeout_s"),
                tools=values.text(f"model.{middle}tools"),  # type: ignore[arg-type]  # checked
                context_tokens=values.integer(f"model.{middle}context_tokens"),
                key_name=f"model_{infix}api_key",
                key_variable=f"INSTAR_MODEL_{infix}API_KEY",
            )
        )
    return tuple(choices)


def resources(environ: Mapping[str, str], *names: str) -> tuple[str, ...]:
    """The names of a stack's resources that a function was given, in order.

    Raises Misconfigured naming all that are missing.
    """
    missing = [name for name in names if not environ.get(name)]
    if missing:
        raise Misconfigured(
            f"the function lacks {', '.join(missing)}", fix="Set them in template.yaml."
        )
    return tuple(environ[name] for name in names)
