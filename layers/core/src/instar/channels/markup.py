"""Markdown to the dialects of channels (pure). Here: Telegram's HTML.

Whatever a dialect lacks is shown as text: headings in bold, items with a bullet, tables in columns
of fixed width, links of unknown kinds as they were written. No word is lost, everything is escaped.
"""

import html
import re
import unicodedata
from collections.abc import Sequence

from instar.channels.fences import opening
from instar.channels.inline import escape, inline_html

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<text>.*?)(?:[ \t]+#+)?[ \t]*")
_ITEM = re.compile(r"(?P<indent>[ \t]*)[-*+][ \t]+(?P<text>\S.*)")
_QUOTE = re.compile(r" {0,3}>[ ]?(?P<text>.*)")
_RULE = re.compile(r" {0,3}(?:(?:-[ ]*){3,}|(?:\*[ ]*){3,}|(?:_[ ]*){3,})")
_TABLE_RULE = re.compile(r"[ ]*\|?[ ]*:?-+:?[ ]*(?:\|[ ]*:?-+:?[ ]*)*\|?[ ]*")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_TAG = re.compile(r"<[^<>]*>")


def telegram_html(markdown: str) -> str:
    """The HTML that Telegram's `parse_mode` takes."""
    return _blocks(markdown.split("\n"), quoted=False)


def visible(telegram: str) -> str:
    """What a person sees of it: the text after entity parsing."""
    return html.unescape(_TAG.sub("", telegram))


def _blocks(lines: Sequence[str], *, quoted: bool) -> str:
    out: list[str] = []
    position = 0
    while position < len(lines):
        rendered, position = _block(lines, position, quoted=quoted)
        if rendered is not None:
            out.append(rendered)
    return "\n".join(out)


def _block(lines: Sequence[str], at: int, *, quoted: bool) -> tuple[str | None, int]:
    """The block that begins at this line and where the next one begins."""
    line = lines[at]
    if opening(line):
        return _code(lines, at)
    if _is_table(lines, at):
        return _table(lines, at)
    if not quoted and _QUOTE.fullmatch(line):
        return _quote(lines, at)
    if _RULE.fullmatch(line):
        return escape(line), at + 1
    heading = _HEADING.fullmatch(line)
    if heading:
        return f"<b>{inline_html(heading['text'])}</b>" if heading["text"] else "", at + 1
    item = _ITEM.fullmatch(line)
    if item:
        return f"{item['indent']}• {inline_html(item['text'])}", at + 1
    end = at + 1
    while end < len(lines) and _goes_on(lines, end, quoted=quoted):
        end += 1
    return inline_html("\n".join(lines[at:end])), end


def _goes_on(lines: Sequence[str], at: int, *, quoted: bool) -> bool:
    """Whether the line belongs to the paragraph before it."""
    line = lines[at]
    begins = (
        not line.strip()
        or not lines[at - 1].strip()
        or opening(line)
        or _is_table(lines, at)
        or (not quoted and _QUOTE.fullmatch(line))
        or any(pattern.fullmatch(line) for pattern in (_RULE, _HEADING, _ITEM))
    )
    return not begins


def _code(lines: Sequence[str], at: int) -> tuple[str | None, int]:
    fence = opening(lines[at])
    end = at + 1
    while end < len(lines) and fence and not fence.is_closed_by(lines[end]):
        end += 1
    code = escape("\n".join(lines[at + 1 : end]))
    if not code.strip():
        return None, end + 1
    language = html.escape(fence.language) if fence else ""
    if language:
        return f'<pre><code class="language-{language}">{code}</code></pre>', end + 1
    return f"<pre>{code}</pre>", end + 1


def _quote(lines: Sequence[str], at: int) -> tuple[str, int]:
    inner = []
    end = at
    while end < len(lines) and (match := _QUOTE.fullmatch(lines[end])):
        inner.append(match["text"])
        end += 1
    rendered = _blocks(inner, quoted=True)
    return (f"<blockquote>{rendered}</blockquote>" if rendered.strip() else ""), end


def _is_table(lines: Sequence[str], at: int) -> bool:
    return (
        at + 1 < len(lines)
        and "|" in lines[at]
        and "|" in lines[at + 1]
        and bool(_TABLE_RULE.fullmatch(lines[at + 1]))
    )


def _table(lines: Sequence[str], at: int) -> tuple[str, int]:
    """Columns of fixed width, with a line below the head."""
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    rows = [_cells(line) for line in (lines[at], *lines[at + 2 : end])]
    columns = max(len(row) for row in rows)
    widths = [max(_width(row[n]) if n < len(row) else 0 for row in rows) for n in range(columns)]
    drawn = [
        " | ".join(
            cell + " " * (width - _width(cell))
            for cell, width in zip(row + [""] * columns, widths, strict=False)
        ).rstrip()
        for row in rows
    ]
    drawn.insert(1, "-+-".join("-" * width for width in widths))
    return f"<pre>{escape(chr(10).join(drawn))}</pre>", end


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in _CELL_BORDER.split(inner)]


def _width(text: str) -> int:
    """Columns on a screen: wide characters take two, marks none."""
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
