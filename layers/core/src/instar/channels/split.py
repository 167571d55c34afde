"""Long Markdown into parts that fit a platform's limit (pure).

A part's size is what the given function measures, after all decoration. Parts end at a paragraph,
else a line, else a word, else between two characters as people see them; a code block that has to
be torn is closed and opened again. Without the added fences the parts' bodies are the text.
"""

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from instar.channels.fences import Fence, after

Measure = Callable[[str], int]

SMALLEST_LIMIT = 64
_ZERO_WIDTH_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part: a stretch of the text between the fences that make it whole."""

    opening: str
    body: str
    closing: str

    @property
    def text(self) -> str:
        """The part as it is sent."""
        return f"{self.opening}{self.body}{self.closing}"


def utf16_units(text: str) -> int:
    """The length as Telegram, JavaScript and Java count it."""
    return len(text) + sum(character > "\uffff" for character in text)


def split(text: str, limit: int, measure: Measure = utf16_units) -> tuple[str, ...]:
    """The parts as they are sent; blank ones are left out. A text that fits is one part."""
    return tuple(piece.text for piece in pieces(text, limit, measure) if piece.body.strip())


def pieces(text: str, limit: int, measure: Measure = utf16_units) -> tuple[Piece, ...]:
    """The parts with their bodies, which joined are the text."""
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"a limit of {limit} is too small to split for")
    if measure(text) <= limit:
        return (Piece("", text, ""),) if text else ()
    found = []
    position, fence = 0, None
    while position < len(text):
        piece, fence = _next_piece(text, position, fence, limit, measure)
        found.append(piece)
        position += len(piece.body)
    return tuple(found)


def _next_piece(
    text: str, start: int, fence: Fence | None, limit: int, measure: Measure
) -> tuple[Piece, Fence | None]:
    """The largest good part from here on."""
    if len(text) - start <= limit * 8:
        rest = _piece(text[start:], fence)
        if measure(rest.text) <= limit:
            return rest, None
    low, high = start + 1, min(len(text), start + limit * 8)
    while low < high:  # the longest stretch that fits
        middle = (low + high + 1) // 2
        if measure(_piece(text[start:middle], fence).text) <= limit:
            low = middle
        else:
            high = middle - 1
    for end in _good_ends(text, start, low):
        piece = _piece(text[start:end], fence)
        if measure(piece.text) <= limit:
            return piece, after(fence, piece.body)
    piece = _piece(text[start:low], fence)
    return piece, after(fence, piece.body)


def _piece(body: str, fence: Fence | None) -> Piece:
    """The body with the fences it needs."""
    opened = f"{fence.marks}{fence.language}\n" if fence else ""
    still_open = after(fence, body)
    if still_open is None:
        return Piece(opened, body, "")
    line_break = "" if body.endswith("\n") else "\n"
    return Piece(opened, body, f"{line_break}{still_open.marks}")


def _good_ends(text: str, start: int, most: int) -> Iterator[int]:
    """Ends up to `most`, the best kind first; none makes a part smaller than half of what fits."""
    least = start + (most - start) // 2
    for mark in ("\n\n", "\n", " "):
        at = text.rfind(mark, least, most)
        if at > start:
            yield at + len(mark)
    end = most
    while end > max(start + 1, most - 64) and not _is_between_characters(text, end):
        end -= 1
    yield end if _is_between_characters(text, end) else most


def _is_between_characters(text: str, at: int) -> bool:
    """Whether a cut here tears no character as people see it (an approximation of UAX 29)."""
    if at >= len(text):
        return True
    before, behind = text[at - 1], text[at]
    if before == "\r" and behind == "\n":
        return False
    if _ZERO_WIDTH_JOINER in (before, behind) or unicodedata.category(behind) in ("Mn", "Me", "Mc"):
        return False
    if "\U0001f3fb" <= behind <= "\U0001f3ff" or "\U000e0020" <= behind <= "\U000e007f":
        return False
    if not _is_regional(before) or not _is_regional(behind):
        return True
    run = len(text[:at]) - len(text[:at].rstrip("".join(_REGIONAL)))
    return run % 2 == 0


_REGIONAL = tuple(chr(code) for code in range(0x1F1E6, 0x1F200))


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
