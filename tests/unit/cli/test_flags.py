"""The global flags, which may stand anywhere before `--`."""

import pytest

from instar.cli.flags import Flags, UsageError, split_flags


@pytest.mark.parametrize(
    "words",
    [
        ["--json", "--agent", "zoe", "memory", "get", "MEMORY.md"],
        ["memory", "get", "--json", "MEMORY.md", "--agent=zoe"],
        ["memory", "--agent", "zoe", "get", "MEMORY.md", "--json"],
    ],
)
def test_flags_stand_anywhere(words):
    assert split_flags(words) == (
        Flags(json=True, agent="zoe"),
        ["memory", "get", "MEMORY.md"],
    )


def test_two_hyphens_end_the_flags():
    flags, rest = split_flags(["memory", "save", "--", "--json", "--agent", "x", "--"])

    assert flags == Flags()
    assert rest == ["memory", "save", "--", "--json", "--agent", "x", "--"]


def test_a_value_may_look_like_a_flag():
    assert split_flags(["--home", "--json", "x"]) == (Flags(home="--json"), ["x"])


@pytest.mark.parametrize("words", [["--agent"], ["--home="], ["x", "--url"], ["--url", ""]])
def test_a_missing_value_is_a_usage_error(words):
    with pytest.raises(UsageError, match="needs a value"):
        split_flags(words)


def test_home_and_url_exclude_each_other():
    assert split_flags(["--home", "a"])[0].home == "a"
    with pytest.raises(UsageError, match="exclude"):
        split_flags(["--home", "a", "--url", "b"])


def test_other_options_are_left_alone():
    assert split_flags(["memory", "save", "x", "--document", "d"])[1] == [
        "memory",
        "save",
        "x",
        "--document",
        "d",
    ]
