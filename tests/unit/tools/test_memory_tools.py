"""The memory tools are thin shapes around memory's use cases."""

import pytest

from instar.clock import Deadline
from instar.errors import Forbidden, Forgotten, NotFound
from instar.ids import AgentId, CallId
from instar.principal import ALL_RIGHTS, Audience, Principal, owner
from instar.tools.ports import CallContext
from instar.tools.toolbox import InvalidArguments

OWNER = owner(AgentId("main"))


@pytest.fixture
def use(embedded, clock):
    def use(name: str, who: Principal = OWNER, effect: str = "e", **arguments):
        context = CallContext(
            principal=who,
            call=CallId("c"),
            effect=f"{effect}:{name}:{sorted(arguments.items())}",
            deadline=Deadline.after(25, clock),
        )
        return embedded.toolbox.run(name, arguments, context)

    return use


def test_save_search_get_history_restore_delete(use):
    saved = use("memory_save", content="Anna likes tea")
    assert (saved["saved"], saved["document"], saved["indexed"]) == (True, "MEMORY.md", True)

    (hit,) = use("memory_search", query="tea")["hits"]
    assert (hit["document"], hit["lines"], hit["text"]) == ("MEMORY.md", [1, 1], "- Anna likes tea")
    got = use("memory_get", document="MEMORY.md", lines=[1, 1])
    assert (got["text"], got["revision"]) == ("- Anna likes tea\n", saved["revision"])

    removed = use("memory_delete", content="Anna likes tea")
    assert [row["document"] for row in removed["report"]] == ["MEMORY.md"]
    with pytest.raises(Forgotten):
        use("memory_save", content="anna likes tea")

    rows = use("memory_history", document="MEMORY.md")["revisions"]
    assert [row["reason"] for row in rows] == ["deleted", "saved"]
    use("memory_restore", document="MEMORY.md", revision=saved["revision"])
    assert use("memory_get", document="MEMORY.md")["text"] == "- Anna likes tea\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_save", {"content": "x", "agent": "zoe"}),
        ("memory_save", {"content": "x", "unforget": True}),
        ("memory_save", {}),
        ("memory_search", {"query": "x", "limit": 0}),
        ("memory_search", {"query": "x", "limit": 51}),
        ("memory_search", {"query": "x", "kind": "rumour"}),
        ("memory_search", {"query": "x", "since": "2026-01-01T00:00:00"}),
        ("memory_get", {"document": "MEMORY.md", "lines": [1]}),
        ("memory_delete", {"content": 1}),
    ],
)
def test_arguments_are_exact(use, name, arguments):
    with pytest.raises(InvalidArguments):
        use(name, **arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_search", {"query": "tea"}),
        ("memory_get", {"document": "MEMORY.md"}),
        ("memory_save", {"content": "x"}),
        ("memory_delete", {"content": "Anna likes tea"}),
        ("memory_history", {"document": "MEMORY.md"}),
        ("memory_restore", {"document": "MEMORY.md", "revision": "x"}),
    ],
)
def test_a_guest_with_every_right_still_gets_nothing(use, name, arguments):
    use("memory_save", content="Anna likes tea")
    guest = Principal(
        agent=AgentId("main"), audience=Audience.PRIVATE, guest="bob", rights=ALL_RIGHTS
    )

    with pytest.raises(Forbidden):
        use(name, guest, **arguments)

    assert use("memory_get", document="MEMORY.md")["text"] == "- Anna likes tea\n"


def test_another_agent_has_its_own_memory(use):
    use("memory_save", content="Anna likes tea")
    zoe = owner(AgentId("zoe"))

    assert use("memory_search", zoe, query="tea")["hits"] == []
    with pytest.raises(NotFound):
        use("memory_get", zoe, document="MEMORY.md")
    with pytest.raises(NotFound):
        use("memory_delete", zoe, content="Anna likes tea")


def test_a_call_repeated_under_its_effect_answers_the_same(use):
    first = use("memory_save", content="Anna likes tea")
    again = use("memory_save", content="Anna likes tea")
    other = use("memory_save", effect="another", content="Anna likes tea")

    assert (again["saved"], again["checkpoint"]) == (True, first["checkpoint"])
    assert other["saved"] is False
