"""`chat --once` and the rounds of a turn behind a model's real wire."""

import json
import time

import pytest

from instar.conversation.rounds import CUT_OFF
from instar.testing.agent import agent_at, environ, instar
from instar.testing.builders import at_work, eventually
from instar.testing.wire import (
    ScriptedModelServer,
    Step,
    call_delta,
    cut_stream_step,
    delta,
    error_step,
    sse,
    text_step,
    tool_step,
    usage,
)

FACT = "Anna cannot eat peanuts"


def test_a_chat_answers_with_reply_calls_and_usage(home):
    with ScriptedModelServer(
        tool_step(("memory_save", {"content": FACT})), text_step("Noted.")
    ) as model:
        code, answer, _ = instar(
            home, "chat", "--once", f"Remember: {FACT}", settings=environ(model)
        )

    assert code == 0
    assert (answer["session"], answer["reply"]) == ("main", "Noted.")
    assert answer["tool_calls"] == [
        {"name": "memory_save", "arguments": {"content": FACT}, "is_error": False}
    ]
    assert answer["usage"] == {
        "input_tokens": 20,
        "output_tokens": 6,
        "cached_tokens": 0,
        "estimated": False,
    }
    assert (home / "agents/main/MEMORY.md").read_text() == f"- {FACT}\n"


def test_a_later_session_knows_the_fact(home):
    instar(home, "memory", "save", FACT)

    def check(request) -> None:
        assert FACT in request.json()["messages"][0]["content"]

    with ScriptedModelServer(text_step(f"I know that {FACT}.", check=check)) as model:
        code, answer, _ = instar(
            home, "chat", "--session", "s2", "--once", "Peanuts?", settings=environ(model)
        )

    assert (code, answer["reply"]) == (0, f"I know that {FACT}.")


def test_what_a_turn_saves_is_found_by_a_search_in_the_same_turn(home):
    with ScriptedModelServer(
        tool_step(("memory_save", {"content": "locker code is 4417"})),
        tool_step(("memory_search", {"query": "locker code"})),
        text_step("4417."),
    ) as model:
        instar(home, "chat", "--once", "Save it, then look.", settings=environ(model))

    found = json.loads(model.requests[2].json()["messages"][-1]["content"])
    assert [hit["text"] for hit in found["hits"]] == ["- locker code is 4417"]


def test_a_turn_that_wants_tools_for_ever_ends(home):
    steps = [tool_step(("memory_search", {"query": "x"}))] * 26
    with ScriptedModelServer(*steps) as model:
        code, problem, _ = instar(home, "chat", "--once", "Loop.", settings=environ(model))

    assert (code, problem["type"]) == (1, "budget_exhausted")
    assert "25 rounds" in problem["detail"]
    assert "tools" not in model.requests[25].json()


# --- a model that fails -----------------------------------------------------------------------


def test_a_long_retry_after_is_not_waited_for(home):
    began = time.monotonic()
    with ScriptedModelServer(error_step(429, headers={"retry-after": "45"})) as model:
        code, problem, _ = instar(home, "chat", "--once", "Hi", settings=environ(model))

    assert (code, problem["type"]) == (3, "throttled")
    assert time.monotonic() - began < 20


def test_a_bad_key_says_which_to_set(home):
    with ScriptedModelServer(error_step(401)) as model:
        code, problem, _ = instar(home, "chat", "--once", "Hi", settings=environ(model))

    assert code == 3
    assert "INSTAR_MODEL_API_KEY" in problem["fix"]


def test_a_stream_that_breaks_after_words_is_told_and_kept_out_of_the_history(home):
    with ScriptedModelServer(cut_stream_step("The answer is "), text_step("42.")) as model:
        code, problem, _ = instar(home, "chat", "--once", "Well?", settings=environ(model))
        assert (code, problem["type"]) == (3, "unavailable")
        code, answer, _ = instar(home, "chat", "--once", "Again?", settings=environ(model))

    assert (code, answer["reply"]) == (0, "42.")
    sent = model.requests[1].json()["messages"]
    assert "The answer is" not in json.dumps(sent)
    assert [message["role"] for message in sent if message["role"] != "system"][-1] == "user"


def test_an_error_in_the_middle_of_the_stream_is_an_error(home):
    broken = Step(
        chunks=(
            sse(delta(content="Half"), {"error": {"message": "boom", "code": 500}}, done=False),
        )
    )
    with ScriptedModelServer(broken) as model:
        code, problem, _ = instar(home, "chat", "--once", "Hi", settings=environ(model))

    assert (code, problem["type"]) == (3, "unavailable")


def test_a_model_that_is_down_for_a_moment_is_asked_again(home):
    with ScriptedModelServer(error_step(503), Step(status=0), text_step("Here.")) as model:
        code, answer, _ = instar(home, "chat", "--once", "Hi", settings=environ(model))

    assert (code, answer["reply"]) == (0, "Here.")


