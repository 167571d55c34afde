"""Markdown lines to blocks: headings, turns, list items, paragraphs, tables, fences, front matter.

Only what recall needs: where each block begins and ends. Blank lines and rules belong to none.
Anything that does not parse (an unclosed fence, unclosed front matter) is text. Linear time.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

BlockKind = Literal["front", "heading", "turn", "item", "paragraph", "table", "fence"]

HEADING_CHARACTERS = 160

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_TURN = re.compile(r"\*\*([^*\n]{1,80}?)[:：]\*\*[ \t]?")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)(?:\[[ xX]\][ \t]+)?")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_RULE = re.compile(r" {0,3}([-*_=])[ \t]*(?:\1[ \t]*){2,}$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_QUOTE = re.compile(r"[ \t]*(?:>[ \t]?)+")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines `start` to `end` (from 0, end exclusive); `level` and `title` are a heading's."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    title: str = ""


def speaker_of(line: str) -> str:
    """Who speaks in a first line (`**Name:** text`, also as a list item), or ""."""
    item = _ITEM.match(line)
    match = _TURN.match(line, item.end() if item else 0)
    return match[1].strip() if match else ""


def undressed(line: str) -> str:
    """A line without its quote, list or speaker mark."""
    for pattern in (_QUOTE, _ITEM, _TURN):
        match = pattern.match(line)
        if match:
            line = line[match.end() :]
    return line


def front_values(lines: Sequence[str]) -> tuple[str, str]:
    """The title and the other values of front matter, read leniently, never as YAML."""
    title, values = "", list[str]()
    for line in lines:
        name, colon, value = line.partition(":")
        value = (value if colon else line.strip().removeprefix("-")).strip(" \t[]'\"")
        if not value or line.strip() == "---":
            continue
        if name.strip().lower() == "title" and not title:
            title = value
        else:
            values.append(value)
    return title, ", ".join(values)


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """The blocks of a document in order."""
    closes = _FenceEnds(lines)
    at = _front_end(lines)
    if at:
        yield Block("front", 0, at)
    while at < len(lines):
        if _is_gap(lines[at]):
            at += 1
            continue
        block = _block_at(lines, at, closes)
        yield block
        at = block.end


def _front_end(lines: Sequence[str]) -> int:
    if not lines or lines[0].rstrip() != "---":
        return 0
    for number, line in enumerate(lines[1:200], 1):
        if line.rstrip() in {"---", "..."}:
            is_data = all(_is_field(inner) for inner in lines[1:number])
            return number + 1 if is_data and number > 1 else 0
    return 0


def _is_field(line: str) -> bool:
    return not line.strip() or ":" in line or line.startswith((" ", "\t", "-", "#"))


def _is_gap(line: str) -> bool:
    return not line.strip() or bool(_RULE.match(line))


def _block_at(lines: Sequence[str], at: int, closes: "_FenceEnds") -> Block:
    line = lines[at]
    end = closes.end(at)
    if end:
        return Block("fence", at, end)
    heading = _HEADING.match(line)
    if heading and len(line) <= HEADING_CHARACTERS:
        title = line[heading.end() :].strip()
        return Block("heading", at, at + 1, len(heading[1]), title.rstrip("#").rstrip() or title)
    if line.lstrip().startswith("|"):
        end = at + 1
        while end < len(lines) and lines[end].lstrip().startswith("|"):
            end += 1
        return Block("table", at, end)
    if at + 1 < len(lines) and len(line) <= HEADING_CHARACTERS and not _opens(line):
        underline = _UNDERLINE.match(lines[at + 1])
        if underline:
            return Block("heading", at, at + 2, 1 if underline[1][0] == "=" else 2, line.strip())
    kind: BlockKind = "paragraph"
    if _TURN.match(line):
        kind = "turn"
    elif _ITEM.match(line):
        kind = "item"
    return Block(kind, at, _text_end(lines, at, closes))


def _text_end(lines: Sequence[str], at: int, closes: "_FenceEnds") -> int:
    end = at + 1
    while end < len(lines):
        line = lines[end]
        if _is_gap(line) or _opens(line) or line.lstrip().startswith("|") or closes.end(end):
            break
        end += 1
    return end


def _opens(line: str) -> bool:
    return bool(_TURN.match(line) or _ITEM.match(line) or _HEADING.match(line))


class _FenceEnds:
    """Finds where a fence ends; remembers which marks are never closed, so that it stays linear."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._unclosed = {"`": 1_000_000, "~": 1_000_000}
        self._known: dict[int, int] = {}

    def end(self, at: int) -> int:
        """The line after the fence that opens at a line, 0 when none does."""
        match = _FENCE.match(self._lines[at])
        if not match:
            return 0
        if at not in self._known:
            self._known[at] = self._find(at, match[1])
        return self._known[at]

    def _find(self, at: int, mark: str) -> int:
        if len(mark) >= self._unclosed[mark[0]]:
            return 0
        for number in range(at + 1, len(self._lines)):
            line = self._lines[number].strip()
            if line.startswith(mark) and not line.strip(mark[0]):
                return number + 1
        self._unclosed[mark[0]] = len(mark)
        return 0
