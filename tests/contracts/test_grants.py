"""Every Grants adapter keeps these promises."""

from dataclasses import replace
from datetime import timedelta
from threading import Thread

import pytest

from instar.access.ports import Grant, Grants
from instar.adapters.aws.dynamo_access import DynamoGrants
from instar.adapters.local.sqlite_access import SqliteGrants


def sqlite(request: pytest.FixtureRequest) -> Grants:
    return SqliteGrants(request.getfixturevalue("database"), request.getfixturevalue("clock"))


def dynamo(request: pytest.FixtureRequest) -> Grants:
    request.getfixturevalue("aws")
    return DynamoGrants(request.getfixturevalue("clock"))


@pytest.fixture(params=[sqlite, dynamo], ids=lambda build: build.__name__)
def grants(request: pytest.FixtureRequest) -> Grants:
    return request.param(request)


@pytest.fixture
def ticket(clock) -> Grant:
    expires_at = clock() + timedelta(seconds=30)
    return Grant(kind="ticket", digest="d1", expires_at=expires_at, data={"session": "web:1"})


def test_a_grant_stands_until_it_expires(grants, ticket, clock):
    grants.put(ticket)

    assert grants.get("ticket", "d1") == ticket
    clock.advance(29)
    assert grants.get("ticket", "d1") == ticket
    clock.advance(1)
    assert grants.get("ticket", "d1") is None
    assert grants.take("ticket", "d1") is None


def test_a_grant_is_of_its_kind(grants, ticket):
    grants.put(ticket)

    assert grants.get("session", "d1") is None
    assert grants.take("session", "d1") is None
    assert grants.take("ticket", "d2") is None
    assert grants.get("ticket", "d1") == ticket


def test_a_taken_grant_is_gone(grants, ticket):
    grants.put(ticket)

    assert grants.take("ticket", "d1") == ticket
    assert grants.take("ticket", "d1") is None
    assert grants.get("ticket", "d1") is None


def test_putting_again_replaces(grants, ticket):
    longer = replace(ticket, expires_at=ticket.expires_at + timedelta(days=1), data={})
    grants.put(ticket)
    grants.put(longer)

    assert grants.get("ticket", "d1") == longer


def test_of_many_takers_one_gets_it(grants, ticket):
    grants.put(ticket)
    taken = []
    threads = [Thread(target=lambda: taken.append(grants.take("ticket", "d1"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taken) == 8
    assert [grant for grant in taken if grant is not None] == [ticket]
