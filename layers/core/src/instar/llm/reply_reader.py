"""Reads the "reply" string of a JSON answer while it is still being written (pure)."""

import json
import re

_START = re.compile(r'\s*\{\s*"reply"\s*:\s*"')
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class ReplyReader:
    """Feeds on pieces of JSON and gives back pieces of the decoded reply."""

    def __init__(self) -> None:
        self._raw = ""
        self._at: int | None = None
        self._closed = False

    @property
    def raw(self) -> str:
        """Everything so far."""
        return self._raw

    @property
    def has_started(self) -> bool:
        """Whether the answer is a reply, and not a tool call or something else."""
        return self._at is not None

    def feed(self, piece: str) -> str:
        """What can be decoded now; an escape or a pair that is not complete waits."""
        self._raw += piece
        if self._at is None:
            start = _START.match(self._raw)
            if start is None:
                return ""
            self._at = start.end()
        out = []
        while not self._closed and (step := self._next(self._at)) is not None:
            text, self._at = step
            out.append(text)
        return "".join(out)

    def _next(self, at: int) -> tuple[str, int] | None:
        """The next decoded stretch and where it ends; None when more input is needed."""
        raw = self._raw
        if at >= len(raw):
            return None
        if raw[at] == '"':
            self._closed = True
            return "", at + 1
        if raw[at] != "\\":
            stops = [found for mark in '"\\' if (found := raw.find(mark, at)) >= 0]
            end = min(stops, default=len(raw))
            return raw[at:end], end
        if at + 1 >= len(raw):
            return None
        if raw[at + 1] != "u":
            return _SIMPLE.get(raw[at + 1], raw[at + 1]), at + 2
        return self._unicode(at)

    def _unicode(self, at: int) -> tuple[str, int] | None:
        """An escape of four hex digits, or two that make one character."""
        if at + 6 > len(self._raw):
            return None
        first = self._raw[at : at + 6]
        if not re.fullmatch(r"\\u[dD][89abAB][0-9a-fA-F]{2}", first):
            return _character(first), at + 6
        follows = self._raw[at + 6 : at + 12]
        if len(follows) < 6 and "\\u".startswith(follows[:2]):
            return None
        if re.fullmatch(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}", follows):
            return _character(first + follows), at + 12
        return "\N{REPLACEMENT CHARACTER}", at + 6


def _character(escape: str) -> str:
    try:
        decoded = json.loads(f'"{escape}"')
    except ValueError:
        return "\N{REPLACEMENT CHARACTER}"
    is_half = len(decoded) == 1 and "\ud800" <= decoded <= "\udfff"
    return "\N{REPLACEMENT CHARACTER}" if is_half else str(decoded)
