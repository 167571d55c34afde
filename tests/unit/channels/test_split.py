"""Splitting loses nothing, keeps to the limit and tears neither code blocks nor characters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.adapters.channels.telegram import telegram_parts
from instar.channels.fences import after
from instar.channels.markup import telegram_html, visible
from instar.channels.split import pieces, split, utf16_units

FAMILY = "👩‍👩‍👧‍👦"
markdownish = st.lists(
    st.sampled_from(
        [
            "a",
            "word ",
            "\n",
            "\n\n",
            "```py\n",
            "```\n",
            "*",
            FAMILY,
            "é",
            "漢",
            "&",
            "> q\n",
            "x" * 40,
            "🇩🇪",
        ]
    )
).map("".join)


@settings(max_examples=200, deadline=None)
@given(text=st.one_of(markdownish, st.text(max_size=300)), limit=st.integers(64, 120))
def test_the_bodies_joined_are_the_text_and_no_part_is_too_long(text, limit):
    found = pieces(text, limit)

    assert "".join(piece.body for piece in found) == text
    assert all(utf16_units(piece.text) <= limit for piece in found)


@settings(max_examples=200, deadline=None)
@given(text=markdownish, limit=st.integers(64, 120))
def test_every_part_closes_the_code_blocks_it_opens(text, limit):
    found = pieces(text, limit)

    assert all(after(None, piece.text) is None for piece in found[:-1])


def test_a_text_that_fits_stays_as_it_is():
    assert split("```\nopen", 100) == ("```\nopen",)


def test_a_torn_code_block_is_closed_and_opened_again_with_its_language():
    code = "\n".join(f"line {n}" for n in range(30))

    first, *_, last = split(f"```python\n{code}\n```", 100)

    assert first.startswith("```python\nline 0\n")
    assert first.endswith("\n```")
    assert last.startswith("```python\n")
    assert last.endswith("line 29\n```")


def test_a_paragraph_end_is_preferred_to_a_line_end():
    text = "a" * 40 + "\n\n" + "b" * 20 + "\n" + "c" * 40

    assert split(text, 70)[0] == "a" * 40 + "\n\n"


def test_an_emoji_of_many_code_points_is_not_torn():
    first, second = split("a" * 95 + FAMILY, 100)

    assert (first, second) == ("a" * 95, FAMILY)


def test_flags_are_not_torn():
    parts = split("🇩🇪" * 40, 66)

    assert all(len(part) % 2 == 0 for part in parts)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("```\n" + "x" * 5000 + "\n```", 2),
        ("a" * 4095 + FAMILY, 2),
        ("> x\n" * 1300, 1),
        ("y" * 9000, 3),
        ("&" * 4000, 1),
        ("`" * 5000, 2),
        ("[a](https://x.example/long/address) " * 1000, 2),
    ],
)
def test_telegrams_limit_counts_what_is_seen(text, messages):
    parts = telegram_parts(text)

    assert len(parts) == messages
    assert all(utf16_units(visible(telegram_html(part))) <= 4096 for part in parts)
