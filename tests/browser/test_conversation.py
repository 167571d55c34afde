"""Talking with the page: streaming, stopping, reconnecting, hostile replies, the keyboard."""

import threading

from playwright.sync_api import expect

from instar.conversation.ports import NewEvent
from instar.testing.wire import Pause, Step, cut_stream_step, delta, sse, text_step, tool_step


def say(page, text):
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def held(text, rest, go_on):
    first, last = sse(delta(content=text), done=False), sse(delta(content=rest), delta("stop"))
    return Step(chunks=(first, Pause(until=go_on), last))


def test_a_reply_with_hostile_html_is_shown_and_not_run(instar, page):
    instar.model.add(text_step("<img src=x onerror=alert(1)> [x](javascript:alert(2)) **fine**"))
    page.on("dialog", lambda dialog: page.troubles.append(dialog.message))

    page.goto(instar.setup_link())
    say(page, "Attack")

    expect(page.locator(".agent strong")).to_have_text("fine")
    assert page.locator(".agent img, .agent [href^=javascript]").count() == 0


def test_the_stop_button_ends_the_reply(instar, page):
    first, last = sse(delta(content="So far"), done=False), sse(delta(content=" and more"))
    instar.model.add(Step(chunks=(first, Pause(seconds=8), last)))

    page.goto(instar.setup_link())
    say(page, "Talk")
    expect(page.locator(".streaming")).to_have_text("So far")
    page.get_by_role("button", name="Stop the reply").click()

    ended = page.locator(".agent:not([aria-busy]) .prose")
    expect(ended).to_have_text("So far", timeout=20_000)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_reply_goes_on_after_the_server_was_away(instar, page):
    go_on = threading.Event()
    instar.model.add(held("Before", " and after.", go_on), text_step("Still here."))

    page.goto(instar.setup_link())
    say(page, "Speak")
    expect(page.locator(".streaming")).to_have_text("Before")
    instar.stop()
    expect(page.locator("#connection")).to_have_text("Reconnecting…")
    say(page, "Are you there?")
    go_on.set()
    instar.start()

    expect(page.locator(".agent .prose")).to_have_text(["Before and after.", "Still here."])
    expect(page.locator(".user .bubble")).to_have_text(["Speak", "Are you there?"])
    page.troubles.clear()  # the browser logs the connections that were refused


def test_a_session_looks_the_same_after_a_reload(instar, page):
    instar.model.add(
        tool_step(("memory_save", {"content": "The tea is oolong."}), text="I keep that."),
        text_step("Kept."),
    )

    page.goto(instar.setup_link())
    say(page, "My tea is oolong")
    expect(page.locator(".agent:not([aria-busy])")).to_be_visible()
    before = page.locator(".transcript").inner_text()
    page.reload()

    expect(page.locator(".agent .prose")).to_have_text(["I keep that.", "Kept."])
    assert page.locator(".transcript").inner_text() == before


def test_a_page_opened_while_a_reply_is_written_shows_it_whole(instar, page):
    go_on = threading.Event()
    instar.model.add(text_step("First."), held("Half", " and half.", go_on))

    page.goto(instar.setup_link())
    say(page, "One")
    expect(page.locator(".agent .prose")).to_have_text("First.")
    say(page, "Two")
    expect(page.locator(".streaming")).to_have_text("Half")
    page.reload()
    expect(page.locator(".streaming")).to_have_text("Half")
    go_on.set()

    expect(page.locator(".agent .prose")).to_have_text(["First.", "Half and half."])
    expect(page.locator(".user .bubble")).to_have_text(["One", "Two"])


def test_a_reply_that_broke_off_is_a_problem_and_not_half_a_reply(instar, page):
    instar.model.add(cut_stream_step("Broken off"))

    page.goto(instar.setup_link())
    say(page, "Try")

    expect(page.locator(".agent").get_by_role("alert")).to_be_visible()
    expect(page.locator(".agent")).not_to_contain_text("Broken off")


def test_what_a_failed_attempt_said_is_thrown_away_when_the_turn_starts_again(instar, page):
    page.goto(instar.setup_link())
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.goto(f"{instar.url}/#/chat/again")
    expect(page.get_by_role("heading", name="again")).to_be_visible()
    publish = instar.embedded.stores.sessions.publish
    started = NewEvent(kind="turn_started", data={"turn": "t", "attempt": 1, "text": "Hi"})
    publish("again", [started, NewEvent(kind="text_delta", data={"turn": "t", "text": "Half"})])
    expect(page.locator(".streaming")).to_have_text("Half")
    publish("again", [started, NewEvent(kind="text_delta", data={"turn": "t", "text": "Whole"})])

    expect(page.locator(".streaming")).to_have_text("Whole")
    expect(page.locator(".bubble")).to_have_text("Hi")


def test_new_starts_the_conversation_anew(instar, page):
    instar.model.add(text_step("Hello."))

    page.goto(instar.setup_link())
    say(page, "Hi")
    expect(page.locator(".agent .prose")).to_have_text("Hello.")
    say(page, "/new")

    expect(page.locator(".agent .prose").last).to_contain_text("A new conversation starts here")


def test_everything_works_by_keyboard_alone(instar, page):
    instar.model.add(text_step("By keys."))

    page.goto(instar.setup_link())
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.type("First line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second")
    page.keyboard.press("Enter")
    expect(page.locator(".agent .prose")).to_have_text("By keys.")
    expect(page.locator(".bubble")).to_have_text("First line\nsecond")

    page.keyboard.press("Control+k")
    expect(page.get_by_label("Search memory")).to_be_focused()
    page.keyboard.type("oolong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Help")).to_be_hidden()
    page.keyboard.press("Alt+n")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_the_first_stop_of_tab_skips_to_the_content_and_focus_is_always_seen(instar, page):
    page.goto(instar.setup_link())
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.goto(f"{instar.url}/#/documents")
    expect(page.get_by_role("heading", name="Documents")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="New document")).to_be_visible()
    stops = []
    for _ in range(10):
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate(
                """() => {
                  const at = document.activeElement;
                  const outline = getComputedStyle(at).outlineStyle;
                  return [at.textContent.trim() || at.id, outline !== "none"];
                }"""
            )
        )

    assert stops[0][0] == "Skip to content"
    assert [name for name, _ in stops][1:3] == ["New session", "search-box"]
    assert all(seen for _, seen in stops)
