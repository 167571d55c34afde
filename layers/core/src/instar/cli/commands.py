"""The commands: words of the command line become one operation and its printed answer."""

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from instar.cli.door import Door, Serve
from instar.cli.flags import Flags
from instar.cli.output import (
    Lines,
    doctor_lines,
    history_lines,
    pairs,
    print_answer,
    removed_lines,
    saved_lines,
    search_lines,
)
from instar.cli.terminal import chat_in_terminal
from instar.errors import Invalid


@dataclass(frozen=True, slots=True)
class Session:
    """What every command has: the flags, how to open the door, how to serve."""

    flags: Flags
    open_door: Callable[[], Door]
    serve: Serve

    def answer(
        self, operation: str, arguments: Mapping[str, Any], lines: Lines = pairs
    ) -> dict[str, Any]:
        """Runs the operation and prints its answer."""
        found = self.open_door().call(operation, arguments)
        print_answer(found, as_json=self.flags.json, lines=lines)
        return found


def _session() -> Session:
    found = click.get_current_context().obj
    if not isinstance(found, Session):
        raise TypeError("the command line was not set up")
    return found


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def instar() -> None:
    """A personal AI agent that remembers in Markdown you own and can undo what it wrote.

    Everywhere: --json, --agent A, and --home DIR or --url URL (with INSTAR_KEY).
    """


@instar.group()
def memory() -> None:
    """Save, search, read, delete, history, restore."""


@memory.command()
@click.argument("text")
@click.option("--document")
@click.option("--replace", is_flag=True)
@click.option("--unforget", is_flag=True)
def save(text: str, document: str | None, replace: bool, unforget: bool) -> None:
    """Remember TEXT (in MEMORY.md unless named)."""
    arguments = {
        "content": text,
        "document": document,
        "replace": replace,
        "unforget": unforget,
    }
    _session().answer("memory.save", arguments, saved_lines)


