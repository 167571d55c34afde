"""Pure: the global flags, which may stand anywhere before `--`."""

from collections.abc import Sequence
from dataclasses import dataclass

VALUED = {"--agent": "agent", "--home": "home", "--url": "url"}


class UsageError(Exception):
    """The command line's words are off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The global flags as given; None where they were not."""

    json: bool = False
    agent: str | None = None
    home: str | None = None
    url: str | None = None


def split_flags(arguments: Sequence[str]) -> tuple[Flags, list[str]]:
    """The global flags and the rest, which keeps its `--`. Raises UsageError."""
    given: dict[str, str] = {}
    rest: list[str] = []
    as_json = False
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *words]
        elif word == "--json":
            as_json = True
        elif name in VALUED:
            if not equals:
                value = next(words, "")
            if not value:
                raise UsageError(f"{name} needs a value")
            given[VALUED[name]] = value
        else:
            rest.append(word)
    if "home" in given and "url" in given:
        raise UsageError("--home and --url exclude each other")
    return Flags(json=as_json, **given), rest
