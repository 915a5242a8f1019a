"""The form of a stream in the admin: a field for every option, and a test before it is saved."""

import json

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from streaming.decoders.units import KNOT_MPS
from streaming.gateway.access import FeedAccess
from streaming.gateway.presets import DEMO_STREAMS
from tests.webapp.conftest import PASSWORD
from webapp.admin.options import field_of, parsed, text_of
from webapp.admin.stream_form import field_name, stream_form
from webapp.models import Stream
from webapp.models.streams import kinds_of, options_of, summary_of

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "admin:webapp_stream_add"
ROWS = "id,when,x,y,knots\nanna,2026-01-01T00:00:00Z,24.5,60.1,10\nbert,2026-01-01T00:00:01Z,24.6,60.2,\n"
CSV = {
    "name": "feed",
    "space": "earth",
    "title": "Feed",
    "icon": "ship",
    "transport": "file",
    "transport__file__path": "feeds/rows.csv",
    "transport__file__speed": "0",
    "decoder": "csv",
    "decoder__csv__columns": "key = id\nlon = x\nlat = y\ntime = when",
    "decoder__csv__properties": "knots = speed_mps [knots]",
    "decoder__csv__time_format": "iso8601",
    "decoder__csv__drop_null_island": "on",
}


@pytest.fixture
def site(client, staff):
    """Return a browser in which the administrator has logged in."""
    client.force_login(staff)
    return client


@pytest.fixture
def feeds(settings, tmp_path):
    """Allow a folder of feeds, with rows in it."""
    settings.FEED_ACCESS = FeedAccess(tmp_path, (tmp_path / "feeds",))
    (tmp_path / "feeds").mkdir()
    (tmp_path / "feeds" / "rows.csv").write_text(ROWS)
    return tmp_path / "feeds"


def errors_of(page):
    return json.loads(page.context["adminform"].form.errors.as_json())


@pytest.mark.parametrize("part", ["transport", "decoder"])
def test_every_option_of_every_kind_has_a_field_with_its_meaning(site, part):
    page = site.get(reverse(ADD)).content.decode()
    names = [(field_name(part, kind, o.name), o) for kind in kinds_of(part) for o in options_of(part, kind)]
    assert len(names) > 15
    assert [name for name, option in names if f'name="{name}"' not in page or not option.doc] == []
    assert all(summary_of(part, kind) for kind in kinds_of(part))
    assert f"{', '.join(kinds_of(part))}." in page


def test_a_stream_is_saved_from_its_fields_and_shown_in_them(site, feeds):
    assert site.post(reverse(ADD), CSV).status_code == 302
    stream = Stream.objects.get()
    assert stream.transport_options == {"path": "feeds/rows.csv", "speed": 0}
    assert stream.decoder_options == {
        "columns": {"key": "id", "lon": "x", "lat": "y", "time": "when"},
        "properties": {"knots": {"name": "speed_mps", "unit": "knots"}},
    }
    page = site.get(reverse("admin:webapp_stream_change", args=[stream.pk])).content.decode()
    for words in ("knots = speed_mps [knots]", "time = when", 'value="feeds/rows.csv"'):
        assert words in page


@pytest.mark.parametrize("preset", DEMO_STREAMS, ids=lambda preset: preset["name"])
def test_what_the_form_shows_of_a_stream_it_saves_again(site, preset):
    options = {part: {k: v for k, v in preset[part].items() if k != "kind"} for part in ("transport", "decoder")}
    stream = Stream.objects.create(
        name="feed",
        title="Feed",
        **{part: preset[part]["kind"] for part in options},
        **{f"{part}_options": value for part, value in options.items()},
    )
    form = stream_form()(instance=stream)
    shown = {name: form[name].value() for name in form.fields}
    data = {name: value for name, value in shown.items() if value not in (None, False)}
    data |= {f"{part}_options": json.dumps(form.initial[f"{part}_options"]) for part in options}
    again = stream_form()(data, instance=Stream.objects.get())
    assert again.is_valid(), again.errors
    saved = {part: getattr(again.instance, f"{part}_options") for part in options}
    defaults = {part: {o.name: o.default for o in options_of(part, preset[part]["kind"])} for part in options}
    for part, given in options.items():
        assert saved[part] == {name: value for name, value in given.items() if value != defaults[part][name]}


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"transport__file__path": "secret_key"}, "transport__file__path", "path must lie below a folder"),
        ({"transport__file__path": ""}, "transport__file__path", "needs the option path"),
        ({"transport__file__speed": "-1"}, "transport__file__speed", "greater than or equal to 0"),
        ({"decoder__csv__columns": "key"}, "decoder__csv__columns", "each line must be name = value; got"),
        ({"decoder__csv__columns": "key = id"}, "decoder__csv__columns", "columns must have lon"),
        ({"decoder__csv__properties": "a = b [warp]"}, "decoder__csv__properties", "unit must be one of"),
        ({"decoder__csv__delimiter": "::"}, "decoder__csv__delimiter", "delimiter must be one ASCII character"),
    ],
)
def test_an_error_stands_at_the_option_that_it_is_about(site, feeds, change, field, words):
    told = errors_of(site.post(reverse(ADD), CSV | change))
    assert words in told[field][0]["message"]
    assert not Stream.objects.exists()


