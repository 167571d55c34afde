"""Documents on the page: reading, editing, a conflict, going back; and the phone."""

import pytest
from playwright.sync_api import expect

from instar.testing.wire import text_step


def open_page(instar, page, address):
    page.goto(instar.setup_link())
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    page.goto(f"{instar.url}/#/{address}")


def test_a_document_is_made_and_shown(instar, page):
    open_page(instar, page, "documents")
    page.get_by_role("button", name="New document").click()
    page.keyboard.type("travel")
    page.keyboard.press("Enter")
    page.get_by_label("Text of memory/travel.md").fill("# Bergen\n\n- the train leaves at *seven*")
    page.keyboard.press("Control+s")

    expect(page.locator(".paper h1")).to_have_text("Bergen")
    expect(page.locator(".paper em")).to_have_text("seven")


def test_a_conflict_shows_both_texts_and_saves_the_merged_one(instar, page):
    instar.write("MEMORY.md", "- tea is oolong\n- cat is Miso\n")

    open_page(instar, page, "documents/MEMORY.md/edit")
    editor = page.get_by_label("Text of MEMORY.md")
    expect(editor).to_have_value("- tea is oolong\n- cat is Miso\n")
    editor.fill("- tea is oolong\n- cat is Miso\n- mine\n")
    instar.write("MEMORY.md", "- tea is oolong\n- theirs\n")
    page.get_by_role("button", name="Save").click()

    expect(page.get_by_role("alert")).to_contain_text("changed while you were editing")
    expect(page.get_by_label("In memory now")).to_contain_text("- theirs")
    expect(page.get_by_label("Yours")).to_contain_text("- mine")
    merged = page.get_by_label("Merged")
    expect(merged).to_have_value("- tea is oolong\n- mine\n- theirs\n")
    page.get_by_role("button", name="Save merged text").click()
    expect(page.locator(".paper li")).to_have_text(["tea is oolong", "mine", "theirs"])
    page.troubles.clear()  # the browser logs the refused save itself


def test_history_shows_what_changed_and_goes_back(instar, page):
    instar.write("MEMORY.md", "- one\n")
    instar.write("MEMORY.md", "- two\n")

    open_page(instar, page, "documents/MEMORY.md/history")
    page.get_by_role("button", name="What changed").click()
    expect(page.locator(".diff .removed")).to_have_text("-- one\n")
    expect(page.locator(".diff .added")).to_have_text("+- two\n")
    page.get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()

    expect(page.locator(".paper li")).to_have_text("one")


def test_search_finds_the_passage_and_leads_to_it(instar, page):
    instar.write("memory/travel.md", "The train to Bergen leaves at seven.\n")

    open_page(instar, page, "documents")
    page.get_by_label("Search memory").fill("Bergen")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="memory/travel.md").click()

    expect(page.locator(".paper")).to_contain_text("leaves at seven")


def test_signing_out_shuts_the_page(instar, page):
    open_page(instar, page, "documents")
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("heading", name="Instar")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Or enter the code")).to_be_visible()
    page.troubles.clear()  # the browser logs the refused request itself


LONG = "W" * 200


@pytest.mark.parametrize(
    "address",
    [
        "chat/web-1",
        "documents",
        "documents/MEMORY.md",
        "documents/MEMORY.md/edit",
        "documents/MEMORY.md/history",
        f"search/{LONG}",
        "search/oolong",
        "settings",
    ],
    ids=lambda address: address[:30],
)
def test_no_view_scrolls_sideways_on_a_phone(instar, phone, address):
    instar.write("MEMORY.md", f"# {LONG}\n\n- tea is oolong {LONG}\n\n|{LONG}|b|\n|-|-|\n|c|d|\n")
    instar.model.add(text_step(f"{LONG}\n\n```\n{LONG}\n```"))

    phone.goto(instar.setup_link())
    phone.get_by_label("Message", exact=True).fill(f"Hello {LONG}")
    phone.get_by_role("button", name="Send").tap()
    expect(phone.locator(".agent .prose")).to_be_visible()
    if not address.startswith("chat"):
        phone.goto(f"{instar.url}/#/{address}")
        expect(phone.locator("main .page")).to_be_visible()

    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    wide = phone.evaluate(
        """() => [...document.querySelectorAll("main, main *, .topbar")].filter((element) =>
             element.getBoundingClientRect().right > 391
             && !element.closest("pre, .table-scroll, .visually-hidden, h1")).length"""
    )
    assert wide == 0


def test_the_menu_of_a_phone_opens_chooses_and_closes(instar, phone):
    phone.goto(instar.setup_link())
    phone.get_by_role("button", name="Open the menu").tap()
    phone.get_by_role("link", name="Documents").tap()

    expect(phone.get_by_role("heading", name="Documents")).to_be_visible()
    expect(phone.locator("#sidebar")).not_to_be_in_viewport()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_system_and_can_be_told_otherwise(instar, chromium, scheme):
    _, browser = chromium
    other = {"light": "dark", "dark": "light"}[scheme]
    ink = {"light": "rgb(246, 244, 239)", "dark": "rgb(23, 25, 22)"}
    with browser.new_context(color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(instar.setup_link())
        expect(page.locator("body")).to_have_css("background-color", ink[scheme])
        theme = page.get_by_role("button", name="Theme")
        while page.evaluate("document.documentElement.dataset.theme") != other:
            theme.click()
        page.reload()

        expect(page.locator("body")).to_have_css("background-color", ink[other])
