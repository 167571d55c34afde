"""Whatever comes twice happens once: saves, calls, messages, replies."""

import threading

import pytest

from instar.errors import Conflict, Forbidden, Invalid, NotFound
from instar.ids import AgentId, ReplyId
from instar.principal import Right, owner
from instar.testing.agent import agent_at, environ, update
from instar.testing.builders import at_work, eventually
from instar.testing.wire import ScriptedModelServer, text_step, tool_step
from instar.tools.toolbox import InvalidArguments

MAIN = owner(AgentId("main"))
FACT = {"content": "Anna cannot eat peanuts"}


def lines(folder) -> list[str]:
    path = folder / "agents/main/MEMORY.md"
    return path.read_text().splitlines() if path.exists() else []


def test_a_call_under_one_key_happens_once_and_answers_the_same(embedded, folder):
    first = embedded.outside.call("key:a", MAIN, "memory_save", FACT, "k")
    again = embedded.outside.call("key:a", MAIN, "memory_save", FACT, "k")

    assert first == again
    assert (first.status, first.body["is_error"]) == (200, False)
    assert first.body["result"]["saved"] is True
    assert lines(folder) == ["- Anna cannot eat peanuts"]
    assert len(embedded.stores.ledger.entries()) == 1


def test_another_body_under_the_key_is_a_conflict(embedded, folder):
    embedded.outside.call("key:a", MAIN, "memory_save", FACT, "k")

    with pytest.raises(Conflict):
        embedded.outside.call("key:a", MAIN, "memory_save", {"content": "other"}, "k")

    assert lines(folder) == ["- Anna cannot eat peanuts"]


def test_a_key_belongs_to_its_caller_and_its_tool(embedded):
    embedded.outside.call("key:a", MAIN, "memory_save", FACT, "k")

    other_tool = embedded.outside.call("key:a", MAIN, "memory_get", {"document": "MEMORY.md"}, "k")
    other_caller = embedded.outside.call("key:b", MAIN, "memory_save", FACT, "k")

    assert other_tool.body["result"]["text"] == "- Anna cannot eat peanuts\n"
    assert other_caller.body["result"]["saved"] is False


def test_a_repeat_is_authorised_before_it_is_replayed(embedded):
    embedded.outside.call("key:a", MAIN, "memory_save", FACT, "k")
    reader = MAIN.narrowed(frozenset({Right.READ}))
    listed = MAIN.narrowed(frozenset(Right), frozenset({"memory_search"}))

    with pytest.raises(Forbidden):
        embedded.outside.call("key:a", reader, "memory_save", FACT, "k")
    with pytest.raises(NotFound):
        embedded.outside.call("key:a", listed, "memory_save", FACT, "k")


def test_what_was_refused_by_its_shape_takes_no_key(embedded, folder):
    with pytest.raises(InvalidArguments):
        embedded.outside.call("key:a", MAIN, "memory_save", {**FACT, "agent": "zoe"}, "k")
    with pytest.raises(Invalid):
        embedded.outside.call("key:a", MAIN, "memory_save", ["x"], "k")

    embedded.outside.call("key:a", MAIN, "memory_save", FACT, "k")
    assert lines(folder) == ["- Anna cannot eat peanuts"]


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb"])
def test_a_key_that_is_none_is_refused(embedded, folder, key):
    with pytest.raises(Invalid, match="Idempotency-Key"):
        embedded.outside.call("key:a", MAIN, "memory_save", FACT, key)

    assert lines(folder) == []


def test_many_at_once_under_one_key_leave_one_line(embedded, folder):
    answers, refusals = [], []

    def call() -> None:
        try:
            answers.append(embedded.outside.call("key:a", MAIN, "memory_save", FACT, "k").body)
        except Conflict as error:
            refusals.append(error.detail)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) + len(refusals) == 8
    assert answers
    assert all(answer == answers[0] for answer in answers)
    assert lines(folder) == ["- Anna cannot eat peanuts"]
    assert [row.state for row in embedded.stores.ledger.entries()] == ["done"]


def test_without_a_key_a_second_save_is_a_duplicate(embedded, folder):
    embedded.outside.call("key:a", MAIN, "memory_save", FACT, None)

    again = embedded.outside.call("key:a", MAIN, "memory_save", FACT, None)

    assert again.body["result"]["duplicate_of"] == {"document": "MEMORY.md", "lines": [1, 1]}
    assert lines(folder) == ["- Anna cannot eat peanuts"]


def test_five_deliveries_after_a_cold_start_change_nothing(home, bot):
    with ScriptedModelServer(
        *[
            step
            for n in range(5)
            for step in (tool_step(("memory_save", {"content": f"fact {n}"})), text_step(f"ok {n}"))
        ]
    ) as model:
        agent = agent_at(home, environ(model, bot))
        with at_work(agent.embedded):
            for number in range(5):
                agent.telegram(update(number + 1, f"message {number}"))
            eventually(lambda: len(bot.sent) == 5)
        before = agent.memory()

        agent = agent_at(home, environ(model, bot))
        agent.time_passes()
        with agent.embedded.stores.database.write() as connection:
            connection.execute("DELETE FROM queue_seen")  # more than five minutes later
        with at_work(agent.embedded):
            for number in range(5):
                assert agent.telegram(update(number + 1, f"message {number}")) == 200
            eventually(lambda: agent.counted("queue") == 0)

    assert [sent["text"] for sent in bot.sent] == [f"ok {n}" for n in range(5)]
    assert agent.memory() == before == "".join(f"- fact {n}\n" for n in range(5))


def test_a_reply_handed_over_twice_is_sent_once(home, bot):
    with ScriptedModelServer(text_step("Hello.")) as model:
        agent = agent_at(home, environ(model, bot))
        with at_work(agent.embedded):
            agent.telegram(update(1, "Hi"))
            eventually(lambda: bot.sent)
        (row,) = agent.embedded.stores.sessions.list()
        turn = agent.embedded.stores.sessions.load(row.session).messages[0].turn
        reply = agent.embedded.stores.turns.get(turn).reply

        agent.embedded.delivery.run(reply)
        agent.embedded.delivery.run(reply.model_copy(update={"id": ReplyId("nobody")}))

    assert [sent["text"] for sent in bot.sent] == ["Hello."]
