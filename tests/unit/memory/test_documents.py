"""Names and keys of documents: one validator for every path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import Invalid
from instar.ids import AgentId
from instar.memory.documents import (
    agent_of,
    document_key,
    is_indexed,
    is_memory,
    kind_of,
    new_document_key,
    split_key,
)

MAIN, ZOE = AgentId("main"), AgentId("zoe")


@pytest.mark.parametrize(
    "name",
    [
        "MEMORY.md",
        "memory/notes.md",
        "memory/2026-02-14.md",
        "memory/Überblick_2.md",
        "memory/旅行.md",
        "memory/a.b-c.md",
        "persona/SOUL.md",
        "transcripts/telegram-1.md",
        f"memory/{'a' * 100}.md",
    ],
)
def test_a_good_name_has_a_key_under_its_agent(name):
    assert new_document_key(MAIN, name) == f"agents/main/{name}"
    assert document_key(ZOE, name) == f"agents/zoe/{name}"


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "/etc/passwd",
        "../x/passwd",
        "../x.md",
        "memory/../../secret.md",
        "memory/../../other-agent/MEMORY.md",
        "memory/a/b.md",
        "memory/.md",
        "memory/..md",
        "memory/.hidden.md",
        "memory/notes.txt",
        "memory/notes.MD",
        "random.md",
        "foo/bar.md",
        "memory\\notes.md",
        "memory/..\\x.md",
        "memory//MEMORY.md",
        "memory/%2e%2e/x.md",
        "memory/a%2fb.md",
        "memory/．．/x.md",
        "MEMORY.md%00",
        "MEMORY.md\x00",
        "MEMORY.md\x00.txt",
        "MEMORY.MD",
        "memory.md/x.md",
        "Memory/notes.md",
        "memory/a\nb.md",
        "memory/\ud83c.md",
        f"memory/{'a' * 1100}.md",
        "config.toml",
        "skills/x.md",
    ],
)
def test_a_bad_name_is_invalid_for_reading_and_writing(name):
    with pytest.raises(Invalid, match="not a document's name"):
        document_key(MAIN, name)
    with pytest.raises(Invalid):
        new_document_key(MAIN, name)


@pytest.mark.parametrize(
    "name", ["memory/a b.md", "memory/Q&A + plan (50%).md", "memory/What is it?.md", "memory/-x.md"]
)
def test_a_name_from_a_file_manager_is_read_but_not_made(name):
    assert document_key(MAIN, name) == f"agents/main/{name}"
    with pytest.raises(Invalid, match="new document"):
        new_document_key(MAIN, name)


def test_a_stem_of_101_characters_is_not_made():
    with pytest.raises(Invalid):
        new_document_key(MAIN, f"memory/{'a' * 101}.md")


def test_a_new_name_is_composed_and_a_read_name_is_taken_as_it_stands():
    decomposed = "memory/Mu\u0308ller.md"

    assert new_document_key(MAIN, decomposed) == "agents/main/memory/M\u00fcller.md"
    assert document_key(MAIN, decomposed) == f"agents/main/{decomposed}"


@pytest.mark.parametrize("agent", ["", "Main", "../x", "a/b", "-a", "a" * 64, "main\n"])
def test_a_bad_agent_has_no_documents(agent):
    with pytest.raises(Invalid, match="not an agent name"):
        document_key(AgentId(agent), "MEMORY.md")


@given(st.text(max_size=40))
def test_whatever_is_asked_for_a_key_stays_within_its_agent(name):
    try:
        key = document_key(ZOE, name)
    except Invalid:
        return

    parts = key.split("/")
    assert parts[:2] == ["agents", "zoe"]
    assert len(parts) in (3, 4)
    assert not {"", ".", ".."} & set(parts)
    assert split_key(key) == ("zoe", name)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("agents/main/MEMORY.md", "fact"),
        ("agents/main/memory/notes.md", "note"),
        ("agents/main/memory/2026-02-14.md", "daily"),
        ("agents/main/memory/2026-2-14.md", "note"),
        ("agents/main/transcripts/web-1.md", "transcript"),
    ],
)
def test_the_kind_follows_from_the_place(key, kind):
    assert kind_of(key) == kind
    assert is_indexed(key)
    assert agent_of(key) == "main"


@pytest.mark.parametrize(
    "key",
    [
        "config.toml",
        "agents/main/persona/SOUL.md",
        "agents/main/skills/x.md",
        "agents/main/memory/a/b.md",
        "agents/main/memory/.hidden.md",
        "agents/main/notes.md",
        "agents/main/memory/x.txt",
    ],
)
def test_other_places_are_not_indexed(key):
    assert not is_indexed(key)


def test_a_key_outside_the_agents_has_no_agent():
    with pytest.raises(Invalid):
        agent_of("config.toml")


def test_statements_are_kept_in_memory_alone():
    assert [is_memory(name) for name in ("MEMORY.md", "memory/a.md")] == [True, True]
    assert [is_memory(name) for name in ("persona/SOUL.md", "transcripts/a.md")] == [False, False]
