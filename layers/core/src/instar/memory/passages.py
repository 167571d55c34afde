"""Markdown to passages: pure, deterministic, the same for every engine.

A passage is a turn of a transcript, or a paragraph, list item or group of table rows of a note;
what is longer than some 200 tokens becomes windows of sentences, a fence stays whole while it
fits. Headings and front matter are no passages of their own: they stand in the `header` of those
below them, with the day written out. Every line of a document lies in the span of some passage,
and no passage is longer than PASSAGE_TOKENS.

The id comes from the key, the headings and the text, not from the place: a passage that only
moved keeps its id, its vector and its citations.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from instar.ids import AgentId
from instar.memory.analysis import folded, word_count
from instar.memory.blocks import Block, blocks, front_values, speaker_of, undressed
from instar.memory.dates import find_moment, written_out
from instar.memory.ports import Kind, Passage, Trust

PASSAGE_TOKENS = 2_000
WINDOW_TOKENS = 200
WHOLE_TOKENS = 1_900
CONTEXT_UNITS = 2
CONTEXT_TOKENS = 100
EMBEDDED_TOKENS = 400
FRONT_TOKENS = 100
GAP_LINES = 50
HEADER_CHARACTERS = 400

_SENTENCE = re.compile(r"(?<=[.!?…])[\"')\]”’]*\s+|[。！？]+[\"”’』」）]*\s*")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a document is besides its text. `name` is its name within the agent."""

    key: str
    name: str
    agent: AgentId
    kind: Kind
    trust: Trust
    revision: str
    at: datetime


def tokens(text: str) -> float:
    """The size of a text in tokens: a quarter of an ASCII character, three quarters of another."""
    if text.isascii():
        return len(text) / 4
    ascii_characters = len(text.encode("ascii", "ignore"))
    return ascii_characters / 4 + (len(text) - ascii_characters) * 0.75


def embedded_text(passage: Passage) -> str:
    """What the vector of a passage is made of: its text, then the text around it."""
    return clipped(f"{passage.text}\n{passage.context}".strip(), EMBEDDED_TOKENS)


def clipped(text: str, limit_tokens: int) -> str:
    """The beginning of a text that has at most so many tokens."""
    return text if tokens(text) <= limit_tokens else text[: _fitting(text, limit_tokens)]


def passages(text: str, source: Source) -> list[Passage]:
    """The passages of a document in order; none when it holds nothing but blank lines."""
    lines = text.removeprefix("\ufeff").splitlines()
    units = list(_units(lines, joins_turns=source.kind == "transcript"))
    windows = [window for unit in units for window in _windows(unit)]
    _cover(windows, lines)
    return list(_finished(windows, lines, source))


