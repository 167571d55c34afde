"""The history that goes to a provider is always legal; the stored one is only read."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.adapters.llm.openai_history import NO_OUTPUT, NO_RESULT, chat_messages
from instar.ids import CallId, MessageId
from instar.llm.request import ModelRequest
from instar.messages import Message, Text, ToolCall, ToolResult


def message(role: str, *parts) -> Message:
    return Message(id=MessageId("m"), role=role, parts=parts, at=datetime(2030, 1, 1, tzinfo=UTC))


def user(text: str) -> Message:
    return message("user", Text(text=text))


def said(text: str = "", *calls: str) -> Message:
    parts = (Text(text=text),) if text else ()
    return message("assistant", *parts, *[ToolCall(call=CallId(c), name="f") for c in calls])


def results(*pairs: tuple[str, str]) -> Message:
    return message(
        "tool", *[ToolResult(call=CallId(c), name="f", content=content) for c, content in pairs]
    )


def sent(*messages: Message, **options) -> list[dict]:
    return chat_messages(ModelRequest(system="", messages=messages), **options)


def shape(entries: list[dict]) -> list[tuple]:
    return [
        (entry["role"], entry["content"], *[call["id"] for call in entry.get("tool_calls", ())])
        for entry in entries
    ]


def require_legal(entries: list[dict]) -> None:
    """What strict providers check."""
    waiting: list[str] = []
    last = ""
    for entry in entries:
        if entry["role"] == "tool":
            assert waiting.pop(0) == entry["tool_call_id"]
        else:
            assert not waiting
            assert entry["role"] != last or entry.get("tool_calls") or last == "assistant"
        assert entry["content"] or entry.get("tool_calls")
        waiting += [call["id"] for call in entry.get("tool_calls", ())]
        last = entry["role"]
    assert not waiting
    ids = [call["id"] for entry in entries for call in entry.get("tool_calls", ())]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([user("q"), said("", "a")], [("assistant", None, "a"), ("tool", NO_RESULT)]),
        ([user("q"), results(("a", "1"))], []),
        (
            [user("q"), said("", "a"), results(("a", "1"), ("a", "2"))],
            [("assistant", None, "a"), ("tool", "1")],
        ),
        (
            [user("q"), said("t", "a", "b"), results(("b", "2"))],
            [("assistant", "t", "a", "b"), ("tool", NO_RESULT), ("tool", "2")],
        ),
        (
            [user("q"), said("", "a"), user("more"), results(("a", "1"))],
            [("assistant", None, "a"), ("tool", "1"), ("user", "more")],
        ),
        (
            [user("q"), said("", "a"), results(("a", " "))],
            [("assistant", None, "a"), ("tool", NO_OUTPUT)],
        ),
        ([user("q"), said("  "), user("more")], []),
        ([user("q"), message("notice", Text(text="/new"))], []),
    ],
)
def test_a_broken_history_is_mended_on_the_way_out(history, expected):
    entries = sent(*history)

    require_legal(entries)
    tail = shape(entries)[1:]
    assert tail == expected


def test_neighbours_of_one_role_are_joined_and_blank_messages_left_out():
    entries = sent(user("a"), user(" "), user("b"), said("c"), said("d"))

    assert shape(entries) == [("user", "a\n\nb"), ("assistant", "c\n\nd")]


def test_ids_that_some_provider_refuses_are_mapped_always_the_same_way():
    long = "x" * 900
    history = [
        user("q"),
        *(said("", long), results((long, "1"))),
        *(said("", "call_1"), results(("call_1", "2"))),
        *(said("", "call_1"), results(("call_1", "3"))),
    ]

    entries = sent(*history)

    require_legal(entries)
    ids = [call["id"] for entry in entries for call in entry.get("tool_calls", ())]
    assert ids[1] == "call_1"
    assert all(len(mapped) == 9 and mapped.isalnum() for mapped in (ids[0], ids[2]))
    assert [entry["content"] for entry in entries if entry["role"] == "tool"] == ["1", "2", "3"]
    assert sent(*history) == entries


def test_all_ids_can_be_short():
    entries = sent(user("q"), said("", "call_1", "call_2"), short_ids=True)

    require_legal(entries)
    assert all(len(call["id"]) == 9 for call in entries[1]["tool_calls"])


def test_a_tool_name_that_no_provider_takes_is_made_plain():
    odd = message("assistant", ToolCall(call=CallId("a"), name="my tool!" + "x" * 99))
    nameless = message("assistant", ToolCall(call=CallId("b"), name=""))

    entries = sent(user("q"), odd, nameless)

    names = [call["function"]["name"] for e in entries for call in e.get("tool_calls", ())]
    assert names == ["my_tool_" + "x" * 56, "unnamed"]


MESSAGES = st.one_of(
    st.sampled_from(["", " ", "hello"]).map(user),
    st.lists(st.sampled_from("abc"), max_size=3).map(lambda calls: said("", *calls)),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "r"])), max_size=3).map(
        lambda pairs: results(*pairs)
    ),
    st.just(said("text")),
)


@given(st.lists(MESSAGES, max_size=8))
def test_any_history_goes_out_legal_and_stays_as_it_was(history):
    before = [entry.model_dump() for entry in history]

    require_legal(sent(*history))

    assert [entry.model_dump() for entry in history] == before
