"""Statements in Markdown: what one says apart from its dress, where it stands, how it is marked.

A claim is one remembered statement: a list item, a paragraph or a line. Two claims are the same
when their normalised forms are equal; a tombstone keeps only HMACs of normalised forms.
"""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_DRESS = re.compile(r"^\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)]|#{1,6})\s+(?:\[[ xX]\]\s+)?")
# Marks between two letters or digits ("snake_case", "2*3") belong to the word.
_EMPHASIS = re.compile(r"(?<![^\W_])[*_`]+|[*_`]+(?![^\W_])")
_SPACE = re.compile(r"\s+")
_ENDS = " .!?;,。！？；，"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and the lines it stands on, from 1, inclusive."""

    text: str
    start_line: int
    end_line: int


def normalised(text: str) -> str:
    """The statement without list marks, emphasis, case, odd spaces and closing punctuation."""
    text = _DRESS.sub("", unicodedata.normalize("NFKC", text))
    text = _SPACE.sub(" ", _EMPHASIS.sub("", text)).strip().casefold()
    return text.strip(_ENDS)


def claims(text: str) -> Iterator[Claim]:
    """The claims of a document: each list item with its continuation lines, each paragraph."""
    start, lines = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        opens = bool(_DRESS.match(line))
        if lines and (opens or not line.strip()):
            yield Claim("\n".join(lines), start, number - 1)
            lines = []
        if line.strip():
            if not lines:
                start = number
            lines.append(line)
    if lines:
        yield Claim("\n".join(lines), start, start + len(lines) - 1)


def marks(text: str, key: bytes) -> list[str]:
    """The tombstone marks of a text: of the whole, and of each claim and line in it."""
    forms = {normalised(text)}
    for claim in claims(text):
        forms.add(normalised(claim.text))
        forms |= {normalised(line) for line in claim.text.splitlines()}
    return sorted(
        hmac.new(key, form.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        for form in forms
        if form
    )
