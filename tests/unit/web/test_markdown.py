"""What a model or a stranger writes becomes harmless HTML."""

import re

import pytest

from instar.web.markdown import RENDERED_CHARACTERS, rendered

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](  javascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "<javascript:alert(1)>",
    '[x](http://a "onmouseover=alert(1)")',
    '[x](http://a" onmouseover="alert(1))',
    "![x](http://evil.example/pixel.png)",
    '![x" onerror="alert(1)](y)',
    "![<img src=x onerror=alert(1)>](y)",
    "```html\n<script>alert(1)</script>\n```",
    "`<script>`",
    "<style>body{display:none}</style>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<!--><script>alert(1)</script>-->",
    "[a]: javascript:alert(1)\n\n[a]",
    "|a|\n|-|\n|<script>alert(1)</script>|",
    "<form action=http://evil><input name=x></form>",
    "\x00<script\x00>alert(1)</script>",
    "# <base href=//evil>",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_runs_loads_or_leads_astray(attack):
    html = rendered(attack)

    tags = re.findall(r"<\s*/?\s*([a-z0-9]+)([^>]*)>", html, re.IGNORECASE)
    harmless = {"p", "a", "code", "pre", "h1", "table", "thead", "tbody", "tr", "th", "td", "br"}
    assert {name.lower() for name, _ in tags} <= harmless
    for name, attributes in tags:
        assert not re.search(r"(?<![\w\"])on\w+\s*=", re.sub(r'"[^"]*"', '""', attributes))
        if name == "a" and "href" in attributes:
            assert re.search(r'href="(https?:|mailto:)', attributes)


def test_links_open_elsewhere_and_tell_nobody_where_from():
    html = rendered("[there](https://example.org/a?b=1&c=2)")

    assert 'href="https://example.org/a?b=1&amp;c=2"' in html
    assert 'rel="noopener noreferrer nofollow"' in html
    assert 'target="_blank"' in html


def test_an_image_is_its_description():
    assert rendered("See ![a red **kite**](https://e/x.png).") == "<p>See [a red **kite**].</p>\n"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**b** *e* `c` ~~s~~", "<p><strong>b</strong> <em>e</em> <code>c</code> <s>s</s></p>\n"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
        ("3. c", '<ol start="3">\n<li>c</li>\n</ol>\n'),
        ("one\ntwo", "<p>one<br>\ntwo</p>\n"),
        ("茶 🍵 ü", "<p>茶 🍵 ü</p>\n"),
        ("", ""),
        ("half \ud83d a pair", "<p>half ? a pair</p>\n"),
    ],
)
def test_ordinary_markdown_reads_as_meant(text, html):
    assert rendered(text) == html


@pytest.mark.parametrize("text", ["[" * 20_000, "> " * 5_000, "*a " * 20_000, "`" * 20_000])
def test_text_made_to_be_slow_still_ends(text):
    assert rendered(text)


def test_what_is_very_long_stays_plain_text():
    html = rendered("<b>" * RENDERED_CHARACTERS)

    assert html.startswith("<pre>&lt;b&gt;")
