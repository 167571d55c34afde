"""Fenced code blocks in Markdown, line by line (pure): shared by rendering and splitting."""

import re
from dataclasses import dataclass

_OPENS = re.compile(r"(?P<indent>[ \t]*)(?P<marks>`{3,40}(?!`)|~{3,40}(?!~))(?P<info>[^\n]*)")


@dataclass(frozen=True, slots=True)
class Fence:
    """An open code block: its marks (three or more) and the language behind them."""

    marks: str
    language: str

    def is_closed_by(self, line: str) -> bool:
        """Whether the line ends the block."""
        stripped = line.strip()
        return len(stripped) >= len(self.marks) and set(stripped) == {self.marks[0]}


def opening(line: str) -> Fence | None:
    """The block that the line opens."""
    match = _OPENS.match(line)
    if match is None or (match["marks"][0] == "`" and "`" in match["info"]):
        return None
    words = match["info"].split()
    return Fence(match["marks"], words[0][:40] if words else "")


def after(fence: Fence | None, text: str) -> Fence | None:
    """The block that is open behind the text's lines, when `fence` was open before."""
    for line in text.split("\n"):
        if fence is None:
            fence = opening(line)
        elif fence.is_closed_by(line):
            fence = None
    return fence
