"""What is saved, edited or copied by hand is found; what is not one's own is not."""

import subprocess
import sys
import threading

import pytest

from instar.adapters.local.sqlite_ledger import SqliteLedger
from instar.errors import Forbidden
from instar.ids import AgentId
from instar.memory.asking import Asked
from instar.memory.recall import SearchRequest
from instar.principal import ALL_RIGHTS, Audience, Principal, owner
from instar.testing.agent import instar
from instar.testing.builders import at_work, embedded_at, eventually

MAIN, ZOE = owner(AgentId("main")), owner(AgentId("zoe"))
ASKED = Asked(reason="asked")


def found(embedded, query, who=MAIN):
    return [hit.text for hit in embedded.memory.recall.search(who, SearchRequest(query=query)).hits]


def test_the_command_saves_finds_and_restores(home):
    code, saved, _ = instar(home, "memory", "save", "Anna cannot eat peanuts")
    assert (code, saved["saved"], saved["indexed"]) == (0, True, True)
    assert (home / "agents/main/MEMORY.md").read_text() == "- Anna cannot eat peanuts\n"

    code, answer, _ = instar(home, "memory", "search", "peanuts")
    assert code == 0
    assert [hit["text"] for hit in answer["hits"]] == ["- Anna cannot eat peanuts"]
    assert (answer["hits"][0]["document"], answer["hits"][0]["lines"]) == ("MEMORY.md", [1, 1])

    code, again, _ = instar(home, "memory", "save", "anna cannot eat peanuts.")
    assert (code, again["saved"]) == (0, False)
    assert again["duplicate_of"] == {"document": "MEMORY.md", "lines": [1, 1]}

    code, removed, _ = instar(home, "memory", "delete", "Anna cannot eat peanuts")
    assert (code, removed["done"]) == (0, True)
    code, refused, _ = instar(home, "memory", "save", "Anna cannot eat peanuts")
    assert (code, refused["type"]) == (1, "forgotten")
    assert "--unforget" in refused["fix"]

    code, history, _ = instar(home, "memory", "history", "MEMORY.md")
    assert [row["reason"] for row in history["revisions"]] == ["deleted", "saved"]
    instar(home, "memory", "restore", "MEMORY.md", "--revision", saved["revision"])
    assert (home / "agents/main/MEMORY.md").read_text() == "- Anna cannot eat peanuts\n"
    assert len(instar(home, "memory", "history", "MEMORY.md")[1]["revisions"]) == 3


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("# Reise\n\nIm Mai fahren wir mit dem Nachtzug nach Köln.\n", "Nachtzug Koeln"),
        ("# 安排\n\n明天去牙医诊所复查。\n", "牙医"),
        ("# Bücher\r\n\r\nDer Zauberberg steht im Regal.\r\n", "ZAUBERBERG"),
        ("order BX-100821\n", "BX-100821"),
    ],
)
def test_files_copied_by_hand_are_found_without_a_server(home, text, query):
    folder = home / "agents/main/memory"
    folder.mkdir(parents=True)
    (folder / "distractor.md").write_text("Something else entirely.\n")
    (folder / "copied by hand (2).md").write_bytes(text.encode())

    code, answer, _ = instar(home, "memory", "search", query)

    assert code == 0
    assert [hit["document"] for hit in answer["hits"]] == ["memory/copied by hand (2).md"]
    name, lines = answer["hits"][0]["document"], answer["hits"][0]["lines"]
    span = f"{lines[0]}-{lines[1]}"
    read = instar(home, "memory", "get", name, "--lines", span)[1]["text"]
    assert answer["hits"][0]["text"].splitlines()[-1] in read.splitlines()


def test_a_file_from_a_mac_with_a_decomposed_name_is_found_and_read(home):
    folder = home / "agents/main/memory"
    folder.mkdir(parents=True)
    (folder / "Mu\u0308ller.md").write_text("Der Klempner kommt am Freitag.\n")

    _, answer, _ = instar(home, "memory", "search", "Klempner")
    code, read, _ = instar(home, "memory", "get", answer["hits"][0]["document"])

    assert (code, read["text"]) == (0, "Der Klempner kommt am Freitag.\n")


