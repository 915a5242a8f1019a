"""The choice of language, in a browser that asks for German."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import window
from tests.webapp.conftest import PASSWORD

pytestmark = pytest.mark.browser


@pytest.mark.long
def test_the_account_menu_changes_the_language_which_is_kept(chromium, site):
    context = window(chromium, locale="de-DE")
    page, faults, asked = context.new_page(), [], []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if "Content Security" in said.text else None)
    page.on("request", lambda request: asked.append(request.url) if "/texts/" in request.url else None)
    page.goto(site.place.address)
    page.get_by_label("Benutzername").fill("ann")
    page.get_by_label("Passwort").fill(PASSWORD)
    page.get_by_role("button", name="Anmelden").click()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("#tab-queries")).to_contain_text("Abfragen")
    page.evaluate("location.hash = '5/51.00/3.00'")
    page.get_by_label("Konto von ann").click()
    page.get_by_role("button", name="English").click()
    expect(page.locator("#tab-queries")).to_contain_text("Queries")
    expect(page).to_have_url(re.compile(r"#5/51\.0\d/[23]\.[90]\d$"))
    asked.clear()
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    assert asked == []
    page.get_by_label("Account of ann").click()
    expect(page.get_by_role("button", name="English")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Deutsch").click()
    expect(page.locator("#tab-queries")).to_contain_text("Abfragen")
    context.close()
    assert faults == []
