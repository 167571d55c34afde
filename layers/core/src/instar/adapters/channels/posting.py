"""What a channel needs of HTTP to send: one function. The webhook imports this without a client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A platform's answer; `body` is its JSON object, empty when it sent none."""

    status: int
    body: Mapping[str, Any]


Post = Callable[[str, Mapping[str, Any]], Answer]
