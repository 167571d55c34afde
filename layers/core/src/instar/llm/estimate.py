"""Tokens counted by characters, for providers that do not say (pure): four make one, rounded up."""

import json

from instar.llm.request import ModelRequest
from instar.messages import Text, ToolCall, Usage

CHARACTERS_PER_TOKEN = 4


def tokens(characters: int) -> int:
    """Tokens for that many characters."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def request_characters(request: ModelRequest) -> int:
    """The characters that the model reads."""
    total = len(request.system)
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text):
                total += len(part.text)
            elif isinstance(part, ToolCall):
                total += len(part.name) + len(json.dumps(part.arguments, ensure_ascii=False))
            else:
                total += len(part.content)
    for tool in request.tools:
        total += len(tool.name) + len(tool.description)
        total += len(json.dumps(dict(tool.parameters), ensure_ascii=False))
    return total


def estimated_usage(request: ModelRequest, output_characters: int) -> Usage:
    """Usage of a call whose provider did not count."""
    return Usage(
        input_tokens=tokens(request_characters(request)),
        output_tokens=tokens(output_characters),
        estimated=True,
    )
