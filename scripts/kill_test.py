"""Kills the embedded server at random, again and again, and counts what was lost or done twice.

A driver saves over HTTP, sends Telegram updates and edits a file by hand, repeating each request
until it is acknowledged, while the real `instar serve` on a temporary home is killed with SIGKILL
and started again. The model and the Bot API are local servers that speak the wire format. When
everything has drained, every promise is checked; the last line says how it went.
"""

import argparse
import itertools
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from instar.adapters.local.folder_history import fingerprint
from instar.conversation.deliver import REPEAT_MARK
from instar.testing.agent import OWNER, SECRET, environ, update
from instar.testing.builders import embedded_at
from instar.testing.wire import BotApiServer, LocalServer, Step, WireRequest, text_step, tool_step

DRAIN_SECONDS = 300.0
START_SECONDS = 60.0
AT_ONCE = 40
LINE = re.compile(r"- (save|turn|hand) \d+ of the test stands here whole")


def sentence(kind: str, number: int) -> str:
    """A statement that no other is like."""
    return f"{kind} {number} of the test stands here whole"


def scripted(request: WireRequest) -> Step:
    """A model that saves what turn N is about, then says that it has."""
    messages = request.json()["messages"]
    asked = next(m["content"] for m in reversed(messages) if m["role"] == "user")
    number = int(re.findall(r"turn-(\d+)", str(asked))[-1])
    if messages[-1]["role"] == "tool":
        return text_step(f"I have kept turn-{number} for you.")
    return tool_step(("memory_save", {"content": sentence("turn", number)}))


@dataclass
class Server:
    """The server process: started, killed, started again."""

    home: Path
    settings: dict[str, str]
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "instar", "serve"], env=self.settings, stdout=log, stderr=log
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                if httpx.get(f"{self.url}/v1/health", timeout=2).status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.05)
        raise SystemExit("the server does not start: see its log")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass
class Driver:
    """Sends requests until each is acknowledged; remembers what was."""

    client: httpx.Client
    key: str
    home: Path
    random: random.Random
    saved: dict[int, dict[str, Any]] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    strangers: set[int] = field(default_factory=set)
    edited: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    ended_badly: bool = False

    def until_acknowledged(self, send: Callable[[httpx.Client], httpx.Response]) -> Any:
        """The body of the first answer that is 200; the time for it begins after the last kill."""
        last = "nothing"
        until = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < until and not self.ended_badly:
            if not self.ended.is_set():
                until = time.monotonic() + DRAIN_SECONDS
            try:
                answer = send(self.client)
            except httpx.HTTPError:
                time.sleep(0.2)
                continue
            if answer.status_code == 200:
                return answer.json()
            last = f"{answer.status_code} {answer.text[:200]}"
            time.sleep(1.0)
        self.problems.append(f"a request was never acknowledged, the last answer was {last}")
        return None

    def save(self, number: int) -> None:
        document = "MEMORY.md" if number % 2 else f"memory/notes-{number % 3}.md"
        body = {"content": sentence("save", number), "document": document}
        headers = {"authorization": f"Bearer {self.key}", "idempotency-key": f"save-{number}"}
        answer = self.until_acknowledged(
            lambda client: client.post("/v1/tools/memory_save", json=body, headers=headers)
        )
        if answer is not None:
            self.saved[number] = answer["result"]

    def tell(self, number: int) -> None:
        """A topic of its own, so that its replies can be counted."""
        topic = {"message_thread_id": number + 2, "is_topic_message": True}
        self._update(update(number, f"This is turn-{number}.", **topic))
        self.told.add(number)

    def knock(self, number: int) -> None:
        """A stranger writes."""
        self._update(update(number, "let me in", sender=1_000_000 + number))
        self.strangers.add(number)

    def edit(self, number: int) -> None:
        """A person edits a file of theirs in an editor that truncates and writes."""
        self.edited.append(number)
        path = self.home / "agents" / "main" / "memory" / "hand.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"- {sentence('hand', n)}\n" for n in self.edited))

    def _update(self, body: dict[str, Any]) -> None:
        headers = {"x-telegram-bot-api-secret-token": SECRET}
        self.until_acknowledged(
            lambda client: client.post("/webhooks/telegram/main", json=body, headers=headers)
        )

    def run(self, pool: ThreadPoolExecutor) -> None:
        """Begins new work at random until told to end."""
        for number in itertools.count(1):
            if self.ended.is_set():
                return
            kind = self.random.choice(("save", "save", "tell", "knock", "edit"))
            if kind == "edit":
                self.edit(number)
            else:
                pool.submit(getattr(self, kind), number)
            self.ended.wait(self.random.uniform(0.05, 0.4))


