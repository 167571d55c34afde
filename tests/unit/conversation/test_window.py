"""Which part of a transcript a model is shown."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from instar.conversation.window import (
    estimated_tokens,
    fitting,
    halved,
    heard_by,
    message_tokens,
    since_new,
    visible,
)
from instar.messages import Message, Text, ToolCall, ToolResult

AT = datetime(2031, 5, 4, tzinfo=UTC)


def said(role: str, text: str, *, author: str = "owner") -> Message:
    return Message(id=f"{role}-{text}", role=role, parts=(Text(text=text),), at=AT, author=author)


def used_tool(text: str) -> list[Message]:
    call = ToolCall(call="c", name="memory_get", arguments={"document": text})
    result = ToolResult(call="c", name="memory_get", content=text)
    return [
        Message(id=f"a-{text}", role="assistant", parts=(call,), at=AT, author="agent"),
        Message(id=f"t-{text}", role="tool", parts=(result,), at=AT, author="agent"),
    ]


def turn(text: str) -> list[Message]:
    return [said("user", text), *used_tool(text), said("assistant", text, author="agent")]


def test_tokens_are_estimated_by_the_script():
    assert [estimated_tokens(text) for text in ("", "a", "abcd", "abcde", "你好", "a你")] == [
        0,
        1,
        1,
        2,
        2,
        1,
    ]


def test_new_ends_what_is_seen_and_other_notices_do_not():
    messages = [
        *turn("one"),
        said("notice", "/new"),
        *turn("two"),
        said("notice", "failed: x"),
        said("user", "three"),
    ]

    assert [m.text() for m in since_new(messages) if m.role == "user"] == ["two", "three"]
    assert all(m.role != "notice" for m in since_new(messages))


def test_whole_turns_go_from_the_front():
    messages = [*turn("one"), *turn("two"), *turn("three")]
    cost = sum(message_tokens(message) for message in turn("three"))

    assert fitting(messages, 10_000) == messages
    assert fitting(messages, cost) == turn("three")
    assert fitting(messages, 2 * cost) == [*turn("two"), *turn("three")]


def test_the_last_turn_stays_whatever_it_costs():
    assert fitting([*turn("one"), *turn("two")], 0) == turn("two")
    assert visible([*turn("one"), *turn("two")], context_tokens=1, system="x" * 99) == turn("two")


def test_halving_leaves_out_the_older_half():
    messages = [m for n in range(8) for m in turn(f"n{n}")]

    assert halved(messages) == [m for n in range(4, 8) for m in turn(f"n{n}")]
    assert halved(turn("only")) == turn("only")


@given(st.lists(st.text(max_size=30), min_size=1, max_size=8), st.integers(0, 400))
def test_what_is_kept_is_an_end_of_whole_turns(texts, budget):
    messages = [m for n, text in enumerate(texts) for m in turn(f"{n}{text}")]

    kept = fitting(messages, budget)

    assert messages[len(messages) - len(kept) :] == kept
    assert len(kept) % 4 == 0
    assert kept[0].role == "user"
    results = {p.call for m in kept for p in m.parts if isinstance(p, ToolResult)}
    assert {c.call for m in kept for c in m.calls()} == results


def test_owner_and_guests_do_not_hear_each_other():
    guest = [said("user", "guest asks", author="guest:9"), *used_tool("g")]
    messages = [*turn("owner asks"), *guest, said("notice", "/new"), *turn("later")]

    assert heard_by(messages, is_owner=True) == [
        *turn("owner asks"),
        said("notice", "/new"),
        *turn("later"),
    ]
    assert heard_by(messages, is_owner=False) == [*guest, said("notice", "/new")]
