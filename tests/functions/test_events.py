"""Every file of events/ reaches the function that its name begins with and is handled there.

`make events` runs the same files under AWS's runtime; here none may raise, and none may be answered
with a server's error.
"""

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = sorted(file.parent.name for file in ROOT.glob("functions/*/handler.py"))
EVENTS = sorted(file.stem for file in ROOT.glob("events/*.json"))


def function_of(name: str) -> str:
    """The longest function's name that begins the event's."""
    return max((each for each in FUNCTIONS if name.startswith(f"{each}_")), key=len)


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_is_handled(
    name: str, load_function: Any, event: Any, context: Any, engine: Any
) -> None:
    answer = load_function(function_of(name))(event(name), context)

    json.dumps(answer)
    if "Records" in event(name) and "batchItemFailures" in answer:
        sent = {record["messageId"] for record in event(name)["Records"]}
        assert {each["itemIdentifier"] for each in answer["batchItemFailures"]} <= sent
    elif "requestContext" in event(name):
        assert 200 <= answer["statusCode"] < 500
    else:
        assert all(isinstance(count, int) for count in answer.values())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_has_events(function: str) -> None:
    assert [name for name in EVENTS if function_of(name) == function]