@dataclass
class Verdict:
    """What went wrong, by kind."""

    lost: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    index: list[str] = field(default_factory=list)

    def line(self) -> str:
        index = "index differs" if self.index else "index equal"
        return (
            f"lost {len(self.lost)}, torn {len(self.torn)}, "
            f"repeated effects {len(self.repeated)}, {index}"
        )

    def is_good(self) -> bool:
        return not (self.lost or self.torn or self.repeated or self.index)


class Checker:
    """Compares what was acknowledged with what stands."""

    def __init__(self, home: Path, settings: dict[str, str]) -> None:
        self._stores = embedded_at(home, settings).stores
        self._settings = settings
        self.verdict = Verdict()

    def drained(self) -> bool:
        """Whether nothing is under way any more."""
        with self._stores.database.read() as connection:
            (queued,) = connection.execute("SELECT count(*) FROM queue").fetchone()
        return queued == 0

    def check(self, driver: Driver, bot: BotApiServer) -> Verdict:
        self.verdict.lost += driver.problems
        lines = self._documents()
        self._saves(driver, lines)
        self._replies(driver, bot, lines)
        self._by_hand(driver, lines)
        self._ledger()
        self._doctor()
        return self.verdict

    def _documents(self) -> Counter[str]:
        """The lines of all documents; every revision is checked to be whole on the way."""
        lines: Counter[str] = Counter()
        for listed in self._stores.documents.list("agents/"):
            lines.update(self._stores.documents.get(listed.key).text.splitlines())
            for revision in self._stores.documents.revisions(listed.key):
                if revision.deleted:
                    continue
                text = self._stores.documents.get(listed.key, revision=revision.revision).text
                is_whole = all(LINE.fullmatch(line) for line in text.splitlines() if line)
                by_hand = listed.key.endswith("hand.md")  # an editor that truncates may be seen
                named = revision.revision.rpartition("-")[2] == fingerprint(text.encode())
                if not named or not (is_whole or by_hand):
                    self.verdict.torn.append(f"{listed.key}@{revision.revision}")
        return lines

    def _saves(self, driver: Driver, lines: Counter[str]) -> None:
        rows = {row.checkpoint: row for row in self._stores.ledger.entries(limit=10**9)}
        for number, result in driver.saved.items():
            count = lines[f"- {sentence('save', number)}"]
            row = rows.get(result.get("checkpoint"))
            if count == 0 or not result.get("saved") or row is None or row.state != "done":
                self.verdict.lost.append(f"save {number}: {count} lines, {result}, {row}")
            if count > 1:
                self.verdict.repeated.append(f"save {number}: {count} lines")

    def _replies(self, driver: Driver, bot: BotApiServer, lines: Counter[str]) -> None:
        sent: Counter[tuple[int, int | None]] = Counter()
        again: Counter[tuple[int, int | None]] = Counter()
        kept = set()
        for body in bot.sent:
            address = (body["chat_id"], body.get("message_thread_id"))
            is_repeat = body["text"].startswith(REPEAT_MARK.strip())
            (again if is_repeat else sent)[address] += 1
            kept |= set(re.findall(r"kept turn-(\d+)", body["text"]))
        wanted = {(OWNER, number + 2): f"turn {number}" for number in driver.told}
        wanted |= {(1_000_000 + n, None): f"stranger {n}" for n in driver.strangers}
        for address, name in wanted.items():
            if not sent[address] and not again[address]:
                self.verdict.lost.append(f"the reply to {name}")
            if sent[address] > 1:
                self.verdict.repeated.append(f"the reply to {name}: {sent[address]} times")
        for number in driver.told:
            count = lines[f"- {sentence('turn', number)}"]
            if count > 1:
                self.verdict.repeated.append(f"turn {number}: {count} lines")
            if count == 0 and str(number) in kept:
                self.verdict.lost.append(f"what turn {number} was to keep")

    def _by_hand(self, driver: Driver, lines: Counter[str]) -> None:
        for number in driver.edited:
            if lines[f"- {sentence('hand', number)}"] != 1:
                self.verdict.lost.append(f"edit {number}")

    def _ledger(self) -> None:
        """No write is half done, and the rows add up to the lines."""
        for row in self._stores.ledger.unfinished():
            self._stores.ledger.entries(key=row.key)
        added: Counter[str] = Counter()
        for row in self._stores.ledger.entries(limit=10**9):
            if row.state == "done":
                added[row.key] += row.added - row.removed
        for key, count in added.items():
            found = len(self._stores.documents.get(key).text.splitlines())
            if found != count and not key.endswith("hand.md"):
                self.verdict.repeated.append(f"the ledger of {key}: {count} lines, not {found}")

    def _doctor(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "instar", "doctor", "--json"],
            env=self._settings,
            capture_output=True,
            check=True,
        )
        report = json.loads(done.stdout)
        if report["drift"] != 0 or report["pending"] != 0 or report["failed"]:
            self.verdict.index.append(done.stdout.decode())
        self.verdict.lost += [
            f"{check['name']}: {check['detail']}"
            for check in report["checks"]
            if check["name"] == "queues" and check["status"] != "ok"
        ]


