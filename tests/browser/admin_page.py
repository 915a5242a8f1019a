"""What staff do in the admin."""

from playwright.sync_api import expect


def admin_form(page, path, **fields):
    """Fill a form of the admin, and save it."""
    page.goto(path)
    form = page.locator("#content-main form")
    for name, value in fields.items():
        field = form.locator(f"[name={name}]")
        if form.locator(f".field-{name} .select2").count():
            form.locator(f".field-{name} .select2-selection").click()
            page.locator(".select2-dropdown .select2-search__field").fill(value)
            page.get_by_role("option", name=value, exact=True).click()
        elif field.evaluate("(element) => element.tagName") == "SELECT":
            field.select_option(value)  # by its value, or by what is shown
        else:
            field.fill(value)
    form.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist .success")).to_be_visible()
