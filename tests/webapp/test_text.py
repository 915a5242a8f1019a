"""Texts that cannot be stored are refused wherever they come in."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from tests.webapp.conftest import PLAN
from tests.webapp.test_pages import STREAM
from webapp.consumers.messages import read_document
from webapp.models import Layer, Query, Space, Stream
from webapp.words.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)
UNSOUND = ["a\\u0000b", "a\\ud800b", "a\\uDFFF", "\\ude00\\ud83d"]


@pytest.mark.parametrize("text", UNSOUND)
def test_messages_with_unsound_texts_are_refused(text):
    for message in (f'{{"name": "{text}"}}', f'{{"{text}": 1}}', f'{{"plan": {{"where": ["x", {{"y": "{text}"}}]}}}}'):
        with pytest.raises(Refused, match="a text must have no NUL and no lone surrogate"):
            read_document(message)


def test_pairs_of_surrogates_and_backslashes_are_sound():
    assert read_document(r'{"name": "\ud83d\ude00", "where": "\\u0000"}') == {"name": "😀", "where": r"\u0000"}


async def test_a_query_is_told_that_its_name_is_refused_and_the_connection_goes_on(streams, user, connect):
    async with connect(user) as socket:
        plan = json.dumps(PLAN)
        await socket.send_to(text_data=f'{{"type": "query.register", "name": "a\\ud800", "plan": {plan}}}')
        assert "no lone surrogate" in (await socket.hear("error"))["message"]
        await socket.tell("query.cancel", id=1, query=1)
        await socket.hear("error", id=1)
    assert not await Query.objects.aexists()


@pytest.mark.parametrize("text", UNSOUND)
def test_forms_of_the_admin_refuse_unsound_texts(text, client, staff):
    client.force_login(staff)
    option = f'{{"{text}": "{text}"}}'
    forms = {
        "stream": STREAM | {"transport_options": option},
        "query": {"name": "one", "plan": option},
        "space": {"name": "prices", "definition": option},
    }
    for model, form in forms.items():
        page = client.post(reverse(f"admin:webapp_{model}_add"), form)
        assert page.status_code == 200
        assert b"valid JSON" in page.content
    assert (
        not Stream.objects.exists() and not Query.objects.exists() and not Space.objects.filter(name="prices").exists()
    )


def test_layers_refuse_unsound_texts(client, user):
    client.force_login(user)
    upload = {"name": "areas", "title": "a\x00b", "file": SimpleUploadedFile("areas.geojson", b"{}")}
    assert "no NUL" in client.post("/layers/", upload).json()["error"]
    edit = '{"version": 1, "upsert": [{"properties": {"name": "a\\u0000"}}]}'
    answer = client.patch("/layers/areas/features", edit, content_type="application/json")
    assert "no NUL" in answer.json()["error"]
    assert not Layer.objects.exists()
