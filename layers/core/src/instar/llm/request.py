"""What goes to a model and what comes back: plain data, no provider's dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from instar.messages import Message, ToolCall, Usage

StopReason = Literal["end", "tool_calls", "length", "refusal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model sees it; `parameters` is a JSON Schema object.

    `example` is what a person may say and the arguments that fit: small models need to be shown.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    example: tuple[str, Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call. `system` is the stable prefix; `messages` hold user, assistant and tool roles."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int = 4096
    response_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """What is known of a model. `tools`: how it calls them; `schema` means constrained JSON."""

    name: str
    context_tokens: int = 128_000
    tools: Literal["native", "schema", "none"] = "native"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's thinking, where the provider shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallReady:
    """A whole tool call; `call.invalid` is set when its arguments were cut off or are no object."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of every stream that did not raise."""

    stop: StopReason
    usage: Usage


ModelEvent = TextDelta | ReasoningDelta | ToolCallReady | Finished
