"""Tool calls out of streamed fragments (pure), for providers that number them well, badly or not.

A fragment belongs to the call that its index or id names. An index that is seen for the first time
without id and name continues the last call; a new id, or a name after arguments that are already
complete, begins a new call even under an old index. Arguments that are cut off or are no object
never become something else: the call is marked invalid and nothing may execute it.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from instar.adapters.well_formed import well_formed_json
from instar.ids import CallId, NewId
from instar.messages import ToolCall


@dataclass(slots=True)
class _Growing:
    id: str = ""
    name: str = ""
    arguments: str = ""

    def is_complete(self) -> bool:
        """Whether the arguments so far are a whole JSON object."""
        return isinstance(_loads(self.arguments), dict)


class ToolFragments:
    """Collects the fragments of one answer."""

    def __init__(self) -> None:
        self._calls: list[_Growing] = []
        self._by_index: dict[int, _Growing] = {}

    def add(self, fragment: Mapping[str, Any]) -> None:
        """Takes one entry of `delta.tool_calls` (or of a whole message's `tool_calls`)."""
        function = fragment.get("function")
        function = function if isinstance(function, Mapping) else {}
        identity = _word(fragment.get("id"))
        name = _word(function.get("name")).strip()
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping | list):  # some send the object itself
            arguments = json.dumps(arguments)
        index = fragment.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None

        head = _Growing(identity, name, _word(arguments))
        call = self._call(index, head)
        call.id = call.id or head.id
        if head.name and head.name != call.name:
            call.name += head.name
        call.arguments += head.arguments

    def characters(self) -> int:
        """How much the model has written for calls."""
        return sum(len(call.name) + len(call.arguments) for call in self._calls)

    def ready(self, *, cut_off: bool, taken: Collection[str], new_id: NewId) -> list[ToolCall]:
        """The calls in order, each with an id that no other call here or in `taken` has."""
        used = set(taken)
        calls = []
        for call in self._calls:
            identity = call.id if call.id and call.id not in used else f"call_{new_id()}"
            used.add(identity)
            calls.append(_finished(call, identity, cut_off=cut_off))
        return calls

    def _call(self, index: int | None, head: _Growing) -> _Growing:
        """The call that the fragment goes on with, or a new one."""
        known = self._known(index, head)
        if known is None or _begins_another(known, index, head):
            known = _Growing()
            self._calls.append(known)
        if index is not None:
            self._by_index[index] = known
        return known

    def _known(self, index: int | None, head: _Growing) -> _Growing | None:
        at_index = self._by_index.get(index) if index is not None else None
        if at_index is not None:
            if head.id and at_index.id != head.id:
                return self._with_id(head.id) or at_index
            return at_index
        if head.id:
            return self._with_id(head.id) if index is None or not head.name else None
        if head.name and index is not None:
            return None
        return self._calls[-1] if self._calls else None

    def _with_id(self, identity: str) -> _Growing | None:
        return next((call for call in reversed(self._calls) if call.id == identity), None)


def _begins_another(known: _Growing, index: int | None, head: _Growing) -> bool:
    """Whether a fragment that seems to belong to a known call is the head of the next one."""
    if head.id and known.id and head.id != known.id:
        return True
    if not head.name or not known.name:
        return False
    if head.id and head.id == known.id:  # some repeat id and name in every fragment
        return known.is_complete() and head.arguments != ""
    if known.is_complete() or head.name != known.name:
        return True
    return index is None and known.arguments == ""


def _finished(call: _Growing, identity: str, *, cut_off: bool) -> ToolCall:
    arguments, invalid = _arguments(call, cut_off=cut_off)
    return ToolCall(call=CallId(identity), name=call.name, arguments=arguments, invalid=invalid)


def _arguments(call: _Growing, *, cut_off: bool) -> tuple[dict[str, Any], str | None]:
    """The arguments, or none and why."""
    if not call.name:
        return {}, "the call names no tool"
    if not call.arguments.strip():
        return ({}, "the arguments were cut off by the output limit") if cut_off else ({}, None)
    parsed = _loads(call.arguments)
    if isinstance(parsed, dict):
        return well_formed_json(parsed), None
    if cut_off:
        return {}, "the arguments were cut off by the output limit"
    if parsed is _NOT_JSON:
        return {}, "the arguments are not valid JSON"
    return {}, "the arguments are not a JSON object"


_NOT_JSON = object()


def _loads(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
