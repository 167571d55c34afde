"""Two conversations go on side by side; within one, order holds."""

import threading

from instar.testing.agent import agent_at, environ
from instar.testing.builders import at_work, eventually
from instar.testing.wire import LocalServer, ScriptedModelServer, Step, WireRequest, text_step


def said(request: WireRequest) -> str:
    content = request.json()["messages"][-1]["content"]
    return str(content).rpartition("\n")[2]


def send(agent, number: int, text: str, conversation: str) -> str:
    body = {"id": str(number), "text": text, "sender": "me", "conversation": conversation}
    return agent.generic(body)[1]["turn"]


def test_a_slow_conversation_does_not_hold_up_another(home):
    go_on = threading.Event()

    def answer(request: WireRequest) -> Step:
        if "slow" in said(request):
            return Step(chunks=text_step("at last").chunks, hold=go_on)
        return text_step("at once")

    with LocalServer(answer) as model:
        agent = agent_at(home, environ(f"{model.url}/v1"))
        with at_work(agent.embedded):
            slow = send(agent, 1, "slow", "one")
            eventually(lambda: agent.counted("turns WHERE state = 'running'") == 1)
            quick = send(agent, 2, "quick", "two")
            assert agent.ended(quick) == "completed"
            assert agent.embedded.stores.turns.get(slow).state == "running"
            go_on.set()
            assert agent.ended(slow) == "completed"

    assert agent.said("generic:one")[-1] == ("assistant", "at last")
    assert agent.said("generic:two")[-1] == ("assistant", "at once")


def test_messages_of_one_conversation_are_answered_in_order_and_once(home):
    running, most = [], []
    lock = threading.Lock()

    def answer(request: WireRequest) -> Step:
        with lock:
            running.append(1)
            most.append(len(running))
        threading.Event().wait(0.05)
        with lock:
            running.pop()
        return text_step(f"to {said(request)}")

    with LocalServer(answer) as model:
        agent = agent_at(home, environ(f"{model.url}/v1"))
        with at_work(agent.embedded):
            turns = [send(agent, n, f"m{n}", "one") for n in range(6)]
            for turn in turns:
                assert agent.ended(turn) == "completed"

    assert max(most) == 1
    assert agent.said("generic:one") == [
        line for n in range(6) for line in (("user", f"m{n}"), ("assistant", f"to m{n}"))
    ]


def test_eight_conversations_at_once_keep_their_words_apart(home):
    with LocalServer(lambda request: text_step(f"to {said(request)}")) as model:
        agent = agent_at(home, environ(f"{model.url}/v1"))
        with at_work(agent.embedded):
            turns = [
                send(agent, 10 * n + c, f"c{c}-m{n}", f"c{c}") for n in range(3) for c in range(8)
            ]
            for turn in turns:
                assert agent.ended(turn) == "completed"

    for c in range(8):
        assert agent.said(f"generic:c{c}") == [
            line
            for said in (f"c{c}-m{n}" for n in range(3))
            for line in (("user", said), ("assistant", f"to {said}"))
        ]
    assert agent.counted("queue") == 0


def test_events_of_a_session_are_numbered_without_gaps(home):
    with ScriptedModelServer(text_step("a b c"), text_step("d e f")) as model:
        agent = agent_at(home, environ(model))
        with at_work(agent.embedded):
            for n in range(2):
                agent.ended(send(agent, n, f"m{n}", "one"))

    events = agent.embedded.stores.sessions.events("generic:one", after=0)
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert [event.kind for event in events if event.kind != "text_delta"] == [
        "turn_started",
        "reply",
    ] * 2
    deltas = "".join(event.data["text"] for event in events if event.kind == "text_delta")
    assert deltas == "a b cd e f"
