"""Commands that people type."""

import pytest

from instar.channels.commands import command_in


@pytest.mark.parametrize("text", ["/new", " /reset ", "/NEW", "/new@instar_bot", "/reset@Bot"])
def test_new_and_its_alias_start_over(text):
    assert command_in(text) == "new"


@pytest.mark.parametrize(
    "text", ["new", "/newer", "/new thing", "say /new", "/new@", "", "/new\n/new"]
)
def test_anything_else_is_a_message(text):
    assert command_in(text) is None
