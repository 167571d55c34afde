"""Server-sent events from torn bytes."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from instar.adapters.llm.sse import data_of_events

STREAM = (
    "data: ä\n\n: ping\n\ndata:{}\r\ndata: 漢\r\n\r\nevent: x\ndata: 👩‍👩‍👧‍👦\r\rdata: last"
).encode()


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_where_the_bytes_are_torn_does_not_matter(cuts):
    marks = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in itertools.pairwise(marks)]

    assert list(data_of_events(chunks)) == ["ä", "", "{}\n漢", "👩‍👩‍👧‍👦", "last"]


def test_bytes_that_are_not_utf8_are_replaced():
    assert list(data_of_events([b"data: a\xff\n\n"])) == ["a\N{REPLACEMENT CHARACTER}"]
