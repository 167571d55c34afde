"""Commands that people type on every channel (pure)."""

import re
from typing import Literal

Command = Literal["new"]

_COMMAND = re.compile(r"\s*/(?P<name>new|reset)(?:@\w{1,64})?\s*", re.IGNORECASE)


def command_in(text: str) -> Command | None:
    """The command that the whole message is: `/new`, alias `/reset`, also addressed to a bot."""
    return "new" if _COMMAND.fullmatch(text) else None
