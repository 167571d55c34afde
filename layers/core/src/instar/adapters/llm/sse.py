"""Server-sent events from raw bytes (pure): torn anywhere, with comments and any line ends."""

from collections.abc import Iterable, Iterator

from instar.errors import Unavailable

LINE_BYTES = 8_000_000


def data_of_events(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of each event as text; "" for a comment, so that callers notice signs of life.

    Lines are decoded whole, so a character torn between chunks is no matter; bytes that are not
    UTF-8 become U+FFFD. A last event without its blank line counts. Raises Unavailable for a line
    without an end.
    """
    data: list[str] = []
    for line in _lines(chunks):
        if line.startswith(b":"):
            yield ""
        elif not line:
            if data:
                yield "\n".join(data)
            data = []
        else:
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
    if data:
        yield "\n".join(data)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends, which are LF, CR LF or CR."""
    rest = bytearray()
    after_return = False
    for chunk in chunks:
        piece = chunk[1:] if after_return and chunk.startswith(b"\n") else chunk
        after_return = chunk.endswith(b"\r") if chunk else after_return
        rest += piece
        if len(rest) > LINE_BYTES:
            raise Unavailable(f"the stream has a line of more than {LINE_BYTES} bytes")
        if b"\n" in piece or b"\r" in piece:
            unified = bytes(rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            complete, _, tail = unified.rpartition(b"\n")
            yield from complete.split(b"\n")
            rest = bytearray(tail)
    if rest:
        yield bytes(rest)
