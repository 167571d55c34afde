"""Pure edits: append, find, remove."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from instar.errors import NotFound
from instar.memory.claims import normalised
from instar.memory.edits import appended, matching_lines, says, without

WORD = st.text("abcdefghijklmnopqrstuvwxyzäöüß旅行茶", min_size=2, max_size=9)
SENTENCE = st.lists(WORD, min_size=2, max_size=6).map(" ".join)
ITEMS = st.lists(SENTENCE, min_size=1, max_size=6, unique_by=normalised)


def bullets(items: list[str], newline: str = "\n") -> str:
    return "".join(f"- {item}{newline}" for item in items)


def test_a_first_sentence_becomes_a_list():
    assert appended(None, "Anna likes tea") == "- Anna likes tea\n"
    assert appended("", "Anna likes tea") == "- Anna likes tea\n"


def test_a_sentence_joins_a_list_and_stands_apart_from_prose():
    assert appended("- a\n", "b") == "- a\n- b\n"
    assert appended("- a\n", "- b") == "- a\n- b\n"
    assert appended("# Head\n", "b") == "# Head\n\n- b\n"
    assert appended("- a", "b") == "- a\n- b\n"
    assert appended("- a\n\n\n", "b") == "- a\n- b\n"
    assert appended(" \n", "b") == "- b\n"


def test_content_with_a_structure_stays_as_it_is():
    assert appended("- a\n", "## New\n\ntext") == "- a\n\n## New\n\ntext\n"
    assert appended(None, "| a | b |") == "| a | b |\n"


def test_line_ends_of_the_document_are_kept():
    assert appended("- a\r\n", "b") == "- a\r\n- b\r\n"
    assert appended("- a\r\n", "x\ny") == "- a\r\n\r\nx\r\ny\r\n"
    assert without("- a\r\n- b\r\n- c\r\n", "b") == "- a\r\n- c\r\n"


def test_a_statement_is_found_in_any_dress_with_its_lines():
    text = "# Food\n\n- **Anna** likes\n  tea.\n- Ben\n"

    assert matching_lines(text, "anna likes tea") == [(3, 4)]
    assert matching_lines(text, "likes tea") == []
    assert matching_lines(text, "") == []


def test_removing_takes_every_claim_that_says_it_and_no_neighbour():
    assert without("alpha\n\nbeta\n\nalpha\n", "alpha") == "beta\n\n"
    assert without("- a\n- b\n- c\n", "b") == "- a\n- c\n"
    assert without("- a\n  more\n- b\n", "a more") == "- b\n"


def test_one_of_two_blank_lines_that_meet_goes():
    assert without("one\n\ntwo\n\nthree\n", "two") == "one\n\nthree\n"


def test_words_inside_a_statement_are_removed_where_they_stand_once():
    assert without("- Anna likes tea and cake\n", " and cake") == "- Anna likes tea\n"
    assert without("x\r\ny\r\nz\r\n", "x\ny") == "z\r\n"
    assert without("- a: b\n- c\n", "a: b") == "- c\n"


def test_a_part_of_a_word_is_never_removed():
    text = "- Anna likes steak\n"

    with pytest.raises(NotFound):
        without(text, "tea")
    assert not says(text, "tea")
    assert without(text, "likes ") == "- Anna steak\n"
    assert without("- 安娜喜欢绿茶和蛋糕\n", "和蛋糕") == "- 安娜喜欢绿茶\n"


def test_words_that_stand_in_several_places_are_not_guessed():
    text = "- Anna likes tea\n- Ben likes tea\n"

    with pytest.raises(NotFound, match="in one place"):
        without(text, "likes tea")
    assert not says(text, "likes tea")
    assert says(text, "Ben likes tea")


@pytest.mark.parametrize("blank", ["", " ", "\n", "\r\n\t"])
def test_a_blank_is_nowhere(blank):
    assert not says("- a\n\n \n", blank)
    with pytest.raises(NotFound):
        without("- a\n\n \n", blank)


@given(ITEMS, SENTENCE, st.sampled_from(["\n", "\r\n"]))
def test_append_then_remove_gives_the_document_back(items, added, newline):
    assume(normalised(added) not in {normalised(item) for item in items})
    text = bullets(items, newline)

    assert without(appended(text, added), added) == text


@given(ITEMS, st.data())
def test_removing_a_statement_leaves_exactly_the_others(items, data):
    gone = data.draw(st.sampled_from(items))

    rest = without(bullets(items), gone)

    assert rest == bullets([item for item in items if item != gone])
    assert not matching_lines(rest, gone)


@given(ITEMS, SENTENCE, st.data())
def test_an_edit_merged_onto_a_newer_text_revives_nothing(items, added, data):
    """The edit was decided on a text that had a line which somebody removed meanwhile."""
    gone = data.draw(st.sampled_from(items))
    assume(normalised(added) not in {normalised(item) for item in items})
    newer = without(bullets(items), gone)

    merged = appended(newer, added)

    assert not matching_lines(merged, gone)
    assert all(matching_lines(merged, item) for item in [*items, added] if item != gone)


@given(st.text(max_size=200), st.text(max_size=40))
def test_what_says_promises_without_keeps(text, content):
    if says(text, content):
        assert without(text, content) != text
    else:
        with pytest.raises(NotFound):
            without(text, content)
