"""Answers and problems on stdout and stderr."""

import json

import pytest

from instar.cli.output import (
    doctor_lines,
    pairs,
    print_answer,
    print_error,
    removed_lines,
    saved_lines,
    search_lines,
)
from instar.errors import (
    Conflict,
    Exhausted,
    Forgotten,
    Invalid,
    Misconfigured,
    NotFound,
    Throttled,
    Unavailable,
)


def test_json_is_one_line_in_any_script(capsys):
    print_answer({"text": "Grüße 你好 \ud83c\n"}, as_json=True, lines=str)

    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"text": "Grüße 你好 ?\n"}


def test_people_get_lines(capsys):
    print_answer({"a": 1, "b": "x"}, as_json=False, lines=pairs)

    assert capsys.readouterr().out == "a: 1\nb: x\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Invalid("x"), 1),
        (NotFound("x"), 1),
        (Forgotten("x"), 1),
        (Conflict("x"), 1),
        (Exhausted("x"), 1),
        (Unavailable("x"), 3),
        (Throttled("x"), 3),
        (Misconfigured("x"), 3),
    ],
)
def test_the_exit_code_says_whether_it_may_work_later(capsys, error, code):
    assert print_error(error, as_json=True) == code

    said = capsys.readouterr()
    assert json.loads(said.out) == {"type": error.type, "detail": "x", "fix": ""}
    assert said.err == ""


def test_people_get_the_problem_and_what_to_do_on_stderr(capsys):
    print_error(Invalid("no such thing", fix="Do this."), as_json=False)

    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "instar: no such thing\nDo this.\n")


def test_a_save_in_words():
    saved = {"saved": True, "document": "MEMORY.md", "revision": "r1", "indexed": True}
    near = {"text": "- b", "document": "memory/x.md"}

    assert saved_lines({**saved, "similar": []}) == "Saved in MEMORY.md (r1)."
    assert saved_lines({**saved, "indexed": False, "similar": [near]}) == (
        "Saved in MEMORY.md (r1). It is being indexed.\nSimilar: - b (memory/x.md)"
    )
    duplicate = {"saved": False, "duplicate_of": {"document": "MEMORY.md", "lines": [3, 4]}}
    assert saved_lines(duplicate) == "Already there: MEMORY.md, line 3."


def test_a_search_in_words():
    hit = {"document": "MEMORY.md", "lines": [1, 2], "text": "- a"}

    assert search_lines({"hits": [hit]}) == "MEMORY.md:1-2  - a"
    assert search_lines({"hits": [], "reason": "no word"}) == "Nothing found. no word"
    degraded = {"hits": [hit], "degraded": True, "mode": "words", "reason": "down"}
    assert search_lines(degraded).endswith("(answered by words: down)")


def test_a_removal_and_a_report_in_words():
    assert removed_lines({"report": [{"document": "a.md"}, {"document": "b.md"}]}) == (
        "Removed from a.md, b.md."
    )
    checks = [
        {"name": "disk", "status": "warn", "detail": "full", "fix": "Free some."},
        {"name": "model", "status": "ok", "detail": "fine", "fix": ""},
    ]
    report = {"checks": checks, "failed": [{"document": "x.md", "reason": "not UTF-8"}]}
    assert doctor_lines(report) == (
        "warn  disk: full\n      Free some.\nok    model: fine\nfail  x.md: not UTF-8"
    )
    assert doctor_lines({"digest": "abc"}) == "abc"
