"""A process killed anywhere in a turn: the next one finishes it, once."""

import subprocess
import sys
from pathlib import Path

import pytest

from instar.conversation.deliver import REPEAT_MARK
from instar.testing.agent import OWNER, Agent, agent_at, environ, update
from instar.testing.builders import at_work, eventually
from instar.testing.wire import BotApiServer, ScriptedModelServer, text_step, tool_step

FACT = "Anna cannot eat peanuts"
SESSION = f"telegram:main:{OWNER}"

# A server whose stores and channel end the process with SIGKILL at one point.
DYING = """
import dataclasses, os, signal, sys, time
from pathlib import Path
from instar.adapters.local.folder_documents import FolderDocuments
from instar.adapters.local.sqlite_sessions import SqliteSessions
from instar.adapters.local.sqlite_turns import SqliteTurns
from instar.clock import utc_now
from instar.testing.builders import at_work, embedded_at

home, point = Path(sys.argv[1]), sys.argv[2]

def passing(here):
    if here == point:
        os.kill(os.getpid(), signal.SIGKILL)

class Turns(SqliteTurns):
    def lease(self, turn, *, seconds):
        taken = super().lease(turn, seconds=seconds)
        passing("lease taken")
        return taken

    def record(self, lease, step):
        kind = "results" if step.results else "call" if step.assistant.calls() else "answer"
        passing(f"{kind} not kept")
        super().record(lease, step)
        passing(f"{kind} kept")

class Sessions(SqliteSessions):
    def commit(self, lease, commit):
        passing("before commit")
        super().commit(lease, commit)
        passing("after commit")

class Documents(FolderDocuments):
    def put(self, key, text, *, replaces):
        passing("before put")
        written = super().put(key, text, replaces=replaces)
        passing("after put")
        return written

class Channel:
    def __init__(self, inner):
        self.inner = inner

    def send(self, *address, **options):
        passing("before send")
        self.inner.send(*address, **options)
        passing("after send")

embedded = embedded_at(home, os.environ)
stores = embedded.stores
stores.__dict__["turns"] = Turns(stores.database, utc_now)
stores.__dict__["sessions"] = Sessions(stores.database, utc_now)
stores.__dict__["documents"] = Documents(stores.home.path, utc_now)
channel = Channel(embedded.delivery.channels["telegram"])
embedded.__dict__["delivery"] = dataclasses.replace(
    embedded.delivery, channels={"telegram": channel}
)
with at_work(embedded):
    time.sleep(60)
"""


def die_at(point: str, home: Path, settings: dict[str, str]) -> None:
    """Serves the home until the point kills the process."""
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(home), point], env=settings, timeout=30, check=False
    )
    assert done.returncode == -9


def finished(agent: Agent, bot: BotApiServer, replies: int = 1) -> None:
    """Restarts after whatever the dead process held has run out."""
    agent.time_passes()
    with at_work(agent.embedded):
        eventually(lambda: len(bot.sent) >= replies)
        eventually(lambda: agent.counted("queue") == 0)


TURN_POINTS = [
    "lease taken",
    "call kept",
    "before put",
    "after put",
    "results not kept",
    "results kept",
    "answer kept",
    "before commit",
    "after commit",
]


@pytest.mark.parametrize("point", TURN_POINTS)
def test_a_turn_killed_half_way_finishes_once(home, bot, point):
    with ScriptedModelServer(
        tool_step(("memory_save", {"content": FACT})), text_step("Noted.")
    ) as model:
        settings = environ(model, bot)
        agent = agent_at(home, settings)
        agent.telegram(update(1, f"Remember: {FACT}"))

        die_at(point, home, settings)
        finished(agent, bot)

    assert [sent["text"] for sent in bot.sent] == ["Noted."]
    assert agent.memory() == f"- {FACT}\n"
    states = [row.state for row in agent.embedded.stores.ledger.entries()]
    assert states.count("done") == 1
    assert "begun" not in states
    assert agent.said(SESSION) == [("user", f"Remember: {FACT}"), ("assistant", "Noted.")]


@pytest.mark.parametrize("point", ["call not kept", "answer not kept"])
def test_an_answer_that_was_not_kept_is_asked_for_again(home, bot, point):
    call = tool_step(("memory_save", {"content": FACT}))
    steps = {
        "call not kept": [call, call, text_step("Noted.")],
        "answer not kept": [call, text_step("Noted."), text_step("Noted again.")],
    }
    with ScriptedModelServer(*steps[point]) as model:
        settings = environ(model, bot)
        agent = agent_at(home, settings)
        agent.telegram(update(1, f"Remember: {FACT}"))

        die_at(point, home, settings)
        finished(agent, bot)

    assert len(bot.sent) == 1
    assert agent.memory() == f"- {FACT}\n"


@pytest.mark.parametrize("point", ["before send", "after send"])
def test_a_reply_killed_while_it_goes_out_is_marked_as_a_repeat(home, bot, point):
    with ScriptedModelServer(text_step("Hello.")) as model:
        settings = environ(model, bot)
        agent = agent_at(home, settings)
        agent.telegram(update(1, "Hi"))

        die_at(point, home, settings)
        before = len(bot.sent)
        finished(agent, bot, before + 1)

    sent = [sent["text"] for sent in bot.sent]
    assert sent == ["Hello."] * before + [f"{REPEAT_MARK}Hello."]
    assert before == (1 if point == "after send" else 0)


def test_three_crashes_and_the_owner_hears_about_it(home, bot):
    with ScriptedModelServer(text_step("The next one works.")) as model:
        settings = environ(model, bot)
        agent = agent_at(home, settings)
        agent.telegram(update(1, "poison"))
        agent.telegram(update(2, "Hi"))

        for _ in range(3):
            die_at("lease taken", home, settings)
            agent.time_passes()
        finished(agent, bot, 2)

    texts = [sent["text"] for sent in bot.sent]
    assert texts[0].startswith("I could not answer: this message made me stop three times")
    assert texts[1:] == ["The next one works."]


def test_a_store_that_fails_for_a_moment_is_no_crash_and_no_long_wait(home, bot):
    """The commit is refused once; the turn goes on at once, from its journal."""
    from instar.adapters.local.sqlite_sessions import SqliteSessions
    from instar.clock import utc_now
    from instar.errors import Unavailable

    class Sessions(SqliteSessions):
        refusals = 1

        def commit(self, lease, commit):
            if self.refusals:
                self.refusals -= 1
                raise Unavailable("the disk is full")
            super().commit(lease, commit)

    with ScriptedModelServer(text_step("Hello.")) as model:
        agent = agent_at(home, environ(model, bot))
        stores = agent.embedded.stores
        stores.__dict__["sessions"] = Sessions(stores.database, utc_now)
        with at_work(agent.embedded):
            agent.telegram(update(1, "Hi"))
            eventually(lambda: bot.sent)

    assert [sent["text"] for sent in bot.sent] == ["Hello."]
    assert agent.counted("turns WHERE crashes = 0 AND attempts = 2") == 1
