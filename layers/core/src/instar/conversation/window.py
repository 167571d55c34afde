"""Pure: which part of a transcript a model is shown.

A notice "/new" ends what it sees; whole turns are left out from the front until the rest fits. The
stored transcript is never changed.
"""

from collections.abc import Sequence

from instar.messages import Message, Text, ToolCall, ToolResult

RESERVED_SHARE = 0.25
NEW = "/new"


def estimated_tokens(text: str) -> int:
    """A quarter for an ASCII character, three quarters for any other, rounded up."""
    other = sum(1 for character in text if ord(character) > 127)
    return -(-(len(text) - other + 3 * other) // 4)


def message_tokens(message: Message) -> int:
    """Estimated tokens of a message's parts, with a few for its frame."""
    return 4 + sum(_part_tokens(part) for part in message.parts)


def _part_tokens(part: Text | ToolCall | ToolResult) -> int:
    match part:
        case Text():
            return estimated_tokens(part.text)
        case ToolCall():
            return 8 + estimated_tokens(part.name) + estimated_tokens(str(part.arguments))
        case ToolResult():
            return 8 + estimated_tokens(part.content)


def since_new(messages: Sequence[Message]) -> list[Message]:
    """What came after the last "/new", without notices."""
    start = 0
    for number, message in enumerate(messages):
        if message.role == "notice" and message.text() == NEW:
            start = number + 1
    return [message for message in messages[start:] if message.role != "notice"]


def heard_by(messages: Sequence[Message], *, is_owner: bool) -> list[Message]:
    """The turns that the owner asked in private, or else those of others: in one conversation,
    too, neither hears of the other. Notices are for both.
    """
    heard: list[Message] = []
    asked_by_owner = True
    for message in messages:
        if message.role == "user":
            asked_by_owner = message.author == "owner"
        if message.role == "notice" or asked_by_owner == is_owner:
            heard.append(message)
    return heard


def fitting(messages: Sequence[Message], budget_tokens: int) -> list[Message]:
    """The newest whole turns within the budget; the last turn stays whatever it costs."""
    turns: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not turns:
            turns.append([])
        turns[-1].append(message)
    kept: list[list[Message]] = []
    left = budget_tokens
    for turn in reversed(turns):
        left -= sum(message_tokens(message) for message in turn)
        if kept and left < 0:
            break
        kept.insert(0, turn)
    return [message for turn in kept for message in turn]


def halved(messages: Sequence[Message]) -> list[Message]:
    """The newest turns that make up half of it at most; the last turn stays whatever it costs."""
    return fitting(messages, sum(message_tokens(message) for message in messages) // 2)


def visible(messages: Sequence[Message], *, context_tokens: int, system: str) -> list[Message]:
    """What of a session goes to a model with that context, three quarters of it at most."""
    budget = int(context_tokens * (1 - RESERVED_SHARE)) - estimated_tokens(system)
    return fitting(since_new(messages), budget)
