"""A document may have a new revision: bring the index level with it. Idempotent by revision.

Three events come here: S3's ("look at this key"), a writer's nudge ({"keys": [...]}), and the
schedule's ({"level": true}), which also repairs what an event that never came left behind.
"""

from typing import Any
from urllib.parse import unquote_plus

from instar.clock import Deadline, utc_now
from instar.wiring import document_changed

changed = document_changed.build()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda's entry; raises when a key failed, after all others were looked at."""
    deadline = Deadline.after(context.get_remaining_time_in_millis() / 1000 - 10, utc_now)
    if event.get("level"):
        return changed.level(deadline)
    records = event.get("Records", [])
    keys = [unquote_plus(record["s3"]["object"]["key"]) for record in records]
    return changed.look([*keys, *event.get("keys", [])], deadline)
