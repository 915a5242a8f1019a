"""Pages, the admin and the commands."""

import contextlib
import html
import json
import re
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.urls import reverse

from streaming.gateway.presets import DEMO_STREAMS
from streaming.kinds.approach.plan import MOST_AHEAD_S
from streaming.kinds.closest_approach.plan import MOST_WITHIN_M
from streaming.kinds.knn.plan import MAX_K
from streaming.kinds.track.plan import MOST_ACCURACY_M
from tests.webapp.conftest import PASSWORD, PLAN, settled
from webapp.models import ApiToken, LoginLink, Query, Stream
from webapp.queries import queries

pytestmark = pytest.mark.django_db(transaction=True)

STREAM = {
    "name": "feed",
    "space": "earth",
    "title": "Feed",
    "icon": "ship",
    "enabled": "on",
    "ttl_s": "600",
    "transport": "tcp_client",
    "transport__tcp_client__host": "localhost",
    "transport__tcp_client__port": "5631",
    "decoder": "ais",
}


@pytest.fixture
def site(client, staff):
    """Return a browser in which the administrator has logged in."""
    client.force_login(staff)
    return client


def test_the_map_is_for_those_who_have_logged_in(client):
    assert client.get("/").url == "/login/?next=/"


def test_the_login_page_logs_in_and_says_when_it_does_not(client, user):
    page = client.post("/login/", {"username": "ann", "password": "wrong"})
    assert b'role="alert"' in page.content
    assert client.post("/login/", {"username": "ann", "password": PASSWORD}).url == "/"
    assert client.post("/logout/").url == "/login/"


def test_whoever_may_administrate_finds_the_form_of_a_new_stream_from_the_page(client, staff, user):
    for who, found in ((staff, True), (user, False)):
        client.force_login(who)
        assert (f'href="{reverse("admin:webapp_stream_add")}"' in client.get("/").content.decode()) is found


def test_pages_forbid_inline_scripts(client):
    policy = client.get("/login/").headers["Content-Security-Policy"]
    assert "script-src 'self' 'nonce-" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_a_static_file_edited_under_a_running_server_is_sent_whole(client, settings, tmp_path):
    settings.STATICFILES_DIRS = [tmp_path]
    for text in ("short", "a longer text"):
        (tmp_path / "page.js").write_text(text)
        with contextlib.closing(client.get("/static/page.js")) as answer:
            assert b"".join(answer.streaming_content) == text.encode()
            assert answer["Content-Length"] == str(len(text))


def test_a_login_link_works_once(client):
    out = StringIO()
    call_command("create_login_link", stdout=out)
    path = "/" + out.getvalue().strip().split("/", 3)[3]
    assert get_user_model().objects.get().is_superuser
    assert client.get(path).url == "/"
    assert client.session["_auth_user_id"]
    client.logout()
    assert client.get(path).status_code == 410
    assert "_auth_user_id" not in client.session


def test_a_login_link_ends_after_an_hour(client, user):
    secret = LoginLink.issue(user)
    link = LoginLink.objects.get()
    assert secret not in link.digest
    link.expires = link.expires.replace(year=2020)
    link.save()
    assert client.get(f"/login/once/{secret}/").status_code == 410


def test_a_login_link_is_for_a_known_user():
    get_user_model().objects.create_user("ann")
    with pytest.raises(CommandError, match="user must be the name of an active user"):
        call_command("create_login_link", user="nobody")


def test_the_demonstration_is_seeded_once():
    for _ in range(2):
        call_command("seed_demo", stdout=StringIO())
    assert sorted(Stream.objects.values_list("name", flat=True)) == sorted(s["name"] for s in DEMO_STREAMS)


def test_redis_is_waited_for_only_so_long(project):
    call_command("wait_for_redis")
    project.REDIS_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(CommandError, match="must answer within 0 s"):
        call_command("wait_for_redis", timeout=0.0)


@pytest.mark.parametrize("name", ["stream", "query", "event", "apitoken"])
def test_every_list_of_the_admin_opens(name, site, streams, engine):
    queries.register(get_user_model().objects.get(), "one", PLAN)
    assert site.get(reverse(f"admin:webapp_{name}_changelist")).status_code == 200


def test_a_stream_is_made_in_the_admin_and_its_name_stays(site):
    assert site.post(reverse("admin:webapp_stream_add"), STREAM).status_code == 302
    stream = Stream.objects.get()
    assert stream.transport_options["port"] == 5631
    site.post(reverse("admin:webapp_stream_change", args=[stream.pk]), STREAM | {"name": "other", "title": "New"})
    stream.refresh_from_db()
    assert (stream.name, stream.title) == ("feed", "New")


