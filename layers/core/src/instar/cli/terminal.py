"""Chat in a terminal: a line in, the reply streamed out as it comes."""

import sys
from typing import Any

from instar.cli.door import Door
from instar.errors import InstarError


def chat_in_terminal(door: Door, session: str) -> None:
    """Reads lines until end of file; a failed turn is told and the chat goes on."""
    sys.stdout.write("Talk to Instar. /new starts a new conversation, Ctrl-D ends.\n")
    while True:
        sys.stdout.write("\nyou> ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stdout.write("\n")
            return
        if line.strip():
            _say(door, session, line.strip())


def _say(door: Door, session: str, text: str) -> None:
    try:
        answer: dict[str, Any] = door.call("chat.send", {"session": session, "text": text})
    except InstarError as error:
        sys.stdout.write(f"instar> {error.detail} {error.fix}\n")
        return
    for call in answer["tool_calls"]:
        sys.stdout.write(f"  ({call['name']}{' failed' if call['is_error'] else ''})\n")
    sys.stdout.write(f"instar> {answer['reply']}\n")