def test_an_edit_in_an_editor_is_found_within_two_seconds(embedded, folder):
    with at_work(embedded):
        embedded.memory.editor.save(MAIN, "the boat is green", ASKED)
        file = folder / "agents/main/MEMORY.md"

        file.write_text("- the boat is green\n- a kayak lies in the cellar\n")
        eventually(lambda: found(embedded, "kayak"), seconds=2)

        file.write_text("- the boat is green\n")
        eventually(lambda: not found(embedded, "kayak"), seconds=2)
        assert found(embedded, "boat") == ["- the boat is green"]

        (folder / "agents/main/memory").mkdir(exist_ok=True)
        (folder / "agents/main/memory/new.md").write_text("a sledge, too\n")
        eventually(lambda: found(embedded, "sledge"), seconds=2)


WRITER = """
import sys
from pathlib import Path
from instar.ids import AgentId
from instar.memory.asking import Asked
from instar.principal import owner
from instar.testing.builders import embedded_at

embedded = embedded_at(Path(sys.argv[1]))
for number in sys.argv[2:]:
    editor, who = embedded.memory.editor, owner(AgentId("main"))
    saved = editor.save(who, f"thing {number} is kept", Asked(reason="x"))
    assert saved.saved, saved
"""


def test_fifty_saves_at_once_by_threads_and_processes_leave_fifty_lines(embedded, folder):
    numbers = [f"{word}{n}" for n in range(10) for word in ("ash", "elm", "fir", "oak", "yew")]
    by_processes, by_threads = numbers[:20], numbers[20:]
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), *by_processes[n::4]])
        for n in range(4)
    ]
    answers = []

    def save(number: str) -> None:
        answers.append(embedded.memory.editor.save(MAIN, f"thing {number} is kept", ASKED))

    threads = [threading.Thread(target=save, args=(number,)) for number in by_threads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = [process.wait(60) for process in processes]

    assert codes == [0] * 4
    assert [answer.saved for answer in answers] == [True] * 30
    assert [answer.indexed for answer in answers] == [True] * 30
    lines = (folder / "agents/main/MEMORY.md").read_text().splitlines()
    assert sorted(lines) == sorted(f"- thing {number} is kept" for number in numbers)
    rows = SqliteLedger(embedded.stores.database).entries()
    assert [row.state for row in rows] == ["done"] * 50
    assert len({row.after for row in rows}) == 50
    assert embedded.memory.indexer.drift() == []


def test_two_agents_never_see_each_other(home):
    instar(home, "memory", "save", "the safe is behind the painting")
    instar(home, "memory", "save", "Zoe keeps bees", "--agent", "zoe")

    assert (
        instar(home, "memory", "search", "safe painting bees", "--agent", "zoe")[1]["hits"][0][
            "text"
        ]
        == "- Zoe keeps bees"
    )
    assert len(instar(home, "memory", "search", "safe bees", "--agent", "zoe")[1]["hits"]) == 1
    assert [
        hit["text"] for hit in instar(home, "memory", "search", "safe painting bees")[1]["hits"]
    ] == ["- the safe is behind the painting"]
    code, refused, _ = instar(home, "memory", "delete", "Zoe keeps bees")
    assert (code, refused["type"], refused["similar"]) == (1, "not_found", [])
    assert (home / "agents/zoe/MEMORY.md").read_text() == "- Zoe keeps bees\n"


@pytest.mark.parametrize(
    "who",
    [
        Principal(agent=AgentId("main"), audience=Audience.PRIVATE, guest="9", rights=ALL_RIGHTS),
        Principal(agent=AgentId("main"), audience=Audience.SHARED, guest="9", rights=ALL_RIGHTS),
        Principal(agent=AgentId("main"), audience=Audience.SHARED, guest=None, rights=ALL_RIGHTS),
    ],
)
def test_guests_and_shared_audiences_find_nothing(embedded, who):
    embedded.memory.editor.save(MAIN, "the safe is behind the painting", ASKED)
    assert found(embedded, "safe") == ["- the safe is behind the painting"]

    with pytest.raises(Forbidden):
        found(embedded, "safe", who)
    answer = embedded.outside.call("key:x", who, "memory_search", {"query": "safe"}, None).body
    assert (answer["is_error"], answer["result"]["type"]) == (True, "forbidden")
    assert found(embedded, "safe", ZOE) == []


def test_a_home_opened_again_finds_what_was_saved(home):
    embedded_at(home).memory.editor.save(MAIN, "Anna cannot eat peanuts", ASKED)

    assert found(embedded_at(home), "peanuts") == ["- Anna cannot eat peanuts"]
