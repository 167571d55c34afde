"""Pure edits of Markdown text: append a statement, replace everything, remove a statement.

Each is applied to whatever the document is now; applying it again to a newer text is the merge.
Line ends of the document (LF or CRLF) are kept.
"""

import re

from instar.errors import NotFound
from instar.memory.claims import claims, normalised

_BULLET = re.compile(r"^\s*[-*+]\s")
_STRUCTURE = re.compile(r"^\s*(?:[-*+]\s|\d{1,9}[.)]\s|#{1,6}\s|>|```|~~~|\|)")
# From Thai on many scripts put no spaces between words; before it two letters are one word.
_NO_SPACES_FROM = "\u0e00"
_BARE_MARK = re.compile(r"^\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])?\s*(?:\[[ xX]\]\s*)?$")


def appended(text: str | None, content: str) -> str:
    """The document with the content at its end.

    A single line of prose becomes a list item; content with a structure of its own stays as it is
    and stands apart by a blank line.
    """
    content = content.strip("\r\n")
    is_item = "\n" not in content and not _STRUCTURE.match(content)
    block = f"- {content.strip()}" if is_item else content
    if not text:
        return block + "\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block.replace("\r\n", "\n").replace("\n", newline)
    head = text.rstrip("\r\n \t")
    lines = head.splitlines()
    is_bullet = "\n" not in block and _BULLET.match(block) is not None
    tight = is_bullet and bool(lines) and _BULLET.match(lines[-1]) is not None
    gap = newline if tight else newline * 2
    return (head + gap if head else "") + block + newline


def matching_lines(text: str, content: str) -> list[tuple[int, int]]:
    """Line spans (from 1, inclusive) of the claims or single lines that say the content."""
    wanted = normalised(content)
    if not wanted:
        return []
    spans = [
        (claim.start_line, claim.end_line)
        for claim in claims(text)
        if normalised(claim.text) == wanted
    ]
    if spans:
        return spans
    return [
        (number, number)
        for number, line in enumerate(text.splitlines(), 1)
        if normalised(line) == wanted
    ]


def says(text: str, content: str) -> bool:
    """Whether `without` would find the content in the document."""
    return bool(matching_lines(text, content)) or _word_for_word(text, content) is not None


def without(text: str, content: str) -> str:
    """The document without every claim or line that says the content, else without the content
    where it stands word for word, once. Raises NotFound when it says it nowhere, or word for word
    in several places inside other statements.
    """
    spans = matching_lines(text, content)
    if spans:
        return _without_lines(text, spans)
    place = _word_for_word(text, content)
    if place is None:
        raise NotFound(f"the document does not say {content[:120]!r} in one place")
    start, end = place
    number = len(f"{text[:start]}.".splitlines())
    rest = text[:start] + text[end:]
    lines = rest.splitlines()
    if number <= len(lines) and _BARE_MARK.match(lines[number - 1]):
        return _without_lines(rest, [(number, number)])
    return rest


def _word_for_word(text: str, content: str) -> tuple[int, int] | None:
    """Where the content stands once, line ends of either kind; never a part of a word."""
    if not content.strip():
        return None
    lines = content.replace("\r\n", "\n").split("\n")
    pattern = "\r?\n".join(re.escape(line) for line in lines)
    spans = (match.span() for match in re.finditer(pattern, text))
    found = [span for span in spans if not _cuts_a_word(text, *span)]
    return found[0] if len(found) == 1 else None


def _cuts_a_word(text: str, start: int, end: int) -> bool:
    sides = [text[at - 1 : at + 1] for at in (start, end) if 0 < at < len(text)]
    return any(side.isalnum() and max(side) < _NO_SPACES_FROM for side in sides)


def _without_lines(text: str, spans: list[tuple[int, int]]) -> str:
    """Drops the lines, and one of two blank lines that meet where something was."""
    lines = text.splitlines(keepends=True)
    gone = {number for start, end in spans for number in range(start, end + 1)}
    kept: list[str] = []
    dropped_before = False
    for number, line in enumerate(lines, 1):
        if number in gone:
            dropped_before = True
            continue
        doubles = not line.strip() and (not kept or not kept[-1].strip())
        if not (dropped_before and doubles):
            kept.append(line)
        dropped_before = dropped_before and doubles
    return "".join(kept)
