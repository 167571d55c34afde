"""Statements apart from their dress."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.memory.claims import Claim, claims, marks, normalised

KEY = b"k" * 32


@pytest.mark.parametrize(
    "dressed",
    [
        "Anna likes tea",
        "- Anna likes tea",
        "* Anna likes tea.",
        "3. Anna  likes\ttea",
        "- [x] Anna likes tea",
        "## Anna likes tea",
        "> - **Anna** likes _tea_!",
        "ANNA LIKES TEA",
        "Anna likes ｔｅａ",
        "  Anna likes tea  ",
    ],
)
def test_the_dress_makes_no_difference(dressed):
    assert normalised(dressed) == "anna likes tea"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the variable is foo_bar", "the variable is foobar"),
        ("the code is 2*3", "the code is 23"),
        ("Anna likes tea", "Anna likes tee"),
        ("the room has -5 degrees", "the room has 5 degrees"),
        ("我喜欢茶", "我喜欢咖啡"),
    ],
)
def test_different_statements_stay_different(one, other):
    assert normalised(one) != normalised(other)


def test_items_paragraphs_and_headings_are_claims_with_their_lines():
    text = "# Food\n\n- Anna likes tea\n  and cake\n- Ben does not\n\nA paragraph\non two lines.\n"

    assert list(claims(text)) == [
        Claim("# Food", 1, 1),
        Claim("- Anna likes tea\n  and cake", 3, 4),
        Claim("- Ben does not", 5, 5),
        Claim("A paragraph\non two lines.", 7, 8),
    ]


def test_an_empty_text_has_no_claims():
    assert list(claims("")) == []
    assert list(claims("\n \n")) == []


@given(st.text(max_size=200))
def test_every_line_that_is_not_blank_belongs_to_exactly_one_claim(text):
    covered = [n for c in claims(text) for n in range(c.start_line, c.end_line + 1)]

    assert covered == [n for n, line in enumerate(text.splitlines(), 1) if line.strip()]


def test_the_marks_of_a_note_include_those_of_each_line_and_hide_the_text():
    of_line = set(marks("- the locker code is 4417", KEY))
    of_note = set(marks("# Codes\n\nThe locker code is 4417.\n\nSomething else", KEY))

    assert len(of_line) == 1
    assert of_line < of_note
    assert not any("4417" in mark for mark in of_note)
    assert set(marks("the locker code is 4417", b"another key")).isdisjoint(of_note)


@given(st.text(max_size=80))
def test_normalising_twice_is_normalising_once_for_plain_words(text):
    words = " ".join(word for word in text.split() if word.isalnum())

    assert normalised(normalised(words)) == normalised(words)
