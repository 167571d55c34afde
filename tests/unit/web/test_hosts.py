"""Which Host is ours, and which Origin is the same."""

import pytest

from instar.web.hosts import HostRules, is_same_origin


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8420", "localhost:1", "Localhost", "[::1]", "[::1]:8420"]
)
def test_loopback_is_served_on_any_port(host):
    assert HostRules().allows(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.",
        "localhost:",
        "localhost:x",
        "127.0.0.2",
        "::1",
        "[::2]",
        "user@localhost",
        "localhost/x",
        "localhost, evil",
        "0.0.0.0",
    ],
)
def test_any_other_name_is_not(host):
    assert not HostRules().allows(host)


def test_an_allowed_name_is_served_in_any_case():
    rules = HostRules(names=frozenset({"Box.home.arpa"}))

    assert rules.allows("box.home.arpa:8420")
    assert not rules.allows("other.home.arpa")


def test_behind_a_platform_that_routes_by_name_any_well_formed_host_is_served():
    assert HostRules(any=True).allows("abc.execute-api.eu-central-1.amazonaws.com")
    assert not HostRules(any=True).allows("not a host")


@pytest.mark.parametrize(
    ("origin", "same"),
    [
        ("http://localhost:8420", True),
        ("https://localhost:8420", True),
        ("http://localhost", False),
        ("http://localhost:8421", False),
        ("http://localhost:8420@evil.example", False),
        ("null", False),
        ("", False),
        ("file://localhost:8420", False),
        ("http://[", False),
    ],
)
def test_an_origin_is_ours_when_it_names_host_and_port(origin, same):
    assert is_same_origin(origin, "localhost:8420") is same
