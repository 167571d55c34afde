"""Pure: a turn's row as the JSON that `chat --once`, the API and `turn show` answer with."""

import json
from typing import Any

from instar.conversation.ports import TurnRecord
from instar.conversation.window import estimated_tokens
from instar.errors import ContextOverflow, Exhausted, InstarError, Throttled
from instar.messages import ToolResult, Usage

_STATUS = {error.type: error.status for error in (ContextOverflow, Exhausted, Throttled)}


class TurnFailed(InstarError):
    """A turn that ended in a failure which was told; carries that problem."""

    type = "unavailable"
    status = 503

    def __init__(self, record: TurnRecord) -> None:
        problem = dict(record.failure or {})
        detail = str(problem.pop("detail", "the turn failed"))
        self._type = str(problem.pop("type", self.type))
        self.status = _STATUS.get(self._type, 503)  # type: ignore[misc]  # this one turn's own
        fix = str(problem.pop("fix", ""))
        super().__init__(detail, fix=fix, extra={**problem, "turn": record.message.turn})

    def problem(self) -> dict[str, Any]:
        """The problem as it was told when the turn failed."""
        return {**super().problem(), "type": self._type}


def turn_result(record: TurnRecord) -> dict[str, Any]:
    """The answer of a completed or stopped turn. Raises TurnFailed for a failed one."""
    if record.state == "failed" or record.reply is None:
        raise TurnFailed(record)
    return {
        "turn": record.message.turn,
        "session": record.message.session,
        "reply": record.reply.text,
        "tool_calls": tool_calls(record),
        "usage": usage(record),
    }


def tool_calls(record: TurnRecord) -> list[dict[str, Any]]:
    """The calls of a turn in order, with how each ended."""
    ended = {
        part.call: part.is_error
        for step in record.steps
        if step.results is not None
        for part in step.results.parts
        if isinstance(part, ToolResult)
    }
    return [
        {
            "name": call.name,
            "arguments": call.arguments,
            "is_error": ended.get(call.call, True),
        }
        for step in record.steps
        for call in step.assistant.calls()
    ]


def usage(record: TurnRecord) -> dict[str, Any]:
    """Tokens of all steps; never 0 for a reply with text, then estimated."""
    total = Usage()
    for step in record.steps:
        total = total.plus(step.usage)
    text = record.reply.text if record.reply is not None else ""
    if text and total.output_tokens == 0:
        total = total.plus(Usage(output_tokens=estimated_tokens(text), estimated=True))
    return total.model_dump()


def step_rows(record: TurnRecord) -> list[dict[str, Any]]:
    """The rounds of a turn, for `turn show`."""
    return [
        {
            "number": step.number,
            "text": step.assistant.text(),
            "calls": [json.loads(call.model_dump_json()) for call in step.assistant.calls()],
            "usage": step.usage.model_dump(),
        }
        for step in record.steps
    ]
