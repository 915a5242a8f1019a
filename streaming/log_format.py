"""How all programs write their logs: lines for people, or one JSON object a line for programs that collect logs."""

import logging
from datetime import UTC, datetime

import orjson

LOG_FORMATS = ("text", "json")
TEXT = "%(asctime)s %(name)s %(levelname)s %(message)s"


class JsonFormatter(logging.Formatter):
    """Writes a log record as a JSON object: time, level, logger, message, program, space, and an exception if any.

    Parameters
    ----------
    program : str
        As in the supervisor's list: engine, gateway, web, worker, beat, ...
    space : str, optional
        The space that the program evaluates; none if it serves all of them.

    Examples
    --------
    >>> record = logging.LogRecord("lookout.engine", logging.INFO, "", 0, "%d regions", (2,), None)
    >>> record.created = 0.5
    >>> JsonFormatter("engine", "earth").format(record)[:70]
    '{"time":"1970-01-01T00:00:00.500000+00:00","level":"INFO","logger":"lo'
    """

    def __init__(self, program: str, space: str | None = None) -> None:
        super().__init__()
        self._program, self._space = program, space

    def format(self, record: logging.LogRecord) -> str:
        """Return the object, in one line."""
        if record.exc_info and not record.exc_text:  # a text that is there already has its secrets hidden
            record.exc_text = self.formatException(record.exc_info)
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "program": self._program,
            "space": self._space,
        }
        if record.exc_text:
            document["exception"] = record.exc_text
        text = orjson.dumps({name: _sound(value) for name, value in document.items()})
        return text.decode()


def set_up(log_format: str, program: str, space: str | None = None, text: str = TEXT) -> None:
    """Let this process write its logs to the standard error, from level INFO on; `text` is the format of plain lines.

    A process that does so already stays as it is.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(program, space) if log_format == "json" else logging.Formatter(text))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _sound(value: str | None) -> str | None:
    """Return a text without lone surrogates, which the name of a file may have and JSON cannot."""
    return None if value is None else value.encode(errors="replace").decode()
