"""Markdown as Telegram's HTML: valid, escaped, and nothing lost."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.channels.markup import telegram_html, visible


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("plain", "plain"),
        ("**bold** and *it* and ~~no~~", "<b>bold</b> and <i>it</i> and <s>no</s>"),
        ("**a *b* c**", "<b>a <i>b</i> c</b>"),
        ("***both***", "<b><i>both</i></b>"),
        ("*a **b* c**", "<i>a **b</i> c**"),
        ("MY_VAR_NAME __init__", "MY_VAR_NAME <b>init</b>"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("**open", "**open"),
        (r"\*not\*", "*not*"),
        ("`a<b` ``x`y``", "<code>a&lt;b</code> <code>x`y</code>"),
        ("# Head *i*", "<b>Head <i>i</i></b>"),
        ("- one\n  * two", "• one\n  • two"),
        ("> said\n> more", "<blockquote>said\nmore</blockquote>"),
        (
            "[x](https://e.example/a_(b)?q=1&r=2)",
            '<a href="https://e.example/a_(b)?q=1&amp;r=2">x</a>',
        ),
        ("[x](mailto:a@b.example)", '<a href="mailto:a@b.example">x</a>'),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("[x](/etc)", "[x](/etc)"),
        ("see https://e.example/a_b_c*d*", "see https://e.example/a_b_c*d*"),
        ("```py\nx < 1\n```", '<pre><code class="language-py">x &lt; 1</code></pre>'),
        ("~~~\nopen", "<pre>open</pre>"),
        ('```"><b>\nx\n```', '<pre><code class="language-&quot;&gt;&lt;b&gt;">x</code></pre>'),
        ("|a|b|\n|-|-|\n|1|漢字|\n", "<pre>a | b\n--+-----\n1 | 漢字</pre>\n"),
        ("---", "---"),
    ],
)
def test_markdown_becomes_html(markdown, html):
    assert telegram_html(markdown) == html


def test_a_text_full_of_traps_stays_readable():
    text = "Mail from Jo <jo@example.com>: set MY_VAR_NAME=*x* and see https://ex.org/a___b <b>now"

    shown = visible(telegram_html(text))

    assert shown == text.replace("*x*", "x")


class Balance(HTMLParser):
    """Collects tags and what is left open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong = False

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        self.wrong = self.wrong or not self.open or self.open.pop() != tag


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "*",
                "**",
                "_",
                "~~",
                "`",
                "```",
                "\n",
                "a",
                " ",
                "[",
                "](",
                "https://e.example",
                ")",
                ">",
                "|",
                "-",
                "<",
                "&",
                "\\",
                "# ",
            ]
        )
    ).map("".join)
)
def test_tags_always_nest_and_letters_are_never_lost(markdown):
    html = telegram_html(markdown)

    parser = Balance()
    parser.feed(html)
    parser.close()
    assert not parser.wrong
    assert not parser.open
    if "`" not in markdown and "](" not in markdown:
        assert visible(html).count("a") == markdown.count("a")


def test_hostile_markup_is_rendered_in_time_that_grows_with_its_length():
    for text in ("**a " * 8000, "_a*b " * 8000, "`a``b" * 6000, "[" * 30000, "[a](" * 8000):
        assert telegram_html(text)
