"""Tool calls from outside: authorised, then once per Idempotency-Key, answered as JSON.

The idempotency key is the caller's, per API key and tool, for 24 hours; it also becomes the
effect key of the call, so that a repeat after a crash finds the write that happened.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from instar.clock import Clock, Deadline
from instar.errors import Conflict, InstarError, Invalid
from instar.ids import CallId, NewId
from instar.principal import Principal
from instar.tools.ports import CallAnswer, CallContext, Calls
from instar.tools.toolbox import Toolbox, validated

CALL_SECONDS = 25.0
KEY_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideCalls:
    """GET /v1/tools and POST /v1/tools/{name}, whoever serves them."""

    toolbox: Toolbox
    calls: Calls
    clock: Clock
    new_id: NewId

    def tools(self, principal: Principal) -> dict[str, Any]:
        """{"tools":[{"name","description","parameters"}]}: those this caller may use."""
        return {
            "tools": [
                {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
                for spec in self.toolbox.specs(principal)
            ]
        }

    def call(
        self,
        caller: str,
        principal: Principal,
        name: str,
        arguments: Any,
        idempotency_key: str | None,
    ) -> CallAnswer:
        """Runs the tool, or gives the earlier answer under the same idempotency key.

        Raises NotFound, Forbidden, InvalidArguments before anything is looked up or done, and
        Conflict for another body under the key. A tool that refuses is an answer with `is_error`.
        """
        tool = self.toolbox.find(name, principal)
        if not isinstance(arguments, Mapping):
            raise Invalid("the body is not a JSON object", fix="Send the tool's arguments.")
        validated(tool, arguments)
        if idempotency_key is None:
            return self._run(principal, name, arguments, self.new_id())
        if not 0 < len(idempotency_key) <= KEY_CHARACTERS or not idempotency_key.isprintable():
            raise Invalid(
                "not an Idempotency-Key", fix=f"Use 1 to {KEY_CHARACTERS} printable characters."
            )
        claim = _hash(caller, name, idempotency_key)
        earlier = self.calls.claim(claim, digest=_hash(json.dumps(arguments, sort_keys=True)))
        if earlier is not None:
            return earlier
        try:
            answer = self._run(principal, name, arguments, claim[:26])
        except BaseException:
            self.calls.settle(claim, None)
            raise
        self.calls.settle(claim, answer)
        return answer

    def _run(
        self, principal: Principal, name: str, arguments: Mapping[str, Any], call: str
    ) -> CallAnswer:
        context = CallContext(
            principal=principal,
            call=CallId(call),
            effect=f"call:{call}",
            deadline=Deadline.after(CALL_SECONDS, self.clock),
        )
        try:
            result, is_error = self.toolbox.run(name, arguments, context), False
        except InstarError as error:
            if error.retryable and not isinstance(error, Conflict):
                raise
            result, is_error = error.problem(), True
        return CallAnswer(status=200, body={"result": result, "is_error": is_error, "call": call})


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
