"""From the set-up link to the first answer of a real model."""

import threading

from playwright.sync_api import expect

from instar.testing.wire import Pause, Step, delta, json_step, sse, text_step


def test_the_set_up_link_leads_to_the_first_streamed_answer(new_instar, page):
    go_on = threading.Event()
    new_instar.model.add(
        json_step({"data": [{"id": "tiny"}, {"id": "large"}]}),
        text_step("OK"),
        Step(
            chunks=(
                sse(delta(content="Hello"), done=False),
                Pause(until=go_on),
                sse(delta(content=", **you**."), delta("stop")),
            )
        ),
    )

    page.goto(new_instar.setup_link())
    expect(page.get_by_text("The demo model answers now")).to_be_visible()
    assert "setup=" not in page.url
    page.get_by_label("Base URL").fill(new_instar.model.base_url)
    page.get_by_role("button", name="List models").click()
    expect(page.get_by_label("Model", exact=True)).to_have_value("large")
    page.get_by_label("Model", exact=True).fill("tiny")
    page.get_by_role("button", name="Test it").click()
    expect(page.get_by_text("It answers")).to_be_visible()
    page.get_by_role("button", name="Use this model").click()
    page.get_by_label("Message", exact=True).fill("Hello?")
    page.keyboard.press("Enter")
    expect(page.locator(".streaming")).to_have_text("Hello")
    go_on.set()

    expect(page.locator(".agent strong")).to_have_text("you")
    expect(page.locator(".user .bubble")).to_have_text("Hello?")
    expect(page.locator("#session-list [aria-current]")).to_contain_text("Hello?")


def test_the_demo_model_is_called_what_it_is(new_instar, page):
    page.goto(new_instar.setup_link())
    page.get_by_role("button", name="New session").click()

    expect(page.locator("#banner")).to_contain_text(
        "The demo model answers: it has no intelligence"
    )
    page.get_by_label("Message", exact=True).fill("Remember that my tea is oolong")
    page.keyboard.press("Enter")
    expect(page.locator(".tool.done")).to_contain_text("memory save")
    expect(page.locator(".agent .prose").last).to_contain_text("MEMORY.md")


def test_the_link_works_once_and_the_page_says_what_to_do(new_instar, chromium):
    link = new_instar.setup_link()
    _, browser = chromium
    with browser.new_context() as context:
        first = context.new_page()
        first.goto(link)
        expect(first.locator("#shell")).to_be_visible()
    with browser.new_context() as context:
        second = context.new_page()
        second.goto(link)

        expect(second.get_by_role("alert")).to_contain_text("unknown, used or expired")
        expect(second.locator("#shell")).to_be_hidden()


def test_a_model_that_does_not_answer_is_told_with_advice(new_instar, page):
    page.goto(new_instar.setup_link())
    page.get_by_label("Base URL").fill("http://127.0.0.1:9/v1")
    page.get_by_label("Model", exact=True).fill("tiny")
    page.get_by_role("button", name="Test it").click()

    expect(page.get_by_role("alert")).to_be_visible()
    page.troubles.clear()  # the browser logs the refused test itself