def test_arguments_that_were_cut_off_are_not_executed(home):
    (home / "agents/main/memory").mkdir(parents=True)
    (home / "agents/main/memory/plan.md").write_text("# Plan\n\n- old\n")
    half = '{"document":"memory/plan.md","replace":true,"content":"# Plan\\n- fir'
    cut = Step(
        chunks=(
            sse(
                call_delta(0, id="call_1", name="memory_save", arguments=half),
                delta("length"),
                usage(10, 50),
            ),
        )
    )
    with ScriptedModelServer(cut, text_step("That was too long.")) as model:
        code, answer, _ = instar(home, "chat", "--once", "Plan it.", settings=environ(model))

    assert (code, answer["reply"]) == (0, "That was too long.")
    assert answer["tool_calls"][0]["is_error"] is True
    told = json.loads(model.requests[1].json()["messages"][-1]["content"])
    assert "cut off" in told["detail"]
    assert (home / "agents/main/memory/plan.md").read_text() == "# Plan\n\n- old\n"


def test_arguments_that_do_not_fit_are_told_to_the_model(home):
    with ScriptedModelServer(
        tool_step(
            ("memory_save", {"content": "x", "agent": "zoe"}),
            ("memory_save", {}),
            ("nonsense", {}),
            ("memory_save", {"content": "kept"}),
        ),
        text_step("Done."),
    ) as model:
        code, answer, _ = instar(home, "chat", "--once", "Go.", settings=environ(model))

    assert code == 0
    assert [call["is_error"] for call in answer["tool_calls"]] == [True, True, True, False]
    told = [json.loads(m["content"]) for m in model.requests[1].json()["messages"][-4:]]
    assert [one.get("type", "saved") for one in told] == [
        "invalid",
        "invalid",
        "not_found",
        "saved",
    ]
    assert told[0]["errors"][0]["field"] == "agent"
    assert (home / "agents/main/MEMORY.md").read_text() == "- kept\n"
    assert not (home / "agents/zoe").exists()


def test_an_empty_answer_is_asked_for_once_more(home):
    with ScriptedModelServer(text_step(""), text_step("Now.")) as model:
        code, answer, _ = instar(home, "chat", "--once", "Hi", settings=environ(model))

    assert (code, answer["reply"]) == (0, "Now.")


def test_a_model_that_answers_nothing_twice_is_told(home):
    with ScriptedModelServer(text_step(""), text_step(" "), text_step("Back.")) as model:
        code, problem, _ = instar(home, "chat", "--once", "Hi", settings=environ(model))
        assert (code, problem["type"]) == (3, "unavailable")
        assert "answered nothing" in problem["detail"]
        assert instar(home, "chat", "--once", "Hi", settings=environ(model))[0] == 0


def test_nothing_after_tools_gives_what_was_said_before(home):
    with ScriptedModelServer(
        tool_step(("memory_save", {"content": FACT}), text="I keep that."),
        text_step(""),
        text_step(""),
    ) as model:
        code, answer, _ = instar(home, "chat", "--once", FACT, settings=environ(model))

    assert (code, answer["reply"]) == (0, "I keep that.")
    assert answer["usage"]["output_tokens"] > 0


def test_an_answer_at_the_output_limit_says_so(home):
    cut = Step(chunks=(sse(delta(content="And so on"), delta("length"), usage(5, 3)),))
    with ScriptedModelServer(cut) as model:
        code, answer, _ = instar(home, "chat", "--once", "Long.", settings=environ(model))

    assert (code, answer["reply"]) == (0, f"And so on{CUT_OFF}")


def test_a_model_without_counts_gets_estimated_ones(home):
    plain = Step(chunks=(sse(delta(content="Hello there"), delta("stop")),))
    with ScriptedModelServer(plain) as model:
        _, answer, _ = instar(home, "chat", "--once", "Hi", settings=environ(model))

    assert answer["usage"]["estimated"] is True
    assert answer["usage"]["output_tokens"] > 0


def test_characters_torn_by_the_stream_arrive_whole(home):
    whole = sse(delta(content="Grüße 🍸 你好"), delta("stop"), usage(1, 3))
    chunks = tuple(whole[at : at + 1] for at in range(len(whole)))
    with ScriptedModelServer(Step(chunks=chunks)) as model:
        _, answer, _ = instar(home, "chat", "--once", "Hi", settings=environ(model))

    assert answer["reply"] == "Grüße 🍸 你好"


