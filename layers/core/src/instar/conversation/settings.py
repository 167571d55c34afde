"""The numbers of a turn, in one place; each with its reason."""

from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from instar.conversation.live import Pace


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSettings:
    """Limits and paces of turns."""

    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    iterations: int = 25  # rounds of tools before the model must answer without
    crashes: int = 3  # leases that ended without a word before the owner is told
    output_tokens: int = 4096
    handover_seconds: float = 60.0  # what one more model call may need
    pace: Pace = field(default_factory=Pace)
