"""A process that is killed leaves whole turns: messages, outbox, events and state together."""

import random
import signal
import time

from instar.adapters.local.sqlite_outbox import SqliteOutbox
from instar.adapters.local.sqlite_sessions import SqliteSessions
from instar.adapters.local.sqlite_turns import SqliteTurns
from instar.clock import utc_now

WORKER = """
import sys
from pathlib import Path
from instar.adapters.local.database import Database
from instar.adapters.local.sqlite_sessions import SqliteSessions
from instar.adapters.local.sqlite_turns import SqliteInbox, SqliteTurns
from instar.clock import utc_now
from instar.conversation.envelopes import InboundMessage, Reply, ReplyAddress
from instar.conversation.ports import NewEvent, TurnCommit
from instar.ids import MAIN_AGENT
from instar.messages import Message, Text
from instar.principal import owner

database = Database(Path(sys.argv[1]))
inbox, turns = SqliteInbox(database), SqliteTurns(database, utc_now)
sessions = SqliteSessions(database, utc_now)
address = ReplyAddress(channel="session")
for number in range(int(sys.argv[2]), 10**9):
    turn = f"t{number}"
    inbox.accept(InboundMessage(
        turn=turn, identity=turn, digest="d", session="s", text="x",
        principal=owner(MAIN_AGENT), address=address, at=utc_now(),
    ))
    lease = turns.lease(turn, seconds=90)
    messages = [
        Message(id=f"{turn}.{part}", role="user", parts=(Text(text="x" * 500),), at=utc_now())
        for part in range(5)
    ]
    sessions.commit(lease, TurnCommit(
        messages=messages, state="completed", at=utc_now(),
        reply=Reply(id=turn, turn=turn, session="s", address=address, text="y"),
        events=[NewEvent(kind="notice", data={}), NewEvent(kind="reply", data={})],
    ))
    print(turn, flush=True)
"""


def test_a_killed_worker_leaves_only_whole_turns(database, tmp_path, children):
    random.seed(5)
    sessions = SqliteSessions(database, utc_now)
    said: list[str] = []
    for start in range(0, 6000, 1000):
        worker = children.start(WORKER, tmp_path / "instar.db", start)
        said.append(worker.stdout.readline().strip())
        time.sleep(random.random() * 0.05)
        worker.send_signal(signal.SIGKILL)
        said += worker.communicate()[0].split("\n")[:-1]

    session = sessions.load("s")
    unsent = [reply.id for reply in SqliteOutbox(database, utc_now).unsent()]
    events = sessions.events("s", after=0, limit=100_000)
    turns = SqliteTurns(database, utc_now)

    assert set(said) <= set(unsent)
    assert session.version == len(unsent)
    assert [message.id for message in session.messages] == [
        f"{turn}.{part}" for turn in unsent for part in range(5)
    ]
    assert [event.n for event in events] == list(range(1, 2 * len(unsent) + 1))
    assert {turns.get(turn).state for turn in unsent} == {"completed"}
