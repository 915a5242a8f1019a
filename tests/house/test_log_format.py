"""`LOOKOUT_LOG_FORMAT=json`: every program writes one JSON object a line, whichever library writes, without secrets."""

import json
import logging
import os
import subprocess
import sys

import pytest

from streaming.errors import LookoutError
from streaming.log_format import JsonFormatter
from streaming.settings import EngineSettings
from webapp.machine.logs import hide_secrets

FIELDS = {"time", "level", "logger", "message", "program", "space"}
SAYS = "import logging; logging.getLogger('some.library').warning('one\\ntwo %s', 3)"
PASSWORD = "hush"
ENGINE = f"from streaming.log_format import set_up; set_up('json', 'engine', 'prices'); {SAYS}"
WEB = f"""
import sys; sys.argv = ['uvicorn', 'webapp.asgi:application']
import django; django.setup(); {SAYS}
logging.getLogger('webapp.hub').info('of the site')
logging.getLogger('django.request').error('Service Unavailable')
logging.getLogger('django.request').error('of Django', exc_info=OSError())
"""


def lines(code, tmp_path, **environ):
    """Run some code in a program of its own; return what it wrote to its log, line by line."""
    given = {"LOOKOUT_HOME": str(tmp_path), "DJANGO_SETTINGS_MODULE": "webapp.settings", "LOOKOUT_LOG_FORMAT": "json"}
    ran = subprocess.run([sys.executable, "-c", code], env={**os.environ, **given, **environ}, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) if line.startswith(b"{") else line.decode() for line in ran.stderr.splitlines()]


def test_each_line_of_an_engine_is_an_object_that_names_its_space(tmp_path):
    (line,) = lines(ENGINE, tmp_path)
    assert set(line) == FIELDS
    assert (line["program"], line["space"], line["message"]) == ("engine", "prices", "one\ntwo 3")
    assert (line["level"], line["logger"], line["time"][-6:]) == ("WARNING", "some.library", "+00:00")


def test_a_web_process_writes_each_line_once_whichever_library_it_is_of(tmp_path):
    told = lines(WEB, tmp_path)
    assert [line["logger"] for line in told] == ["some.library", "webapp.hub", "django.request"]
    assert {line["program"] for line in told} == {"web"}


def test_a_text_log_has_the_trace_of_a_request_that_failed_and_no_line_of_one_that_was_refused(tmp_path):
    failed = """
logging.getLogger('django.security.csrf').warning('Forbidden')
logging.getLogger('django.request').warning('Not Found')
logging.getLogger('django.request').error('it failed', exc_info=ZeroDivisionError('one'))
"""
    told = lines(WEB + failed, tmp_path, LOOKOUT_LOG_FORMAT="text")
    heads = [line.split(" ", 2)[2] for line in told if line.startswith("20")]
    assert heads == [
        "WARNING some.library: one",
        "INFO webapp.hub: of the site",
        "ERROR django.request: of Django",
        "ERROR django.request: it failed",
    ]
    assert told[-1] == "ZeroDivisionError: one"


def test_an_exception_is_in_its_object_and_its_secrets_are_hidden():
    before = logging.getLogRecordFactory()
    hide_secrets()
    try:
        raise OSError(f"redis://:{PASSWORD}@127.0.0.1:1/0 is away")
    except OSError:
        record = logging.getLogRecordFactory()("a", logging.ERROR, "", 1, "it failed", (), sys.exc_info())
    finally:
        logging.setLogRecordFactory(before)
    line = json.loads(JsonFormatter("web").format(record))
    assert "is away" in line["exception"]
    assert PASSWORD not in line["exception"]


def test_another_format_is_refused_with_its_name():
    with pytest.raises(LookoutError, match="LOOKOUT_LOG_FORMAT must be one of text, json; got 'xml'"):
        EngineSettings.from_environ({"LOOKOUT_LOG_FORMAT": "xml"})
