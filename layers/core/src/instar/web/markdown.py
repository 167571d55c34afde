"""Markdown of models and people as HTML that is safe to show.

Two locks: the parser knows no raw HTML (it comes out as text), and what it makes passes a cleaner
that knows a list of harmless tags. Links lead to http, https and mail addresses only; an image
could tell a stranger that it was looked at, so its description stands in its place.
"""

import html
from collections.abc import Sequence

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

RENDERED_CHARACTERS = 100_000
_INLINE = ("a", "br", "code", "del", "em", "s", "strong")
_BLOCKS = ("blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul")
_TABLES = ("table", "tbody", "td", "th", "thead", "tr")
TAGS = frozenset({*_INLINE, *_BLOCKS, *_TABLES})
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
SCHEMES = frozenset({"http", "https", "mailto"})


def rendered(text: str) -> str:
    """The HTML of a Markdown text. What is very long stays plain text."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) > RENDERED_CHARACTERS:
        return f"<pre>{html.escape(text)}</pre>"
    return nh3.clean(
        _PARSER.render(text),
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _described(
    renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    """An image as its description."""
    described = tokens[index].content.strip()
    return f"[{html.escape(described)}]" if described else ""


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("image", _described)
    return parser


_PARSER = _parser()
