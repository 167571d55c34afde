"""A cluster that is down, slow, full or strict: what its answers become."""

import contextlib
import json
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from instar.adapters.aws.opensearch_client import opensearch_client, signature
from instar.adapters.aws.opensearch_index import OpenSearchIndex
from instar.config import read
from instar.errors import Invalid, Misconfigured, Throttled, Unavailable
from instar.ids import AgentId
from instar.memory.ports import IndexChanges, IndexFilter, IndexQuery
from instar.wiring.search_engine import build_opensearch

pytestmark = pytest.mark.opensearch

QUERY = IndexQuery(scope=IndexFilter(agent=AgentId("main")), tokens=["kayak"], vector=[1.0, 0.0])
DROPS = IndexChanges(key="agents/main/memory/a.md", drops=["1", "2"], document_tokens=())
Answers = Callable[[str, str], tuple[int, Any]]


@pytest.fixture
def cluster() -> Iterator[Callable[[Answers], OpenSearchIndex]]:
    """An index at a server that answers (path, body) as a test says."""
    servers = list[ThreadingHTTPServer]()
    clients = []

    def serve(answers: Answers) -> OpenSearchIndex:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                status, body = answers(self.path.partition("?")[0], sent)
                is_text = isinstance(body, str)
                content = (body if is_text else json.dumps(body)).encode()
                self.send_response(status)
                self.send_header("content-type", "text/html" if is_text else "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError):  # the client may have given up
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Silent."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        clients.append(opensearch_client(f"http://127.0.0.1:{server.server_port}"))
        return OpenSearchIndex(clients[-1], prefix="test", generation="")

    yield serve
    for client in clients:
        client.close()
    for server in servers:
        server.shutdown()
        server.server_close()


def error(kind: str) -> dict[str, Any]:
    return {"error": {"type": kind, "reason": "the text of a memory", "root_cause": []}}


def items(*statuses: int) -> dict[str, Any]:
    rows = [
        {"delete": {"_id": "1", "status": status, **({} if status < 300 else error("some_type"))}}
        for status in statuses
    ]
    return {"errors": True, "items": rows}


def test_a_node_that_is_down_is_unavailable_to_readers_and_writers():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    client = opensearch_client(f"http://127.0.0.1:{port}")
    index = OpenSearchIndex(client, prefix="test", generation="")

    for act in (lambda: index.search(QUERY), lambda: index.apply([DROPS]), index.keys, index.clear):
        with pytest.raises(Unavailable, match="cannot be reached"):
            act()
    client.close()


def test_a_node_that_says_nothing_costs_a_search_no_more_than_its_time(cluster):
    index = cluster(lambda path, body: (time.sleep(3), (200, {}))[1])
    start = time.monotonic()

    with pytest.raises(Unavailable, match="in time"):
        index.search(QUERY)

    assert time.monotonic() - start < 2.5


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (401, "security_exception", Misconfigured),
        (403, "security_exception", Misconfigured),
        (403, "cluster_block_exception", Unavailable),
        (402, "capacity", Unavailable),
        (429, "circuit_breaking_exception", Throttled),
        (400, "parsing_exception", Invalid),
        (500, "null_pointer_exception", Unavailable),
        (503, "master_not_discovered_exception", Unavailable),
    ],
)
def test_the_status_of_a_whole_answer_decides(cluster, status, kind, expected):
    index = cluster(lambda path, body: (status, error(kind)))

    for act in (lambda: index.search(QUERY), lambda: index.apply([DROPS]), index.keys):
        with pytest.raises(expected) as raised:
            act()
        assert type(raised.value) is expected
        assert kind in raised.value.detail
        assert "the text of a memory" not in str(raised.value)


