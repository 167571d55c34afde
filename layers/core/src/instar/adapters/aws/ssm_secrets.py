"""Secrets as SecureString parameters of Systems Manager, below one path.

Read late and remembered for a minute, so that a changed secret counts within that time in every
function. No error carries a value: the causes, which might, are dropped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from instar.adapters.aws.errors import aws_failures
from instar.errors import InstarError, Invalid, NotFound, TooLarge

if TYPE_CHECKING:
    from mypy_boto3_ssm import SSMClient

PREFIX = "/instar/secrets/"
REMEMBERED_SECONDS = 60.0
VALUE_BYTES = 4096
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class SsmSecrets:
    """The AWS Secrets. `elapsed` is a monotonic clock in seconds."""

    def __init__(
        self,
        client: SSMClient,
        prefix: str = PREFIX,
        *,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._prefix = f"{prefix.rstrip('/')}/"
        self._elapsed = elapsed
        self._known: dict[str, tuple[float, str | None]] = {}

    def get(self, name: str) -> str | None:
        """The value, None when it was never set. Raises Unavailable, Misconfigured, Invalid."""
        _check(name)
        known = self._known.get(name)
        if known is not None and known[0] > self._elapsed():
            return known[1]
        value = self._read(name)
        self._known[name] = (self._elapsed() + REMEMBERED_SECONDS, value)
        return value

    def set(self, name: str, value: str) -> None:
        """Keeps the value; a blank one removes it. Raises Invalid, TooLarge, Unavailable."""
        _check(name)
        # Asked, not caught: the codec's error would carry the value.
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Invalid(f"the value of {name!r} is not text", fix="Set it as UTF-8 text.")
        if len(value.encode()) > VALUE_BYTES:
            raise TooLarge(f"the secret {name!r} has more than {VALUE_BYTES:,} bytes")
        self._known.pop(name, None)
        if value.strip():
            with _failures(name):
                self._client.put_parameter(
                    Name=self._prefix + name, Value=value, Type="SecureString", Overwrite=True
                )
        else:
            self._remove(name)

    def names(self) -> Sequence[str]:
        """The names that have a value, sorted."""
        pages = self._client.get_paginator("get_parameters_by_path")
        with _failures("names"):
            found = [
                parameter["Name"]
                for page in pages.paginate(Path=self._prefix.rstrip("/"), WithDecryption=False)
                for parameter in page["Parameters"]
            ]
        return sorted(name.removeprefix(self._prefix) for name in found)

    def _read(self, name: str) -> str | None:
        try:
            with _failures(name):
                found = self._client.get_parameter(Name=self._prefix + name, WithDecryption=True)
        except NotFound:
            return None
        return found["Parameter"]["Value"]

    def _remove(self, name: str) -> None:
        try:
            with _failures(name):
                self._client.delete_parameter(Name=self._prefix + name)
        except NotFound:
            return


@contextmanager
def _failures(name: str) -> Iterator[None]:
    """Translates, and drops the cause."""
    try:
        with aws_failures(f"the secret {name!r}"):
            yield
    except InstarError as error:
        raise error from None


def _check(name: str) -> None:
    """Raises Invalid unless the name is lower-case."""
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"not a secret's name: {name[:80]!r}",
            fix="Use 1 to 64 lower-case letters, digits and underscores.",
        )
