"""A model for many conversations at once: what it answers hangs on what was said last.

ScriptedModelServer plays one script; here each test brings its own, found by a marker in the last
user message. A call that no script expects, a failed check and a step that nobody asked for fail
the test that brought the script.
"""

import threading
from collections.abc import Callable

from instar.testing.wire import LocalServer, Step, WireRequest, error_step

Answer = Step | Callable[[WireRequest], Step]


class Script:
    """What the model says in one conversation, in order; `requests` holds what came."""

    def __init__(self, marker: str, *steps: Answer) -> None:
        self.marker = marker
        self.requests: list[WireRequest] = []
        self._steps = list(steps)

    @property
    def unasked(self) -> int:
        """How many steps are left."""
        return len(self._steps)

    def next(self, request: WireRequest) -> Step | None:
        """The next answer; None when the script is at its end."""
        self.requests.append(request)
        if not self._steps:
            return None
        step = self._steps.pop(0)
        return step if isinstance(step, Step) else step(request)


class ConversingModelServer(LocalServer):
    """An OpenAI-compatible server below `/v1` that follows the scripts it was given."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self._lock = threading.Lock()
        self._scripts: list[Script] = []
        self._problems: list[str] = []

    @property
    def base_url(self) -> str:
        """What INSTAR_MODEL_BASE_URL is."""
        return f"{self.url}/v1"

    def expect(self, marker: str, *steps: Answer) -> Script:
        """What to say when the last user message holds the marker."""
        script = Script(marker, *steps)
        with self._lock:
            self._scripts.append(script)
        return script

    def settle(self) -> list[str]:
        """What went otherwise than the scripts say; forgets them."""
        with self._lock:
            left = [
                f"{script.unasked} steps of {script.marker!r} were never asked for"
                for script in self._scripts
                if script.unasked
            ]
            problems, self._problems, self._scripts = [*self._problems, *left], [], []
        return problems

    def _answer(self, request: WireRequest) -> Step:
        asked = last_user_text(request)
        with self._lock:
            script = next((each for each in self._scripts if each.marker in asked), None)
            try:
                step = None if script is None else script.next(request)
            except AssertionError as failure:
                self._problems.append(f"a check failed: {failure}")
                return error_step(500, message="the script's check failed")
            if step is None:
                self._problems.append(f"unexpected call for {asked[-200:]!r}")
                return error_step(500, message="the script has no step for this call")
        return step


def last_user_text(request: WireRequest) -> str:
    """The text of the last message with the role user."""
    said = [each for each in request.json()["messages"] if each["role"] == "user"]
    return text_of(said[-1]["content"]) if said else ""


def system_text(request: WireRequest) -> str:
    """The system prompt."""
    messages = request.json()["messages"]
    return "\n".join(text_of(each["content"]) for each in messages if each["role"] == "system")


def text_of(content: object) -> str:
    """A message's content, which is text or a list of parts."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return str(content or "")
