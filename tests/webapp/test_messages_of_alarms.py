"""What messages of alarms say: names, in the language of whoever reads them, and links that open incidents."""

import re
from pathlib import Path

import pytest

from tests.webapp.alarms import changed, query_of, subscribed
from tests.webapp.test_channels import INCIDENT
from webapp.delivery import outbox
from webapp.delivery.messages import digest_of, document_of, message_of
from webapp.models import Channel, Delivery, Incident, IncidentChange
from webapp.recording.recording import event_of
from webapp.words.plans import TITLES


@pytest.fixture(autouse=True)
def unsent(monkeypatch):
    monkeypatch.setattr(outbox, "_wake", lambda: None)


def about(**fields):
    """Return the message of an incident with other fields, and in another language if one is given."""
    language, query = fields.pop("language", ""), fields.pop("query", "Harbour")
    incident = INCIDENT["incident"] | fields
    document = INCIDENT | {"incident": incident, "query": INCIDENT["query"] | {"name": query}}
    return message_of("k", document, language)


def test_a_message_names_the_object_and_says_its_key_too():
    named = about(key="230982000", properties={"name": "MS ANNA "})
    assert named.subject == "[critical] Harbour: MS ANNA opened"
    assert named.text.splitlines()[:2] == ["Object: MS ANNA", "Key: 230982000"]
    pair = about(key="1", partner="2", properties={"callsign": "BAW1", "partner_name": "MS Berta"})
    assert pair.subject == "[critical] Harbour: BAW1 with MS Berta opened"
    assert "Key: 1, 2" in pair.text
    assert "Key" not in about(key="1").text


def test_a_message_about_a_whole_answer_names_the_query_once_and_its_threshold_in_the_language_of_the_receiver():
    assert about(key="Harbour").subject == "[critical] Harbour: opened"
    crossed = {"partner": "above 20 for 300 s", "properties": {"value": 21}}
    assert about(key="Harbour", **crossed).subject == "[critical] Harbour: above 20 for 300 s opened"
    assert (
        about(key="tanker", **crossed, language="de").subject
        == "[kritisch] Harbour: tanker: über 20 für 300 s geöffnet"
    )


def test_an_event_of_silence_has_the_time_of_the_last_report_and_its_own():
    row = {"key": "a", "sign": "+", "reason": "moved", "time_us": 90_000_000, "lon": 0.0, "lat": 0.0, "bounds": []}
    event = event_of(1, 0, row | {"properties": {"name": "Bus"}, "since_us": 30_000_000}, False)
    assert event.properties == {"name": "Bus", "last_report": "1970-01-01T00:00:30+00:00"}
    assert event.time.timestamp() == 90


def test_a_message_about_silence_says_when_the_last_report_was():
    properties = {"last_report": "2026-11-20T12:00:00+00:00", "name": "Bus"}
    assert "Last report: 2026-11-20 12:00:00 UTC" in about(properties=properties).text.splitlines()
    assert "Letzte Meldung: 2026-11-20 12:00:00 UTC" in about(properties=properties, language="de").text.splitlines()


@pytest.mark.django_db(transaction=True)
def test_a_link_opens_the_incident_at_its_place_if_it_has_one(user):
    subscribed(user, Channel.objects.create(name="hook", kind="webhook", options={"url": "https://a.example"}))
    number = changed(query_of(user))[0].incident_id
    assert Delivery.objects.get().document["url"].endswith(f"/#12/60.1700/24.9500&tab=incidents&incident={number}")
    Incident.objects.update(lon=None, lat=None)
    told = document_of(IncidentChange.objects.select_related("incident__query", "user").get())
    assert told["url"].endswith(f"/#&tab=incidents&incident={number}")
    assert digest_of([told])["url"].endswith("/#&tab=incidents")


def test_the_page_and_messages_take_names_from_the_same_properties():
    script = Path("static/js/format.js").read_text()
    listed = re.search(r"const TITLES = \[(.*?)\]", script, re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r'"(\w+)"', listed[1])) == TITLES