@pytest.mark.parametrize(("given", "kept"), [({}, 300), ({"max_ahead_s": ""}, 300), ({"max_ahead_s": "60"}, 60)])
def test_how_far_a_stream_may_be_ahead_of_the_clock_is_part_of_its_definition(site, given, kept):
    site.post(reverse("admin:webapp_stream_add"), STREAM | given)
    assert Stream.objects.get(name="feed").definition()["max_ahead_s"] == kept


@pytest.mark.parametrize(("given", "kept"), [({}, None), ({"max_age_s": ""}, None), ({"max_age_s": "3600"}, 3600)])
def test_how_old_a_report_may_be_to_count_as_live_is_part_of_its_streams_definition(site, given, kept):
    site.post(reverse("admin:webapp_stream_add"), STREAM | given)
    assert Stream.objects.get(name="feed").definition()["max_age_s"] == kept


WRONG = {
    "an unknown transport": ({"transport": "carrier pigeon"}, "transport must be one of"),
    "an unknown decoder": ({"decoder": "morse"}, "decoder must be one of"),
    "options that are no object": ({"transport_options": "[]"}, "options must be a JSON object"),
    "an unknown option": ({"transport_options": '{"colour": 2}'}, "colour"),
    "a missing option": ({"transport__tcp_client__port": ""}, "port"),
    "a decoder's unknown option": ({"decoder_options": '{"colour": 2}'}, "colour"),
    "a bound of times that is none": ({"max_ahead_s": "0"}, "greater than or equal to 1"),
    "a bound of ages that is none": ({"max_age_s": "0"}, "greater than or equal to 1"),
    "no JSON": ({"decoder_options": "{"}, "valid JSON"),
    "a name with spaces": ({"name": "My Feed"}, "slug"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_stream_gets_a_clear_error(change, words, site):
    page = site.post(reverse("admin:webapp_stream_add"), STREAM | change)
    assert page.status_code == 200
    errors = json.dumps(page.context["adminform"].form.errors)
    assert words in errors
    assert not Stream.objects.exists()


def test_the_form_of_a_stream_offers_the_kinds_there_are_and_keeps_one_that_is_gone(site):
    form = site.get(reverse("admin:webapp_stream_add")).content.decode()
    assert all(f'<option value="{kind}">{kind} – ' in form for kind in ("ais", "geojson", "tcp_client", "file"))
    stream = Stream.objects.create(name="feed", title="Feed", transport="pigeon", decoder="ais")
    form = site.get(reverse("admin:webapp_stream_change", args=[stream.pk])).content.decode()
    assert '<option value="pigeon" selected>' in form and '<option value="ais" selected>' in form


def test_streams_are_started_and_stopped_in_the_admin(site, streams, redis_client):
    body = {"action": "stop", "_selected_action": [streams[0].pk]}
    site.post(reverse("admin:webapp_stream_changelist"), body)
    assert json.loads(redis_client.hget("lookout:streams", "ships"))["enabled"] is False
    site.post(reverse("admin:webapp_stream_changelist"), body | {"action": "start"})
    assert json.loads(redis_client.hget("lookout:streams", "ships"))["enabled"] is True


def test_malformed_input_is_shown_by_reason_with_its_last_bytes_escaped(site, streams, redis_client):
    health = {
        "state": "retrying",
        "error": "connection refused",
        "elements": 5,
        "malformed": {"bad checksum": 3},
        "last_malformed": {"bad checksum": {"sample": "<script>!AIVDM", "at_us": 1_700_000_000_000_000}},
    }
    redis_client.hset("lookout:health", "ships", json.dumps(health))
    page = site.get(reverse("admin:webapp_stream_change", args=[streams[0].pk])).content.decode()
    for words in ("retrying: connection refused", "bad checksum", "&lt;script&gt;!AIVDM", "2023-11-14 22:13:20 UTC"):
        assert words in page


@pytest.mark.parametrize(("stale", "hinted"), [(0, False), (10, False), (11, True)])
def test_stale_elements_are_shown_with_a_hint_where_they_are_many(site, streams, redis_client, stale, hinted):
    health = {"state": "running", "elements": 1000, "stale": stale, "malformed": {}}
    redis_client.hset("lookout:health", "ships", json.dumps(health))
    page = site.get(reverse("admin:webapp_stream_change", args=[streams[0].pk])).content.decode()
    assert f"<td>{stale}" in page.split("<th>stale (older than the newest known of their object)</th>")[1]
    assert ("are its times right" in page) == hinted
    listed = site.get(reverse("admin:webapp_stream_changelist")).content.decode()
    assert f'<td class="field-stale">{stale}{" ⚠" if hinted else ""}</td>' in listed


def test_queries_are_made_edited_paused_and_cancelled_in_the_admin(site, streams, engine, staff):
    form = {"name": "one", "plan": json.dumps(PLAN)}
    assert site.post(reverse("admin:webapp_query_add"), form).status_code == 302
    (query,) = settled(Query.objects.get())
    assert (query.status, query.owner) == ("running", staff)
    change = reverse("admin:webapp_query_change", args=[query.pk])
    site.post(change, form | {"name": "two"})
    assert Query.objects.get().name == "two"
    page = site.post(change, form | {"plan": '{"stream": "ships"}'})
    assert "needs an area or a compare box" in page.content.decode()
    for action, status in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        body = {"action": action, "_selected_action": [query.pk]}
        site.post(reverse("admin:webapp_query_changelist"), body)
        assert settled(query)[0].status == status
    assert site.get(change).status_code == 200


ASKED = {
    "inside 10, 50 to 20, 60": PLAN,
    "outside any, 46 to any, 48": {"report": "outside", "area": {"lo": [None, 46], "hi": [None, 48]}},
    "within 2,000 m of ships anna": {"around": {"key": "anna", "radius": 2000}},
    "in 1,000 m × any around 24.5, 59.7": {"around": {"at": [24.5, 59.7], "half_widths": [500]}},
    "in a polygon of 3 corners around buses 7": {
        "around": {"stream": "buses", "key": "7", "polygon": [[0, 0], [5, 0], [0, 5]]}
    },
    "the 10 nearest to ships anna, at most 1,500.5 m away": {
        "kind": "knn",
        "k": 10,
        "around": {"key": "anna"},
        "max_distance": 1500.5,
    },
    "dwithin 50 m stream buses": {"kind": "join", "join": {"stream": "buses", "predicate": "dwithin", "distance": 50}},
    "average speed_mps inside 10, 50 to 20, 60, by ship_type; above 12, below 1 for 300 s": PLAN
    | {
        "aggregate": {
            "function": "avg",
            "property": "speed_mps",
            "group_by": "ship_type",
            "thresholds": [{"above": 12}, {"below": 1, "for_s": 300}],
        }
    },
}


def test_the_admin_says_in_words_what_queries_ask_for(site, streams, staff):
    for plan in ASKED.values():
        document = queries.checked_plan({"stream": "ships"} | plan)
        query = Query.objects.create(owner=staff, name="q", plan=document, stream="ships", space_id="earth")
    page = html.unescape(site.get(reverse("admin:webapp_query_changelist")).content.decode())
    assert [words for words in ASKED if f">{words}<" not in page] == []
    assert list(ASKED)[-1] in site.get(reverse("admin:webapp_query_change", args=[query.pk])).content.decode()


def test_a_token_is_shown_once(site, staff):
    form = {"user": staff.pk, "name": "script"}
    page = site.post(reverse("admin:webapp_apitoken_add"), form, follow=True).content.decode()
    secret = page.split("new-token'>")[1].split("<")[0]
    assert ApiToken.user_of(secret) == staff
    assert secret.isalnum()  # no dash at its beginning, for which a program would take it for an option
    assert secret not in ApiToken.objects.get().digest
    assert secret not in site.get(reverse("admin:webapp_apitoken_changelist")).content.decode()


def test_clients_are_told_which_streams_are_not_live():
    call_command("seed_demo", stdout=StringIO())
    told = {name: Stream.objects.get(name=name).summary()["origin"] for name in ("ships", "buses", "aircraft", "mbta")}
    assert told == {"ships": "simulated", "buses": "simulated", "aircraft": "recorded", "mbta": None}


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("k", 1, MAX_K),
        ("withinMin", 0.1, MOST_AHEAD_S / 60),
        ("closeM", 1, MOST_WITHIN_M),
        ("closeMin", 0.1, MOST_AHEAD_S / 60),
        ("accuracyM", 0, MOST_ACCURACY_M),
    ],
)
def test_a_field_of_the_query_form_has_the_bounds_that_the_kind_declares(client, user, name, least, most):
    client.force_login(user)
    (field,) = re.findall(
        rf'<input [^>]*name="{name}"[^>]*>', client.get("/").content.decode().split('id="rule-form"')[0]
    )
    found = {side: float(number) for side, number in re.findall(r'\b(min|max)="([^"]*)"', field)}
    assert found == {"min": least, "max": most}