@dataclass(frozen=True, slots=True)
class _Piece:
    """The least that is not split: a line, a fence or a part of a line. Lines count from 0."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class _Unit:
    """What one passage is made of, or several windows."""

    first: int
    headings: tuple[str, ...]
    speaker: str = ""
    pieces: list[_Piece] = field(default_factory=list)


@dataclass(slots=True)
class _Window:
    """A passage in the making; `start` and `end` are its span, end exclusive."""

    unit: _Unit
    pieces: Sequence[_Piece]
    start: int
    end: int = 0


def _units(lines: Sequence[str], *, joins_turns: bool) -> Iterator[_Unit]:
    path: list[tuple[int, str]] = []
    first: int | None = None
    turn: _Unit | None = None
    found: list[Block | None] = [*blocks(lines), None]
    for block, following in pairwise(found):
        if block is None:
            break
        first = block.start if first is None else first
        if block.kind in {"heading", "front"}:
            if turn:
                yield turn
                turn = None
            _descend(path, block, lines)
            if _is_absorbed(block, following, lines):
                continue
            yield _unit(first, tuple(t for _, t in path), block, lines)
            first = None
            continue
        unit = _unit(first, tuple(t for _, t in path), block, lines)
        first = None
        if turn and block.kind != "turn":
            turn.pieces.extend(unit.pieces)
            continue
        if turn:
            yield turn
        turn = unit if joins_turns and block.kind == "turn" else None
        if turn is None:
            yield unit
    if turn:
        yield turn


def _descend(path: list[tuple[int, str]], block: Block, lines: Sequence[str]) -> None:
    if block.kind == "front":
        title, values = front_values(lines[block.start : block.end])
        text = f"{title} ({values})" if title and values else title or values
        path.append((0, text[:HEADER_CHARACTERS]))
        return
    while path and path[-1][0] >= block.level:
        path.pop()
    path.append((block.level, block.title))


def _is_absorbed(block: Block, following: Block | None, lines: Sequence[str]) -> bool:
    """Whether the lines of a heading or front matter go into the passage below them."""
    if following is None or following.start - block.end > GAP_LINES:
        return False
    if block.kind == "front":
        return tokens("\n".join(lines[block.start : block.end])) <= FRONT_TOKENS
    return following.kind != "heading" or following.level > block.level


def _unit(first: int, headings: tuple[str, ...], block: Block, lines: Sequence[str]) -> _Unit:
    unit = _Unit(first, headings)
    whole = "\n".join(lines[block.start : block.end])
    if block.kind in {"turn", "item"}:
        unit.speaker = speaker_of(lines[block.start])
    if block.kind == "fence" and tokens(whole) <= WHOLE_TOKENS:
        unit.pieces.append(_Piece(block.start, block.end, whole))
        return unit
    for number in range(block.start, block.end):
        unit.pieces.extend(_Piece(number, number + 1, part) for part in _parts(lines[number]))
    return unit


def _parts(line: str) -> list[str]:
    """A line in parts of at most a window: sentences, then words, then characters."""
    if tokens(line) <= WINDOW_TOKENS:
        return [line]
    ends = [match.end() for match in _SENTENCE.finditer(line)]
    sentences = [line[a:b] for a, b in zip([0, *ends], [*ends, len(line)], strict=True) if a < b]
    parts = list[str]()
    for sentence in sentences:
        at = 0
        while at < len(sentence):
            cut = at + _fitting(sentence[at : at + 4 * WINDOW_TOKENS + 1], WINDOW_TOKENS)
            space = sentence.rfind(" ", at + 1, cut)
            if cut < len(sentence) and space > (at + cut) // 2:
                cut = space + 1
            parts.append(sentence[at:cut])
            at = cut
    return parts


def _fitting(text: str, limit_tokens: int) -> int:
    """How many characters of a text make at most so many tokens; at least one."""
    if text.isascii():
        return max(1, 4 * limit_tokens)
    size = 0.0
    for count, character in enumerate(text):
        size += 0.25 if character.isascii() else 0.75
        if size > limit_tokens:
            return max(1, count)
    return len(text)


def _windows(unit: _Unit) -> Iterator[_Window]:
    """A unit as one window, or as several that end where a sentence does if they can."""
    sizes = [tokens(piece.text) for piece in unit.pieces]
    start, size, sentence_end = 0, 0.0, 0
    for at, piece in enumerate(unit.pieces):
        if at > start and size + sizes[at] > WINDOW_TOKENS:
            cut = sentence_end if sentence_end > (start + at) // 2 else at
            yield _Window(unit, unit.pieces[start:cut], unit.pieces[start].start)
            start, size = cut, sum(sizes[cut:at])
            sentence_end = 0
        size += sizes[at] + 0.25
        if piece.text.rstrip().endswith((".", "!", "?", "。", "！", "？", "…", ":")):
            sentence_end = at + 1
    yield _Window(unit, unit.pieces[start:], unit.pieces[start].start)


def _cover(windows: Sequence[_Window], lines: Sequence[str]) -> None:
    """Gives every line to a window: headings to the one below them, blank lines to that above."""
    for window in windows:
        if window.pieces[0] is window.unit.pieces[0]:
            window.start = window.unit.first
    if windows:
        windows[0].start = 0
    for window, following in pairwise(windows):
        window.end = max(following.start, window.pieces[-1].end)
    if windows:
        windows[-1].end = len(lines)


def _finished(
    windows: Sequence[_Window], lines: Sequence[str], source: Source
) -> Iterator[Passage]:
    bodies = [_body(window) for window in windows]
    seen: Counter[str] = Counter()
    headers: dict[tuple[str, ...], tuple[str, datetime | None]] = {}
    for ordinal, (window, body) in enumerate(zip(windows, bodies, strict=True)):
        headings = window.unit.headings
        if headings not in headers:
            headers[headings] = _header(headings, source)
        header, moment = headers[headings]
        content = _content(window)
        identity = _digest(source.key, *headings, "", _normalised(content))
        seen[identity] += 1
        yield Passage(
            id=_digest(identity, str(seen[identity]))[:32],
            key=source.key,
            agent=source.agent,
            start_line=window.start + 1,
            end_line=window.end,
            ordinal=ordinal,
            text=_text(window, content, lines),
            body=body,
            speaker=window.unit.speaker,
            context=_context(bodies, ordinal),
            header=header,
            kind=source.kind,
            trust=source.trust,
            revision=source.revision,
            at=moment or source.at,
            words=word_count(body),
            asks=content.rstrip().endswith(("?", "？")),
        )


def _content(window: _Window) -> str:
    """The window's pieces as they stand in the document."""
    parts, at = [window.pieces[0].text], window.pieces[0].end
    for piece in window.pieces[1:]:
        parts.append("\n" * min(piece.start - at + 1, 2) + piece.text)
        at = piece.end
    return "".join(parts)


def _text(window: _Window, content: str, lines: Sequence[str]) -> str:
    """The content under the headings that stand above it, without blank lines around it."""
    above = [*lines[window.start : window.pieces[0].start], content]
    while above and not above[0].strip():
        above.pop(0)
    text = "\n".join(above).rstrip()
    return text if tokens(text) <= PASSAGE_TOKENS else content.strip("\n")


def _body(window: _Window) -> str:
    """The content without the marks that only dress it."""
    content = _content(window)
    first, newline, rest = content.partition("\n")
    return (undressed(first) + newline + rest).strip() or content.strip()


def _header(headings: tuple[str, ...], source: Source) -> tuple[str, datetime | None]:
    """Title and headings, the day they or the name tell, and the name where it says more."""
    name = source.name.rpartition("/")[2].removesuffix(".md")
    header = " > ".join(heading for heading in headings if heading)
    known = {_bare(word) for word in header.split()}
    moments = (find_moment(folded(text)) for text in (*reversed(headings), name))
    moment = next((found for found in moments if found), None)
    if moment:
        missing = [word for word in written_out(moment).split() if _bare(word) not in known]
        header = " ".join([header, *missing]).strip()
    if folded(name) not in folded(header):
        header = f"{header} {name}".strip()
    return header[: 3 * HEADER_CHARACTERS], moment


def _bare(word: str) -> str:
    return folded(word).strip(" ,.:;()")


def _context(bodies: Sequence[str], at: int) -> str:
    before = [_tail(body) for body in bodies[max(0, at - CONTEXT_UNITS) : at]]
    after = [clipped(body, CONTEXT_TOKENS) for body in bodies[at + 1 : at + 1 + CONTEXT_UNITS]]
    return "\n".join([*before, *after])


def _tail(text: str) -> str:
    if tokens(text) <= CONTEXT_TOKENS:
        return text
    return clipped(text[::-1], CONTEXT_TOKENS)[::-1]


def _normalised(text: str) -> str:
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