def test_a_leg_that_fails_is_named_and_leaves_the_other(cluster):
    empty = {"hits": {"total": {"value": 7}, "hits": []}, "status": 200}

    def answers(path: str, body: str) -> tuple[int, Any]:
        searches = [json.loads(line) for line in body.splitlines()[1::2]]
        rows = [
            {**error("too_busy"), "status": 429} if "knn" in search.get("query", {}) else empty
            for search in searches
        ]
        return 200, {"responses": rows}

    found = cluster(answers).search(QUERY)

    assert (found.words, found.vectors, found.passage_count) == ([], None, 7)
    assert list(found.failed) == ["vectors"]
    assert "too_busy" in found.failed["vectors"]


def test_when_no_leg_can_answer_the_search_is_unavailable(cluster):
    rows = {"responses": [{**error("too_busy"), "status": 429}] * 5}

    with pytest.raises(Unavailable, match="too_busy"):
        cluster(lambda path, body: (200, rows)).search(QUERY)


def test_items_refused_for_the_moment_are_sent_again_alone(cluster):
    asked = list[int]()

    def answers(path: str, body: str) -> tuple[int, Any]:
        asked.append(len(body.splitlines()))
        return 200, items(*{1: (200, 429, 200), 2: (503,), 3: (200,)}[len(asked)])

    cluster(answers).apply([DROPS])

    assert asked == [3, 1, 1]


def test_items_that_stay_refused_are_named_and_worth_another_try(cluster):
    def answers(path: str, body: str) -> tuple[int, Any]:
        return 200, items(*[409] * len(body.splitlines()))

    with pytest.raises(Unavailable, match=r"a\.md"):
        cluster(answers).apply([DROPS])


def test_a_large_change_goes_in_requests_that_a_small_domain_takes(cluster):
    sizes = list[int]()

    def answers(path: str, body: str) -> tuple[int, Any]:
        sizes.append(len(body))
        return 200, items(*[200] * sum(line.startswith('{"update"') for line in body.splitlines()))

    tokens = ["ü" * 100] * 8_000
    cluster(answers).apply(
        [IndexChanges(key=f"agents/main/memory/{n}.md", document_tokens=tokens) for n in range(4)]
    )

    assert len(sizes) == 4
    assert max(sizes) < 10_000_000


@pytest.mark.parametrize("status", [200, 404, 502])
def test_what_is_not_opensearch_is_unavailable(cluster, status):
    index = cluster(lambda path, body: (status, "<html>a page of a proxy</html>"))

    for act in (lambda: index.search(QUERY), lambda: index.apply([DROPS]), index.keys):
        with pytest.raises(Unavailable):
            act()


def test_requests_to_a_domain_of_aws_are_signed(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    host = "search-instar-abc123.eu-central-1.es.amazonaws.com"

    headers = signature(host)("POST", f"https://{host}/_msearch", b"{}", {})

    assert "/eu-central-1/es/aws4_request" in headers["Authorization"]
    assert "X-Amz-Content-SHA256" in headers
    assert signature("127.0.0.1") is None
    assert signature("amazonaws.com.example.org") is None


def test_serverless_and_missing_credentials_are_mistakes_of_the_setup(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))

    with pytest.raises(Misconfigured, match="not the address"):
        signature("abc.eu-central-1.aoss.amazonaws.com")
    with pytest.raises(Misconfigured, match="no AWS credentials"):
        signature("search-x.eu-central-1.es.amazonaws.com")


def test_wiring_asks_for_an_endpoint_and_connects_to_nothing():
    with pytest.raises(Misconfigured, match="no OpenSearch cluster"):
        build_opensearch(read({}), generation="")

    settings = read({"INSTAR_SEARCH_ENDPOINT": "http://127.0.0.1:1"})

    assert isinstance(build_opensearch(settings, generation=""), OpenSearchIndex)


def test_the_engine_needs_no_grpc():
    program = textwrap.dedent("""
        import sys

        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {"grpc", "google", "opensearch_protobufs"}:
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Blocked())
        import instar.wiring.search_engine
        from instar.adapters.aws.opensearch_client import opensearch_client
        opensearch_client("http://127.0.0.1:1")
    """)

    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (ran.returncode, ran.stderr) == (0, "")
