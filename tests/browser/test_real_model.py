"""A real small model in the page: no script answers here, so nothing is said about wording."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

START = Path(__file__).parents[2] / "scripts" / "small_model" / "start"
PATIENCE_MS = 240_000


@pytest.fixture(scope="module")
def small_model() -> Iterator[str]:
    """The base URL of a real model on this machine."""
    process = subprocess.Popen(
        [START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:"), "the small model did not start"
    yield url
    process.stdin.close()
    process.stdout.close()
    process.wait(timeout=20)


@pytest.mark.real_model
def test_a_real_small_model_saves_a_fact_and_a_later_session_tells_it(
    new_instar, page, small_model
):
    stores = new_instar.embedded.stores
    page.goto(new_instar.setup_link())
    page.get_by_label("Base URL").fill(small_model)
    page.get_by_label("Model", exact=True).fill("qwen")
    page.get_by_label("Schema").check()
    page.get_by_role("button", name="Test it").click()
    expect(page.get_by_text("It answers")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Use this model").click()

    page.get_by_label("Message", exact=True).fill("Please remember that Anna cannot eat peanuts.")
    page.keyboard.press("Enter")
    expect(page.locator(".agent").last).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text("memory save")).to_be_visible(timeout=PATIENCE_MS)
    assert "Anna cannot eat peanuts" in stores.text_of("agents/main/MEMORY.md")

    page.get_by_role("button", name="New session").click()
    page.get_by_label("Message", exact=True).fill("What can Anna not eat?")
    page.keyboard.press("Enter")
    expect(page.locator(".agent").last).to_contain_text("peanuts", timeout=PATIENCE_MS)