@memory.command()
@click.argument("query", required=False)
@click.option("--limit", type=int, default=10)
@click.option("--document")
@click.option("--kind")
@click.option("--since")
@click.option("--until")
@click.option("--explain", is_flag=True)
@click.option("--batch", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def search(query: str | None, batch: Path | None, **options: Any) -> None:
    """Find what memory says about QUERY, or answer every line of a --batch file."""
    session = _session()
    if batch is not None:
        _search_batch(session, batch, options["limit"])
        return
    if query is None:
        raise click.UsageError("give a QUERY or --batch FILE")
    session.answer("memory.search", {"query": query, **options}, search_lines)


def _search_batch(session: Session, batch: Path, limit: int) -> None:
    door = session.open_door()
    for line in batch.read_text("utf-8").splitlines():
        if not line.strip():
            continue
        question = json.loads(line)
        found = door.call("memory.search", {"query": question["query"], "limit": limit})
        answer = {"id": question["id"], "hits": found["hits"]}
        print_answer(answer, as_json=True, lines=pairs)


@memory.command()
@click.argument("document")
@click.option("--lines")
@click.option("--revision")
def get(document: str, lines: str | None, revision: str | None) -> None:
    """Print DOCUMENT, or --lines a-b of it, or an old --revision."""
    span = re.fullmatch(r"(\d+)-(\d+)", lines) if lines else None
    if lines and span is None:
        raise Invalid(f"not a span of lines: {lines!r}", fix="Use a-b, from 1.")
    arguments = {
        "document": document,
        "lines": [int(span[1]), int(span[2])] if span else None,
        "revision": revision,
    }
    _session().answer("memory.get", arguments, lambda answer: str(answer["text"]))


@memory.command()
@click.argument("text")
def delete(text: str) -> None:
    """Remove the exact TEXT; a tombstone keeps it from coming back."""
    _session().answer("memory.delete", {"content": text}, removed_lines)


@memory.command()
@click.argument("document")
def history(document: str) -> None:
    """List DOCUMENT's revisions, newest first."""
    _session().answer("memory.history", {"document": document}, history_lines)


@memory.command()
@click.argument("document")
@click.argument("old")
@click.argument("new")
def diff(document: str, old: str, new: str) -> None:
    """Show what changed from revision OLD to NEW."""
    arguments = {"document": document, "old": old, "new": new}
    _session().answer("memory.diff", arguments, lambda answer: str(answer["diff"]))


@memory.command()
@click.argument("document")
@click.option("--revision", required=True)
def restore(document: str, revision: str) -> None:
    """Bring the text of an old revision back, as a new revision."""
    _session().answer("memory.restore", {"document": document, "revision": revision})


@instar.command()
@click.option("--session", "name", default="main")
@click.option("--once", help="send this text, print the reply, end")
def chat(name: str, once: str | None) -> None:
    """Talk in the terminal; /new starts a new conversation."""
    session = _session()
    if once is not None:
        arguments = {"session": name, "text": once}
        session.answer("chat.send", arguments, lambda answer: str(answer["reply"]))
        return
    chat_in_terminal(session.open_door(), name)


@instar.group()
def session() -> None:
    """List and show conversations."""


@session.command("list")
def session_list() -> None:
    """All sessions, the most recently used first."""
    rows = "\n".join
    _session().answer(
        "session.list",
        {},
        lambda answer: rows(f"{row['at']}  {row['session']}" for row in answer["sessions"]),
    )


@session.command("show")
@click.argument("name")
@click.option("--full", is_flag=True, help="with tool calls and results")
def session_show(name: str, full: bool) -> None:
    """The messages of a session."""
    rows = "\n\n".join
    _session().answer(
        "session.show",
        {"session": name, "full": full},
        lambda answer: rows(f"{row['role']}: {row['text']}" for row in answer["messages"]),
    )


@instar.group()
def turn() -> None:
    """Look at turns."""


@turn.command("show")
@click.argument("name")
def turn_show(name: str) -> None:
    """The rounds, tool calls and tokens of a turn."""
    _session().answer("turn.show", {"turn": name})


@instar.group()
def key() -> None:
    """API keys."""


@key.command("create")
@click.option("--scopes", required=True, help="for example owner, or chat,tools:read")
@click.option("--tools", help="narrow tool calls to these")
def key_create(scopes: str, tools: str | None) -> None:
    """Make a key; it is shown this once."""
    arguments = {"scopes": scopes.split(","), "tools": None if tools is None else tools.split(",")}
    _session().answer("key.create", arguments, lambda answer: str(answer["key"]))


@key.command("list")
def key_list() -> None:
    """All keys, without their secrets."""
    _session().answer("key.list", {})


@key.command("revoke")
@click.argument("id")
def key_revoke(id: str) -> None:
    """Revoke a key for good."""
    _session().answer("key.revoke", {"id": id})


@instar.group()
def secret() -> None:
    """Keys and tokens of services."""


@secret.command("set")
@click.argument("name")
def secret_set(name: str) -> None:
    """Keep the secret NAME; its value is read from stdin."""
    _session().answer("secret.set", {"name": name, "value": sys.stdin.read().strip()})


@instar.group()
def config() -> None:
    """Settings in config.toml."""


@config.command("get")
@click.argument("name")
def config_get(name: str) -> None:
    """The value in force."""
    _session().answer("config.get", {"key": name}, lambda answer: str(answer["value"]))


@config.command("set")
@click.argument("name")
@click.argument("value")
def config_set(name: str, value: str) -> None:
    """Keep a setting; a blank value removes it."""
    _session().answer("config.set", {"key": name, "value": value})


@config.command("show")
def config_show() -> None:
    """All settings in force; never a secret."""
    _session().answer("config.show", {}, lambda answer: pairs(answer["settings"]))


@instar.group()
def index() -> None:
    """The search index."""


@index.command("rebuild")
def index_rebuild() -> None:
    """Throw the index away and make it again from the documents."""
    _session().answer("index.rebuild", {})


@instar.command()
@click.option("--digest", is_flag=True, help="one digest over everything that is kept")
def doctor(digest: bool) -> None:
    """Check everything and say what to do."""
    _session().answer("doctor", {"digest": digest}, doctor_lines)


@instar.command()
@click.option("--host", default="127.0.0.1", help="address to listen on")
@click.option("--allowed-host", "allowed", multiple=True, help="a name that people use for it")
@click.option("--port", type=int)
def serve(host: str, allowed: tuple[str, ...], port: int | None) -> None:
    """Run the page, the API and the channels until interrupted."""
    if host not in ("127.0.0.1", "::1", "localhost") and not allowed:
        raise click.UsageError("--host needs --allowed-host NAME: the name that people use for it")
    _session().serve(host, allowed, port)
