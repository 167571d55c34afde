"""The signed webhook: once per id, guests without memory, the reply in the session."""

import pytest

from instar.errors import Conflict, Invalid, TooLarge, Unauthenticated
from instar.testing.agent import agent_at, environ
from instar.testing.builders import at_work, eventually
from instar.testing.wire import ScriptedModelServer, WireRequest, text_step, tool_step

FACT = "the safe is behind the painting"


def message(id: str = "m1", text: str = "Hi", sender: str = "me", **fields: str) -> dict[str, str]:
    return {"id": id, "text": text, "sender": sender, "conversation": "home", **fields}


def test_the_reply_stands_in_the_session(home):
    with ScriptedModelServer(text_step("Hello.")) as model:
        agent = agent_at(home, environ(model))
        with at_work(agent.embedded):
            status, told = agent.generic(message())
            assert status == 202
            assert agent.ended(told["turn"]) == "completed"

    assert agent.said("generic:home") == [("user", "Hi"), ("assistant", "Hello.")]


def test_the_same_id_and_body_are_the_same_turn_and_another_body_is_a_conflict(home):
    with ScriptedModelServer(text_step("Hello.")) as model:
        agent = agent_at(home, environ(model))
        with at_work(agent.embedded):
            _, first = agent.generic(message())
            _, again = agent.generic(message())
            agent.ended(first["turn"])
            _, late = agent.generic(message(ignored="field"))
            with pytest.raises(Conflict):
                agent.generic(message(text="something else"))

    assert first == again == late
    assert agent.said("generic:home") == [("user", "Hi"), ("assistant", "Hello.")]


@pytest.mark.parametrize(("secret", "age"), [("wrong", 0), ("generic-secret", 301), ("", 0)])
def test_a_bad_or_stale_signature_is_401_and_stores_nothing(home, secret, age):
    with ScriptedModelServer() as model:
        agent = agent_at(home, environ(model))

        with pytest.raises(Unauthenticated):
            agent.generic(message(), secret=secret, age=age)

        assert [agent.counted(name) for name in ("turns", "queue", "sessions")] == [0, 0, 0]
        assert agent.generic(message(), age=299)[0] == 202
        assert agent.counted("turns") == 1


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"not json", Invalid),
        (b"\xff\xfe", Invalid),
        (b"[]", Invalid),
        (message(text=" "), Invalid),
        (message(id=""), Invalid),
        (message(sender="a\nb"), Invalid),
        (message(conversation="x" * 181), Invalid),
        ({"id": "1", "text": "x"}, Invalid),
        (message(text="x" * 32_001), TooLarge),
        (message(text="x" * 1_048_577), TooLarge),
    ],
    ids=str.__class__.__name__.format,
)
def test_a_body_that_does_not_fit_is_refused_and_stores_nothing(home, body, kind):
    with ScriptedModelServer() as model:
        agent = agent_at(home, environ(model))

        with pytest.raises(kind):
            agent.generic(body)

        assert agent.counted("turns") == 0
        assert agent.generic(message())[0] == 202


def test_a_guest_gets_an_answer_without_memory_and_tools(home):
    def nothing_of_the_owner(request: WireRequest) -> None:
        body = request.body.decode()
        assert "guest" in request.json()["messages"][0]["content"]
        assert FACT not in body
        assert "owner asks" not in body
        assert "tools" not in request.json()

    with ScriptedModelServer(
        tool_step(("memory_save", {"content": FACT})),
        text_step("Kept."),
        tool_step(("memory_search", {"query": "safe"}), check=nothing_of_the_owner),
        text_step("I may not look.", check=nothing_of_the_owner),
        text_step("Yes."),
    ) as model:
        agent = agent_at(home, environ(model))
        with at_work(agent.embedded):
            _, told = agent.generic(message("1", "the owner asks"))
            agent.ended(told["turn"])
            _, told = agent.generic(message("2", "Where is the safe?", sender="bob"))
            assert agent.ended(told["turn"]) == "completed"
            _, told = agent.generic(message("3", "Did you keep it?"))
            agent.ended(told["turn"])

    owners = model.requests[4].body.decode()
    assert "the owner asks" in owners
    assert FACT in owners
    assert "Where is the safe?" not in owners
    refused = model.requests[3].json()["messages"][-1]["content"]
    assert '"type": "forbidden"' in refused
    assert agent.memory() == f"- {FACT}\n"


def test_guests_in_one_conversation_hear_each_other(home):
    with ScriptedModelServer(text_step("Noon."), text_step("Bob asked.")) as model:
        agent = agent_at(home, environ(model))
        with at_work(agent.embedded):
            _, told = agent.generic(message("1", "When is lunch?", sender="bob"))
            agent.ended(told["turn"])
            _, told = agent.generic(message("2", "What was asked?", sender="cleo"))
            agent.ended(told["turn"])

    assert "When is lunch?" in model.requests[1].body.decode()


def test_a_guests_command_resets_nothing(home):
    with ScriptedModelServer(text_step("Hello."), text_step("Still here.")) as model:
        agent = agent_at(home, environ(model))
        with at_work(agent.embedded):
            _, told = agent.generic(message("1", "my word is Kumquat"))
            agent.ended(told["turn"])
            for number, command in enumerate(("/new", "  /reset", "/memory delete all")):
                _, told = agent.generic(message(f"c{number}", command, sender="bob"))
                agent.ended(told["turn"])
            _, told = agent.generic(message("2", "my word?"))
            agent.ended(told["turn"])

    assert "Kumquat" in model.requests[1].body.decode()


def test_without_a_named_owner_everybody_is_a_guest(home):
    with ScriptedModelServer(text_step("Hello, guest.")) as model:
        agent = agent_at(home, environ(model) | {"INSTAR_WEBHOOK_OWNER": ""})
        with at_work(agent.embedded):
            _, told = agent.generic(message())
            assert agent.ended(told["turn"]) == "completed"

    assert "tools" not in model.requests[0].json()


def test_half_characters_become_replacement_characters(home):
    body = b'{"id":"1","text":"\\ud83c\\udf78 and \\ud83c","sender":"me","conversation":"c"}'
    with ScriptedModelServer(text_step("Cheers.")) as model:
        agent = agent_at(home, environ(model))
        with at_work(agent.embedded):
            _, told = agent.generic(body)
            eventually(lambda: agent.ended(told["turn"]))

    assert agent.said("generic:c")[0] == ("user", "🍸 and \N{REPLACEMENT CHARACTER}")
