"""The table of scopes knows every route, and lets nobody in by default."""

from fastapi.routing import APIRoute, APIWebSocketRoute, iter_route_contexts

from instar.access.tokens import SCOPES
from instar.web import (
    page,
    routes_access,
    routes_memory,
    routes_sessions,
    routes_system,
    routes_tools,
    socket,
)
from instar.web.auth import GuardedRoute
from instar.web.scopes import OPEN, ROUTES, needed_scopes, opens

ROUTERS = (page, routes_access, routes_memory, routes_sessions, routes_system, routes_tools)


def routes():
    return [
        (method, context.path)
        for module in ROUTERS
        for context in iter_route_contexts(module.router.routes)
        for method in context.methods
    ]


def test_every_route_is_in_the_table_and_every_row_is_a_route():
    assert sorted(routes()) == sorted(ROUTES)


def test_every_route_is_guarded():
    for module in ROUTERS:
        for route in module.router.routes:
            assert isinstance(route, GuardedRoute)
            assert isinstance(route, APIRoute)


def test_the_socket_is_the_one_route_that_asks_for_a_ticket_instead():
    assert [type(route) for route in socket.router.routes] == [APIWebSocketRoute]


def test_a_route_that_is_not_in_the_table_needs_what_nobody_has():
    assert needed_scopes("GET", "/v1/elsewhere") is None
    assert needed_scopes("DELETE", "/v1/sessions") is None


def test_only_these_routes_ask_for_nothing():
    assert {call for call, needed in ROUTES.items() if needed == OPEN} == {
        ("GET", "/"),
        ("GET", "/favicon.ico"),
        ("GET", "/assets/{name}"),
        ("GET", "/v1/health"),
        ("POST", "/v1/setup"),
        ("POST", "/webhooks/{channel}/{account}"),
    }


def test_the_table_names_scopes_that_keys_can_have():
    for needed in ROUTES.values():
        assert needed <= SCOPES


def test_one_scope_of_several_is_enough_and_the_owner_needs_none():
    needed = frozenset({"chat", "sessions:read"})

    assert opens(frozenset({"chat"}), needed)
    assert opens(frozenset({"owner"}), needed)
    assert not opens(frozenset({"memory:read"}), needed)
    assert not opens(frozenset(), needed)