def test_fields_of_kinds_that_are_not_chosen_are_not_read(site, feeds):
    junk = {"transport__tcp_client__port": "x", "decoder__geojson__properties": "no pair"}
    assert site.post(reverse(ADD), CSV | junk).status_code == 302


def test_options_that_a_kind_does_not_have_are_shown_and_kept_until_they_are_removed(site):
    stream = Stream.objects.create(
        name="feed", title="Feed", transport="stdin", decoder="ais", transport_options={"colour": 2, "live": False}
    )
    page = site.get(reverse("admin:webapp_stream_change", args=[stream.pk]))
    assert page.context["adminform"].form["transport_options"].value() == '{"colour": 2}'


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        ("texts", {"a": "b", "c d": "e, f"}),
        ("texts", {"a=b": "c"}),
        ("targets", {"a": "b", "c": {"name": "d_m", "unit": "km"}, "e": {"name": "f"}}),
        ("text_lists", {"a": ["511", "x y"], "b": ["c, d"]}),
        ("value_lists", {"a": [511, 102.3, "511", "n/a"]}),
        ("names", ["price", None, "b"]),
    ],
)
def test_a_mapping_is_read_back_from_the_text_that_shows_it(shape, value):
    assert parsed(text_of(value, shape), shape) == value


def test_a_tab_can_be_written():
    (delimiter,) = (option for option in options_of("decoder", "csv") if option.name == "delimiter")
    field = field_of(delimiter)
    assert (field.clean("\\t"), field.prepare_value("\t")) == ("\t", "\\t")


def trial_of(site, **change):
    return site.post(reverse("admin:webapp_stream_test"), CSV | change).json()


def test_a_test_shows_the_first_elements_and_saves_nothing(site, feeds):
    told = trial_of(site, name="", title="")
    assert [(row["key"], row["lo"][:2]) for row in told["shown"]] == [("anna", [24.5, 60.1]), ("bert", [24.6, 60.2])]
    assert json.loads(told["shown"][0]["properties"]) == {"speed_mps": 10 * KNOT_MPS}
    assert (told["error"], told["state"]) == (None, "finished")
    assert not Stream.objects.exists()


def test_a_test_says_which_columns_are_not_in_the_file(site, feeds):
    told = trial_of(site, decoder__csv__columns="key = id\nlon = longitude\nlat = y")
    assert "lacks longitude" in told["hint"] and told["shown"] == []
    told = trial_of(site, decoder__csv__properties="sped = speed_mps [knots]")
    assert "no column sped; it has id, when, x, y, knots" in told["hint"] and len(told["shown"]) == 2


def test_a_test_proposes_options_which_are_the_better_ones(site, feeds):
    (feeds / "rows.csv").write_text("Schiff;Zeit;Breite;Länge;Fahrt [kn]\nAino;27/11/2026 03:00;60,17;24,95;10\n")
    told = trial_of(site)
    assert told["shown"] == []
    fields = {field["name"].removeprefix("decoder__csv__"): field["value"] for field in told["proposed"]}
    assert fields == {
        "columns": "key = Schiff\ntime = Zeit\nlon = Länge\nlat = Breite",
        "properties": "Fahrt [kn] = speed_mps [knots]",
        "delimiter": ";",
        "decimal": ",",
        "time_format": "day_first",
    }
    told = trial_of(site, **{field["name"]: field["value"] for field in told["proposed"]})
    assert [row["key"] for row in told["shown"]] == ["Aino"] and told["proposed"] == []
    assert json.loads(told["shown"][0]["properties"]) == {"speed_mps": 10 * KNOT_MPS}


def test_a_test_proposes_a_tab_as_it_is_written(site, feeds):
    (feeds / "rows.csv").write_text(ROWS.replace(",", "\t"))
    assert {"name": "decoder__csv__delimiter", "label": "delimiter", "value": "\\t"} in trial_of(site)["proposed"]


def test_a_test_says_that_a_decoder_understands_nothing(site, feeds):
    told = trial_of(site, decoder="ais", decoder__ais__time_source="auto")
    assert "understands nothing of what arrives" in told["hint"]


def test_a_test_tells_what_is_wrong_with_the_options_and_with_the_feed(site, feeds):
    errors = trial_of(site, transport__file__path="secret_key")["errors"]
    assert "path must lie below" in errors["transport__file__path"][0]
    assert "No such file" in trial_of(site, transport__file__path="feeds/none")["error"]
    assert "cannot be tested" in trial_of(site, transport="stdin", transport__stdin__live="on")["error"]


