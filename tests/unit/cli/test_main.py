"""From words to one operation, its answer and an exit code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from instar.cli.flags import Flags
from instar.cli.main import run
from instar.errors import InstarError, NotFound, Unavailable


@dataclass
class Doorway:
    """A door that remembers what went through it and answers as told."""

    answers: list[Any] = field(default_factory=list)
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    opened: list[Flags] = field(default_factory=list)

    def call(self, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self.calls.append((operation, dict(arguments)))
        answer = self.answers.pop(0) if self.answers else {"text": "", "hits": []}
        if isinstance(answer, Exception):
            raise answer
        return answer

    def open(self, flags: Flags) -> "Doorway":
        self.opened.append(flags)
        return self

    def run(self, *words: str) -> int:
        return run(words, self.open, lambda flags: lambda host, names, port: None)


@pytest.fixture
def door():
    return Doorway()


@pytest.mark.parametrize(
    ("words", "operation", "some"),
    [
        (("memory", "save", "x", "--document", "memory/a.md"), "memory.save", {"content": "x"}),
        (("memory", "save", "x", "--unforget"), "memory.save", {"unforget": True}),
        (("memory", "get", "MEMORY.md", "--lines", "2-4"), "memory.get", {"lines": [2, 4]}),
        (("memory", "delete", "x"), "memory.delete", {"content": "x"}),
        (("memory", "diff", "D", "r1", "r2"), "memory.diff", {"old": "r1", "new": "r2"}),
        (("memory", "restore", "D", "--revision", "r"), "memory.restore", {"revision": "r"}),
        (("memory", "search", "q", "--limit", "3"), "memory.search", {"query": "q", "limit": 3}),
        (("chat", "--once", "Hi", "--session", "s"), "chat.send", {"session": "s", "text": "Hi"}),
        (("key", "create", "--scopes", "a,b"), "key.create", {"tools": None}),
        (("key", "create", "--scopes", "a", "--tools", ""), "key.create", {"tools": [""]}),
        (("config", "set", "a.b", "c"), "config.set", {"key": "a.b", "value": "c"}),
        (("doctor", "--digest"), "doctor", {"digest": True}),
    ],
)
def test_words_become_one_operation(door, words, operation, some):
    assert door.run("--json", *words) == 0

    ((called, arguments),) = door.calls
    assert called == operation
    assert arguments.items() >= some.items()


def test_the_flags_reach_the_door(door):
    door.run("doctor", "--json", "--agent", "zoe", "--home", "/x")

    assert door.opened == [Flags(json=True, agent="zoe", home="/x")]


def test_an_answer_is_printed_whole(door, capsys):
    door.answers = [{"a": [1, "ü"]}]

    assert door.run("doctor", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"a": [1, "ü"]}


@pytest.mark.parametrize(("error", "code"), [(NotFound("x"), 1), (Unavailable("x"), 3)])
def test_a_problem_is_printed_with_its_code(door, capsys, error: InstarError, code):
    door.answers = [error]

    assert door.run("doctor", "--json") == code
    assert json.loads(capsys.readouterr().out)["type"] == error.type


def test_json_behind_two_hyphens_is_text(door, capsys):
    door.answers = [NotFound("x")]

    assert door.run("memory", "delete", "--", "--json") == 1
    assert door.calls == [("memory.delete", {"content": "--json"})]
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "instar: x\n")


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("memory", "save"),
        ("--agent",),
        ("serve", "--host", "0.0.0.0"),
        ("doctor", "x"),
    ],
)
def test_wrong_words_exit_2_and_open_nothing(door, words, capsys):
    assert door.run(*words) == 2

    assert door.opened == []
    assert "instar --help" in capsys.readouterr().err


def test_help_exits_0(door, capsys):
    assert door.run("--help") == 0
    assert "memory" in capsys.readouterr().out
    assert door.opened == []


def test_a_batch_answers_line_by_line(door, capsys, tmp_path):
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id":"1","query":"tea"}\n\n{"id":"2","query":"牙医"}\n')
    door.answers = [{"hits": ["a"]}, {"hits": []}]

    assert door.run("memory", "search", "--batch", str(questions), "--limit", "2", "--json") == 0

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["id"], row["hits"]) for row in rows] == [("1", ["a"]), ("2", [])]
    assert [arguments["query"] for _, arguments in door.calls] == ["tea", "牙医"]
