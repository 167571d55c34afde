"""The rounds of a turn: prompt, model, tools, until the model answers without a tool.

Each round is a step of the turn's journal: recorded once when the model's answer is whole, again
with the results of its tool calls. A step that stands is never asked for again, so a turn that
resumes repeats no model call and no finished tool.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from instar.clock import Clock, Deadline
from instar.conversation.answers import Answer, ordinary, stopped
from instar.conversation.envelopes import InboundMessage
from instar.conversation.live import LiveTurn
from instar.conversation.ports import Lease, Sessions, Step, Turns
from instar.conversation.prompt import PromptDocuments, stamped, system_text
from instar.conversation.settings import TurnSettings
from instar.conversation.window import halved, heard_by, visible
from instar.errors import ContextOverflow, Exhausted
from instar.ids import CallId, MessageId, NewId
from instar.llm.collect import Collected, collect
from instar.llm.ports import Model
from instar.llm.request import (
    Finished,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallReady,
)
from instar.memory.secrets import MaskedStream, masked, masked_json
from instar.messages import Message, Text, ToolCall, ToolResult, Usage
from instar.principal import Audience, Principal
from instar.tools.ports import CallContext
from instar.tools.toolbox import Toolbox

log = logging.getLogger(__name__)
CUT_OFF = "\n\n[cut off here: the answer reached the model's output limit]"

PromptSource = Callable[[Principal], PromptDocuments]


class Handover(Exception):
    """The deadline is near: another invocation goes on."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one lease works with."""

    lease: Lease
    live: LiveTurn
    deadline: Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Model and tools of a turn. `documents` gives what stands in the owner's private prompt."""

    sessions: Sessions
    turns: Turns
    model: Callable[[], Model]
    toolbox: Toolbox
    documents: PromptSource
    settings: TurnSettings
    clock: Clock
    new_id: NewId

    def run(self, message: InboundMessage, steps: list[Step], work: Work) -> Answer:
        """Goes on from the steps that stand, adding to them, to an answer.

        Raises Handover near the deadline, InstarError for what the owner should be told.
        """
        history = self.sessions.load(message.session).messages
        context = CallContext(
            principal=message.principal,
            call=CallId(""),
            effect=message.turn,
            deadline=work.deadline,
            tainted=message.forwarded,
        )
        while True:
            if work.live.stop_requested:
                return stopped(tuple(steps))
            if steps and steps[-1].results is None:
                if not steps[-1].assistant.calls():
                    return ordinary(steps)
                self._check_rounds(len(steps))
                steps[-1] = self._use_tools(steps[-1], context, work)
                continue
            if work.deadline.remaining_seconds() < self.settings.handover_seconds:
                raise Handover
            last = len(steps) >= self.settings.iterations
            request = self._request(message, history, steps, with_tools=not last)
            steps.append(self._ask(request, len(steps) + 1, work))

    def _check_rounds(self, count: int) -> None:
        if count > self.settings.iterations:
            raise Exhausted(
                f"the model went on asking for tools after {self.settings.iterations} rounds",
                fix="Ask for less at once, or choose another model.",
            )

    def _request(
        self,
        message: InboundMessage,
        history: Sequence[Message],
        steps: Sequence[Step],
        *,
        with_tools: bool,
    ) -> ModelRequest:
        private = message.principal.is_owner and message.principal.audience is Audience.PRIVATE
        documents = self.documents(message.principal) if private else None
        system = system_text(documents)
        asked = stamped(user_message(message), self.settings.zone, now=message.at)
        so_far = [part for step in steps for part in (step.assistant, step.results) if part]
        transcript = [*heard_by(history, is_owner=private), asked, *so_far]
        profile = self.model().profile
        return ModelRequest(
            system=system,
            messages=visible(transcript, context_tokens=profile.context_tokens, system=system),
            tools=self.toolbox.specs(message.principal) if with_tools else (),
            max_output_tokens=min(self.settings.output_tokens, profile.context_tokens // 8),
        )

    def _ask(self, request: ModelRequest, number: int, work: Work) -> Step:
        """One call of the model, streamed out as it comes and recorded when it is whole."""
        for answers in (1, 2):
            said = self._stream(request, work)
            if said.text.strip() or said.calls or work.live.stop_requested:
                break
            log.info("empty_answer", extra={"turn": work.lease.turn, "answers": answers})
        step = Step(
            number=number,
            assistant=self.message("assistant", said.parts(), work.lease),
            results=None,
            usage=said.usage,
        )
        self.turns.record(work.lease, step)
        return step

    def _stream(self, request: ModelRequest, work: Work) -> Collected:
        """What the model says, shown as it comes; secrets in it are masked before anything else."""
        shown = {"text_delta": MaskedStream(), "reasoning_delta": MaskedStream()}

        def show(kind: Literal["text_delta", "reasoning_delta"], piece: str) -> None:
            if piece:
                work.live.delta(kind, piece)

        def seen(event: ModelEvent) -> None:
            match event:
                case TextDelta(text=piece):
                    show("text_delta", shown["text_delta"].feed(piece))
                case ReasoningDelta(text=piece):
                    show("reasoning_delta", shown["reasoning_delta"].feed(piece))
                case ToolCallReady() | Finished():
                    show("reasoning_delta", shown["reasoning_delta"].rest())
                    show("text_delta", shown["text_delta"].rest())
                case _:
                    assert_never(event)
            work.live.check()

        return without_secrets(collect(self._until_stopped(request, work), seen=seen))

    def _until_stopped(self, request: ModelRequest, work: Work) -> Iterator[ModelEvent]:
        """The events; when the owner stops the turn, what was said stands and calls do not."""
        for event in self._events(request):
            if work.live.stop_requested:
                yield Finished("end", Usage(estimated=True))
                return
            yield event

    def _events(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """The model's events; a transcript that is too long is halved before anything was said."""
        has_begun = False
        try:
            for event in self.model().stream(request):
                has_begun = True
                yield event
        except ContextOverflow:
            shorter = halved(request.messages)
            if has_begun or len(shorter) == len(request.messages):
                raise
            yield from self._events(replace(request, messages=shorter))

    def _use_tools(self, step: Step, context: CallContext, work: Work) -> Step:
        calls = step.assistant.calls()
        for call in calls:
            work.live.tell(
                "tool_call", {"call": call.call, "name": call.name, "arguments": call.arguments}
            )
        step_context = replace(context, effect=f"{context.effect}:{step.number}")
        results = [
            result.model_copy(update={"content": masked(result.content)})
            for result in self.toolbox.results(calls, step_context)
        ]
        for result in results:
            work.live.tell("tool_result", _shown(result))
        done = replace(step, results=self.message("tool", results, work.lease))
        self.turns.record(work.lease, done)
        return done

    def message(
        self,
        role: Literal["assistant", "tool", "notice"],
        parts: Sequence[Text | ToolCall | ToolResult],
        lease: Lease,
    ) -> Message:
        """A message that the agent adds to the session."""
        return Message(
            id=MessageId(self.new_id()),
            role=role,
            parts=tuple(parts),
            at=self.clock(),
            turn=lease.turn,
            author="agent",
        )


def without_secrets(said: Collected) -> Collected:
    """The answer as it may be kept. A call whose arguments hold a secret is not executed: neither
    the secret nor a mask may become what a tool writes. An answer cut off by a limit says so.
    """
    text = masked(said.text)
    if said.stop == "length" and text.strip() and not said.calls:
        text += CUT_OFF
    calls = []
    for call in said.calls:
        arguments = masked_json(call.arguments)
        held = None if arguments == call.arguments else "they hold a secret, which is kept nowhere"
        update = {"arguments": arguments, "invalid": call.invalid or held}
        calls.append(call.model_copy(update=update))
    return replace(said, text=text, calls=tuple(calls))


def user_message(message: InboundMessage) -> Message:
    """The message of a person as the session keeps it."""
    return Message(
        id=MessageId(f"{message.turn}-user"),
        role="user",
        parts=(Text(text=message.text),),
        at=message.at,
        turn=message.turn,
        author=message.principal.author,
    )


def _shown(result: ToolResult) -> dict[str, object]:
    shown = result.content if len(result.content) <= 2000 else result.content[:2000] + " …"
    return {
        "call": result.call,
        "name": result.name,
        "is_error": result.is_error,
        "content": shown,
    }
