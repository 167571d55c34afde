"""The conversation's own vocabulary: messages made of parts, independent of any provider.

Messages are stored and cross queues, so they are frozen pydantic models. Stored history is never
changed to please a provider; each adapter of a model translates on the way out.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from instar.ids import CallId, MessageId, TurnId


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(_Frozen):
    """What a person or the model wrote."""

    kind: Literal["text"] = "text"
    text: str


class ToolCall(_Frozen):
    """The model asks for a tool. `invalid` says why the arguments may not be executed."""

    kind: Literal["tool_call"] = "tool_call"
    call: CallId
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    invalid: str | None = None


class ToolResult(_Frozen):
    """What a tool answered; `content` is text, usually JSON, already capped.

    `untrusted` marks text from outside (a page, a file, another person): data, never the owner's
    word.
    """

    kind: Literal["tool_result"] = "tool_result"
    call: CallId
    name: str
    content: str
    is_error: bool = False
    untrusted: bool = False


Part = Annotated[Text | ToolCall | ToolResult, Field(discriminator="kind")]


class Message(_Frozen):
    """One entry of a session.

    Roles: `user` (a person), `assistant` (text and tool calls), `tool` (the results of one
    assistant message, in the order of its calls), `notice` (for people, never sent to a model;
    a notice with text "/new" ends what the model still sees).
    """

    id: MessageId
    role: Literal["user", "assistant", "tool", "notice"]
    parts: tuple[Part, ...]
    at: datetime
    turn: TurnId | None = None
    author: str = "owner"

    def text(self) -> str:
        """The text parts, joined by blank lines."""
        return "\n\n".join(part.text for part in self.parts if isinstance(part, Text))

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the model's order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


class Usage(_Frozen):
    """Tokens of one or more model calls. `estimated`: the provider did not say, so we counted."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False

    def plus(self, other: "Usage") -> "Usage":
        """The sum; estimated as soon as one side is."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            estimated=self.estimated or other.estimated,
        )
