"""Finding secrets in text: provider-shaped keys, tokens, PEM blocks, card numbers.

A PIN, a door code or a number that the owner states is a fact like another and passes. Patterns
follow the documented prefixes of the providers; cards are 13 to 19 digits that pass the Luhn check
(ISO/IEC 7812) and begin as issued cards do.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_SHAPES = {
    "a private key (PEM)": (
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    ),
    "an API key": r"\b(?:sk|rk|pk)[-_](?:ant-|proj-|or-|live_|test_)?[A-Za-z0-9_-]{20,}",
    "an AWS access key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "a Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "a Google API key": r"\bAIza[A-Za-z0-9_-]{35}",
    "a Telegram bot token": r"\b\d{8,10}:[A-Za-z0-9_-]{35}\b",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}",
    "an Instar key": r"\bik_[a-z2-7]{10,}_[a-z2-7]{20,}",
    "a JSON web token": r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "a bearer token": r"(?i)\bauthorization\s*:\s*(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{16,}",
}
_PATTERNS = {name: re.compile(shape, re.DOTALL) for name, shape in _SHAPES.items()}
_CARD = re.compile(
    r"(?<![\w.])(?:[3-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5})"
    r"(?![\w.]?\d)"
)


# What may still grow into a secret at the end of a text, from the point where it looks like one.
_OPEN = re.compile(
    r"(?:\b(?:sk|rk|pk)[-_]|\b(?:AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|AIza|hf_|ik_"
    r"|eyJ|\d{8,10}:))[A-Za-z0-9_.-]*\Z"
    r"|(?<!\d)\d(?:[ -]?\d){7,}[ -]?\Z"
    r"|(?i:\bauthorization\s*:\s*(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]*\Z"
    r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?!.*-----END [A-Z0-9 ]*PRIVATE KEY-----).*\Z",
    re.DOTALL,
)
_LOOKED_BACK = 8_000


@dataclass(frozen=True, slots=True)
class Found:
    """A secret's place in a text and what it looks like; never its value."""

    start: int
    end: int
    name: str


def find_secrets(text: str) -> list[Found]:
    """The secrets in a text, in order, not overlapping."""
    found = sorted(_matches(text), key=lambda match: (match.start, -match.end))
    kept: list[Found] = []
    for match in found:
        if not kept or match.start >= kept[-1].end:
            kept.append(match)
    return kept


def _matches(text: str) -> Iterator[Found]:
    for name, pattern in _PATTERNS.items():
        for match in pattern.finditer(text):
            yield Found(match.start(), match.end(), name)
    for match in _CARD.finditer(text):
        digits = [int(character) for character in match.group() if character.isdigit()]
        if 13 <= len(digits) <= 19 and _passes_luhn(digits):
            yield Found(match.start(), match.end(), "a card number")


def _passes_luhn(digits: list[int]) -> bool:
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def masked(text: str, start: int = 0) -> str:
    """The text from `start` on with every secret replaced by what it was, in brackets."""
    out, at = [], start
    for found in find_secrets(text):
        if found.end > at:
            out += [text[at : found.start], f"[{found.name} was removed]"]
            at = found.end
    return "".join([*out, text[at:]])


def masked_json(value: Any) -> Any:
    """A JSON value with every string in it masked."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [masked_json(item) for item in value]
    if isinstance(value, dict):
        return {masked(key): masked_json(item) for key, item in value.items()}
    return value


class MaskedStream:
    """Masks a text that comes in pieces: what may grow into a secret waits until it is whole."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        self._text += piece
        growing = _OPEN.search(self._text)
        return self._show(max(self._shown, growing.start()) if growing else len(self._text))

    def rest(self) -> str:
        """What waited in vain."""
        return self._show(len(self._text))

    def _show(self, end: int) -> str:
        shown = masked(self._text[:end], self._shown)
        seen = max(0, end - _LOOKED_BACK)
        self._text, self._shown = self._text[seen:], end - seen
        return shown