def test_too_much_text_is_asked_again_with_less(home):
    overflow = error_step(400, code="context_length_exceeded")
    settings = {"INSTAR_MODEL_CONTEXT_TOKENS": "2000"}
    with ScriptedModelServer(
        text_step("one " * 500), text_step("two"), overflow, text_step("three")
    ) as model:
        for word in ("1", "2", "3"):
            code, answer, _ = instar(
                home, "chat", "--once", word, settings=environ(model) | settings
            )

    assert (code, answer["reply"]) == (0, "three")
    assert len(model.requests[3].json()["messages"]) < len(model.requests[2].json()["messages"])


# --- conversations ------------------------------------------------------------------------------


def test_new_begins_a_new_conversation_and_memory_stays(home):
    with ScriptedModelServer(text_step("Hello."), text_step("Again.")) as model:
        instar(home, "chat", "--once", "my secret word is Kumquat", settings=environ(model))
        code, answer, _ = instar(home, "chat", "--once", "/new", settings=environ(model))
        assert (code, answer["reply"].split(".")[0]) == (0, "A new conversation starts here")
        instar(home, "chat", "--once", "What was my word?", settings=environ(model))

    assert "Kumquat" not in model.requests[1].body.decode()
    shown = instar(home, "session", "show", "main")[1]["messages"]
    assert [row["text"] for row in shown if row["role"] == "user"] == [
        "my secret word is Kumquat",
        "What was my word?",
    ]


def test_without_any_model_the_demo_says_what_it_is(home):
    code, answer, _ = instar(home, "chat", "--once", "remember my tea is oolong")

    assert code == 0
    assert "demo model" in answer["reply"]
    assert (home / "agents/main/MEMORY.md").read_text() == "- my tea is oolong\n"


def test_a_stop_ends_the_turn_with_what_was_said(home):
    import threading

    from instar.ids import SessionId
    from instar.testing.wire import Pause

    go_on = threading.Event()
    slow = Step(
        chunks=(
            sse(delta(content="Well, "), done=False),
            Pause(until=go_on, seconds=30),
            sse(delta(content="never said"), delta("stop"), usage(1, 2)),
        )
    )
    with ScriptedModelServer(slow) as model:
        agent = agent_at(home, environ(model))
        with at_work(agent.embedded):
            _, told = agent.generic({"id": "1", "text": "Go", "sender": "me", "conversation": "c"})
            session = SessionId("generic:c")
            events = agent.embedded.stores.sessions.events
            eventually(lambda: [e for e in events(session, after=0) if e.kind == "text_delta"])
            assert agent.embedded.stops.stop(session) is True
            turns = agent.embedded.stores.turns
            eventually(lambda: turns.get(told["turn"]).stop_requested)
            go_on.wait(agent.embedded.runner.settings.pace.renew_seconds + 1)
            go_on.set()
            assert agent.ended(told["turn"]) == "stopped"

    assert agent.said("generic:c") == [("user", "Go"), ("assistant", "Well, ")]


# --- secrets ------------------------------------------------------------------------------------


@pytest.fixture
def planted() -> str:
    return "sk-proj-" + "Q7w8E9r0" * 5


def everything_in(home) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_secret_is_masked_before_the_first_write(home, planted):
    """In what the owner says, what the model says, what it asks of tools and what tools find."""
    pieces = [planted[at : at + 5] for at in range(0, len(planted), 5)]
    leaky = Step(
        chunks=(
            sse(
                delta(content="You said "),
                *(delta(content=piece) for piece in pieces),
                delta(content=" I think."),
                delta("stop"),
                usage(1, 2),
            ),
        )
    )
    with ScriptedModelServer(
        tool_step(("memory_save", {"content": f"the key is {planted}"})),
        leaky,
    ) as model:
        code, answer, _ = instar(
            home,
            "chat",
            "--once",
            f"My key is {planted} and my PIN is 4417",
            settings=environ(model),
        )

    assert (code, answer["reply"]) == (0, "You said [an API key was removed] I think.")
    assert answer["tool_calls"][0]["is_error"] is True
    assert planted not in model.requests[0].body.decode()
    assert "4417" in model.requests[0].body.decode()
    kept = everything_in(home)
    assert b"4417" in kept
    assert planted.encode() not in kept
    assert planted[12:].encode() not in kept


def test_a_secret_in_a_document_does_not_spread(home, planted):
    (home / "agents/main/memory").mkdir(parents=True)
    (home / "agents/main/memory/old.md").write_text(f"the server: 10.0.0.7\nkey: {planted}\n")
    with ScriptedModelServer(
        tool_step(("memory_get", {"document": "memory/old.md"})), text_step("10.0.0.7.")
    ) as model:
        instar(home, "chat", "--once", "Which server?", settings=environ(model))

    told = model.requests[1].json()["messages"][-1]["content"]
    assert "10.0.0.7" in told
    assert planted not in told
    with_sessions = b"".join(path.read_bytes() for path in home.glob("instar.db*"))
    assert b"10.0.0.7" in with_sessions
    assert planted.encode() not in with_sessions
