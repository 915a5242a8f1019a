"""``manage.py prepare`` says of the first log-in what there is to say, in a file for its reader alone."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from tests.prepared import prepared

pytestmark = pytest.mark.django_db


@pytest.fixture
def link(tmp_path, settings):
    """Run it with the page's files as they are; return what it wrote for the first log-in, and what it printed."""
    settings.STATIC_ROOT = str(prepared() / "static")

    def run():
        told, file = StringIO(), tmp_path / "link"
        call_command("prepare", link=file, stdout=told)
        assert file.stat().st_mode & 0o777 == 0o600
        return file.read_text(), told.getvalue()

    return run


def test_the_first_user_gets_a_link_that_is_not_printed(link, client):
    said, printed = link()
    words, _, address = said.rpartition(" ")
    assert words == "log in, once, at" and address not in printed
    assert [line for line in printed.splitlines() if line.endswith(" ...")] == ["migrate ...", "collect_pages ..."]
    assert client.get(address).status_code == 302 and client.session["_auth_user_id"]


def test_where_nobody_can_get_a_link_all_else_is_done_and_the_reason_told(link):
    User.objects.create_user("ann")
    said, printed = link()
    assert said == "no login link: user must be the name of an active user; got None"
    assert "nothing has changed" in printed
