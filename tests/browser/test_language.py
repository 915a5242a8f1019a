"""The choice of language in the account menu, in a browser that asks for German."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.spark]


def test_the_account_menu_changes_the_language_which_is_kept(screen_of, user):
    page = screen_of(user, locale="de-DE").page
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("#tab-queries")).to_contain_text("Abfragen")
    page.get_by_label(f"Konto von {user}").click()
    page.get_by_role("button", name="English").click()
    expect(page.locator("#tab-queries")).to_contain_text("Queries")
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.get_by_label(f"Account of {user}").click()
    expect(page.get_by_role("button", name="English")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Deutsch").click()
    expect(page.locator("#tab-queries")).to_contain_text("Abfragen")
