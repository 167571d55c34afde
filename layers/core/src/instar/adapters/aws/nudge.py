"""The nudge: asks the indexer's function to look at a key now. Lost nudges are no loss."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from instar.adapters.aws.errors import aws_failures
from instar.errors import InstarError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

log = logging.getLogger(__name__)


class LambdaNudge:
    """A Nudge by an asynchronous invocation; the S3 event remains the guarantee."""

    def __init__(self, client: LambdaClient, function: str) -> None:
        self._client = client
        self._function = function

    def __call__(self, key: str) -> None:
        """Returns once Lambda has taken the invocation."""
        payload = json.dumps({"keys": [key]}).encode()
        try:
            with aws_failures(f"function {self._function!r}"):
                self._client.invoke(
                    FunctionName=self._function, InvocationType="Event", Payload=payload
                )
        except InstarError as error:
            log.warning("nudge_lost", extra={"type": error.type})
