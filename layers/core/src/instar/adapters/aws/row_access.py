"""The few ways to read and write rows: gets and queries, strongly consistent, and transactions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pynamodb.exceptions import DoesNotExist, PynamoDBException
from pynamodb.transactions import TransactWrite

from instar.adapters.aws.errors import aws_failures
from instar.adapters.aws.rows import Row
from instar.errors import Throttled

R = TypeVar("R", bound=Row)


@contextmanager
def row_failures(what: str) -> Iterator[None]:
    """Translates what PynamoDB raises: its causes are botocore's, and errors.py knows those."""
    with aws_failures(what):
        try:
            yield
        except PynamoDBException as error:
            if error.cause is None:
                raise Throttled(f"{what}: items of a batch stayed unprocessed") from error
            # PynamoDB's cause is a copy without status, reasons and retries; botocore's is below.
            raise error.cause.__cause__ or error.cause from error


def find(model: type[R], pk: str, sk: str) -> R | None:
    """The row as it is now, None when there is none."""
    with row_failures(f"row {pk!r}"):
        try:
            return model.get(pk, sk, consistent_read=True)
        except DoesNotExist:
            return None


def rows_of(
    model: type[R], pk: str, condition: Any = None, *, newest_first: bool = False, limit: int = 0
) -> list[R]:
    """The rows of a partition in the order of their sort keys, as they are now."""
    with row_failures(f"rows {pk!r}"):
        return list(
            model.query(
                pk,
                condition,
                consistent_read=True,
                scan_index_forward=not newest_first,
                limit=limit or None,
            )
        )


def rows_at(model: type[R], places: Sequence[tuple[str, str]]) -> list[R]:
    """The rows at these places that are there, in this order."""
    with row_failures("a batch of rows"):
        found = {
            (row.pk, row.sk): row for row in model.batch_get(set(places), consistent_read=True)
        }
    return [found[place] for place in places if place in found]


def write_all(model: type[R], rows: Sequence[R], *, delete: bool = False) -> None:
    """Writes or deletes rows of different keys, in batches; not one transaction."""
    with row_failures("a batch of rows"), model.batch_write() as batch:
        for row in rows:
            if delete:
                batch.delete(row)
            else:
                batch.save(row)


def transaction(table: type[Row]) -> TransactWrite:
    """All or nothing, over rows of one table; a request that botocore repeats counts once."""
    return TransactWrite(connection=table._get_connection().connection)


def absent() -> Any:
    """The condition that no row stands at the key."""
    return Row.pk.does_not_exist()


def same(attribute: Any, value: Any) -> Any:
    """The condition that an attribute still has the value that was read."""
    return attribute.does_not_exist() if value is None else attribute == value
