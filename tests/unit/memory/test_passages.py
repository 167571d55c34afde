"""Where a document is cut, and what goes with each piece."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instar.ids import MAIN_AGENT
from instar.memory.passages import (
    EMBEDDED_TOKENS,
    PASSAGE_TOKENS,
    WINDOW_TOKENS,
    Source,
    embedded_text,
    passages,
    tokens,
)
from instar.memory.ports import Kind, Passage

AT = datetime(2031, 5, 4, tzinfo=UTC)


def cut(text: str, *, name: str = "memory/note.md", kind: Kind = "note") -> list[Passage]:
    source = Source(
        key=f"agents/main/{name}",
        name=name,
        agent=MAIN_AGENT,
        kind=kind,
        trust="owner",
        revision="r1",
        at=AT,
    )
    return passages(text, source)


def spans(text: str, **options) -> list[tuple[int, int]]:
    return [(each.start_line, each.end_line) for each in cut(text, **options)]


MARKDOWN = st.lists(
    st.sampled_from(
        [
            "# Heading", "## Sub", "Title", "====", "---", "", "  ", "- item", "  - nested",
            "1. first", "**Ann:** hi?", "**Bob：** 你好。", "```", "~~~", "| a | b |", "|--|--|",
            "> quote", "plain text. And more!", "key: value", "word " * 300, "我" * 700,
            "x" * 9000, "\ufeff", "a\u2028b", "## 3 May 2024 14:30",
        ]
    )
    | st.text(max_size=40),
    max_size=40,
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@settings(deadline=None)
@given(MARKDOWN, ENDS, st.sampled_from(["note", "transcript"]))
def test_every_line_lies_in_a_passage_and_none_is_too_large(lines, end, kind):
    text = end.join(lines)
    count = len(text.removeprefix("\ufeff").splitlines())

    found = cut(text, kind=kind)

    if found:
        covered = {n for each in found for n in range(each.start_line, each.end_line + 1)}
        assert covered == set(range(1, count + 1))
    for each in found:
        assert 1 <= each.start_line <= each.end_line <= count
        assert tokens(each.text) <= PASSAGE_TOKENS
        assert tokens(embedded_text(each)) <= EMBEDDED_TOKENS
        assert each.body.strip()
        assert each.text.strip()
    places = [(each.start_line, each.end_line) for each in found]
    assert places == sorted(places)
    assert [each.ordinal for each in found] == list(range(len(found)))
    assert len({each.id for each in found}) == len(found)
    assert cut(text, kind=kind) == found


@settings(deadline=None)
@given(MARKDOWN)
def test_no_letter_of_the_text_is_lost(lines):
    text = "\n".join(lines)

    found = cut(text)

    if found:
        kept = "".join(each.text for each in found)
        assert [c for c in kept if c.isalnum()] == [c for c in text if c.isalnum()]


@given(MARKDOWN)
@settings(deadline=None)
def test_line_ends_and_a_byte_order_mark_change_nothing(lines):
    plain = [line for line in lines if "\r" not in line and "\ufeff" not in line]

    unix = cut("\n".join(plain))

    assert cut("\r\n".join(plain)) == unix
    assert cut("\ufeff" + "\n".join(plain)) == unix


def test_a_document_without_content_has_no_passages():
    assert cut("") == []
    assert cut("\n  \n\n") == []


def test_a_passage_is_a_paragraph_an_item_or_a_turn():
    text = "Two lines\nof one.\n\n- first\n  goes on\n- second\n\n**Ann:** hi\n**Bob:** hello?\n"

    found = cut(text)

    assert [each.body for each in found] == [
        "Two lines\nof one.", "first\n  goes on", "second", "hi", "hello?",
    ]  # fmt: skip
    assert [(each.start_line, each.end_line) for each in found] == [
        (1, 3), (4, 5), (6, 7), (8, 8), (9, 9),
    ]  # fmt: skip
    assert [each.speaker for each in found] == ["", "", "", "Ann", "Bob"]
    assert [each.asks for each in found] == [False, False, False, False, True]


def test_the_text_of_a_hit_is_the_text_of_its_lines():
    lines = [f"line {n}: nothing of note" for n in range(1, 121)]
    lines[86] = "- dog's name: Bella"

    (found,) = [each for each in cut("\n\n".join(lines)) if "Bella" in each.text]

    span = "\n\n".join(lines).splitlines()[found.start_line - 1 : found.end_line]
    assert "\n".join(span).strip("\n") == found.text


def test_headings_stand_above_and_their_lines_belong_to_the_first_below():
    text = "# Trip\n\n## Food\n\n- pasta\n- gelato\n\n## Empty\n"

    found = cut(text)

    assert [(each.start_line, each.end_line) for each in found] == [(1, 5), (6, 7), (8, 8)]
    assert found[0].text == "# Trip\n\n## Food\n\n- pasta"
    assert found[0].body == "pasta"
    assert found[0].header.startswith("Trip > Food")
    assert found[1].header == found[0].header
    assert found[2].body == "## Empty"


def test_the_context_is_two_units_before_and_after():
    found = cut("a one\n\nb two\n\nc three\n\nd four\n\ne five\n")

    assert found[2].context == "a one\nb two\nd four\ne five"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("met the roofer", "memory/2023-05-08.md"),
        ("# 8 May 2023\n\nmet the roofer", "memory/x.md"),
        ("# Monday, May 8th, 2023\n\nmet the roofer", "memory/x.md"),
        ("## 8. Mai 2023\n\nmet the roofer", "memory/x.md"),
        ("# 2023年5月8日\n\nmet the roofer", "memory/x.md"),
        ("# 08.05.2023\n\nmet the roofer", "memory/x.md"),
        ("# Log\n## 2023-05-08\n\nmet the roofer", "memory/2020-01-01.md"),
    ],
)
def test_the_day_is_written_out_in_the_header(text, name):
    found = cut(text, name=name)[-1]

    for word in ("Monday", "8", "May", "2023", "2023-05-08"):
        assert word in found.header
    assert found.at == datetime(2023, 5, 8, tzinfo=UTC)


def test_a_time_in_the_heading_is_kept_and_nonsense_is_no_date():
    assert cut("# 2023-05-08, 13:56\n\nx")[0].at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert cut("# 2023-02-31\n\nx")[0].at == AT


def test_front_matter_is_header_and_not_prose():
    (found,) = cut("---\ntitle: Tax 2025\ntags: [money]\nown: 7\n---\nBody\n")

    assert found.body == "Body"
    assert "Tax 2025" in found.header
    assert "money" in found.header
    assert (found.start_line, found.end_line) == (1, 6)


@pytest.mark.parametrize(
    "text", ["---\ntitle: open\nBody\n", "---\n\n---\nBody", "---\nplain words\n---\nBody"]
)
def test_what_is_no_front_matter_is_text(text):
    assert any("Body" in each.body for each in cut(text))


def test_a_fence_stays_whole_while_it_fits():
    code = "\n".join(f"step {n}\n" for n in range(30))

    found = cut(f"before\n\n```\n{code}\n```\n\nafter\n")

    assert [each.text.count("step") for each in found] == [0, 30, 0]


def test_an_unclosed_fence_is_text():
    found = cut("```\n\nfirst\n\nsecond\n")

    assert [each.body for each in found] == ["```", "first", "second"]


@pytest.mark.parametrize(
    ("text", "least"),
    [("x" * 50_000, 10), ("word " * 10_000, 40), ("我" * 3_000, 10), ("我喜欢猫。" * 2_000, 30)],
)
def test_a_long_line_becomes_windows(text, least):
    found = cut(text)

    assert len(found) >= least
    assert all(tokens(each.text) <= WINDOW_TOKENS + 1 for each in found)
    assert "".join(each.text.replace(" ", "") for each in found) == text.replace(" ", "")


def test_windows_end_where_sentences_end():
    text = " ".join(f"Sentence number {n} ends here." for n in range(200))

    assert all(each.text.endswith("here.") for each in cut(text))


def test_in_a_transcript_a_turn_goes_on_over_blank_lines():
    text = "**Ann:** first\n\nsecond\n\n- third\n\n**Bob:** reply\n"

    assert [each.speaker for each in cut(text, kind="transcript")] == ["Ann", "Bob"]
    assert [each.speaker for each in cut(text)] == ["Ann", "", "", "Bob"]


def test_a_long_turn_keeps_its_speaker_in_every_window():
    found = cut("**Ann:** " + "All is well here. " * 200, kind="transcript")

    assert len(found) > 2
    assert {each.speaker for each in found} == {"Ann"}


def test_unchanged_passages_keep_their_id_when_others_move():
    before = {each.body: each.id for each in cut("# T\n\n- one\n- two\n- two\n")}
    after = cut("new text\n\n# T\n\n- zero\n- one\n- two\n- two\n")

    assert {each.id for each in after} >= set(before.values())


def test_the_same_text_elsewhere_is_another_passage():
    here, there = cut("same"), cut("same", name="memory/other.md")
    twice = cut("- same\n- same\n")

    assert len({here[0].id, there[0].id, twice[0].id, twice[1].id}) == 4


@pytest.mark.parametrize("unit", ["- a\n", "```\n", "# h\n", "**A:** hi\n", "| a |\n", "a\n\n"])
def test_many_small_blocks_take_linear_time(unit):
    assert len(spans(unit * 20_000)) >= 1
