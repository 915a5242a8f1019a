"""Features of layers are found by what is written in them."""

import pytest

from tests.webapp.test_layers import edit, upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.fixture
def site(project, tmp_path, client, user):
    """Return a browser in which the owner has logged in, with layers in a folder of the test."""
    project.LAYERS_DIR = tmp_path / "layers"
    client.force_login(user)
    return client


def test_features_are_found_by_a_part_of_their_key_or_of_a_property_and_not_by_the_name_of_one(site):
    upload(site)
    point = {"type": "Point", "coordinates": [1, 1]}
    known = [
        {"name": 'Café "Ärger"', "of": "harbours"},
        {"name": "Quay 7", "n": 4711},
        {"harbour": None, "note": "a:b"},
    ]
    edit(
        site,
        1,
        [{"type": "Feature", "id": f"p{i}", "properties": one, "geometry": point} for i, one in enumerate(known)],
    )

    def found(text):
        answer = site.get("/layers/squares/features", {"find": text}).json()
        return sorted(feature["id"] for feature in answer["features"])

    wanted = {"ärger": ["p0"], 'café "ä': ["p0"], "QUAY 7": ["p1"], "471": ["p1"], "harbour": ["p0"], "P2": ["p2"]}
    assert {text: found(text) for text in wanted} == wanted
    assert (found("(.*"), found("nothing"), len(found(""))) == ([], [], 7)
