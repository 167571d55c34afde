"""The one way to a tool: find, validate, authorise, run, cap.

    call -> find -> arguments (pydantic) -> right and list of the Principal -> run -> JSON
                                                                               └─> ToolResult

A turn gets results (a tool that fails tells the model and stops no other); a caller from outside
gets the JSON or the error itself. Reading tools that stand next to each other run side by side, all
else one after the other in the model's order, so that effects have an order and are seen.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pydantic import BaseModel, ValidationError

from instar.errors import Forbidden, InstarError, Invalid, NotFound
from instar.llm.request import ToolSpec
from instar.messages import ToolCall, ToolResult
from instar.principal import Principal, Right
from instar.tools.ports import CallContext, Tool

RESULT_CHARACTERS = 50_000
PARALLEL_READS = 8
# For models that have to be shown: what a person may say, and the arguments that fit.
EXAMPLES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "memory_save": (
        "Remember that my sister lives in Oslo.",
        {"content": "My sister lives in Oslo"},
    ),
    "memory_search": ("Where does my sister live?", {"query": "where does my sister live"}),
}


class InvalidArguments(Invalid):
    """The arguments do not fit the tool; `errors` lists field and detail."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools there are. What a caller may use of them is the Principal's."""

    tools: Sequence[Tool]

    def specs(self, principal: Principal) -> tuple[ToolSpec, ...]:
        """The tools that this caller may use, as a model or a listing sees them."""
        return tuple(
            ToolSpec(
                name=tool.name,
                description=tool.description,
                parameters=parameters_of(tool.arguments),
                example=EXAMPLES.get(tool.name),
            )
            for tool in self.tools
            if _may_use(principal, tool)
        )

    def find(self, name: str, principal: Principal) -> Tool:
        """The tool of that name. Raises NotFound (unknown, or outside the caller's list) and
        Forbidden (a right is missing).
        """
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None or (principal.tools is not None and name not in principal.tools):
            raise NotFound(f"there is no tool {name[:80]!r}", fix="GET /v1/tools lists them.")
        if tool.right not in principal.rights:
            raise Forbidden(
                f"tool {name!r} needs the scope {tool.right.value!r}",
                fix="Use a key that has it.",
            )
        return tool

    def run(
        self, name: str, arguments: Mapping[str, Any], context: CallContext
    ) -> Mapping[str, Any]:
        """Runs one tool for a caller. Raises NotFound, Forbidden, InvalidArguments and whatever
        the tool raises. What untrusted text led to changes nothing.
        """
        tool = self.find(name, context.principal)
        if context.tainted and tool.right is not Right.READ:
            raise Forbidden(
                f"{name!r} does not run while text that is not the owner's own stands in this turn",
                fix="Tell the owner what you would do, and let the owner ask for it.",
            )
        return tool.run(validated(tool, arguments), context)

    def results(self, calls: Sequence[ToolCall], context: CallContext) -> tuple[ToolResult, ...]:
        """The result of each call, in the calls' order. `context.effect` is the prefix of the
        calls' own effect keys.
        """
        reading = {tool.name for tool in self.tools if tool.right is Right.READ}
        contexts = [
            replace(context, call=call.call, effect=f"{context.effect}:{number}")
            for number, call in enumerate(calls)
        ]
        pairs = zip(calls, contexts, strict=True)
        found: list[ToolResult] = []
        with ThreadPoolExecutor(PARALLEL_READS) as pool:
            for are_reads, run in groupby(pairs, key=lambda pair: pair[0].name in reading):
                found += (pool.map if are_reads else map)(self._result, run)
        return tuple(found)

    def _result(self, pair: tuple[ToolCall, CallContext]) -> ToolResult:
        call, context = pair
        try:
            if call.invalid is not None:
                raise InvalidArguments(
                    f"the arguments of {call.name!r} were not executed: {call.invalid}",
                    fix="Call the tool again with one whole JSON object.",
                )
            content = self.run(call.name, call.arguments, context)
        except InstarError as error:
            return _told(call, error.problem(), is_error=True)
        return _told(call, content, is_error=False)


def validated(tool: Tool, arguments: Mapping[str, Any]) -> BaseModel:
    """The arguments as the tool's model. Raises InvalidArguments naming every field at fault."""
    try:
        return tool.arguments.model_validate(dict(arguments))
    except ValidationError as error:
        errors = [
            {
                "field": ".".join(str(part) for part in found["loc"]) or "(body)",
                "detail": found["msg"],
            }
            for found in error.errors(include_url=False, include_input=False)
        ]
        raise InvalidArguments(
            f"the arguments do not fit {tool.name!r}: "
            + "; ".join(f"{found['field']}: {found['detail']}" for found in errors),
            fix="Send the named fields as the tool's schema says, and no others.",
            extra={"errors": errors},
        ) from error


def parameters_of(arguments: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema that models and callers see: no titles, unknown fields forbidden."""
    schema = arguments.model_json_schema()
    schema.pop("description", None)  # the docstring of the class is for readers of the code
    untitled: dict[str, Any] = _untitled(schema)
    return untitled


def _untitled(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _untitled(value) for key, value in schema.items() if not _is_title(key, value)}
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    return schema


def _is_title(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str)


def _may_use(principal: Principal, tool: Tool) -> bool:
    listed = principal.tools is None or tool.name in principal.tools
    return listed and tool.right in principal.rights


def _told(call: ToolCall, content: Mapping[str, Any], *, is_error: bool) -> ToolResult:
    text = json.dumps(content, ensure_ascii=False)
    if len(text) > RESULT_CHARACTERS:
        left_out = len(text) - RESULT_CHARACTERS
        text = f"{text[:RESULT_CHARACTERS]} [cut: {left_out} more characters; ask for less]"
    return ToolResult(call=call.call, name=call.name, content=text, is_error=is_error)
