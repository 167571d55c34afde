"""Inline Markdown to Telegram's HTML (pure): emphasis, code, links; all else is escaped text.

One pass over the text and one stack per mark, so the time is linear and tags always nest. A mark
without its partner stays visible.
"""

import html
import re
import unicodedata
from collections.abc import Mapping

_TOKEN = re.compile(
    r"""
    \\(?P<escaped>[!-/:-@\[-`{-~])
    | (?<!`)(?P<ticks>`++)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)
    | (?P<image>!?)\[(?P<label>[^\[\]\n]{1,500})\]
      \(\s*(?P<target>[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)(?:\s+"[^"\n]*")?\s*\)
    | <(?P<auto>(?:https?://|mailto:)[^\s<>]+)>
    | (?P<bare>https?://[^\s<>]+)
    | (?P<mark>\*{1,3}|_{1,3}|~~)
    """,
    re.VERBOSE | re.DOTALL,
)
_LINK = re.compile(r"(?:https?://[^\s]+|mailto:[^\s]+)", re.IGNORECASE)
_TAGS: Mapping[str, tuple[str, str]] = {
    "*": ("<i>", "</i>"),
    "_": ("<i>", "</i>"),
    "**": ("<b>", "</b>"),
    "__": ("<b>", "</b>"),
    "***": ("<b><i>", "</i></b>"),
    "___": ("<b><i>", "</i></b>"),
    "~~": ("<s>", "</s>"),
}


def escape(text: str) -> str:
    """Text as it may stand between tags."""
    return html.escape(text, quote=False)


def inline_html(text: str) -> str:
    """A paragraph, heading, item or cell."""
    out: list[str] = []
    open_marks: dict[str, list[int]] = {}
    position = 0
    for token in _TOKEN.finditer(text):
        out.append(escape(text[position : token.start()]))
        position = token.end()
        mark = token["mark"]
        if mark is None:
            out.append(_leaf(token))
        else:
            _place(mark, token, text, out, open_marks)
    out.append(escape(text[position:]))
    return "".join(out)


def _place(
    mark: str, token: re.Match[str], text: str, out: list[str], open_marks: dict[str, list[int]]
) -> None:
    """Closes the mark's pair, or remembers it as a beginning; until then it is literal."""
    before = text[token.start() - 1] if token.start() else " "
    behind = text[token.end()] if token.end() < len(text) else " "
    out.append(escape(mark))
    begins = open_marks.setdefault(mark, [])
    if begins and _can_close(mark, before, behind):
        begin = begins[-1]
        out[begin], out[-1] = _TAGS[mark]
        for positions in open_marks.values():
            while positions and positions[-1] >= begin:
                positions.pop()
    elif _can_close(mark[0], behind, before):
        begins.append(len(out) - 1)


def _can_close(mark: str, inner: str, outer: str) -> bool:
    """CommonMark's flanking rule, seen from inside the pair; the mirror image opens."""
    if inner.isspace():
        return False
    if mark[0] == "_" and outer.isalnum():
        return False
    return not _is_punctuation(inner) or outer.isspace() or _is_punctuation(outer)


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _leaf(token: re.Match[str]) -> str:
    """What has no marks inside."""
    if token["escaped"] is not None:
        return escape(token["escaped"])
    if token["code"] is not None:
        return f"<code>{escape(_trimmed(token['code']))}</code>"
    if token["label"] is not None:
        return _link(token["label"], token["target"], escape(token[0]))
    if token["auto"] is not None:
        return _link(token["auto"], token["auto"], escape(token[0]))
    return escape(token[0])


def _link(label: str, target: str, literal: str) -> str:
    """A link, or the source text when the target is of another kind."""
    if not _LINK.fullmatch(target):
        return literal
    shown = escape(label) if label == target else inline_html(label)
    if "<a " in shown:
        return literal
    return f'<a href="{html.escape(target)}">{shown}</a>'


def _trimmed(code: str) -> str:
    """CommonMark's rule for a code span with spaces at both ends."""
    padded = len(code) > 2 and code[0] == code[-1] == " " and code.strip()
    return code[1:-1] if padded else code
