"""The settings, and that the documentation knows them all."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from streaming.errors import LookoutError
from streaming.settings import EngineSettings, embedded_redis_file, redis_url
from streaming.spaces import EARTH

PRICES = '{"name": "prices", "dimensions": [{"name": "price", "lo": 0, "hi": 9}]}'
SECONDS = {"LOOKOUT_STANDBY_AFTER_S": "1", "LOOKOUT_STEP_S": "30"}
ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations.md"
ENVIRONMENT_NAME = re.compile(r"""["'`]((?:LOOKOUT_[A-Z_]+|DATABASE_URL|REDIS_URL|JAVA_HOME))["'`]""")


def test_every_setting_has_a_default_that_works():
    settings = EngineSettings.from_environ({})
    assert settings.state_dir == settings.home / "engine" / "earth"
    assert settings.home.is_absolute()


def test_an_environment_changes_every_setting(tmp_path):
    given = {
        "LOOKOUT_HOME": str(tmp_path),
        "LOOKOUT_REDIS_URL": "redis://elsewhere:1/2",
        "LOOKOUT_LOG_URL": "kafka://elsewhere:9092",
        "LOOKOUT_PARTITIONS": "3",
        "LOOKOUT_REGIONS": "5",
        "LOOKOUT_PARTITIONER": "quadtree",
        "LOOKOUT_SCALING": "false",
        "LOOKOUT_MOST_OBJECTS": "5000",
        "LOOKOUT_MOST_ELEMENTS_PER_S": "700",
        "LOOKOUT_PADDING": "static",
        "LOOKOUT_PADDING_SIZE": "2.5e3",
        "LOOKOUT_STATE_DIR": str(tmp_path / "state"),
        "LOOKOUT_STATE_URI": "s3://bucket/lookout",
        "LOOKOUT_LAYERS_DIR": str(tmp_path / "layers"),
        "LOOKOUT_HISTORY_DIR": str(tmp_path / "history"),
        "LOOKOUT_FIRST_ELEMENTS": "0",
        "LOOKOUT_SPARK_MASTER": "spark://cluster:7077",
        "LOOKOUT_DRIVER_HOST": "10.0.0.1",
        "LOOKOUT_EXECUTOR_MEMORY": "2g",
        "LOOKOUT_EXECUTOR_PYTHON": "/opt/lookout/bin/python",
        "LOOKOUT_MAX_BLOCKS": "7",
        "LOOKOUT_DRIVER_MEMORY": "2g",
        "LOOKOUT_BATCH_MS": "70",
        "LOOKOUT_FEED_DIRS": "/recordings:mine",
        "LOOKOUT_FEED_HOSTS": "Tracker.lan, 10.0.0.0/8",
        **SECONDS,
        "JAVA_HOME": "/java",
        "LOOKOUT_LOG_FORMAT": "json",
        "LOOKOUT_TRACE_RATIO": "0.001",
        "LOOKOUT_SPACE": PRICES,
    }
    changed, default = EngineSettings.from_environ(given), EngineSettings()
    assert not [f.name for f in fields(EngineSettings) if getattr(changed, f.name) == getattr(default, f.name)]


def test_folders_and_hosts_of_feeds_are_listed(tmp_path):
    settings = EngineSettings.from_environ(
        {
            "LOOKOUT_HOME": str(tmp_path),
            "LOOKOUT_FEED_DIRS": "/recordings:mine",
            "LOOKOUT_FEED_HOSTS": "A.lan, 10.0.0.0/8",
        }
    )
    assert settings.feed_dirs == (Path("/recordings"), tmp_path / "mine")
    assert settings.feed_hosts == ("a.lan", "10.0.0.0/8")
    assert EngineSettings.from_environ({"LOOKOUT_HOME": str(tmp_path)}).feed_dirs == (tmp_path / "feeds",)
    with pytest.raises(LookoutError, match="LOOKOUT_FEED_HOSTS must be names, addresses and networks; got '10/99'"):
        EngineSettings.from_environ({"LOOKOUT_FEED_HOSTS": "10/99"})


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "²"])
def test_a_count_that_is_no_positive_whole_number_is_refused_with_its_name(value):
    with pytest.raises(LookoutError, match="LOOKOUT_PARTITIONS must be a positive whole number"):
        EngineSettings.from_environ({"LOOKOUT_PARTITIONS": value})


@pytest.mark.parametrize("value", ["-1", "far", "nan", "inf"])
def test_a_size_that_is_no_number_from_0_up_is_refused_with_its_name(value):
    with pytest.raises(LookoutError, match="LOOKOUT_PADDING_SIZE must be a number from 0 up; got"):
        EngineSettings.from_environ({"LOOKOUT_PADDING_SIZE": value})


def test_a_space_is_earth_or_described_and_names_its_state_folder():
    assert EngineSettings.from_environ({"LOOKOUT_SPACE": "earth"}).space == EARTH
    settings = EngineSettings.from_environ({"LOOKOUT_SPACE": PRICES})
    assert (settings.space.n, settings.state_dir) == (1, settings.home / "engine" / "prices")
    for text, words in (("mars", "a space must be a JSON object"), ('{"name": "a"}', "dimensions must be a list")):
        with pytest.raises(LookoutError, match=f"LOOKOUT_SPACE must be earth or the JSON document of a space: {words}"):
            EngineSettings.from_environ({"LOOKOUT_SPACE": text})


def test_redis_is_the_declared_one_else_the_embedded_one_else_the_usual_one(tmp_path):
    assert redis_url({}, tmp_path) == "redis://127.0.0.1:6379/0"
    embedded_redis_file(tmp_path).parent.mkdir()
    embedded_redis_file(tmp_path).write_text("redis://:x@127.0.0.1:5000/0\n")
    assert redis_url({}, tmp_path) == "redis://:x@127.0.0.1:5000/0"
    assert redis_url({"REDIS_URL": "redis://alias/0"}, tmp_path) == "redis://alias/0"
    assert redis_url({"REDIS_URL": "redis://alias/0", "LOOKOUT_REDIS_URL": "redis://a/0"}, tmp_path) == "redis://a/0"


@pytest.mark.parametrize("module", ["streaming/settings.py", "webapp/settings.py"])
def test_every_environment_name_is_documented(module):
    names = set(ENVIRONMENT_NAME.findall((ROOT / module).read_text()))
    assert names, "a settings module reads the environment"
    missing = {name for name in names if f"`{name}`" not in OPERATIONS.read_text()}
    assert not missing


def test_every_documented_name_is_read_somewhere():
    documented = set(re.findall(r"^\| `(LOOKOUT_[A-Z_]+)`", OPERATIONS.read_text(), re.M))
    read = (ROOT / "streaming/settings.py").read_text() + (ROOT / "webapp/settings.py").read_text()
    assert documented
    assert not {name for name in documented if f'"{name}"' not in read}


def test_every_field_of_the_engines_settings_is_documented():
    words = OPERATIONS.read_text()
    assert not {field.name for field in fields(EngineSettings) if f"`{field.name}`" not in words}