def test_a_test_of_a_silent_feed_ends(site, monkeypatch):
    monkeypatch.setattr("webapp.admin.trial.READ_S", 0.5)
    told = trial_of(site, transport="tcp_listener", transport__tcp_listener__port="0")
    assert (told["shown"], told["state"], told["bytes"]) == ([], "running", 0)
    monkeypatch.setattr("webapp.admin.trial.END_S", 0.01)
    assert "must end within" in trial_of(site, transport="tcp_listener", transport__tcp_listener__port="0")["error"]


def test_a_test_is_for_those_who_may_change_streams(client, django_user_model, feeds):
    address = reverse("admin:webapp_stream_test")
    assert client.post(address, CSV).status_code == 302
    clerk = django_user_model.objects.create_user("clerk", password=PASSWORD, is_staff=True)
    client.force_login(clerk)
    assert client.post(address, CSV).status_code == 403
    clerk.user_permissions.add(Permission.objects.get(codename="view_stream"))
    assert client.post(address, CSV).status_code == 403
    clerk.user_permissions.add(Permission.objects.get(codename="change_stream"))
    assert client.post(address, CSV).status_code == 200
    assert client.get(address).status_code == 405


def test_the_hint_is_shown_at_the_stream(site, streams, redis_client):
    redis_client.hset("lookout:health", "ships", json.dumps({"hint": "the input has no column sped", "lost": 77}))
    page = site.get(reverse("admin:webapp_stream_change", args=[streams[0].pk])).content.decode()
    assert "the input has no column sped" in page and "<td>77</td>" in page


SKETCH = {
    "sketch__features": "speed_mps, draught_m",
    "sketch__planes": "speed_mps 16",
    "sketch__time_bin_us": "600",
    "sketch__sets": "key",
}


def test_a_sketch_is_saved_from_its_fields_with_what_it_costs(site, feeds):
    assert site.post(reverse(ADD), CSV | SKETCH).status_code == 302
    stream = Stream.objects.get()
    assert stream.sketch == {
        "features": ["speed_mps", "draught_m"],
        "planes": [{"feature": "speed_mps", "bins": 16}],
        "time_bin_us": 600_000_000,
        "sets": {"features": ["key"]},
    }
    address = reverse("admin:webapp_stream_change", args=[stream.pk])
    page = site.get(address).content.decode()
    for words in ("speed_mps, draught_m", "speed_mps 16", 'value="600.0"', "at most 225 MB of memory", "and sets"):
        assert words in page
    assert site.post(address, CSV).status_code == 302
    stream.refresh_from_db()
    assert stream.sketch is None


@pytest.mark.parametrize(
    ("told", "plane"),
    [
        ("speed_mps 0.5%", {"feature": "speed_mps", "error": 0.005}),
        ("speed_mps 100 0.7%", {"feature": "speed_mps", "bins": 100, "error": 0.007}),
        ("speed_mps", {"feature": "speed_mps"}),
    ],
)
def test_a_plane_with_an_error_budget_is_saved_and_shown(site, feeds, told, plane):
    assert site.post(reverse(ADD), CSV | SKETCH | {"sketch__planes": told}).status_code == 302
    stream = Stream.objects.get()
    assert stream.sketch["planes"] == [plane]
    page = site.get(reverse("admin:webapp_stream_change", args=[stream.pk])).content.decode()
    assert f'value="{told}"' in page


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"sketch__planes": "speed_mps many"}, "sketch__planes", "a feature and a number of bins"),
        ({"sketch__planes": "speed_mps 0%"}, "sketch__planes", "the error of planes must be a number above 0"),
        ({"sketch__planes": "speed_mps 120%"}, "sketch__planes", "at most 1; got 1.2"),
        ({"sketch__planes": "rain 4"}, "sketch__features", "a feature must be one of speed_mps, draught_m; got 'rain'"),
        ({"sketch__cell_bits": "99"}, "sketch__cell_bits", "cell_bits must be an integer from 0 to 48; got 99"),
    ],
)
def test_a_wrong_sketch_is_told_at_its_field(site, feeds, changes, field, words):
    page = site.post(reverse(ADD), CSV | SKETCH | changes)
    assert words in errors_of(page)[field][0]["message"]


def test_a_new_sketch_has_cells_for_a_strait_and_a_saved_one_those_that_it_has(site, feeds):
    def shown(page):
        return page.context["adminform"].form["sketch__cell_bits"].value()

    assert shown(site.get(reverse(ADD))) == 30
    assert site.post(reverse(ADD), CSV | SKETCH).status_code == 302
    change = reverse("admin:webapp_stream_change", args=[Stream.objects.get().pk])
    assert shown(site.get(change)) is None  # the usual ones, as it was saved
    assert site.post(change, CSV | SKETCH | {"sketch__cell_bits": "24"}).status_code == 302
    assert shown(site.get(change)) == 24
