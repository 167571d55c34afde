"""Text that can be stored and sent: halves of a surrogate pair are joined or replaced (pure)."""

import json
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """The text with pairs joined to one character and lone halves replaced by U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def well_formed_json(value: Any) -> Any:
    """The same for every string of a JSON value."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [well_formed_json(item) for item in value]
    if isinstance(value, dict):
        return {well_formed(key): well_formed_json(item) for key, item in value.items()}
    return value


def json_bytes(value: Any) -> bytes:
    """The value as UTF-8 JSON that any strict parser takes."""
    return well_formed(json.dumps(value, ensure_ascii=False, allow_nan=False)).encode()


class PieceJoiner:
    """Joins characters that a stream tore in two: a first half waits for the next piece."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        text = self._held + piece
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return well_formed(text)

    def rest(self) -> str:
        """What waited in vain."""
        held, self._held = self._held, ""
        return well_formed(held)
