"""What counts as the same word."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.memory.analysis import TOKEN_CHARACTERS, Analyzer, word_count

ANALYZER = Analyzer()


def shares(question: str, text: str) -> bool:
    """Whether a question finds a text by its words."""
    words = ANALYZER.words(text)
    return bool(set(ANALYZER.question(question)) & {*words.content, *words.loose})


def test_words_are_stemmed_and_common_ones_kept_apart():
    words = ANALYZER.words("The runner's running with the dogs")

    assert words.content == ["runner", "run", "dog"]
    assert words.loose == ["the", "with", "the"]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("37.759", "the reading was 37.759 today"),
        ("759", "the reading was 37.759 today"),
        ("node.js", "we use node.js and Go"),
        ("BX-100821", "order BX-100821 came"),
        ("100821", "order BX-100821 came"),
        ("Downloads/receipts", "path Downloads/receipts/2026"),
        ("router 20.04", "release 20.04 of the router firmware"),
        ("2026-03-16.md", "memory/2026-03-16.md"),
        ("user name", "call getUserName first"),
        ("1000", "it cost 1,000 euros"),
        ("C++", "written in C++ and C#"),
        ("doesn't", "Anna's landlord doesn't allow pets"),
        ("doesn’t", "Anna's landlord doesn't allow pets"),
        ("👍", "she answered 👍"),
    ],
)
def test_numbers_and_identifiers_are_found_whole_and_in_parts(question, text):
    assert shares(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Mueller", "Müller kauft"),
        ("Muller", "Müller kauft"),
        ("MÜLLER", "Mu\u0308ller kauft"),
        ("Müller", "Mueller kauft"),
        ("koeln", "Karten in Köln"),
        ("Sao", "São Paulo"),
        ("cafe", "café naïve"),
        ("lodz", "Łódź"),
        ("istanbul", "İstanbul"),
        ("STRASSE", "straße"),
        ("Wo sind die Häuser?", "das Haus"),
        ("Wo liegt mein Schlüssel?", "Die Schlüssel sind im Schrank"),
        ("ключи", "ключ"),
    ],
)
def test_spellings_and_inflections_meet(question, text):
    assert shares(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("将棋", "昨日は友達と将棋大会に参加した。"),
        ("温泉旅行", "優勝賞品は温泉旅行。"),
        ("낚시", "오늘 부산에서 낚시를 했다"),
        ("牙医", "明天去牙医诊所复查"),
        ("插件配置问题", "插件的配置放在设置页"),
        ("狗", "我的狗叫旺财"),
        ("दवा", "भारत में दवा"),
    ],
)
def test_scripts_without_spaces_are_found_by_a_word_inside(question, text):
    assert shares(question, text)


def test_a_question_of_common_words_alone_looks_for_them():
    assert ANALYZER.question("Who?") == ["who"]
    assert ANALYZER.question("AND") == ["and"]
    assert ANALYZER.question("who is Anna") == ["anna"]


def test_common_words_written_as_names_count_inside_a_sentence():
    assert ANALYZER.question("What happened in May with Will?") == ["happen", "may", "will"]
    assert ANALYZER.question("what will happen") == ["happen"]


@pytest.mark.parametrize("question", ["", "   ", "(", '"', "*", "...", "\0", "\ud800"])
def test_lone_punctuation_holds_no_word(question):
    assert ANALYZER.question(question) == []


@given(st.text())
def test_any_string_is_legal_and_its_tokens_are_clean(text):
    words = ANALYZER.words(text)

    for token in [*words.content, *words.loose, *words.names]:
        assert token
        assert not any(character.isspace() for character in token)
        assert len(token) <= TOKEN_CHARACTERS
        token.encode("utf-8")


@given(st.text())
def test_a_text_finds_itself(text):
    question = set(ANALYZER.question(text))
    words = ANALYZER.words(text)

    assert question <= {*words.content, *words.loose}


@pytest.mark.parametrize("unit", ["a.", "a'", "1,", "aB", "我", "a" * 50, "ü ", "a_-"])
def test_long_texts_take_linear_time(unit):
    text = unit * (200_000 // len(unit))

    start = time.process_time()
    ANALYZER.words(text)

    assert time.process_time() - start < 5


def test_the_size_of_a_text_counts_what_it_says():
    assert word_count("I went to the dentist") == 2
    assert word_count("明天去牙医诊所") == 4
