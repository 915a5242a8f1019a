"""How the web programs write logs, without secrets: tokens in URLs, log-in links, passwords of servers."""

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streaming.log_format import JsonFormatter

# How the command line is run: in a checkout, as a wheel installs it, and by the supervisor.
COMMANDS = ("manage.py", "lookout")
MODULE = str(Path(__file__).parents[1] / "__main__.py")
HIDDEN = "…"
# Patterns and their replacements. The query string of a URL is hidden whole: a token in it can be encoded in many ways.
SECRETS = (
    (re.compile(r"(?<=[\w/])\?\S*=[^\s\"']*"), f"?{HIDDEN}"),
    (re.compile(r"((?:login/once|(?<!js/)shared)/)[^\s/\"']+"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)\b(token )[\w-]{20,}"), rf"\1{HIDDEN}"),
    (re.compile(r"(\w+://[^\s:/@]*:)[^\s/@]+(?=@)"), rf"\1{HIDDEN}"),
)


def program_of(arguments: Sequence[str]) -> str:
    """Return which program a command line runs, as the supervisor names it.

    Examples
    --------
    >>> program_of(["/bin/uvicorn/__main__.py", "webapp.asgi:application"]), program_of(["celery", "-A", "x", "beat"])
    ('web', 'beat')
    >>> program_of(["manage.py", "live"]), program_of(["/bin/lookout", "migrate"]), program_of([])
    ('live', 'migrate', 'python')
    """
    for name in ("worker", "beat"):
        if name in arguments:
            return name
    if any("webapp.asgi" in argument for argument in arguments):
        return "web"
    ours = bool(arguments) and (Path(arguments[0]).name in COMMANDS or arguments[0] == MODULE)
    return arguments[1] if ours and len(arguments) > 1 else "python"


class Failed(logging.Filter):
    """Leaves out requests that were refused: whoever asked was told why, and could fill a log with them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a request ended by an exception."""
        return bool(record.exc_info)


def logging_of(log_format: str, program: str) -> dict[str, Any]:
    """Return the configuration of the logs of a web program, for `logging.config`."""
    # Without this, Django tells of a request that failed in a mail to administrators alone.
    levels = {"webapp": "INFO", "django": "ERROR"}
    configuration: dict[str, Any] = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
        "filters": {"failed": {"()": Failed}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": "WARNING"},
    }
    if log_format == "json":
        # Also what the libraries write, which have formats of their own.
        levels = dict.fromkeys(("webapp", "uvicorn", "uvicorn.error", "django"), "INFO")
        configuration["formatters"] = {"line": {"()": JsonFormatter, "program": program}}
        configuration["root"]["level"] = "INFO"
    plain = {"handlers": [], "propagate": True}
    configuration["loggers"] = {name: plain | {"level": level} for name, level in levels.items()}
    configuration["loggers"]["django.request"] = {"filters": ["failed"]}
    return configuration


def without_secrets(text: str) -> str:
    """Return a text with its secrets hidden.

    Examples
    --------
    >>> without_secrets('"WebSocket /ws/monitor/?token=abc" [accepted]')
    '"WebSocket /ws/monitor/?…" [accepted]'
    >>> without_secrets("Gone: /login/once/abc/"), without_secrets("redis://:abc@127.0.0.1:5000/0")
    ('Gone: /login/once/…/', 'redis://:…@127.0.0.1:5000/0')
    """
    for secret, shown in SECRETS:
        text = secret.sub(shown, text)
    return text


def hide_secrets() -> None:
    """Hide secrets in every log record of this process from now on, whichever library writes it."""
    made = logging.getLogRecordFactory()
    if getattr(made, "hides_secrets", False):
        return

    def make(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = made(*arguments, **named)
        if isinstance(record.msg, str):
            record.msg = without_secrets(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(map(_shown, record.args))
        elif isinstance(record.args, dict):
            record.args = {name: _shown(value) for name, value in record.args.items()}
        if record.exc_info and record.exc_info[0]:
            record.exc_text = without_secrets(logging.Formatter().formatException(record.exc_info))
        return record

    make.hides_secrets = True  # type: ignore[attr-defined]  # the mark that the line above looks for
    logging.setLogRecordFactory(make)


def _shown(value: Any) -> Any:
    """Return an argument of a log line; if its text contains a secret, return the text with the secret hidden."""
    if isinstance(value, int | float | None):
        return value
    words = str(value)
    shown = without_secrets(words)
    return value if shown == words else shown
