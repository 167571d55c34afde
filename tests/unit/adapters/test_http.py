"""The egress: which addresses may be reached, and that the checked one is the one connected to."""

from collections.abc import Sequence

import httpx
import pytest

from instar.adapters.http import Egress, Trust
from instar.errors import Forbidden, Invalid, Unavailable

PUBLIC = "93.184.216.34"


def names(**table: Sequence[str]):
    """A resolver: the table's hosts (dots as underscores), numbers as the system reads them."""

    def resolve(host: str, port: int) -> Sequence[str]:
        found = table.get(host.replace(".", "_").replace("-", "_"))
        return (host.strip("[]"),) if found is None else found

    return resolve


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "http://2852039166/",
        "http://2130706433/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://127.0.0.1:9001/2018-06-01/runtime/",
        "http://10.0.0.1/",
        "http://172.16.3.4/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://198.18.0.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::ffff:8.8.8.8]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://[ff02::1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001::1]/",
        "http://good.example@10.0.0.1/",
        "http://user:word@good.example/",
        "http://localhost./",
        "http://7f000001.nip.test/",
        "http://both.example/",
    ],
)
def test_an_outside_address_that_is_not_public_is_refused(url):
    egress = Egress(
        resolve=names(
            localhost=["127.0.0.1"],
            **{"7f000001_nip_test": ["127.0.0.1"]},
            both_example=[PUBLIC, "10.0.0.7"],
            good_example=[PUBLIC],
        )
    )

    with pytest.raises(Forbidden):
        egress.check(url, Trust.OUTSIDE)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://good.example/", "http:///x", "ftp://a/"]
)
def test_what_is_no_web_address_is_invalid(url):
    with pytest.raises(Invalid):
        Egress(resolve=names()).check(url, Trust.OUTSIDE)


def test_a_public_address_is_fine():
    egress = Egress(resolve=names(good_example=[PUBLIC], six_example=["2606:4700::1111"]))

    assert egress.check("https://good.example./x", Trust.OUTSIDE) == (PUBLIC,)
    assert egress.check("https://six.example/x", Trust.OUTSIDE) == ("2606:4700::1111",)
    assert egress.check("http://[64:ff9b::5db8:d822]/", Trust.OUTSIDE) == ("64:ff9b::5db8:d822",)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:11434",
        "http://192.168.1.5/",
        "http://100.64.0.9/",
        "http://[::1]:80/",
        "http://[fd12::1]/",
    ],
)
def test_the_owners_addresses_may_be_private(url):
    assert Egress(resolve=names()).check(url, Trust.OWNER)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[fe80::1]/",
    ],
)
def test_metadata_is_refused_even_to_the_owner(url):
    with pytest.raises(Forbidden):
        Egress(resolve=names()).check(url, Trust.OWNER)


def test_an_exception_is_the_owners_by_name():
    egress = Egress(
        resolve=names(home_example=["10.0.0.7"]), exceptions=frozenset({"home.example"})
    )

    assert egress.check("http://home.example/", Trust.OUTSIDE) == ("10.0.0.7",)


def test_a_name_without_address_is_unavailable():
    with pytest.raises(Unavailable):
        Egress(resolve=names(gone_example=[])).check("http://gone.example/", Trust.OUTSIDE)


class Recorder:
    """Stands at the end of the wire and answers from a table of hosts."""

    def __init__(self, **answers: httpx.Response) -> None:
        self.requests: list[httpx.Request] = []
        self._answers = answers

    def transport(self) -> httpx.BaseTransport:
        return httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        host = request.headers["host"].replace(".", "_")
        return self._answers.get(host, httpx.Response(200, text="ok"))


def test_the_connection_goes_to_the_checked_address_under_the_hosts_name():
    wire = Recorder()
    egress = Egress(resolve=names(good_example=[PUBLIC]), transport=wire.transport)

    with egress.client(Trust.OUTSIDE, timeout_seconds=1) as client:
        client.get("https://good.example/page")

    [request] = wire.requests
    assert request.url.host == PUBLIC
    assert request.headers["host"] == "good.example"
    assert request.extensions["sni_hostname"] == "good.example"


def test_an_answer_that_changes_between_check_and_connect_changes_nothing():
    wire = Recorder()
    answers = iter([[PUBLIC], ["10.0.0.1"]])
    egress = Egress(resolve=lambda host, port: next(answers), transport=wire.transport)

    with egress.client(Trust.OUTSIDE, timeout_seconds=1) as client:
        client.get("http://rebind.example/")
        with pytest.raises(Forbidden):
            client.get("http://rebind.example/")

    assert [request.url.host for request in wire.requests] == [PUBLIC]


@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/", "http://2852039166/", "http://inner.example/"]
)
def test_every_hop_of_a_redirect_is_checked(target):
    wire = Recorder(good_example=httpx.Response(302, headers={"location": target}))
    egress = Egress(
        resolve=names(good_example=[PUBLIC], inner_example=["10.0.0.1"]), transport=wire.transport
    )

    with egress.client(Trust.OUTSIDE, timeout_seconds=1) as client, pytest.raises(Forbidden):
        client.get("http://good.example/")

    assert len(wire.requests) == 1


def test_redirects_without_end_stop_after_three_hops():
    wire = Recorder(good_example=httpx.Response(302, headers={"location": "http://good.example/"}))
    egress = Egress(resolve=names(good_example=[PUBLIC]), transport=wire.transport)

    with (
        egress.client(Trust.OUTSIDE, timeout_seconds=1) as client,
        pytest.raises(httpx.TooManyRedirects),
    ):
        client.get("http://good.example/")

    assert len(wire.requests) == 4


def test_the_owners_client_follows_no_redirect():
    wire = Recorder(home_example=httpx.Response(302, headers={"location": "http://other.example/"}))
    egress = Egress(resolve=names(home_example=["192.168.1.5"]), transport=wire.transport)

    with egress.client(Trust.OWNER, timeout_seconds=1) as client:
        assert client.get("http://home.example/").status_code == 302

    assert len(wire.requests) == 1


def test_the_next_address_is_tried_when_one_does_not_accept():
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "2606:4700::1111":
            raise httpx.ConnectError("unreachable", request=request)
        return httpx.Response(200)

    egress = Egress(
        resolve=names(good_example=["2606:4700::1111", PUBLIC]),
        transport=lambda: httpx.MockTransport(answer),
    )

    with egress.client(Trust.OUTSIDE, timeout_seconds=1) as client:
        assert client.get("http://good.example/").status_code == 200