@contextmanager
def temporary_home(keep: bool) -> Iterator[Path]:
    """A folder for one test; kept when asked for."""
    home = Path(tempfile.mkdtemp(prefix="instar-kill-"))
    try:
        yield home
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kill_again_and_again(server: Server, driver: Driver, checker: Checker, runs: int) -> None:
    """The rounds, then quiet until everything has drained."""
    dice = random.Random(driver.random.random())
    server.start()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        worker = threading.Thread(target=driver.run, args=(pool,))
        worker.start()
        try:
            for number in range(1, runs + 1):
                time.sleep(dice.uniform(0.1, 2.0))
                server.kill()
                server.start()
                print(f"kill {number} of {runs}", flush=True)
        except BaseException:
            driver.ended_badly = True
            raise
        finally:
            driver.ended.set()
            worker.join()
    until = time.monotonic() + DRAIN_SECONDS
    while not checker.drained() and time.monotonic() < until:
        time.sleep(0.2)
    time.sleep(2.5)  # the watcher has looked at the last edit
    server.kill()


def run(runs: int, seed: int, keep: bool) -> int:
    with temporary_home(keep) as home, LocalServer(scripted) as model, BotApiServer() as bot:
        server = Server(home, {}, free_port())
        server.settings = {
            **os.environ,
            **environ(f"{model.url}/v1", bot.url),
            "INSTAR_HOME": str(home),
            "INSTAR_PORT": str(server.port),
        }
        key, _ = embedded_at(home, server.settings).keyring.create(["owner"])
        client = httpx.Client(base_url=server.url, timeout=30)
        driver = Driver(client, key, home, random.Random(seed))
        checker = Checker(home, server.settings)
        try:
            kill_again_and_again(server, driver, checker, runs)
        finally:
            server.kill()
            client.close()
        verdict = checker.check(driver, bot)
    kinds = (verdict.lost, verdict.torn, verdict.repeated, verdict.index)
    for problem in itertools.chain(*kinds):
        print(problem)
    print(
        f"{len(driver.saved)} saves, {len(driver.told)} turns, {len(driver.strangers)} strangers, "
        f"{len(driver.edited)} edits, {len(bot.sent)} messages sent"
    )
    print(verdict.line())
    return 0 if verdict.is_good() else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", action="store_true", help="keep the home to look at it")
    given = parser.parse_args()
    return run(given.runs, given.seed, given.keep)


if __name__ == "__main__":
    sys.exit(main())
